package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

var documentBreak = regexp.MustCompile(`(?m)^---\s*$`)

// ApplyRBAC creates namespaces and roles of a manifest, and its bindings for users: the rules are the
// shipped ones, the subjects are the test's.
func ApplyRBAC(ctx context.Context, client kubernetes.Interface, manifest string, users ...string) error {
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
		case "Namespace":
			err = created(document, func(o *corev1.Namespace) (*corev1.Namespace, error) {
				return client.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{})
			})
		case "Role":
			err = created(document, func(o *rbacv1.Role) (*rbacv1.Role, error) {
				return client.RbacV1().Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			})
		case "RoleBinding":
			err = created(document, func(o *rbacv1.RoleBinding) (*rbacv1.RoleBinding, error) {
				o.Subjects = subjectsOf(users)
				return client.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			})
		case "ClusterRole":
			err = created(document, func(o *rbacv1.ClusterRole) (*rbacv1.ClusterRole, error) {
				return client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
			})
		case "ClusterRoleBinding":
			granted++
			err = created(document, func(o *rbacv1.ClusterRoleBinding) (*rbacv1.ClusterRoleBinding, error) {
				o.Subjects = subjectsOf(users)
				return client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
			})
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

// BindRoles gives the users roles of the manifest that an administrator binds by hand.
func BindRoles(ctx context.Context, client kubernetes.Interface, users []string, roles ...string) error {
	for _, role := range roles {
		binding := rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   subjectsOf(users),
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("binding %s: %w", role, err)
		}
	}
	return nil
}

func subjectsOf(users []string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, user := range users {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
	}
	return subjects
}
