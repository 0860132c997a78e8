package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
)

// Node is what the two programs make of a machine, as the API server shows it.
type Node struct {
	Labels      map[string]string
	Annotations map[string]string
	Resources   map[string]int // allocatable
	Capacity    map[string]int
}

// Running is a machine with its plugin.
type Running struct {
	Node    Node
	Kubelet *Kubelet
	plugin  *Program
	daemon  *Program
}

// Close ends all of it.
func (r *Running) Close() {
	r.plugin.Stop()
	r.daemon.Stop()
	r.Kubelet.Close()
}

// Begin starts the programs on the machine of a state.
func (p *Place) Begin(state *State) (*Running, error) {
	if err := p.SetUp(state); err != nil {
		return nil, err
	}
	labels, err := p.Labels()
	if err != nil {
		return nil, err
	}
	kubelet, err := NewKubelet(rand.New(rand.NewPCG(state.Seed, 3)))
	if err != nil {
		return nil, err
	}
	running := &Running{Kubelet: kubelet, Node: Node{Labels: labels}}
	if err := p.startPlugin(state, running); err != nil {
		running.Close()
		return nil, err
	}
	return running, nil
}

func (p *Place) startPlugin(state *State, running *Running) error {
	config := p.path("state", "config")
	expected := state.Resources()
	var err error
	if state.Config.Sharing.Method == "mps" {
		running.daemon, err = p.Start(p.path("programs", "mps-control-daemon"), "--config-file", config)
		if err != nil {
			return err
		}
		if _, err := running.daemon.Said("No devices are configured", "Starting log tailer",
			"error getting daemons"); err != nil {
			return err
		}
	}
	running.plugin, err = p.Start(p.path("programs", "nvidia-device-plugin"), "--config-file", config,
		"--mps-root", "/run/nvidia/mps")
	if err != nil {
		return err
	}
	if len(expected) == 0 {
		if _, err := running.plugin.Said("No devices found. Waiting indefinitely",
			"Registered device plugin", "Failed to start plugin"); err != nil {
			return err
		}
	}
	ended := func() bool { return len(running.plugin.ended) > 0 }
	running.Node.Resources, err = running.Kubelet.WaitFor(expected, ended)
	if err != nil {
		return err
	}
	if !maps.Equal(running.Node.Resources, expected) {
		return fmt.Errorf("expected the plugin to advertise %v, found %v\n%s", expected,
			running.Node.Resources, running.plugin.Log())
	}
	running.Node.Capacity = maps.Clone(running.Node.Resources)
	return nil
}

// FallIll has a GPU report an error, and returns when the plugin has told the kubelet.
func (p *Place) FallIll(state *State, running *Running, gpu int) error {
	const criticalXid, fallenOffTheBus = 8, 79
	text := fmt.Appendf(nil, `[{"uuid": %q, "type": %d, "data": %d}]`, state.Machine.Gpus[gpu].UUID,
		criticalXid, fallenOffTheBus)
	path := p.path("state", "events.json")
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	expected := map[string]int{gpuKey: running.Node.Capacity[gpuKey] - 1}
	var err error
	running.Node.Resources, err = running.Kubelet.WaitFor(expected, func() bool { return false })
	if err == nil && !maps.Equal(running.Node.Resources, expected) {
		err = fmt.Errorf("expected healthy devices %v, found %v\n%s", expected,
			running.Node.Resources, running.plugin.Log())
	}
	return err
}

// Object is the Node.
func (n *Node) Object() map[string]any {
	amounts := func(counts map[string]int) map[string]string {
		all := map[string]string{"cpu": "256", "memory": "4Ti", "pods": "110"}
		for key, count := range counts {
			all[key] = strconv.Itoa(count)
		}
		return all
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": nodeName, "labels": n.Labels,
			"annotations": n.Annotations},
		"status": map[string]any{"capacity": amounts(n.Capacity), "allocatable": amounts(n.Resources),
			"conditions": []any{map[string]string{"type": "Ready", "status": "True"}}},
	}
}
