package charts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// What `helm lint --strict` says.
func TestLint(t *testing.T) {
	for name, values := range valuesSets(t) {
		t.Run(name, func(t *testing.T) {
			version, err := chartutil.ParseKubeVersion(KubeVersion)
			must(t, err)
			result := lint.AllWithKubeVersion(Folder, values, Namespace, version)
			for _, message := range result.Messages {
				if message.Severity >= support.WarningSev {
					t.Errorf("expected no warning, found %v", message)
				}
			}
		})
	}
}

// Which objects each values set adds to or takes from the default.
func TestObjectsOfValuesSets(t *testing.T) {
	for name, values := range valuesSets(t) {
		var found []string
		for _, object := range render(t, values) {
			// One of each file in rules/ and dashboards/; others write those.
			if object.GetKind() != "PrometheusRule" && !strings.Contains(object.GetName(), "-dashboard-") {
				found = append(found, object.Name())
			}
		}
		slices.Sort(found)
		if duplicates := len(found) - len(slices.Compact(slices.Clone(found))); duplicates != 0 {
			t.Errorf("%s: expected every object once, found %d more", name, duplicates)
		}
		golden(t, "objects-"+name+".txt", strings.Join(found, "\n")+"\n")
	}
}

// A row: with these values an object has this at a path; "" is nothing, object "-NAME" is absent.
func TestRendered(t *testing.T) {
	const (
		server    = "Deployment/tranche"
		scheduler = "Deployment/tranche-scheduler"
		container = ".spec.template.spec.containers[0]"
		config    = ".data.tranche\\.yaml"
	)
	tests := []struct{ values, object, path, expected string }{
		// Two replicas, of which one leads and is Ready.
		{"", server, ".spec.replicas", "2"},
		{"", server, ".spec.strategy.rollingUpdate.maxUnavailable", "100%"},
		{"", server, ".spec.progressDeadlineSeconds", "2147483647"},
		{"", server, container + ".readinessProbe.httpGet.path", "/readyz"},
		{"", server, container + ".livenessProbe.httpGet.path", "/livez"},
		{"", server, container + ".image", "tranche:0.1.0"},
		{"image: {tag: '2'}", server, container + ".image", "tranche:2"},
		{"image: {tag: '2', digest: 'sha256:" + strings.Repeat("a", 64) + "'}", server, container + ".image",
			"tranche@sha256:" + strings.Repeat("a", 64)},
		{"", "Service/tranche", ".spec.publishNotReadyAddresses", ""},
		{"", "Service/tranche", ".spec.ports[?(@.name==\"https\")].port", "443"},
		{"", "Service/tranche-replicas", ".spec.publishNotReadyAddresses", "true"},
		// A budget of 1 would never let the leader's node be drained: only the leader is Ready.
		{"", "PodDisruptionBudget/tranche", ".spec.minAvailable", "0"},
		{"", "PodDisruptionBudget/tranche-scheduler", ".spec.maxUnavailable", "1"},
		{"podDisruptionBudget: {enabled: false}", "-PodDisruptionBudget/tranche", "", ""},
		{"podDisruptionBudget: {enabled: false}", "-PodDisruptionBudget/tranche-scheduler", "", ""},
		// The ledger and where its replicas may be.
		{"", server, ".spec.template.spec.volumes[?(@.name==\"ledger\")].persistentVolumeClaim.claimName",
			"tranche-ledger"},
		{"", "PersistentVolumeClaim/tranche-ledger", ".spec.accessModes[0]", "ReadWriteOnce"},
		{"", "PersistentVolumeClaim/tranche-ledger", ".metadata.annotations.helm\\.sh/resource-policy", "keep"},
		{"", server, ".spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]" +
			".podAffinityTerm.topologyKey", "kubernetes.io/hostname"},
		{"ledger: {persistence: {keep: false}}", "PersistentVolumeClaim/tranche-ledger", ".metadata.annotations", ""},
		{"ledger: {persistence: {existingClaim: mine}}", "-PersistentVolumeClaim/tranche-ledger", "", ""},
		{"ledger: {persistence: {existingClaim: mine}}", server,
			".spec.template.spec.volumes[?(@.name==\"ledger\")].persistentVolumeClaim.claimName", "mine"},
		{"ledger: {persistence: {enabled: false}}", "-PersistentVolumeClaim/tranche-ledger", "", ""},
		{"ledger: {persistence: {enabled: false}}", server,
			".spec.template.spec.topologySpreadConstraints[0].topologyKey", "kubernetes.io/hostname"},
		{"ledger: {persistence: {enabled: false}}", server, ".spec.template.spec.affinity", ""},
		{"ledger: {enabled: false}", server, ".spec.template.spec.volumes[?(@.name==\"ledger\")].name", ""},
		{"server: {affinity: {nodeAffinity: {}}}", server, ".spec.template.spec.affinity.podAffinity", ""},
		// kube-scheduler has the cluster's version, without what vendors add to it.
		{"", scheduler, container + ".image", "registry.k8s.io/kube-scheduler:" + KubeVersion},
		{"scheduler: {image: {tag: v1.33.1}}", scheduler, container + ".image",
			"registry.k8s.io/kube-scheduler:v1.33.1"},
		{"scheduler: {enabled: false}", "-" + scheduler, "", ""},
		{"scheduler: {enabled: false}", "-ServiceAccount/tranche-scheduler", "", ""},
		// The webhook and its certificate.
		{"", "MutatingWebhookConfiguration/tranche", ".webhooks[0].clientConfig.service.path", "/admission/mutate"},
		{"", "MutatingWebhookConfiguration/tranche", ".webhooks[*].failurePolicy", "Ignore Ignore"},
		{"", "MutatingWebhookConfiguration/tranche", ".metadata.annotations", ""},
		{"certificates: {mode: CertManager}", "MutatingWebhookConfiguration/tranche",
			".metadata.annotations.cert-manager\\.io/inject-ca-from", "tranche-system/tranche-server-tls"},
		{"certificates: {mode: CertManager}", "ValidatingWebhookConfiguration/tranche",
			".webhooks[0].clientConfig.caBundle", ""},
		{"certificates: {mode: CertManager}", "Certificate/tranche-client-tls", ".spec.issuerRef.name", "tranche-ca"},
		{"certificates: {mode: CertManager}", "-Secret/tranche-server-tls", "", ""},
		{"certificates: {mode: CertManager, certManager: {issuerRef: {name: x, kind: Issuer, group: cert-manager.io}}}",
			"-Issuer/tranche-ca", "", ""},
		{"", "ValidatingWebhookConfiguration/tranche", ".webhooks[1].clientConfig.service.path", "/admission/edits"},
		{"webhook: {failurePolicy: Fail}", "ValidatingWebhookConfiguration/tranche", ".webhooks[*].failurePolicy",
			"Fail Ignore"},
		{"webhook: {edits: false}", "ValidatingWebhookConfiguration/tranche", ".webhooks[*].name", "pods.tranche.dev"},
		// Prometheus is reached where it is asked, and nowhere else.
		{"", "NetworkPolicy/tranche", ".spec.egress[*].ports[*].port", "53 53 443 6443"},
		{"use: {prometheus: 'http://p:9090'}", "NetworkPolicy/tranche", ".spec.egress[*].ports[*].port",
			"53 53 443 6443 9090"},
		{"use: {prometheus: 'http://p:9090'}", "NetworkPolicy/tranche", ".spec.egress[2].to", ""},
		{"webhook: {enabled: false}", "-MutatingWebhookConfiguration/tranche", "", ""},
		{"webhook: {enabled: false}", "-ValidatingWebhookConfiguration/tranche", "", ""},
		// Rights beyond the least.
		{"", "-ClusterRoleBinding/tranche-node-lock", "", ""},
		{"", "-ClusterRoleBinding/tranche-gates", "", ""},
		{"", "-ClusterRoleBinding/tranche-mig-apply", "", ""},
		{"webhook: {gates: true}", "ClusterRoleBinding/tranche-gates", ".subjects[0].name", "tranche"},
		{"webhook: {gates: true, enabled: false}", "-ClusterRoleBinding/tranche-gates", "", ""},
		{"rbac: {nodeLock: true}", "ClusterRoleBinding/tranche-node-lock", ".roleRef.name", "tranche-node-lock"},
		{"rbac: {provisioning: true}", "ClusterRoleBinding/tranche-provisioning", ".roleRef.name", "tranche-provisioning"},
		{"rbac: {migApply: true}", "RoleBinding/gpu-operator/tranche-mig-layouts", ".roleRef.name",
			"tranche-mig-layouts"},
		// The probe.
		{"", "-DaemonSet/tranche-probe", "", ""},
		{"probe: {enabled: true, namespace: probes}", "DaemonSet/probes/tranche-probe", container + ".args[0]", "probe"},
		{"probe: {enabled: true}", "DaemonSet/tranche-probe", container + ".securityContext.capabilities.add", ""},
		{"probe: {enabled: true, mig: true}", "DaemonSet/tranche-probe",
			container + ".securityContext.capabilities.add[0]", "SYS_ADMIN"},
		{"probe: {enabled: true, namespace: probes}", "ValidatingAdmissionPolicy/tranche-probe",
			".spec.matchConditions[0].expression",
			"request.userInfo.username == 'system:serviceaccount:probes:tranche-probe'"},
		// The agent.
		{"", "-DaemonSet/tranche-agent", "", ""},
		{"agent: {enabled: true}", "DaemonSet/tranche-agent", ".spec.template.spec.nodeSelector.tranche\\.dev/agent", "true"},
		{"agent: {enabled: true}", "DaemonSet/tranche-agent", container + ".securityContext.capabilities.add", ""},
		{"agent: {enabled: true, makeMig: true}", "DaemonSet/tranche-agent",
			container + ".securityContext.capabilities.add[0]", "SYS_ADMIN"},
		{"agent: {enabled: true}", "DaemonSet/tranche-agent", ".spec.updateStrategy.type", "RollingUpdate"},
		{"agent: {enabled: true, slots: 8}", "DaemonSet/tranche-agent", ".spec.updateStrategy.type", "OnDelete"},
		{"agent: {enabled: true, slots: 8}", "DaemonSet/tranche-agent",
			container + ".securityContext.capabilities.add[0]", "SYS_ADMIN"},
		{"agent: {enabled: true, slots: 8, mpsOnly: false}", "DaemonSet/tranche-agent",
			container + ".securityContext.capabilities.add", ""},
		{"agent: {enabled: true, slots: 8}", "DaemonSet/tranche-agent", container + ".volumeMounts[3].mountPath",
			"/run/tranche/mps"},
		{"agent: {enabled: true, image: {repository: r/n, tag: t}}", "DaemonSet/tranche-agent", container + ".image", "r/n:t"},
		{"agent: {enabled: true}", "ValidatingAdmissionPolicy/tranche-agent", ".spec.variables[1].expression",
			"['tranche.dev/agent-register']"},
		{"probe: {enabled: true, runtimeClassName: ''}", "DaemonSet/tranche-probe",
			".spec.template.spec.runtimeClassName", ""},
		// The network.
		{"", "NetworkPolicy/tranche", ".spec.policyTypes", `["Ingress","Egress"]`},
		{"networkPolicy: {apiServerCidrs: [10.0.0.1/32]}", "NetworkPolicy/tranche",
			".spec.ingress[0].from[0].ipBlock.cidr", "10.0.0.1/32"},
		{"webhook: {enabled: false}", "NetworkPolicy/tranche", ".spec.ingress[0].from[0].podSelector.matchLabels" +
			".app\\.kubernetes\\.io/component", "scheduler"},
		{"networkPolicy: {enabled: false}", "-NetworkPolicy/tranche", "", ""},
		// Pages for the release's own namespace, probes for nobody but kubelets.
		{"", "NetworkPolicy/tranche", ".spec.ingress[2].from", `[{"podSelector":{}}]`},
		{"", "NetworkPolicy/tranche", ".spec.ingress[*].ports[*].port", "https https pages"},
		{"", server, container + ".livenessProbe.httpGet.port", "probes"},
		{"", server, container + ".readinessProbe.httpGet.port", "probes"},
		{"", server, container + ".startupProbe.httpGet.port", "probes"},
		{"", server, container + ".ports[2].containerPort", "9091"},
		{"resultKeys: {protect: false}", "-ValidatingAdmissionPolicy/tranche-result-keys", "", ""},
		// Monitoring.
		{"", "-ServiceMonitor/tranche", "", ""},
		{"monitoring: {serviceMonitor: {enabled: true}}", "ServiceMonitor/tranche",
			".spec.selector.matchLabels.app\\.kubernetes\\.io/component", "replicas"},
		{"monitoring: {serviceMonitor: {enabled: true}}\npages: {tokenSecret: t}", "ServiceMonitor/tranche",
			".spec.endpoints[0].authorization.credentials.name", "t"},
		{"monitoring: {serviceMonitor: {enabled: true}}\npages: {tokenSecret: t}", "ServiceMonitor/tranche",
			".spec.endpoints[0].bearerTokenFile", ""},
		{"monitoring: {serviceMonitor: {enabled: true}}", "ServiceMonitor/tranche",
			".spec.endpoints[0].bearerTokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"},
		{"monitoring: {serviceMonitor: {enabled: true}}\npages: {auth: None}", "ServiceMonitor/tranche",
			".spec.endpoints[0].bearerTokenFile", ""},
		{"monitoring: {serviceMonitor: {enabled: true}}", "ServiceMonitor/tranche", ".spec.endpoints[0].scheme", "https"},
		{"monitoring: {serviceMonitor: {enabled: true}}", "ServiceMonitor/tranche",
			".spec.endpoints[0].tlsConfig.serverName", "tranche.tranche-system.svc"},
		{"monitoring: {serviceMonitor: {enabled: true}}", "ServiceMonitor/tranche",
			".spec.endpoints[0].tlsConfig.ca.secret.name", "tranche-server-tls"},
		{"monitoring: {serviceMonitor: {enabled: true}}\npages: {tls: {secret: s}}", "ServiceMonitor/tranche",
			".spec.endpoints[0].tlsConfig.ca.secret.name", "s"},
		{"monitoring: {serviceMonitor: {enabled: true, tlsConfig: {serverName: gpus.example.com}}}",
			"ServiceMonitor/tranche", ".spec.endpoints[0].tlsConfig", `{"serverName":"gpus.example.com"}`},
		{"monitoring: {serviceMonitor: {enabled: true}}\npages: {tls: {enabled: false}}", "ServiceMonitor/tranche",
			".spec.endpoints[0].scheme", ""},
		{"monitoring: {serviceMonitor: {enabled: true}}\npages: {tls: {enabled: false}}", "ServiceMonitor/tranche",
			".spec.endpoints[0].tlsConfig", ""},
		{"monitoring: {prometheusRule: {enabled: true}}", "PrometheusRule/tranche-alerts",
			".spec.groups[0].rules[0].annotations.runbook_url", ""},
		{"monitoring: {prometheusRule: {enabled: true, docsUrl: https://docs.example.com/gpu/}}",
			"PrometheusRule/tranche-alerts", ".spec.groups[0].rules[0].annotations.runbook_url",
			"https://docs.example.com/gpu/operations.html#trancheabsent"},
		{"monitoring: {prometheusRule: {enabled: true, docsUrl: https://docs.example.com/gpu/}}",
			"PrometheusRule/tranche-alerts", ".spec.groups[0].rules[0].annotations.runbook",
			"scheduler/docs/operations.md#trancheabsent"},
		{"pages: {tls: {secret: s}}", server, ".spec.template.spec.volumes[2].secret.secretName", "s"},
		{"pages: {tls: {secret: s}}", server, container + ".volumeMounts[2].mountPath", "/etc/tranche/pages-tls"},
		{"monitoring: {scrapers: [{namespace: m, name: p}]}", "ClusterRoleBinding/tranche-scraper-m-p",
			".subjects[0].namespace", "m"},
		// People from outside.
		{"", "-Ingress/tranche", "", ""},
		{"", "-HTTPRoute/tranche", "", ""},
		{"ingress: {enabled: true, host: gpus.example.com, tls: {secret: s}}", "Ingress/tranche", ".spec.tls[0]",
			`{"hosts":["gpus.example.com"],"secretName":"s"}`},
		{"ingress: {enabled: true, host: gpus.example.com, tls: {secret: s}}", "Ingress/tranche",
			".spec.rules[0].http.paths[0].backend.service", `{"name":"tranche","port":{"name":"pages"}}`},
		{"ingress: {enabled: true, host: gpus.example.com, tls: {elsewhere: true}, className: alb, annotations: {a: b}}",
			"Ingress/tranche", ".spec.tls", ""},
		{"ingress: {enabled: true, host: gpus.example.com, tls: {elsewhere: true}, className: alb, annotations: {a: b}}",
			"Ingress/tranche", ".spec.ingressClassName", "alb"},
		{"ingress: {enabled: true, host: gpus.example.com, tls: {elsewhere: true}, className: alb, annotations: {a: b}}",
			"Ingress/tranche", ".metadata.annotations", `{"a":"b"}`},
		{"httpRoute: {enabled: true, parentRefs: [{name: g, sectionName: https}], hostnames: [gpus.example.com]}",
			"HTTPRoute/tranche", ".spec.parentRefs[0].sectionName", "https"},
		{"httpRoute: {enabled: true, parentRefs: [{name: g, sectionName: https}], hostnames: [gpus.example.com]}",
			"HTTPRoute/tranche", ".spec.rules[0].backendRefs[0]", `{"name":"tranche","port":9090}`},
		// Whom the pages show what.
		{"", "ClusterRole/tranche-viewer", ".rules[0].resources[0]", "gpuquotas"},
		{"", "ClusterRole/tranche-viewer", ".rules[1].nonResourceURLs[0]", "/metrics"},
		{"", "ClusterRole/tranche-reviews", ".rules[*].resources[*]", "tokenreviews subjectaccessreviews"},
		{"", "ClusterRole/tranche-reviews", ".rules[*].verbs[*]", "create create"},
		{"", "ClusterRoleBinding/tranche-reviews", ".subjects[0].name", "tranche"},
		{"pages: {auth: None}", "-ClusterRoleBinding/tranche-reviews", "", ""},
		{"pages: {tokenSecret: t}", "-ClusterRoleBinding/tranche-reviews", "", ""},
		// Classes.
		{"", "PriorityClass/gpu-training", ".preemptionPolicy", "Never"},
		{"", "GPUClass/training", ".spec.priorityClassNames[0]", "gpu-training"},
		{"", server, ".spec.template.spec.priorityClassName", "tranche-control"},
		{"priorityClasses: {create: false}", server, ".spec.template.spec.priorityClassName", ""},
		{"priorityClasses: {create: false}", "-PriorityClass/tranche-control", "", ""},
		{"namespace: {create: true}", "Namespace/tranche-system",
			".metadata.labels.pod-security\\.kubernetes\\.io/enforce", "restricted"},
		{"", "-Namespace/tranche-system", "", ""},
	}
	for _, test := range tests {
		objects := render(t, parse(t, test.values))
		if absent, found := strings.CutPrefix(test.object, "-"); found {
			if find(objects, absent) != nil {
				t.Errorf("%q: expected no %s, found one", test.values, absent)
			}
			continue
		}
		object := find(objects, test.object)
		if object == nil {
			t.Errorf("%q: expected %s, found only:\n%s", test.values, test.object, names(objects))
			continue
		}
		if found := at(t, object, test.path); found != test.expected {
			t.Errorf("%q: %s %s: expected %q, found %q", test.values, test.object, test.path, test.expected, found)
		}
	}
}

// The configuration file of the server, by key.
func TestServerConfiguration(t *testing.T) {
	tests := []struct{ values, path, expected string }{
		{"", ".cluster", "kubernetes"},
		{"", ".tls.verbs", "Required"},
		{"", ".tls.allowedClients", `["tranche-scheduler.tranche-system.svc"]`},
		{"certificates: {allowedClients: [ops.example.com]}", ".tls.allowedClients[1]", "ops.example.com"},
		{"certificates: {requireClient: false}", ".tls.verbs", ""},
		{"certificates: {requireClient: false}", ".tls.clientCaFile", ""},
		{"", ".leaderElection.lease", "tranche-system/tranche"},
		{"server: {replicas: 1}\nleaderElection: {enabled: false}", ".leaderElection", ""},
		{"", ".ledger.file", "/var/lib/tranche/ledger.db"},
		{"ledger: {enabled: false}", ".ledger", ""},
		{"", ".pages.listen", "0.0.0.0:9090"},
		{"", ".probes.listen", "0.0.0.0:9091"},
		// Closed by default.
		{"", ".pages.auth", "Kubernetes"},
		{"", ".pages.reviewsPerSecond", "2"},
		{"", ".pages.audiences", ""},
		{"pages: {audiences: [tranche]}", ".pages.audiences[0]", "tranche"},
		{"pages: {auth: None}", ".pages.auth", "None"},
		{"pages: {auth: None}", ".pages.reviewsPerSecond", ""},
		{"pages: {tokenSecret: t}", ".pages.auth", "Token"},
		{"", ".pages.tokenFile", ""},
		{"pages: {tokenSecret: t}", ".pages.tokenFile", "/etc/tranche/pages/token"},
		// Tokens cross no network in clear.
		{"", ".pages.certFile", "/etc/tranche/tls/tls.crt"},
		{"", ".pages.keyFile", "/etc/tranche/tls/tls.key"},
		{"pages: {tls: {secret: s}}", ".pages.certFile", "/etc/tranche/pages-tls/tls.crt"},
		{"pages: {tls: {secret: s}}", ".pages.keyFile", "/etc/tranche/pages-tls/tls.key"},
		{"pages: {tls: {enabled: false}}", ".pages.certFile", ""},
		{"pages: {requestsPerSecond: 0}", ".pages.requestsPerSecond", "0"},
		{"server: {bindAddress: '[::]'}", ".pages.listen", "[::]:9090"},
		{"server: {bindAddress: '[::]'}", ".probes.listen", "[::]:9091"},
		{"", ".admission.trustedUsers[1]", "system:serviceaccount:tranche-system:tranche"},
		{"", ".admission.gates", "false"},
		{"webhook: {takeOver: [volcano, kai-scheduler]}", ".admission.takeOver[1]", "kai-scheduler"},
		{"webhook: {gates: true}", ".admission.gates", "true"},
		{"", ".admission.spare", "None"},
		{"webhook: {spare: Gangs}", ".admission.spare", "Gangs"},
		{"", ".admission.hamiLimits", "Resources"},
		{"webhook: {hamiLimits: Annotation}", ".admission.hamiLimits", "Annotation"},
		{"scheduler: {name: gpus}", ".admission.schedulerName", "gpus"},
		{"server: {compatibility: hami}", ".compatibility", "hami"},
		{"", ".sharing", ""},
		{"reservation: {enabled: true}", ".sharing.reservationImage", "tranche:0.1.0"},
		{"rbac: {migApply: true}", ".mig.configMap", "gpu-operator/tranche-mig-parted-config"},
		{"server: {config: {filterWidth: 3, tls: {verbs: Optional}}}", ".filterWidth", "3"},
		{"server: {config: {filterWidth: 3, tls: {verbs: Optional}}}", ".tls.verbs", "Optional"},
		{"server: {config: {filterWidth: 3, tls: {verbs: Optional}}}", ".tls.listen", "0.0.0.0:8443"},
	}
	for _, test := range tests {
		object := find(render(t, parse(t, test.values)), "ConfigMap/tranche")
		config := configOf(t, object, "tranche.yaml")
		if found := at(t, config, test.path); found != test.expected {
			t.Errorf("%q: %s: expected %q, found %q", test.values, test.path, test.expected, found)
		}
	}
}

func TestRestartsOnlyForWhatIsReadOnce(t *testing.T) {
	const checksum = ".spec.template.metadata.annotations.checksum/config"
	sum := func(values, object string) string {
		return at(t, find(render(t, parse(t, values)), object), checksum)
	}
	for _, test := range []struct {
		values, object string
		restarts       bool
	}{
		{"server: {logLevel: debug}", "Deployment/tranche", true},
		{"server: {logLevel: debug}", "Deployment/tranche-scheduler", false},
		{"scheduler: {weight: 15}", "Deployment/tranche-scheduler", true},
		{"scheduler: {weight: 15}", "Deployment/tranche", false},
		{"networkPolicy: {enabled: false}", "Deployment/tranche", false},
	} {
		if found := sum("", test.object) != sum(test.values, test.object); found != test.restarts {
			t.Errorf("%q: expected restarts of %s %v, found %v", test.values, test.object, test.restarts, found)
		}
	}
}

// The image follows the cluster: vendors' endings go, and what is no version is refused.
func TestSchedulerImageByClusterVersion(t *testing.T) {
	for version, expected := range map[string]string{
		"v1.34.1":             "registry.k8s.io/kube-scheduler:v1.34.1",
		"v1.34.1-gke.1829001": "registry.k8s.io/kube-scheduler:v1.34.1",
		"v1.33.5-eks-3cfe0ce": "registry.k8s.io/kube-scheduler:v1.33.5",
		"v1.35.0+k3s1":        "registry.k8s.io/kube-scheduler:v1.35.0",
	} {
		objects, _, err := Render(Folder, nil, Options{KubeVersion: version})
		must(t, err)
		found := at(t, find(objects, "Deployment/tranche-scheduler"), ".spec.template.spec.containers[0].image")
		if found != expected {
			t.Errorf("%s: expected %s, found %s", version, expected, found)
		}
	}
	if _, _, err := Render(Folder, nil, Options{KubeVersion: "v1.29.9"}); err == nil {
		t.Error("expected Kubernetes 1.29 to be refused, found it taken")
	}
}

func TestNotesNameTheNextStep(t *testing.T) {
	for values, expected := range map[string]string{
		"":                                        "kubectl label namespace NAMESPACE tranche.dev/schedule=true",
		"server: {compatibility: hami}":           "tranche.dev/schedule=hami",
		"scheduler: {name: gpus}":                 `"schedulerName":"gpus"`,
		"pages: {auth: Kubernetes}":               "--clusterrole tranche-viewer",
		"pages: {tls: {enabled: true}}":           "https://127.0.0.1:9090/ui/",
		"pages: {tls: {enabled: false}}":          "http://127.0.0.1:9090/ui/",
		"certificates: {mode: Generated}":         "Certificates were generated for 3650 days",
		"ledger: {persistence: {enabled: false}}": "budgets begin anew",
	} {
		_, notes, err := Render(Folder, parse(t, values), Options{})
		must(t, err)
		if !strings.Contains(notes, expected) {
			t.Errorf("%q: expected %q in the notes, found:\n%s", values, expected, notes)
		}
	}
}

func TestMonitoringTakesWhateverFilesThereAre(t *testing.T) {
	loaded := withFiles(t, map[string]string{
		"rules/alerts.yaml":     "groups:\n- name: a\n  rules:\n  - {alert: X, expr: \"up == 0\", annotations: {summary: \"{{ $labels.job }}\"}}\n",
		"rules/recording.yaml":  "groups:\n- name: r\n  rules: []\n",
		"dashboards/teams.json": "{\"title\": \"{{ quota }}\"}\n",
	})
	values := parse(t, "monitoring: {prometheusRule: {enabled: true, labels: {release: p}}, dashboards: {enabled: true}}")
	objects, _, err := renderChart(loaded, values, Options{})
	must(t, err)
	for _, test := range []struct{ object, path, expected string }{
		{"PrometheusRule/tranche-alerts", ".spec.groups[0].rules[0].annotations.summary", "{{ $labels.job }}"},
		{"PrometheusRule/tranche-alerts", ".metadata.labels.release", "p"},
		{"PrometheusRule/tranche-recording", ".spec.groups[0].name", "r"},
		{"ConfigMap/tranche-dashboard-teams", ".data.tranche-teams\\.json", "{\"title\": \"{{ quota }}\"}"},
		{"ConfigMap/tranche-dashboard-teams", ".metadata.labels.grafana_dashboard", "1"},
	} {
		object := find(objects, test.object)
		if object == nil {
			t.Errorf("expected %s, found none", test.object)
		} else if found := strings.TrimSpace(at(t, object, test.path)); found != test.expected {
			t.Errorf("%s %s: expected %q, found %q", test.object, test.path, test.expected, found)
		}
	}
	objects, _, err = renderChart(withFiles(t, nil), values, Options{})
	must(t, err)
	for _, object := range objects {
		if object.GetKind() == "PrometheusRule" {
			t.Errorf("expected no rules without files, found %s", object.Name())
		}
	}
}

func TestRefused(t *testing.T) {
	tests := []struct{ values, says string }{
		{"replica: 2", "replica"},
		{"server: {replicas: 0}", "/server/replicas"},
		{"server: {replicas: two}", "/server/replicas"},
		{"server: {logLevel: verbose}", "/server/logLevel"},
		{"server: {tolerations: {}}", "/server/tolerations"},
		{"server: {bindAddress: '::'}", "/server/bindAddress"},
		{"image: {digest: abc}", "/image/digest"},
		{"image: {pullPolicy: Sometimes}", "/image/pullPolicy"},
		{"certificates: {mode: Vault}", "/certificates/mode"},
		{"certificates: {certManager: {duration: 90 days}}", "/certificates/certManager/duration"},
		{"ledger: {onFailure: Ignore}", "/ledger/onFailure"},
		{"ledger: {persistence: {size: big}}", "/ledger/persistence/size"},
		{"leaderElection: {leaseSeconds: '15'}", "/leaderElection/leaseSeconds"},
		{"scheduler: {weight: 0}", "/scheduler/weight"},
		{"webhook: {failurePolicy: Maybe}", "/webhook/failurePolicy"},
		{"networkPolicy: {apiServerCidrs: [10.0.0.1]}", "/networkPolicy/apiServerCidrs/0"},
		{"namespace: {enforce: strict}", "/namespace/enforce"},
		{"priorityClasses: {gpu: [{name: a, value: 1}]}", "class"},
		{"objects: {gpuQuotas: []}", "/objects/gpuQuotas"},
		{"monitoring: {serviceMonitor: {interval: 15}}", "/monitoring/serviceMonitor/interval"},
		{"monitoring: {prometheusRule: {docsUrl: docs.example.com}}", "/monitoring/prometheusRule/docsUrl"},
		// Right one by one, wrong together.
		{"leaderElection: {enabled: false}", "leaderElection.enabled: expected true"},
		{"pages: {auth: Token}", "pages.tokenSecret: expected it with pages.auth Token"},
		{"pages: {auth: Kubernetes, tokenSecret: t}", "found \"t\" with Kubernetes"},
		{"pages: {auth: None, audiences: [a]}", "pages.audiences: expected only with pages.auth Kubernetes"},
		{"pages: {auth: kubernetes}", "/pages/auth"},
		{"ingress: {enabled: true, tls: {secret: s}}", "ingress.host: expected a name"},
		{"ingress: {enabled: true, host: a.example.com}", "found neither"},
		{"ingress: {enabled: true, host: a.example.com, tls: {secret: s, elsewhere: true}}", "found both"},
		{"ingress: {enabled: true, host: 'a b', tls: {secret: s}}", "/ingress/host"},
		{"httpRoute: {enabled: true, hostnames: [a.example.com]}", "httpRoute: expected parentRefs and hostnames"},
		{"pages: {tls: {enabled: false, secret: s}}", "pages.tls.secret: expected only with pages.tls.enabled"},
		{"leaderElection: {renewSeconds: 20}", "expected leaseSeconds > renewSeconds > 1.2 x"},
		{"leaderElection: {retrySeconds: 9}", "expected leaseSeconds > renewSeconds > 1.2 x"},
		{"certificates: {mode: Secrets, secrets: {server: a, client: b}}", "certificates.secrets.caBundle: expected"},
		{"certificates: {mode: Secrets, secrets: {caBundle: eA==, client: b}}", "certificates.secrets.server: expected"},
		{"namespace: {create: true}\nprobe: {enabled: true}", "namespace.enforce: expected privileged"},
		{"namespace: {create: true}\nagent: {enabled: true}", "the agent needs a host path"},
	}
	for _, test := range tests {
		_, _, err := Render(Folder, parse(t, test.values), Options{})
		if err == nil || !strings.Contains(pointers(err), test.says) {
			t.Errorf("%q: expected a refusal with %q, found %v", test.values, test.says, err)
		}
	}
}

// pointers brings both spellings of a place in the values, /a/b and a.b, into the text of an error.
func pointers(err error) string {
	text := err.Error()
	return text + fmt.Sprint("/", strings.ReplaceAll(text, ".", "/"))
}

// values.yaml is the complete list: the schema knows no value that is not in it, and the other way.
func TestSchemaAndDefaultsNameTheSameValues(t *testing.T) {
	loaded := withFiles(t, nil)
	schema := parse(t, string(loaded.Schema))
	delete(schema["properties"].(map[string]any), "global")
	compareKeys(t, "", schema, loaded.Values)
}

func compareKeys(t *testing.T, path string, schema map[string]any, values map[string]any) {
	t.Helper()
	properties, strict := schema["properties"].(map[string]any)
	if !strict {
		return // free: labels, resources, further configuration
	}
	for key, value := range values {
		below, known := properties[key].(map[string]any)
		if !known {
			t.Errorf("%s/%s: expected a schema, found none", path, key)
		} else if inner, isMap := value.(map[string]any); isMap && len(inner) > 0 {
			compareKeys(t, path+"/"+key, below, inner)
		}
	}
	for key := range properties {
		if _, known := values[key]; !known {
			t.Errorf("%s/%s: expected a default in values.yaml, found none", path, key)
		}
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s: expected additionalProperties false, found %v", path, schema["additionalProperties"])
	}
}
