package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// editQuota applies the quota of the scenario's name, or only tries to, by one who agrees to so many
// evictions; the warnings that kubectl would print.
func (s *Scenario) editQuota(dryRun bool, agreed int, spec string) ([]string, error) {
	s.Helper()
	object, err := ReadObject([]byte(fmt.Sprintf("{apiVersion: tranche.dev/v1alpha1, kind: GPUQuota, metadata: {name: %s, "+
		"annotations: {tranche.dev/accept-evictions: \"%d\"}}, %s}", s.namespace, agreed, spec)))
	s.must(err)
	request := RESTOf(s.Client).Patch(applyType).AbsPath(object.path()).Param("fieldManager", "admin").Body(object.JSON)
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	result := request.Do(s.ctx())
	var warnings []string
	for _, warning := range result.Warnings() {
		warnings = append(warnings, warning.Text)
	}
	return warnings, result.Error()
}

// An admin who lowers a quota learns from the API server how many pods that evicts; under a policy
// that refuses such edits it takes an annotation that says so many.
func TestEditsThatEvictAreToldBeforeTheyAreMade(t *testing.T) {
	s := newScenario(t, "edits", StockNode("edits-0", 4))
	s.labelNamespace("team", s.namespace)
	quota := func(gpus int) string {
		return fmt.Sprintf("spec: {namespaceSelector: {matchLabels: {team: %s}}, reclaim: {onShrink: Reclaim}, "+
			"lines: [{model: h100, nominal: {gpus: %d}, borrowLimit: {gpus: 0}}]}", s.namespace, gpus)
	}
	s.apply("GPUQuota", s.namespace, quota(2))
	s.withWebhook()
	for _, name := range []string{"first", "second"} {
		s.create(name, "", WholeCards(1))
		s.running(name, soon)
	}
	told := func(gpus int, expected string) string {
		warnings, err := s.editQuota(true, 0, quota(gpus))
		s.must(err)
		if found := strings.Join(warnings, "; "); found != expected {
			return fmt.Sprintf("quota of %d: expected the warning %q, found %q", gpus, expected, found)
		}
		return ""
	}
	s.eventually(30*time.Second, func() string {
		return told(1, "1 pod would be evicted at once; tranche plan -f says which")
	})
	s.eventually(soon, func() string { return told(3, "") })

	s.apply("GPUPolicy", s.namespace, fmt.Sprintf(
		"spec: {evictingEdits: Refuse, selector: {namespaces: {matchLabels: {team: %s}}}}", s.namespace))
	s.eventually(statusLag, func() string {
		_, err := s.editQuota(true, 0, quota(1))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `tranche.dev/accept-evictions: "1"`) {
			return fmt.Sprintf("expected a refusal that names the annotation, found %v", err)
		}
		return ""
	})
	s.holds(2*time.Second, func() string { return s.missingLeaving(nil) })

	// With it the edit is made, and does what was said.
	_, err := s.editQuota(false, 1, quota(1))
	s.must(err)
	// One that was told to leave may be gone a moment later.
	s.eventually(time.Minute, func() string {
		if here := len(s.list()) - len(s.leaving()); here != 1 {
			return fmt.Sprintf("expected one of two pods to stay, found %d; reclaims %s", here, s.ask("/api/v1/reclaims"))
		}
		return ""
	})
	s.holds(2*time.Second, func() string {
		if here := len(s.list()) - len(s.leaving()); here != 1 {
			return fmt.Sprintf("expected one of two pods to stay, found %d", here)
		}
		return ""
	})
}
