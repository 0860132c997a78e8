package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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

// An API server that has Kueue's own definitions takes all that is exported, field by field.
func TestKueueTakesWhatIsExported(t *testing.T) {
	s := newScenario(t, "kueue")
	manifests, err := KueueManifests()
	s.must(err)
	s.must(InstallCRDs(s.ctx(), s.Client, filepath.Join(manifests, "crd", "bases")))
	file := filepath.Join(t.TempDir(), "quotas.yaml")
	s.must(os.WriteFile(file, []byte(kueueQuotas), 0o600))
	text, err := exec.Command(s.tranchePath, "export", "kueue", "-f", file).Output()
	s.must(err)

	found := map[string]int{}
	for _, document := range bytes.Split(text, []byte("\n---\n"))[1:] {
		object, err := ReadObject(document)
		s.must(err)
		s.must(CreateObject(s.ctx(), s.Client, object, true))
		found[object.Kind]++
	}
	for kind, count := range map[string]int{"Cohort": 2, "ClusterQueue": 2, "LocalQueue": 2, "ResourceFlavor": 3} {
		if found[kind] != count {
			t.Errorf("expected %d of kind %s, found %d in:\n%s", count, kind, found[kind], text)
		}
	}
}
