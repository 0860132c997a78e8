package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
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
	brokenSet   = "the node's free GPUs are not connected the way the pod requires"
	noSuchSet   = "the node's GPUs are not connected the way the pod requires"
	linksUntold = "nobody says how the node's GPUs are connected"
	splitByNuma = "the node's free GPUs lie in different NUMA nodes"
)

// connected asks n whole cards that all have NVLink to one another.
func connected(n int) Ask { return WholeCards(n).With(topologyKey, "required") }

// cardsOf are the indices of a pod's cards, ascending.
func (s *Scenario) cardsOf(pod *corev1.Pod) []int {
	s.Helper()
	var cards []int
	for _, device := range s.devicesOf(pod) {
		if device.Index == nil {
			s.Fatalf("expected pod %s to know its cards, found %+v", pod.Name, device)
		}
		cards = append(cards, *device.Index)
	}
	slices.Sort(cards)
	return cards
}

func (s *Scenario) expectCards(name string, expected ...int) {
	s.Helper()
	if found := s.cardsOf(s.running(name, soon)); !slices.Equal(found, expected) {
		s.Errorf("expected pod %s on the cards %v, found %v", name, expected, found)
	}
}

// verdict is what Tranche's explanation of a pod says of a node.
type verdict struct {
	Name   string `json:"name"`
	Fits   bool   `json:"fits"`
	Detail string `json:"detail"`
	Reason *struct {
		Code string `json:"code"`
	} `json:"reason"`
}

// refusedBy waits until the explanation of the pod gives the node the reason, and returns its detail.
func (s *Scenario) refusedBy(node, name, code string) string {
	s.Helper()
	detail := ""
	s.eventually(soon, func() string {
		text := s.ask("/api/v1/explain/" + s.namespace + "/" + name)
		var explanation struct {
			Nodes []verdict `json:"nodes"`
		}
		s.must(json.Unmarshal([]byte(text), &explanation))
		for _, verdict := range explanation.Nodes {
			if verdict.Name == node && !verdict.Fits && verdict.Reason != nil && verdict.Reason.Code == code {
				detail = verdict.Detail
				return ""
			}
		}
		return fmt.Sprintf("expected %s to be refused by %s because of %s, found %s", name, node, code, text)
	})
	return detail
}

func TestFourGpuPodsGetTheHalvesOfACubeMesh(t *testing.T) {
	for _, row := range []struct {
		node      TestNode
		knowledge string
	}{{CubeMeshHami("halves-hami"), "exact"}, {CubeMeshStock("halves-stock"), "predicted"}} {
		t.Run(row.knowledge, func(t *testing.T) {
			s := newScenario(t, row.node.Spec.Name, row.node)
			var found []string
			for _, name := range []string{"one", "other"} {
				s.create(name, "", WholeCards(4))
				pod := s.running(name, soon)
				found = append(found, fmt.Sprint(s.cardsOf(pod)))
				if allocation, err := AllocationOf(pod); err != nil || allocation.Knowledge != row.knowledge {
					t.Errorf("expected knowledge %s, found %+v, %v", row.knowledge, allocation, err)
				}
			}
			slices.Sort(found)
			if expected := []string{"[0 1 2 3]", "[4 5 6 7]"}; !slices.Equal(found, expected) {
				t.Errorf("expected the halves %v, found %v", expected, found)
			}
			s.audit()
		})
	}
}

// Whatever comes first, small pods share one half and leave the other whole.
func TestSmallPodsLeaveHalfOfACubeMeshWhole(t *testing.T) {
	for _, row := range []struct {
		name string
		asks []int
	}{{"singles", []int{1, 1}}, {"pair", []int{2}}, {"mixed", []int{1, 2, 1}}, {"three", []int{3, 1}}} {
		t.Run(row.name, func(t *testing.T) {
			s := newScenario(t, "small-"+row.name, CubeMeshHami("small-"+row.name))
			for i, gpus := range row.asks {
				name := fmt.Sprint("small-", i)
				s.create(name, "", WholeCards(gpus))
				s.running(name, soon)
			}
			s.create("half", "", connected(4))
			if cards := s.cardsOf(s.running("half", soon)); cards[3]-cards[0] != 3 || cards[0]%4 != 0 {
				t.Errorf("expected one half of the mesh, found the cards %v", cards)
			}
			s.audit()
		})
	}
}

func TestRequiredLinksAreWaitedFor(t *testing.T) {
	s := newScenario(t, "broken", CubeMeshHami("broken-0"))
	taken := []int{1, 6} // one of each half
	for _, card := range taken {
		name := fmt.Sprint("holds-", card)
		s.create(name, "", WholeCards(1).With("nvidia.com/use-gpuuuid", cardUUID("broken-0", card)))
		s.expectCards(name, card)
	}
	s.create("job", "", connected(4))
	s.waits("job", brokenSet, 3*time.Second)
	detail := s.refusedBy("broken-0", "job", "BrokenSet")
	link := missingLink.FindStringSubmatch(detail)
	if link == nil {
		t.Fatalf("expected the explanation to name the missing link, found %q", detail)
	}
	left, _ := strconv.Atoi(link[2])
	right, _ := strconv.Atoi(link[3])
	if link[1] != "SYS" || cubeMeshLink(left, right) != "SYS" || slices.Contains(taken, left) ||
		slices.Contains(taken, right) {
		t.Errorf("expected two free GPUs with no NVLink between them, found %q", detail)
	}

	// Those who only prefer links take what there is.
	s.create("modest", "", WholeCards(4).With(topologyKey, "preferred"))
	s.running("modest", soon)
	s.audit()
	s.delete("modest", 0)
	s.waits("job", "", time.Second)

	s.delete("holds-1", 0)
	s.expectCards("job", 0, 1, 2, 3)
	s.audit()
}

var missingLink = regexp.MustCompile(`found (\w+) between GPU(\d) and GPU(\d)`)

// Eight GPUs of a cube mesh are not all connected; of the other node's links nobody tells, though
// its product is one that usually has them.
func TestLinksThatCannotBeAreNotPromised(t *testing.T) {
	s := newScenario(t, "never", CubeMeshHami("never-cube"), StockNode("never-untold", 8))
	s.create("eight", "hami", connected(8))
	s.create("untold", "stock", connected(8))
	s.waits("eight", noSuchSet, 0)
	s.waits("untold", linksUntold, 3*time.Second)
	s.waits("eight", noSuchSet, 0)
	s.refusedBy("never-cube", "eight", "NoSuchSet")
	s.refusedBy("never-untold", "untold", "TopologyUnknown")

	s.create("single", "stock", connected(1)) // has no pair to connect
	s.running("single", soon)
	s.create("any", "hami", WholeCards(8))
	s.running("any", soon)
	s.audit()
}

func TestTheNumaManagerAnswersAsTheKubelet(t *testing.T) {
	pod := func(uid types.UID, gpus int) *corev1.Pod {
		pod := WholeCards(gpus).Pod(string(uid), nil)
		pod.UID = uid
		return pod
	}
	manager := NewNumaManager(3, 5)
	for _, step := range []struct {
		uid      types.UID
		gpus     int
		ends     types.UID
		admitted bool
		free     []int
	}{
		{"six", 6, "", false, []int{3, 5}},
		{"a", 2, "", true, []int{1, 5}},
		{"b", 2, "", true, []int{1, 3}}, // the first that has enough
		{"a", 2, "", true, []int{1, 3}},
		{"c", 4, "", false, []int{1, 3}}, // though four are free
		{"d", 1, "", true, []int{0, 3}},
		{"e", 4, "b", true, []int{0, 1}},
		{"b", 2, "", true, []int{0, 1}}, // seen late
	} {
		if step.ends != "" {
			manager.End(step.ends)
		}
		admitted := manager.Admit(pod(step.uid, step.gpus))
		if free := manager.Free(); admitted != step.admitted || !slices.Equal(free, step.free) {
			t.Errorf("pod %s of %d GPUs: expected admitted %v and free %v, found %v and %v", step.uid, step.gpus,
				step.admitted, step.free, admitted, free)
		}
	}
}

// numaNodes are nodes whose kubelets put all GPUs of a pod into one NUMA node, and tell so.
type numaNodes struct {
	*Scenario
	managers map[string]*NumaManager
}

// newNumaNodes returns when Tranche knows of the nodes' zones. Each has 3 + 5 GPUs.
func newNumaNodes(t *testing.T, namespace string, nodes ...TestNode) *numaNodes {
	t.Helper()
	n := &numaNodes{newScenario(t, namespace), map[string]*NumaManager{}}
	for _, node := range nodes {
		name := node.Spec.Name
		n.managers[name] = NewNumaManager(3, 5)
		kubelets.Align(name, n.managers[name])
		n.publish(name)
		n.Cleanup(func() {
			if err := RESTOf(n.Client).Delete().AbsPath(zonesPath, name).Do(n.ctx()).Error(); err != nil {
				n.Error(err)
			}
		})
		n.addNode(node)
	}
	for _, node := range nodes {
		n.eventually(planLag, func() string { return n.missingZones(node.Spec.Name) })
	}
	return n
}

func (n *numaNodes) publish(node string) {
	n.Helper()
	n.must(n.managers[node].Publish(n.ctx(), n.Client, node))
}

// export publishes what the kubelets have given out, some time after each change, until the context
// ends.
func (n *numaNodes) export(ctx context.Context, lag time.Duration) {
	for ; ctx.Err() == nil; time.Sleep(lag) {
		for name, manager := range n.managers {
			if err := manager.Publish(ctx, n.Client, name); err != nil && ctx.Err() == nil {
				n.Error(err)
			}
		}
	}
}

// Six GPUs fit a node until it is known that no NUMA node of it has as many.
func (n *numaNodes) missingZones(node string) string {
	n.Helper()
	pod := WholeCards(6).Pod("six", map[string]string{"kubernetes.io/hostname": node})
	pod.Namespace = n.namespace
	body, err := json.Marshal(map[string]any{"pods": []*corev1.Pod{pod}})
	n.must(err)
	answer, err := http.Post(n.TrancheURL+"/api/v1/whatif", "application/json", bytes.NewReader(body))
	n.must(err)
	defer answer.Body.Close()
	var result struct {
		Pods []struct {
			Fits   bool `json:"fits"`
			Reason struct {
				Code string `json:"code"`
			} `json:"reason"`
		} `json:"pods"`
	}
	n.must(json.NewDecoder(answer.Body).Decode(&result))
	if len(result.Pods) != 1 || result.Pods[0].Fits || result.Pods[0].Reason.Code != "NumaMismatch" {
		return fmt.Sprintf("expected 6 GPUs not to fit into one NUMA node of %s, found %+v", node, result)
	}
	return ""
}

// ended does what the kubelet does when the containers of a running pod have ended.
func (n *numaNodes) ended(pod *corev1.Pod) {
	n.Helper()
	n.managers[pod.Spec.NodeName].End(pod.UID)
	_, err := n.Client.CoreV1().Pods(n.namespace).Patch(n.ctx(), pod.Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	n.must(err)
}

// SplitNode has 8 L40S, of which NUMA node 0 has three.
func splitNode(name string) TestNode {
	node := stockNode(name, "NVIDIA-L40S", l40sMib, 8)
	node.Object.Labels[corev1.LabelHostname] = name
	return node
}

// splitMatrix is what nvidia-smi prints there.
func splitMatrix() string {
	var text strings.Builder
	for gpu := range 8 {
		fmt.Fprintf(&text, "\tGPU%d", gpu)
	}
	text.WriteString("\tCPU Affinity\tNUMA Affinity\n")
	zone := func(gpu int) int { return min(gpu/3, 1) }
	for row := range 8 {
		fmt.Fprintf(&text, "GPU%d", row)
		for column := range 8 {
			switch {
			case row == column:
				text.WriteString("\t X ")
			case zone(row) == zone(column):
				text.WriteString("\tNODE")
			default:
				text.WriteString("\tSYS")
			}
		}
		fmt.Fprintf(&text, "\t%d-%d\t%d\n", 48*zone(row), 48*zone(row)+47, zone(row))
	}
	return text.String()
}

// place runs pods of so many GPUs one after the other.
func (n *numaNodes) place(gpus map[string]int, names ...string) {
	n.Helper()
	for _, name := range names {
		n.create(name, "", WholeCards(gpus[name]))
		n.running(name, soon)
	}
}

// Where GPUs are free is seen in the exporter's object alone, which is long after the pod has ended.
func TestAPodWaitsForRoomInOneNumaNode(t *testing.T) {
	n := newNumaNodes(t, "numa", splitNode("numa-0"))
	n.place(map[string]int{"first": 2, "second": 2}, "first", "second") // one in each NUMA node: 1 + 3 are left
	n.publish("numa-0")
	n.create("four", "", WholeCards(4))
	n.waits("four", splitByNuma, 3*time.Second)
	n.place(map[string]int{"three": 3}, "three")
	n.publish("numa-0")
	n.ended(n.get("second"))
	n.ended(n.get("three"))
	time.Sleep(4 * time.Second)
	n.publish("numa-0")
	n.running("four", soon)
	n.audit()
}

// The exporter shows the four GPUs that were free in NUMA node 1 before a pod took two of them; that
// three were given back in NUMA node 0 meanwhile must not hide it.
func TestWhatTheExporterHasNotShownYetIsNotFree(t *testing.T) {
	n := newNumaNodes(t, "unshown", splitNode("unshown-0"))
	gpus := map[string]int{"three": 3, "one": 1, "two": 2}
	n.place(gpus, "three", "one")
	n.publish("unshown-0")
	n.place(gpus, "two")
	n.ended(n.get("three"))
	n.create("four", "", WholeCards(4))
	n.waits("four", splitByNuma, 3*time.Second)
	n.publish("unshown-0")
	n.waits("four", splitByNuma, 3*time.Second)
	n.ended(n.get("two"))
	n.publish("unshown-0")
	n.running("four", soon)
	n.audit()
}

// The exporter is late, as it is in life, and the kubelets take pods in any order.
func TestNoPodIsSentToAKubeletThatRefusesIt(t *testing.T) {
	const pods, most = 60, 6 // at all; pending at a time
	told := splitNode("stream-told")
	told.Object.Annotations[topologyKey] = splitMatrix()
	n := newNumaNodes(t, "stream", splitNode("stream-0"), splitNode("stream-1"), told)
	ctx, cancel := context.WithCancel(n.ctx())
	exported := make(chan struct{})
	go func() {
		defer close(exported)
		n.export(ctx, 700*time.Millisecond)
	}()
	defer func() {
		cancel()
		<-exported
	}()

	random := rand.New(rand.NewPCG(seedOf(t), 0))
	ends := map[types.UID]time.Time{}
	created := 0
	n.eventually(100*time.Second, func() string {
		pending, done, waiting := 0, 0, ""
		for _, pod := range n.list() {
			switch pod.Status.Phase {
			case corev1.PodFailed:
				n.Fatalf("expected no pod to be refused, found %s of %d GPUs %s on %s:\n%s", pod.Name, gpusOf(&pod),
					pod.Status.Reason, pod.Spec.NodeName, n.managers[pod.Spec.NodeName].History())
			case corev1.PodPending:
				pending++
				waiting += fmt.Sprintf("\n%s of %d GPUs, %s", pod.Name, gpusOf(&pod), describe(&pod))
			case corev1.PodSucceeded:
				done++
			case corev1.PodRunning:
				end, known := ends[pod.UID]
				if !known {
					ends[pod.UID] = time.Now().Add(time.Duration(300+random.IntN(2500)) * time.Millisecond)
				} else if time.Now().After(end) {
					n.ended(&pod)
				}
			}
		}
		for ; created < pods && pending < most; created, pending = created+1, pending+1 {
			n.create(fmt.Sprint("job-", created), "", WholeCards(1+random.IntN(5)))
		}
		if done < pods {
			return fmt.Sprintf("expected %d pods to run to their end, found %d:%s", pods, done, waiting)
		}
		return ""
	})
}

// seedOf is TRANCHE_SEED or of the time, and told.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("TRANCHE_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("TRANCHE_SEED=%d", seed)
	return seed
}
