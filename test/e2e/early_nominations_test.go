package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// toldEarly is a scenario in a cluster of its own, whose GPUPolicy tells nodes for every pod, and
// whose kube-scheduler stands still until the test starts it.
func toldEarly(t *testing.T, namespace string, nodes ...TestNode) *Scenario {
	t.Helper()
	s := ownCluster(t, namespace, nil, nodes...)
	RunKubelet(t.Context(), s.Client)
	s.setNominate("On")
	s.eventually(soon, func() string {
		if found := s.metric("tranche_nodes"); found != float64(len(nodes)) {
			return fmt.Sprintf("expected Tranche to know %d nodes, found %g", len(nodes), found)
		}
		return ""
	})
	s.scheduler.Stop(15 * time.Second)
	return s
}

func (s *Scenario) startStopped() {
	s.Helper()
	s.must(s.scheduler.Start())
	s.must(s.waitReady(s.ctx(), s.scheduler, s.schedulerURL+"/readyz", "", soon))
}

func (s *Scenario) toldNode(name, node string) {
	s.Helper()
	s.eventually(soon, func() string {
		if found := s.get(name).Status.NominatedNodeName; found != node {
			return fmt.Sprintf("expected %s to be nominated to %q, found %q", name, node, found)
		}
		return ""
	})
}

// looksEnd waits until so many looks at a told node have ended so, and no more.
func (s *Scenario) looksEnd(outcome string, count float64) {
	s.Helper()
	s.eventually(soon, func() string {
		if found := s.metric(fmt.Sprintf("tranche_early_nominations_total{outcome=%q}", outcome)); found != count {
			return fmt.Sprintf("expected %g looks %s, found %g", count, outcome, found)
		}
		return ""
	})
}

func TestPodsRunWhereTheyWereToldWithOneLookEach(t *testing.T) {
	s := toldEarly(t, "told", StockNode("told-a", 4), StockNode("told-b", 4))
	for i := range 4 {
		s.create(fmt.Sprintf("pod-%d", i), "", WholeCards(2))
	}
	for i, node := range []string{"told-a", "told-a", "told-b", "told-b"} {
		s.toldNode(fmt.Sprintf("pod-%d", i), node)
	}
	s.startStopped()
	for i, node := range []string{"told-a", "told-a", "told-b", "told-b"} {
		pod := s.running(fmt.Sprintf("pod-%d", i), soon)
		if pod.Spec.NodeName != node {
			t.Errorf("expected pod-%d on %s, found %s", i, node, pod.Spec.NodeName)
		}
	}
	s.looksEnd("taken", 4)
	s.audit()
}

// Tranche knows nothing of memory: the node it tells is full of it.
func TestANodeThatDoesNotDoCostsOneLook(t *testing.T) {
	s := toldEarly(t, "one-look", StockNode("full", 4), StockNode("roomy", 4))
	hog := Ask{}.Pod("hog", nil)
	hog.Spec.NodeName = "full"
	hog.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Ti")}
	_, err := s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), hog, metav1.CreateOptions{})
	s.must(err)
	for i := range 2 {
		pod := WholeCards(1).Pod(fmt.Sprintf("pod-%d", i), map[string]string{fleetKey: s.fleet})
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		s.createPod(pod)
		s.toldNode(pod.Name, "full")
	}
	s.startStopped()
	for i := range 2 {
		pod := s.running(fmt.Sprintf("pod-%d", i), soon)
		if pod.Spec.NodeName != "roomy" {
			t.Errorf("expected %s on roomy, found %s", pod.Name, pod.Spec.NodeName)
		}
	}
	s.looksEnd("refused", 2)
}

// It would count on its node as long as it is nominated there, and keep others out.
func TestAPodThatFitsNowhereLocksNobodyOut(t *testing.T) {
	s := toldEarly(t, "huge", StockNode("only", 4))
	huge := WholeCards(1).Pod("huge", map[string]string{fleetKey: s.fleet})
	huge.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Ti")}
	s.createPod(huge)
	s.toldNode("huge", "only")
	s.startStopped()
	s.toldNode("huge", "")
	s.create("small", "", WholeCards(1))
	s.running("small", soon)
}

func TestANodeThatNoLongerHoldsIsTakenBack(t *testing.T) {
	s := toldEarly(t, "taken-back", StockNode("first", 4), StockNode("second", 4))
	s.create("pod", "", WholeCards(1))
	s.toldNode("pod", "first")
	_, err := s.Client.CoreV1().Nodes().Patch(s.ctx(), "first", types.MergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	s.must(err)
	s.toldNode("pod", "second")
	s.startStopped()
	if pod := s.running("pod", soon); pod.Spec.NodeName != "second" {
		t.Errorf("expected the pod on second, found %s", pod.Spec.NodeName)
	}
}

// What only kube-scheduler weighs decides: such pods are told nothing.
func TestSpreadAffinityAndPortsStillDecide(t *testing.T) {
	s := toldEarly(t, "weighed", StockNode("weighed-a", 8), StockNode("weighed-b", 8))
	apart := func(label string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"apart": label}}
	}
	kinds := map[string]func(pod *corev1.Pod){
		"spread": func(pod *corev1.Pod) {
			selector := apart("spread")
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey: "host", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &selector}}
		},
		"affinity": func(pod *corev1.Pod) {
			selector := apart("affinity")
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: "host", LabelSelector: &selector}}}}
		},
		"port": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
			pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
		},
	}
	for _, node := range []string{"weighed-a", "weighed-b"} {
		_, err := s.Client.CoreV1().Nodes().Patch(s.ctx(), node, types.MergePatchType,
			[]byte(fmt.Sprintf(`{"metadata":{"labels":{"host":%q}}}`, node)), metav1.PatchOptions{})
		s.must(err)
	}
	for kind, change := range kinds {
		for i := range 2 {
			pod := WholeCards(1).Pod(fmt.Sprintf("%s-%d", kind, i), map[string]string{fleetKey: s.fleet})
			pod.Labels = map[string]string{"apart": kind}
			change(pod)
			s.createPod(pod)
		}
	}
	s.create("plain", "", WholeCards(1))
	s.toldNode("plain", "weighed-a")
	for kind := range kinds {
		for i := range 2 {
			name := fmt.Sprintf("%s-%d", kind, i)
			if found := s.get(name).Status.NominatedNodeName; found != "" {
				t.Errorf("expected %s to be told nothing, found %s", name, found)
			}
		}
	}
	s.startStopped()
	for kind := range kinds {
		first, second := s.running(kind+"-0", soon), s.running(kind+"-1", soon)
		if first.Spec.NodeName == second.Spec.NodeName {
			t.Errorf("expected the two of %s on different nodes, found both on %s", kind, first.Spec.NodeName)
		}
	}
	s.audit()
}
