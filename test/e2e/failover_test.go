package e2e

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FAILOVER_ROUNDS is how often each fault is tried (2), FAILOVER_LEASE the seconds of the lease (6;
// with 15 renewals and pauses are those of production).
func numberOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("%s: expected a number above 0, found %q", variable, text)
	}
	return number
}

// churn keeps pods coming and going, so that binds are in flight at every moment.
type churn struct {
	s *Scenario

	mutex sync.Mutex
	bound map[types.UID]string // every pod ever seen with a node
	twice []string             // what an audit found
	epoch int64                // the highest seen
	alive int                  // pods when last looked at
}

const (
	churnRate   = 250 * time.Millisecond // between two pods
	churnHolds  = 4 * time.Second        // from the first sight of a node to deletion
	churnAudits = 500 * time.Millisecond
	churnMost   = 40 // pods at a time: what piles up without a leader is worked off soon
)

// create sends pods until the context ends.
func (c *churn) create(ctx context.Context) {
	asks := []Ask{HalfCard(), WholeCards(1), HalfCard(), WholeCards(2), HamiShare(a100Mib/4, 25)}
	pods := c.s.Client.CoreV1().Pods(c.s.namespace)
	for i := 0; ctx.Err() == nil; i++ {
		pod := asks[i%len(asks)].Pod(fmt.Sprintf("job-%05d", i), map[string]string{fleetKey: c.s.fleet})
		pod.Spec.SchedulerName = c.s.SchedulerName
		_, _ = pods.Create(ctx, pod, metav1.CreateOptions{})
		time.Sleep(churnRate)
		for ctx.Err() == nil && c.aliveCount() >= churnMost {
			time.Sleep(churnRate)
		}
	}
}

// reap looks at all pods again and again, and deletes those that have run for a while.
func (c *churn) reap(ctx context.Context) {
	pods := c.s.Client.CoreV1().Pods(c.s.namespace)
	since := map[types.UID]time.Time{}
	grace := int64(1)
	for ctx.Err() == nil {
		time.Sleep(churnAudits)
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		c.look(list.Items)
		for i := range list.Items {
			pod := &list.Items[i]
			if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
				continue
			}
			if _, known := since[pod.UID]; !known {
				since[pod.UID] = time.Now()
			}
			if time.Since(since[pod.UID]) > churnHolds {
				_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
			}
		}
	}
}

func (c *churn) look(pods []corev1.Pod) {
	problems := Audit(c.s.nodes, pods)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.alive = len(pods)
	c.twice = append(c.twice, problems...)
	for i := range pods {
		if pods[i].Spec.NodeName == "" {
			continue
		}
		c.bound[pods[i].UID] = pods[i].Name
		if allocation, err := AllocationOf(&pods[i]); err == nil {
			c.epoch = max(c.epoch, allocation.Epoch)
		}
	}
}

func (c *churn) boundCount() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.bound)
}

func (c *churn) aliveCount() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.alive
}

type faultKind struct {
	name string
	// hurt does the damage and returns what undoes it once another replica leads.
	hurt func(*Replica) (heal func() error, err error)
}

func faultsOf(pause time.Duration) []faultKind {
	return []faultKind{
		{"killed", func(r *Replica) (func() error, error) {
			r.Process.Kill()
			return func() error { return nil }, nil
		}},
		{"paused", func(r *Replica) (func() error, error) {
			began := time.Now()
			return func() error {
				time.Sleep(time.Until(began.Add(pause)))
				if err := r.Signal(syscall.SIGCONT); err != nil {
					return err
				}
				return expectEnd(r, 3*time.Second)
			}, r.Signal(syscall.SIGSTOP)
		}},
		{"cut off", func(r *Replica) (func() error, error) {
			r.Link.Cut()
			return func() error {
				// It cannot renew, and must have ended by itself before anybody else began.
				err := expectEnd(r, 0)
				r.Link.Mend()
				return err
			}, nil
		}},
	}
}

func expectEnd(r *Replica, limit time.Duration) error {
	for end := time.Now().Add(limit); r.Process.Running(); time.Sleep(20 * time.Millisecond) {
		if time.Now().Before(end) {
			continue
		}
		return fmt.Errorf("expected the old leader %s to have ended within %v, it runs:\n%s", r.User, limit,
			r.Process.LogTail(20))
	}
	return nil
}

func TestFailoverUnderLoad(t *testing.T) {
	if shared == nil {
		t.Skip("needs a control plane: set TRANCHE_BIN and CONTROLPLANE_BIN")
	}
	rounds := numberOf(t, "FAILOVER_ROUNDS", 2)
	lease := numberOf(t, "FAILOVER_LEASE", 6)
	times := electionTimes{lease, lease * 2 / 3, max(1, lease*2/15)}
	limit := time.Duration(lease+5) * time.Second
	pause := limit // 20 s with the lease of production

	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	pair, err := StartPair(ctx, t.TempDir(), os.Getenv("CONTROLPLANE_BIN"), os.Getenv("TRANCHE_BIN"),
		filepath.Join("..", "..", "charts"), times)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pair.Stop)
	RunKubelet(ctx, pair.Client)
	s := &Scenario{T: t, ControlPlane: pair.ControlPlane, namespace: "failover", fleet: "failover"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of all logs:\n%s", s.LogTails())
		}
	})
	_, err = s.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	s.must(err)
	for i := range 4 {
		s.addNode(HamiNode(fmt.Sprintf("failover-%d", i), 8))
	}
	load := &churn{s: s, bound: map[types.UID]string{}}
	createCtx, stopCreating := context.WithCancel(ctx)
	reapCtx, stopReaping := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Add(2)
	go func() {
		defer working.Done()
		load.create(createCtx)
	}()
	go func() {
		defer working.Done()
		load.reap(reapCtx)
	}()

	for round := range rounds {
		for _, fault := range faultsOf(pause) {
			name := fmt.Sprintf("round %d, leader %s", round+1, fault.name)
			if err := failOver(pair, load, fault, limit); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Logf("%s: %d pods bound so far", name, load.boundCount())
		}
	}
	stopCreating()
	s.eventually(2*time.Minute, func() string {
		for _, pod := range s.list() {
			if pod.Spec.NodeName == "" {
				return fmt.Sprintf("expected all pods to be bound in the end, found %s: %s", pod.Name, describe(&pod))
			}
		}
		return ""
	})
	stopReaping()
	working.Wait()
	load.look(s.list())
	for _, found := range load.twice {
		t.Errorf("given out twice: %s", found)
	}
	if load.epoch < int64(rounds*3+1) {
		t.Errorf("expected an epoch for each of %d leaders, found %d as the highest", rounds*3+1, load.epoch)
	}

	for _, r := range pair.Replicas {
		if code := r.Process.Stop(15 * time.Second); code != 0 {
			t.Errorf("expected %s to stop with code 0, found %d", r.User, code)
		}
	}
	judgeAudit(t, pair, rounds*3)
	expectMetered(t, pair, load)
}

// failOver hurts the leader and waits until the other leads and binds, and all is well again.
func failOver(pair *Pair, load *churn, fault faultKind, limit time.Duration) error {
	old, err := pair.WaitLeader(limit)
	if err != nil {
		return err
	}
	// The standby must be there, as two replicas are in a cluster, and binds under way.
	if err := pair.Revive(); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	began := time.Now()
	heal, err := fault.hurt(old)
	if err != nil {
		return err
	}
	var took time.Duration
	for {
		if leader := pair.Leader(); leader != nil && leader != old {
			took = time.Since(began)
			break
		}
		if time.Since(began) > limit {
			return fmt.Errorf("expected another leader within %v, found none", limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
	before := load.boundCount()
	if err := heal(); err != nil {
		return err
	}
	load.s.Logf("leader %s %s: another leads after %.1f s", old.User, fault.name, took.Seconds())
	if err := pair.Revive(); err != nil {
		return err
	}
	for end := time.Now().Add(20 * time.Second); load.boundCount() <= before; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("expected the new leader to bind pods, found none bound")
		}
	}
	return nil
}

func judgeAudit(t *testing.T, pair *Pair, faults int) {
	t.Helper()
	pair.APIServer.Stop(20 * time.Second) // its log is complete
	events, err := readAudit(pair.Audit)
	if err != nil {
		t.Fatal(err)
	}
	wrong, writes, hands := JudgeWrites(events)
	for _, one := range wrong {
		t.Errorf("written without the lease: %s", one)
	}
	if writes == 0 || hands <= faults {
		t.Errorf("expected writes and more than %d leaders in the audit log, found %d and %d", faults, writes, hands)
	}
	t.Logf("audit: %d writes by %d leaders in turn, all of them by the leader of the moment", writes, hands)
}

// Every pod that was ever bound is in the ledger of the leader that bound it: the entry is on disk
// before the Binding is sent. Each ledger is whole.
func expectMetered(t *testing.T, pair *Pair, load *churn) {
	t.Helper()
	metered := map[string]bool{}
	for _, r := range pair.Replicas {
		if _, err := os.Stat(r.Ledger); os.IsNotExist(err) {
			continue // it never led
		}
		if text, err := exec.Command(pair.tranchePath, "ledger", "verify", "--ledger", r.Ledger).CombinedOutput(); err != nil {
			t.Errorf("expected the ledger of %s to be whole, found %v: %s", r.User, err, text)
		}
		text, err := exec.Command(pair.tranchePath, "ledger", "export", "--ledger", r.Ledger, "-o", "csv").Output()
		if err != nil {
			t.Fatalf("exporting the ledger of %s: %v", r.User, err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil || len(rows) == 0 {
			t.Fatalf("expected rows in the ledger of %s, found %d (%v)", r.User, len(rows), err)
		}
		column := -1
		for i, name := range rows[0] {
			if name == "podUid" {
				column = i
			}
		}
		if column < 0 {
			t.Fatalf("expected a column podUid, found %v", rows[0])
		}
		for _, row := range rows[1:] {
			metered[row[column]] = true
		}
	}
	missing := 0
	for uid, name := range load.bound {
		if !metered[string(uid)] {
			missing++
			if missing <= 5 {
				t.Errorf("expected %s (%s) in a ledger, found it in none", name, uid)
			}
		}
	}
	t.Logf("ledgers: %d of %d pods that were bound are metered", len(load.bound)-missing, len(load.bound))
}

// The judge itself: it would notice.
func TestTheAuditJudgeNoticesAnOldLeader(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }
	lease := func(user, holder string, done, code int) auditEvent {
		var e auditEvent
		e.Verb, e.User.Username, e.Received, e.Done, e.Status.Code = "update", user, at(done), at(done), code
		e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name = "leases", "tranche-system", "tranche"
		e.Request.Spec.HolderIdentity = holder
		return e
	}
	write := func(user string, received, code int) auditEvent {
		var e auditEvent
		e.Verb, e.User.Username, e.Received, e.Done, e.Status.Code = "create", user, at(received), at(received+1), code
		e.ObjectRef.Resource, e.ObjectRef.Subresource = "pods", "binding"
		return e
	}
	base := []auditEvent{lease("a", "a_1", 0, 201), lease("a", "a_1", 2, 200), lease("b", "b_1", 17, 200)}
	for _, row := range []struct {
		name  string
		event auditEvent
		wrong int
	}{
		{"by the leader", write("a", 5, 201), 0},
		{"by the next one", write("b", 18, 201), 0},
		{"by the old one", write("a", 18, 201), 1},
		{"by the old one, refused", write("a", 18, 409), 0},
		{"by a standby", write("b", 5, 201), 1},
		{"after a try for the lease that was refused", write("b", 10, 201), 1},
	} {
		events := append([]auditEvent{lease("b", "b_1", 9, 409), row.event}, base...)
		wrong, _, hands := JudgeWrites(events)
		if len(wrong) != row.wrong || hands != 2 {
			t.Errorf("%s: expected %d wrong writes and 2 leaders, found %d and %d", row.name, row.wrong, len(wrong), hands)
		}
	}
}
