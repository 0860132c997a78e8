package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	autoscalerModule = "k8s.io/autoscaler/cluster-autoscaler/apis"
	provisioningPath = "/apis/autoscaling.x-k8s.io/v1/namespaces/%s/provisioningrequests"
	usesRequest      = "autoscaling.x-k8s.io/consume-provisioning-request"
)

// What the test reads of a ProvisioningRequest.
type provisioningRequest struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Class   string `json:"provisioningClassName"`
		PodSets []struct {
			PodTemplateRef struct {
				Name string `json:"name"`
			} `json:"podTemplateRef"`
			Count int `json:"count"`
		} `json:"podSets"`
	} `json:"spec"`
}

func (s *Scenario) requests() []provisioningRequest {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath(fmt.Sprintf(provisioningPath, s.namespace)).Do(s.ctx()).Raw()
	s.must(err)
	var list struct {
		Items []provisioningRequest `json:"items"`
	}
	s.must(json.Unmarshal(text, &list))
	return list.Items
}

// A gang without room is asked for by one request that an API server with cluster-autoscaler's own
// definition takes. The test says what cluster-autoscaler says, and brings the nodes.
func TestAGangIsAskedForAsAWhole(t *testing.T) {
	s := ownCluster(t, "asked", nil, StockNode("asked-0", 2))
	RunKubelet(t.Context(), s.Client)
	module, err := ModuleFolder("kueue", autoscalerModule)
	s.must(err)
	s.must(InstallCRDs(s.ctx(), s.Client, filepath.Join(module, "config", "crd")))
	s.must(BindRoles(s.ctx(), s.Client, []string{trancheUser}, "tranche-provisioning"))
	s.apply("GPUPolicy", "asked", "spec: {provisioning: AtomicScaleUp}")

	s.createAtOnce(s.crew("run", WholeCards(2), 3))
	asked := func() provisioningRequest {
		var found []provisioningRequest
		s.eventually(time.Minute, func() string {
			if found = s.requests(); len(found) != 1 {
				return fmt.Sprintf("expected one request, found %d", len(found))
			}
			return ""
		})
		return found[0]
	}
	request := asked()
	if request.Spec.Class != "best-effort-atomic-scale-up.autoscaling.x-k8s.io" {
		t.Errorf("expected the class of atomic scale-ups, found %s", request.Spec.Class)
	}
	count, owners := 0, len(request.OwnerReferences)
	for _, set := range request.Spec.PodSets {
		count += set.Count
		template, err := s.Client.CoreV1().PodTemplates(s.namespace).Get(s.ctx(), set.PodTemplateRef.Name, metav1.GetOptions{})
		s.must(err)
		gpus := template.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		if gpus.Value() != 2 || template.Template.Spec.NodeSelector[fleetKey] != s.fleet {
			t.Errorf("expected pods of two GPUs of this fleet, found %v", template.Template.Spec)
		}
	}
	if count != 3 || owners == 0 {
		t.Errorf("expected a request for 3 pods that is owned, found %d pods and %d owners", count, owners)
	}
	tell := func(name string) {
		s.eventually(time.Minute, func() string {
			for i := range 3 {
				if pod := s.get(fmt.Sprintf("run-%d", i)); pod.Annotations[usesRequest] != name {
					return fmt.Sprintf("expected %s to use request %q, found %q", pod.Name, name, pod.Annotations[usesRequest])
				}
			}
			return ""
		})
	}
	tell(request.Name)

	status := fmt.Sprintf(`{"status":{"conditions":[{"type":"Provisioned","status":"True","reason":"CapacityIsProvisioned",`+
		`"message":"nodes were asked for","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	s.must(RESTOf(s.Client).Patch(types.MergePatchType).
		AbsPath(fmt.Sprintf(provisioningPath, s.namespace), request.Name, "status").
		Body([]byte(status)).Do(s.ctx()).Error())
	s.eventually(time.Minute, func() string {
		events, err := s.Client.EventsV1().Events(s.namespace).List(s.ctx(), metav1.ListOptions{})
		s.must(err)
		for _, event := range events.Items {
			if event.Reason == "ProvisioningRequest" && slices.Contains([]string{"run-0", "run-1", "run-2"}, event.Regarding.Name) {
				return ""
			}
		}
		return "expected an event about the request, found none"
	})
	s.eventually(time.Minute, func() string {
		text := s.ask("/api/v1/explain/" + s.namespace + "/run-1")
		if !strings.Contains(text, `"provisioning":{"request":"`+request.Name+`","state":"provisioned"`) {
			return "expected explain to tell of the request, found " + text
		}
		return ""
	})
	s.addNode(StockNode("asked-1", 2))
	s.addNode(StockNode("asked-2", 2))
	s.eventually(planLag, func() string {
		for i := range 3 {
			if pod := s.get(fmt.Sprintf("run-%d", i)); pod.Status.Phase != corev1.PodRunning {
				return fmt.Sprintf("expected the gang to run, found %s %s", pod.Name, pod.Status.Phase)
			}
		}
		return ""
	})
	s.eventually(time.Minute, func() string {
		templates, err := s.Client.CoreV1().PodTemplates(s.namespace).List(s.ctx(), metav1.ListOptions{})
		s.must(err)
		if left := len(s.requests()) + len(templates.Items); left > 0 {
			return fmt.Sprintf("expected nothing to be left behind, found %d objects", left)
		}
		return ""
	})
	s.audit()
}
