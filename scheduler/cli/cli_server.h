// How the commands that ask a running server reach it: by URL, or through the API server that a
// kubeconfig names (its proxy to the pages of Tranche's Service), as plugins of kubectl do.
//
// Secrets come from files and API servers alone and are never printed. A token goes over TLS, or in
// clear to this machine's loopback (kubectl port-forward), nowhere else: through an API server only
// where that goes on over TLS, in a header of ours (http::kOwnAuthorization), since it takes
// Authorization for itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/cli/cli_login.h"
#include "scheduler/kube/transport/credentials.h"
#include "scheduler/kube/transport/single_call.h"

namespace tranche {

inline constexpr const char* kDefaultServer = "http://127.0.0.1:8080";
inline constexpr const char* kDefaultService = "tranche-system/tranche:pages";

struct ServerFlags {
  std::string server;  // URL; empty: see ReadServerFlags
  std::string token_file;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string tls_server_name;  // that the certificate has to carry; empty: the URL's
  std::string token_from;       // NAMESPACE/ACCOUNT
  std::string token_audience;
  std::string kubeconfig;
  std::string context;
  std::string service;      // NAMESPACE/NAME[:PORT]; empty: kDefaultService
  bool by_kubectl = false;  // called as a plugin of kubectl
};

// The way on from an API server to a Service.
struct ServiceWay {
  std::string tls_path;    // below the API server's address
  std::string plain_path;  // likewise
  bool plain = false;      // the Service was found to speak no TLS
};

// Where a request goes, and what is said when it gets no answer.
struct Server {
  kube::Credentials credentials;
  std::string shown;  // "http://127.0.0.1:8080" or "Service tranche-system/tranche:pages"
  std::shared_ptr<ServiceWay> way;     // null: the credentials' server is Tranche's own
  std::shared_ptr<PluginLogin> login;  // null: the credentials are whole
  std::shared_ptr<UserToken> user;     // null: there is no other token than that of the credentials
  std::string ns;  // of the kubeconfig's context ("default" where it names none); "": by URL
};

// With a server that URL, without a scheme http on this machine and https elsewhere; else, where a
// kubeconfig, context or service is named or kubectl has called, through the API server; else
// kDefaultServer. A server that asks for a token is shown that of the file, one made for the
// account of token_from, or that of the kubeconfig's user, where one is named.
// Kubeconfig: the flag, $KUBECONFIG, ~/.kube/config. Errors: InvalidArgument naming
// the flag, what was expected and what was found; those of kube::LoadKubeconfig.
absl::StatusOr<Server> ReadServerFlags(const ServerFlags& flags);

// Asks. Errors are one text that says what was expected, what was found and what helps:
// NotFound for a 404 of Tranche itself, else Unavailable.
absl::StatusOr<std::string> AskServer(const Server& server, std::string_view method,
                                      std::string_view target, std::string_view body);

}  // namespace tranche
