package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Every kind of request is bound by the real kube-scheduler, and the Binding says which devices.
func TestEveryKindOfRequestIsBoundWithItsDevices(t *testing.T) {
	s := newScenario(t, "kinds",
		StockNode("kinds-stock", 8), HamiNode("kinds-hami", 4), SharedNode("kinds-shared", 2, 4),
		MigNode("kinds-mig", 2, map[string]int{"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}))
	unknown := []string{"counts", "predicted"} // a stock device plugin tells nobody what it chose
	exact := []string{"exact"}
	tests := []struct {
		name      string
		kind      string
		ask       Ask
		devices   int
		milli     int64
		mib       int64
		profile   string
		knowledge []string
	}{
		{"one-whole", "stock", WholeCards(1), 1, 1000, h100Mib, "", unknown},
		{"four-whole", "stock", WholeCards(4), 4, 1000, h100Mib, "", unknown},
		{"whole-on-hami", "hami", WholeCards(1), 1, 1000, a100Mib, "", exact},
		{"half", "hami", HalfCard(), 1, 500, a100Mib / 2, "", exact},
		{"gpumem", "hami", HamiShare(20000, 0), 1, 0, 20000, "", exact},
		{"gpumem-and-cores", "hami", HamiShare(10000, 30), 1, 300, 10000, "", exact},
		{"small-instance", "mig", MigInstance("1g.10gb"), 1, -1, -1, "1g.10gb", unknown},
		{"large-instance", "mig", MigInstance("3g.40gb"), 1, -1, -1, "3g.40gb", unknown},
		{"shared", "shared", SharedCard(), 1, -1, -1, "", unknown},
	}
	for _, test := range tests {
		s.create(test.name, test.kind, test.ask)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := s.running(test.name, soon)
			if want := "kinds-" + test.kind; pod.Spec.NodeName != want {
				t.Errorf("expected node %s, found %s", want, pod.Spec.NodeName)
			}
			allocation, err := AllocationOf(pod)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(test.knowledge, allocation.Knowledge) {
				t.Errorf("expected knowledge in %v, found %q", test.knowledge, allocation.Knowledge)
			}
			if len(allocation.Containers) != 1 || allocation.Containers[0].Name != "main" {
				t.Errorf("expected the container main alone, found %+v", allocation.Containers)
			}
			devices := allocation.Devices()
			if len(devices) != test.devices {
				t.Fatalf("expected %d devices, found %+v", test.devices, devices)
			}
			for _, device := range devices {
				expectDevice(t, device, test.milli, test.mib, test.profile)
				expectIdentity(t, device, allocation.Knowledge)
			}
			if test.kind == "hami" {
				expectHamiKeys(t, pod, devices[0])
			}
		})
	}
	s.audit()
}

// Amounts of -1 are not checked: a device's share of a cut or sliced card is a convention.
func expectDevice(t *testing.T, device Device, milli, mib int64, profile string) {
	t.Helper()
	if milli >= 0 && device.Milli != milli {
		t.Errorf("expected %d milli, found %d", milli, device.Milli)
	}
	if mib >= 0 && device.Mib != mib {
		t.Errorf("expected %d MiB, found %d", mib, device.Mib)
	}
	switch {
	case profile == "" && device.Mig != nil:
		t.Errorf("expected no MIG instance, found %+v", *device.Mig)
	case profile != "" && (device.Mig == nil || device.Mig.Profile != profile || device.Mig.Size < 1):
		t.Errorf("expected an instance of %s, found %+v", profile, device.Mig)
	}
}

// Which card it is must be said where it is known, and must not be invented where it is not.
func expectIdentity(t *testing.T, device Device, knowledge string) {
	t.Helper()
	switch {
	case knowledge == "exact" && (device.Index == nil || device.UUID == nil):
		t.Errorf("expected index and uuid of an exactly known device, found %+v", device)
	case knowledge == "counts" && (device.Index != nil || device.UUID != nil || device.Slot == nil):
		t.Errorf("expected a slot alone where only counts are known, found %+v", device)
	}
}

// What HAMi's agent reads when kubelet asks it for the devices.
func expectHamiKeys(t *testing.T, pod *corev1.Pod, device Device) {
	t.Helper()
	// "uuid,NVIDIA,MiB,percent:" per device, ";" after each container.
	want := fmt.Sprintf("%s,NVIDIA,%d,", *device.UUID, device.Mib)
	for _, key := range []string{"hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated"} {
		if found := pod.Annotations[key]; !strings.HasPrefix(found, want) || !strings.HasSuffix(found, ":;") {
			t.Errorf("expected %s to be %q and cores, found %q", key, want, found)
		}
	}
	if found := pod.Annotations["hami.io/vgpu-node"]; found != pod.Spec.NodeName {
		t.Errorf("expected hami.io/vgpu-node %s, found %q", pod.Spec.NodeName, found)
	}
	for _, key := range []string{"hami.io/vgpu-time", "hami.io/bind-time", hamiPhaseKey} {
		if pod.Annotations[key] == "" {
			t.Errorf("expected annotation %s, found none", key)
		}
	}
}

// With nodeCacheCapable false kube-scheduler sends whole Node objects and reads whole Node objects.
func TestWholeNodeObjectsInTheQuestionAreAnsweredInKind(t *testing.T) {
	s := newScenario(t, "objects", StockNode("objects-stock", 4), HamiNode("objects-hami", 2))
	s.must(shared.RestartScheduler(s.ctx(), func(extender map[string]any) {
		extender["nodeCacheCapable"] = false
	}))
	t.Cleanup(func() {
		if err := shared.RestartScheduler(s.ctx(), nil); err != nil {
			t.Error(err)
		}
	})
	s.create("whole", "stock", WholeCards(4))
	s.create("half", "hami", HalfCard())
	s.create("plain", "stock", Ask{})
	for name, node := range map[string]string{"whole": "objects-stock", "half": "objects-hami"} {
		if pod := s.running(name, soon); pod.Spec.NodeName != node {
			t.Errorf("expected %s on %s, found it on %s", name, node, pod.Spec.NodeName)
		}
	}
	s.running("plain", soon)
	s.delete("plain", 0) // it has no devices to audit
	s.create("late", "stock", WholeCards(1))
	s.waits("late", "nvidia.com/gpu", 0)
	s.audit()
}

func TestPodWithoutGpuIsScheduledUntouched(t *testing.T) {
	s := newScenario(t, "plain", StockNode("plain-a", 8))
	created := s.create("web", "", Ask{})
	pod := s.running("web", soon)
	if len(pod.Annotations) != len(created.Annotations) {
		t.Errorf("expected annotations %v, found %v", created.Annotations, pod.Annotations)
	}
}

// Nothing on a stock node can enforce a fraction; by default a real cluster gets no such promise.
func TestFractionWaitsWhereNothingEnforcesIt(t *testing.T) {
	s := newScenario(t, "unenforced", StockNode("unenforced-a", 8))
	s.create("half", "", HalfCard())
	s.waits("half", "nothing on the node enforces GPU shares", 3*time.Second)
}

func TestUnreadyAndCordonedNodesGetNothing(t *testing.T) {
	cordoned, unready := HamiNode("closed-cordoned", 8), StockNode("closed-unready", 8)
	cordoned.Object.Spec.Unschedulable = true
	// No node controller runs here, so no taint tells kube-scheduler: Tranche itself must see it.
	unready.Object.Status.Conditions = []corev1.NodeCondition{readiness(corev1.ConditionFalse)}
	s := newScenario(t, "closed", cordoned, unready)
	for _, name := range []string{"a", "b", "c"} {
		s.create(name, "", WholeCards(4))
	}
	for _, name := range []string{"a", "b", "c"} {
		s.waits(name, "the node is not ready", 2*time.Second)
	}
	s.patchNode("closed-unready", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Test"}]}}`,
		"status")
	s.eventually(time.Minute, func() string { return s.missingOn("closed-unready", 2) })
	s.patchNode("closed-cordoned", `{"spec":{"unschedulable":null}}`)
	s.eventually(time.Minute, func() string { return s.missingOn("closed-cordoned", 1) })
	s.audit()
}

// missingOn says what is wrong when not exactly `want` pods are on a node.
func (s *Scenario) missingOn(node string, want int) string {
	s.Helper()
	found := 0
	for _, pod := range s.list() {
		if pod.Spec.NodeName == node {
			found++
		}
	}
	if found == want {
		return ""
	}
	return fmt.Sprintf("expected %d pods on %s, found %d", want, node, found)
}
