package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	statusLag    = 5 * time.Second // until a status in the cluster says what holds
	decisionLag  = time.Second     // until a changed quota decides
	noBorrow     = "the team may not borrow more GPUs"
	noSurplus    = "the team's GPU quota and what it could borrow are in use"
	quotaPath    = "/apis/tranche.dev/v1alpha1/gpuquotas"
	classPath    = "/apis/tranche.dev/v1alpha1/gpuclasses"
	policyPath   = "/apis/tranche.dev/v1alpha1/gpupolicies"
	viewsPath    = "/apis/tranche.dev/v1alpha1/namespaces/%s/gpuquotaviews"
	quotaOfTeamB = "spec: {parent: org, namespaceSelector: {matchLabels: {team: b}}, " +
		"lines: [{model: h100, nominal: {gpus: 4}}]}"
)

func quotaOfTeamA(parent, nominal, borrowLimit string) string {
	return fmt.Sprintf("spec: {parent: %s, namespaceSelector: {matchLabels: {team: a}}, "+
		"lines: [{model: h100, nominal: {gpus: %s}, borrowLimit: {gpus: %s}}]}", parent, nominal, borrowLimit)
}

// Two teams own 8 and 4 of 16 cards; team a may borrow 2. Each step stands on those before it.
func TestTwoTeamsShareACluster(t *testing.T) {
	a := newScenario(t, "quota-a", StockNode("quota-0", 8), StockNode("quota-1", 8))
	b := newScenario(t, "quota-b")
	b.fleet = a.fleet
	a.labelNamespace("team", "a")
	b.labelNamespace("team", "b")
	// Nobody is evicted here: preemption_test.go is about that.
	a.apply("GPUPolicy", "quota-no-preemption", `spec: {preemption: {actor: "Off"}, selector: {namespaces: `+
		"{matchExpressions: [{key: team, operator: In, values: [a, b]}]}}}")
	a.eventually(statusLag, func() string { return a.missingReady(policyPath, "quota-no-preemption", "True") })
	a.apply("GPUQuota", "org", "spec: {}")
	a.apply("GPUQuota", "team-a", quotaOfTeamA("org", "8", "2"))
	a.apply("GPUQuota", "team-b", quotaOfTeamB)
	a.eventually(statusLag, func() string {
		if found := len(a.quotasInForce()); found != 3 {
			return fmt.Sprintf("expected 3 quotas in force, found %d", found)
		}
		return ""
	})

	a.fillsItsQuota(b)
	a.columnsSay(Row{"Name": "team-a", "NOMINAL": "8", "USED": "10", "BORROWED": "2", "LENT": "0", "PENDING": "1"})
	a.columnsSay(Row{"Name": "team-b", "NOMINAL": "4", "USED": "2", "BORROWED": "0", "LENT": "2", "PENDING": "1"})
	a.viewSays(Row{"Name": "view", "LEAF": "team-a", "USED": "10", "NOMINAL": "8", "AT-RISK": "2", "PENDING": "1"})
	b.viewSays(Row{"Name": "view", "LEAF": "team-b", "USED": "2", "NOMINAL": "4", "AT-RISK": "0", "PENDING": "1"})
	a.seesOnlyItsOwnView(b)
	a.badEditsChangeNothing()
	a.raiseIsSeenAtOnce()
	a.running("a-over", soon)
	b.running("b-over", soon)
	a.audit()
	a.ledgerVerifies()
}

// Team a runs what it owns and what it may borrow; team b then lacks what it has lent.
func (s *Scenario) fillsItsQuota(b *Scenario) {
	s.Helper()
	for i := range 10 {
		s.create(fmt.Sprint("a-", i), "", WholeCards(1))
	}
	for i := range 10 {
		s.running(fmt.Sprint("a-", i), soon)
	}
	s.create("a-over", "", WholeCards(1))
	s.waits("a-over", noBorrow, time.Second)
	s.told("a-over", "BorrowLimit")

	for _, name := range []string{"b-0", "b-1"} {
		b.create(name, "", WholeCards(1))
		b.running(name, soon)
	}
	b.create("b-over", "", WholeCards(1))
	b.waits("b-over", noSurplus, time.Second)
	b.told("b-over", "WaitingForQuota")
}

// A condition of the pod and an event on it name the reason.
func (s *Scenario) told(name, code string) {
	s.Helper()
	s.eventually(statusLag, func() string {
		pod := s.get(name)
		named := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == "tranche.dev/Waiting" && condition.Status == corev1.ConditionTrue &&
				condition.Reason == code
		})
		if !named {
			return fmt.Sprintf("expected condition tranche.dev/Waiting %s, found %+v", code, pod.Status.Conditions)
		}
		events, err := s.Client.EventsV1().Events(s.namespace).List(s.ctx(), metav1.ListOptions{})
		s.must(err)
		for _, event := range events.Items {
			if event.Regarding.UID == pod.UID && event.Reason == code {
				return ""
			}
		}
		return fmt.Sprintf("expected an event %s on pod %s, found none in %d events", code, name, len(events.Items))
	})
}

// From the moment the API server has taken the change.
func (s *Scenario) raiseIsSeenAtOnce() {
	s.Helper()
	s.apply("GPUQuota", "team-a", quotaOfTeamA("org", "10", "2"))
	written := time.Now()
	for s.nominalOf("team-a") != "10" {
		if since := time.Since(written); since > decisionLag {
			s.Fatalf("expected the raised quota in force within %v, found %s GPUs", decisionLag, s.nominalOf("team-a"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Logf("the raised quota was in force after %v", time.Since(written).Round(time.Millisecond))
}

// What one object alone can get wrong the server refuses; what only the whole can, Tranche does.
func (s *Scenario) badEditsChangeNothing() {
	s.Helper()
	object, err := NewObject("GPUQuota", "", "team-a", quotaOfTeamA("org", `"-1"`, "2"))
	s.must(err)
	err = RESTOf(s.Client).Patch(applyType).AbsPath(object.path()).Param("fieldManager", "admin").
		Body(object.JSON).Do(s.ctx()).Error()
	if !apierrors.IsInvalid(err) {
		s.Errorf("expected a negative quota to be refused, found %v", err)
	}

	s.apply("GPUQuota", "team-a", quotaOfTeamA("nobody", "99", "2"))
	s.eventually(statusLag, func() string { return s.missingReady(quotaPath, "team-a", "False") })
	quota := s.quotasInForce()["team-a"]
	if quota.Parent != "org" || s.nominalOf("team-a") != "8" {
		s.Errorf("expected the last good quota in force, found %+v", quota)
	}
	s.apply("GPUQuota", "team-a", quotaOfTeamA("org", "8", "2"))
	s.eventually(statusLag, func() string { return s.missingReady(quotaPath, "team-a", "True") })
}

// missingReady says what is missing until Tranche has judged the object: Ready with that status.
func (s *Scenario) missingReady(path, name, status string) string {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath(path, name).Do(s.ctx()).Raw()
	s.must(err)
	var object struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	s.must(json.Unmarshal(text, &object))
	for _, condition := range object.Status.Conditions {
		if condition.Type == "Ready" && string(condition.Status) == status {
			return ""
		}
	}
	return fmt.Sprintf("expected Ready=%s of %s, found %+v", status, name, object.Status.Conditions)
}

// A member of the team, with the shipped role in the team's namespace alone.
func (s *Scenario) seesOnlyItsOwnView(other *Scenario) {
	s.Helper()
	const member = "member-of-team-a"
	_, err := s.Client.RbacV1().RoleBindings(s.namespace).Create(s.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "quota-viewers"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: member}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tranche-quota-viewer"},
	}, metav1.CreateOptions{})
	s.must(err)
	client, err := s.ClientOf(adminToken, member)
	s.must(err)
	get := func(path string) error { return RESTOf(client).Get().AbsPath(path).Do(s.ctx()).Error() }
	own := fmt.Sprintf(viewsPath, s.namespace)
	s.eventually(statusLag, func() string { // the binding is in force a moment after it was written
		if err := get(own + "/view"); err != nil {
			return fmt.Sprintf("expected the member to read the view, found %v", err)
		}
		return ""
	})
	forbidden := []string{fmt.Sprintf(viewsPath, other.namespace) + "/view", quotaPath, quotaPath + "/team-a",
		"/apis/tranche.dev/v1alpha1/gpuquotaviews"}
	for _, path := range forbidden {
		if err := get(path); !apierrors.IsForbidden(err) {
			s.Errorf("expected %s to be forbidden to the member, found %v", path, err)
		}
	}
	err = RESTOf(client).Delete().AbsPath(own + "/view").Do(s.ctx()).Error()
	if !apierrors.IsForbidden(err) {
		s.Errorf("expected the member not to delete the view, found %v", err)
	}
}

func (s *Scenario) columnsSay(expected Row) {
	s.Helper()
	s.eventually(statusLag, func() string { return s.missingRow(quotaPath, expected) })
}

func (s *Scenario) viewSays(expected Row) {
	s.Helper()
	s.eventually(statusLag, func() string { return s.missingRow(fmt.Sprintf(viewsPath, s.namespace), expected) })
}

// Cells such as "10 h100" or "10.000" say 10.
func (s *Scenario) missingRow(path string, expected Row) string {
	s.Helper()
	text, err := RESTOf(s.Client).Get().AbsPath(path).SetHeader("Accept", tableType).Do(s.ctx()).Raw()
	s.must(err)
	_, rows, err := readTable(text)
	s.must(err)
	for _, row := range rows {
		if row["Name"] != expected["Name"] {
			continue
		}
		for column, cell := range expected {
			if found := row[column]; found != cell && amountOf(found) != cell {
				return fmt.Sprintf("expected %s %s of %s, found %v", column, cell, row["Name"], row)
			}
		}
		return ""
	}
	return fmt.Sprintf("expected a row %s, found %v", expected["Name"], rows)
}

// amountOf is the number at the front of a text, in its shortest form; "" when there is none.
func amountOf(text string) string {
	number, _, _ := strings.Cut(text, " ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// QuotaInForce is as much of what Tranche tells of a quota as the scenarios need.
type QuotaInForce struct {
	Name       string   `json:"name"`
	Parent     string   `json:"parent"`
	Namespaces []string `json:"namespaces"`
	Lines      []struct {
		Model   string `json:"model"`
		Nominal any    `json:"nominalGpus"`
	} `json:"lines"`
}

// quotasInForce is what Tranche decides by, by name.
func (s *Scenario) quotasInForce() map[string]QuotaInForce {
	s.Helper()
	answer, err := http.Get(s.TrancheURL + "/api/v1/quotas")
	s.must(err)
	defer answer.Body.Close()
	var body struct {
		Quotas []QuotaInForce `json:"quotas"`
	}
	s.must(json.NewDecoder(answer.Body).Decode(&body))
	quotas := map[string]QuotaInForce{}
	for _, quota := range body.Quotas {
		quotas[quota.Name] = quota
	}
	return quotas
}

// nominalOf is the quota's own amount of H100 cards.
func (s *Scenario) nominalOf(name string) string {
	s.Helper()
	for _, line := range s.quotasInForce()[name].Lines {
		if line.Model == "h100" {
			return amountOf(fmt.Sprint(line.Nominal))
		}
	}
	return ""
}

func (s *Scenario) labelNamespace(key, value string) {
	s.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	_, err := s.Client.CoreV1().Namespaces().Patch(s.ctx(), s.namespace, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	s.must(err)
}

// ledgerVerifies checks the ledger of all scenarios so far, beside the server that writes it.
func (s *Scenario) ledgerVerifies() {
	s.Helper()
	text, err := exec.Command(s.tranchePath, "ledger", "verify", "--ledger", s.Ledger).CombinedOutput()
	if err != nil {
		s.Errorf("expected the ledger to be good, found %v:\n%s", err, text)
	}
}
