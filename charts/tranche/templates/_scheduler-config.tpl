{{/* What `tranche scheduler-config` prints, for this cluster; a test compares the two. */}}
{{- define "tranche.schedulerConfig" }}
{{- $name := printf "%s-scheduler" (include "tranche.name" .) -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: {{ gt (int .Values.scheduler.replicas) 1 }}
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: {{ $name }}
# Fewer attempts on pods that have to wait.
podMaxBackoffSeconds: 30
profiles:
- schedulerName: {{ .Values.scheduler.name }}
{{- $percentage := 100 }}
{{- with .Values.scheduler.nodes }}
{{- $percentage = max 5 (min 100 (div (add 99999 (int .)) (int .))) }}
{{- end }}
{{- if lt (int $percentage) 100 }}
  # Of {{ int .Values.scheduler.nodes }} nodes kube-scheduler stops at {{ div (mul (int .Values.scheduler.nodes) $percentage) 100 }} that passed its own filters.
{{- else }}
  # Let Tranche see every feasible node, not a sample.
{{- end }}
  percentageOfNodesToScore: {{ $percentage }}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      # No node advertises these; Tranche accounts for them.
      ignoredResources:
      - nvidia.com/gpumem
      - nvidia.com/gpumem-percentage
      - nvidia.com/gpucores
      - nvidia.com/vgpu-memory
      - nvidia.com/vgpu-cores
      - volcano.sh/vgpu-memory-percentage
      - hivedscheduler.microsoft.com/pod-scheduling-enable
extenders:
- urlPrefix: https://{{ include "tranche.serverHost" . }}:443/scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: {{ .Values.scheduler.weight }}
  # A bind answers within 4 s, what is not proven by then is pursued in the background.
  httpTimeout: 5s
  nodeCacheCapable: true
  # Ignoring a failure would place pods without device accounting.
  ignorable: false
  enableHTTPS: true
  tlsConfig:
    caFile: /etc/tranche/client/ca.crt
    {{- if .Values.certificates.requireClient }}
    certFile: /etc/tranche/client/tls.crt
    keyFile: /etc/tranche/client/tls.key
    {{- end }}
{{- end }}
