package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is one thing that Tranche says of a node and that is not so.
type Difference struct {
	Field           string
	Expected, Found string
}

// What a node has, in terms that both sides can be asked for.
type contents struct {
	model     string
	cards     int            // GPUs without MIG mode
	total     int            // all GPUs; -1: nobody tells
	memory    []int          // of GPUs, each size once
	instances map[string]int // by plain profile
	replicas  []int          // of GPUs that are shared, each number once
}

// told is what a state has as far as its node tells it. Whoever reads the node can know that much.
func (s *State) told() contents {
	board := boards[s.Machine.Gpus[0].Board]
	all := contents{model: board.Model, instances: map[string]int{}}
	if s.Resources() == nil {
		return all
	}
	all.memory, all.total, all.replicas = []int{board.MemoryMiB}, len(s.Machine.Gpus), []int{1}
	for _, gpu := range s.Machine.Gpus {
		if !gpu.MigOn || s.Config.Strategy == "none" {
			all.cards++
			continue
		}
		for _, mig := range gpu.Migs {
			plain, _, _ := strings.Cut(mig.Profile, "+")
			all.instances[plain]++
		}
	}
	// Under single the count of GPUs is that of instances.
	if s.Config.Strategy == "single" && len(all.instances) > 0 {
		all.total = -1
	}
	if _, replicas := s.Config.Sharing.of(gpuKey); all.cards > 0 {
		all.replicas = []int{replicas}
	}
	return all
}

// contents of a node as Tranche shows it.
func (n *SeenNode) contents() contents {
	all := contents{instances: map[string]int{}, total: len(n.Gpus)}
	if n.Model != nil {
		all.model = *n.Model
	}
	for _, gpu := range n.Gpus {
		all.memory = append(all.memory, gpu.MemoryMiB)
		if gpu.Mig == nil {
			all.cards++
			all.replicas = append(all.replicas, gpu.Replicas)
			continue
		}
		for _, mig := range gpu.Mig {
			plain, _, _ := strings.Cut(mig.Profile, "+")
			all.instances[plain]++
		}
	}
	slices.Sort(all.memory)
	all.memory = slices.Compact(all.memory)
	slices.Sort(all.replicas)
	all.replicas = slices.Compact(all.replicas)
	return all
}

// differences of what Tranche says from what the node tells.
func differences(told, seen contents) []Difference {
	var all []Difference
	add := func(field string, expected, found any) {
		one := Difference{field, fmt.Sprint(expected), fmt.Sprint(found)}
		if one.Expected != one.Found {
			all = append(all, one)
		}
	}
	add("model", told.model, seen.model)
	add("GPUs without MIG", told.cards, seen.cards)
	add("memory", told.memory, seen.memory)
	if told.total >= 0 {
		add("GPUs", told.total, seen.total)
	}
	if !maps.Equal(told.instances, seen.instances) {
		add("MIG instances", told.instances, seen.instances)
	}
	if told.cards > 0 {
		add("replicas", told.replicas, seen.replicas)
	}
	return all
}
