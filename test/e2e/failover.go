package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The users of the two processes of a pair: the audit log tells their writes apart.
var pairUsers = []string{"tranche-a", "tranche-b"}

const leasePath = "tranche-system/tranche"

// Link is the network between one process and the API server. While it is cut, bytes go nowhere and
// nobody is told, as behind a switch that died.
type Link struct {
	Address  string
	target   string
	listener net.Listener

	mutex sync.Mutex
	whole chan struct{} // closed while the link is whole
	conns map[net.Conn]bool
}

func NewLink(target string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{Address: listener.Addr().String(), target: target, listener: listener,
		whole: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.whole)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client)
		}
	}()
	return l, nil
}

func (l *Link) serve(client net.Conn) {
	defer client.Close()
	l.pass()
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer server.Close()
	l.keep(client, server)
	defer l.forget(client, server)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			l.copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func (l *Link) copy(from, to net.Conn) {
	buffer := make([]byte, 64*1024)
	for {
		n, err := from.Read(buffer)
		// What was read while the link was cut arrives late, as retransmissions do, but for what its
		// sender has taken back by a reset: that is sent by nobody again.
		if l.pass() && err == nil {
			more, reset := readRest(from, buffer[n:])
			if reset {
				return
			}
			n += more
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until the link is whole. False: it was.
func (l *Link) pass() bool {
	l.mutex.Lock()
	whole := l.whole
	l.mutex.Unlock()
	select {
	case <-whole:
		return false
	default:
		<-whole
		return true
	}
}

// readRest is what has come behind bytes that were held, or that the sender has reset the connection.
func readRest(conn net.Conn, buffer []byte) (n int, reset bool) {
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	defer conn.SetReadDeadline(time.Time{})
	n, err := conn.Read(buffer)
	return n, errors.Is(err, syscall.ECONNRESET)
}

func (l *Link) keep(conns ...net.Conn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, conn := range conns {
		l.conns[conn] = true
	}
}

func (l *Link) forget(conns ...net.Conn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, conn := range conns {
		delete(l.conns, conn)
	}
}

func (l *Link) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.whole = make(chan struct{})
}

func (l *Link) Mend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	close(l.whole)
}

func (l *Link) Close() {
	l.listener.Close()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for conn := range l.conns {
		conn.Close()
	}
}

// Replica is one of two Tranche processes that elect a leader.
type Replica struct {
	User    string
	URL     string
	Ledger  string
	Process *Process
	Link    *Link
}

func (r *Replica) Signal(signal syscall.Signal) error {
	return syscall.Kill(-r.Process.cmd.Process.Pid, signal)
}

// Ready tells whether the replica answers that it leads.
func (r *Replica) Ready(client *http.Client) bool {
	answer, err := client.Get(r.URL + "/readyz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode == http.StatusOK
}

// Pair is a control plane whose kube-scheduler asks whichever of two replicas is ready, as a Service
// would have it.
type Pair struct {
	*ControlPlane
	Replicas []*Replica
	Audit    string // the API server's log of writes
	service  *http.Server
	probe    *http.Client

	mutex   sync.Mutex
	current *Replica // ready; nil: none
}

// Seconds of the election.
type electionTimes struct{ lease, renew, retry int }

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Request
    verbs: [create, update, patch, delete, deletecollection]
    users: [tranche-a, tranche-b]
  - level: None
`

func StartPair(ctx context.Context, dir, programs, tranche, charts string, times electionTimes) (*Pair, error) {
	plane, err := newControlPlane(dir, tranche)
	if err != nil {
		return nil, err
	}
	p := &Pair{ControlPlane: plane, Audit: filepath.Join(dir, "audit.log"),
		probe: &http.Client{Timeout: 500 * time.Millisecond}}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	err = plane.startAPIServer(ctx, programs, "--audit-policy-file="+policy, "--audit-log-path="+p.Audit)
	if err == nil {
		err = plane.admitTranche(ctx, charts, pairUsers...)
	}
	for _, user := range pairUsers {
		if err == nil {
			err = p.addReplica(user, times)
		}
	}
	if err == nil {
		err = p.serve(ctx)
	}
	if err == nil {
		_, err = p.WaitLeader(time.Minute)
	}
	if err == nil {
		err = plane.startScheduler(ctx, programs)
	}
	if err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Pair) addReplica(user string, times electionTimes) error {
	link, err := NewLink(strings.TrimPrefix(p.apiURL, "https://"))
	if err != nil {
		return err
	}
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	r := &Replica{User: user, URL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		Ledger: filepath.Join(p.dir, user+".db"), Link: link}
	config := fmt.Sprintf(`cluster: kubernetes
kubeconfig: %q
listen: %q
ledger: {file: %q}
leaderElection: {lease: %s, leaseSeconds: %d, renewSeconds: %d, retrySeconds: %d}
`, filepath.Join(p.dir, user+".kubeconfig"), strings.TrimPrefix(r.URL, "http://"), r.Ledger, leasePath,
		times.lease, times.renew, times.retry)
	for name, text := range map[string][]byte{
		user + ".yaml":       []byte(config),
		user + ".kubeconfig": p.kubeconfig("https://"+link.Address, "token-of-"+user),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	r.Process = NewProcess(p.dir, user, p.tranchePath, "serve", "--config", filepath.Join(p.dir, user+".yaml"))
	if err := r.Process.Start(); err != nil {
		return err
	}
	p.Replicas = append(p.Replicas, r)
	p.processes = append(p.processes, r.Process)
	return nil
}

// serve plays the Service: what comes in at TrancheURL goes to the replica that is ready.
func (p *Pair) serve(ctx context.Context) error {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if leader := p.Leader(); leader != nil {
				target, err := url.Parse(leader.URL)
				if err != nil {
					panic(err) // made by us of a number
				}
				r.SetURL(target)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	}
	listener, err := net.Listen("tcp", strings.TrimPrefix(p.TrancheURL, "http://"))
	if err != nil {
		return err
	}
	p.service = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Leader() == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = p.service.Serve(listener) }()
	go func() {
		for ctx.Err() == nil {
			p.look()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return nil
}

// Two that answer ready at once would be two leaders; the last one seen is kept, and the audit log
// tells of what both wrote.
func (p *Pair) look() {
	var ready *Replica
	for _, r := range p.Replicas {
		if r.Ready(p.probe) {
			ready = r
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.current = ready
}

// Leader is the replica that was ready a moment ago; nil: none.
func (p *Pair) Leader() *Replica {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.current
}

func (p *Pair) WaitLeader(limit time.Duration) (*Replica, error) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if leader := p.Leader(); leader != nil {
			return leader, nil
		}
	}
	return nil, fmt.Errorf("expected a leader within %v, found none", limit)
}

// Revive starts replicas that have ended, as a kubelet would.
func (p *Pair) Revive() error {
	for _, r := range p.Replicas {
		if !r.Process.Running() {
			if err := r.Process.Start(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Pair) Stop() {
	if p.service != nil {
		p.service.Close()
	}
	p.ControlPlane.Stop()
	for _, r := range p.Replicas {
		r.Link.Close()
	}
}

// auditEvent is what this needs of an entry of the API server's log.
type auditEvent struct {
	Stage     string
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
	Status    struct{ Code int } `json:"responseStatus"`
	Received  time.Time          `json:"requestReceivedTimestamp"`
	Done      time.Time          `json:"stageTimestamp"`
	Request   struct {
		Spec struct{ HolderIdentity string }
	} `json:"requestObject"`
}

func (e *auditEvent) succeeded() bool { return e.Status.Code >= 200 && e.Status.Code < 300 }
func (e *auditEvent) ofLease() bool {
	return e.ObjectRef.Resource == "leases" && e.ObjectRef.Namespace+"/"+e.ObjectRef.Name == leasePath
}

func readAudit(path string) ([]auditEvent, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []auditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("%s: %w in %.200s", path, err, lines.Text())
		}
		if event.Stage == "ResponseComplete" {
			events = append(events, event)
		}
	}
	return events, lines.Err()
}

// changes of hands: who held the lease since when, by the server's clock.
type tenure struct {
	user  string
	since time.Time
}

// JudgeWrites returns every write that succeeded although the lease was another's when the server got
// it, and how many writes and changes of hands there were.
func JudgeWrites(events []auditEvent) (wrong []string, writes, hands int) {
	var tenures []tenure
	sort.Slice(events, func(i, j int) bool { return events[i].Done.Before(events[j].Done) })
	for i := range events {
		if event := &events[i]; event.ofLease() && event.succeeded() && event.Request.Spec.HolderIdentity != "" {
			if len(tenures) == 0 || tenures[len(tenures)-1].user != event.User.Username {
				tenures = append(tenures, tenure{event.User.Username, event.Done})
			}
		}
	}
	holderAt := func(when time.Time) string {
		holder := ""
		for _, one := range tenures {
			if !one.since.After(when) {
				holder = one.user
			}
		}
		return holder
	}
	for i := range events {
		event := &events[i]
		if event.ObjectRef.Resource == "leases" || !event.succeeded() {
			continue
		}
		writes++
		if holder := holderAt(event.Received); holder != event.User.Username {
			wrong = append(wrong, fmt.Sprintf("%s by %s at %s: %s %s %s/%s, the leader is %q", event.Verb,
				event.User.Username, event.Received.Format(time.RFC3339Nano), event.ObjectRef.Resource,
				event.ObjectRef.Subresource, event.ObjectRef.Namespace, event.ObjectRef.Name, holder))
		}
	}
	return wrong, writes, len(tenures)
}
