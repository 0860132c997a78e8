package e2e

import (
	"encoding/json"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
)

const allocationKey = "tranche.dev/allocation"

// Allocation is the annotation Tranche writes on a Binding, read without any code of Tranche.
type Allocation struct {
	V          int    `json:"v"`
	Epoch      int64  `json:"epoch"`
	Leaf       string `json:"leaf"`
	Knowledge  string `json:"knowledge"`
	Containers []struct {
		Name    string   `json:"name"`
		Devices []Device `json:"devices"`
	} `json:"containers"`
}

// Device is one entry of an allocation. Index is null where nobody can know the card; Slot then
// says which card of Tranche's books is meant.
type Device struct {
	Index *int    `json:"index"`
	Slot  *int    `json:"slot"`
	UUID  *string `json:"uuid"`
	Milli int64   `json:"milli"`
	Mib   int64   `json:"mib"`
	Mig   *struct {
		Profile string `json:"profile"`
		Start   int    `json:"start"`
		Size    int    `json:"size"`
	} `json:"mig"`
}

// Devices of all containers, in order.
func (a Allocation) Devices() []Device {
	var all []Device
	for _, container := range a.Containers {
		all = append(all, container.Devices...)
	}
	return all
}

func (d Device) card() (int, bool) {
	switch {
	case d.Index != nil:
		return *d.Index, true
	case d.Slot != nil:
		return *d.Slot, true
	}
	return 0, false
}

// AllocationOf reads the annotation of a pod; an error when it has none or an unreadable one.
func AllocationOf(pod *corev1.Pod) (Allocation, error) {
	var allocation Allocation
	text, found := pod.Annotations[allocationKey]
	if !found {
		return allocation, fmt.Errorf("pod %s: expected annotation %s, found none", pod.Name, allocationKey)
	}
	if err := json.Unmarshal([]byte(text), &allocation); err != nil {
		return allocation, fmt.Errorf("pod %s: annotation %s: %w in %s", pod.Name, allocationKey, err, text)
	}
	if allocation.V != 1 {
		return allocation, fmt.Errorf("pod %s: expected v 1, found %d", pod.Name, allocation.V)
	}
	return allocation, nil
}

// NodeSpec is what a test node really has: the truth an audit compares with.
type NodeSpec struct {
	Name    string
	Cards   int
	CardMib int64
	Mig     map[string]int // profile -> instances the node advertises
}

// cardUse is what the annotations say about one card.
type cardUse struct {
	milli, mib int64
	plain      int            // devices that are no MIG instance
	units      map[int]string // MIG memory unit -> pod
}

// Audit recomputes the use of every card from the annotations of all live pods and returns each
// thing that is given out twice. Pods without a node and finished pods hold nothing.
func Audit(nodes []NodeSpec, pods []corev1.Pod) []string {
	specs := map[string]NodeSpec{}
	for _, node := range nodes {
		specs[node.Name] = node
	}
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	cards := map[string]*cardUse{}
	instances := map[string]int{}
	for i := range pods {
		pod := &pods[i]
		spec, known := specs[pod.Spec.NodeName]
		if !known || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		allocation, err := AllocationOf(pod)
		if err != nil {
			report("%v", err)
			continue
		}
		for _, device := range allocation.Devices() {
			card, found := device.card()
			if !found || card < 0 || card >= spec.Cards {
				report("%s: expected a card below %d of %s, found %d", pod.Name, spec.Cards, spec.Name, card)
				continue
			}
			key := fmt.Sprintf("%s card %d", spec.Name, card)
			use := cards[key]
			if use == nil {
				use = &cardUse{units: map[int]string{}}
				cards[key] = use
			}
			use.milli += device.Milli
			use.mib += device.Mib
			if device.Mig == nil {
				use.plain++
				continue
			}
			instances[spec.Name+" "+device.Mig.Profile]++
			for unit := device.Mig.Start; unit < device.Mig.Start+device.Mig.Size; unit++ {
				if owner, taken := use.units[unit]; taken {
					report("%s: MIG unit %d is held by %s and %s", key, unit, owner, pod.Name)
				}
				use.units[unit] = pod.Name
			}
		}
	}
	for key, use := range cards {
		if use.milli > 1000 {
			report("%s: %d milli given out, expected at most 1000", key, use.milli)
		}
		if spec := specs[nodeOf(key)]; use.mib > spec.CardMib {
			report("%s: %d MiB given out, expected at most %d", key, use.mib, spec.CardMib)
		}
		if use.plain > 0 && len(use.units) > 0 {
			report("%s: holds MIG instances and whole or shared devices", key)
		}
	}
	for key, count := range instances {
		profile := key[len(nodeOf(key))+1:]
		if most := specs[nodeOf(key)].Mig[profile]; count > most {
			report("%s: %d instances given out, expected at most %d", key, count, most)
		}
	}
	sort.Strings(problems)
	return problems
}

func nodeOf(key string) string {
	for i := range key {
		if key[i] == ' ' {
			return key[:i]
		}
	}
	return key
}
