// Command firstday runs a cluster for a person who tries Tranche: a real control plane in front of it,
// and KWOK, which plays nodes and the life of their pods. Everything listens on loopback alone and ends
// with this program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"tranche.dev/test/e2e"
)

// The kernel ends children with the thread that began them: it has to be one that stays.
func init() { runtime.LockOSThread() }

type cluster struct {
	dir, tranche, programs, kwok, charts, stages string
}

func main() {
	var c cluster
	flag.StringVar(&c.dir, "dir", "", "folder for all that the cluster writes")
	flag.StringVar(&c.tranche, "tranche", "", "the program tranche")
	flag.StringVar(&c.programs, "control-plane", "", "folder with the programs of the control plane")
	flag.StringVar(&c.kwok, "kwok", "", "folder with kwok and kubectl")
	flag.StringVar(&c.charts, "charts", "", "folder with the definitions and rights")
	flag.StringVar(&c.stages, "stages", "", "how nodes and pods live, for KWOK")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run returns when it is told to end, or when a program of the cluster has.
func (c *cluster) run(ctx context.Context) error {
	began := time.Now()
	say := func(what string) { fmt.Printf("%3.0f s  %s\n", time.Since(began).Seconds(), what) }
	plane, err := e2e.StartControlPlane(ctx, c.dir, c.programs, c.tranche, c.charts)
	if err != nil {
		return err
	}
	defer plane.Stop()
	say("kube-apiserver, kube-scheduler and Tranche are ready")
	controllers, err := plane.StartControllers(ctx, "*")
	if err != nil {
		return err
	}
	defer controllers.Stop(10 * time.Second)
	say("kube-controller-manager is ready")
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, plane.AdminKubeconfig(), 0o600); err != nil {
		return err
	}
	nodes, err := c.startKwok(ctx, plane, kubeconfig)
	if err != nil {
		return err
	}
	defer nodes.Stop(10 * time.Second)
	say("KWOK is ready")
	if err := c.writeEnvironment(kubeconfig, plane.TrancheURL); err != nil {
		return err
	}
	fmt.Printf("\nThe cluster is up, and has no nodes yet. The page: %s/ui/\n", plane.TrancheURL)
	return c.wait(ctx, append(plane.Processes(), controllers, nodes))
}

func (c *cluster) startKwok(ctx context.Context, plane *e2e.ControlPlane, kubeconfig string) (*e2e.Process, error) {
	ports, err := e2e.FreePorts(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	kwok := e2e.NewProcess(c.dir, "kwok", filepath.Join(c.kwok, "kwok"), "--kubeconfig="+kubeconfig,
		"--config="+c.stages, "--manage-all-nodes=true", "--node-ip=127.0.0.1", "--server-address="+address)
	return kwok, plane.Run(ctx, kwok, "http://"+address+"/healthz", 30*time.Second)
}

// writeEnvironment makes what a shell needs: kubectl and tranche in PATH, and where they ask.
func (c *cluster) writeEnvironment(kubeconfig, url string) error {
	bin := filepath.Join(c.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	for name, program := range map[string]string{"tranche": c.tranche, "kubectl": filepath.Join(c.kwok, "kubectl")} {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "export PATH=%q:$PATH\n", bin)
	fmt.Fprintf(&text, "export KUBECONFIG=%q\n", kubeconfig)
	fmt.Fprintf(&text, "export TRANCHE_SERVER=%q\n", url)
	// Renamed when it is whole: its presence says that the cluster is up.
	half := filepath.Join(c.dir, "env.half")
	if err := os.WriteFile(half, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(half, filepath.Join(c.dir, "env"))
}

func (c *cluster) wait(ctx context.Context, processes []*e2e.Process) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(500 * time.Millisecond):
		}
		for _, process := range processes {
			if !process.Running() {
				return fmt.Errorf("%s has ended; its last lines:\n%s", process.Name, process.LogTail(20))
			}
		}
	}
}
