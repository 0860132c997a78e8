{{/* Names, labels and pieces that several templates share. */}}

{{- define "tranche.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains "tranche" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-tranche" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selectors name; never changes. Call with (list . COMPONENT). */}}
{{- define "tranche.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: tranche
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "tranche.labels" -}}
{{- $root := index . 0 -}}
{{ include "tranche.selector" . }}
app.kubernetes.io/part-of: tranche
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{/* Of one of ours: call with (list . IMAGE). */}}
{{- define "tranche.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Versions of managed clusters have endings no image has: v1.34.1-gke.1829001, v1.33.5-eks-3cfe0ce. */}}
{{- define "tranche.schedulerImage" -}}
{{- $image := .Values.scheduler.image -}}
{{- $version := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else if or $image.tag $version -}}
{{ $image.repository }}:{{ $image.tag | default $version }}
{{- else -}}
{{- fail (printf "scheduler.image.tag: expected a value, for the cluster's version has none of the form v1.2.3: %s" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* Name of the Secret with the certificate of "server" or "client". Call with (list . WHICH). */}}
{{- define "tranche.secret" -}}
{{- $root := index . 0 -}}
{{- $which := index . 1 -}}
{{- if eq $root.Values.certificates.mode "Secrets" -}}
{{- index $root.Values.certificates.secrets $which | required (printf "certificates.secrets.%s: expected the name of a Secret with certificates.mode Secrets, found none" $which) -}}
{{- else -}}
{{ include "tranche.name" $root }}-{{ $which }}-tls
{{- end -}}
{{- end -}}

{{/* Names the certificates are for. The client's name is also what the verbs let in. */}}
{{- define "tranche.serverHost" -}}
{{ include "tranche.name" . }}.{{ .Release.Namespace }}.svc
{{- end -}}
{{- define "tranche.clientHost" -}}
{{ include "tranche.name" . }}-scheduler.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "tranche.priorityClass" -}}
{{- if .Values.priorityClasses.create -}}{{ include "tranche.name" . }}-control{{- end -}}
{{- end -}}

{{- define "tranche.probeNamespace" -}}
{{ .Values.probe.namespace | default .Release.Namespace }}
{{- end -}}

{{- define "tranche.agentNamespace" -}}
{{ .Values.agent.namespace | default .Release.Namespace }}
{{- end -}}

{{/* Lets the account of a DaemonSet write its own annotations of the node it runs on, and nothing else of any node.
     Call with root, component, namespace and ours, the annotations. */}}
{{- define "tranche.nodeWriter" -}}
{{- $name := printf "%s-%s" (include "tranche.name" .root) .component -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels: {{- include "tranche.labels" (list .root .component) | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [UPDATE]
        resources: [nodes]
  matchConditions:
    - name: by-the-{{ .component }}
      expression: request.userInfo.username == 'system:serviceaccount:{{ .namespace }}:{{ $name }}'
  variables:
    # A token without a node name has no such entry; the error refuses the request.
    - name: home
      expression: request.userInfo.extra['authentication.kubernetes.io/node-name'][0]
    - name: ours
      expression: "[{{ .ours }}]"
    - name: before
      expression: oldObject.metadata.?annotations.orValue({})
    - name: after
      expression: object.metadata.?annotations.orValue({})
  validations:
    - expression: object.metadata.name == variables.home
      messageExpression: "'the {{ .component }} may write the node it runs on, ' + variables.home + ', and no other'"
    - expression: >-
        variables.after.all(key, key in variables.ours ||
        (key in variables.before && variables.before[key] == variables.after[key])) &&
        variables.before.all(key, key in variables.ours || key in variables.after)
      message: the {{ .component }} may write its own annotations and no others
    - expression: >-
        object.spec == oldObject.spec &&
        object.metadata.?labels == oldObject.metadata.?labels &&
        object.metadata.?finalizers == oldObject.metadata.?finalizers &&
        object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
      message: the {{ .component }} may write annotations and nothing else
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels: {{- include "tranche.labels" (list .root .component) | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
{{- end -}}

{{/* Of every container but the probe's and the agent's, as Pod Security level restricted asks for it. */}}
{{- define "tranche.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
{{- define "tranche.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Secret with the certificate of the pages. */}}
{{- define "tranche.pagesSecret" -}}
{{- .Values.pages.tls.secret | default (include "tranche.secret" (list . "server")) -}}
{{- end -}}

{{/* Values that are right one by one and wrong together. */}}
{{/* What metrics and API ask for. */}}
{{- define "tranche.pagesAuth" -}}
{{- .Values.pages.auth | default (ternary "Token" "Kubernetes" (ne .Values.pages.tokenSecret "")) -}}
{{- end -}}

{{- define "tranche.check" -}}
{{- $v := .Values -}}
{{- $auth := include "tranche.pagesAuth" . -}}
{{- if ne (eq $auth "Token") (ne $v.pages.tokenSecret "") -}}
{{- fail (printf "pages.tokenSecret: expected it with pages.auth Token and with no other, found %q with %s" $v.pages.tokenSecret $auth) -}}
{{- end -}}
{{- if and $v.pages.tls.secret (not $v.pages.tls.enabled) -}}
{{- fail (printf "pages.tls.secret: expected only with pages.tls.enabled, found %q without" $v.pages.tls.secret) -}}
{{- end -}}
{{- if and $v.pages.audiences (ne $auth "Kubernetes") -}}
{{- fail (printf "pages.audiences: expected only with pages.auth Kubernetes, found it with %s" $auth) -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.host) -}}
{{- fail "ingress.host: expected a name with ingress.enabled, found none" -}}
{{- end -}}
{{- if and $v.ingress.enabled (eq $v.ingress.tls.elsewhere (ne $v.ingress.tls.secret "")) -}}
{{- fail (printf "ingress.tls: expected a secret or elsewhere, since people show tokens, found %s" (ternary "both" "neither" $v.ingress.tls.elsewhere)) -}}
{{- end -}}
{{- if and $v.httpRoute.enabled (or (not $v.httpRoute.parentRefs) (not $v.httpRoute.hostnames)) -}}
{{- fail "httpRoute: expected parentRefs and hostnames with httpRoute.enabled, found one of them empty" -}}
{{- end -}}
{{- if and (gt (int $v.server.replicas) 1) (not $v.leaderElection.enabled) -}}
{{- fail (printf "leaderElection.enabled: expected true with server.replicas above 1, found false with %d: two servers would both give devices out" (int $v.server.replicas)) -}}
{{- end -}}
{{- $e := $v.leaderElection -}}
{{- if not (and (lt (mul 6 (int $e.retrySeconds)) (mul 5 (int $e.renewSeconds))) (lt (int $e.renewSeconds) (int $e.leaseSeconds))) -}}
{{- fail (printf "leaderElection: expected leaseSeconds > renewSeconds > 1.2 x retrySeconds, found %d, %d, %d" (int $e.leaseSeconds) (int $e.renewSeconds) (int $e.retrySeconds)) -}}
{{- end -}}
{{- if and (eq $v.certificates.mode "Secrets") $v.webhook.enabled (not $v.certificates.secrets.caBundle) -}}
{{- fail "certificates.secrets.caBundle: expected the CA in base64 with certificates.mode Secrets and webhook.enabled, found none" -}}
{{- end -}}
{{- range $part := list "probe" "agent" -}}
{{- $of := index $v $part -}}
{{- $there := $of.namespace | default $.Release.Namespace -}}
{{- if and $of.enabled $v.namespace.create (eq $there $.Release.Namespace) (has $v.namespace.enforce (list "restricted" "baseline")) -}}
{{- fail (printf "namespace.enforce: expected privileged or \"\" with %s.enabled in the same namespace, found %s: the %s needs a host path" $part $v.namespace.enforce $part) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Egress to DNS and to API servers. */}}
{{- define "tranche.toApiServer" }}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .Values.networkPolicy.apiServerCidrs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}
