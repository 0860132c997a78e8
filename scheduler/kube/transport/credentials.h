// Where the API server is and who we are, from a service account or a kubeconfig.
//
// Plain values; any thread. Cost: a file or two. Source: kube-client-protocol section 1.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tranche::kube {

// Where the API server is and who we are. Tokens and keys are read from files again when those
// change; they are never logged.
struct Credentials {
  std::string host;  // name or address
  uint16_t port = 443;
  std::string path_prefix;  // of server URLs with a path
  bool tls = true;
  std::string tls_server_name;  // empty: host
  bool insecure_skip_verify = false;
  std::string ca_file, ca_pem;  // one of them, or neither without TLS
  bool system_roots = false;    // neither: the CAs this machine trusts
  std::string client_cert_file, client_cert_pem;
  std::string client_key_file, client_key_pem;
  std::string token_file, token;
  bool token_in_clear = false;    // without TLS too: the server is on this machine
  std::string context_namespace;  // of a kubeconfig's context, "default" where it names none
};

// $KUBERNETES_SERVICE_HOST and the service account files under `root`.
// Errors: FailedPrecondition naming what is missing.
absl::StatusOr<Credentials> InClusterCredentials(
    const std::string& root = "/var/run/secrets/kubernetes.io/serviceaccount");
// That context of a kubeconfig file; empty: its current one. Errors: NotFound; InvalidArgument
// naming field and value; Unimplemented for exec, auth-provider, username/password, impersonation
// and proxy-url.
absl::StatusOr<Credentials> LoadKubeconfig(const std::string& path,
                                           const std::string& context = "");

}  // namespace tranche::kube
