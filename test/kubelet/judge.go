package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// Outcome is a column of the table.
type Outcome int

const (
	bothAdmit Outcome = iota
	bothRefuse
	dependsOnPlugin // refused: the kubelet refuses it by some preferences of the plugin, not by all
	cannotBeShown   // refused: the exporter's counts cannot show where the GPUs in use are
	noRoom          // refused for another reason, and the kubelet has no room either
	sentAndRejected
	refusedThoughAdmitted
	noRoomThoughAdmitted
	outcomes
)

var outcomeNames = [outcomes]string{"admitted", "refused", "by plugin", "not shown", "no room",
	"SENT, REJECTED", "REFUSED, ADMITTED", "NO ROOM, ADMITTED"}

func (o Outcome) String() string { return outcomeNames[o] }
func (o Outcome) isWrong() bool  { return o >= sentAndRejected }

// Verdict is what the kubelet made of a case.
type Verdict struct {
	Outcome Outcome
	Why     string // the kubelet's message, where it rejects
}

// Judge has a kubelet for each set of NUMA nodes.
type Judge struct {
	folder   string
	kubelets map[string]*Kubelet
}

// Close ends them all.
func (j *Judge) Close() {
	for _, kubelet := range j.kubelets {
		kubelet.Close()
	}
}

func (j *Judge) kubelet(numaNodes []int) (*Kubelet, error) {
	key := fmt.Sprint(numaNodes)
	if kubelet := j.kubelets[key]; kubelet != nil {
		return kubelet, nil
	}
	kubelet, err := NewKubelet(filepath.Join(j.folder, fmt.Sprint(len(j.kubelets))), numaNodes)
	j.kubelets[key] = kubelet
	return kubelet, err
}

// Judge holds the answer against the kubelet's, by several preferences of the device plugin where
// they can matter: a pod that is sent must be admitted whatever the plugin prefers.
func (j *Judge) Judge(c *Case) (Verdict, error) {
	kubelet, err := j.kubelet(c.NumaNodes)
	if err != nil {
		return Verdict{}, err
	}
	if err := kubelet.SetState(c); err != nil {
		return Verdict{}, err
	}
	told := trial{kubelet: kubelet, c: c}
	for _, order := range preferences(c) {
		if err := told.ask(order); err != nil {
			return Verdict{}, err
		}
	}
	// A refusal needs one preference that the kubelet rejects the pod by; it may be a rare one.
	random := rand.New(rand.NewPCG(uint64(len(c.Gpus)), 1))
	for i := 0; i < mostPreferences && told.outcome() == refusedThoughAdmitted && matters(c); i++ {
		order := inOrder(c)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if err := told.ask(order); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{told.outcome(), told.why}, nil
}

const mostPreferences = 500

// trial is one pod, asked about by several preferences of the plugin.
type trial struct {
	kubelet            *Kubelet
	c                  *Case
	admitted, rejected int
	why                string
}

func (t *trial) ask(order []string) error {
	for _, options := range optionsOf(t.c) {
		result, err := t.kubelet.Admit(t.c, options, order)
		if err != nil {
			return err
		}
		if result.Admit {
			t.admitted++
			continue
		}
		t.rejected++
		t.why = result.Reason + ": " + result.Message
	}
	return nil
}

func (t *trial) outcome() Outcome { return outcomeOf(t.c, t.admitted, t.rejected) }

func outcomeOf(c *Case, admitted, rejected int) Outcome {
	switch {
	case c.Answer == "Sent" && rejected == 0:
		return bothAdmit
	case c.Answer == "Sent":
		return sentAndRejected
	case c.Answer == "NumaMismatch" && admitted == 0:
		return bothRefuse
	case c.Answer == "NumaMismatch" && c.Hidden:
		return cannotBeShown
	case c.Answer == "NumaMismatch" && rejected > 0:
		return dependsOnPlugin
	case c.Answer == "NumaMismatch":
		return refusedThoughAdmitted
	case admitted == 0:
		return noRoom
	}
	return noRoomThoughAdmitted
}

// Which GPUs the plugin prefers matters to the containers that come later alone.
func matters(c *Case) bool {
	return c.Scope == topologymanager.ContainerTopologyScope && asking(&c.Pod) > 1
}

func inOrder(c *Case) []string {
	ids := make([]string, 0, len(c.Gpus))
	for _, gpu := range c.Gpus {
		ids = append(ids, gpu.ID)
	}
	return ids
}

func preferences(c *Case) [][]string {
	up := inOrder(c)
	if !matters(c) {
		return [][]string{up}
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	byNuma := slices.Clone(c.Gpus)
	slices.SortStableFunc(byNuma, func(a, b Gpu) int { return a.Numa - b.Numa })
	spread := make([]string, 0, len(up))
	for i := range byNuma {
		spread = append(spread, byNuma[(i*(len(byNuma)/2+1))%len(byNuma)].ID)
	}
	low := make([]string, 0, len(up))
	for _, gpu := range byNuma {
		low = append(low, gpu.ID)
	}
	high := slices.Clone(low)
	slices.Reverse(high)
	return [][]string{up, down, low, high, spread}
}

func asking(pod *corev1.Pod) int {
	count := 0
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			if !container.Resources.Limits.Name(gpuKey, resource.DecimalSI).IsZero() {
				count++
			}
		}
	}
	return count
}

// Machines of more NUMA nodes than eight need one of the kubelet's options. That of the closest
// NUMA nodes changes which ones a container gets, and so matters to later ones alone, where nothing
// in the cluster tells whether it is set.
func optionsOf(c *Case) []map[string]string {
	most := map[string]string{topologymanager.MaxAllowableNUMANodes: "64"}
	if len(c.NumaNodes) <= 8 {
		most = nil
	}
	if matters(c) || c.Policy == topologymanager.PolicyNone {
		return []map[string]string{most}
	}
	closest := map[string]string{topologymanager.PreferClosestNUMANodes: "true"}
	maps.Copy(closest, most)
	return []map[string]string{most, closest}
}
