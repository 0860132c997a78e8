package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Two pods that saved their work a moment ago go; one that saved it earlier, one that never does, and
// one that is young and of a lower class stay.
func TestAnOwnerTakesBackWhatCostsLeast(t *testing.T) {
	c := newTeams(t, "cheap", "h100", 5, 0, StockNode("cheap-0", 5))
	c.borrower.start(training, WholeCards(1), "careful-0", "careful-1", "steady", "silent")
	c.borrower.start(young, WholeCards(1), "fresh")
	work := func() { time.Sleep(3 * time.Second) } // so that there is something to lose
	work()
	c.borrower.checkpointed("steady")
	work()
	c.borrower.checkpointed("careful-0", "careful-1")

	c.owner.submit("serve", inference, WholeCards(2))
	c.borrower.onlyLeave("careful-0", "careful-1")
	c.owner.nominated("serve", "cheap-0")
	c.owner.explains("serve", "0 of 2 gone")
	under := c.owner.reclaimIs("serve", "Evicting")
	if found := under.victims(c.borrower.namespace); under.Spec.Rule != "R1" ||
		!slices.Equal(found, []string{"careful-0", "careful-1"}) || len(under.Status.Victims) != 2 {
		t.Errorf("expected R1 to take careful-0 and careful-1, found %+v", under)
	}
	c.owner.event("serve", c.borrower.namespace)
	for _, victim := range []string{"careful-0", "careful-1"} {
		c.borrower.event(victim, c.owner.namespace)
	}

	c.borrower.stopped("careful-0", "careful-1")
	c.owner.running("serve", planLag)
	c.owner.reclaimIs("serve", "Done")
	c.borrower.onlyLeave()
	c.audit()
}

func TestHalfAGpuIsTakenFromOneCard(t *testing.T) {
	c := newTeams(t, "half", "a100-80gb", 2, 0, HamiNode("half-0", 2))
	c.borrower.start(training, WholeCards(1), "whole")
	c.borrower.start(training, HalfCard(), "half-0", "half-1")

	c.owner.submit("serve", inference, HalfCard())
	c.owner.eventually(planLag, func() string {
		if found := c.borrower.leaving(); len(found) != 1 || !strings.HasPrefix(found[0], "half-") {
			return fmt.Sprintf("expected one half to leave, found %q", found)
		}
		return ""
	})
	victim := c.borrower.leaving()[0]
	c.borrower.onlyLeave(victim)
	c.owner.waits("serve", "room is being made for the pod", 0)
	c.borrower.stopped(victim)
	pod := c.owner.running("serve", planLag)
	if devices := c.owner.devicesOf(pod); len(devices) != 1 || devices[0].Milli != 500 {
		t.Errorf("expected half a card, found %+v", devices)
	}
	c.borrower.onlyLeave()
	c.audit()
}

// The guarded pod would cost less: it is the newest.
func TestPodsUnderADisruptionBudgetStay(t *testing.T) {
	c := newTeams(t, "pdb", "h100", 2, 0, StockNode("pdb-0", 2))
	c.borrower.protect("app", "guarded", 0)
	c.borrower.start(training, WholeCards(1), "plain")
	c.borrower.submit("guarded", training, WholeCards(1), labelled("app", "guarded"))
	c.borrower.running("guarded", soon)

	c.owner.submit("serve-0", inference, WholeCards(1))
	c.borrower.onlyLeave("plain")
	c.borrower.stopped("plain")
	c.owner.running("serve-0", planLag)

	c.owner.submit("serve-1", inference, WholeCards(1))
	c.owner.explains("serve-1", "PDBBlocked")
	c.borrower.onlyLeave()
	c.owner.waits("serve-1", "", time.Second)

	c.borrower.protect("app", "guarded", 1)
	c.borrower.onlyLeave("guarded")
	c.borrower.stopped("guarded")
	c.owner.running("serve-1", planLag)
	c.audit()
}

func TestADeletedPreemptorGivesEverythingBack(t *testing.T) {
	c := newTeams(t, "gone", "h100", 3, 0, StockNode("gone-0", 3))
	c.borrower.start(training, WholeCards(1), "job-0", "job-1", "job-2")
	gate := c.borrower.closeGate(evictions, 1)
	c.owner.submit("serve", inference, WholeCards(3))
	victim := c.firstVictim(gate)

	c.owner.delete("serve", 0)
	if reclaim := c.owner.reclaimIs("serve", "Aborted"); reclaim.Status.Reason != "PreemptorGone" {
		t.Errorf("expected reason PreemptorGone, found %+v", reclaim)
	}
	gate.Open()
	c.borrower.onlyLeave(victim)
	c.borrower.submit("next", training, WholeCards(1))
	c.borrower.stopped(victim)
	c.borrower.running("next", planLag)
	c.borrower.onlyLeave()
	c.audit()
}

// firstVictim waits until one pod is terminating and the next eviction was turned away.
func (c *teams) firstVictim(gate *Gate) string {
	c.Helper()
	c.owner.eventually(planLag, func() string {
		if found := c.borrower.leaving(); len(found) != 1 || gate.Refused() == 0 {
			return fmt.Sprintf("expected one pod to leave and the next to be asked for, found %q and %d asked", found,
				gate.Refused())
		}
		return ""
	})
	return c.borrower.leaving()[0]
}

// kube-scheduler sees many free slots on such a node: only Tranche keeps the cards for their pod.
func TestNobodyElseGetsTheRoomThatIsMade(t *testing.T) {
	c := newTeams(t, "steal", "a100-80gb", 2, 0, HamiNode("steal-0", 2))
	thief := newScenario(t, "steal-thief") // no quota limits it
	thief.fleet = c.owner.fleet
	c.borrower.start(training, WholeCards(1), "job-0", "job-1")
	c.owner.submit("serve", inference, WholeCards(2))
	c.borrower.onlyLeave("job-0", "job-1")

	thief.submit("thief", training, WholeCards(1))
	thief.waits("thief", "", time.Second)
	c.borrower.stopped("job-0")
	thief.waits("thief", "", 4*time.Second)
	if pod := c.owner.get("serve"); pod.Spec.NodeName != "" {
		t.Errorf("expected serve to wait for both cards, found %s", describe(pod))
	}
	c.borrower.stopped("job-1")
	c.owner.running("serve", planLag)
	thief.waits("thief", "", time.Second)
	c.owner.audit(c.borrower, thief)
}

func TestAKillBetweenTwoEvictionsChangesNothing(t *testing.T) {
	c := newTeams(t, "crash", "h100", 4, 0, StockNode("crash-0", 4))
	c.borrower.start(training, WholeCards(1), "job-0", "job-1", "job-2", "job-3")
	gate := c.borrower.closeGate(evictions, 1)
	c.owner.submit("serve", inference, WholeCards(3))
	c.firstVictim(gate)
	planned := c.owner.reclaimIs("serve", "Evicting").victims(c.borrower.namespace)
	if len(planned) != 3 {
		t.Errorf("expected three victims, found %q", planned)
	}

	c.owner.Tranche.Kill()
	gate.Open()
	c.owner.must(c.owner.Tranche.Start())
	c.owner.must(c.owner.WaitTrancheReady(c.owner.ctx(), planLag))
	c.borrower.onlyLeave(planned...)
	c.borrower.stopped(planned...)
	c.owner.running("serve", planLag)
	if done := c.owner.reclaimIs("serve", "Done"); !slices.Equal(done.victims(c.borrower.namespace), planned) {
		t.Errorf("expected the victims that were planned, %q, found %+v", planned, done)
	}
	c.borrower.onlyLeave()
	c.audit()
}

// The rival has waited longer than the pod the Job makes in place of its victim, but began later.
func TestAVictimComesBackBeforeItsRivals(t *testing.T) {
	const job = types.UID("5d1f6a52-7c3e-4b0a-9a0d-3f5b8c1e2a90")
	c := newTeams(t, "back", "h100", 1, 0, StockNode("back-0", 1))
	c.borrower.submit("job-a", training, WholeCards(1), controlledBy(job))
	c.borrower.running("job-a", soon)
	c.owner.submit("serve", inference, WholeCards(1))
	c.borrower.onlyLeave("job-a")
	c.borrower.submit("rival", training, WholeCards(1))
	c.borrower.waits("rival", "", time.Second)
	c.borrower.stopped("job-a")
	c.owner.running("serve", planLag)

	c.borrower.submit("job-b", training, WholeCards(1), controlledBy(job))
	c.borrower.waits("job-b", "", time.Second)
	c.owner.delete("serve", 0)
	c.borrower.running("job-b", planLag)
	c.borrower.waits("rival", "", time.Second)
	c.borrower.delete("job-b", 0)
	c.borrower.running("rival", planLag)
	c.audit()
}

// By priority kube-scheduler would take `own`, which is within its team's quota. Tranche, asked by
// the preempt verb, names `extra`, which borrows.
func TestKubeSchedulersPreemptionKeepsTheRules(t *testing.T) {
	c := newTeams(t, "verb", "h100", 1, 1, StockNode("verb-0", 2))
	c.borrower.start(sturdy, WholeCards(1), "own")
	c.borrower.start(notebook, WholeCards(1), "extra")
	before := c.owner.preemptCalls()
	c.owner.submit("serve", pushy, WholeCards(1))
	c.borrower.onlyLeave("extra")
	if c.owner.preemptCalls() == before {
		t.Error("expected kube-scheduler to call the preempt verb, it did not")
	}
	c.borrower.stopped("extra")
	c.owner.running("serve", planLag)
	c.borrower.onlyLeave()
	if own := c.borrower.get("own"); own == nil || own.Status.Phase != corev1.PodRunning {
		t.Errorf("expected own to run, found %s", describe(own))
	}
	c.audit()
}

// preemptCalls counts kube-scheduler's calls of the preempt verb that were answered.
func (s *Scenario) preemptCalls() int {
	s.Helper()
	calls := 0
	for _, line := range preemptSeries.FindAllStringSubmatch(s.ask("/metrics"), -1) {
		count, err := strconv.Atoi(line[1])
		s.must(err)
		calls += count
	}
	return calls
}

var preemptSeries = regexp.MustCompile(`(?m)^tranche_requests_total\{[^}]*verb="preempt"[^}]*\} (\d+)$`)
