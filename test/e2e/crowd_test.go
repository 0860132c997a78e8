package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// A way in which the same pods are scheduled.
type arm struct {
	name     string
	extender bool
	sampled  bool   // kube-scheduler looks at as many nodes as it does by default
	nominate string // of the GPUPolicy
}

// How one burst went.
type pace struct {
	arm          string
	seconds      float64 // from the first pod sent to the last one bound
	schedulerCPU float64 // seconds
	serverCPU    float64
	trancheCPU   float64
	looks        string // what became of nodes that were told early
}

// TestPaceOfLargeFleets measures, it judges nothing but that every pod is bound. CROWD_NODES names
// the sizes of the fleet ("1000,5000"), CROWD_PODS the pods of a burst, CROWD_ROUNDS how often the
// ways take turns.
func TestPaceOfLargeFleets(t *testing.T) {
	sizes := os.Getenv("CROWD_NODES")
	if sizes == "" {
		t.Skip("a measurement: set CROWD_NODES")
	}
	for _, text := range strings.Split(sizes, ",") {
		nodes, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(text, func(t *testing.T) { measureCrowd(t, nodes, number("CROWD_PODS", 400), number("CROWD_ROUNDS", 3)) })
	}
}

func number(name string, otherwise int) int {
	if value, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return value
	}
	return otherwise
}

func measureCrowd(t *testing.T, nodes, pods, rounds int) {
	s := ownCluster(t, "crowd", nil)
	s.sendNodes(nodes)
	arms := []arm{{"alone, all nodes", false, false, "Off"}, {"alone, by default", false, true, "Off"},
		{"Tranche, nominate Off", true, false, "Off"}, {"Tranche, nominate Auto", true, false, "Auto"},
		{"the same, by default", true, true, "Auto"}}
	var paces []pace
	for round := range rounds {
		for _, arm := range arms {
			paces = append(paces, s.measure(arm, pods, round))
		}
	}
	t.Logf("%d nodes, %d pods in a burst\n%s", nodes, pods, table(paces, pods))
}

// ownCluster is a scenario in a cluster of its own, without the nodes of others, whose programs have
// the feature gates.
func ownCluster(t *testing.T, namespace string, gates []string, nodes ...TestNode) *Scenario {
	t.Helper()
	programs, tranche := os.Getenv("CONTROLPLANE_BIN"), os.Getenv("TRANCHE_BIN")
	if tranche == "" || programs == "" {
		t.Skip("needs a control plane: set TRANCHE_BIN and CONTROLPLANE_BIN")
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	plane, err := StartControlPlane(ctx, t.TempDir(), programs, tranche, filepath.Join("..", "..", "charts"),
		gates...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Stop)
	s := &Scenario{T: t, ControlPlane: plane, namespace: namespace, fleet: namespace}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of all logs:\n%s", s.LogTails())
		}
	})
	_, err = s.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	s.must(err)
	for _, node := range nodes {
		s.addNode(node)
	}
	return s
}

// several calls work(0), ..., work(count-1) from 16 goroutines.
func several(count int, work func(i int) error) error {
	const workers = 16
	errs := make(chan error, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := worker; i < count; i += workers {
				if err := work(i); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(errs)
	return <-errs
}

func (s *Scenario) sendNodes(count int) {
	s.Helper()
	s.must(several(count, func(i int) error {
		_, err := s.Client.CoreV1().Nodes().Create(s.ctx(), StockNode(fmt.Sprintf("node-%05d", i), 8).Object,
			metav1.CreateOptions{})
		return err
	}))
	s.eventually(2*time.Minute, func() string {
		if found := s.metric("tranche_nodes"); found != float64(count) {
			return fmt.Sprintf("expected Tranche to know %d nodes, found %g", count, found)
		}
		return ""
	})
}

// setNominate declares the one GPUPolicy of the cluster.
func (s *Scenario) setNominate(value string) {
	s.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUPolicy", "metadata": map[string]any{"name": "crowd"},
		"spec": map[string]any{"placement": map[string]any{"nominate": value}}})
	s.must(err)
	s.must(RESTOf(s.Client).Patch(types.ApplyPatchType).AbsPath("/apis/tranche.dev/v1alpha1/gpupolicies/crowd").
		Param("fieldManager", "crowd").Param("force", "true").Body(text).Do(s.ctx()).Error())
}

// schedule restarts kube-scheduler: with the extender or alone, looking at all nodes or a sample,
// and with a client that is not the limit.
func (s *Scenario) schedule(extender, sampled bool) {
	s.Helper()
	s.must(s.writeSchedulerConfig(nil))
	path := filepath.Join(s.dir, "scheduler.yaml")
	text, err := os.ReadFile(path)
	s.must(err)
	config := map[string]any{}
	s.must(yaml.Unmarshal(text, &config))
	connection := config["clientConnection"].(map[string]any)
	connection["qps"], connection["burst"] = 5000, 10000
	if sampled {
		delete(config["profiles"].([]any)[0].(map[string]any), "percentageOfNodesToScore")
	}
	if !extender {
		delete(config, "extenders")
	}
	text, err = yaml.Marshal(config)
	s.must(err)
	s.must(os.WriteFile(path, text, 0o600))
	s.scheduler.Stop(15 * time.Second)
	s.must(s.scheduler.Start())
	s.must(s.waitReady(s.ctx(), s.scheduler, s.schedulerURL+"/readyz", "", 30*time.Second))
}

func (s *Scenario) measure(arm arm, pods, round int) pace {
	s.Helper()
	s.setNominate(arm.nominate)
	s.schedule(arm.extender, arm.sampled)
	time.Sleep(2 * time.Second) // its caches
	told := s.outcomes()
	scheduler, server, tranche := s.scheduler.CPU(), s.APIServer.CPU(), s.Tranche.CPU()
	start := time.Now()
	s.must(several(pods, func(i int) error {
		pod := WholeCards(1).Pod(fmt.Sprintf("burst-%d-%04d", round, i), nil)
		pod.Spec.SchedulerName = s.SchedulerName
		_, err := s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{})
		return err
	}))
	s.must(s.allBound(pods, 5*time.Minute))
	result := pace{arm.name, time.Since(start).Seconds(), s.scheduler.CPU() - scheduler,
		s.APIServer.CPU() - server, s.Tranche.CPU() - tranche, ""}
	for i, count := range s.outcomes() {
		result.looks += fmt.Sprintf(" %s %g", earlyOutcomes[i], count-told[i])
	}
	now := int64(0)
	s.must(s.Client.CoreV1().Pods(s.namespace).DeleteCollection(s.ctx(), metav1.DeleteOptions{GracePeriodSeconds: &now},
		metav1.ListOptions{}))
	s.eventually(time.Minute, func() string {
		if left := s.metric("tranche_pods{state=\"bound\"}"); left != 0 {
			return fmt.Sprintf("expected Tranche to know no bound pod, found %g", left)
		}
		return ""
	})
	return result
}

// allBound looks through the API server's cache, whose answers cost it least.
func (s *Scenario) allBound(pods int, limit time.Duration) error {
	bound := map[string]bool{}
	for end := time.After(limit); ; {
		watch, err := s.Client.CoreV1().Pods(s.namespace).Watch(s.ctx(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		for open := true; open; {
			select {
			case event, more := <-watch.ResultChan():
				// The server ends watches that cannot keep up with it.
				open = more
				if pod, is := event.Object.(*corev1.Pod); is && pod.Spec.NodeName != "" {
					bound[pod.Name] = true
				}
				if len(bound) == pods {
					watch.Stop()
					return nil
				}
			case <-end:
				watch.Stop()
				return fmt.Errorf("expected %d bound pods, found %d", pods, len(bound))
			}
		}
	}
}

var earlyOutcomes = []string{"told", "taken", "late", "refused", "withdrawn"}

func (s *Scenario) outcomes() []float64 {
	counts := make([]float64, len(earlyOutcomes))
	for i, outcome := range earlyOutcomes {
		counts[i] = s.metric(fmt.Sprintf("tranche_early_nominations_total{outcome=%q}", outcome))
	}
	return counts
}

// metric is the value of a sample on Tranche's page; 0 where it has none.
func (s *Scenario) metric(sample string) float64 {
	s.Helper()
	for _, line := range strings.Split(s.ask("/metrics"), "\n") {
		if rest, found := strings.CutPrefix(line, sample+" "); found {
			value, err := strconv.ParseFloat(rest, 64)
			s.must(err)
			return value
		}
	}
	return 0
}

func table(paces []pace, pods int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-24s %8s %22s %18s %16s  %s\n", "", "pods/s", "kube-scheduler ms/pod", "API server ms/pod",
		"Tranche ms/pod", "early nominations")
	for _, one := range paces {
		perPod := 1000 / float64(pods)
		fmt.Fprintf(&text, "%-24s %8.0f %22.2f %18.2f %16.2f %s\n", one.arm, float64(pods)/one.seconds,
			one.schedulerCPU*perPod, one.serverCPU*perPod, one.trancheCPU*perPod, one.looks)
	}
	return text.String()
}
