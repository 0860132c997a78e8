package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The cluster all scenarios share; each brings its own nodes and namespace.
var (
	shared   *ControlPlane
	kubelets *Kubelet
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// TRANCHE_BIN is the program under test, CONTROLPLANE_BIN the folder build.sh printed. Without them
// only the tests that need no cluster run.
func run(m *testing.M) int {
	tranche, programs := os.Getenv("TRANCHE_BIN"), os.Getenv("CONTROLPLANE_BIN")
	if tranche == "" || programs == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "tranche-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	charts := filepath.Join("..", "..", "charts")
	shared, err = StartControlPlane(ctx, dir, programs, tranche, charts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "the control plane did not start: %v\nlogs are in %s\n", err, dir)
		return 1
	}
	kubelets = RunKubelet(ctx, shared.Client)
	code := m.Run()
	cancel()
	shared.Stop()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "logs are in %s\n", dir)
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}
