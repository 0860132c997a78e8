package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// podTemplates returns the pods the objects are or make: name of the object -> template.
func podTemplates(t *testing.T, objects []Object) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	templates := map[string]*corev1.PodTemplateSpec{}
	for _, object := range objects {
		spec, found := object.Object["spec"].(map[string]any)
		template, isMap := spec["template"].(map[string]any)
		if object.GetKind() == "Pod" {
			template, isMap = object.Object, true
		}
		if !found || !isMap {
			continue
		}
		pod := &corev1.PodTemplateSpec{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod))
		templates[object.Name()] = pod
	}
	return templates
}

// Every pod keeps the level restricted by the API server's own rules, except probe and agent, of which the
// golden line says what it asks for.
func TestPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	must(t, err)
	restricted := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
	const ofNodes = "restricted volume types; runAsNonRoot != true; runAsUser=0"
	for name, values := range valuesSets(t) {
		templates := podTemplates(t, render(t, values))
		if len(templates) < 2 {
			t.Errorf("%s: expected at least two pod templates, found %d", name, len(templates))
		}
		for maker, pod := range templates {
			var refused []string
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					refused = append(refused, result.ForbiddenReason)
				}
			}
			slices.Sort(refused)
			expected := ""
			if strings.HasSuffix(maker, "-probe") || strings.HasSuffix(maker, "-agent") {
				expected = ofNodes
				if at(t, find(render(t, values), maker), ".spec.template.spec.containers[0].securityContext.capabilities.add") != "" {
					expected = "allowPrivilegeEscalation != false; " + ofNodes + "; unrestricted capabilities"
				}
			}
			if found := strings.Join(refused, "; "); found != expected {
				t.Errorf("%s: %s: expected Pod Security to refuse %q, found %q", name, maker, expected, found)
			}
			checkHardening(t, name+": "+maker, pod)
		}
	}
}

// What Pod Security does not ask for.
func checkHardening(t *testing.T, where string, pod *corev1.PodTemplateSpec) {
	t.Helper()
	for _, container := range pod.Spec.Containers {
		security := container.SecurityContext
		if security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
			t.Errorf("%s: expected a read-only root file system", where)
		}
		if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: expected a memory limit and a CPU request, found %v", where, container.Resources)
		}
	}
	if pod.Spec.ServiceAccountName == "" || pod.Spec.ServiceAccountName == "default" {
		t.Errorf("%s: expected a ServiceAccount of its own, found %q", where, pod.Spec.ServiceAccountName)
	}
	for _, volume := range pod.Spec.Volumes {
		if secret := volume.Secret; secret != nil && (secret.DefaultMode == nil || *secret.DefaultMode&0o007 != 0) {
			t.Errorf("%s: volume %s: expected files only the pod's group reads, found another mode", where, volume.Name)
		}
	}
}

// Every right of every account, one a line. A change of this file is a change of what Tranche may do.
func TestRightsAreTheGoldenOnes(t *testing.T) {
	for _, name := range []string{"default", "hami", "everything"} {
		golden(t, "rights-"+name+".txt", rights(t, render(t, valuesSets(t)[name])))
	}
}

func TestNobodyMayMoreThanTheGoldenFilesSay(t *testing.T) {
	text := rights(t, render(t, valuesSets(t)["default"]))
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "*") || strings.Contains(line, "secrets") ||
			strings.HasSuffix(line, " patch pods") || strings.HasSuffix(line, " patch nodes") {
			t.Errorf("expected no such right by default, found %q", line)
		}
	}
	if !strings.Contains(text, "tranche cluster create pods/eviction") {
		t.Errorf("expected the rights to be listed, found:\n%s", text)
	}
}

type role struct {
	kind, namespace, name string
}

// rights lists what bindings give: "ACCOUNT SCOPE VERB GROUP/RESOURCE[NAMES]", and roles of the API
// server's own by name.
func rights(t *testing.T, objects []Object) string {
	t.Helper()
	rules := map[role][]rbacv1.PolicyRule{}
	var lines []string
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRole", "Role":
			var read rbacv1.ClusterRole
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read))
			rules[role{object.GetKind(), object.GetNamespace(), object.GetName()}] = read.Rules
		}
	}
	for _, object := range objects {
		if object.GetKind() != "ClusterRoleBinding" && object.GetKind() != "RoleBinding" {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding))
		scope := cmp.Or(object.GetNamespace(), "cluster")
		namespace := ""
		if binding.RoleRef.Kind == "Role" {
			namespace = object.GetNamespace()
		}
		given, known := rules[role{binding.RoleRef.Kind, namespace, binding.RoleRef.Name}]
		for _, subject := range binding.Subjects {
			account := subject.Name
			// Prometheus is not of the chart, and gets one path.
			if strings.HasSuffix(binding.RoleRef.Name, "-scraper") {
				account = subject.Namespace + ":" + account
			} else if subject.Kind != "ServiceAccount" || find(objects, "ServiceAccount/"+account) == nil &&
				find(objects, "ServiceAccount/"+subject.Namespace+"/"+account) == nil {
				t.Errorf("%s: expected an account of the chart, found %v", object.Name(), subject)
			}
			if !known {
				lines = append(lines, fmt.Sprintf("%s %s is %s", account, scope, binding.RoleRef.Name))
			}
			for _, rule := range given {
				lines = append(lines, spell(account+" "+scope, rule)...)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}

func spell(who string, rule rbacv1.PolicyRule) []string {
	var lines []string
	for _, path := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			lines = append(lines, who+" "+verb+" "+path)
		}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			if len(rule.ResourceNames) > 0 {
				resource += fmt.Sprint(rule.ResourceNames)
			}
			for _, verb := range rule.Verbs {
				lines = append(lines, who+" "+verb+" "+resource)
			}
		}
	}
	return lines
}
