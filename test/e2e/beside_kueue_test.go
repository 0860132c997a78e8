package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	queueKey      = "kueue.x-k8s.io/queue-name"
	admissionGate = "kueue.x-k8s.io/admission"
	reservedNode  = "reserved-0" // 4 GPUs: 3 of vision, 1 of speech
	spotNode      = "spot-0"     // 2 GPUs, both of vision
)

// What Tranche would say to a pod that its quota holds back.
var quotaCodes = []string{"NoLeaf", "LeafConflict", "LedgerClosed", "BudgetExhausted", "ExceedsMaxQuota", "BorrowLimit",
	"LenderLimit", "WaitingForQuota"}

// kueueTeams are two namespaces whose Jobs Kueue admits and Tranche places.
type kueueTeams struct {
	vision, speech *Scenario
	metered        map[string]span // GPU-seconds of ended Jobs, by namespace
}

// span bounds what cannot be seen exactly.
type span struct{ least, most float64 }

// besideKueue is a cluster in which quotas went to Kueue as the migration guide says.
func besideKueue(t *testing.T) *kueueTeams {
	t.Helper()
	programs := os.Getenv("KUEUE_BIN")
	if programs == "" {
		t.Skip("needs Kueue: set KUEUE_BIN to what controlplane/build.sh kueue prints")
	}
	reserved, spot := StockNode(reservedNode, 4), StockNode(spotNode, 2)
	reserved.Object.Labels["tier"], spot.Object.Labels["tier"] = "reserved", "spot"
	s := ownCluster(t, "vision", nil, reserved, spot)
	RunKubelet(t.Context(), s.Client)
	controllers, err := s.StartControllers(s.ctx(), workloadControllers)
	s.must(err)
	t.Cleanup(func() { controllers.Stop(15 * time.Second) })
	c := &kueueTeams{vision: s, speech: s.neighbour("speech"), metered: map[string]span{}}
	for _, team := range []*Scenario{c.vision, c.speech} {
		team.labelNamespace("team", team.namespace)
	}
	s.apply("GPUPool", "reserved", "spec: {nodes: {matchLabels: {tier: reserved}}}")
	s.apply("GPUPool", "spot", "spec: {nodes: {matchLabels: {tier: spot}}}")
	s.apply("GPUQuota", "org", "spec: {}")
	s.apply("GPUQuota", "vision", "spec: {parent: org, namespaceSelector: {matchLabels: {team: vision}}, lines: ["+
		"{model: h100, pool: reserved, nominal: {gpus: 3}}, {model: h100, pool: spot, nominal: {gpus: 2}}]}")
	s.apply("GPUQuota", "speech", "spec: {parent: org, namespaceSelector: {matchLabels: {team: speech}}, "+
		"lines: [{model: h100, pool: reserved, nominal: {gpus: 1}}]}")

	started := time.Now()
	_, err = s.StartKueue(s.ctx(), programs)
	s.must(err)
	t.Logf("Kueue was ready after %v", time.Since(started).Round(time.Millisecond))
	c.handOver()
	return c
}

// neighbour is another namespace on the scenario's nodes.
func (s *Scenario) neighbour(namespace string) *Scenario {
	s.Helper()
	_, err := s.Client.CoreV1().Namespaces().Create(s.ctx(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	s.must(err)
	return &Scenario{T: s.T, ControlPlane: s.ControlPlane, namespace: namespace, fleet: s.fleet}
}

// handOver exports the quotas, gives them to Kueue, and has Tranche observe its own.
func (c *kueueTeams) handOver() {
	s := c.vision
	s.Helper()
	export := exec.Command(s.tranchePath, "export", "kueue", "-f", "-")
	export.Stdin = strings.NewReader(s.got(quotaPath, "/apis/tranche.dev/v1alpha1/gpupools", "/api/v1/nodes",
		"/api/v1/namespaces"))
	text, err := export.Output()
	s.must(err)
	const advice = "Set spec.mode to Observe in speech, vision"
	if !strings.Contains(string(text), advice) {
		s.Errorf("expected the export to say %q, found:\n%s", advice, text)
	}
	for _, document := range documentBreak.Split(string(text), -1)[1:] {
		object, err := ReadObject([]byte(document))
		s.must(err)
		// The API server learns a moment after Kueue is ready whose certificates it may trust.
		s.eventually(soon, func() string {
			if err := CreateObject(s.ctx(), s.Client, object, false); err != nil {
				return fmt.Sprintf("expected Kueue to take %s %s, found %v", object.Kind, object.Name, err)
			}
			return ""
		})
	}
	for _, team := range []string{"vision", "speech"} {
		s.must(RESTOf(s.Client).Patch(types.MergePatchType).AbsPath(quotaPath, team).
			Body([]byte(`{"spec":{"mode":"Observe"}}`)).Do(s.ctx()).Error())
		s.eventually(soon, func() string { return s.missingActive("clusterqueues/" + team) })
	}
	s.eventually(decisionLag*5, func() string {
		for _, team := range []string{"vision", "speech"} {
			if found := s.modeOf(team); found != "Observe" {
				return fmt.Sprintf("expected quota %s to observe, found %q", team, found)
			}
		}
		return ""
	})
}

// got is the objects of the paths as `kubectl get -o yaml` prints them: one List, each item with its kind.
func (s *Scenario) got(paths ...string) string {
	s.Helper()
	all := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, path := range paths {
		text, err := RESTOf(s.Client).Get().AbsPath(path).Do(s.ctx()).Raw()
		s.must(err)
		var list struct {
			APIVersion, Kind string
			Items            []map[string]any
		}
		s.must(json.Unmarshal(text, &list))
		for _, item := range list.Items {
			item["apiVersion"], item["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
			items = append(items, item)
		}
	}
	all["items"] = items
	text, err := json.Marshal(all)
	s.must(err)
	return string(text)
}

// modeOf is the mode of the quota that Tranche decides by.
func (s *Scenario) modeOf(quota string) string {
	s.Helper()
	answer, err := http.Get(s.TrancheURL + "/api/v1/quotas")
	s.must(err)
	defer answer.Body.Close()
	var body struct{ Quotas []struct{ Name, Mode string } }
	s.must(json.NewDecoder(answer.Body).Decode(&body))
	for _, one := range body.Quotas {
		if one.Name == quota {
			return one.Mode
		}
	}
	return ""
}

// kueueObject is as much of an object of Kueue as the scenarios read.
type kueueObject struct {
	Metadata metav1.ObjectMeta
	Status   struct {
		Conditions   []metav1.Condition
		FlavorsUsage []struct {
			Name      string
			Resources []struct{ Name, Total, Borrowed string }
		}
	}
}

func (o kueueObject) has(condition string) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(one metav1.Condition) bool {
		return one.Type == condition && one.Status == metav1.ConditionTrue
	})
}

func (s *Scenario) missingActive(resource string) string {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath("/apis/kueue.x-k8s.io/v1beta2/" + resource).Do(s.ctx()).Raw()
	s.must(err)
	var object kueueObject
	s.must(json.Unmarshal(text, &object))
	if !object.has("Active") {
		return fmt.Sprintf("expected %s active, found %+v", resource, object.Status.Conditions)
	}
	return ""
}

// usage is what Kueue counts of the team's ClusterQueue, by flavor: "total/borrowed".
func (s *Scenario) usage() map[string]string {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath("/apis/kueue.x-k8s.io/v1beta2/clusterqueues", s.namespace).
		Do(s.ctx()).Raw()
	s.must(err)
	var queue kueueObject
	s.must(json.Unmarshal(text, &queue))
	usage := map[string]string{}
	for _, flavor := range queue.Status.FlavorsUsage {
		for _, resource := range flavor.Resources {
			usage[flavor.Name] = resource.Total + "/" + resource.Borrowed
		}
	}
	return usage
}

// workloadOf is what Kueue made of the Job.
func (s *Scenario) workloadOf(job string) kueueObject {
	s.Helper()
	var found kueueObject
	s.eventually(soon, func() string {
		text, err := RESTOf(s.Client).Get().
			AbsPath("/apis/kueue.x-k8s.io/v1beta2/namespaces/" + s.namespace + "/workloads").Do(s.ctx()).Raw()
		s.must(err)
		var list struct{ Items []kueueObject }
		s.must(json.Unmarshal(text, &list))
		for _, one := range list.Items {
			if slices.ContainsFunc(one.Metadata.OwnerReferences,
				func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" && owner.Name == job }) {
				found = one
				return ""
			}
		}
		return fmt.Sprintf("expected a Workload of Job %s, found none of %d", job, len(list.Items))
	})
	return found
}

// job submits a Job of one GPU to the team's queue.
func (s *Scenario) job(name string) {
	s.Helper()
	pod := WholeCards(1).Pod("", map[string]string{fleetKey: s.fleet})
	grace := int64(3)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.SchedulerName, pod.Spec.RestartPolicy = s.SchedulerName, corev1.RestartPolicyNever
	_, err := s.Client.BatchV1().Jobs(s.namespace).Create(s.ctx(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{queueKey: "default"}},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}, metav1.CreateOptions{})
	s.must(err)
}

func (s *Scenario) suspended(job string) bool {
	s.Helper()
	object, err := s.Client.BatchV1().Jobs(s.namespace).Get(s.ctx(), job, metav1.GetOptions{})
	s.must(err)
	return object.Spec.Suspend != nil && *object.Spec.Suspend
}

// podsOf are the Job's pods that have not ended.
func (s *Scenario) podsOf(job string) []corev1.Pod {
	s.Helper()
	return slices.DeleteFunc(s.list(), func(pod corev1.Pod) bool {
		return pod.Labels[batchv1.JobNameLabel] != job || pod.Status.Phase == corev1.PodSucceeded ||
			pod.Status.Phase == corev1.PodFailed
	})
}

// podOf waits until the Job has a pod of which nothing is amiss.
func (s *Scenario) podOf(job string, amiss func(pod *corev1.Pod) string) *corev1.Pod {
	s.Helper()
	var found *corev1.Pod
	s.eventually(soon, func() string {
		pods := s.podsOf(job)
		if len(pods) != 1 {
			return fmt.Sprintf("expected one pod of Job %s (suspended: %v), found %d", job, s.suspended(job), len(pods))
		}
		found = &pods[0]
		return amiss(found)
	})
	return found
}

// runsOn waits until the Job's pod runs on the node with a device recorded, and returns the card.
func (s *Scenario) runsOn(job, node string) int {
	s.Helper()
	pod := s.podOf(job, func(pod *corev1.Pod) string {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || pod.Spec.NodeName != node {
			return fmt.Sprintf("expected Job %s to run on %s, found %s", job, node, describe(pod))
		}
		return ""
	})
	devices := s.devicesOf(pod)
	if len(devices) != 1 || devices[0].Milli != 1000 {
		s.Fatalf("expected one whole device recorded for %s, found %+v", pod.Name, devices)
	}
	card, _ := devices[0].card()
	return card
}

// waitsSuspended sees that the Job has no pods for a while: nobody but Kueue is asked.
func (s *Scenario) waitsSuspended(job string) {
	s.Helper()
	if workload := s.workloadOf(job); workload.has("QuotaReserved") {
		s.Fatalf("expected Job %s to wait for quota, found %+v", job, workload.Status.Conditions)
	}
	s.holds(2*time.Second, func() string {
		if pods := s.podsOf(job); len(pods) > 0 || !s.suspended(job) {
			return fmt.Sprintf("expected Job %s suspended and without pods, found %d pods", job, len(pods))
		}
		return ""
	})
}

// ends does what the kubelet does when the containers of the Job's pod have ended well.
func (s *Scenario) ends(job string) {
	s.Helper()
	for _, pod := range s.podsOf(job) {
		_, err := s.Client.CoreV1().Pods(s.namespace).Patch(s.ctx(), pod.Name, types.MergePatchType,
			[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		s.must(err)
	}
	s.eventually(soon, func() string {
		if !s.workloadOf(job).has("Finished") {
			return fmt.Sprintf("expected Kueue to see that Job %s has ended", job)
		}
		return ""
	})
}

// end ends Jobs, and notes for how long their pods held a GPU.
func (c *kueueTeams) end(s *Scenario, jobs ...string) {
	s.Helper()
	for _, job := range jobs {
		pods := s.podsOf(job)
		if len(pods) != 1 {
			s.Fatalf("expected one pod of Job %s, found %d", job, len(pods))
		}
		before := time.Since(pods[0].Status.StartTime.Time).Seconds()
		s.ends(job)
		sum := c.metered[s.namespace]
		// Times of pods are cut to seconds, and the bind came before the start.
		sum.least += max(0, before-1)
		sum.most += time.Since(pods[0].CreationTimestamp.Time).Seconds()
		c.metered[s.namespace] = sum
	}
}

// keepsOut sees that Tranche evicted nobody and held none of the teams' pods back by quota.
func (c *kueueTeams) keepsOut(teams ...*Scenario) {
	s := c.vision
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath(reclaimsPath).Do(s.ctx()).Raw()
	s.must(err)
	var reclaims struct{ Items []GPUReclaim }
	s.must(json.Unmarshal(text, &reclaims))
	if len(reclaims.Items) > 0 {
		s.Errorf("expected Tranche to evict nobody, found %+v", reclaims.Items)
	}
	for _, team := range teams {
		events, err := s.Client.EventsV1().Events(team.namespace).List(s.ctx(), metav1.ListOptions{})
		s.must(err)
		for _, event := range events.Items {
			if event.Regarding.Kind == "Pod" && slices.Contains(quotaCodes, event.Reason) {
				s.Errorf("expected no pod held back by Tranche's quotas, found %s of %s: %s", event.Reason,
					event.Regarding.Name, event.Note)
			}
		}
	}
}

func (c *kueueTeams) audit() {
	c.vision.Helper()
	c.vision.audit(c.speech)
}

// Kueue admits, Tranche places and meters.
func TestKueueAdmitsAndTranchePlaces(t *testing.T) {
	c := besideKueue(t)
	victim := c.admitsWithinQuota(t)
	c.reclaims(t, victim)
	c.meters(t)
	c.budgets(t)
	c.placesGroupsWhole(t)
	c.audit()
	c.vision.ledgerVerifies()
}

// The team's own amount of the first pool, what it borrows there, then the other pool; the rest waits.
// The Jobs of the pools are reserved-0 to reserved-3 and spot-0 to spot-1.
func (c *kueueTeams) admitsWithinQuota(t *testing.T) map[int]string {
	t.Helper()
	onCard := map[int]string{}
	for i := range 4 {
		name := fmt.Sprint("reserved-", i)
		c.vision.job(name)
		onCard[c.vision.runsOn(name, reservedNode)] = name
	}
	for i := range 2 {
		name := fmt.Sprint("spot-", i)
		c.vision.job(name)
		c.vision.runsOn(name, spotNode)
	}
	c.vision.job("late")
	c.vision.waitsSuspended("late")
	c.vision.eventually(soon, func() string {
		if found := c.vision.usage(); found["h100-reserved"] != "4/1" || found["h100-spot"] != "2/0" {
			return fmt.Sprintf("expected Kueue to count 4 (1 borrowed) and 2 GPUs, found %v", found)
		}
		return ""
	})
	// Tranche counts the same.
	c.vision.columnsSay(Row{"Name": "vision", "USED": "4 h100@reserved, 2 h100@spot"})
	if len(onCard) != 4 {
		t.Fatalf("expected four cards of %s in use, found %v", reservedNode, onCard)
	}
	c.audit()
	c.keepsOut(c.vision, c.speech)
	return onCard
}

// Kueue takes back what it lent; the GPU goes to the newcomer, and whoever left goes on elsewhere.
func (c *kueueTeams) reclaims(t *testing.T, onCard map[int]string) {
	t.Helper()
	c.speech.job("owner")
	card := c.speech.runsOn("owner", reservedNode)
	victim := onCard[card]
	if !c.vision.workloadOf(victim).has("Evicted") {
		t.Fatalf("expected Kueue to have evicted %s, whose card owner has, found %+v", victim,
			c.vision.workloadOf(victim).Status.Conditions)
	}
	c.audit()
	c.vision.waitsSuspended(victim)
	c.keepsOut(c.vision, c.speech)

	c.end(c.vision, "spot-0")
	c.end(c.vision, "spot-1")
	c.vision.runsOn(victim, spotNode)
	c.vision.runsOn("late", spotNode)
	c.audit()
	c.keepsOut(c.vision, c.speech)
	c.end(c.vision, slices.Sorted(maps.Values(onCard))...)
	c.end(c.vision, "late")
	c.end(c.speech, "owner")
}

// The GPU hours of quotas that only observe are in the ledger. Of vision only the least is known: whoever
// was evicted ran twice.
func (c *kueueTeams) meters(t *testing.T) {
	t.Helper()
	const rounding = 1.8 // seconds: a report has thousandths of an hour
	for _, team := range []*Scenario{c.vision, c.speech} {
		expected := c.metered[team.namespace]
		team.eventually(statusLag, func() string {
			hours := team.ledgerHours()
			if seconds := hours * 3600; seconds < expected.least-rounding {
				return fmt.Sprintf("expected at least %.1f GPU-seconds of %s in the ledger, found %.1f", expected.least,
					team.namespace, seconds)
			}
			return ""
		})
	}
	expected, seconds := c.metered["speech"], c.speech.ledgerHours()*3600
	if seconds > expected.most+rounding {
		t.Errorf("expected at most %.1f GPU-seconds of speech in the ledger, found %.1f", expected.most, seconds)
	}
	t.Logf("the ledger has %.1f GPU-seconds of vision (seen: %.1f and more) and %.1f of speech (seen: %.1f to %.1f)",
		c.vision.ledgerHours()*3600, c.metered["vision"].least, seconds, expected.least, expected.most)
}

// ledgerHours are the GPU hours of the team's own leaf.
func (s *Scenario) ledgerHours() float64 {
	s.Helper()
	text, err := exec.Command(s.tranchePath, "ledger", "report", "--ledger", s.Ledger, "--leaf", s.namespace, "-o",
		"json").Output()
	s.must(err)
	var report struct{ Total string }
	s.must(json.Unmarshal(text, &report))
	hours, err := strconv.ParseFloat(report.Total, 64)
	s.must(err)
	return hours
}

// Kueue lets a group of pods go when all of it has quota; Tranche gives none of them a node before all
// have one.
func (c *kueueTeams) placesGroupsWhole(t *testing.T) {
	t.Helper()
	s := c.vision
	others := s.neighbour("others")
	// The spot node has room for a member, and Kueue sends none there.
	others.createPod(WholeCards(1).Pod("outsider", map[string]string{fleetKey: s.fleet, "tier": "reserved"}))
	others.running("outsider", soon)

	member := func(name string) *corev1.Pod {
		pod := WholeCards(2).Pod(name, map[string]string{fleetKey: s.fleet})
		pod.Labels = map[string]string{queueKey: "default", "kueue.x-k8s.io/pod-group-name": "crew"}
		pod.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": "2"}
		return s.createPod(pod)
	}
	member("crew-0")
	s.holds(time.Second, func() string {
		if found := gatesOf(s.get("crew-0")); !strings.Contains(found, admissionGate) {
			return fmt.Sprintf("expected Kueue to hold crew-0 until its group is there, found gates %q", found)
		}
		return ""
	})
	member("crew-1")
	// Three GPUs are free: one member would find room, both do not.
	s.waits("crew-0", noGangRoom, 2*time.Second)
	s.waits("crew-1", noGangRoom, 0)
	others.delete("outsider", 0)
	for _, name := range []string{"crew-0", "crew-1"} {
		if pod := s.running(name, soon); pod.Spec.NodeName != reservedNode || len(s.devicesOf(pod)) != 2 {
			t.Errorf("expected %s on %s with two devices, found %s", name, reservedNode, describe(pod))
		}
	}
	s.audit(c.speech, others)
	c.keepsOut(c.vision)
}

// Less than the teams have used by now.
const usedUp = `gpuHours: "0.001", window: {type: Rolling, duration: 24h}, onExhaustion: Block}`

// A budget that blocks refuses nobody where the quota observes. Where the team has none any more, pods
// that Kueue has admitted wait, and keep their quota there.
func (c *kueueTeams) budgets(t *testing.T) {
	t.Helper()
	c.vision.apply("GPUBudget", "vision", "spec: {quotaRef: vision, "+usedUp)
	c.vision.eventually(statusLag, func() string { return c.vision.missingReady(budgetPath, "vision", "True") })
	c.vision.job("beyond")
	c.vision.runsOn("beyond", reservedNode)
	c.vision.explains(c.vision.podsOf("beyond")[0].Name, "BudgetExhausted")
	c.keepsOut(c.vision)
	c.vision.ends("beyond")

	c.speech.must(RESTOf(c.speech.Client).Delete().AbsPath(quotaPath, "speech").Do(c.speech.ctx()).Error())
	budget := "spec: {namespace: speech, " + usedUp
	c.speech.apply("GPUBudget", "speech", budget)
	c.speech.eventually(statusLag, func() string { return c.speech.missingReady(budgetPath, "speech", "True") })
	c.speech.job("blocked")
	blocked := c.speech.podOf("blocked", func(pod *corev1.Pod) string {
		if refusal(pod) == "" {
			return "expected the pod of Job blocked to be refused, found " + describe(pod)
		}
		return ""
	})
	c.speech.told(blocked.Name, "BudgetExhausted")
	c.speech.eventually(soon, func() string {
		if found := c.speech.usage(); found["h100-reserved"] != "1/0" {
			return fmt.Sprintf("expected Kueue to count the blocked Job's GPU, found %v", found)
		}
		return ""
	})
	c.speech.apply("GPUBudget", "speech", strings.Replace(budget, `"0.001"`, `"1000"`, 1))
	c.speech.runsOn("blocked", reservedNode)
	c.speech.ends("blocked")
}
