{{/*
The generated certificates, as {SECRET: {ca.crt, tls.crt, tls.key}} in base64. Those of the last
installation if both are there, else new ones of a new CA, whose key is kept nowhere. Made once for each
rendering: the webhook and both Secrets must come from the same CA.
*/}}
{{- define "tranche.generated" -}}
{{- $server := include "tranche.secret" (list . "server") -}}
{{- $client := include "tranche.secret" (list . "client") -}}
{{- if not (hasKey .Values.certificates "made") -}}
{{- $haveServer := lookup "v1" "Secret" .Release.Namespace $server -}}
{{- $haveClient := lookup "v1" "Secret" .Release.Namespace $client -}}
{{- $made := dict -}}
{{- if and $haveServer $haveClient -}}
{{- range $name, $have := dict $server $haveServer $client $haveClient -}}
{{- range $key := list "ca.crt" "tls.crt" "tls.key" -}}
{{- if not (hasKey ($have.data | default dict) $key) -}}
{{- fail (printf "Secret %s: expected the keys ca.crt, tls.crt and tls.key, found none of the name %s; delete it to have it made anew" $name $key) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $made $name (pick $have.data "ca.crt" "tls.crt" "tls.key") -}}
{{- end -}}
{{- else -}}
{{- $days := int .Values.certificates.validDays -}}
{{- $serverHost := include "tranche.serverHost" . -}}
{{- $clientHost := include "tranche.clientHost" . -}}
{{- $ca := genCAWithKey (printf "%s-ca" (include "tranche.name" .)) $days (genPrivateKey "ecdsa") -}}
{{- $forServer := genSignedCertWithKey (include "tranche.name" .) nil (list $serverHost (printf "%s.cluster.local" $serverHost)) $days $ca (genPrivateKey "ecdsa") -}}
{{- $forClient := genSignedCertWithKey (printf "%s-scheduler" (include "tranche.name" .)) nil (list $clientHost) $days $ca (genPrivateKey "ecdsa") -}}
{{- $_ := set $made $server (dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $forServer.Cert) "tls.key" (b64enc $forServer.Key)) -}}
{{- $_ := set $made $client (dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $forClient.Cert) "tls.key" (b64enc $forClient.Key)) -}}
{{- end -}}
{{- $_ := set .Values.certificates "made" $made -}}
{{- end -}}
{{- toYaml .Values.certificates.made -}}
{{- end -}}

{{/* CA of the server's certificate in base64, for API servers; empty with cert-manager, which fills it in. */}}
{{- define "tranche.caBundle" -}}
{{- if eq .Values.certificates.mode "Secrets" -}}
{{- .Values.certificates.secrets.caBundle -}}
{{- else if eq .Values.certificates.mode "Generated" -}}
{{- index (include "tranche.generated" . | fromYaml) (include "tranche.secret" (list . "server")) "ca.crt" -}}
{{- end -}}
{{- end -}}
