package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bench/peers/burst.py times pods of two styles in turns, and leaves nothing behind.
func TestBurstsOfPeersAreTimed(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("needs kubectl")
	}
	s := newScenario(t, "peers", StockNode("peers-0", 8), StockNode("peers-1", 8))
	dir := t.TempDir()
	kubeconfig, own, out := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "two.json"), filepath.Join(dir, "out.json")
	s.must(os.WriteFile(kubeconfig, s.AdminKubeconfig(), 0o600))
	s.must(os.WriteFile(own, []byte(`{"limits": {"nvidia.com/gpu": 2}, "labels": {"part": "{percent}"}}`), 0o600))
	burst := func(arguments ...string) (string, int) {
		command := exec.CommandContext(s.ctx(), "python3", append([]string{"-B", "../../bench/peers/burst.py",
			"--kubectl", kubectl, "--kubeconfig", kubeconfig, "--pause", "0", "--node-selector", fleetKey + "=" + s.fleet},
			arguments...)...)
		text, _ := command.CombinedOutput()
		return string(text), command.ProcessState.ExitCode()
	}

	text, code := burst("--arm", "whole="+s.SchedulerName+":whole", "--arm", "two="+s.SchedulerName+":"+own,
		"--pods", "8", "--rounds", "2", "--process", fmt.Sprintf("tranche=%d", s.Tranche.cmd.Process.Pid), "--out", out)
	if code != 0 {
		t.Fatalf("expected every pod to be bound, found %d: %s", code, text)
	}
	var document struct {
		Nodes  int
		Rounds []struct {
			Arm               string
			Bound             int
			PodsPerSecond     float64
			ProcessorMsPerPod map[string]float64
		}
	}
	written, err := os.ReadFile(out)
	s.must(err)
	s.must(json.Unmarshal(written, &document))
	arms := []string{}
	for _, round := range document.Rounds {
		arms = append(arms, round.Arm)
		if round.Bound != 8 || round.PodsPerSecond <= 0 || round.ProcessorMsPerPod["tranche"] < 0 {
			t.Errorf("expected 8 bound pods at some pace, found %+v", round)
		}
	}
	if found := strings.Join(arms, " "); found != "whole two whole two" || document.Nodes < 2 {
		t.Errorf("expected the arms in turns, found %q on %d nodes", found, document.Nodes)
	}

	text, code = burst("--arm", "many="+s.SchedulerName+":whole", "--pods", "20", "--rounds", "1", "--patience", "3")
	if code != 1 || !strings.Contains(text, " 16 ") {
		t.Errorf("expected 16 of 20 pods on 16 GPUs and exit code 1, found %d: %s", code, text)
	}
	for arm, expected := range map[string]string{"nobody": "NAME=SCHEDULER:STYLE", "a=b:absent.json": "absent.json"} {
		if text, code = burst("--arm", arm); code != 2 || !strings.Contains(text, expected) {
			t.Errorf("expected exit code 2 and %q, found %d: %s", expected, code, text)
		}
	}
	list, err := s.Client.CoreV1().Namespaces().List(s.ctx(), metav1.ListOptions{})
	s.must(err)
	for _, namespace := range list.Items {
		if strings.HasPrefix(namespace.Name, "peers-") && namespace.DeletionTimestamp == nil {
			t.Errorf("expected no namespace of the script, found %s", namespace.Name)
		}
	}
	if _, err = s.Client.CoreV1().Namespaces().Get(s.ctx(), s.namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("expected the other namespaces to stay")
	}
}
