package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	budgetPath = "/apis/tranche.dev/v1alpha1/gpubudgets"
	// A checkpoint a minute, written within half of one.
	checkpointLag = 100 * time.Second
)

type lostStatus struct {
	Used       string `json:"used"`
	Checkpoint struct {
		Ledger string    `json:"ledger"`
		Time   time.Time `json:"time"`
	} `json:"checkpoint"`
	Conditions []struct {
		Type, Status, Reason, Message string
	} `json:"conditions"`
}

func (s *Scenario) budgetStatus(name string) lostStatus {
	s.Helper()
	return s.checkpointedStatus(budgetPath, name)
}

// The status of a GPUBudget or GPUQuota.
func (s *Scenario) checkpointedStatus(path, name string) lostStatus {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath(path, name).Do(s.ctx()).Raw()
	s.must(err)
	var object struct {
		Status lostStatus `json:"status"`
	}
	s.must(json.Unmarshal(text, &object))
	return object.Status
}

// What a pod used that has ended is in the ledger alone. The ledger is lost; the API server has kept
// what the budget's status said.
func TestALostLedgerIsRestoredFromStatuses(t *testing.T) {
	s := newScenario(t, "lost", StockNode("lost-0", 8))
	s.labelNamespace("team", "lost")
	s.apply("GPUQuota", "lost", "spec: {namespaceSelector: {matchLabels: {team: lost}}, "+
		"lines: [{model: h100, nominal: {gpus: 8}}]}")
	s.apply("GPUBudget", "lost", "spec: {quotaRef: lost, gpuHours: 1000, window: {type: Rolling, duration: 24h}}")
	s.eventually(statusLag, func() string { return s.missingReady(budgetPath, "lost", "True") })
	s.create("ended", "", WholeCards(8))
	s.running("ended", soon)
	time.Sleep(20 * time.Second)
	s.delete("ended", 0)
	ended := time.Now()
	var kept lostStatus
	s.eventually(checkpointLag, func() string {
		kept = s.budgetStatus("lost")
		// Each status is written when it is due, the team's and the budget's not at one time.
		team := s.checkpointedStatus(quotaPath, "lost")
		if kept.Checkpoint.Time.After(ended) && team.Checkpoint.Time.After(ended) {
			return ""
		}
		return fmt.Sprintf("expected checkpoints after %s, found %+v and %+v", ended.UTC(), kept.Checkpoint,
			team.Checkpoint)
	})

	s.Tranche.Kill()
	files, err := filepath.Glob(s.Ledger + "*")
	s.must(err)
	hidden, err := filepath.Glob(filepath.Join(filepath.Dir(s.Ledger), "."+filepath.Base(s.Ledger)+"*"))
	s.must(err)
	for _, file := range append(files, hidden...) {
		s.must(os.RemoveAll(file))
	}
	s.must(s.Tranche.Start())
	s.must(s.waitReady(s.ctx(), s.Tranche, s.TrancheURL+"/readyz", "", 30*time.Second))

	s.eventually(checkpointLag, func() string {
		status := s.budgetStatus("lost")
		for _, condition := range status.Conditions {
			if condition.Type != "HistoryRestored" || condition.Status != "True" {
				continue
			}
			before, err := strconv.ParseFloat(kept.Used, 64)
			s.must(err)
			after, err := strconv.ParseFloat(status.Used, 64)
			s.must(err)
			if before < 0.04 || after < before-0.001 || after > before+0.001 {
				s.Fatalf("expected %v GPU-hours (8 GPUs for 20 s and more) to be kept, found %v", before, after)
			}
			if status.Checkpoint.Ledger == kept.Checkpoint.Ledger {
				return "expected a checkpoint of the new ledger, found the lost one's"
			}
			return ""
		}
		return fmt.Sprintf("expected HistoryRestored, found %+v", status.Conditions)
	})
	report, err := exec.Command(s.tranchePath, "ledger", "report", "--ledger", s.Ledger, "--leaf", "lost").CombinedOutput()
	if err != nil || !strings.Contains(string(report), "RESTORED") {
		t.Errorf("expected a report that tells what was restored, found %v:\n%s", err, report)
	}
	s.audit()
	s.ledgerVerifies()
}
