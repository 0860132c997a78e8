package charts

import (
	"fmt"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// route is a values set of its own: the cluster of other tests has no Gateway API.
const route = "httpRoute: {enabled: true, parentRefs: [{name: public, namespace: gateways, sectionName: https}], " +
	"hostnames: [gpus.example.com]}"

// Every object has only fields that its kind has, also those of the Prometheus operator, of
// cert-manager and of the Gateway API, which the test cluster does not run.
func TestFieldsAreThoseOfTheirKinds(t *testing.T) {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, certmanager.AddToScheme,
		monitoring.AddToScheme, gateway.Install} {
		must(t, add(kinds))
	}
	decoder := serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer()
	decoded := map[string]int{}
	sets := valuesSets(t)
	sets["route"] = parse(t, route)
	for name, values := range sets {
		for _, object := range render(t, values) {
			if object.GroupVersionKind().Group == "tranche.dev" {
				continue // the API server judges these, see cluster_test.go
			}
			if _, _, err := decoder.Decode([]byte(object.Text), nil, nil); err != nil {
				t.Errorf("%s: %s: %v", name, object.Name(), err)
			}
			decoded[object.GetKind()]++
		}
	}
	for _, kind := range []string{"Deployment", "DaemonSet", "NetworkPolicy", "Certificate", "ServiceMonitor",
		"Ingress", "HTTPRoute"} {
		if decoded[kind] == 0 {
			t.Errorf("expected a %s among what was looked at, found %s", kind, fmt.Sprint(decoded))
		}
	}
}

// Selectors find the pods they are for, and no others.
func TestSelectorsMeetTheirPods(t *testing.T) {
	tests := []struct{ selector, path, pods string }{
		{"Service/tranche", ".spec.selector", "Deployment/tranche"},
		{"Service/tranche-replicas", ".spec.selector", "Deployment/tranche"},
		{"PodDisruptionBudget/tranche", ".spec.selector.matchLabels", "Deployment/tranche"},
		{"PodDisruptionBudget/tranche-scheduler", ".spec.selector.matchLabels", "Deployment/tranche-scheduler"},
		{"NetworkPolicy/tranche", ".spec.podSelector.matchLabels", "Deployment/tranche"},
		{"NetworkPolicy/tranche-scheduler", ".spec.podSelector.matchLabels", "Deployment/tranche-scheduler"},
		{"NetworkPolicy/tranche-probe", ".spec.podSelector.matchLabels", "DaemonSet/tranche-probe"},
		{"Deployment/tranche", ".spec.selector.matchLabels", "Deployment/tranche"},
		{"Deployment/tranche-scheduler", ".spec.selector.matchLabels", "Deployment/tranche-scheduler"},
		{"DaemonSet/tranche-probe", ".spec.selector.matchLabels", "DaemonSet/tranche-probe"},
		{"NetworkPolicy/tranche-agent", ".spec.podSelector.matchLabels", "DaemonSet/tranche-agent"},
		{"DaemonSet/tranche-agent", ".spec.selector.matchLabels", "DaemonSet/tranche-agent"},
	}
	objects := render(t, parse(t, "probe: {enabled: true}\nagent: {enabled: true}"))
	templates := podTemplates(t, objects)
	for _, test := range tests {
		selector := parse(t, at(t, find(objects, test.selector), test.path))
		if len(selector) == 0 {
			t.Errorf("%s: expected a selector, found none", test.selector)
		}
		for name, pod := range templates {
			matches := true
			for key, value := range selector {
				matches = matches && pod.Labels[key] == value
			}
			if matches != (name == test.pods) {
				t.Errorf("%s: expected to select %s alone, found %s selected: %v", test.selector, test.pods, name, matches)
			}
		}
	}
}

// Ports and volumes that are named are there.
func TestNamesInPodsAreDefined(t *testing.T) {
	for set, values := range valuesSets(t) {
		objects := render(t, values)
		for name, pod := range podTemplates(t, objects) {
			// In the namespace of the pods, which its name has where it is not the release's.
			_, place, _ := strings.Cut(name, "/")
			place = place[:strings.LastIndex(place, "/")+1]
			volumes := map[string]bool{}
			for _, volume := range pod.Spec.Volumes {
				volumes[volume.Name] = false
				if volume.ConfigMap != nil && find(objects, "ConfigMap/"+place+volume.ConfigMap.Name) == nil {
					t.Errorf("%s: %s: expected ConfigMap %s, found none", set, name, volume.ConfigMap.Name)
				}
			}
			for _, container := range pod.Spec.Containers {
				for _, mount := range container.VolumeMounts {
					if _, known := volumes[mount.Name]; !known {
						t.Errorf("%s: %s: expected volume %s, found none", set, name, mount.Name)
					}
					volumes[mount.Name] = true
				}
			}
			for volume, used := range volumes {
				if !used {
					t.Errorf("%s: %s: volume %s is mounted nowhere", set, name, volume)
				}
			}
		}
	}
}
