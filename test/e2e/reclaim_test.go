package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	crowdGrace = 3 * time.Second
	promised   = crowdGrace + 10*time.Second // from asking to running, once a victim may go
	mostIdle   = 5 * time.Second             // of a GPU that somebody waits for
)

// What a reclaim promises, without quotas: the lower class goes, and of it as much as is needed.
func TestAHigherClassEvictsALowerOneWithoutQuotas(t *testing.T) {
	s := newScenario(t, "classes", StockNode("classes-0", 3))
	s.declareClasses("classes")
	s.eventually(planLag, func() string { return s.missingClasses("classes") })
	s.start(notebook, WholeCards(1), "low-0", "low-1")
	s.start(training, WholeCards(1), "middle")

	s.submit("alike", notebook, WholeCards(1))
	s.waits("alike", "", time.Second)
	s.onlyLeave()

	s.submit("serve", inference, WholeCards(2))
	s.onlyLeave("low-0", "low-1")
	if under := s.reclaimIs("serve", "Evicting"); under.Spec.Rule != "R0" {
		t.Errorf("expected rule R0, found %+v", under)
	}
	s.stopped("low-0", "low-1")
	s.running("serve", planLag)
	s.waits("alike", "", time.Second)
	s.onlyLeave()
	s.audit()
}

// A budget that lets two of three go keeps the whole gang; one that shrinks when the first has gone
// delays the others, who go as soon as it allows.
func TestAGangUnderADisruptionBudgetIsEvictedWholeOrNotAtAll(t *testing.T) {
	c := newTeams(t, "crew", "h100", 3, 0, StockNode("crew-0", 3))
	members := []string{"crew-0", "crew-1", "crew-2"}
	c.borrower.protect("app", "crew", 2)
	for _, name := range members {
		c.borrower.submit(name, training, WholeCards(1).With(gangKey, "crew").With("tranche.dev/gang-size", "3"),
			labelled("app", "crew"))
	}
	for _, name := range members {
		c.borrower.running(name, soon)
	}
	c.owner.submit("serve", inference, WholeCards(1))
	c.owner.explains("serve", "PDBBlocked")
	c.borrower.onlyLeave()

	gate := c.borrower.closeGate(evictions, 1)
	c.borrower.protect("app", "crew", 3)
	victim := c.firstVictim(gate)
	c.borrower.protect("app", "crew", 0)
	gate.Open()
	c.borrower.onlyLeave(victim)
	c.borrower.stopped(victim)
	c.borrower.protect("app", "crew", 2)
	rest := slices.DeleteFunc(slices.Clone(members), func(name string) bool { return name == victim })
	c.borrower.onlyLeave(rest...)
	c.borrower.stopped(rest...)
	c.owner.running("serve", planLag)
	c.audit()
}

// Nobody waits for the GPU: the limit alone ends it, after a warning.
func TestWorkEndsWhenItsClassHasHadItsTime(t *testing.T) {
	c := newTeams(t, "limit", "h100", 2, 0, StockNode("limit-0", 2))
	c.borrower.start(training, WholeCards(1), "endless")
	c.borrower.start(limited, WholeCards(1), "timed")
	began := time.Now()
	c.borrower.holds(15*time.Second, func() string { return c.borrower.missingLeaving(nil) })
	c.borrower.event("timed", "ends soon")
	c.borrower.onlyLeave("timed")
	if took := time.Since(began); took > 20*time.Second+promised {
		t.Errorf("expected timed to be told to leave after 20 s, it took %v", took)
	}
	c.borrower.event("timed", "lets its pods run no longer")
	c.borrower.stopped("timed")
	c.audit()
}

// crowd is a Deployment of one-GPU pods that borrow, with real controllers behind it.
func (c *teams) crowd(replicas int32) {
	c.Helper()
	s := c.borrower
	controllers, err := s.StartControllers(s.ctx(), workloadControllers)
	s.must(err)
	pod := WholeCards(1).Pod("", map[string]string{fleetKey: s.fleet})
	seconds := int64(crowdGrace / time.Second)
	pod.Spec.PriorityClassName, pod.Spec.SchedulerName = patient, s.SchedulerName
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	labels := map[string]string{"app": "crowd"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "crowd"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}}}
	s.Cleanup(func() {
		// Nobody makes pods anew for those that the scenario's end deletes.
		controllers.Stop(15 * time.Second)
		apps := s.Client.AppsV1()
		_ = apps.Deployments(s.namespace).DeleteCollection(s.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{})
		_ = apps.ReplicaSets(s.namespace).DeleteCollection(s.ctx(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if s.Failed() {
			s.Logf("the end of the controllers' log:\n%s", controllers.LogTail(20))
		}
	})
	_, err = s.Client.AppsV1().Deployments(s.namespace).Create(s.ctx(), deployment, metav1.CreateOptions{})
	s.must(err)
	s.eventually(2*planLag, func() string {
		if found := s.placed(); len(found) != int(replicas) {
			return fmt.Sprintf("expected %d pods of the Deployment to run, found %d", replicas, len(found))
		}
		return ""
	})
}

// placed are the pods that run and are not told to leave.
func (s *Scenario) placed() []string {
	s.Helper()
	var names []string
	for _, pod := range s.list() {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// spared declares a budget of the Deployment and waits until its controller has counted the pods.
func (s *Scenario) spared(unavailable int) {
	s.Helper()
	most := intstr.FromInt32(int32(unavailable))
	api := s.Client.PolicyV1().PodDisruptionBudgets(s.namespace)
	_, err := api.Create(s.ctx(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "crowd"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "crowd"}}}}, metav1.CreateOptions{})
	s.must(err)
	s.Cleanup(func() {
		if err := api.Delete(s.ctx(), "crowd", metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	s.eventually(planLag, func() string {
		budget, err := api.Get(s.ctx(), "crowd", metav1.GetOptions{})
		s.must(err)
		if int(budget.Status.DisruptionsAllowed) != unavailable {
			return fmt.Sprintf("expected the budget to allow %d, found %+v", unavailable, budget.Status)
		}
		return ""
	})
}

// race is what was seen while entitled pods waited.
type race struct {
	took    time.Duration            // until `expected` of them ran
	idle    time.Duration            // GPU-seconds of GPUs nobody held meanwhile
	evicted map[string]bool          // pods of the borrower
	started map[string]time.Duration // by name
}

// contend submits `count` pods of the owner and watches until `expected` of them run.
func (c *teams) contend(gpus, count, expected int, limit time.Duration, on map[string]string) race {
	c.Helper()
	seen := race{evicted: map[string]bool{}, started: map[string]time.Duration{}}
	began := time.Now()
	for i := range count {
		c.owner.submit(fmt.Sprintf("serve-%d", i), inference, WholeCards(1),
			func(pod *corev1.Pod) {
				for key, value := range on {
					pod.Spec.NodeSelector[key] = value
				}
			})
	}
	last := time.Now()
	for len(seen.started) < expected {
		if time.Since(began) > limit {
			c.Fatalf("after %v: expected %d pods to run, found %v; %d were evicted and GPUs idle for %v in all",
				limit, expected, seen.started, len(seen.evicted), seen.idle)
		}
		time.Sleep(100 * time.Millisecond)
		held := c.look(&seen, began)
		now := time.Now()
		seen.idle += time.Duration(gpus-held) * now.Sub(last)
		last = now
	}
	seen.took = time.Since(began)
	c.Logf("%d of %d ran after %v; %d evicted, %v of idle GPUs; each after %v", expected, count, seen.took,
		len(seen.evicted), seen.idle, seen.started)
	return seen
}

// look counts the GPUs that are held and notes who has started and who was told to leave.
func (c *teams) look(seen *race, began time.Time) int {
	c.Helper()
	held := 0
	for _, pod := range c.borrower.list() {
		if pod.DeletionTimestamp != nil {
			seen.evicted[pod.Name] = true
		}
		if pod.Spec.NodeName != "" {
			held++
		}
	}
	for _, pod := range c.owner.list() {
		if pod.Spec.NodeName != "" {
			held++
		}
		if _, known := seen.started[pod.Name]; !known && pod.Status.Phase == corev1.PodRunning {
			seen.started[pod.Name] = time.Since(began)
		}
	}
	return held
}

func (c *teams) expectEvicted(seen race, needed int) {
	c.Helper()
	c.borrower.holds(3*time.Second, func() string {
		c.look(&seen, time.Now())
		if len(seen.evicted) != needed {
			return fmt.Sprintf("expected %d pods to be evicted, found %d: %v", needed, len(seen.evicted), seen.evicted)
		}
		return ""
	})
	if most := time.Duration(needed+2) * mostIdle; seen.idle > most {
		c.Errorf("expected GPUs to be idle for at most %v in all while pods waited for them, found %v", most, seen.idle)
	}
}

func crowdNodes(name string) []TestNode {
	var nodes []TestNode
	for i := range 4 {
		nodes = append(nodes, StockNode(fmt.Sprintf("%s-%d", name, i), 8))
	}
	return nodes
}

// Two GPUs are free, eight have to be taken back, all from one owner that rests after an eviction.
func TestTenEntitledPodsTakeWhatTheyNeedOfADeployment(t *testing.T) {
	c := newTeams(t, "crowd", "h100", 30, 2, crowdNodes("crowd")...)
	c.crowd(30)
	seen := c.contend(32, 10, 10, promised, nil)
	c.expectEvicted(seen, 8)
	c.audit()
}

// The budget allows the next eviction when the Deployment has its pod back, on a node that only its
// pods may use.
func TestADisruptionBudgetSetsThePaceOfAReclaim(t *testing.T) {
	c := newTeams(t, "pace", "h100", 38, 2, crowdNodes("pace")...)
	c.crowd(30)
	c.borrower.spared(1)
	spare := StockNode("pace-spare", 8)
	spare.Object.Labels[kindKey] = "spare"
	c.owner.addNode(spare)
	seen := c.contend(40, 10, 10, 8*promised, map[string]string{kindKey: "stock"})
	if len(seen.evicted) != 8 {
		t.Errorf("expected 8 pods to be evicted, found %v", seen.evicted)
	}
	c.audit()
}

// The Deployment finds no other place, so one pod is all that its budget lets go. The freed GPU is
// used at once, and the others are told what they wait for.
func TestABudgetThatAllowsOneEvictionFreesOneGpuForUse(t *testing.T) {
	c := newTeams(t, "scarce", "h100", 30, 2, crowdNodes("scarce")...)
	c.crowd(30)
	c.borrower.spared(1)
	seen := c.contend(32, 6, 3, promised, nil)
	c.expectEvicted(seen, 1)
	waiting := 0
	for i := range 6 {
		name := fmt.Sprintf("serve-%d", i)
		if _, runs := seen.started[name]; runs {
			continue
		}
		waiting++
		c.owner.explains(name, "PDBBlocked")
	}
	if waiting != 3 {
		t.Errorf("expected three pods to wait, found %d", waiting)
	}
	c.audit()
}
