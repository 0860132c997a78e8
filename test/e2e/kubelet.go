package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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
// ones are deleted when their grace is over. It acts on what it sees, again and again, so that an
// API server that is away only delays it.
type Kubelet struct {
	client kubernetes.Interface
	pods   listers.PodLister
}

// RunKubelet returns once the first list is complete; it ends with the context.
func RunKubelet(ctx context.Context, client kubernetes.Interface) *Kubelet {
	factory := informers.NewSharedInformerFactory(client, 0)
	kubelet := &Kubelet{client: client, pods: factory.Core().V1().Pods().Lister()}
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
	if pod.Annotations[hamiPhaseKey] == "allocating" {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"success"}}}`, pod.UID, hamiPhaseKey)
		if _, err := api.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			return
		}
		k.unlock(ctx, pod)
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","startTime":%q,"conditions":[`+
		`{"type":"PodScheduled","status":"True","lastTransitionTime":%q},`+
		`{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`, pod.UID, now, now, now)
	_, _ = api.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
}

// The agent takes the node's lock off when it has served the pod that holds it.
func (k *Kubelet) unlock(ctx context.Context, pod *corev1.Pod) {
	node, err := k.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil || node.Annotations[hamiLockKey] == "" {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}}}`,
		node.ResourceVersion, hamiLockKey)
	_, _ = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
}
