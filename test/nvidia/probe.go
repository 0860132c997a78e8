package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// What tranche probe tells of a node.
const (
	noProbe     = "none"
	probeOnce   = "links" // once, before there are pods, and without the kubelet's socket
	probeOfPods = "pods"  // after each pod
)

// Probe has tranche probe look at the machine and keeps its annotations.
func (p *Place) Probe(state *State, running *Running) error {
	if state.Probe == noProbe {
		return nil
	}
	socket := p.path("state", "no-socket")
	if state.Probe == probeOfPods {
		socket = p.path("state", "podresources.sock")
		stop, err := running.Kubelet.servePods(socket)
		if err != nil {
			return err
		}
		defer stop()
	}
	text, err := p.Run(p.tranche, "probe", "--once", "--print", "--node", nodeName, "--podresources",
		socket)
	if err != nil {
		return err
	}
	topology, rest, found := strings.Cut(text, "tranche.dev/probe:\n")
	_, topology, headed := strings.Cut(topology, "tranche.dev/topology:\n")
	var probe json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(rest))
	if err := decoder.Decode(&probe); err != nil || !found || !headed {
		return fmt.Errorf("tranche probe: expected two annotations, found %s", text)
	}
	running.Node.Annotations = map[string]string{
		"tranche.dev/topology": strings.TrimSpace(topology) + "\n",
		"tranche.dev/probe":    string(probe),
	}
	return nil
}

// podServer is the kubelet's podresources service.
type podServer struct {
	podresources.UnimplementedPodResourcesListerServer
	pods []*podresources.PodResources
}

func (s *podServer) List(context.Context, *podresources.ListPodResourcesRequest) (
	*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{PodResources: s.pods}, nil
}

func (k *Kubelet) servePods(socket string) (func(), error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, &podServer{pods: k.pods()})
	go func() { _ = server.Serve(listener) }()
	return func() {
		server.Stop()
		_ = os.Remove(socket)
	}, nil
}

func (k *Kubelet) pods() []*podresources.PodResources {
	var names []string
	for name := range k.admitted {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []*podresources.PodResources
	for _, name := range names {
		one := k.admitted[name]
		pod := &podresources.PodResources{Name: name, Namespace: "default"}
		for i, given := range one.given {
			pod.Containers = append(pod.Containers, &podresources.ContainerResources{
				Name: fmt.Sprintf("c%d", i), Devices: []*podresources.ContainerDevices{
					{ResourceName: one.pod.Asks[i].Key, DeviceIds: given.IDs}}})
		}
		all = append(all, pod)
	}
	return all
}

// placeDifferences: with the probe, instances are where they are.
func (s *State) placeDifferences(seen *SeenNode) []Difference {
	if s.Config.Strategy != "mixed" || s.Resources() == nil {
		return nil
	}
	var wrong []Difference
	for i, gpu := range s.Machine.Gpus {
		var expected, found []string
		for _, mig := range gpu.Migs {
			expected = append(expected, fmt.Sprintf("%s@%d", mig.Profile, mig.Start))
		}
		for _, card := range seen.Gpus {
			if card.UUID == nil || *card.UUID != gpu.UUID {
				continue
			}
			for _, mig := range card.Mig {
				found = append(found, fmt.Sprintf("%s@%d", mig.Profile, mig.Start))
			}
		}
		slices.Sort(expected)
		slices.Sort(found)
		if !slices.Equal(expected, found) {
			wrong = append(wrong, Difference{fmt.Sprintf("instances of GPU %d", i),
				fmt.Sprint(expected), fmt.Sprint(found)})
		}
	}
	return wrong
}
