package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

const (
	topologyKey = "tranche.dev/topology" // of a node: its matrix; of a pod: its wish
	v100Mib     = 32768                  // label nvidia.com/gpu.memory of a V100 32GB
	l40sMib     = 46068                  // label nvidia.com/gpu.memory of an L40S

	zonesPath = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
)

// What `nvidia-smi topo -m` prints on a DGX-1V: a cube mesh of 8 GPUs. Only the GPUs of a half,
// 0 to 3 and 4 to 7, are all connected with one another.
const cubeMesh = `	GPU0	GPU1	GPU2	GPU3	GPU4	GPU5	GPU6	GPU7	mlx5_0	mlx5_2	CPU Affinity	NUMA Affinity
GPU0	 X 	NV1	NV1	NV2	NV2	SYS	SYS	SYS	PIX	SYS	0-19,40-59	0
GPU1	NV1	 X 	NV2	NV1	SYS	NV2	SYS	SYS	PIX	SYS	0-19,40-59	0
GPU2	NV1	NV2	 X 	NV2	SYS	SYS	NV1	SYS	PHB	SYS	0-19,40-59	0
GPU3	NV2	NV1	NV2	 X 	SYS	SYS	SYS	NV1	PHB	SYS	0-19,40-59	0
GPU4	NV2	SYS	SYS	SYS	 X 	NV1	NV1	NV2	SYS	PIX	20-39,60-79	1
GPU5	SYS	NV2	SYS	SYS	NV1	 X 	NV2	NV1	SYS	PIX	20-39,60-79	1
GPU6	SYS	SYS	NV1	SYS	NV1	NV2	 X 	NV2	SYS	PHB	20-39,60-79	1
GPU7	SYS	SYS	SYS	NV1	NV2	NV1	NV2	 X 	SYS	PHB	20-39,60-79	1
mlx5_0	PIX	PIX	PHB	PHB	SYS	SYS	SYS	SYS	 X 	SYS
mlx5_2	SYS	SYS	SYS	SYS	PIX	PIX	PHB	PHB	SYS	 X 

Legend:

  X    = Self
  SYS  = PCIe plus the link between NUMA nodes
  PHB  = PCIe plus one host bridge
  PIX  = at most one PCIe bridge
  NV#  = bonded set of # NVLinks
`

// cubeMeshLink is the matrix's entry of two GPUs.
func cubeMeshLink(left, right int) string {
	return strings.Split(strings.Split(cubeMesh, "\n")[left+1], "\t")[right+1]
}

// CubeMeshHami has 8 V100 in a cube mesh under HAMi's agent.
func CubeMeshHami(name string) TestNode {
	node := hamiNode(name, "Tesla-V100-SXM2-32GB", v100Mib, 8)
	node.Object.Annotations[topologyKey] = cubeMesh
	return node
}

// CubeMeshStock has 8 V100 in a cube mesh and NVIDIA's own device plugin.
func CubeMeshStock(name string) TestNode {
	node := stockNode(name, "Tesla-V100-SXM2-32GB", v100Mib, 8)
	node.Object.Annotations[topologyKey] = cubeMesh
	return node
}

// CliqueNode has 8 H100 that have joined an NVLink fabric beyond the node.
func CliqueNode(name, clique string) TestNode {
	node := StockNode(name, 8)
	node.Object.Labels["nvidia.com/gpu.clique"] = clique
	return node
}

// NumaManager is a node's kubelet under Topology Manager policy single-numa-node, as far as GPUs go:
// a pod gets all of them from the first NUMA node that has enough, or is refused. Safe for use from
// several goroutines.
type NumaManager struct {
	mutex   sync.Mutex
	gpus    []int // by NUMA node
	pods    map[types.UID]numaPod
	history []string
}

type numaPod struct {
	name       string
	zone, gpus int
}

// NewNumaManager has so many GPUs in each NUMA node.
func NewNumaManager(gpus ...int) *NumaManager {
	return &NumaManager{gpus: gpus, pods: map[types.UID]numaPod{}}
}

// Admit answers the same for a pod it has admitted already.
func (m *NumaManager) Admit(pod *corev1.Pod) bool {
	gpus := gpusOf(pod)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, known := m.pods[pod.UID]; known {
		return true
	}
	for zone, free := range m.free() {
		if free >= gpus {
			m.pods[pod.UID] = numaPod{pod.Name, zone, gpus}
			m.note("%s takes %d of NUMA node %d", pod.Name, gpus, zone)
			return true
		}
	}
	m.note("%s of %d is refused", pod.Name, gpus)
	return false
}

// End takes back the GPUs of a pod whose containers have ended. It is remembered: whoever still
// sees it pending is late.
func (m *NumaManager) End(uid types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	pod := m.pods[uid]
	m.pods[uid] = numaPod{name: pod.name}
	m.note("%s gives back %d of NUMA node %d", pod.name, pod.gpus, pod.zone)
}

// Free counts by NUMA node.
func (m *NumaManager) Free() []int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.free()
}

// History is what has happened of late, a line each.
func (m *NumaManager) History() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return strings.Join(m.history[max(0, len(m.history)-20):], "\n")
}

func (m *NumaManager) note(format string, args ...any) {
	m.history = append(m.history, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...)+
		fmt.Sprintf(", %v free", m.free()))
}

func (m *NumaManager) free() []int {
	free := append([]int(nil), m.gpus...)
	for _, pod := range m.pods {
		free[pod.zone] -= pod.gpus
	}
	return free
}

func gpusOf(pod *corev1.Pod) int {
	count := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	return int(count.Value())
}

// Publish writes what the exporter of NodeResourceTopology says of the node now.
func (m *NumaManager) Publish(ctx context.Context, client kubernetes.Interface, node string) error {
	type attribute struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type resources struct {
		Name        string `json:"name"`
		Capacity    string `json:"capacity"`
		Allocatable string `json:"allocatable"`
		Available   string `json:"available"`
	}
	type zone struct {
		Name      string      `json:"name"`
		Type      string      `json:"type"`
		Resources []resources `json:"resources"`
	}
	m.mutex.Lock()
	m.note("is exported")
	counts := m.free()
	m.mutex.Unlock()
	var zones []zone
	for i, free := range counts {
		all := fmt.Sprint(m.gpus[i])
		zones = append(zones, zone{fmt.Sprint("node-", i), "Node", []resources{
			{"cpu", "96", "96", "96"}, {"nvidia.com/gpu", all, all, fmt.Sprint(free)}}})
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
		"metadata": map[string]string{"name": node},
		"attributes": []attribute{{"topologyManagerPolicy", "single-numa-node"},
			{"topologyManagerScope", "container"}},
		"zones": zones,
	})
	if err != nil {
		return err
	}
	err = RESTOf(client).Patch(types.MergePatchType).AbsPath(zonesPath, node).Body(text).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		err = RESTOf(client).Post().AbsPath(zonesPath).Body(text).Do(ctx).Error()
	}
	return err
}

// ForeignKind is a kind of another project's custom resource.
type ForeignKind struct {
	Group, Version, Kind, Plural, Scope string
}

// Kinds Tranche reads where they are there. The PodGroups of scheduler-plugins are not.
var foreignKinds = []ForeignKind{
	{"topology.node.k8s.io", "v1alpha2", "NodeResourceTopology", "noderesourcetopologies", "Cluster"},
	{"scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", "Namespaced"},
}

// Install declares the kind, whose objects may have any fields, and returns when they can be listed.
func (k ForeignKind) Install(ctx context.Context, client kubernetes.Interface) error {
	definition, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[4]s.%[1]s
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/pull/1870"}
spec:
  group: %[1]s
  scope: %[5]s
  names: {kind: %[3]s, plural: %[4]s, listKind: %[3]sList}
  versions:
    - name: %[2]s
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.Group, k.Version, k.Kind, k.Plural, k.Scope)))
	if err != nil {
		return err
	}
	err = RESTOf(client).Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		Body(definition).Do(ctx).Error()
	if err != nil {
		return err
	}
	return waitServed(ctx, client, "/apis/"+k.Group+"/"+k.Version+"/"+k.Plural, soon)
}
