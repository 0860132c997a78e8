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

// ApplyRBAC creates the ClusterRoles of a manifest, and its ClusterRoleBindings for a user: the rules
// are the shipped ones, the subject is the test's.
func ApplyRBAC(ctx context.Context, client kubernetes.Interface, manifest, user string) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	granted := 0
	for _, document := range documentBreak.Split(string(text), -1) {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
		switch head.Kind {
		case "ClusterRole":
			err = createClusterRole(ctx, client, document)
		case "ClusterRoleBinding":
			err = bindClusterRole(ctx, client, document, user)
			granted++
		}
		if err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
	}
	if granted == 0 {
		return fmt.Errorf("%s: expected a ClusterRoleBinding, found none", manifest)
	}
	return nil
}

// BindRoles gives the user roles of the manifest that an administrator binds by hand.
func BindRoles(ctx context.Context, client kubernetes.Interface, user string, roles ...string) error {
	for _, role := range roles {
		binding := rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("binding %s: %w", role, err)
		}
	}
	return nil
}

func createClusterRole(ctx context.Context, client kubernetes.Interface, document string) error {
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
		return err
	}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
	return err
}

func bindClusterRole(ctx context.Context, client kubernetes.Interface, document, user string) error {
	var binding rbacv1.ClusterRoleBinding
	if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
		return err
	}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{})
	return err
}
