package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Kueue's definitions, from its Go module.
const (
	kueueModule = "sigs.k8s.io/kueue@v0.17.0"
	kueueSum    = "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I="
)

// What is exported, whatever it is made of: a tree with limits, weights and pools, selectors of both
// kinds, several products of a model.
const kueueQuotas = `
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: org}
spec: {lines: [{model: h100, nominal: {gpus: 2}}]}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: research}
spec: {parent: org, weight: 2, lines: [{model: h100, nominal: {gpus: 0}, borrowLimit: {gpus: 6}, lendLimit: {gpus: 4}}]}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: vision}
spec:
  parent: research
  weight: 3
  namespaceSelector: {matchLabels: {team: vision}, matchExpressions: [{key: retired, operator: DoesNotExist}]}
  lines:
    - {model: h100, nominal: {gpus: 8}, borrowLimit: {gpus: 4}, lendLimit: {gpus: 2}}
    - {model: h100, pool: spot, nominal: {gpus: "4.5"}}
    - {model: any, nominal: {gpus: 12}}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: alone}
spec: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}, lines: [{model: any, nominal: {gpus: 1}}]}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUPool
metadata: {name: spot}
spec: {nodes: {matchLabels: {tier: spot}}, capacity: Spot}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {team: vision}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
`

// kueueDefinitions is the folder of Kueue's definitions.
func kueueDefinitions(t *testing.T) string {
	t.Helper()
	text, err := exec.Command("go", "mod", "download", "-json", kueueModule).Output()
	var module struct{ Dir, Sum, Error string }
	if json.Unmarshal(text, &module) != nil || module.Error != "" || err != nil {
		t.Fatalf("expected the module %s, found %s (%v)", kueueModule, text, err)
	}
	if module.Sum != kueueSum {
		t.Fatalf("expected %s with the sum %s, found %s", kueueModule, kueueSum, module.Sum)
	}
	return filepath.Join(module.Dir, "config", "components", "crd", "bases")
}

// An API server that has Kueue's own definitions takes all that is exported, field by field.
func TestKueueTakesWhatIsExported(t *testing.T) {
	s := newScenario(t, "kueue")
	s.must(InstallCRDs(s.ctx(), s.Client, kueueDefinitions(t)))
	file := filepath.Join(t.TempDir(), "quotas.yaml")
	s.must(os.WriteFile(file, []byte(kueueQuotas), 0o600))
	text, err := exec.Command(s.tranchePath, "export", "kueue", "-f", file).Output()
	s.must(err)

	found := map[string]int{}
	for _, document := range bytes.Split(text, []byte("\n---\n"))[1:] {
		object, err := ReadObject(document)
		s.must(err)
		path := "/apis/kueue.x-k8s.io/v1beta2/"
		if object.Namespace != "" {
			path += "namespaces/" + object.Namespace + "/"
		}
		path += strings.ToLower(object.Kind) + "s"
		s.must(RESTOf(s.Client).Post().AbsPath(path).Param("dryRun", "All").
			Param("fieldValidation", "Strict").Body(object.JSON).Do(s.ctx()).Error())
		found[object.Kind]++
	}
	for kind, count := range map[string]int{"Cohort": 2, "ClusterQueue": 2, "LocalQueue": 2, "ResourceFlavor": 3} {
		if found[kind] != count {
			t.Errorf("expected %d of kind %s, found %d in:\n%s", count, kind, found[kind], text)
		}
	}
}
