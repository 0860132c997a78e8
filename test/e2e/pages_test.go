package e2e

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pages is a Tranche that asks the API server who its callers are, in a cluster of its own.
type Pages struct {
	*testing.T
	*ControlPlane
	url string
}

// newPages starts one; more are further keys of `pages`.
func newPages(t *testing.T, more string) *Pages {
	t.Helper()
	programs, tranche := os.Getenv("CONTROLPLANE_BIN"), os.Getenv("TRANCHE_BIN")
	if tranche == "" || programs == "" {
		t.Skip("needs a control plane: set TRANCHE_BIN and CONTROLPLANE_BIN")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	plane, err := StartAPIServer(ctx, dir, programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Stop)
	p := &Pages{t, plane, plane.TrancheURL}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of all logs:\n%s", p.LogTails())
		}
	})
	p.must(p.admitTranche(ctx, filepath.Join("..", "..", "charts"), trancheUser))
	config := filepath.Join(dir, "pages.yaml")
	p.must(os.WriteFile(config, []byte("cluster: kubernetes\nlogLevel: trace\npages: {auth: Kubernetes, "+
		"reviewsPerSecond: 20"+more+"}\n"), 0o600))
	p.Tranche = NewProcess(dir, "tranche-pages", tranche, "serve", "--config", config,
		"--kubeconfig", filepath.Join(dir, "tranche.kubeconfig"), "--listen", strings.TrimPrefix(p.url, "http://"))
	p.must(p.ControlPlane.Run(ctx, p.Tranche, p.url+"/readyz", 30*time.Second))
	return p
}

func (p *Pages) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// account makes a service account, bound to the role in its namespace or, with "cluster", everywhere.
func (p *Pages) account(namespace, name, role, scope string) string {
	p.Helper()
	ctx := context.Background()
	_, err := p.Client.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	p.must(err)
	meta := metav1.ObjectMeta{Name: "pages-" + name}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}
	switch scope {
	case "cluster":
		_, err = p.Client.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	case "namespace":
		_, err = p.Client.RbacV1().RoleBindings(namespace).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	p.must(err)
	token, err := p.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	p.must(err)
	return token.Status.Token
}

// endingToken is one of the account that the API server would make only for ten minutes and more:
// signed with its own key.
func (p *Pages) endingToken(namespace, name string, life time.Duration) string {
	p.Helper()
	account, err := p.Client.CoreV1().ServiceAccounts(namespace).Get(context.Background(), name, metav1.GetOptions{})
	p.must(err)
	text, err := os.ReadFile(filepath.Join(p.dir, "sa.key"))
	p.must(err)
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	p.must(err)
	const issuer = "https://kubernetes.default.svc"
	now := time.Now()
	claims := map[string]any{"iss": issuer, "aud": []string{issuer}, "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(life).Unix(), "sub": "system:serviceaccount:" + namespace + ":" + name,
		"kubernetes.io": map[string]any{"namespace": namespace,
			"serviceaccount": map[string]any{"name": name, "uid": account.UID}}}
	part := func(value any) string {
		text, err := json.Marshal(value)
		p.must(err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]any{"alg": "RS256", "typ": "JWT"}) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	p.must(err)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (p *Pages) get(token, path string) (int, string) {
	p.Helper()
	request, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	p.must(err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	p.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	p.must(err)
	return answer.StatusCode, string(text)
}

// namespaces of the pods that the token shows.
func (p *Pages) namespaces(token string) []string {
	p.Helper()
	_, text := p.get(token, "/api/v1/pods")
	var list struct{ Pods []struct{ Namespace string } }
	p.must(json.Unmarshal([]byte(text), &list))
	var found []string
	for _, pod := range list.Pods {
		found = append(found, pod.Namespace)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestPagesShowWhatACallerMaySee asks with tokens of a real API server, which says by its RBAC who sees
// what.
func TestPagesShowWhatACallerMaySee(t *testing.T) {
	p := newPages(t, "")
	ctx := context.Background()
	for _, namespace := range []string{"pages-a", "pages-b", "pages-ops"} {
		_, err := p.Client.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		p.must(err)
		if namespace == "pages-ops" {
			continue
		}
		_, err = p.Client.CoreV1().Pods(namespace).Create(ctx, WholeCards(1).Pod("train", nil), metav1.CreateOptions{})
		p.must(err)
	}
	tokens := map[string]string{
		"admin":    adminToken,
		"viewer":   p.account("pages-ops", "viewer", "tranche-viewer", "cluster"),
		"scraper":  p.account("pages-ops", "scraper", "tranche-scraper", "cluster"),
		"member":   p.account("pages-a", "member", "tranche-quota-viewer", "namespace"),
		"stranger": p.account("pages-b", "stranger", "", ""),
		"made up":  "token-of-nobody",
		"none":     "",
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		found := p.namespaces(adminToken)
		if slices.Equal(found, []string{"pages-a", "pages-b"}) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("expected pods of both teams to be known, found those of %v", found)
		}
	}
	for _, test := range []struct {
		path   string
		status map[string]int
	}{
		{"/metrics", map[string]int{"admin": 200, "viewer": 200, "scraper": 200, "member": 403, "stranger": 403,
			"made up": 401, "none": 401}},
		{"/api/v1/pods", map[string]int{"admin": 200, "viewer": 200, "scraper": 403, "member": 200, "stranger": 403,
			"made up": 401, "none": 401}},
		{"/api/v1/pods/pages-a/train", map[string]int{"admin": 200, "viewer": 200, "member": 200, "stranger": 404}},
		{"/api/v1/pods/pages-b/train", map[string]int{"admin": 200, "viewer": 200, "member": 404, "stranger": 404}},
		{"/api/v1/explain/pages-a/train", map[string]int{"viewer": 200, "member": 200, "stranger": 404}},
		{"/api/v1/explain/pages-b/train", map[string]int{"viewer": 200, "member": 404, "stranger": 404}},
		{"/api/v1/pods?namespace=pages-b", map[string]int{"viewer": 200, "member": 403, "stranger": 403}},
		{"/api/v1/audit", map[string]int{"admin": 200, "viewer": 200, "member": 403, "stranger": 403, "none": 401}},
		{"/version", map[string]int{"viewer": 200, "member": 200, "stranger": 200, "made up": 401, "none": 401}},
		{"/healthz", map[string]int{"none": 200}},
		{"/ui/", map[string]int{"none": 200}},
	} {
		for who, expected := range test.status {
			if found, text := p.get(tokens[who], test.path); found != expected {
				t.Errorf("%s at %s: expected %d, found %d: %.200s", who, test.path, expected, found, text)
			}
		}
	}
	for who, expected := range map[string][]string{"viewer": {"pages-a", "pages-b"}, "member": {"pages-a"}} {
		if found := p.namespaces(tokens[who]); !slices.Equal(found, expected) {
			t.Errorf("%s: expected pods of %v, found those of %v", who, expected, found)
		}
	}

	// The command line as the kubeconfig's user, who is asked for a token.
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	p.must(os.WriteFile(kubeconfig, p.Kubeconfig(tokens["member"]), 0o600))
	command := exec.Command(os.Getenv("TRANCHE_BIN"), "queue", "-A", "--server", p.url, "--kubeconfig", kubeconfig)
	if text, err := command.CombinedOutput(); err != nil || !strings.Contains(string(text), "pages-a") ||
		strings.Contains(string(text), "pages-b") {
		t.Errorf("expected the member's own pod from the command line, found %v: %s", err, text)
	}

	// A token that ends while it is in use. The API server itself would take it for a minute more.
	ending := p.endingToken("pages-a", "member", 5*time.Second)
	if status, text := p.get(ending, "/api/v1/pods/pages-a/train"); status != 200 {
		t.Errorf("expected 200 before the token ends, found %d: %s", status, text)
	}
	time.Sleep(6 * time.Second)
	if status, text := p.get(ending, "/api/v1/pods/pages-a/train"); status != 401 || !strings.Contains(text, "ended") {
		t.Errorf("expected 401 after the token has ended, found %d: %s", status, text)
	}
	forged := ending[:len(ending)-8] + "AAAAAAAA"
	if status, _ := p.get(forged, "/api/v1/pods"); status != 401 {
		t.Errorf("expected 401 for a token with another signature, found %d", status)
	}

	// The API server is away: nobody new is let in, and who is known has the rest of the minute.
	late := p.account("pages-a", "late", "tranche-quota-viewer", "namespace")
	if status, _ := p.get(tokens["member"], "/api/v1/pods"); status != 200 {
		t.Errorf("expected 200 for a member, found %d", status)
	}
	p.APIServer.Kill()
	if status, text := p.get(late, "/api/v1/pods"); status != 503 || !strings.Contains(text, `"error"`) {
		t.Errorf("expected 503 without the API server, found %d: %s", status, text)
	}
	if status, text := p.get(tokens["member"], "/api/v1/pods/pages-a/train"); status != 200 {
		t.Errorf("expected 200 for a member who is known, found %d: %s", status, text)
	}
	log := p.Tranche.LogTail(1_000_000)
	if !strings.Contains(log, "pages.auth: ") {
		t.Errorf("expected the log to tell that nobody can be asked about, found:\n%s", log)
	}
	for who, token := range tokens {
		if token != "" && strings.Contains(log, token) {
			t.Errorf("expected no token in the log, found that of %s", who)
		}
	}
}

// TestPagesOfAnEmbeddedClusterAskNoApiServer starts where nobody could say who a caller is.
func TestPagesOfAnEmbeddedClusterAskNoApiServer(t *testing.T) {
	if os.Getenv("TRANCHE_BIN") == "" {
		t.Skip("needs TRANCHE_BIN")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(config, []byte("listen: 127.0.0.1:0\npages: {auth: Kubernetes}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	process := NewProcess(dir, "embedded", os.Getenv("TRANCHE_BIN"), "serve", "--config", config)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); process.Running() && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	if process.Running() {
		process.Kill()
		t.Fatal("expected the server to refuse to start, found it running")
	}
	if log := process.LogTail(20); !strings.Contains(log, "pages.auth Kubernetes: expected only with cluster kubernetes") {
		t.Errorf("expected the reason, found %s", fmt.Sprintf("%q", log))
	}
}
