package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An autoscaler's words; see scheduler/wire/workloads/scale_up.h for whose they are.
const (
	byClusterAutoscaler = "pod triggered scale-up: [{gpu-pool 1->2 (max: 8)}]"
	byKarpenter         = "Pod should schedule on: nodeclaim/gpu-2hfk8"
)

// raises says what an autoscaler says of a pod when it asks its cloud for a node.
func (s *Scenario) raises(name, component, reason, message string) {
	s.Helper()
	now := metav1.Now()
	_, err := s.Client.CoreV1().Events(s.namespace).Create(s.ctx(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: name + "."},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: name, UID: s.get(name).UID},
		Reason:         reason, Message: message, Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: component},
	}, metav1.CreateOptions{})
	s.must(err)
}

// A node that is raised for a pod spares those who would have had to go; one that does not come
// does so for as long as the policy says.
func TestNobodyIsEvictedForAPodWhoseNodeIsOnItsWay(t *testing.T) {
	const wait = 20 * time.Second
	s := ownCluster(t, "awaited", nil, StockNode("awaited-a", 2))
	RunKubelet(t.Context(), s.Client)
	s.declareClasses("awaited")
	s.eventually(planLag, func() string { return s.missingClasses("awaited") })
	s.apply("GPUPolicy", "awaited", fmt.Sprintf("spec: {preemption: {waitForNodes: %s}}", wait))
	s.start(notebook, WholeCards(1), "low-0", "low-1")
	s.raises("low-0", "cluster-autoscaler", "TriggeredScaleUp", byClusterAutoscaler)

	s.submit("comes", training, WholeCards(2))
	s.explains("comes", "NodeExpected")
	s.raises("comes", "karpenter", "Nominated", byKarpenter)
	s.onlyLeave()
	s.addNode(StockNode("awaited-b", 2))
	if pod := s.running("comes", soon); pod.Spec.NodeName != "awaited-b" {
		t.Errorf("expected the pod on the node that was raised for it, found it on %s", pod.Spec.NodeName)
	}
	s.onlyLeave()

	s.submit("fails", training, WholeCards(2))
	s.explains("fails", "NodeExpected")
	s.raises("fails", "cluster-autoscaler", "TriggeredScaleUp", byClusterAutoscaler)
	asked := time.Now()
	s.onlyLeave()
	s.onlyLeave("low-0", "low-1")
	if spared := time.Since(asked); spared < wait-2*time.Second || spared > wait+15*time.Second {
		t.Errorf("expected nobody to be evicted for %s, found the evictions after %s", wait, spared)
	}
	s.stopped("low-0", "low-1")
	s.running("fails", planLag)
	s.audit()
}
