// Signing in by the program that a kubeconfig names (kube/transport/exec_plugin.h).
//
// What it prints is a secret: it is kept in memory alone and never shown. One thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/kube/transport/exec_plugin.h"
#include "topology/base/units.h"

namespace tranche {

class PluginLogin {
 public:
  explicit PluginLogin(kube::ExecPlugin plugin) : plugin_(std::move(plugin)) {}
  // Puts token or certificate into the credentials; runs the program where there is none yet, or
  // the last one ends within moments. Errors: InvalidArgument naming the program, what was expected
  // and what was found.
  absl::Status Fill(Instant now, kube::Credentials& credentials);
  // The server did not take it: the next Fill runs the program again.
  void Forget() { held_.reset(); }

 private:
  struct Held {
    std::string token;
    std::string certificate, key;
    std::optional<Instant> expires;
  };
  absl::StatusOr<Held> Ask(const kube::Credentials& cluster) const;
  absl::StatusOr<Held> Read(const std::string& text) const;
  absl::Status Bad(const std::string& expected, const std::string& found) const;

  kube::ExecPlugin plugin_;
  std::optional<Held> held_;
};

// The token of a kubeconfig's user, for a server that asks for one.
class UserToken {
 public:
  explicit UserToken(kube::UserLogin login);
  // Whether the server has asked for it; it is shown to nobody before.
  bool wanted() const { return wanted_; }
  void Want() { wanted_ = true; }
  // Errors: InvalidArgument where the user has none, with what helps; those of PluginLogin.
  absl::StatusOr<std::string> Get(Instant now);
  // The server did not take it. False: there is no other.
  bool Forget();

 private:
  kube::Credentials credentials_;
  std::optional<PluginLogin> plugin_;
  bool wanted_ = false;
};

}  // namespace tranche
