package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// TestPaceOfBusyAgents measures a burst of shares on nodes of HAMi's agent, each of which serves one
// pod after another: BUSY_PODS shares on BUSY_NODES nodes of eight cards, with BUSY_MOVED their amounts in
// the annotation that the webhook's hamiLimits makes. It judges that every pod is bound and that no call was
// refused for want of a connection.
func TestPaceOfBusyAgents(t *testing.T) {
	if os.Getenv("BUSY_PODS") == "" {
		t.Skip("a measurement: set BUSY_PODS")
	}
	pods, nodes := number("BUSY_PODS", 1000), number("BUSY_NODES", 100)
	s := ownCluster(t, "busy", nil)
	s.must(several(nodes, func(i int) error {
		_, err := s.Client.CoreV1().Nodes().Create(s.ctx(), HamiNode(fmt.Sprintf("node-%05d", i), 8).Object,
			metav1.CreateOptions{})
		return err
	}))
	s.eventually(time.Minute, func() string {
		if found := s.metric("tranche_nodes"); found != float64(nodes) {
			return fmt.Sprintf("expected Tranche to know %d nodes, found %g", nodes, found)
		}
		return ""
	})
	s.schedule(true, false)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	runAgents(ctx, s)
	scheduler, server, tranche := s.scheduler.CPU(), s.APIServer.CPU(), s.Tranche.CPU()
	start := time.Now()
	s.must(several(pods, func(i int) error {
		part := []int{10, 20, 30, 50}[i%4]
		ask := HamiShare(a100Mib*part/100, part)
		if os.Getenv("BUSY_MOVED") != "" {
			ask = ask.Moved()
		}
		pod := ask.Pod(fmt.Sprintf("share-%05d", i), nil)
		pod.Spec.SchedulerName = s.SchedulerName
		_, err := s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{})
		return err
	}))
	s.must(s.allBound(pods, 5*time.Minute))
	seconds := time.Since(start).Seconds()
	perPod := 1000 / float64(pods)
	refused := s.metric("tranche_http_refusals_total{status=\"503\"}")
	unsettled := s.metric("tranche_requests_total{result=\"failed\",verb=\"bind\"}")
	used := map[string]bool{}
	list, err := s.Client.CoreV1().Pods(s.namespace).List(s.ctx(), metav1.ListOptions{})
	s.must(err)
	for _, pod := range list.Items {
		used[pod.Spec.NodeName] = true
	}
	t.Logf("%d shares on %d of %d nodes: %.0f pods/s; ms of processor time a pod: kube-scheduler %.2f, API server %.2f, "+
		"Tranche %.2f; %g calls refused, %g binds not settled in time", pods, len(used), nodes, float64(pods)/seconds, (s.scheduler.CPU()-scheduler)*perPod,
		(s.APIServer.CPU()-server)*perPod, (s.Tranche.CPU()-tranche)*perPod, refused, unsettled)
	if refused != 0 {
		t.Errorf("expected a connection for every call, found %g refused", refused)
	}
}

// runAgents plays HAMi's agent of each node: one pod after another, each in what a real one needs.
func runAgents(ctx context.Context, s *Scenario) {
	const serving = 20 * time.Millisecond
	lines := map[string]chan *corev1.Pod{}
	told := map[types.UID]bool{}
	agent := &Kubelet{client: s.Client}
	serve := func(line chan *corev1.Pod) {
		for {
			select {
			case <-ctx.Done():
				return
			case pod := <-line:
				time.Sleep(serving)
				agent.admit(ctx, pod)
			}
		}
	}
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	see := func(object any) {
		pod, is := object.(*corev1.Pod)
		if !is || pod.Annotations[hamiPhaseKey] != "allocating" || pod.Spec.NodeName == "" || told[pod.UID] {
			return
		}
		told[pod.UID] = true
		if lines[pod.Spec.NodeName] == nil {
			lines[pod.Spec.NodeName] = make(chan *corev1.Pod, 10000)
			go serve(lines[pod.Spec.NodeName])
		}
		lines[pod.Spec.NodeName] <- pod
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, object any) { see(object) }})
	s.must(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}
