package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	gatesRole   = "tranche-gates"
	webhookName = "tranche"
)

// ApplyWebhook configures the shipped webhooks for one namespace: the address and the CA are the
// test's, and the namespace is added to what their selectors say.
func (c *ControlPlane) ApplyWebhook(ctx context.Context, manifest, namespace string) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	filled := strings.ReplaceAll(string(text), "CA_BUNDLE", base64.StdEncoding.EncodeToString(c.AdmissionCA))
	configured := 0
	for _, document := range documentBreak.Split(filled, -1) {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
		switch head.Kind {
		case "MutatingWebhookConfiguration":
			err = c.createMutating(ctx, document, namespace)
			configured++
		case "ValidatingWebhookConfiguration":
			err = c.createValidating(ctx, document, namespace)
			configured++
		}
		if err != nil {
			return fmt.Errorf("%s: %w", manifest, err)
		}
	}
	if configured != 2 {
		return fmt.Errorf("%s: expected two webhook configurations, found %d", manifest, configured)
	}
	return nil
}

// RemoveWebhook takes both configurations away; one that is not there is none.
func (c *ControlPlane) RemoveWebhook(ctx context.Context) {
	api := c.Client.AdmissionregistrationV1()
	_ = api.MutatingWebhookConfigurations().Delete(ctx, webhookName, metav1.DeleteOptions{})
	_ = api.ValidatingWebhookConfigurations().Delete(ctx, webhookName, metav1.DeleteOptions{})
}

func (c *ControlPlane) createMutating(ctx context.Context, document, namespace string) error {
	var config registrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(document), &config); err != nil {
		return err
	}
	for i := range config.Webhooks {
		hook := &config.Webhooks[i]
		c.redirect(&hook.ClientConfig)
		limit(hook.NamespaceSelector, namespace)
	}
	_, err := c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &config,
		metav1.CreateOptions{})
	return err
}

func (c *ControlPlane) createValidating(ctx context.Context, document, namespace string) error {
	var config registrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(document), &config); err != nil {
		return err
	}
	for i := range config.Webhooks {
		hook := &config.Webhooks[i]
		c.redirect(&hook.ClientConfig)
		if hook.NamespaceSelector == nil {
			// Of what is in no namespace, what has its name.
			hook.MatchConditions = append(hook.MatchConditions, registrationv1.MatchCondition{
				Name: "one-test", Expression: fmt.Sprintf("request.name == %q", namespace)})
			continue
		}
		limit(hook.NamespaceSelector, namespace)
	}
	_, err := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &config,
		metav1.CreateOptions{})
	return err
}

// Services have no addresses here.
func (c *ControlPlane) redirect(config *registrationv1.WebhookClientConfig) {
	url := c.AdmissionURL + *config.Service.Path
	config.URL, config.Service = &url, nil
}

func limit(selector *metav1.LabelSelector, namespace string) {
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{namespace}})
}

// AllowGates binds the role that lets Tranche take its gates away.
func (c *ControlPlane) AllowGates(ctx context.Context) error {
	_, err := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: gatesRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: gatesRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: trancheUser}},
	}, metav1.CreateOptions{})
	return err
}
