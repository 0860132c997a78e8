package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// resource is what a plugin registered.
type resource struct {
	client pluginapi.DevicePluginClient
	closer func() error
	ids    []string        // healthy devices
	used   map[string]bool // by containers that were admitted
}

// Kubelet has the part of a kubelet that device plugins speak to: its Registration service, and
// the choice of devices as its device manager makes it where no Topology Manager policy is set:
// free ones, those first that the plugin prefers.
type Kubelet struct {
	server    *grpc.Server
	lock      sync.Mutex
	resources map[string]*resource
	admitted  map[string]holder
	random    *rand.Rand
	failure   error
}

// NewKubelet listens where plugins look for the kubelet.
func NewKubelet(random *rand.Rand) (*Kubelet, error) {
	listener, err := net.Listen("unix", pluginapi.KubeletSocket)
	if err != nil {
		return nil, err
	}
	kubelet := &Kubelet{server: grpc.NewServer(), resources: map[string]*resource{},
		admitted: map[string]holder{}, random: random}
	pluginapi.RegisterRegistrationServer(kubelet.server, kubelet)
	go func() { _ = kubelet.server.Serve(listener) }()
	return kubelet, nil
}

// Close ends the service and the connections to plugins.
func (k *Kubelet) Close() {
	k.server.Stop()
	for _, one := range k.resources {
		_ = one.closer()
	}
}

// Register is the plugin's call.
func (k *Kubelet) Register(_ context.Context, asked *pluginapi.RegisterRequest) (*pluginapi.Empty,
	error) {
	one, err := k.connect(filepath.Join(pluginFolder, asked.Endpoint))
	k.lock.Lock()
	defer k.lock.Unlock()
	if err != nil {
		k.failure = fmt.Errorf("%s: %w", asked.ResourceName, err)
		return nil, err
	}
	k.resources[asked.ResourceName] = one
	return &pluginapi.Empty{}, nil
}

func (k *Kubelet) connect(socket string) (*resource, error) {
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	one := &resource{client: pluginapi.NewDevicePluginClient(connection), closer: connection.Close,
		used: map[string]bool{}}
	watch, err := one.client.ListAndWatch(context.Background(), &pluginapi.Empty{})
	if err != nil {
		return nil, err
	}
	list, err := watch.Recv()
	if err != nil {
		return nil, err
	}
	one.ids = healthy(list)
	go func() {
		for {
			list, err := watch.Recv()
			if err != nil {
				return
			}
			k.lock.Lock()
			one.ids = healthy(list)
			k.lock.Unlock()
		}
	}()
	return one, nil
}

func healthy(list *pluginapi.ListAndWatchResponse) []string {
	var ids []string
	for _, device := range list.Devices {
		if device.Health == pluginapi.Healthy {
			ids = append(ids, device.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Counts are the devices of each resource that has registered.
func (k *Kubelet) Counts() (map[string]int, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	counts := map[string]int{}
	for name, one := range k.resources {
		counts[name] = len(one.ids)
	}
	return counts, k.failure
}

// WaitFor returns when so many devices are there, or with what is there when time is up.
func (k *Kubelet) WaitFor(expected map[string]int, ended func() bool) (map[string]int, error) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		counts, err := k.Counts()
		if err != nil || maps.Equal(counts, expected) || time.Now().After(end) || ended() {
			return counts, err
		}
	}
}

// Given is what one container got.
type Given struct {
	IDs      []string
	Answer   *pluginapi.ContainerAllocateResponse
	Possible bool // the plugin takes what Tranche foretold by another order of the free ones
}

// Free is how many devices of a resource kube-scheduler finds free: what containers hold counts
// also where it is ill.
func (k *Kubelet) Free(key string) int {
	one := k.resources[key]
	if one == nil {
		return 0
	}
	return len(one.ids) - len(one.used)
}

// prefer is the plugin's choice of so many devices of those, which it sees in that order.
func (r *resource) prefer(free []string, count int) ([]string, error) {
	if len(free) == count {
		return free, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	preferred, err := r.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: free, AllocationSize: int32(count)}}})
	if err != nil {
		return nil, err
	}
	chosen := preferred.ContainerResponses[0].DeviceIDs
	if len(chosen) != count {
		return nil, fmt.Errorf("expected %d preferred devices, found %q", count, chosen)
	}
	return chosen, nil
}

// Admit gives a container so many devices; an error is the plugin's refusal. The manager hands over
// the free ones in no order (sets.Set.UnsortedList). Of sets that are equal to it the plugin takes
// that which comes first, so that those foretold are possible if it takes them when they do.
func (k *Kubelet) Admit(key string, count int, foretold []string) (*Given, error) {
	one := k.resources[key]
	if k.Free(key) < count {
		return nil, fmt.Errorf("expected %d free devices %s, found %d", count, key, k.Free(key))
	}
	var free, first, rest []string
	for _, id := range one.ids {
		switch {
		case one.used[id]:
			continue
		case slices.Contains(foretold, id):
			first = append(first, id)
		default:
			rest = append(rest, id)
		}
		free = append(free, id)
	}
	given := &Given{}
	if len(foretold) > 0 {
		chosen, err := one.prefer(append(first, rest...), count)
		if err != nil {
			return nil, err
		}
		given.Possible = sameSet(chosen, foretold)
	}
	k.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	chosen, err := one.prefer(free, count)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := one.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIDs: chosen}}})
	if err != nil {
		return nil, err
	}
	for _, id := range chosen {
		one.used[id] = true
	}
	given.IDs, given.Answer = chosen, answer.ContainerResponses[0]
	return given, nil
}

// Release takes back what a container held.
func (k *Kubelet) Release(key string, given *Given) {
	for _, id := range given.IDs {
		delete(k.resources[key].used, id)
	}
}
