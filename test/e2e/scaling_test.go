package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// Of two pods of a ReplicaSet the older one stands alone on a large node. By itself Kubernetes would take
// the younger one away; it is told which of them frees a node, and takes that. Tranche has no right on
// pods for it but the one on their status.
func TestAScaleDownTakesThePodThatFreesTheMost(t *testing.T) {
	s := ownCluster(t, "scaled", nil, StockNode("scaled-large", 4))
	RunKubelet(t.Context(), s.Client)
	s.apply("GPUPolicy", "scaled", `spec: {deletionCost: "On"}`)
	controllers, err := s.StartControllers(s.ctx(), workloadControllers)
	s.must(err)
	s.Cleanup(func() { controllers.Stop(15 * time.Second) })

	labels, one := map[string]string{"app": "web"}, int32(1)
	pod := WholeCards(1).Pod("", map[string]string{fleetKey: s.fleet})
	pod.Spec.SchedulerName = s.SchedulerName
	sets := s.Client.AppsV1().ReplicaSets(s.namespace)
	_, err = sets.Create(s.ctx(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}}},
		metav1.CreateOptions{})
	s.must(err)
	scale := func(replicas int) {
		_, err := sets.Patch(s.ctx(), "web", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)), metav1.PatchOptions{})
		s.must(err)
	}
	// Where its pods run, and what they cost there.
	costs := func() string {
		var texts []string
		for _, node := range []string{"scaled-large", "scaled-small"} {
			for _, pod := range s.list() {
				if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
					texts = append(texts, fmt.Sprintf("%s:%s", node, pod.Annotations[deletionCost]))
				}
			}
		}
		return strings.Join(texts, " ")
	}
	becomes := func(want string, limit time.Duration) {
		s.eventually(limit, func() string {
			if found := costs(); found != want {
				return fmt.Sprintf("expected pods at %q, found %q", want, found)
			}
			return ""
		})
	}
	becomes("scaled-large:", planLag)
	s.patchNode("scaled-large", `{"spec":{"unschedulable":true}}`)
	s.addNode(StockNode("scaled-small", 1))
	scale(2)
	becomes("scaled-large: scaled-small:", planLag)
	s.patchNode("scaled-large", `{"spec":{"unschedulable":false}}`)

	becomes("scaled-large:-310 scaled-small:-10", 4*time.Minute)
	scale(1)
	becomes("scaled-small:-10", planLag)
	s.apply("GPUPolicy", "scaled", `spec: {deletionCost: "Off"}`)
	becomes("scaled-small:", 3*time.Minute)
	s.audit()
}
