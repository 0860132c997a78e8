package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Holding is a device of the machine that a container got: a GPU, an instance, or a share of one.
type Holding struct {
	Gpu      int
	Mig      *Mig
	UUID     string
	Replicas int
}

// holding finds a device by the id that the plugin gave it.
func (s *State) holding(key, id string) (*Holding, error) {
	uuid, _, replica := strings.Cut(id, "::")
	found := &Holding{UUID: uuid, Replicas: 1}
	if replica {
		found.Replicas = s.Config.Sharing.Replicas
	}
	for i, gpu := range s.Machine.Gpus {
		found.Gpu = i
		if gpu.UUID == uuid {
			return found, nil
		}
		for j := range gpu.Migs {
			if gpu.Migs[j].UUID == uuid {
				found.Mig = &gpu.Migs[j]
				return found, nil
			}
		}
	}
	return nil, fmt.Errorf("expected a device of the machine for %s, found %s", key, id)
}

// MemoryMiB of a share of it.
func (h *Holding) memoryMiB(machine *Machine) int {
	gpu := &machine.Gpus[h.Gpu]
	if h.Mig == nil {
		return gpu.MemoryMiB / h.Replicas
	}
	return boards[gpu.Board].Profile(h.Mig.Profile).MemoryMiB / h.Replicas
}

// JudgePod holds the record of a pod against what its containers got. Each text is a difference.
func (s *State) JudgePod(pod *Pod, record *Record, given []*Given) []string {
	if len(record.Containers) != len(given) {
		return []string{fmt.Sprintf("%d containers recorded, %d have devices",
			len(record.Containers), len(given))}
	}
	var wrong []string
	for i, container := range record.Containers {
		one := containerCase{s, record.Knowledge, pod.Asks[i], container.Devices, given[i]}
		for _, text := range one.judge() {
			wrong = append(wrong, fmt.Sprintf("container %d (%s %d): %s", i, pod.Asks[i].Key,
				pod.Asks[i].Count, text))
		}
	}
	return wrong
}

type containerCase struct {
	state     *State
	knowledge string
	ask       Ask
	recorded  []RecordedDevice
	given     *Given
}

func (c *containerCase) judge() []string {
	if len(c.recorded) != len(c.given.IDs) {
		return []string{fmt.Sprintf("%d devices recorded, %d given", len(c.recorded),
			len(c.given.IDs))}
	}
	var held []*Holding
	var expected []string
	for _, id := range c.given.IDs {
		one, err := c.state.holding(c.ask.Key, id)
		if err != nil {
			return []string{err.Error()}
		}
		held = append(held, one)
		expected = append(expected, c.state.nameOf(one))
	}
	wrong := c.judgeAmounts(held)
	// What the runtime makes visible is what the kubelet chose, or the judge reads it wrongly.
	if found := c.visible(); !sameSet(expected, found) {
		wrong = append(wrong, fmt.Sprintf("expected %q visible, found %q", expected, found))
	}
	return append(wrong, c.judgeMps(held)...)
}

func sameSet(one, other []string) bool {
	return slices.Equal(sorted(one), sorted(other))
}

func sorted(texts []string) []string {
	all := slices.Sorted(slices.Values(texts))
	return slices.Compact(all)
}

// Every device recorded must have the size of one given, of one profile.
func (c *containerCase) judgeAmounts(held []*Holding) []string {
	describe := func(profile string, mib, share int) string {
		return fmt.Sprintf("%s %d MiB 1/%d", profile, mib, share)
	}
	var expected, found []string
	for _, one := range held {
		profile := "GPU"
		if one.Mig != nil {
			profile, _, _ = strings.Cut(one.Mig.Profile, "+")
		}
		expected = append(expected, describe(profile, one.memoryMiB(&c.state.Machine), one.Replicas))
	}
	for _, one := range c.recorded {
		profile, share := "GPU", 1
		if one.Mig != nil {
			profile, _, _ = strings.Cut(one.Mig.Profile, "+")
			share = held[0].Replicas
		} else if one.Milli > 0 {
			share = 1000 / one.Milli
		}
		found = append(found, describe(profile, one.MiB, share))
	}
	slices.Sort(expected)
	slices.Sort(found)
	if slices.Equal(expected, found) {
		return nil
	}
	return []string{fmt.Sprintf("recorded %q, given %q", found, expected)}
}

// Foretold are the GPUs that a record names, container by container; nil where it says that it
// does not know.
func (s *State) Foretold(record *Record) [][]string {
	if record == nil || record.Knowledge == "counts" {
		return nil
	}
	var all [][]string
	for _, container := range record.Containers {
		var named []string
		for _, device := range container.Devices {
			switch {
			case device.UUID != nil:
				named = append(named, *device.UUID)
			case device.Index != nil && *device.Index < len(s.Machine.Gpus):
				named = append(named, s.Machine.Gpus[*device.Index].UUID)
			}
		}
		all = append(all, named)
	}
	return all
}

// JudgeNames says how far what was foretold came true: in full, as one of several sets that are
// equal to the plugin, of which it took another, or not at all. A container's names rest on those
// of the ones before it.
func (s *State) JudgeNames(foretold [][]string, given []*Given) (Outcome, string) {
	for i, named := range foretold {
		var held []string
		for _, id := range given[i].IDs {
			uuid, _, _ := strings.Cut(id, "::")
			held = append(held, uuid)
		}
		switch {
		case sameSet(named, held):
		case given[i].Possible:
			return podEqual, ""
		default:
			return podMissed, fmt.Sprintf("container %d: foretold %q, given %q", i, named, held)
		}
	}
	return podAdmitted, ""
}

// A share held by MPS has the daemon's folders, and the daemon was told a share's limits.
func (c *containerCase) judgeMps(held []*Holding) []string {
	if c.state.Config.Sharing.Method != "mps" || held[0].Replicas == 1 {
		return nil
	}
	var wrong []string
	pipe := filepath.Join(mpsFolder, c.ask.Key, "pipe")
	if found := c.given.Answer.Envs["CUDA_MPS_PIPE_DIRECTORY"]; found != pipe {
		wrong = append(wrong, fmt.Sprintf("expected pipes in %q, found %q", pipe, found))
	}
	told, err := os.ReadFile(filepath.Join(pipe, "commands"))
	if err != nil {
		return append(wrong, err.Error())
	}
	for i, one := range held {
		limit := fmt.Sprintf("set_default_device_pinned_mem_limit %d %dM", one.Gpu, c.recorded[i].MiB)
		if !strings.Contains(string(told), limit+"\n") {
			wrong = append(wrong, fmt.Sprintf("expected %q of the MPS daemon, found %q", limit, told))
		}
	}
	percent := fmt.Sprintf("set_default_active_thread_percentage %d", c.recorded[0].Milli/10)
	if !strings.Contains(string(told), percent+"\n") {
		wrong = append(wrong, fmt.Sprintf("expected %q of the MPS daemon, found %q", percent, told))
	}
	return wrong
}
