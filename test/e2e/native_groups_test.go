package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// withGroups is a scenario in a cluster of its own, whose kube-scheduler places PodGroups.
func withGroups(t *testing.T, namespace string, nodes ...TestNode) *Scenario {
	t.Helper()
	programs := os.Getenv("CONTROLPLANE_BIN")
	if programs == "" {
		t.Skip("needs a control plane: set TRANCHE_BIN and CONTROLPLANE_BIN")
	}
	version, err := exec.Command(filepath.Join(programs, "kube-scheduler"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`v1\.(\d+)`).FindSubmatch(version)
	if number, err := strconv.Atoi(string(minor[1])); err != nil || number < 37 {
		t.Skipf("needs Kubernetes 1.37, which serves PodGroups as beta, found %s", version)
	}
	s := ownCluster(t, namespace, []string{"GenericWorkload"})
	RunKubelet(t.Context(), s.Client)
	s.labelNamespace("team", namespace)
	for _, node := range nodes {
		s.addNode(node)
	}
	return s
}

// nativeGroup creates a PodGroup and pods NAME-0, NAME-1, ... of one GPU in it.
func (s *Scenario) nativeGroup(name string, least, pods int) {
	s.Helper()
	s.post("/apis/scheduling.k8s.io/v1beta1/namespaces/"+s.namespace+"/podgroups", map[string]any{
		"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": least}}},
	})
	for i := range pods {
		pod := WholeCards(1).Pod(fmt.Sprintf("%s-%d", name, i), map[string]string{fleetKey: s.fleet})
		pod.Spec.SchedulerName = s.SchedulerName
		text, err := json.Marshal(pod)
		s.must(err)
		var object map[string]any
		s.must(json.Unmarshal(text, &object))
		// The client is older than the field.
		object["spec"].(map[string]any)["schedulingGroup"] = map[string]any{"podGroupName": name}
		s.post("/api/v1/namespaces/"+s.namespace+"/pods", object)
	}
}

func (s *Scenario) post(path string, object map[string]any) {
	s.Helper()
	text, err := json.Marshal(object)
	s.must(err)
	s.must(RESTOf(s.Client).Post().AbsPath(path).Body(text).Do(s.ctx()).Error())
}

func (s *Scenario) missingOfGroup(name string, pods, bound int) string {
	found := 0
	for i := range pods {
		if pod := s.get(fmt.Sprintf("%s-%d", name, i)); pod != nil && pod.Spec.NodeName != "" {
			found++
		}
	}
	if found != bound {
		return fmt.Sprintf("expected %d of %d pods of group %s to be bound, found %d", bound, pods, name, found)
	}
	return ""
}

func (s *Scenario) quotaOf(gpus int) {
	s.Helper()
	s.apply("GPUQuota", s.namespace, fmt.Sprintf("spec: {namespaceSelector: {matchLabels: {team: %s}}, "+
		"lines: [{model: h100, nominal: {gpus: %d}, borrowLimit: {gpus: 0}}]}", s.namespace, gpus))
	s.eventually(statusLag, func() string {
		if found := s.nominalOf(s.namespace); found != strconv.Itoa(gpus) {
			return fmt.Sprintf("expected a quota of %d GPUs in force, found %s", gpus, found)
		}
		return ""
	})
}

// kube-scheduler asks for all pods of a group before it binds one.
func TestAGroupOfKubeSchedulerIsBoundWholeOrNotAtAll(t *testing.T) {
	s := withGroups(t, "groups", StockNode("groups-0", 8))
	s.quotaOf(2)
	s.nativeGroup("train", 4, 4)
	s.waits("train-0", "", 0)
	s.holds(6*time.Second, func() string { return s.missingOfGroup("train", 4, 0) })
	s.quotaOf(4)
	s.eventually(time.Minute, func() string { return s.missingOfGroup("train", 4, 4) })

	// Enough of a group may start.
	s.quotaOf(6)
	s.nativeGroup("elastic", 2, 4)
	s.eventually(time.Minute, func() string { return s.missingOfGroup("elastic", 4, 2) })
	s.holds(6*time.Second, func() string { return s.missingOfGroup("elastic", 4, 2) })
	s.audit()
}
