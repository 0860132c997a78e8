package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Who writes; RBAC lets all of them do everything, so that a refusal is the policy's.
func (s *Site) as(user string, groups ...string) kubernetes.Interface {
	s.Helper()
	config := rest.CopyConfig(s.AdminConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
	client, err := kubernetes.NewForConfig(config)
	must(s.T, err)
	return client
}

func plainPod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "trainer"}}}}
}

func (s *Site) expect(what string, err error, refusedFor string) {
	s.Helper()
	switch {
	case refusedFor == "" && err != nil:
		s.Errorf("%s: expected it to be taken, found %v", what, err)
	case refusedFor != "" && (err == nil || !strings.Contains(err.Error(), "annotation "+refusedFor+" from")):
		s.Errorf("%s: expected a refusal that names %s, found %v", what, refusedFor, err)
	}
}

const ours = "tranche.dev/allocation"

// newProtectedSite has the policy in force and no Tranche running at all.
func newProtectedSite(t *testing.T) *Site {
	t.Helper()
	s := newSite(t)
	s.install(parse(t, "webhook: {enabled: false, trustedUsers: [agents:gpu, 'system:serviceaccount:kube-system:agent']}"))
	for name, labels := range map[string]map[string]string{"team-a": nil, "left-out": {"tranche.dev/admission": "ignore"}} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		_, err := s.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		must(t, err)
	}
	user := s.as("alice")
	// A policy is in force some moments after it was made.
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		_, err := user.CoreV1().Pods("team-a").Create(t.Context(), plainPod("probe", map[string]string{ours: "{}"}),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return s
		}
		if time.Now().After(end) {
			t.Fatal("expected the policy to be in force within 30 s, found a forged record taken")
		}
	}
}

func TestResultKeysAreTheirWritersOwn(t *testing.T) {
	s := newProtectedSite(t)
	ctx, user := t.Context(), s.as("alice", "team-a")
	writers := map[string]kubernetes.Interface{
		"Tranche":          s.as("system:serviceaccount:tranche-system:tranche"),
		"its scheduler":    s.as("system:serviceaccount:tranche-system:tranche-scheduler"),
		"kube-scheduler":   s.as("system:kube-scheduler"),
		"a kubelet":        s.as("kubelet", "system:nodes"),
		"an agent":         s.as("system:serviceaccount:kube-system:agent"),
		"an agent's group": s.as("somebody", "agents:gpu"),
	}
	// New pods, in every namespace and of every size.
	for _, test := range []struct{ namespace, key, refusedFor string }{
		{"team-a", ours, ours},
		{"left-out", ours, ours},
		{"kube-system", ours, ours},
		{"team-a", "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-allocated"},
		{"team-a", "hami.io/MLU-devices-to-allocate", "hami.io/MLU-devices-to-allocate"},
		{"team-a", "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_IDX"},
		{"team-a", "elasticgpu.io/container-main", "elasticgpu.io/container-main"},
		{"team-a", "tranche.dev/gpu-fraction", ""},
		{"team-a", "hami.io/gpu-scheduler-policy", ""},
	} {
		for _, padding := range []int{0, 1_000_000} {
			pod := plainPod("new", map[string]string{test.key: "x"})
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PADDING", Value: strings.Repeat("x", padding)}}
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := user.CoreV1().Pods(test.namespace).Create(ctx, pod, dry)
			s.expect("a new pod with "+test.key, err, test.refusedFor)
			for name, writer := range writers {
				_, err := writer.CoreV1().Pods(test.namespace).Create(ctx, pod, dry)
				s.expect("a new pod of "+name+" with "+test.key, err, "")
			}
		}
	}
	// Pods that are there.
	_, err := user.CoreV1().Pods("team-a").Create(ctx, plainPod("p", nil), metav1.CreateOptions{})
	must(t, err)
	patch := func(client kubernetes.Interface, annotations string, sub ...string) error {
		_, err := client.CoreV1().Pods("team-a").Patch(ctx, "p", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":`+annotations+`}}`), metav1.PatchOptions{}, sub...)
		return err
	}
	record := `{"` + ours + `":"{\"node\":\"n\"}"}`
	s.expect("setting a record", patch(user, record), ours)
	s.expect("setting a record by the status", patch(user, record, "status"), ours)
	s.expect("another annotation", patch(user, `{"mine":"1"}`), "")
	s.expect("a writer's record", patch(writers["Tranche"], record), "")
	s.expect("beside a record", patch(user, `{"mine":"2"}`), "")
	s.expect("changing a record", patch(user, `{"`+ours+`":"{}"}`), ours)
	s.expect("removing a record", patch(user, `{"`+ours+`":null}`), ours)
	s.expect("an agent's word", patch(writers["an agent"], `{"hami.io/bind-phase":"success"}`), "")
}

// A Binding's annotations become the pod's.
func TestBindingsCarryNoForgedRecord(t *testing.T) {
	s := newProtectedSite(t)
	ctx := t.Context()
	bind := func(client kubernetes.Interface, pod string, annotations map[string]string) error {
		return client.CoreV1().Pods("team-a").Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod, Annotations: annotations},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "gpu-0"}}, metav1.CreateOptions{})
	}
	for _, name := range []string{"forged", "plain", "right"} {
		_, err := s.Client.CoreV1().Pods("team-a").Create(ctx, plainPod(name, nil), metav1.CreateOptions{})
		must(t, err)
	}
	record := map[string]string{ours: `{"node":"gpu-0"}`}
	s.expect("a forged Binding", bind(s.as("alice"), "forged", record), ours)
	s.expect("a Binding without a record", bind(s.as("alice"), "plain", nil), "")
	s.expect("Tranche's Binding", bind(s.as("system:serviceaccount:tranche-system:tranche"), "right", record), "")
	bound, err := s.Client.CoreV1().Pods("team-a").Get(ctx, "right", metav1.GetOptions{})
	must(t, err)
	if bound.Annotations[ours] != record[ours] {
		t.Errorf("expected the record on the pod, found %v", bound.Annotations)
	}
}

// The list in the chart is the one the webhook enforces.
func TestResultKeysAreThoseOfTheProgram(t *testing.T) {
	policy := find(render(t, nil), "ValidatingAdmissionPolicy/tranche-result-keys")
	listed := at(t, policy, ".spec.variables[?(@.name=='keys')].expression") +
		at(t, policy, ".spec.variables[?(@.name=='starts')].expression")
	sources, err := filepath.Glob("../../scheduler/wire/agents/agent*.cc")
	must(t, err)
	if len(sources) < 8 {
		t.Fatalf("expected the sources of agents, found %v", sources)
	}
	// Every key they know but those of requests.
	key := regexp.MustCompile(`string_view k\w+ =\s+"([A-Za-z0-9.]+(?:/[A-Za-z0-9._-]+|_[A-Z_]+))"`)
	requests := []string{"koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio"}
	seen := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		must(t, err)
		for _, match := range key.FindAllStringSubmatch(string(text), -1) {
			seen++
			name := match[1]
			covered := strings.Contains(listed, "'"+name+"'") ||
				strings.HasPrefix(name, "ALIYUN_COM_GPU_MEM_") || strings.HasPrefix(name, "tencent.com/predicate-") ||
				strings.HasSuffix(name, "-devices-to-allocate") || strings.HasSuffix(name, "-devices-allocated")
			for _, request := range requests {
				covered = covered || name == request
			}
			if !covered {
				t.Errorf("%s: expected %q in charts/tranche/templates/result-keys.yaml, found it nowhere", filepath.Base(source), name)
			}
		}
	}
	if seen < 35 {
		t.Errorf("expected some forty keys, found %d", seen)
	}
}
