package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	reclaimsPath  = "/apis/tranche.dev/v1alpha1/gpureclaims"
	checkpointKey = "tranche.dev/checkpointed-at"
	ownerEnds     = int64(600) // grace of pods that end when a test says so, and not before
	planLag       = time.Minute
)

// PriorityClasses of all scenarios with teams.
const (
	inference = "e2e-inference" // rank 3, never evicted
	training  = "e2e-training"  // rank 2
	young     = "e2e-young"     // rank 1, not to be evicted in its first hour
	notebook  = "e2e-notebook"  // rank 1
	pushy     = "e2e-pushy"     // as inference, and kube-scheduler may preempt for it
	sturdy    = "e2e-sturdy"    // rank 2 and of less priority than e2e-notebook
	patient   = "e2e-patient"   // rank 2, with the rest after an eviction that classes have by default
	limited   = "e2e-limited"   // rank 2, for twenty seconds
)

var priorities = []struct {
	name   string
	value  int32
	policy corev1.PreemptionPolicy
}{
	{inference, 1000, corev1.PreemptNever}, {training, 100, corev1.PreemptNever},
	{young, 80, corev1.PreemptNever}, {notebook, 70, corev1.PreemptNever},
	{pushy, 1000, corev1.PreemptLowerPriority}, {sturdy, 50, corev1.PreemptNever},
	{patient, 100, corev1.PreemptNever}, {limited, 100, corev1.PreemptNever},
}

var gpuClasses = []struct{ name, fields string }{
	{"inference", "{priorityClassNames: [e2e-inference, e2e-pushy], rank: 3, preemptible: Never}"},
	{"training", "{priorityClassNames: [e2e-training, e2e-sturdy], rank: 2, preemptible: Always, minRuntime: 0s, " +
		"cooldown: 1s, assumedLossPercentile: 100}"},
	{"young", "{priorityClassNames: [e2e-young], rank: 1, preemptible: Always, minRuntime: 1h, cooldown: 1s}"},
	{"notebook", "{priorityClassNames: [e2e-notebook], rank: 1, preemptible: Always, minRuntime: 0s, cooldown: 1s}"},
	{"patient", "{priorityClassNames: [e2e-patient], rank: 2, preemptible: Always, minRuntime: 0s}"},
	{"limited", "{priorityClassNames: [e2e-limited], rank: 2, preemptible: Always, minRuntime: 0s, maxRuntime: 20s}"},
}

// teams is a cluster whose nodes an owner has a right to, and a borrower runs on when they are idle.
type teams struct {
	*testing.T
	owner, borrower *Scenario
}

// newTeams returns when the teams' quotas and classes decide; `own` and `borrow` are the nominals.
func newTeams(t *testing.T, name, model string, own, borrow int, nodes ...TestNode) *teams {
	t.Helper()
	c := &teams{T: t, owner: newScenario(t, name+"-owner", nodes...), borrower: newScenario(t, name+"-borrower")}
	c.borrower.fleet = c.owner.fleet
	c.owner.declareClasses(name)
	c.owner.apply("GPUQuota", name+"-org", "spec: {}")
	for team, nominal := range map[*Scenario]int{c.owner: own, c.borrower: borrow} {
		team.labelNamespace("team", team.namespace)
		team.apply("GPUQuota", team.namespace, fmt.Sprintf("spec: {parent: %s-org, namespaceSelector: "+
			"{matchLabels: {team: %s}}, lines: [{model: %s, nominal: {gpus: %d}}]}", name, team.namespace, model, nominal))
	}
	// After an outage of the API server a watch is opened again within half a minute.
	c.owner.eventually(planLag, func() string {
		quotas := c.owner.quotasInForce()
		for _, team := range []*Scenario{c.owner, c.borrower} {
			if found := quotas[team.namespace].Namespaces; !slices.Contains(found, team.namespace) {
				return fmt.Sprintf("expected quota %s to own its namespace, found %v", team.namespace, found)
			}
		}
		return c.owner.missingClasses(name)
	})
	return c
}

// declareClasses has the classes NAME-inference, NAME-training and so on take the PriorityClasses.
func (s *Scenario) declareClasses(name string) {
	s.Helper()
	s.declarePriorities()
	for _, class := range gpuClasses {
		s.apply("GPUClass", name+"-"+class.name, "spec: "+class.fields)
	}
}

func (s *Scenario) missingClasses(name string) string {
	s.Helper()
	for _, class := range gpuClasses {
		if missing := s.missingReady(classPath, name+"-"+class.name, "True"); missing != "" {
			return missing
		}
	}
	return ""
}

func (c *teams) audit() {
	c.Helper()
	c.owner.audit(c.borrower)
	c.owner.ledgerVerifies()
}

// declarePriorities returns when pods may name the PriorityClasses. They stay for later scenarios.
func (s *Scenario) declarePriorities() {
	s.Helper()
	for _, priority := range priorities {
		_, err := s.Client.SchedulingV1().PriorityClasses().Create(s.ctx(), &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: priority.name}, Value: priority.value,
			PreemptionPolicy: &priority.policy}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			s.must(err)
		}
		s.eventually(soon, func() string {
			probe := WholeCards(1).Pod("probe", nil)
			probe.Spec.PriorityClassName = priority.name
			_, err := s.Client.CoreV1().Pods(s.namespace).Create(s.ctx(), probe,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return fmt.Sprintf("expected pods to be taken, found %v", err)
			}
			return ""
		})
	}
}

// submit sends a pod that, told to end, does so only when the test says `stopped`.
func (s *Scenario) submit(name, priority string, ask Ask, changes ...func(*corev1.Pod)) {
	s.Helper()
	pod := ask.Pod(name, map[string]string{fleetKey: s.fleet})
	pod.Spec.PriorityClassName = priority
	grace := ownerEnds
	pod.Spec.TerminationGracePeriodSeconds = &grace
	for _, change := range changes {
		change(pod)
	}
	s.createPod(pod)
}

// start is submit for pods that find room.
func (s *Scenario) start(priority string, ask Ask, names ...string) {
	s.Helper()
	for _, name := range names {
		s.submit(name, priority, ask)
		s.running(name, soon)
	}
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{key: value} }
}

// controlledBy makes the pod one of a Job that would make it anew.
func controlledBy(uid types.UID) func(*corev1.Pod) {
	yes := true
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: uid,
			Controller: &yes}}
	}
}

// stopped does what the kubelet does when the containers of terminating pods have ended.
func (s *Scenario) stopped(names ...string) {
	s.Helper()
	for _, name := range names {
		s.delete(name, 0)
	}
	s.eventually(soon, func() string {
		for _, name := range names {
			if s.get(name) != nil {
				return fmt.Sprintf("expected pod %s gone, found it", name)
			}
		}
		return ""
	})
}

// checkpointed publishes that the pods have just saved their work.
func (s *Scenario) checkpointed(names ...string) {
	s.Helper()
	for _, name := range names {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, checkpointKey,
			time.Now().UTC().Format(time.RFC3339))
		_, err := s.Client.CoreV1().Pods(s.namespace).Patch(s.ctx(), name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		s.must(err)
	}
}

// leaving are the names of the pods that are terminating, in order.
func (s *Scenario) leaving() []string {
	s.Helper()
	var names []string
	for _, pod := range s.list() {
		if pod.DeletionTimestamp != nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Scenario) missingLeaving(expected []string) string {
	s.Helper()
	if found := s.leaving(); !slices.Equal(found, expected) {
		return fmt.Sprintf("expected the terminating pods of %s to be %q, found %q", s.namespace, expected, found)
	}
	return ""
}

// onlyLeave waits until exactly these pods are terminating, and sees that it stays so for a while.
func (s *Scenario) onlyLeave(names ...string) {
	s.Helper()
	s.eventually(planLag, func() string { return s.missingLeaving(names) })
	s.holds(2*time.Second, func() string { return s.missingLeaving(names) })
}

// GPUReclaim is as much of the object as the scenarios need.
type GPUReclaim struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		For struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"for"`
		Rule string `json:"rule"`
	} `json:"spec"`
	Status struct {
		Phase   string `json:"phase"`
		Reason  string `json:"reason"`
		Victims []struct {
			Pod string `json:"pod"`
		} `json:"victims"`
	} `json:"status"`
}

// victims of the namespace, by name and in order.
func (r GPUReclaim) victims(namespace string) []string {
	var names []string
	for _, victim := range r.Status.Victims {
		if name, found := strings.CutPrefix(victim.Pod, namespace+"/"); found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// reclaims are the records of what was taken back for the pod.
func (s *Scenario) reclaims(name string) []GPUReclaim {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath(reclaimsPath).Do(s.ctx()).Raw()
	s.must(err)
	var list struct {
		Items []GPUReclaim `json:"items"`
	}
	s.must(json.Unmarshal(text, &list))
	return slices.DeleteFunc(list.Items, func(reclaim GPUReclaim) bool {
		return reclaim.Spec.For.Namespace != s.namespace || reclaim.Spec.For.Name != name
	})
}

// reclaimIs waits until the one reclaim for the pod is in the phase.
func (s *Scenario) reclaimIs(name, phase string) GPUReclaim {
	s.Helper()
	var only GPUReclaim
	s.eventually(planLag, func() string {
		found := s.reclaims(name)
		if len(found) != 1 || found[0].Status.Phase != phase {
			return fmt.Sprintf("expected one GPUReclaim for %s/%s in phase %s, found %+v", s.namespace, name, phase, found)
		}
		only = found[0]
		return ""
	})
	return only
}

// nominated waits until the pod names the node it is to get.
func (s *Scenario) nominated(name, node string) {
	s.Helper()
	s.eventually(planLag, func() string {
		pod := s.get(name)
		if pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != node {
			return fmt.Sprintf("expected pod %s to wait for its nominated node %s, found %q, %s", name, node,
				pod.Status.NominatedNodeName, describe(pod))
		}
		return ""
	})
}

// explains waits until a member of Tranche's explanation of the pod, a code or a progress, is `word`.
func (s *Scenario) explains(name, word string) {
	s.Helper()
	s.eventually(planLag, func() string {
		text := s.ask("/api/v1/explain/" + s.namespace + "/" + name)
		if !strings.Contains(text, `"`+word+`"`) {
			return fmt.Sprintf("expected the explanation of %s to say %q, found %s", name, word, text)
		}
		return ""
	})
}

// ask returns what Tranche answers at the path.
func (s *Scenario) ask(path string) string {
	s.Helper()
	answer, err := http.Get(s.TrancheURL + path)
	s.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	s.must(err)
	return string(text)
}

// event waits for an event on the pod, which may be gone, whose note has the text.
func (s *Scenario) event(name, text string) {
	s.Helper()
	s.eventually(planLag, func() string {
		events, err := s.Client.EventsV1().Events(s.namespace).List(s.ctx(), metav1.ListOptions{})
		s.must(err)
		var notes []string
		for _, event := range events.Items {
			if event.Regarding.Kind != "Pod" || event.Regarding.Name != name {
				continue
			}
			if strings.Contains(event.Note, text) {
				return ""
			}
			notes = append(notes, event.Reason+": "+event.Note)
		}
		return fmt.Sprintf("expected an event on pod %s with %q, found %q", name, text, notes)
	})
}

// protect declares a PodDisruptionBudget for pods with the label, and in place of its controller
// says how many of them may go; called again it says so anew.
func (s *Scenario) protect(key, value string, allowed int32) {
	s.Helper()
	api := s.Client.PolicyV1().PodDisruptionBudgets(s.namespace)
	budget, err := api.Get(s.ctx(), value, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		budget, err = api.Create(s.ctx(), disruptionBudget(key, value), metav1.CreateOptions{})
		s.Cleanup(func() {
			if err := api.Delete(s.ctx(), value, metav1.DeleteOptions{}); err != nil {
				s.Error(err)
			}
		})
	}
	s.must(err)
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation,
		DisruptionsAllowed: allowed, CurrentHealthy: max(1, allowed), DesiredHealthy: max(0, 1-allowed),
		ExpectedPods: max(1, allowed)}
	_, err = api.UpdateStatus(s.ctx(), budget, metav1.UpdateOptions{})
	s.must(err)
}

func disruptionBudget(key, value string) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: value},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}
}

// closeGate lets `pass` evictions or bindings of the scenario's pods through and holds up the rest.
func (s *Scenario) closeGate(what string, pass int) *Gate {
	s.Helper()
	gate, err := CloseGate(s.ctx(), s.Client, what, s.namespace, pass)
	s.must(err)
	s.Cleanup(func() {
		if err := gate.Remove(s.ctx()); err != nil {
			s.Error(err)
		}
	})
	return gate
}
