#!/usr/bin/env bash
# Makes the certificates of an installation without Helm and without cert-manager: a CA, one
# certificate for Tranche's TLS port and one for kube-scheduler as its client.
#
#   charts/certificates.sh FOLDER [NAMESPACE]     default namespace: tranche-system
#
# Writes FOLDER/secrets.yaml (two Secrets) and FOLDER/webhook.yaml (charts/webhook.yaml with the CA
# in it), for kubectl apply. The CA's key is thrown away: to renew, run it again and restart
# kube-scheduler.
# Exit codes: 0 done, 1 openssl failed, 2 usage.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -lt 1 || $# -gt 2 ]]; then
  echo "usage: certificates.sh FOLDER [NAMESPACE], found: $*" >&2
  exit 2
fi
folder=$1 namespace=${2:-tranche-system}
days=3650
umask 077
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
key ca.key
openssl req -x509 -new -key ca.key -sha256 -days "$days" -subj "/CN=tranche-ca" -out ca.crt \
  -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign"

sign() {  # NAME USAGE DNS...
  local name=$1 usage=$2 names
  shift 2
  names=$(printf ',DNS:%s' "$@")
  key "$name.key"
  openssl req -new -key "$name.key" -subj "/CN=$name" -out "$name.csr"
  printf '%s\n' "subjectAltName=${names#,}" "extendedKeyUsage=$usage" \
    "keyUsage=critical,digitalSignature" "basicConstraints=critical,CA:FALSE" >"$name.ext"
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days "$days" \
    -extfile "$name.ext" -out "$name.crt" 2>"$name.log" || { cat "$name.log" >&2; exit 1; }
}
sign tranche serverAuth "tranche.$namespace.svc" "tranche.$namespace.svc.cluster.local"
sign tranche-scheduler clientAuth "tranche-scheduler.$namespace.svc"

secret() {  # SECRET NAME
  printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\n' "$1" "$namespace"
  printf 'type: kubernetes.io/tls\ndata:\n'
  printf '  ca.crt: %s\n  tls.crt: %s\n  tls.key: %s\n' \
    "$(base64 -w0 <ca.crt)" "$(base64 -w0 <"$2.crt")" "$(base64 -w0 <"$2.key")"
}
cd - >/dev/null
(
  cd "$scratch"
  secret tranche-server-tls tranche
  echo ---
  secret tranche-client-tls tranche-scheduler
) >"$folder/secrets.yaml"
sed "s/CA_BUNDLE/$(base64 -w0 <"$scratch/ca.crt")/" "$here/webhook.yaml" >"$folder/webhook.yaml"
echo "certificates: wrote $folder/secrets.yaml and $folder/webhook.yaml"
