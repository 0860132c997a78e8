package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Ask is what one container wants.
type Ask struct {
	Key   string
	Count int
}

// Pod wants devices, container by container.
type Pod struct {
	Name string
	Asks []Ask
}

// RecordedDevice is one of Tranche's record on the pod.
type RecordedDevice struct {
	Index *int
	UUID  *string
	Milli int
	MiB   int `json:"mib"`
	Mig   *struct {
		Profile     string
		Start, Size int
	}
}

// Record is the annotation tranche.dev/allocation.
type Record struct {
	Knowledge  string
	Containers []struct {
		Name    string
		Devices []RecordedDevice
	}
}

// drawPods asks mostly for what the node has, now and then for more, or by a key it lacks.
func drawPods(random *rand.Rand, node *Node) []Pod {
	keys := make([]string, 0, len(node.Resources)+2)
	for key := range node.Resources {
		keys = append(keys, key, key, key, key)
	}
	keys = append(keys, gpuKey, gpuKey+".shared")
	slices.Sort(keys)
	pods := make([]Pod, 4+random.IntN(7))
	for i := range pods {
		pods[i].Name = fmt.Sprintf("pod-%d", i)
		for range pick(random, 1, 1, 1, 2) {
			ask := Ask{pick(random, keys...), pick(random, 1, 1, 1, 2, 2, 3, 4, 8)}
			pods[i].Asks = append(pods[i].Asks, ask)
		}
	}
	return pods
}

// Object is the Pod.
func (p *Pod) Object() map[string]any {
	var containers []any
	for i, ask := range p.Asks {
		amounts := map[string]string{ask.Key: strconv.Itoa(ask.Count)}
		containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "image": "none",
			"resources": map[string]any{"limits": amounts, "requests": amounts}})
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": p.Name, "namespace": "default", "uid": "uid-" + p.Name},
		"spec": map[string]any{"containers": containers,
			"terminationGracePeriodSeconds": 0},
	}
}

// Place is what kube-scheduler does with a pod of the one node: the record, or why it is refused.
func (t *Tranche) Place(pod *Pod) (*Record, string, error) {
	object := pod.Object()
	if err := t.Ask("POST", "/embedded/v1/apply", object, nil); err != nil {
		return nil, "", err
	}
	names := []string{nodeName}
	args := map[string]any{"Pod": object, "Nodes": nil, "NodeNames": names}
	var found struct {
		NodeNames                               []string
		FailedNodes, FailedAndUnresolvableNodes map[string]string
		Error                                   string
	}
	if err := t.Ask("POST", "/scheduler/filter", args, &found); err != nil {
		return nil, "", err
	}
	if len(found.NodeNames) == 0 {
		reason := found.Error + found.FailedNodes[nodeName] + found.FailedAndUnresolvableNodes[nodeName]
		return nil, reason, nil
	}
	if err := t.Ask("POST", "/scheduler/prioritize", args, nil); err != nil {
		return nil, "", err
	}
	var bound struct{ Error string }
	err := t.Ask("POST", "/scheduler/bind", map[string]string{"PodName": pod.Name,
		"PodNamespace": "default", "PodUID": "uid-" + pod.Name, "Node": nodeName}, &bound)
	if err != nil || bound.Error != "" {
		return nil, bound.Error, err
	}
	record, err := t.record(pod)
	return record, "", err
}

func (t *Tranche) record(pod *Pod) (*Record, error) {
	var stored struct {
		Metadata struct{ Annotations map[string]string }
	}
	target := "/embedded/v1/objects?kind=Pod&namespace=default&name=" + pod.Name
	if err := t.Ask("GET", target, nil, &stored); err != nil {
		return nil, err
	}
	text := stored.Metadata.Annotations["tranche.dev/allocation"]
	var record Record
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return nil, fmt.Errorf("%s: expected a record, found %q: %w", pod.Name, text, err)
	}
	return &record, nil
}

// Delete ends a pod.
func (t *Tranche) Delete(pod *Pod) error {
	return t.Ask("POST", "/embedded/v1/delete", map[string]any{"kind": "Pod",
		"metadata": map[string]string{"name": pod.Name, "namespace": "default"}}, nil)
}

// AdmitPod is what the kubelet does with the pod: devices for each container, or why it fails. What
// was foretold of a container is by its position.
func (k *Kubelet) AdmitPod(pod *Pod, foretold [][]string) ([]*Given, error) {
	var all []*Given
	for i, ask := range pod.Asks {
		var named []string
		if i < len(foretold) {
			named = foretold[i]
		}
		given, err := k.Admit(ask.Key, ask.Count, named)
		if err != nil {
			k.ReleasePod(pod, all)
			return nil, err
		}
		all = append(all, given)
	}
	k.admitted[pod.Name] = holder{*pod, all}
	return all, nil
}

// Restore is what a kubelet that starts again reads from its checkpoint.
func (k *Kubelet) Restore(one holder) {
	k.admitted[one.pod.Name] = one
	for i, given := range one.given {
		for _, id := range given.IDs {
			k.resources[one.pod.Asks[i].Key].used[id] = true
		}
	}
}

// ReleasePod takes back what the containers of a pod got.
func (k *Kubelet) ReleasePod(pod *Pod, all []*Given) {
	delete(k.admitted, pod.Name)
	for i, given := range all {
		k.Release(pod.Asks[i].Key, given)
	}
}
