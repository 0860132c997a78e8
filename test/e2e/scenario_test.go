package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Scenario is one test's part of the shared cluster: nodes that only its pods select, and a
// namespace. Its nodes and pods go when the test ends.
type Scenario struct {
	*testing.T
	*ControlPlane
	namespace string
	fleet     string // of the nodes its pods select: its own, unless it shares another's
	nodes     []NodeSpec
}

func newScenario(t *testing.T, namespace string, nodes ...TestNode) *Scenario {
	t.Helper()
	if shared == nil {
		t.Skip("needs a control plane: set TRANCHE_BIN and CONTROLPLANE_BIN")
	}
	s := &Scenario{T: t, ControlPlane: shared, namespace: namespace, fleet: namespace}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of all logs:\n%s", s.LogTails())
		}
	})
	_, err := s.Client.CoreV1().Namespaces().Create(s.ctx(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	s.must(err)
	t.Cleanup(s.remove)
	for _, node := range nodes {
		s.addNode(node)
	}
	return s
}

func (s *Scenario) addNode(node TestNode) {
	s.Helper()
	node.Object.Labels[fleetKey] = s.namespace
	_, err := s.Client.CoreV1().Nodes().Create(s.ctx(), node.Object, metav1.CreateOptions{})
	s.must(err)
	s.nodes = append(s.nodes, node.Spec)
}

func (s *Scenario) ctx() context.Context { return context.Background() }

func (s *Scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *Scenario) remove() {
	now := int64(0)
	err := s.Client.CoreV1().Pods(s.namespace).DeleteCollection(s.ctx(),
		metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil {
		s.Error(err)
	}
	for _, node := range s.nodes {
		if err := s.Client.CoreV1().Nodes().Delete(s.ctx(), node.Name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	}
}

// create sends a pod that only fits the scenario's nodes; kind "" leaves all of them open.
func (s *Scenario) create(name, kind string, ask Ask) *corev1.Pod {
	s.Helper()
	on := map[string]string{fleetKey: s.fleet}
	if kind != "" {
		on[kindKey] = kind
	}
	return s.createPod(ask.Pod(name, on))
}

func (s *Scenario) createPod(pod *corev1.Pod) *corev1.Pod {
	s.Helper()
	pod.Spec.SchedulerName = s.SchedulerName
	created, err := s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{})
	s.must(err)
	return created
}

// get returns nil when there is no such pod.
func (s *Scenario) get(name string) *corev1.Pod {
	s.Helper()
	pod, err := s.Client.CoreV1().Pods(s.namespace).Get(s.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return pod
}

func (s *Scenario) list() []corev1.Pod {
	s.Helper()
	pods, err := s.Client.CoreV1().Pods(s.namespace).List(s.ctx(), metav1.ListOptions{})
	s.must(err)
	return pods.Items
}

func (s *Scenario) delete(name string, graceSeconds int64) {
	s.Helper()
	s.must(s.Client.CoreV1().Pods(s.namespace).Delete(s.ctx(), name,
		metav1.DeleteOptions{GracePeriodSeconds: &graceSeconds}))
}

// eventually polls until the condition holds; what it still misses goes into the failure.
func (s *Scenario) eventually(limit time.Duration, missing func() string) {
	s.Helper()
	last := ""
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if last = missing(); last == "" {
			return
		}
	}
	s.Fatalf("after %v: %s", limit, last)
}

// running waits for the pod and returns it.
func (s *Scenario) running(name string, limit time.Duration) *corev1.Pod {
	s.Helper()
	var pod *corev1.Pod
	s.eventually(limit, func() string {
		if pod = s.get(name); pod == nil {
			return fmt.Sprintf("expected pod %s, found none", name)
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("expected pod %s to run, found %s", name, describe(pod))
		}
		return ""
	})
	return pod
}

// waits expects the pod to be refused for a reason whose text has `because` in it, and to stay
// without a node for a while.
func (s *Scenario) waits(name, because string, quiet time.Duration) {
	s.Helper()
	s.eventually(soon, func() string {
		pod := s.get(name)
		if pod == nil || pod.Spec.NodeName != "" {
			s.Fatalf("expected pod %s to wait, found %s", name, describe(pod))
		}
		if text := refusal(pod); text == "" || !strings.Contains(text, because) {
			return fmt.Sprintf("expected pod %s to be refused because %q, found %s", name, because, describe(pod))
		}
		return ""
	})
	s.holds(quiet, func() string {
		if pod := s.get(name); pod == nil || pod.Spec.NodeName != "" {
			return fmt.Sprintf("expected pod %s to wait, found %s", name, describe(pod))
		}
		return ""
	})
}

// holds expects nothing to be amiss for a while.
func (s *Scenario) holds(quiet time.Duration, amiss func() string) {
	s.Helper()
	for end := time.Now().Add(quiet); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if found := amiss(); found != "" {
			s.Fatal(found)
		}
	}
}

// audit looks at the scenario's nodes, with the pods of `others` that share them.
func (s *Scenario) audit(others ...*Scenario) {
	s.Helper()
	pods := s.list()
	for _, other := range others {
		pods = append(pods, other.list()...)
	}
	if problems := Audit(s.nodes, pods); len(problems) > 0 {
		s.Errorf("expected no device given out twice, found:\n%s", strings.Join(problems, "\n"))
	}
}

func (s *Scenario) patchNode(name, patch string, subresources ...string) {
	s.Helper()
	_, err := s.Client.CoreV1().Nodes().Patch(s.ctx(), name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, subresources...)
	s.must(err)
}

// refusal is the text of PodScheduled=False of a pod without a node; "" when there is none.
func refusal(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return condition.Message
		}
	}
	return ""
}

func describe(pod *corev1.Pod) string {
	if pod == nil {
		return "no pod"
	}
	text := fmt.Sprintf("phase %s, node %q", pod.Status.Phase, pod.Spec.NodeName)
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			text += fmt.Sprintf(", PodScheduled=%s %s: %s", condition.Status, condition.Reason, condition.Message)
		}
	}
	return text
}

// devicesOf reads the allocation and fails the test when there is none.
func (s *Scenario) devicesOf(pod *corev1.Pod) []Device {
	s.Helper()
	allocation, err := AllocationOf(pod)
	s.must(err)
	return allocation.Devices()
}

// placements is what must not change while the API server is away: pod -> node and allocation.
func (s *Scenario) placements() map[types.UID]string {
	s.Helper()
	placed := map[types.UID]string{}
	for _, pod := range s.list() {
		placed[pod.UID] = pod.Spec.NodeName + " " + pod.Annotations[allocationKey]
	}
	return placed
}

func (s *Scenario) expectSamePlacements(before map[types.UID]string) {
	s.Helper()
	if after := s.placements(); !maps.Equal(before, after) {
		s.Errorf("expected placements %v, found %v", before, after)
	}
}
