package e2e

import (
	"testing"
	"time"
)

// A node of two HAMi cards shows kube-scheduler twenty slots: only Tranche knows when it is full.
func TestDevicesOfADeletedPodAreFreeOnlyWhenItIsGone(t *testing.T) {
	s := newScenario(t, "reuse", HamiNode("reuse-a", 2))
	s.create("job", "", WholeCards(2))
	first := s.running("job", soon)

	s.delete("job", 6)
	s.create("next", "", HalfCard())
	s.waits("next", "too little free GPU capacity", time.Second)
	s.eventually(soon, func() string {
		next := s.get("next")
		// Read after it: a pod that still exists now existed when the other was bound.
		old := s.get("job")
		if next.Spec.NodeName != "" && old != nil {
			s.Fatalf("expected next to wait until the terminating pod is gone, found %s", describe(next))
		}
		if next.Spec.NodeName == "" {
			return "expected next to be bound once the old pod is gone, found " + describe(next)
		}
		return ""
	})
	s.running("next", soon)

	second := s.create("job", "", HalfCard())
	if second.UID == first.UID {
		t.Fatalf("expected a new UID, found %s again", first.UID)
	}
	again := s.running("job", soon)
	if devices := s.devicesOf(again); len(devices) != 1 || devices[0].Milli != 500 {
		t.Errorf("expected the new pod to hold its own half card, found %+v", devices)
	}
	s.audit()
}

func TestAPodRecreatedUnderItsNameGetsItsOwnDevices(t *testing.T) {
	s := newScenario(t, "recreate", HamiNode("recreate-a", 2))
	s.create("stays", "", HalfCard())
	before := s.running("stays", soon).Annotations[allocationKey]
	asks := []struct {
		ask     Ask
		devices int
		milli   int64
	}{
		{WholeCards(1), 1, 1000}, {HalfCard(), 1, 500}, {HamiShare(30000, 20), 1, 200}, {WholeCards(1), 1, 1000},
	}
	seen := map[string]bool{}
	for _, row := range asks {
		created := s.create("job", "", row.ask)
		pod := s.running("job", soon)
		if pod.UID != created.UID || seen[string(pod.UID)] {
			t.Fatalf("expected the pod just created, found UID %s", pod.UID)
		}
		seen[string(pod.UID)] = true
		devices := s.devicesOf(pod)
		if len(devices) != row.devices || devices[0].Milli != row.milli {
			t.Errorf("expected %d devices of %d milli, found %+v", row.devices, row.milli, devices)
		}
		s.audit()
		s.delete("job", 0)
	}
	if after := s.get("stays").Annotations[allocationKey]; after != before {
		t.Errorf("expected the neighbour to keep %s, found %s", before, after)
	}
	// Nothing leaked on the way: with the neighbour gone both cards are whole again.
	s.delete("stays", 0)
	s.create("all", "", WholeCards(2))
	s.running("all", soon)
	s.audit()
}

// A node whose devices vanished is left alone for half a minute after they are back. That time is up
// without any event, so Tranche itself must bring the pod back to kube-scheduler.
func TestANodeThatOpensByTimeIsUsed(t *testing.T) {
	s := newScenario(t, "reopen", StockNode("reopen-a", 1))
	allocatable := func(gpus string) {
		s.patchNode("reopen-a", `{"status":{"allocatable":{"nvidia.com/gpu":"`+gpus+`"}}}`, "status")
		time.Sleep(time.Second)
	}
	allocatable("0")
	allocatable("1")
	s.create("patient", "", WholeCards(1))
	s.waits("patient", "came back a moment ago", 10*time.Second)
	s.running("patient", time.Minute)
	s.audit()
}

func TestAnApiServerOutageChangesNothing(t *testing.T) {
	s := newScenario(t, "outage", StockNode("outage-stock", 8), HamiNode("outage-hami", 4))
	for _, pod := range []struct {
		name string
		kind string
		ask  Ask
	}{{"whole", "stock", WholeCards(4)}, {"half", "hami", HalfCard()}, {"memory", "hami", HamiShare(20000, 0)}} {
		s.create(pod.name, pod.kind, pod.ask)
		s.running(pod.name, soon)
	}
	before := s.placements()

	s.APIServer.Kill()
	time.Sleep(30 * time.Second)
	if !s.Tranche.Running() {
		t.Fatalf("expected tranche to outlive the API server, it ended:\n%s", s.Tranche.LogTail(40))
	}
	s.must(s.APIServer.Start())
	s.must(s.WaitAPIServerReady(s.ctx(), time.Minute))

	s.must(s.WaitTrancheReady(s.ctx(), time.Minute))
	s.expectSamePlacements(before)
	s.create("whole-after", "stock", WholeCards(4))
	s.create("half-after", "hami", HalfCard())
	s.running("whole-after", 90*time.Second)
	s.running("half-after", 90*time.Second)
	// A node that is new since then: all three programs list nodes again.
	s.addNode(StockNode("outage-new", 1))
	s.create("on-new", "stock", WholeCards(1))
	if pod := s.running("on-new", 90*time.Second); pod.Spec.NodeName != "outage-new" {
		t.Errorf("expected the only free node outage-new, found %s", pod.Spec.NodeName)
	}
	s.create("too-much", "stock", WholeCards(1))
	s.waits("too-much", "", time.Second)
	s.audit()
	// What quotas rest on is not read much later than nodes are.
	s.labelNamespace("team", "outage")
	s.apply("GPUQuota", "outage", "spec: {namespaceSelector: {matchLabels: {team: outage}}, "+
		"lines: [{model: h100, nominal: {gpus: 8}}]}")
	s.apply("GPUBudget", "outage", "spec: {quotaRef: outage, gpuHours: 1000, window: {type: Rolling, duration: 24h}}")
	s.eventually(statusLag, func() string { return s.missingReady(budgetPath, "outage", "True") })
}
