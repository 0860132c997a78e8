package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	cadvisorapi "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

const gpuKey = "nvidia.com/gpu"

// The constructor that takes the place of the socket is the package's own. The one it exports
// writes below /var/lib/kubelet, which is another kubelet's where a test runs on a node.
//
//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(logger klog.Logger, socketPath string, topology []cadvisorapi.Node,
	store topologymanager.Store) (*devicemanager.ManagerImpl, error)

// silent keeps the line that the managers log for each hint out of millions of hints.
var silent = klog.Logger(logr.Discard())

// Kubelet is the part of a kubelet that admits pods to GPUs: the real device manager and, anew for
// each pod, the real topology manager. Not safe for use from several goroutines.
type Kubelet struct {
	ctx     context.Context
	numa    []cadvisorapi.Node
	devices *devicemanager.ManagerImpl
	plugin  *plugin
	active  []*corev1.Pod
	// The manager of the policy in force; the device manager asks it for the mask of a pod.
	topologymanager.Manager
	pods int
}

type sourcesReady struct{}

func (sourcesReady) AddSource(string) {}
func (sourcesReady) AllReady() bool   { return true }

// NewKubelet runs on a machine with these NUMA nodes and keeps its files in a folder of its own.
func NewKubelet(folder string, numaNodes []int) (*Kubelet, error) {
	k := &Kubelet{ctx: klog.NewContext(context.Background(), silent), plugin: &plugin{}}
	for _, id := range numaNodes {
		k.numa = append(k.numa, cadvisorapi.Node{Id: id, Distances: distances(numaNodes, id)})
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	k.devices, err = newManagerImpl(silent, filepath.Join(folder, "kubelet.sock"), k.numa, k)
	if err != nil {
		return nil, err
	}
	active := func() []*corev1.Pod { return k.active }
	err = k.devices.Start(silent, active, sourcesReady{}, containermap.NewContainerMap(), sets.New[string]())
	if err != nil {
		return nil, err
	}
	return k, k.devices.PluginConnected(k.ctx, gpuKey, k.plugin)
}

// Of a machine whose NUMA nodes lie in a row, the nearer the closer. Indexed by number.
func distances(numaNodes []int, from int) []uint64 {
	row := make([]uint64, numaNodes[len(numaNodes)-1]+1)
	for _, to := range numaNodes {
		row[to] = uint64(10 + 2*max(from-to, to-from))
	}
	return row
}

// Close ends the server that the device manager listens with.
func (k *Kubelet) Close() error { return k.devices.Stop(silent) }

// SetState has the device manager hand the GPUs to the running pods, exactly as the case says.
func (k *Kubelet) SetState(c *Case) error {
	manager, err := topologymanager.NewManager(silent, k.numa, topologymanager.PolicyNone, "", nil)
	if err != nil {
		return err
	}
	k.Manager = manager
	k.active = nil
	devices := make([]*pluginapi.Device, 0, len(c.Gpus))
	for _, gpu := range c.Gpus {
		device := &pluginapi.Device{ID: gpu.ID, Health: pluginapi.Healthy}
		if gpu.Numa >= 0 {
			device.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(gpu.Numa)}}}
		}
		devices = append(devices, device)
	}
	k.devices.UpdateAllocatedDevices(silent)
	k.devices.PluginListAndWatchReceiver(silent, gpuKey, &pluginapi.ListAndWatchResponse{Devices: devices})
	for _, held := range c.Running {
		if err := k.run(c, held); err != nil {
			return err
		}
	}
	return nil
}

// A pod that holds these GPUs: the plugin names them, and nothing else is in the way.
func (k *Kubelet) run(c *Case, held []int) error {
	ids := sets.New[string]()
	k.plugin.order = nil
	for _, gpu := range held {
		ids.Insert(c.Gpus[gpu].ID)
		k.plugin.order = append(k.plugin.order, c.Gpus[gpu].ID)
	}
	pod := podOf(k.nextUID(), len(held))
	k.active = append(k.active, pod)
	container := &pod.Spec.Containers[0]
	if err := k.devices.Allocate(k.ctx, pod, container, lifecycle.AddOperation); err != nil {
		return fmt.Errorf("a running pod of %d GPUs: %w", len(held), err)
	}
	got := sets.New[string]()
	for id := range k.devices.GetDevices(string(pod.UID), container.Name)[gpuKey] {
		got.Insert(id)
	}
	if !got.Equal(ids) {
		return fmt.Errorf("expected the running pod on %v, found it on %v", sets.List(ids), sets.List(got))
	}
	return nil
}

func (k *Kubelet) nextUID() types.UID {
	k.pods++
	return types.UID(fmt.Sprint("uid-", k.pods))
}

func podOf(uid types.UID, gpus int) *corev1.Pod {
	amount := corev1.ResourceList{gpuKey: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: string(uid), UID: uid},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Limits: amount, Requests: amount}}}},
	}
}

// Admit asks as the kubelet's admission does, and forgets the pod again. `order` is how the plugin
// prefers GPUs; nil: it prefers none.
func (k *Kubelet) Admit(c *Case, options map[string]string, order []string) (lifecycle.PodAdmitResult, error) {
	manager, err := topologymanager.NewManager(silent, k.numa, c.Policy, c.Scope, options)
	if err != nil {
		return lifecycle.PodAdmitResult{}, err
	}
	manager.AddHintProvider(silent, k.devices)
	k.Manager = manager
	k.plugin.order = order
	pod := c.Pod.DeepCopy()
	pod.UID = k.nextUID()
	k.active = append(k.active, pod)
	result := manager.Admit(k.ctx, &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
	k.active = k.active[:len(k.active)-1]
	k.devices.UpdateAllocatedDevices(silent)
	return result, nil
}
