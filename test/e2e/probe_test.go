package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"sigs.k8s.io/yaml"
)

// probeText is the annotation tranche.dev/probe.
type probeText struct {
	V      int       `json:"v"`
	At     time.Time `json:"at"`
	Driver string    `json:"driver"`
	Gpus   []struct {
		Index     int    `json:"index"`
		UUID      string `json:"uuid"`
		Bus       string `json:"bus"`
		Numa      *int   `json:"numa"`
		MemoryMib int    `json:"memoryMiB"`
		Mig       []struct {
			Profile string `json:"profile"`
			Start   int    `json:"start"`
			Size    int    `json:"size"`
			UUID    string `json:"uuid"`
		} `json:"mig"`
	} `json:"gpus"`
	Pods []heldDevices `json:"pods"`
}

type heldDevices struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Container string   `json:"container"`
	Resource  string   `json:"resource"`
	Devices   []string `json:"devices"`
}

// probeCommand is one look at the machine of test/fakes/gpu_node.
func probeCommand(t *testing.T, socket string, arguments ...string) *exec.Cmd {
	t.Helper()
	tranche := os.Getenv("TRANCHE_BIN")
	if tranche == "" {
		t.Skip("needs TRANCHE_BIN")
	}
	node, err := filepath.Abs(filepath.Join("..", "fakes", "gpu_node"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(tranche, append([]string{"probe", "--once",
		"--nvml", filepath.Join(filepath.Dir(tranche), "fake_nvml.so"),
		"--nvidia-smi", filepath.Join(node, "nvidia-smi"), "--podresources", socket}, arguments...)...)
	command.Env = append(os.Environ(), "FAKE_NVML_NODE="+filepath.Join(node, "node.json"))
	return command
}

func containerWith(name string, devices ...*podresources.ContainerDevices) *podresources.ContainerResources {
	return &podresources.ContainerResources{Name: name, Devices: devices, CpuIds: []int64{4, 5, 600},
		Memory: []*podresources.ContainerMemory{{MemoryType: "memory", Size: 1 << 40}}}
}

func devicesWith(resource string, numa int64, ids ...string) *podresources.ContainerDevices {
	return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids,
		Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: numa}}}}
}

// The kubelet's API as kubelets serve it: its own messages over grpc-go.
func TestProbeReadsThePodResourcesOfARealServer(t *testing.T) {
	idle := make([]*podresources.PodResources, 2000) // an answer of many frames
	for i := range idle {
		idle[i] = &podresources.PodResources{Name: fmt.Sprintf("idle-%d", i), Namespace: "other",
			Containers: []*podresources.ContainerResources{containerWith("main",
				devicesWith("example.com/nic", 0, strings.Repeat("n", 200)))}}
	}
	kubelet := PodResources{pods: append(idle,
		&podresources.PodResources{Name: "train", Namespace: "team",
			Containers: []*podresources.ContainerResources{
				containerWith("main", devicesWith("nvidia.com/gpu", 1, "GPU-4", "GPU-5"),
					devicesWith("nvidia.com/gpu", 0, "GPU-0"), devicesWith("example.com/nic", 0, "nic-0")),
				containerWith("aside")}},
		&podresources.PodResources{Name: "serve", Namespace: "team",
			Containers: []*podresources.ContainerResources{
				containerWith("main", devicesWith("nvidia.com/gpu.shared", 0, "GPU-1::3"))}})}
	socket, stop, err := kubelet.Serve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()

	out, err := probeCommand(t, socket, "--print").Output()
	if err != nil {
		t.Fatalf("tranche probe: %v", err)
	}
	topology, text, _ := strings.Cut(string(out), probeKey+":\n")
	var probe probeText
	if err := json.Unmarshal([]byte(text), &probe); err != nil {
		t.Fatal(err)
	}
	expected := []heldDevices{
		{"team", "serve", "main", "nvidia.com/gpu.shared", []string{"GPU-1::3"}},
		{"team", "train", "main", "nvidia.com/gpu", []string{"GPU-0", "GPU-4", "GPU-5"}},
	}
	same := func(a, b heldDevices) bool {
		return a.Namespace == b.Namespace && a.Name == b.Name && a.Container == b.Container &&
			a.Resource == b.Resource && slices.Equal(a.Devices, b.Devices)
	}
	if !slices.EqualFunc(probe.Pods, expected, same) {
		t.Errorf("expected pods %v, found %v", expected, probe.Pods)
	}
	if probe.V != 1 || time.Since(probe.At).Abs() > time.Minute || len(probe.Gpus) != 8 {
		t.Errorf("expected version 1, now, and 8 GPUs, found %+v", probe)
	}
	if last := probe.Gpus[6]; len(last.Mig) != 3 || last.Mig[2].Start != 4 || probe.Gpus[0].Mig != nil {
		t.Errorf("expected GPU 6 alone of these two in MIG mode, found %+v", probe.Gpus)
	}
	if !strings.HasPrefix(topology, "tranche.dev/topology:\n\tGPU0\tGPU1\t") {
		t.Errorf("expected the matrix, found %q", topology)
	}
}

// probeToken is what the kubelet would mount into a pod of the DaemonSet on that node.
func (s *Scenario) probeToken(node string) string {
	s.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe-" + node, Namespace: probeNamespace},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: probeName,
			Containers: []corev1.Container{{Name: "probe", Image: "tranche:0.1.0"}}}}
	pod, err := s.Client.CoreV1().Pods(probeNamespace).Create(s.ctx(), pod, metav1.CreateOptions{})
	s.must(err)
	now := int64(0)
	s.Cleanup(func() {
		_ = s.Client.CoreV1().Pods(probeNamespace).Delete(context.Background(), pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1",
			Name: pod.Name, UID: pod.UID}}}
	answer, err := s.Client.CoreV1().ServiceAccounts(probeNamespace).CreateToken(s.ctx(), probeName,
		request, metav1.CreateOptions{})
	s.must(err)
	return answer.Status.Token
}

// The shipped manifest at a real API server: what a probe may write and what not.
func TestProbeWritesItsOwnNodeAndNothingElse(t *testing.T) {
	s := newScenario(t, "probe", StockNode("probe-home", 8), StockNode("probe-other", 8))
	charts := filepath.Join("..", "..", "charts")
	s.must(ApplyProbe(s.ctx(), s.Client, filepath.Join(charts, "probe.yaml")))
	token := s.probeToken("probe-home")
	client, err := s.ClientOf(token, "")
	s.must(err)
	patch := func(node, text string) error {
		_, err := client.CoreV1().Nodes().Patch(s.ctx(), node, types.MergePatchType, []byte(text),
			metav1.PatchOptions{})
		return err
	}
	// The API server takes up policies after a while: until then, anything is allowed.
	s.eventually(soon, func() string {
		err := patch("probe-other", `{"metadata":{"annotations":{"tranche.dev/probe":"forged"}}}`)
		if err == nil || !apierrors.IsInvalid(err) {
			return fmt.Sprintf("expected another node to be refused, found %v", err)
		}
		if !strings.Contains(err.Error(), "the probe may write the node it runs on, probe-home, and no other") {
			return err.Error()
		}
		return ""
	})
	for text, allowed := range map[string]bool{
		`{"metadata":{"annotations":{"tranche.dev/probe":"{}","tranche.dev/topology":"x"}}}`:     true,
		`{"metadata":{"annotations":{"tranche.dev/topology":null}}}`:                             true,
		`{"metadata":{"annotations":{"tranche.dev/probe":"{}","other":"x"}}}`:                    false,
		`{"metadata":{"annotations":null}}`:                                                      false,
		`{"metadata":{"labels":{"nvidia.com/gpu.product":"x"}}}`:                                 false,
		`{"metadata":{"finalizers":["tranche.dev/x"]}}`:                                          false,
		`{"spec":{"unschedulable":true}}`:                                                        false,
		`{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`:                                 false,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"u"}]}}`: false,
	} {
		s.patchNode("probe-home", `{"metadata":{"annotations":{"of-others":"stays"}}}`)
		if err := patch("probe-home", text); (err == nil) != allowed {
			s.Errorf("%s: expected allowed %v, found %v", text, allowed, err)
		}
	}
	if _, err := client.CoreV1().Nodes().Get(s.ctx(), "probe-home", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		s.Errorf("expected reading nodes to be forbidden, found %v", err)
	}

	kubelet := PodResources{}
	socket, stop, err := kubelet.Serve(s.TempDir())
	s.must(err)
	defer stop()
	kubeconfig := filepath.Join(s.TempDir(), "kubeconfig")
	s.must(os.WriteFile(kubeconfig, s.kubeconfig(s.apiURL, token), 0o600))
	out, err := probeCommand(t, socket, "--node", "probe-home", "--kubeconfig", kubeconfig).CombinedOutput()
	if err != nil {
		s.Fatalf("tranche probe: %v\n%s", err, out)
	}
	node, err := s.Client.CoreV1().Nodes().Get(s.ctx(), "probe-home", metav1.GetOptions{})
	s.must(err)
	var probe probeText
	s.must(json.Unmarshal([]byte(node.Annotations[probeKey]), &probe))
	if len(probe.Gpus) != 8 || probe.Pods == nil || len(probe.Pods) != 0 {
		s.Errorf("expected 8 GPUs and no pods, found %+v", probe)
	}
	if !strings.HasPrefix(node.Annotations["tranche.dev/topology"], "\tGPU0\tGPU1\t") ||
		node.Annotations["of-others"] != "stays" {
		s.Errorf("expected the matrix beside the other annotations, found %v", node.Annotations)
	}
	out, err = probeCommand(t, socket, "--node", "probe-other", "--kubeconfig", kubeconfig).CombinedOutput()
	if code := exitCode(err); code != 1 || !strings.Contains(string(out), "and no other") {
		s.Errorf("expected exit code 1 and the policy's words, found %d and %s", code, out)
	}

	s.grantMig(filepath.Join(charts, "patches", "probe-mig.yaml"))
}

// grantMig applies the patch for clusters with MIG, which must leave all else as it was.
func (s *Scenario) grantMig(patch string) {
	s.Helper()
	text, err := os.ReadFile(patch)
	s.must(err)
	body, err := yaml.YAMLToJSON(text)
	s.must(err)
	daemons := s.Client.AppsV1().DaemonSets(probeNamespace)
	before, err := daemons.Get(s.ctx(), probeName, metav1.GetOptions{})
	s.must(err)
	after, err := daemons.Patch(s.ctx(), probeName, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	s.must(err)
	was, is := before.Spec.Template.Spec.Containers[0], after.Spec.Template.Spec.Containers[0]
	if len(is.Env) != len(was.Env)+1 || is.Image != was.Image || len(is.VolumeMounts) != 1 {
		s.Errorf("expected one variable more and all else as before, found %+v", is)
	}
	rights := is.SecurityContext.Capabilities
	if !slices.Equal(rights.Add, []corev1.Capability{"SYS_ADMIN"}) ||
		!slices.Equal(rights.Drop, []corev1.Capability{"ALL"}) {
		s.Errorf("expected SYS_ADMIN alone, found %+v", rights)
	}
}

func exitCode(err error) int {
	if failed, ok := err.(*exec.ExitError); ok {
		return failed.ExitCode()
	}
	return 0
}
