package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

const (
	karpenterModule  = "sigs.k8s.io/karpenter"
	karpenterAccount = "system:serviceaccount:kube-system:karpenter"
	poolKey          = "karpenter.sh/nodepool"
	joiningTaint     = "e2e.tranche.dev/joining" // of machines whose GPUs are not there yet
)

// MachineType is what Karpenter's cloud rents out: a price, and the node that such a machine becomes.
type MachineType struct {
	Name  string
	Price float64
	Node  func(name string) TestNode
}

// Karpenter is a running Karpenter whose cloud is its KWOK provider.
type Karpenter struct {
	*Process
	metricsURL string
	types      []MachineType

	mutex sync.Mutex
	most  map[string]int // machines of a pool that may join; without an entry all
}

// JoinAtMost has the rest of the pool's machines come later, when this is called with more.
func (k *Karpenter) JoinAtMost(pool string, machines int) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.most[pool] = machines
}

func (k *Karpenter) mayJoin(pool string, joined int) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	most, limited := k.most[pool]
	return !limited || joined < most
}

// offering is a line of the provider's price list (sigs.k8s.io/karpenter/kwok/cloudprovider v1.14.1:
// InstanceTypeOptions and KWOKOffering).
type offering struct {
	Price        float64
	Requirements []corev1.NodeSelectorRequirement
}

// Karpenter packs pods by these amounts before there is a node.
func priceList(machines []MachineType) ([]byte, error) {
	var list []map[string]any
	for _, machine := range machines {
		list = append(list, map[string]any{
			"name": machine.Name, "architecture": "amd64", "operatingSystems": []string{"linux"},
			"resources": machine.Node(machine.Name).Object.Status.Capacity,
			"offerings": []offering{{Price: machine.Price, Requirements: []corev1.NodeSelectorRequirement{
				{Key: "karpenter.sh/capacity-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-a"}},
			}}},
		})
	}
	return json.Marshal(list)
}

// StartKarpenter installs Karpenter's own definitions and rights, and returns when it is ready. It has the
// rights of its service account alone, and rents what `machines` lists.
func (c *ControlPlane) StartKarpenter(ctx context.Context, programs string,
	machines []MachineType) (*Karpenter, error) {
	source, err := ModuleFolder("karpenter", karpenterModule)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{filepath.Join("pkg", "apis", "crds"), filepath.Join("kwok", "apis", "crds")} {
		if err := InstallCRDs(ctx, c.Client, filepath.Join(source, folder)); err != nil {
			return nil, err
		}
	}
	if err := c.admitKarpenter(ctx, filepath.Join(source, "kwok", "charts", "templates")); err != nil {
		return nil, err
	}
	list, err := priceList(machines)
	if err != nil {
		return nil, err
	}
	kubeconfig := bytes.Replace(c.kubeconfig(c.apiURL, adminToken), []byte("{token:"),
		[]byte(`{as: "`+karpenterAccount+`", token:`), 1)
	for name, text := range map[string][]byte{"machines.json": list, "karpenter.kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	process := NewProcess(c.dir, "karpenter", filepath.Join(programs, "karpenter"))
	process.env = []string{
		"KUBECONFIG=" + filepath.Join(c.dir, "karpenter.kubeconfig"),
		"INSTANCE_TYPES_FILE_PATH=" + filepath.Join(c.dir, "machines.json"),
		fmt.Sprint("METRICS_PORT=", ports[0]), fmt.Sprint("HEALTH_PROBE_PORT=", ports[1]),
		"DISABLE_LEADER_ELECTION=true", "LOG_LEVEL=debug",
	}
	ready := fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1])
	if err := c.start(ctx, process, ready, "", time.Minute); err != nil {
		return nil, err
	}
	karpenter := &Karpenter{Process: process, types: machines, most: map[string]int{},
		metricsURL: fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[0])}
	go karpenter.registerMachines(ctx, c.Client)
	return karpenter, nil
}

// admitKarpenter gives Karpenter's service account the rules of its own chart. Those that the chart grants
// in one namespace hold in all of them here.
func (c *ControlPlane) admitKarpenter(ctx context.Context, templates string) error {
	role := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karpenter"}}
	for _, name := range []string{"clusterrole.yaml", "clusterrole-kwok.yaml", "role.yaml"} {
		text, err := os.ReadFile(filepath.Join(templates, name))
		if err != nil {
			return err
		}
		rules, err := rulesOf(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		role.Rules = append(role.Rules, rules...)
	}
	api := c.Client.RbacV1()
	if _, err := api.ClusterRoles().Create(ctx, &role, metav1.CreateOptions{}); err != nil {
		return err
	}
	return BindRoles(ctx, c.Client, []string{karpenterAccount}, role.Name)
}

// rulesOf reads the rules of roles in a chart's template. Its placeholders are in lines of their own, and
// what they would add is for users with other needs.
func rulesOf(template string) ([]rbacv1.PolicyRule, error) {
	var all []rbacv1.PolicyRule
	for _, document := range documentBreak.Split(template, -1) {
		_, text, found := strings.Cut(document, "\nrules:\n")
		if !found {
			continue
		}
		var plain []string
		for _, line := range strings.Split(text, "\n") {
			if !strings.Contains(line, "{{") {
				plain = append(plain, line)
			}
		}
		var rules []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(strings.Join(plain, "\n")), &rules); err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("expected rules of a role, found none")
	}
	return all, nil
}

// registerMachines plays what runs on a rented machine: the kubelet says that it is not ready, and later that
// it is, GPU feature discovery which GPUs it has, the device plugin how many, and the GPU operator takes its
// startup taint away, last of all. The KWOK provider has a Node advertise its GPUs from the first moment, which
// no kubelet does.
func (k *Karpenter) registerMachines(ctx context.Context, client kubernetes.Interface) {
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolKey})
		if err != nil {
			continue
		}
		joined := map[string]int{}
		for i := range nodes.Items {
			if ready(&nodes.Items[i]) {
				joined[nodes.Items[i].Labels[poolKey]]++
			}
		}
		for i := range nodes.Items {
			node := &nodes.Items[i]
			pool := node.Labels[poolKey]
			switch {
			case ready(node):
				if isJoining(node) {
					k.register(ctx, client, node)
				}
			case len(node.Status.Conditions) == 0:
				_ = patchStatus(ctx, client, node.Name, map[string]any{
					"conditions": []corev1.NodeCondition{readiness(corev1.ConditionFalse)}})
			case k.mayJoin(pool, joined[pool]):
				k.register(ctx, client, node)
				joined[pool]++
			}
		}
	}
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

func isJoining(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == joiningTaint })
}

// register does what is left to do; what is not done now is done when it is called again.
func (k *Karpenter) register(ctx context.Context, client kubernetes.Interface, node *corev1.Node) {
	at := slices.IndexFunc(k.types, func(machine MachineType) bool {
		return machine.Name == node.Labels[corev1.LabelInstanceTypeStable]
	})
	registered := !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == "karpenter.sh/unregistered" // Karpenter puts the startup taint in its place
	})
	if at < 0 || !registered {
		return
	}
	is := k.types[at].Node(node.Name).Object
	if !ready(node) {
		// The provider has put in the capacity what the waiting pods request, and not what the machine has.
		_ = patchStatus(ctx, client, node.Name, map[string]any{"capacity": is.Status.Capacity,
			"allocatable": is.Status.Allocatable, "conditions": is.Status.Conditions})
		return
	}
	maps.Copy(node.Labels, is.Labels)
	maps.Copy(node.Annotations, is.Annotations)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
		func(taint corev1.Taint) bool { return taint.Key == joiningTaint })
	_, _ = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
}

func patchStatus(ctx context.Context, client kubernetes.Interface, name string, status map[string]any) error {
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	return err
}
