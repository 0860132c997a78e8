package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

var documentBreak = regexp.MustCompile(`(?m)^---\s*$`)

// ApplyRBAC creates the ClusterRoles and Roles of a manifest and grants them to a user: the rules
// are the shipped ones, the subject is the test's.
func ApplyRBAC(ctx context.Context, client kubernetes.Interface, manifest, user string) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	granted := 0
	for _, document := range documentBreak.Split(string(text), -1) {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
		switch head.Kind {
		case "ClusterRole":
			err = grantClusterRole(ctx, client, document, subjects)
			granted++
		case "Role":
			err = grantRole(ctx, client, document, subjects)
			granted++
		}
		if err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
	}
	if granted == 0 {
		return fmt.Errorf("%s: expected a ClusterRole or a Role, found neither", manifest)
	}
	return nil
}

func grantClusterRole(ctx context.Context, client kubernetes.Interface, document string,
	subjects []rbacv1.Subject) error {
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
		return err
	}
	api := client.RbacV1()
	if _, err := api.ClusterRoles().Create(ctx, &role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := api.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}, metav1.CreateOptions{})
	return err
}

func grantRole(ctx context.Context, client kubernetes.Interface, document string,
	subjects []rbacv1.Subject) error {
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
		return err
	}
	// No namespace of the manifest exists here but the built-in ones.
	role.Namespace = metav1.NamespaceSystem
	api := client.RbacV1()
	if _, err := api.Roles(role.Namespace).Create(ctx, &role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := api.RoleBindings(role.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: role.Namespace},
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}, metav1.CreateOptions{})
	return err
}
