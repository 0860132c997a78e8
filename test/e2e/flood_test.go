package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A load is pods of one kind of request for nodes of one kind; `fit` of them have room, whatever
// the order in which they come.
type load struct {
	name string
	kind string
	ask  Ask
	pods int
	fit  int
}

// 150 of 200 fit: 48 cards, 64 halves, 16 + 8 + 14 instances.
func floodFleet(prefix string) ([]TestNode, []load) {
	var nodes []TestNode
	for i := range 6 {
		nodes = append(nodes, StockNode(fmt.Sprintf("%s-stock-%d", prefix, i), 8))
	}
	for i := range 4 {
		nodes = append(nodes, HamiNode(fmt.Sprintf("%s-hami-%d", prefix, i), 8))
	}
	nodes = append(nodes,
		MigNode(prefix+"-mig-0", 8, map[string]int{"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
		MigNode(prefix+"-mig-1", 3, map[string]int{"3g.40gb": 2}))
	return nodes, []load{
		{"whole", "stock", WholeCards(1), 64, 48},
		// Both ask half of a card, each in its own way; the 64 halves are theirs together.
		{"half", "hami", HalfCard(), 42, -1},
		{"hami", "hami", HamiShare(a100Mib/2, 50), 42, -1},
		{"mig1", "mig", MigInstance("1g.10gb"), 20, 16},
		{"mig2", "mig", MigInstance("2g.20gb"), 10, 8},
		{"mig3", "mig", MigInstance("3g.40gb"), 22, 14},
	}
}

const (
	floodPods = 200
	floodFit  = 150
)

// sendAll creates all pods from several goroutines at once.
func (s *Scenario) sendAll(loads []load) {
	s.Helper()
	var pods []*corev1.Pod
	for _, load := range loads {
		for i := range load.pods {
			on := map[string]string{fleetKey: s.namespace, kindKey: load.kind}
			pod := load.ask.Pod(fmt.Sprintf("%s-%03d", load.name, i), on)
			pod.Spec.SchedulerName = s.SchedulerName
			pod.Labels = map[string]string{"load": load.name}
			pods = append(pods, pod)
		}
	}
	if len(pods) != floodPods {
		s.Errorf("expected %d pods in the loads, found %d", floodPods, len(pods))
		return
	}
	// The strides mix the loads, so that all kinds compete from the first moment.
	err := several(len(pods), func(i int) error {
		_, err := s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), pods[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		s.Error(err)
	}
}

func (s *Scenario) boundCount() int {
	s.Helper()
	bound := 0
	for _, pod := range s.list() {
		if pod.Spec.NodeName != "" {
			bound++
		}
	}
	return bound
}

// expectFull waits for the only possible end: 150 pods run, 50 are refused with a reason, and it
// stays so; no device is held twice.
func (s *Scenario) expectFull(loads []load, limit time.Duration) {
	s.Helper()
	s.eventually(limit, func() string {
		running, refused := 0, 0
		for _, pod := range s.list() {
			switch {
			case pod.Status.Phase == corev1.PodRunning:
				running++
			case refusal(&pod) != "":
				refused++
			}
		}
		if running == floodFit && refused == floodPods-floodFit {
			return ""
		}
		return fmt.Sprintf("expected %d pods to run and %d to be refused, found %d and %d", floodFit,
			floodPods-floodFit, running, refused)
	})
	s.audit()
	before := s.placements()
	time.Sleep(3 * time.Second)
	s.expectSamePlacements(before)
	bound := map[string]int{}
	for _, pod := range s.list() {
		if pod.Spec.NodeName != "" {
			bound[pod.Labels["load"]]++
		}
	}
	for _, load := range loads {
		if load.fit >= 0 && bound[load.name] != load.fit {
			s.Errorf("expected %d pods of %s to run, found %d", load.fit, load.name, bound[load.name])
		}
	}
}

func TestExactlyThePodsThatFitRunWhenAllComeAtOnce(t *testing.T) {
	nodes, loads := floodFleet("flood")
	s := newScenario(t, "flood", nodes...)
	s.sendAll(loads)
	s.expectFull(loads, 90*time.Second)
}

func TestKillingTrancheInTheMiddleGivesTheSameEnd(t *testing.T) {
	nodes, loads := floodFleet("killed")
	s := newScenario(t, "killed", nodes...)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.sendAll(loads)
	}()
	for round := 1; round <= 2; round++ {
		want := round * 40
		s.eventually(time.Minute, func() string {
			if found := s.boundCount(); found < want {
				return fmt.Sprintf("expected %d bound pods before the kill, found %d", want, found)
			}
			return ""
		})
		s.Tranche.Kill()
		time.Sleep(time.Second)
		s.must(s.Tranche.Start())
		s.must(s.WaitTrancheReady(s.ctx(), 30*time.Second))
	}
	<-sent
	s.expectFull(loads, 120*time.Second)
}
