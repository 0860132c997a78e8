package e2e

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const cliNamespace = "cli"

// machineAddress is an address of this machine that an API server takes for an endpoint's.
func machineAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("needs an address that is not the loopback's")
	return ""
}

// TestKubectlPlugin asks a server through the proxy of a real API server, as kubectl's plugin does,
// before and after its user may.
func TestKubectlPlugin(t *testing.T) {
	if shared == nil {
		t.Skip("needs a control plane")
	}
	address := machineAddress(t)
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	plugin := filepath.Join(dir, "kubectl-tranche")
	if err := os.Symlink(os.Getenv("TRANCHE_BIN"), plugin); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, shared.Kubeconfig(cliToken), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := net.JoinHostPort(address, strconv.Itoa(ports[0]))
	server := NewProcess(dir, "pages", os.Getenv("TRANCHE_BIN"), "serve", "--listen", listen)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Stop(10 * time.Second)
	if err := shared.waitReady(ctx, server, "http://"+listen+"/readyz", "", 20*time.Second); err != nil {
		t.Fatal(err)
	}
	offer(t, ctx, shared.Client, address, int32(ports[0]))
	ask := func(arguments ...string) (string, int) {
		command := exec.CommandContext(ctx, plugin, append(arguments, "--service", cliNamespace+"/tranche")...)
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		text, _ := command.CombinedOutput()
		return string(text), command.ProcessState.ExitCode()
	}

	text, code := ask("nodes")
	if code != 2 || !strings.Contains(text, "needs get and create on services/proxy") {
		t.Errorf("expected a refusal that names the right, found %d: %s", code, text)
	}
	allow(t, ctx, shared.Client)
	// The authorizer sees the role a moment later.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if text, code = ask("nodes", "-o", "json"); code == 0 || time.Now().After(deadline) {
			break
		}
	}
	var answer struct{ Nodes []any }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != 0 || answer.Nodes == nil {
		t.Errorf("expected the nodes as JSON, found %d: %s", code, text)
	}
	if text, code = ask("explain", "nobody", "-n", "team-a"); code != 1 {
		t.Errorf("expected a no about an unknown pod, found %d: %s", code, text)
	}
	pod := filepath.Join(dir, "pod.yaml")
	if err := os.WriteFile(pod, []byte("kind: Pod\nmetadata: {name: a, namespace: team-a}\n"+
		"spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, code = ask("whatif", "-f", pod); code != 1 || !strings.Contains(text, "team-a/a") {
		t.Errorf("expected a pod that fits nowhere, found %d: %s", code, text)
	}
}

// offer makes a Service with an endpoint at that address: API servers proxy only to addresses of
// pods, so that there is one that claims it.
func offer(t *testing.T, ctx context.Context, client kubernetes.Interface, address string, port int32) {
	t.Helper()
	name, ready, protocol := "pages", true, corev1.ProtocolTCP
	made := metav1.ObjectMeta{Name: "tranche", Namespace: cliNamespace}
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cliNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if _, err = client.CoreV1().Services(cliNamespace).Create(ctx, &corev1.Service{
		ObjectMeta: made,
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: name, Port: 9090, TargetPort: intstr.FromInt32(port)}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods(cliNamespace).Create(ctx, &corev1.Pod{
		ObjectMeta: made,
		Spec: corev1.PodSpec{SchedulerName: "nobody",
			Containers: []corev1.Container{{Name: "main", Image: "tranche"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	if _, err = client.CoreV1().Pods(cliNamespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	target := &corev1.ObjectReference{Kind: "Pod", Namespace: cliNamespace, Name: pod.Name, UID: pod.UID}
	//nolint:staticcheck // the proxy of older API servers looks at Endpoints
	if _, err = client.CoreV1().Endpoints(cliNamespace).Create(ctx, &corev1.Endpoints{
		ObjectMeta: made,
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: address, TargetRef: target}},
			Ports:     []corev1.EndpointPort{{Name: name, Port: port}}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made.Labels = map[string]string{discoveryv1.LabelServiceName: "tranche"}
	if _, err = client.DiscoveryV1().EndpointSlices(cliNamespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  made,
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, TargetRef: target,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allow gives the user the role of scheduler/docs/cli.md.
func allow(t *testing.T, ctx context.Context, client kubernetes.Interface) {
	t.Helper()
	made := metav1.ObjectMeta{Name: "tranche-cli", Namespace: cliNamespace}
	if _, err := client.RbacV1().Roles(cliNamespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: made,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services/proxy"},
			ResourceNames: []string{"https:tranche:pages", "tranche:pages"}, Verbs: []string{"get", "create"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().RoleBindings(cliNamespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: made,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tranche-cli"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: cliUser}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
