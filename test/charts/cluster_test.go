package charts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"tranche.dev/test/e2e"
)

// Kinds of operators the test cluster does not run. Their fields are checked by objects_test.go.
var operatorKinds = []e2e.ForeignKind{
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor", Plural: "servicemonitors", Scope: "Namespaced"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule", Plural: "prometheusrules", Scope: "Namespaced"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Certificate", Plural: "certificates", Scope: "Namespaced"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Issuer", Plural: "issuers", Scope: "Namespaced"},
}

// Site is a real API server with the chart's definitions, and what Helm needs to talk to it.
type Site struct {
	*testing.T
	*e2e.ControlPlane
	dir     string
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

// newSite skips the test without the programs.
func newSite(t *testing.T) *Site {
	t.Helper()
	programs := os.Getenv("CONTROLPLANE_BIN")
	if programs == "" {
		t.Skip("needs a control plane: set CONTROLPLANE_BIN")
	}
	ctx, dir := t.Context(), t.TempDir()
	plane, err := e2e.StartAPIServer(ctx, dir, programs)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of all logs:\n%s", plane.LogTails())
		}
		plane.Stop()
	})
	must(t, e2e.InstallCRDs(ctx, plane.Client, filepath.Join(Folder, "crds")))
	for _, kind := range operatorKinds {
		must(t, kind.Install(ctx, plane.Client))
	}
	for _, name := range []string{Namespace, "gpu-operator", "tranche-probe", "tranche-reservation"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := plane.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		must(t, err)
	}
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	must(t, err)
	return &Site{t, plane, dir, client,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(plane.Client.Discovery()))}
}

// GetClientFor is Helm's way to look into the cluster.
func (s *Site) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	mapping, err := s.mapper.RESTMapping(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind())
	if err != nil {
		return nil, false, err
	}
	return s.dynamic.Resource(mapping.Resource), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// apply sends the object as `kubectl apply --server-side` does; unknown fields are refused.
func (s *Site) apply(ctx context.Context, object Object, dryRun ...string) error {
	resource, namespaced, err := s.GetClientFor(object.GetAPIVersion(), object.GetKind())
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = resource
	if namespaced {
		if object.GetNamespace() == "" {
			return fmt.Errorf("expected a namespace, found none")
		}
		client = resource.Namespace(object.GetNamespace())
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "helm", Force: &force, DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// The API server takes every object of every values set, and of the static manifests.
func TestEveryObjectIsTakenByTheAPIServer(t *testing.T) {
	s := newSite(t)
	sets := map[string][]Object{}
	for name, values := range valuesSets(t) {
		objects, _, err := Render(Folder, values, Options{Client: s})
		must(t, err)
		sets[name] = objects
	}
	for _, name := range []string{"rbac.yaml", "install.yaml", "webhook.yaml", "probe.yaml", "reservation.yaml", "result-keys.yaml"} {
		text, err := os.ReadFile(filepath.Join(Folder, "..", name))
		must(t, err)
		// In place of the CA, any base64 will do here.
		whole := strings.ReplaceAll(string(text), "CA_BUNDLE", "b3VyIGNh")
		objects, _, err := split("tranche", map[string]string{name: whole})
		must(t, err)
		sets[name] = objects
	}
	for name, objects := range sets {
		t.Run(name, func(t *testing.T) {
			if len(objects) == 0 {
				t.Error("expected objects, found none")
			}
			for _, object := range objects {
				if err := s.apply(t.Context(), object, metav1.DryRunAll); err != nil {
					t.Errorf("%s: %v", object.Name(), err)
				}
			}
		})
	}
	// What this test would notice.
	wrong := *find(sets["default"], "Deployment/tranche")
	wrong.Unstructured = wrong.DeepCopy()
	wrong.Object["spec"].(map[string]any)["replica"] = int64(2)
	if err := s.apply(t.Context(), wrong, metav1.DryRunAll); err == nil {
		t.Error("expected a field that does not exist to be refused, found it taken")
	}
}

// What the chart renders for a cluster, run as processes with the accounts it makes, schedules pods.
func TestInstalledChartSchedulesPods(t *testing.T) {
	s := newSite(t)
	tranche := os.Getenv("TRANCHE_BIN")
	if tranche == "" {
		t.Skip("needs the program: set TRANCHE_BIN")
	}
	// Services have no addresses here, so that the API server cannot ask the webhook; test/e2e does that.
	values := parse(t, "webhook: {enabled: false}\n"+
		"objects: {gpuQuotas: {team: {namespaceSelector: {matchLabels: {team: a}}, lines: [{model: h100, nominal: {gpus: 3}}]}}}")
	objects := s.install(values)
	upgraded, _, err := Render(Folder, values, Options{Client: s, Upgrade: true})
	must(t, err)
	if at(t, find(upgraded, serverSecret), ".data") != at(t, find(objects, serverSecret), ".data") {
		t.Error("expected an upgrade to find the certificates in the cluster and keep them, found others")
	}

	server := s.runServer(objects, tranche)
	scheduler := s.runScheduler(objects, server)
	s.rejectsStrangers(server)

	ctx := t.Context()
	node := e2e.StockNode("gpu-0", 8)
	_, err = s.Client.CoreV1().Nodes().Create(ctx, node.Object, metav1.CreateOptions{})
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"team": "a"}}}
	_, err = s.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	must(t, err)
	for _, name := range []string{"first", "second", "over-quota"} {
		ask := e2e.WholeCards(2)
		if name == "second" {
			ask = e2e.WholeCards(1)
		}
		pod := ask.Pod(name, nil)
		pod.Spec.SchedulerName = "gpu-scheduler"
		pod.Spec.PriorityClassName = "gpu-training"
		_, err = s.Client.CoreV1().Pods("team-a").Create(ctx, pod, metav1.CreateOptions{})
		must(t, err)
		if name == "over-quota" {
			s.eventually(name, func(pod *corev1.Pod) bool { return waitsForQuota(pod) })
			continue
		}
		s.eventually(name, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "gpu-0" })
		bound, err := s.Client.CoreV1().Pods("team-a").Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		allocation, err := e2e.AllocationOf(bound)
		must(t, err)
		if len(allocation.Devices()) != int(ask.Limits["nvidia.com/gpu"]) {
			t.Errorf("%s: expected %v devices, found %+v", name, ask.Limits, allocation)
		}
	}
	if said, err := s.helmTest(objects, server, tranche); err != nil {
		t.Errorf("helm test: expected sound books, found %v: %s", err, said)
	}
	must(t, s.Client.RbacV1().ClusterRoleBindings().Delete(ctx, "tranche-test", metav1.DeleteOptions{}))
	for _, process := range []*e2e.Process{server.process, scheduler} {
		noRefusals(t, process)
	}
	if code := server.process.Stop(15 * time.Second); code != 0 {
		t.Errorf("expected tranche to end with 0, found %d", code)
	}
	if _, err := os.Stat(filepath.Join(server.mounts["/var/lib/tranche"], "ledger.db")); err != nil {
		t.Errorf("expected a ledger on the volume, found %v", err)
	}
}

func (s *Site) install(values map[string]any) []Object {
	s.Helper()
	objects, _, err := Render(Folder, values, Options{Client: s})
	must(s.T, err)
	for _, object := range objects {
		if err := s.apply(s.Context(), object); err != nil {
			s.Fatalf("%s: %v", object.Name(), err)
		}
	}
	return objects
}

func (s *Site) eventually(pod string, done func(*corev1.Pod) bool) {
	s.Helper()
	var last *corev1.Pod
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		found, err := s.Client.CoreV1().Pods("team-a").Get(s.Context(), pod, metav1.GetOptions{})
		must(s.T, err)
		if last = found; done(found) {
			return
		}
	}
	s.Fatalf("pod %s: expected it to be placed, or to wait, as it should; found node %q, conditions %v", pod,
		last.Spec.NodeName, last.Status.Conditions)
}

func waitsForQuota(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == "tranche.dev/Waiting" && condition.Reason == "WaitingForQuota" {
			return pod.Spec.NodeName == ""
		}
	}
	return false
}
