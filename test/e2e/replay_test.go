package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// What a replay says of one course of things, of a team.
type courseOfTeam struct {
	Pods            int     `json:"pods"`
	Started         int     `json:"started"`
	WaitMeanSeconds float64 `json:"waitMeanSeconds"`
}

type replayOfTeam struct {
	Team     string        `json:"team"`
	Happened courseOfTeam  `json:"happened"`
	Replayed courseOfTeam  `json:"replayed"`
	Edited   *courseOfTeam `json:"edited"`
}

// replay lives again what happened since, in the control plane of all scenarios; the team's part.
func (s *Scenario) replay(since time.Time, edits string) replayOfTeam {
	s.Helper()
	file := filepath.Join(s.TempDir(), "edits.yaml")
	s.must(os.WriteFile(file, []byte(edits), 0o600))
	command := exec.Command(s.tranchePath, "replay", "--ledger", s.Ledger, "--since", since.UTC().Format(time.RFC3339),
		"--with", file, "-o", "json")
	command.Stderr = os.Stderr
	text, err := command.Output()
	s.must(err)
	var answer struct {
		Complete bool           `json:"complete"`
		Teams    []replayOfTeam `json:"teams"`
	}
	s.must(json.Unmarshal(text, &answer))
	if !answer.Complete {
		s.Errorf("expected a replay to its end, found %s", text)
	}
	for _, team := range answer.Teams {
		if team.Team == s.namespace {
			return team
		}
	}
	s.Fatalf("expected team %s, found %s", s.namespace, text)
	return replayOfTeam{}
}

// Two pods under a quota of one GPU: the second waits for the end of the first. What kube-scheduler
// and the kubelets did is recorded; with a quota of two nobody would have waited.
func TestWhatHappenedIsLivedAgainWithAnotherQuota(t *testing.T) {
	s := newScenario(t, "replay", StockNode("replay-0", 4))
	s.labelNamespace("team", s.namespace)
	s.quotaOf(1)
	begun := time.Now().Add(-time.Second)
	s.create("first", "", WholeCards(1))
	s.running("first", soon)
	s.create("second", "", WholeCards(1))
	s.waits("second", "", 5*time.Second)
	s.delete("first", 0)
	s.running("second", time.Minute)

	edits := fmt.Sprintf("apiVersion: tranche.dev/v1alpha1\nkind: GPUQuota\nmetadata: {name: %[1]s}\n"+
		"spec: {namespaceSelector: {matchLabels: {team: %[1]s}}, lines: [{model: h100, nominal: {gpus: 2}}]}\n", s.namespace)
	// News of pods reach the file within seconds.
	s.eventually(30*time.Second, func() string {
		found := s.replay(begun, edits)
		for _, course := range []courseOfTeam{found.Happened, found.Replayed, *found.Edited} {
			if course.Pods != 2 || course.Started != 2 {
				return fmt.Sprintf("expected two pods that start, found %+v and edited %+v", found, *found.Edited)
			}
		}
		// The mean of two, of which the first hardly waited.
		if found.Happened.WaitMeanSeconds < 2 || found.Replayed.WaitMeanSeconds < 2 || found.Edited.WaitMeanSeconds > 0 {
			s.Fatalf("expected waits that another quota would have spared, found %+v and edited %+v", found, *found.Edited)
		}
		return ""
	})
	s.ledgerVerifies()
}
