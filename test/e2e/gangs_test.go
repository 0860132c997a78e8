package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	gangKey    = "tranche.dev/gang"
	incomplete = "not all pods of the gang are there yet"
	noGangRoom = "the gang as a whole does not fit"
)

// cliques are NVLink fabrics of `size` nodes with 8 GPUs each: NAME-0-0, NAME-0-1, ..., NAME-1-0, ...
func cliques(name string, count, size int) []TestNode {
	var nodes []TestNode
	for clique := range count {
		for node := range size {
			nodes = append(nodes, CliqueNode(fmt.Sprintf("%s-%d-%d", name, clique, node),
				fmt.Sprintf("%s.%d", name, clique)))
		}
	}
	return nodes
}

// cliqueOf a node of cliques.
func cliqueOf(node string) string { return node[:strings.LastIndexByte(node, '-')] }

// gang is pods NAME-0, NAME-1, ... that start together, each on 8 connected GPUs.
func (s *Scenario) gang(name string, size int) []*corev1.Pod { return s.crew(name, connected(8), size) }

// crew is such a gang whose pods ask so much each.
func (s *Scenario) crew(name string, ask Ask, size int) []*corev1.Pod {
	ask = ask.With(gangKey, name).With("tranche.dev/gang-size", fmt.Sprint(size))
	var pods []*corev1.Pod
	for i := range size {
		pods = append(pods, ask.Pod(fmt.Sprintf("%s-%d", name, i), map[string]string{fleetKey: s.fleet}))
	}
	return pods
}

// createAtOnce sends every pod from a goroutine of its own.
func (s *Scenario) createAtOnce(pods []*corev1.Pod) {
	s.Helper()
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		pod.Spec.SchedulerName = s.SchedulerName
		group.Add(1)
		go func() {
			defer group.Done()
			_, errs[i] = s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{})
		}()
	}
	group.Wait()
	s.must(errors.Join(errs...))
}

// nodesOf are the nodes of the gang's bound pods.
func (s *Scenario) nodesOf(gang string) []string {
	s.Helper()
	var nodes []string
	for _, pod := range s.list() {
		if pod.Annotations[gangKey] == gang && pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes
}

func (s *Scenario) missingOfGang(gang string, size int) string {
	s.Helper()
	if nodes := s.nodesOf(gang); len(nodes) != size {
		return fmt.Sprintf("expected %d pods of gang %s to be bound, found %q", size, gang, nodes)
	}
	return ""
}

// landsInOneClique waits for all pods of the gang and returns their clique.
func (s *Scenario) landsInOneClique(gang string, size int) string {
	s.Helper()
	s.eventually(time.Minute, func() string { return s.missingOfGang(gang, size) })
	var found []string
	for _, node := range s.nodesOf(gang) {
		found = append(found, cliqueOf(node))
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) != 1 {
		s.Fatalf("expected gang %s in one clique, found it in %q", gang, found)
	}
	return found[0]
}

// endGang returns when the gang's pods are gone.
func (s *Scenario) endGang(gang string, size int) {
	s.Helper()
	for i := range size {
		s.delete(fmt.Sprintf("%s-%d", gang, i), 0)
	}
	s.eventually(soon, func() string { return s.missingOfGang(gang, 0) })
}

func TestGangsThatRaceLandWholeInOneCliqueOrNotAtAll(t *testing.T) {
	s := newScenario(t, "race", cliques("race", 2, 4)...)
	s.createAtOnce(s.gang("first", 4))
	taken := s.landsInOneClique("first", 4)

	s.createAtOnce(slices.Concat(s.gang("second", 4), s.gang("third", 4)))
	winner, loser := "second", "third"
	s.eventually(time.Minute, func() string {
		if len(s.nodesOf(winner)) == 0 {
			winner, loser = loser, winner
		}
		return s.missingOfGang(winner, 4)
	})
	if clique := s.landsInOneClique(winner, 4); clique == taken {
		t.Errorf("expected the clique that was free, found %s taken twice", clique)
	}
	s.waits(loser+"-0", "", 0) // no node has a free GPU: kube-scheduler itself sees that
	s.holds(4*time.Second, func() string { return s.missingOfGang(loser, 0) })
	s.audit()

	s.endGang("first", 4)
	if clique := s.landsInOneClique(loser, 4); clique != taken {
		t.Errorf("expected the clique %s that was given back, found %s", taken, clique)
	}
	s.audit()
}

// Seven of its eight nodes are free, and in none of the cliques as many as the gang needs.
func TestAGangDoesNotLandWhereOneOfItsNodesIsTaken(t *testing.T) {
	s := newScenario(t, "blocked", cliques("blocked", 2, 4)...)
	s.create("small", "", WholeCards(1))
	spoiled := cliqueOf(s.running("small", soon).Spec.NodeName)

	s.createAtOnce(s.gang("first", 4))
	if clique := s.landsInOneClique("first", 4); clique == spoiled {
		t.Fatalf("expected the gang beside %s, found it there", spoiled)
	}
	s.createAtOnce(s.gang("second", 4))
	for i := range 4 {
		s.waits(fmt.Sprint("second-", i), noGangRoom, 0)
	}
	s.explains("second-0", "GangNoRoom")
	s.holds(4*time.Second, func() string { return s.missingOfGang("second", 0) })
	s.create("nimble", "", WholeCards(1)) // nothing is kept for a gang that does not fit
	s.running("nimble", soon)
	s.delete("nimble", 0)

	s.delete("small", 0)
	if clique := s.landsInOneClique("second", 4); clique != spoiled {
		t.Errorf("expected the gang in %s, found it in %s", spoiled, clique)
	}
	s.audit()
}

// Ten times, after one, two or three binds. Meanwhile somebody whose turn comes first wants what the
// gang has not got yet.
func TestAKillBetweenTwoBindsOfAGangEndsWithAllOrNone(t *testing.T) {
	s := newScenario(t, "torn", cliques("torn", 1, 4)...)
	s.declarePriorities()
	gate := s.closeGate(bindings, 0)
	for round := range 10 {
		gang, pass := fmt.Sprint("gang-", round), 1+round%3
		gate.Let(pass)
		s.createAtOnce(s.gang(gang, 4))
		s.eventually(soon, func() string {
			if missing := s.missingOfGang(gang, pass); missing != "" {
				return missing
			}
			if gate.Refused() == 0 {
				return "expected the next binding to be turned away, found none asked for"
			}
			return ""
		})
		s.Tranche.Kill()
		gate.Open()
		s.submit("thief", inference, WholeCards(8))
		s.must(s.Tranche.Start())
		s.must(s.WaitTrancheReady(s.ctx(), soon))
		s.eventually(time.Minute, func() string {
			if bound := len(s.nodesOf(gang)); bound != 0 && bound != 4 {
				return fmt.Sprintf("round %d: expected all or none of the gang after %d binds, found %d bound", round, pass,
					bound)
			}
			return ""
		})
		t.Logf("round %d: %d pods were bound before, %d after", round, pass, len(s.nodesOf(gang)))
		s.audit()
		s.delete("thief", 0)
		s.endGang(gang, 4)
	}
}

func TestAnotherControllersGroupIsHeldBackUntilItIsComplete(t *testing.T) {
	for _, row := range []struct {
		name        string
		labels      map[string]string
		annotations map[string]string
	}{
		{"kueue", map[string]string{"kueue.x-k8s.io/pod-group-name": "job"},
			map[string]string{"kueue.x-k8s.io/pod-group-total-count": "3"}},
		{"volcano", nil, map[string]string{"scheduling.k8s.io/group-name": "job"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newScenario(t, "group-"+row.name)
			if row.name == "volcano" {
				s.createPodGroup("job", 3)
			}
			member := func(i int) {
				pod := WholeCards(2).Pod(fmt.Sprint("job-", i), map[string]string{fleetKey: s.fleet})
				pod.Labels, pod.Annotations = row.labels, row.annotations
				s.createPod(pod)
			}
			member(0)
			member(1)
			s.addNode(StockNode("group-"+row.name, 8))
			s.waits("job-0", incomplete, 3*time.Second)
			s.waits("job-1", incomplete, 0)
			s.create("alone", "", WholeCards(1))
			s.running("alone", soon)
			member(2)
			for i := range 3 {
				s.running(fmt.Sprint("job-", i), soon)
			}
			s.audit()
		})
	}
}

// createPodGroup returns when Tranche has had time to see it.
func (s *Scenario) createPodGroup(name string, members int) {
	s.Helper()
	path := "/apis/scheduling.volcano.sh/v1beta1/namespaces/" + s.namespace + "/podgroups"
	s.must(RESTOf(s.Client).Post().AbsPath(path).Body([]byte(fmt.Sprintf(
		`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":%q},"spec":{"minMember":%d}}`,
		name, members))).Do(s.ctx()).Error())
	time.Sleep(decisionLag)
}
