package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// verdicts are what nodes of the scenario answer of a pod, by name: "fits", or code and detail.
func (s *Scenario) verdicts(name string) (reason, says string, nodes map[string]string) {
	s.Helper()
	var found struct {
		Reason        struct{ Code, Detail string }
		SchedulerSays string
		Nodes         []struct {
			Name   string
			Fits   bool
			Reason struct{ Code string }
			Detail string
		}
	}
	text := s.ask("/api/v1/explain/" + s.namespace + "/" + name)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		s.Fatalf("expected an explanation, found %v in %s", err, text)
	}
	nodes = map[string]string{}
	for _, node := range found.Nodes {
		nodes[node.Name] = fmt.Sprintf("%s: %s", node.Reason.Code, node.Detail)
		if node.Fits {
			nodes[node.Name] = "fits"
		}
	}
	return found.Reason.Code, found.SchedulerSays, nodes
}

// What kube-scheduler refuses by rules of its own never comes to an extender. People are told of it
// all the same, in its own words.
func TestPodsThatKubeSchedulerRefusesAloneHaveAReason(t *testing.T) {
	tainted := StockNode("alone-tainted", 2)
	tainted.Object.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
	s := newScenario(t, "alone", StockNode("alone-a", 2), tainted)
	for _, row := range []struct {
		name, says, onA, onTainted string
		change                     func(pod *corev1.Pod)
	}{
		{"cpu", "Insufficient cpu", "fits", "Tainted: the node has taint dedicated=vision:NoSchedule",
			func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("4k")
			}},
		{"zone", "didn't match Pod's node affinity/selector",
			"NotSelected: asks label disk=fast; the node has no such label",
			"NotSelected: asks label disk=fast; the node has no such label",
			func(pod *corev1.Pod) { pod.Spec.NodeSelector["disk"] = "fast" }},
	} {
		pod := WholeCards(1).Pod(row.name, map[string]string{fleetKey: s.fleet})
		row.change(pod)
		s.createPod(pod)
		s.eventually(30*time.Second, func() string {
			reason, says, nodes := s.verdicts(row.name)
			if reason != "NoNodeOffered" || !strings.Contains(says, row.says) {
				return fmt.Sprintf("expected NoNodeOffered and %q of %s, found %s and %q", row.says, row.name, reason, says)
			}
			if nodes["alone-a"] != row.onA || nodes["alone-tainted"] != row.onTainted {
				return fmt.Sprintf("expected %q and %q, found %v", row.onA, row.onTainted, nodes)
			}
			return ""
		})
		s.told(row.name, "NoNodeOffered")
	}
	s.delete("cpu", 0)
	s.delete("zone", 0)
	s.audit()
}
