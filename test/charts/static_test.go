package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

// The manifests in charts/ are those of the chart.
func TestStaticManifestsAreCurrent(t *testing.T) {
	files, err := Static(Folder)
	must(t, err)
	if len(files) != 6 {
		t.Errorf("expected six manifests, found %d", len(files))
	}
	for name, expected := range files {
		found, err := os.ReadFile(filepath.Join(Folder, "..", name))
		must(t, err)
		if string(found) != expected {
			t.Errorf("charts/%s: expected what the chart says, found another text; run charts/render.sh", name)
		}
	}
}

// What differs from `tranche scheduler-config` is what a cluster decides.
func TestSchedulerConfigurationIsTheProgramsOwn(t *testing.T) {
	tranche := os.Getenv("TRANCHE_BIN")
	if tranche == "" {
		t.Skip("needs the program: set TRANCHE_BIN")
	}
	for _, nodes := range []int{0, 1, 1000, 1001, 3000, 5000, 30000, 100000} {
		flags := []string{"scheduler-config", "--server", "https://tranche.tranche-system.svc:443",
			"--ca-file", "/etc/tranche/client/ca.crt", "--cert-file", "/etc/tranche/client/tls.crt",
			"--key-file", "/etc/tranche/client/tls.key"}
		var values map[string]any
		if nodes > 0 {
			flags = append(flags, "--nodes", strconv.Itoa(nodes))
			values = map[string]any{"scheduler": map[string]any{"nodes": nodes}}
		}
		text, err := exec.Command(tranche, flags...).Output()
		must(t, err)
		expected := parse(t, string(text))
		found := configOf(t, find(render(t, values), "ConfigMap/tranche-scheduler"), "scheduler.yaml").Object
		// The chart's account is known to the pod, and its Lease lies beside it.
		delete(expected["clientConnection"].(map[string]any), "kubeconfig")
		expected["leaderElection"] = map[string]any{"leaderElect": true, "resourceNamespace": Namespace,
			"resourceName": "tranche-scheduler"}
		if !equality.Semantic.DeepEqual(expected, found) {
			t.Errorf("%d nodes: expected\n%v\nfound\n%v", nodes, expected, found)
		}
	}
}
