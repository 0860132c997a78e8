package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const spotNotice = "aws-node-termination-handler/spot-itn"

// A cloud takes a machine back: the gang that has a pod there leaves as a whole, others stay where
// they are, and nothing new comes, whatever it tolerates.
func TestANodeThatIsTakenAwayIsLeftByWholeGangs(t *testing.T) {
	var nodes []TestNode
	for _, name := range []string{"taken-0", "taken-1"} {
		node := StockNode(name, 3)
		node.Object.Labels["machine"] = name
		nodes = append(nodes, node)
	}
	c := newTeams(t, "taken", "h100", 1, 5, nodes...)
	s := c.borrower
	s.apply("GPUPolicy", "taken", fmt.Sprintf(
		"spec: {onInterruption: Drain, selector: {nodes: {matchLabels: {%s: %s}}}}", fleetKey, s.fleet))
	on := func(node string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.NodeSelector["machine"] = node }
	}
	member := WholeCards(1).With(gangKey, "crew").With("tranche.dev/gang-size", "2")
	s.submit("crew-0", patient, member, on("taken-0"))
	s.submit("crew-1", patient, member, on("taken-1"))
	s.submit("alone", patient, WholeCards(1), on("taken-0"))
	s.submit("elsewhere", patient, WholeCards(1), on("taken-1"))
	c.owner.submit("serve", inference, WholeCards(1), on("taken-0"))
	for _, name := range []string{"crew-0", "crew-1", "alone", "elsewhere"} {
		s.running(name, soon)
	}
	c.owner.running("serve", soon)

	s.patchNode("taken-0", fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, spotNotice))
	s.onlyLeave("alone", "crew-0", "crew-1")
	s.event("crew-1", "Node taken-0 is about to be taken away")
	c.owner.holds(2*time.Second, func() string { return c.owner.missingLeaving(nil) })
	s.stopped("crew-0", "crew-1", "alone")

	s.submit("bold", patient, WholeCards(1), on("taken-0"), func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	s.explains("bold", "Interrupted")
	s.patchNode("taken-0", `{"spec":{"taints":null}}`)
	s.running("bold", soon)
	c.audit()
}
