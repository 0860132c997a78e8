package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// through asks as kubectl's plugin, by the proxy of the API server, with that kubeconfig.
func (p *Pages) through(ctx context.Context, kubeconfig string, arguments ...string) (string, int) {
	p.Helper()
	plugin := filepath.Join(filepath.Dir(kubeconfig), "kubectl-tranche")
	if err := os.Symlink(os.Getenv("TRANCHE_BIN"), plugin); err != nil && !os.IsExist(err) {
		p.Fatal(err)
	}
	command := exec.CommandContext(ctx, plugin, append(arguments, "--service", cliNamespace+"/tranche")...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	text, _ := command.CombinedOutput()
	return string(text), command.ProcessState.ExitCode()
}

// TestPagesThroughTheApiServer asks pages that want a token of the cluster through the proxy of a real
// API server, which takes the Authorization header away.
func TestPagesThroughTheApiServer(t *testing.T) {
	address := machineAddress(t)
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	authority, err := NewAuthority("pages")
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := authority.Sign(net.ParseIP(address))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newPages(t, fmt.Sprintf(", listen: '%s', certFile: '%s', keyFile: '%s'",
		net.JoinHostPort(address, strconv.Itoa(ports[0])), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	offer(t, ctx, p.Client, address, int32(ports[0]))
	allow(t, ctx, p.Client)
	for _, namespace := range []string{"pages-a", "pages-b"} {
		_, err := p.Client.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		p.must(err)
		_, err = p.Client.CoreV1().Pods(namespace).Create(ctx, WholeCards(1).Pod("train", nil), metav1.CreateOptions{})
		p.must(err)
	}
	// The person may use the proxy, see namespace a, and make tokens for one account there.
	p.account("pages-a", "member", "tranche-quota-viewer", "namespace")
	viewer := p.account("pages-a", "viewer", "tranche-viewer", "cluster")
	person := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: cliUser}}
	_, err = p.Client.RbacV1().RoleBindings("pages-a").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "person"}, Subjects: person,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tranche-quota-viewer"},
	}, metav1.CreateOptions{})
	p.must(err)
	_, err = p.Client.RbacV1().Roles("pages-a").Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "tokens"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
			ResourceNames: []string{"viewer"}, Verbs: []string{"create"}}},
	}, metav1.CreateOptions{})
	p.must(err)
	_, err = p.Client.RbacV1().RoleBindings("pages-a").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tokens"}, Subjects: person,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tokens"},
	}, metav1.CreateOptions{})
	p.must(err)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	p.must(os.WriteFile(kubeconfig, p.Kubeconfig(cliToken), 0o600))
	token := filepath.Join(dir, "token")
	p.must(os.WriteFile(token, []byte(viewer), 0o600))
	// The authorizer sees roles, and Tranche the pods, a moment later.
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if text, code := p.through(ctx, kubeconfig, "queue", "-n", "pages-a"); code == 0 && strings.Contains(text, "train") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("expected the person's own pod, found %d: %s", code, text)
		}
	}
	for _, test := range []struct {
		what      string
		arguments []string
		code      int
		shows     string // what is among the output
		hides     string // and what is not
	}{
		{"the person's own token", []string{"queue", "-n", "pages-a"}, 0, "train", "pages-b"},
		{"nothing of others", []string{"explain", "pages-b/train"}, 1, "no object", ""},
		{"an account's token", []string{"queue", "-A", "--token-from", "pages-a/viewer"}, 0, "pages-b", ""},
		{"an account without the right", []string{"queue", "-A", "--token-from", "pages-a/member"}, 2,
			"service account pages-a/member, found 403", ""},
		{"an audience that is not taken", []string{"queue", "-A", "--token-from", "pages-a/viewer",
			"--token-audience", "elsewhere"}, 2, "that of service account pages-a/viewer", ""},
		{"a token of a file", []string{"queue", "-A", "--token-file", token}, 0, "pages-b", ""},
	} {
		text, code := p.through(ctx, kubeconfig, test.arguments...)
		if code != test.code || !strings.Contains(text, test.shows) ||
			(test.hides != "" && strings.Contains(text, test.hides)) {
			t.Errorf("%s: expected %d with %q and without %q, found %d: %s", test.what, test.code, test.shows, test.hides,
				code, text)
		}
	}
	log := p.Tranche.LogTail(1_000_000)
	for _, secret := range []string{cliToken, viewer} {
		if strings.Contains(log, secret) {
			t.Errorf("expected no token in the log, found one")
		}
	}
	if !strings.Contains(log, "pages, TLS") {
		t.Errorf("expected the log to tell of TLS, found:\n%s", log)
	}
}
