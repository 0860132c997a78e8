package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	fleetKey = "e2e.tranche.dev/fleet" // pods select the nodes of their own scenario
	kindKey  = "e2e.tranche.dev/kind"

	h100Mib = 81559 // label nvidia.com/gpu.memory of an H100 80GB
	a100Mib = 81920 // label nvidia.com/gpu.memory of an A100 80GB
)

// TestNode is a Node object and what it stands for.
type TestNode struct {
	Spec   NodeSpec
	Object *corev1.Node
}

func newNode(name, kind string, spec NodeSpec, labels map[string]string, gpus map[string]int) TestNode {
	spec.Name = name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{kindKey: kind}, Annotations: map[string]string{}}}
	maps.Copy(node.Labels, labels)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("192"),
		corev1.ResourceMemory: resource.MustParse("2Ti"),
		corev1.ResourcePods:   resource.MustParse("250"),
	}
	for key, count := range gpus {
		resources[corev1.ResourceName(key)] = *resource.NewQuantity(int64(count), resource.DecimalSI)
	}
	node.Status = corev1.NodeStatus{Capacity: resources, Allocatable: resources,
		Conditions: []corev1.NodeCondition{readiness(corev1.ConditionTrue)}}
	return TestNode{Spec: spec, Object: node}
}

func readiness(status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: "Test",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
}

func gfdLabels(product string, mib, cards int) map[string]string {
	return map[string]string{
		"nvidia.com/gpu.present":          "true",
		"nvidia.com/gpu.product":          product,
		"nvidia.com/gpu.memory":           fmt.Sprint(mib),
		"nvidia.com/gpu.count":            fmt.Sprint(cards),
		"nvidia.com/gpu.replicas":         "1",
		"nvidia.com/gpu.sharing-strategy": "none",
		"nvidia.com/mig.strategy":         "mixed",
	}
}

// StockNode has H100 cards and NVIDIA's own device plugin.
func StockNode(name string, cards int) TestNode {
	return stockNode(name, "NVIDIA-H100-80GB-HBM3", h100Mib, cards)
}

func stockNode(name, product string, mib, cards int) TestNode {
	return newNode(name, "stock", NodeSpec{Cards: cards, CardMib: int64(mib)}, gfdLabels(product, mib, cards),
		map[string]int{"nvidia.com/gpu": cards})
}

// SharedNode time-slices each H100 card into replicas under a name of their own.
func SharedNode(name string, cards, replicas int) TestNode {
	labels := gfdLabels("NVIDIA-H100-80GB-HBM3", h100Mib, cards)
	labels["nvidia.com/gpu.replicas"] = fmt.Sprint(replicas)
	labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
	return newNode(name, "shared", NodeSpec{Cards: cards, CardMib: h100Mib}, labels,
		map[string]int{"nvidia.com/gpu.shared": cards * replicas})
}

// MigNode has H100 cards that are all cut alike; perCard says how many instances of each profile.
func MigNode(name string, cards int, perCard map[string]int) TestNode {
	labels := gfdLabels("NVIDIA-H100-80GB-HBM3", h100Mib, cards)
	labels["nvidia.com/gpu.replicas"] = "0"
	resources := map[string]int{"nvidia.com/gpu": 0}
	spec := NodeSpec{Cards: cards, CardMib: h100Mib, Mig: map[string]int{}}
	for profile, count := range perCard {
		spec.Mig[profile] = count * cards
		resources["nvidia.com/mig-"+profile] = count * cards
		labels["nvidia.com/mig-"+profile+".count"] = fmt.Sprint(count * cards)
	}
	return newNode(name, "mig", spec, labels, resources)
}

// HamiNode has A100 cards under HAMi's agent.
func HamiNode(name string, cards int) TestNode {
	return hamiNode(name, "NVIDIA-A100-SXM4-80GB", a100Mib, cards)
}

// The agent's register names the cards, ten pods may share one.
func hamiNode(name, product string, mib, cards int) TestNode {
	type device struct {
		ID      string `json:"id"`
		Index   int    `json:"index,omitempty"`
		Count   int    `json:"count"`
		Devmem  int    `json:"devmem"`
		Devcore int    `json:"devcore"`
		Type    string `json:"type"`
		Numa    int    `json:"numa,omitempty"`
		Mode    string `json:"mode"`
		Health  bool   `json:"health"`
	}
	register := make([]device, 0, cards)
	for i := range cards {
		register = append(register, device{ID: cardUUID(name, i), Index: i, Count: 10, Devmem: mib,
			Devcore: 100, Type: "NVIDIA-" + strings.Replace(product, "-", " ", 1), Numa: i * 2 / cards,
			Mode: "hami-core", Health: true})
	}
	text, err := json.Marshal(register)
	if err != nil {
		panic(err) // a struct of plain fields always encodes
	}
	node := newNode(name, "hami", NodeSpec{Cards: cards, CardMib: int64(mib)},
		gfdLabels(product, mib, cards), map[string]int{"nvidia.com/gpu": cards * 10})
	node.Object.Annotations["hami.io/node-nvidia-register"] = string(text)
	return node
}

func cardUUID(node string, index int) string {
	return fmt.Sprintf("GPU-%s-%d", node, index)
}

// Ask is what a pod wants.
type Ask struct {
	Limits      map[string]int
	Annotations map[string]string
}

// With is the same ask with one annotation more.
func (a Ask) With(key, value string) Ask {
	annotations := map[string]string{key: value}
	maps.Copy(annotations, a.Annotations)
	return Ask{Limits: a.Limits, Annotations: annotations}
}

// WholeCards asks n cards in the native way.
func WholeCards(n int) Ask { return Ask{Limits: map[string]int{"nvidia.com/gpu": n}} }

// HalfCard asks half of one card by Tranche's annotation.
func HalfCard() Ask {
	return Ask{Limits: map[string]int{"nvidia.com/gpu": 1},
		Annotations: map[string]string{"tranche.dev/gpu-fraction": "0.5"}}
}

// HamiShare asks memory and, unless zero, a percentage of the cores of one card in HAMi's way.
func HamiShare(mib, cores int) Ask {
	ask := Ask{Limits: map[string]int{"nvidia.com/gpu": 1, "nvidia.com/gpumem": mib}}
	if cores > 0 {
		ask.Limits["nvidia.com/gpucores"] = cores
	}
	return ask
}

// Moved is the same ask as the webhook makes it with hamiLimits: Annotation.
func (a Ask) Moved() Ask {
	moved := map[string]string{}
	limits := map[string]int{}
	for key, amount := range a.Limits {
		if strings.HasPrefix(key, "nvidia.com/gpumem") || key == "nvidia.com/gpucores" {
			moved[key] = fmt.Sprint(amount)
		} else {
			limits[key] = amount
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"main": moved})
	if err != nil {
		panic(err) // maps of texts always encode
	}
	return Ask{Limits: limits, Annotations: a.Annotations}.With("tranche.dev/hami-limits", string(text))
}

// MigInstance asks one instance of a profile.
func MigInstance(profile string) Ask {
	return Ask{Limits: map[string]int{"nvidia.com/mig-" + profile: 1}}
}

// SharedCard asks one replica of a time-sliced card.
func SharedCard() Ask { return Ask{Limits: map[string]int{"nvidia.com/gpu.shared": 1}} }

// Pod spells an ask as a user would; it only runs on nodes with the labels of `on`.
func (a Ask) Pod(name string, on map[string]string) *corev1.Pod {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	for key, count := range a.Limits {
		limits[corev1.ResourceName(key)] = *resource.NewQuantity(int64(count), resource.DecimalSI)
	}
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: maps.Clone(a.Annotations)},
		Spec: corev1.PodSpec{
			NodeSelector:                  maps.Clone(on),
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Limits: limits},
			}},
		},
	}
}
