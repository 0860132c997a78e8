// Users of a kubeconfig who sign in by a program (`exec`: GKE, EKS, OIDC logins), as
// client.authentication.k8s.io/v1 and v1beta1 have it. It is read here and run elsewhere: a server
// runs no programs of others.
//
// Plain values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/kube/transport/credentials.h"

namespace tranche::kube {

struct ExecPlugin {
  enum class Interactive { kNever, kIfAvailable, kAlways };
  std::string api_version;
  std::string command;  // with a slash: a path, absolute; else looked for in PATH
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=VALUE", beside that of this process
  std::string install_hint;
  bool wants_cluster = false;
  Interactive interactive = Interactive::kIfAvailable;
};

struct UserLogin {
  Credentials credentials;
  std::optional<ExecPlugin> plugin;  // whose answer belongs into the credentials
};

// As LoadKubeconfig, for people: `exec` is no error.
absl::StatusOr<UserLogin> LoadUserKubeconfig(const std::string& path, const std::string& context);

}  // namespace tranche::kube
