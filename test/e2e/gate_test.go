package e2e

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the scenarios of preemption stand on: evictions pass the gate one by one, and evicted pods
// stay until they are said to have stopped.
func TestTheGateHoldsUpEvictions(t *testing.T) {
	s := newScenario(t, "gate", StockNode("gate-0", 2))
	s.declarePriorities()
	s.start(training, WholeCards(1), "first", "second")
	gate := s.closeGate(evictions, 1)
	evict := func(name string) error {
		return s.Client.PolicyV1().Evictions(s.namespace).Evict(s.ctx(),
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}})
	}
	s.must(evict("first"))
	if err := evict("second"); !apierrors.IsServiceUnavailable(err) || gate.Refused() != 1 {
		t.Errorf("expected the second eviction to be turned away, found %v", err)
	}
	s.onlyLeave("first")
	gate.Open()
	s.must(evict("second"))
	s.onlyLeave("first", "second")
	s.stopped("first", "second")
}
