package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
)

const (
	hamiPhaseKey = "hami.io/bind-phase"
	hamiLockKey  = "hami.io/mutex.lock"
)

// Kubelet plays the kubelets and the HAMi agents of all nodes: bound pods turn Running, Terminating
// ones are deleted when their grace is over, or when a scenario says that they have stopped. It acts
// on what it sees, again and again, so that an API server that is away only delays it.
type Kubelet struct {
	client kubernetes.Interface
	pods   listers.PodLister

	mutex   sync.Mutex
	aligned map[string]*NumaManager
}

// Align has a node's kubelet refuse pods whose GPUs no NUMA node of it can hold.
func (k *Kubelet) Align(node string, manager *NumaManager) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.aligned[node] = manager
}

func (k *Kubelet) managerOf(node string) *NumaManager {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.aligned[node]
}

// RunKubelet returns once the first list is complete; it ends with the context.
func RunKubelet(ctx context.Context, client kubernetes.Interface) *Kubelet {
	factory := informers.NewSharedInformerFactory(client, 0)
	kubelet := &Kubelet{client: client, pods: factory.Core().V1().Pods().Lister(),
		aligned: map[string]*NumaManager{}}
	factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		for ctx.Err() == nil {
			kubelet.sync(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return kubelet
}

// Failed calls are repeated by the next round.
func (k *Kubelet) sync(ctx context.Context) {
	pods, err := k.pods.List(labels.Everything())
	if err != nil {
		return
	}
	for _, pod := range pods {
		switch {
		case pod.Spec.NodeName == "":
		case pod.DeletionTimestamp != nil:
			if !time.Now().Before(pod.DeletionTimestamp.Time) {
				k.remove(ctx, pod)
			}
		case pod.Status.Phase == corev1.PodPending:
			k.admit(ctx, pod)
		}
	}
}

func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) {
	now := int64(0)
	_ = k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
}

func (k *Kubelet) admit(ctx context.Context, pod *corev1.Pod) {
	api := k.client.CoreV1().Pods(pod.Namespace)
	if manager := k.managerOf(pod.Spec.NodeName); manager != nil && !manager.Admit(pod) {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Failed","reason":"TopologyAffinityError"}}`, pod.UID)
		_, _ = api.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return
	}
	if pod.Annotations[hamiPhaseKey] == "allocating" {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"success"}}}`, pod.UID, hamiPhaseKey)
		if _, err := api.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			return
		}
		k.unlock(ctx, pod)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": running(pod)})
	if err != nil {
		panic(err) // a struct of plain fields always encodes
	}
	_, _ = api.Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// running is the status of a pod whose containers all start now.
func running(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	started := true
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}

// The agent takes the node's lock off when it has served the pod that holds it; it tries again where others
// have changed the node meanwhile.
func (k *Kubelet) unlock(ctx context.Context, pod *corev1.Pod) {
	for range 5 {
		node, err := k.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil || node.Annotations[hamiLockKey] == "" {
			return
		}
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}}}`,
			node.ResourceVersion, hamiLockKey)
		if _, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); !apierrors.IsConflict(err) {
			return
		}
	}
}
