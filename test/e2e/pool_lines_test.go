package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// What a quota's status says of one line.
type lineStatus struct {
	Model, Pool, Nominal string
	Used                 struct{ Gpus string }
}

// A line of a pool stands beside that of the model, also for the API server's own merging of lists.
func TestLinesOfAPool(t *testing.T) {
	spot := StockNode("lines-spot", 4)
	spot.Object.Labels["tier"] = "spot"
	s := newScenario(t, "lines", StockNode("lines-demand", 4), spot)
	s.labelNamespace("team", "lines")
	s.apply("GPUPool", "lines-spot", "spec: {nodes: {matchLabels: {tier: spot}}}")
	s.apply("GPUQuota", "lines", "spec: {namespaceSelector: {matchLabels: {team: lines}}, lines: ["+
		"{model: h100, nominal: {gpus: 1}}, {model: H100, pool: lines-spot, nominal: {gpus: 2}}]}")
	s.eventually(statusLag, func() string { return s.missingReady(quotaPath, "lines", "True") })

	for i := range 3 {
		name := fmt.Sprint("own-", i)
		ask := WholeCards(1)
		ask.Annotations = map[string]string{"tranche.dev/expected-runtime": "1h"}
		s.create(name, "", ask)
		s.running(name, soon)
	}
	s.create("more", "", WholeCards(1))
	s.waits("more", noSurplus, time.Second)
	s.startIsForetold("more")
	s.columnsSay(Row{"Name": "lines", "NOMINAL": "1 h100, 2 h100@lines-spot", "USED": "1 h100, 2 h100@lines-spot"})
	s.eventually(statusLag, func() string {
		text, err := RESTOf(s.Client).Get().AbsPath(quotaPath, "lines").Do(s.ctx()).Raw()
		s.must(err)
		var quota struct{ Status struct{ Lines []lineStatus } }
		s.must(json.Unmarshal(text, &quota))
		if found := fmt.Sprint(quota.Status.Lines); found != "[{h100  1 {1}} {h100 lines-spot 2 {2}}]" {
			return "expected a line of the model and one of the pool, found " + found
		}
		return ""
	})

	// Applied without one of the lines, that one is gone, and the other stays.
	s.apply("GPUQuota", "lines", "spec: {namespaceSelector: {matchLabels: {team: lines}}, lines: ["+
		"{model: h100, nominal: {gpus: 4}}]}")
	s.running("more", soon)
	s.columnsSay(Row{"Name": "lines", "NOMINAL": "4 h100", "USED": "4 h100"})
	s.audit()
	s.ledgerVerifies()
}

// The view of the pod's namespace says when it is expected: about an hour from now, when the others
// end as they declared. It is written at most every 30 seconds.
func (s *Scenario) startIsForetold(pod string) {
	s.Helper()
	s.eventually(time.Minute, func() string {
		text, err := RESTOf(s.Client).Get().AbsPath(fmt.Sprintf(viewsPath, s.namespace), "view").Do(s.ctx()).Raw()
		s.must(err)
		var view struct {
			Status struct {
				ExpectedStarts []struct {
					Pod          string
					From, At, To time.Time
				}
			}
		}
		s.must(json.Unmarshal(text, &view))
		for _, start := range view.Status.ExpectedStarts {
			away := time.Until(start.At)
			if start.Pod == pod && away > 30*time.Minute && away < 90*time.Minute && !start.From.After(start.At) &&
				!start.To.Before(start.At) {
				return ""
			}
		}
		return fmt.Sprintf("expected that %s starts in an hour, found %v", pod, view.Status.ExpectedStarts)
	})
}
