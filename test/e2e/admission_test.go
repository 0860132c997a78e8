package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	quotaGate   = "tranche.dev/quota"
	gangGate    = "tranche.dev/gang"
	fractionKey = "tranche.dev/gpu-fraction"
)

// The shipped webhooks are in force for the scenario's namespace when this returns.
func (s *Scenario) withWebhook() {
	s.Helper()
	s.labelNamespace("tranche.dev/schedule", "true")
	s.must(s.ApplyWebhook(s.ctx(), filepath.Join("..", "..", "charts", "webhook.yaml"), s.namespace))
	s.Cleanup(func() { s.RemoveWebhook(s.ctx()) })
	s.must(s.AllowGates(s.ctx()))
	s.Cleanup(func() {
		_ = s.Client.RbacV1().ClusterRoleBindings().Delete(s.ctx(), gatesRole, metav1.DeleteOptions{})
	})
	s.eventually(30*time.Second, func() string {
		probe := s.gpuPod("probe", "1.5")
		if _, err := s.try(probe, metav1.DryRunAll); err == nil || !strings.Contains(err.Error(), "webhook") {
			return fmt.Sprintf("expected the webhook to be asked, found %v", err)
		}
		return ""
	})
}

// A pod as a user writes it: no scheduler, and any amount of nvidia.com/gpu.
func (s *Scenario) gpuPod(name, gpus string) *corev1.Pod {
	pod := WholeCards(0).Pod(name, map[string]string{fleetKey: s.fleet})
	pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse(gpus)
	return pod
}

func (s *Scenario) try(pod *corev1.Pod, dryRun ...string) (*corev1.Pod, error) {
	return s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{DryRun: dryRun})
}

func (s *Scenario) made(pod *corev1.Pod) *corev1.Pod {
	s.Helper()
	created, err := s.try(pod)
	s.must(err)
	return created
}

func (s *Scenario) refused(pod *corev1.Pod, says string) {
	s.Helper()
	if _, err := s.try(pod); err == nil || !strings.Contains(err.Error(), says) {
		s.Errorf("pod %s: expected a refusal with %q, found %v", pod.Name, says, err)
	}
}

func gatesOf(pod *corev1.Pod) string {
	names := []string{}
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return strings.Join(names, " ")
}

func (s *Scenario) gated(pod *corev1.Pod, gates string) {
	s.Helper()
	if found := gatesOf(pod); found != gates {
		s.Errorf("pod %s: expected gates %q, found %q", pod.Name, gates, found)
	}
}

// What users write without knowing of us runs, and what cannot run is refused at once.
func TestWebhookMakesPodsSchedulable(t *testing.T) {
	s := newScenario(t, "webhook-pods", StockNode("webhook-0", 4))
	// The API server itself takes no part of a GPU.
	if _, err := s.try(s.gpuPod("before", "0.5")); !apierrors.IsInvalid(err) {
		t.Errorf("expected the API server to refuse 0.5 GPUs without the webhook, found %v", err)
	}
	s.apply("GPUPolicy", "webhook-sharing", `spec: {sharing: {unenforced: Allow}, selector: {namespaces: `+
		"{matchLabels: {tranche.dev/schedule: \"true\"}}}}")
	s.withWebhook()

	half := s.made(s.gpuPod("half", "0.5"))
	if _, there := half.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; there ||
		half.Annotations[fractionKey] != "0.5" || half.Spec.SchedulerName != s.SchedulerName {
		t.Errorf("expected annotation %s 0.5, no nvidia.com/gpu and scheduler %s, found %v, %v and %s", fractionKey,
			s.SchedulerName, half.Annotations, half.Spec.Containers[0].Resources, half.Spec.SchedulerName)
	}
	s.made(s.gpuPod("quarter", "250m"))
	s.made(s.gpuPod("two", "2"))
	for _, name := range []string{"half", "quarter", "two"} {
		s.running(name, soon)
	}
	for _, device := range s.devicesOf(s.get("half")) {
		if device.Milli != 500 {
			t.Errorf("expected 500 thousandths of a card, found %+v", device)
		}
	}

	s.refused(s.gpuPod("more", "1.5"), "(1.5)")
	// The API server has rounded it up to thousandths before anybody is asked.
	if tiny := s.made(s.gpuPod("tiny", "0.0005")); tiny.Annotations[fractionKey] != "0.001" {
		t.Errorf("expected %s 0.001, found %q", fractionKey, tiny.Annotations[fractionKey])
	}
	s.refused(s.gpuPod("many", "65"), "expected at most 64 GPUs")
	mixed := s.gpuPod("mixed", "1")
	mixed.Annotations = map[string]string{fractionKey: "0.5"}
	mixed.Spec.Containers[0].Resources.Limits["nvidia.com/gpumem"] = resource.MustParse("1000")
	s.refused(mixed, "expected keys of one request style")

	plain := WholeCards(0).Pod("plain", nil)
	delete(plain.Spec.Containers[0].Resources.Limits, "nvidia.com/gpu")
	if made := s.made(plain); made.Spec.SchedulerName != "default-scheduler" {
		t.Errorf("expected a pod without GPU left alone, found scheduler %s", made.Spec.SchedulerName)
	}
	s.audit()
}

// A record of devices is what we wrote, not what users say.
func TestWebhookKeepsResultsFromUsers(t *testing.T) {
	s := newScenario(t, "webhook-results", StockNode("webhook-1", 2))
	s.withWebhook()
	forged := s.gpuPod("forged", "1")
	forged.Annotations = map[string]string{allocationKey: `{"v":1}`, "team": "a"}
	made := s.made(forged)
	if _, there := made.Annotations[allocationKey]; there || made.Annotations["team"] != "a" {
		t.Errorf("expected the forged record gone and the rest kept, found %v", made.Annotations)
	}
	pod := s.running("forged", soon)
	record := pod.Annotations[allocationKey]
	if record == "" {
		t.Fatalf("expected our record on the bound pod, found %v", pod.Annotations)
	}
	patch := func(key, value string) error {
		_, err := s.Client.CoreV1().Pods(s.namespace).Patch(s.ctx(), "forged", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)), metav1.PatchOptions{})
		return err
	}
	if err := patch(allocationKey, `{"v":1}`); !apierrors.IsForbidden(err) {
		t.Errorf("expected a changed record to be forbidden, found %v", err)
	}
	s.must(patch("team", "b"))
	if found := s.get("forged").Annotations[allocationKey]; found != record {
		t.Errorf("expected the record as it was, found %s", found)
	}
}

// Pods that quota does not let in are gated, and go when it does; nobody has to ask.
func TestWebhookGatesPodsThatQuotaBlocks(t *testing.T) {
	s := newScenario(t, "webhook-quota", StockNode("webhook-2", 4))
	s.labelNamespace("team", "webhook-quota")
	s.apply("GPUQuota", "webhook-quota", "spec: {namespaceSelector: {matchLabels: {team: webhook-quota}}, "+
		"lines: [{model: h100, nominal: {gpus: 2}}]}")
	s.eventually(statusLag, func() string { return s.missingReady(quotaPath, "webhook-quota", "True") })
	s.withWebhook()
	s.gated(s.made(s.gpuPod("first", "2")), "")
	s.running("first", soon)
	s.gated(s.made(s.gpuPod("second", "1")), quotaGate)
	time.Sleep(1100 * time.Millisecond) // creation times, the order of the line, are whole seconds
	s.gated(s.made(s.gpuPod("third", "2")), quotaGate)
	s.told("second", "WaitingForQuota")
	s.holds(2*time.Second, func() string {
		if found := gatesOf(s.get("second")); found != quotaGate {
			return fmt.Sprintf("expected the gate to stay while there is no quota, found %q", found)
		}
		return ""
	})
	s.delete("first", 0)
	s.running("second", soon)
	if found := gatesOf(s.get("third")); found != quotaGate {
		t.Errorf("expected the gate of a pod that quota has no room for, found %q", found)
	}
	s.delete("second", 0)
	s.running("third", soon)
	s.audit()
}

// Members of a gang are gated until the last one is there.
func TestWebhookGatesGangsThatAreNotComplete(t *testing.T) {
	s := newScenario(t, "webhook-gang", StockNode("webhook-3", 4))
	s.withWebhook()
	member := func(i int) *corev1.Pod {
		pod := s.gpuPod(fmt.Sprint("m", i), "1")
		pod.Annotations = map[string]string{"tranche.dev/gang": "g", "tranche.dev/gang-size": "3"}
		return pod
	}
	s.gated(s.made(member(0)), gangGate)
	s.gated(s.made(member(1)), gangGate)
	s.holds(2*time.Second, func() string {
		if found := gatesOf(s.get("m0")); found != gangGate {
			return fmt.Sprintf("expected the gate to stay while a member is missing, found %q", found)
		}
		return ""
	})
	s.made(member(2))
	for i := range 3 {
		s.running(fmt.Sprint("m", i), soon)
	}
	s.audit()
}
