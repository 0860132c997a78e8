// Package e2e runs Tranche under a real etcd, kube-apiserver and kube-scheduler on loopback.
// There is no kubelet: Kubelet in this package plays its part. Everything a scenario does or sees
// goes through client-go, as a user's would.
package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	adminToken     = "token-of-the-admin"
	schedulerToken = "token-of-the-scheduler"
	trancheToken   = "token-of-tranche"
	trancheUser    = "tranche-under-test"
	cliToken       = "token-of-cli"
	cliUser        = "person-with-cli"
)

// ControlPlane is a cluster without machines. Not safe for use from several goroutines, except
// Client.
type ControlPlane struct {
	Client        *kubernetes.Clientset
	SchedulerName string // of the first profile Tranche prints
	Tranche       *Process
	TrancheURL    string
	AdmissionURL  string // where Tranche answers API servers, over TLS
	AdmissionCA   []byte // PEM, signed its certificate
	Ledger        string // file Tranche meters into
	APIServer     *Process

	dir          string
	programs     string // folder of the control plane's own
	apiURL       string
	tranchePath  string
	scheduler    *Process
	etcdURL      string
	peerURL      string
	schedulerURL string
	processes    []*Process // in start order
}

// StartControlPlane starts everything and returns when Tranche is ready and kube-scheduler runs. The
// API server and kube-scheduler have the feature gates, and the API server what they serve. On error what was started is stopped; the error carries the tail of the log in question.
func StartControlPlane(ctx context.Context, dir, programs, tranche, charts string,
	gates ...string) (*ControlPlane, error) {
	c, err := newControlPlane(dir, tranche)
	if err != nil {
		return nil, err
	}
	c.programs = programs
	c.Tranche = NewProcess(dir, "tranche", tranche,
		"serve", "--config", filepath.Join(dir, "tranche.yaml"),
		"--cluster", "kubernetes", "--kubeconfig", filepath.Join(dir, "tranche.kubeconfig"),
		"--listen", strings.TrimPrefix(c.TrancheURL, "http://"), "--ledger", c.Ledger)
	var ofServer, ofScheduler []string
	for _, gate := range gates {
		ofScheduler = append(ofScheduler, "--feature-gates="+gate+"=true")
	}
	if len(gates) > 0 {
		ofServer = append(slices.Clone(ofScheduler), "--runtime-config=api/beta=true")
	}
	err = c.startAPIServer(ctx, programs, ofServer...)
	if err == nil {
		err = c.admitTranche(ctx, charts, trancheUser)
	}
	if err == nil {
		err = c.start(ctx, c.Tranche, c.TrancheURL+"/readyz", "", 30*time.Second)
	}
	if err == nil {
		err = c.startScheduler(ctx, programs, ofScheduler...)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func newControlPlane(dir, tranche string) (*ControlPlane, error) {
	ports, err := FreePorts(6)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		dir:          dir,
		apiURL:       fmt.Sprintf("https://127.0.0.1:%d", ports[2]),
		TrancheURL:   fmt.Sprintf("http://127.0.0.1:%d", ports[4]),
		AdmissionURL: fmt.Sprintf("https://127.0.0.1:%d", ports[5]),
		Ledger:       filepath.Join(dir, "ledger.db"),

		tranchePath:  tranche,
		etcdURL:      fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		peerURL:      fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		schedulerURL: fmt.Sprintf("https://127.0.0.1:%d", ports[3]),
	}
	return c, c.writeSecrets()
}

// start runs a program and waits until it answers at `ready`.
func (c *ControlPlane) start(ctx context.Context, process *Process, ready, token string,
	limit time.Duration) error {
	if err := process.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, process)
	return c.waitReady(ctx, process, ready, token, limit)
}

// startAPIServer starts the API server, with further arguments, and the store behind it.
func (c *ControlPlane) startAPIServer(ctx context.Context, programs string, more ...string) error {
	dir := c.dir
	etcd := NewProcess(dir, "etcd", filepath.Join(programs, "etcd"),
		"--name", "n0", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--log-level", "warn",
		"--listen-client-urls", c.etcdURL, "--advertise-client-urls", c.etcdURL,
		"--listen-peer-urls", c.peerURL, "--initial-advertise-peer-urls", c.peerURL,
		"--initial-cluster", "n0="+c.peerURL)
	arguments := append([]string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=127.0.0.1", "--secure-port=" + portOf(c.apiURL),
		"--cert-dir=" + filepath.Join(dir, "pki"),
		// Without these two the server looks for a default route, which a test machine may lack.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
		"--token-auth-file=" + filepath.Join(dir, "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(dir, "sa.key"),
		"--service-account-signing-key-file=" + filepath.Join(dir, "sa.key"),
		// The controllers these two wait for do not run here.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		"--event-ttl=10m"}, more...)
	c.APIServer = NewProcess(dir, "kube-apiserver", filepath.Join(programs, "kube-apiserver"), arguments...)
	if err := c.start(ctx, etcd, c.etcdURL+"/health", "", 30*time.Second); err != nil {
		return err
	}
	return c.start(ctx, c.APIServer, c.apiURL+"/readyz", adminToken, 90*time.Second)
}

// startScheduler starts kube-scheduler, with further arguments, and the configuration Tranche prints.
func (c *ControlPlane) startScheduler(ctx context.Context, programs string, more ...string) error {
	if err := c.writeSchedulerConfig(nil); err != nil {
		return err
	}
	arguments := append([]string{"--config=" + filepath.Join(c.dir, "scheduler.yaml"),
		"--bind-address=127.0.0.1", "--secure-port=" + portOf(c.schedulerURL), "--v=2"}, more...)
	c.scheduler = NewProcess(c.dir, "kube-scheduler", filepath.Join(programs, "kube-scheduler"), arguments...)
	return c.start(ctx, c.scheduler, c.schedulerURL+"/readyz", "", 30*time.Second)
}

func portOf(url string) string { return url[strings.LastIndex(url, ":")+1:] }

// Processes are the programs that run, in the order of their start.
func (c *ControlPlane) Processes() []*Process { return slices.Clone(c.processes) }

// Stop ends all programs, the last started first.
func (c *ControlPlane) Stop() {
	for i := len(c.processes) - 1; i >= 0; i-- {
		c.processes[i].Stop(15 * time.Second)
	}
}

// LogTails returns the end of every program's log; more of the two that decide.
func (c *ControlPlane) LogTails() string {
	var text strings.Builder
	for i, p := range c.processes {
		lines := 10
		if i >= 2 {
			lines = 60
		}
		fmt.Fprintf(&text, "--- %s\n%s\n", p.Name, p.LogTail(lines))
	}
	return text.String()
}

// WaitTrancheReady returns nil when Tranche answers that its caches are complete.
func (c *ControlPlane) WaitTrancheReady(ctx context.Context, limit time.Duration) error {
	return c.waitReady(ctx, c.Tranche, c.TrancheURL+"/readyz", "", limit)
}

// WaitAPIServerReady returns nil when the API server serves again.
func (c *ControlPlane) WaitAPIServerReady(ctx context.Context, limit time.Duration) error {
	return c.waitReady(ctx, c.APIServer, c.apiURL+"/readyz", adminToken, limit)
}

func (c *ControlPlane) waitReady(ctx context.Context, p *Process, url, token string,
	limit time.Duration) error {
	// Readiness is no secret; the tests proper verify the certificate.
	transport := rest.TLSClientConfig{Insecure: true}
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: transport, Timeout: 2 * time.Second})
	if err != nil {
		return err
	}
	last := "nothing"
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if !p.Running() {
			return fmt.Errorf("expected %s to run, it ended:\n%s", p.Name, p.LogTail(40))
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(request)
		if err != nil {
			last = err.Error()
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		last = answer.Status
	}
	return fmt.Errorf("expected %s to answer 200 within %v, found %s:\n%s", url, limit, last, p.LogTail(40))
}

func (c *ControlPlane) writeSecrets() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	ca, err := NewAuthority("tranche-e2e")
	if err != nil {
		return err
	}
	c.AdmissionCA = ca.PEM
	certificate, certificateKey, err := ca.Sign(net.ParseIP("127.0.0.1"))
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	tokens := fmt.Sprintf("%s,admin,1,\"system:masters\"\n%s,system:kube-scheduler,2\n%s,%s,3\n",
		adminToken, schedulerToken, trancheToken, trancheUser)
	for i, user := range pairUsers {
		tokens += fmt.Sprintf("token-of-%s,%s,%d\n", user, user, 4+i)
	}
	tokens += fmt.Sprintf("%s,%s,90\n", cliToken, cliUser)
	files := map[string][]byte{
		"tls.crt":              certificate,
		"tls.key":              certificateKey,
		"tranche.yaml":         c.trancheConfig(),
		"sa.key":               pem.EncodeToMemory(block),
		"tokens.csv":           []byte(tokens),
		"tranche.kubeconfig":   c.kubeconfig(c.apiURL, trancheToken),
		"scheduler.kubeconfig": c.kubeconfig(c.apiURL, schedulerToken),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Without a webhook that is configured nobody asks, so that other scenarios see none of it.
func (c *ControlPlane) trancheConfig() []byte {
	return []byte(fmt.Sprintf(`tls: {listen: "%s", certFile: "%s", keyFile: "%s"}
admission: {gates: true, trustedUsers: [%s]}
`, strings.TrimPrefix(c.AdmissionURL, "https://"), filepath.Join(c.dir, "tls.crt"),
		filepath.Join(c.dir, "tls.key"), trancheUser))
}

// The API server writes its own certificate at the first start; all clients verify against it.
func (c *ControlPlane) certificate() string { return filepath.Join(c.dir, "pki", "apiserver.crt") }

func (c *ControlPlane) kubeconfig(server, token string) []byte {
	return []byte(fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: test, user: {token: "%s"}}]
`, server, c.certificate(), token))
}

// What an administrator does before Tranche starts: the definitions of other projects, the shipped
// ones, and the shipped rules for its users.
func (c *ControlPlane) admitTranche(ctx context.Context, charts string, users ...string) error {
	var err error
	if c.Client, err = c.ClientOf(adminToken, ""); err != nil {
		return err
	}
	for _, kind := range foreignKinds {
		if err := kind.Install(ctx, c.Client); err != nil {
			return err
		}
	}
	if err := InstallCRDs(ctx, c.Client, filepath.Join(charts, "tranche", "crds")); err != nil {
		return err
	}
	if err := ApplyRBAC(ctx, c.Client, filepath.Join(charts, "rbac.yaml"), users...); err != nil {
		return err
	}
	// HAMi nodes of the fleet register as 2.9.
	return BindRoles(ctx, c.Client, users, "tranche-node-lock")
}

// ClientOf returns a client of the token's user; with `as` of that user, in whose name an
// administrator's token may speak.
func (c *ControlPlane) ClientOf(token, as string) (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(&rest.Config{
		Host: c.apiURL, BearerToken: token, Impersonate: rest.ImpersonationConfig{UserName: as},
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.certificate()},
		QPS:             2000, Burst: 4000, Timeout: 30 * time.Second,
	})
}

// RestartScheduler starts kube-scheduler anew with a changed extender entry; nil: as Tranche prints it.
func (c *ControlPlane) RestartScheduler(ctx context.Context, change func(extender map[string]any)) error {
	if err := c.writeSchedulerConfig(change); err != nil {
		return err
	}
	c.scheduler.Stop(15 * time.Second)
	if err := c.scheduler.Start(); err != nil {
		return err
	}
	return c.waitReady(ctx, c.scheduler, c.schedulerURL+"/readyz", "", 30*time.Second)
}

// The configuration Tranche prints, with what depends on the machine filled in.
func (c *ControlPlane) writeSchedulerConfig(change func(extender map[string]any)) error {
	text, err := exec.Command(c.tranchePath, "scheduler-config", "--server", c.TrancheURL).Output()
	if err != nil {
		return fmt.Errorf("tranche scheduler-config: %w", err)
	}
	config := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return fmt.Errorf("reading what scheduler-config printed: %w", err)
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = filepath.Join(c.dir, "scheduler.kubeconfig")
	config["clientConnection"] = connection
	config["leaderElection"] = map[string]any{"leaderElect": false}
	if change != nil {
		extenders, _ := config["extenders"].([]any)
		if len(extenders) != 1 {
			return fmt.Errorf("expected one extender in what scheduler-config printed, found %d", len(extenders))
		}
		change(extenders[0].(map[string]any))
	}
	c.SchedulerName = "default-scheduler"
	if profiles, _ := config["profiles"].([]any); len(profiles) > 0 {
		profile, _ := profiles[0].(map[string]any)
		if name, _ := profile["schedulerName"].(string); name != "" {
			c.SchedulerName = name
		}
	}
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, "scheduler.yaml"), text, 0o600)
}
