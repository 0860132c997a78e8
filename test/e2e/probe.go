package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"sigs.k8s.io/yaml"
)

const (
	probeKey       = "tranche.dev/probe"
	probeName      = "tranche-probe" // of everything in charts/probe.yaml
	probeNamespace = "tranche-system"
)

// PodResources is the kubelet's podresources API with the answer of a test.
type PodResources struct {
	podresources.UnimplementedPodResourcesListerServer
	pods []*podresources.PodResources
}

func (p *PodResources) List(context.Context, *podresources.ListPodResourcesRequest) (
	*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{PodResources: p.pods}, nil
}

// Serve listens on a socket in the folder until the returned function is called.
func (p *PodResources) Serve(dir string) (socket string, stop func(), err error) {
	socket = filepath.Join(dir, "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, p)
	go func() { _ = server.Serve(listener) }()
	return socket, server.Stop, nil
}

// ApplyProbe creates what the manifest holds; its namespace is one of rbac.yaml.
func ApplyProbe(ctx context.Context, client kubernetes.Interface, manifest string) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	for _, document := range documentBreak.Split(string(text), -1) {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
		if err := createPart(ctx, client, head.Kind, document); err != nil {
			return fmt.Errorf("%s: %s: %w", manifest, head.Kind, err)
		}
	}
	return nil
}

func createPart(ctx context.Context, client kubernetes.Interface, kind, document string) error {
	options := metav1.CreateOptions{}
	admission := client.AdmissionregistrationV1()
	switch kind {
	case "ServiceAccount":
		return created(document, func(o *corev1.ServiceAccount) (*corev1.ServiceAccount, error) {
			return client.CoreV1().ServiceAccounts(probeNamespace).Create(ctx, o, options)
		})
	case "ClusterRole":
		return created(document, func(o *rbacv1.ClusterRole) (*rbacv1.ClusterRole, error) {
			return client.RbacV1().ClusterRoles().Create(ctx, o, options)
		})
	case "ClusterRoleBinding":
		return created(document, func(o *rbacv1.ClusterRoleBinding) (*rbacv1.ClusterRoleBinding, error) {
			return client.RbacV1().ClusterRoleBindings().Create(ctx, o, options)
		})
	case "ValidatingAdmissionPolicy":
		type policy = admissionv1.ValidatingAdmissionPolicy
		return created(document, func(o *policy) (*policy, error) {
			return admission.ValidatingAdmissionPolicies().Create(ctx, o, options)
		})
	case "ValidatingAdmissionPolicyBinding":
		type binding = admissionv1.ValidatingAdmissionPolicyBinding
		return created(document, func(o *binding) (*binding, error) {
			return admission.ValidatingAdmissionPolicyBindings().Create(ctx, o, options)
		})
	case "DaemonSet":
		return created(document, func(o *appsv1.DaemonSet) (*appsv1.DaemonSet, error) {
			return client.AppsV1().DaemonSets(probeNamespace).Create(ctx, o, options)
		})
	default:
		return fmt.Errorf("expected a kind this test creates")
	}
}

// created reads one object without unknown fields and creates it.
func created[Object any](document string, create func(*Object) (*Object, error)) error {
	var object Object
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		return err
	}
	_, err := create(&object)
	return err
}
