package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The controllers of workloads, disruption budgets and resource claims. The garbage collector is not
// among them: pods of other scenarios name owners that nobody made.
const workloadControllers = "deployment-controller,replicaset-controller,job-controller,disruption-controller," +
	"resourceclaim-controller"

// StartControllers runs kube-controller-manager with the controllers of the list, which write the
// statuses that scenarios without them write themselves. The caller stops it.
func (c *ControlPlane) StartControllers(ctx context.Context, list string) (*Process, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.dir, "controllers.kubeconfig")
	if err := os.WriteFile(kubeconfig, c.kubeconfig(c.apiURL, adminToken), 0o600); err != nil {
		return nil, err
	}
	controllers := NewProcess(c.dir, "kube-controller-manager", filepath.Join(c.programs, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--controllers="+list, "--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
		"--kube-api-qps=200", "--kube-api-burst=400")
	if err := controllers.Start(); err != nil {
		return nil, err
	}
	err = c.waitReady(ctx, controllers, fmt.Sprintf("https://127.0.0.1:%d/healthz", ports[0]), "", 30*time.Second)
	if err != nil {
		controllers.Stop(15 * time.Second)
		return nil, err
	}
	return controllers, nil
}
