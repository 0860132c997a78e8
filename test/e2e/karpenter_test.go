package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	oneGPU    = "h100.1"
	eightGPUs = "h100.8"
	migGPU    = "h100mig.1"
	hamiGPU   = "h100hami.1"
	sparedKey = "karpenter.sh/do-not-disrupt"

	// Karpenter looks at emptied nodes every ten seconds, and again fifteen seconds later.
	emptiedLag = 2 * time.Minute
)

// Eight GPUs in one machine cost less than in eight.
var machines = []MachineType{
	{oneGPU, 10, func(name string) TestNode { return StockNode(name, 1) }},
	{eightGPUs, 60, func(name string) TestNode { return StockNode(name, 8) }},
	{hamiGPU, 11, func(name string) TestNode { return hamiNode(name, "NVIDIA-H100-80GB-HBM3", h100Mib, 1) }},
	{migGPU, 12, func(name string) TestNode { return MigNode(name, 1, map[string]int{"1g.10gb": 7}) }},
}

// tenant is a namespace whose pods run on machines of a pool of their own, which has its name.
type tenant struct {
	*Scenario
	karpenter *Karpenter
}

// besideKarpenter is a cluster without nodes, in which Karpenter rents what pods wait for.
func besideKarpenter(t *testing.T) *tenant {
	t.Helper()
	programs := os.Getenv("KARPENTER_BIN")
	if programs == "" {
		t.Skip("needs Karpenter: set KARPENTER_BIN to what controlplane/build.sh karpenter prints")
	}
	s := ownCluster(t, "nobody", nil)
	RunKubelet(t.Context(), s.Client)
	s.spareGangs()
	started := time.Now()
	karpenter, err := s.StartKarpenter(t.Context(), programs, machines)
	s.must(err)
	t.Logf("Karpenter was ready after %v", time.Since(started).Round(time.Millisecond))
	return &tenant{s, karpenter}
}

// spareGangs has the webhook tell autoscalers to leave gangs alone, and move HAMi's amounts into an annotation,
// as the chart's webhook.spare and webhook.hamiLimits do. HAMi's agents are played by who runs the scenario.
func (s *Scenario) spareGangs() {
	s.Helper()
	file := filepath.Join(s.dir, "tranche.yaml")
	text, err := os.ReadFile(file)
	s.must(err)
	s.must(os.WriteFile(file, []byte(strings.NewReplacer("gates: true",
		"gates: true, spare: Gangs, hamiLimits: Annotation", "trustedUsers: [", "trustedUsers: [admin, ").Replace(string(text))), 0o600))
	s.Tranche.Stop(15 * time.Second)
	s.must(s.Tranche.Start())
	s.must(s.WaitTrancheReady(s.ctx(), soon))
}

// rents makes a namespace and a pool that may rent such machines, which are there `delay` after they are
// asked for. The pool says which GPUs its machines have: else a node is of no model until GPU feature
// discovery has labelled it, and no line of a quota is about it.
func (c *tenant) rents(t *testing.T, name, delay string, types ...string) *tenant {
	t.Helper()
	s := c.neighbour(name)
	s.T, s.fleet, s.nodes = t, name, nil
	now := int64(0)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of Karpenter's log:\n%s", c.karpenter.LogTail(60))
		}
		s.must(s.Client.CoreV1().Pods(name).DeleteCollection(s.ctx(), metav1.DeleteOptions{GracePeriodSeconds: &now},
			metav1.ListOptions{}))
	})
	s.declare(fmt.Sprintf("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: %s}, "+
		"spec: {nodeRegistrationDelay: %s}}", name, delay))
	s.declare(fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    metadata: {labels: {%[2]s: %[1]s, nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: %[1]s}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [%[3]s]}]
      startupTaints: [{key: %[4]s, effect: NoSchedule}]
      expireAfter: Never
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5s, budgets: [{nodes: "100%%"}]}
`, name, fleetKey, strings.Join(types, ", "), joiningTaint))
	return &tenant{s, c.karpenter}
}

// declare creates an object, of whatever API.
func (s *Scenario) declare(text string) {
	s.Helper()
	object, err := ReadObject([]byte(text))
	s.must(err)
	s.must(CreateObject(s.ctx(), s.Client, object, false))
}

// nodeClaim is as much of Karpenter's object as the scenarios read: a machine that it rents.
type nodeClaim struct {
	Metadata metav1.ObjectMeta
	Status   struct {
		NodeName   string
		Conditions []metav1.Condition
	}
}

func (n nodeClaim) has(condition string) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(one metav1.Condition) bool {
		return one.Type == condition && one.Status == metav1.ConditionTrue
	})
}

// claims are the machines of the tenant's pool that are rented now.
func (s *tenant) claims() []nodeClaim {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath("/apis/karpenter.sh/v1/nodeclaims").
		Param("labelSelector", poolKey+"="+s.fleet).Do(s.ctx()).Raw()
	s.must(err)
	var list struct{ Items []nodeClaim }
	s.must(json.Unmarshal(text, &list))
	return list.Items
}

// everRented is how many machines Karpenter has rented for the tenant's pool, by its own count.
func (s *tenant) everRented() int {
	s.Helper()
	answer, err := http.Get(s.karpenter.metricsURL)
	s.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	s.must(err)
	sum := 0.0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "karpenter_nodeclaims_created_total{") &&
			strings.Contains(line, fmt.Sprintf("nodepool=%q", s.fleet)) {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			s.must(err)
			sum += value
		}
	}
	return int(sum)
}

func (s *tenant) missingRented(ready bool, types []string) string {
	s.Helper()
	var found []string
	for _, claim := range s.claims() {
		found = append(found, claim.Metadata.Labels[corev1.LabelInstanceTypeStable])
		if ready && !claim.has("Initialized") {
			return fmt.Sprintf("expected machine %s initialised, found %+v", claim.Metadata.Name, claim.Status)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, types) {
		return fmt.Sprintf("expected machines %q, found %q", types, found)
	}
	return ""
}

// hasRented waits until just these machines are rented and ready, and sees that no other is, nor was, of all
// that were ever rented.
func (s *tenant) hasRented(ever int, types ...string) {
	s.Helper()
	s.eventually(planLag, func() string { return s.missingRented(true, types) })
	s.holds(6*time.Second, func() string {
		if found := s.everRented(); found != ever {
			return fmt.Sprintf("expected %d machines ever rented, found %d", ever, found)
		}
		return s.missingRented(true, types)
	})
	s.learnMachines()
}

// learnMachines has an audit look at the machines that are rented now, too.
func (s *tenant) learnMachines() {
	s.Helper()
	for _, claim := range s.claims() {
		name := claim.Status.NodeName
		known := slices.ContainsFunc(s.nodes, func(node NodeSpec) bool { return node.Name == name })
		for _, machine := range s.karpenter.types {
			if !known && machine.Name == claim.Metadata.Labels[corev1.LabelInstanceTypeStable] {
				s.nodes = append(s.nodes, machine.Node(name).Spec)
			}
		}
	}
}

// runsThere waits for the pod on a machine of the pool, and returns the machine's node and the devices.
func (s *tenant) runsThere(name string) (string, []Device) {
	s.Helper()
	pod := s.running(name, planLag)
	node, err := s.Client.CoreV1().Nodes().Get(s.ctx(), pod.Spec.NodeName, metav1.GetOptions{})
	s.must(err)
	if node.Labels[poolKey] != s.fleet {
		s.Errorf("expected %s on a machine of pool %s, found it on %s with labels %v", name, s.fleet, node.Name, node.Labels)
	}
	return node.Name, s.devicesOf(pod)
}

// Machines are rented for what pods wait for, once, and given back when they are empty.
func TestKarpenterRentsWhatTranchePlaces(t *testing.T) {
	c := besideKarpenter(t)
	t.Run("a MIG slice", func(t *testing.T) { c.rentsMig(t) })
	t.Run("half a GPU", func(t *testing.T) { c.rentsHalf(t) })
	t.Run("a share of HAMi's", func(t *testing.T) { c.rentsHami(t) })
	t.Run("a gang", func(t *testing.T) { c.rentsForGang(t) })
	t.Run("a flood without quota", func(t *testing.T) { c.rentsNothing(t) })
	t.Run("a gang that stays", func(t *testing.T) { c.sparesGang(t) })
	t.Run("victims", func(t *testing.T) { c.sparesVictims(t) })
}

func (c *tenant) rentsMig(t *testing.T) {
	s := c.rents(t, "slices", "2s", oneGPU, eightGPUs, migGPU)
	s.create("slice", "", MigInstance("1g.10gb"))
	node, devices := s.runsThere("slice")
	s.hasRented(1, migGPU)
	s.create("next", "", MigInstance("1g.10gb"))
	if next, _ := s.runsThere("next"); next != node {
		t.Errorf("expected the second slice on %s, which has six more, found it on %s", node, next)
	}
	if len(devices) != 1 || devices[0].Mig == nil || devices[0].Mig.Profile != "1g.10gb" {
		t.Errorf("expected one instance of 1g.10gb recorded, found %+v", devices)
	}
	s.hasRented(1, migGPU)
	s.audit()
}

func (c *tenant) rentsHalf(t *testing.T) {
	s := c.rents(t, "halves", "2s", oneGPU, eightGPUs)
	s.apply("GPUPolicy", "halves", "spec: {sharing: {unenforced: Allow}, selector: {namespaces: "+
		"{matchLabels: {tranche.dev/schedule: \"true\"}}}}")
	s.withWebhook()
	s.made(s.gpuPod("half", "0.5"))
	node, devices := s.runsThere("half")
	if len(devices) != 1 || devices[0].Milli != 500 {
		t.Errorf("expected half a GPU recorded, found %+v", devices)
	}
	s.hasRented(1, oneGPU)
	s.made(s.gpuPod("other", "0.5"))
	if other, _ := s.runsThere("other"); other != node {
		t.Errorf("expected the other half of the GPU of %s, found %s", node, other)
	}
	s.hasRented(1, oneGPU)
	s.audit()
}

// Of HAMi's amounts Karpenter knows no machine that has them; of a pod whose amounts stand in an annotation it
// sees one nvidia.com/gpu.
func (c *tenant) rentsHami(t *testing.T) {
	s := c.rents(t, "shares", "2s", hamiGPU, eightGPUs)
	s.create("unseen", "", HamiShare(30000, 30))
	s.holds(12*time.Second, func() string { return s.missingRented(false, nil) })
	s.withWebhook()
	share := func(name string) *corev1.Pod {
		return s.made(HamiShare(30000, 30).Pod(name, map[string]string{fleetKey: s.fleet}))
	}
	first := share("first")
	want := `{"main":{"nvidia.com/gpucores":"30","nvidia.com/gpumem":"30k"}}`
	if found := first.Annotations["tranche.dev/hami-limits"]; found != want {
		t.Errorf("expected annotation %s, found %s", want, found)
	}
	node, devices := s.runsThere("first")
	if len(devices) != 1 || devices[0].Milli != 300 {
		t.Errorf("expected three tenths of a GPU recorded, found %+v", devices)
	}
	s.hasRented(1, hamiGPU)
	// There is room for the one that Karpenter did not see, and for no third.
	if unseen, _ := s.runsThere("unseen"); unseen != node {
		t.Errorf("expected the share in the pod's resources on %s, found it on %s", node, unseen)
	}
	// Karpenter counts the ten that may share the card.
	share("second")
	s.waits("second", "", 3*time.Second)
	s.audit()
}

func (c *tenant) rentsForGang(t *testing.T) {
	s := c.rents(t, "gang", "2s", oneGPU, eightGPUs)
	s.karpenter.JoinAtMost("gang", 3)
	s.createAtOnce(s.crew("crew", WholeCards(8), 4))
	s.eventually(planLag, func() string {
		joined := 0
		for _, claim := range s.claims() {
			if claim.has("Initialized") {
				joined++
			}
		}
		if joined != 3 {
			return fmt.Sprintf("expected three machines that have joined, found %d", joined)
		}
		return s.missingRented(false, []string{eightGPUs, eightGPUs, eightGPUs, eightGPUs})
	})
	// Longer than an empty machine is kept for which nobody waits.
	s.holds(45*time.Second, func() string {
		if nodes := s.nodesOf("crew"); len(nodes) > 0 {
			return fmt.Sprintf("expected no pod of the gang bound before all have a machine, found some on %q", nodes)
		}
		return s.missingRented(false, []string{eightGPUs, eightGPUs, eightGPUs, eightGPUs})
	})
	s.karpenter.JoinAtMost("gang", 4)
	nodes := map[string]bool{}
	for i := range 4 {
		node, devices := s.runsThere(fmt.Sprint("crew-", i))
		nodes[node] = true
		if len(devices) != 8 {
			t.Errorf("expected eight GPUs recorded for crew-%d, found %+v", i, devices)
		}
	}
	if len(nodes) != 4 {
		t.Errorf("expected the gang on four machines, found it on %v", nodes)
	}
	s.hasRented(4, eightGPUs, eightGPUs, eightGPUs, eightGPUs)
	s.audit()

	s.endGang("crew", 4)
	s.eventually(emptiedLag, func() string { return s.missingRented(false, nil) })
	s.eventually(soon, func() string {
		left, err := s.Client.CoreV1().Nodes().List(s.ctx(), metav1.ListOptions{LabelSelector: poolKey + "=" + s.fleet})
		s.must(err)
		if len(left.Items) > 0 {
			return fmt.Sprintf("expected the emptied machines given back, found %d nodes", len(left.Items))
		}
		return ""
	})
}

// Pods that wait for a quota are gated, and Karpenter does not look at them.
func (c *tenant) rentsNothing(t *testing.T) {
	const flood = 200
	s := c.rents(t, "flood", "2s", oneGPU, eightGPUs)
	s.labelNamespace("team", s.namespace)
	quota := func(gpus int) {
		s.apply("GPUQuota", s.namespace, fmt.Sprintf("spec: {namespaceSelector: {matchLabels: {team: %s}}, "+
			"lines: [{model: h100, nominal: {gpus: %d}}]}", s.namespace, gpus))
	}
	quota(1)
	s.eventually(statusLag, func() string { return s.missingReady(quotaPath, s.namespace, "True") })
	s.withWebhook()
	s.made(s.gpuPod("first", "1"))
	s.runsThere("first")
	s.hasRented(1, oneGPU)
	s.must(several(flood, func(i int) error {
		_, err := s.try(s.gpuPod(fmt.Sprintf("late-%03d", i), "1"))
		return err
	}))
	s.explains("late-199", "WaitingForQuota")
	s.hasRented(1, oneGPU)
	s.eventually(soon, func() string {
		for _, pod := range s.list() {
			if pod.Name != "first" && gatesOf(&pod) != quotaGate {
				return fmt.Sprintf("expected %s gated, found %q, %s", pod.Name, gatesOf(&pod), describe(&pod))
			}
		}
		return ""
	})

	// Of the flood eight pods have quota now, and machines are rented for no more.
	quota(9)
	s.eventually(planLag, func() string {
		bound := 0
		for _, pod := range s.list() {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		if bound != 9 {
			return fmt.Sprintf("expected 9 pods bound, found %d", bound)
		}
		return ""
	})
	gpus := 0
	for _, claim := range s.claims() {
		gpus += map[string]int{oneGPU: 1, eightGPUs: 8}[claim.Metadata.Labels[corev1.LabelInstanceTypeStable]]
	}
	if gpus < 9 || gpus > 16 {
		t.Errorf("expected machines for nine GPUs, found %d GPUs in %d machines", gpus, len(s.claims()))
	}
	s.learnMachines()
	s.audit()
}

// Machines that are mostly idle are given back and their pods evicted, unless a gang runs there.
func (c *tenant) sparesGang(t *testing.T) {
	s := c.rents(t, "crews", "2s", eightGPUs)
	fillers := []string{"filler-0", "filler-1", "filler-2"}
	for _, name := range fillers {
		s.create(name, "", WholeCards(7))
	}
	for _, name := range fillers {
		s.runsThere(name)
	}
	s.hasRented(3, eightGPUs, eightGPUs, eightGPUs)
	s.withWebhook()
	for _, pod := range s.crew("crew", WholeCards(1), 2) {
		s.made(pod)
	}
	spared := map[string]types.UID{}
	for _, name := range []string{"crew-0", "crew-1"} {
		s.runsThere(name)
		pod := s.get(name)
		spared[name] = pod.UID
		if pod.Annotations[sparedKey] != "true" {
			t.Errorf("expected annotation %s on %s, found %v", sparedKey, name, pod.Annotations)
		}
	}
	s.made(s.gpuPod("plain", "1"))
	s.runsThere("plain")
	for _, name := range fillers {
		s.delete(name, 0)
	}

	// Each machine runs one GPU of eight now, and any of them has room for the others' pods.
	s.eventually(emptiedLag, func() string {
		if plain := s.get("plain"); plain != nil {
			return "expected plain evicted from a machine that is mostly idle, found " + describe(plain)
		}
		return s.missingRented(false, []string{eightGPUs, eightGPUs})
	})
	s.holds(30*time.Second, func() string {
		for name, uid := range spared {
			if pod := s.get(name); pod == nil || pod.UID != uid || pod.DeletionTimestamp != nil {
				return fmt.Sprintf("expected %s spared, found %s", name, describe(pod))
			}
		}
		return s.missingRented(true, []string{eightGPUs, eightGPUs})
	})
	s.audit()
}

// Nobody goes for a pod whose machine is on its way; where it does not come, the victims go after all.
func (c *tenant) sparesVictims(t *testing.T) {
	const wait = 20 * time.Second
	s := c.rents(t, "victims", "10s", eightGPUs)
	s.declareClasses("victims")
	s.eventually(planLag, func() string { return s.missingClasses("victims") })
	s.apply("GPUPolicy", "victims", fmt.Sprintf("spec: {preemption: {waitForNodes: %s}}", wait))
	s.submit("low", notebook, WholeCards(8))
	first, _ := s.runsThere("low")
	s.hasRented(1, eightGPUs)

	s.submit("comes", training, WholeCards(8))
	s.explains("comes", "NodeExpected")
	if second, _ := s.runsThere("comes"); second == first {
		t.Errorf("expected comes on the machine that was rented for it, found it on %s", second)
	}
	s.onlyLeave()
	s.hasRented(2, eightGPUs, eightGPUs)

	// The cloud takes the order, and the machine never joins.
	s.must(RESTOf(s.Client).Patch(types.MergePatchType).
		AbsPath("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", s.fleet).
		Body([]byte(`{"spec":{"nodeRegistrationDelay":"1h"}}`)).Do(s.ctx()).Error())
	asked := time.Now()
	s.submit("fails", training, WholeCards(8))
	s.explains("fails", "NodeExpected")
	s.eventually(planLag, func() string { return s.missingRented(false, []string{eightGPUs, eightGPUs, eightGPUs}) })
	s.eventually(2*planLag, func() string { return s.missingLeaving([]string{"low"}) })
	spared := time.Since(asked)
	t.Logf("low was spared for %v", spared.Round(time.Millisecond))
	if spared < wait || spared > wait+30*time.Second {
		t.Errorf("expected low to be evicted %s after the machine was asked for, found %s", wait, spared)
	}
	s.onlyLeave("low")
	s.stopped("low")
	if node, _ := s.runsThere("fails"); node != first {
		t.Errorf("expected fails on %s, which low has left, found it on %s", first, node)
	}
	s.audit()
}
