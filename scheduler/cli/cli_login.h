// Signing in by the program that a kubeconfig names (kube/transport/exec_plugin.h), and the token
// that a server is shown.
//
// What programs print and API servers make are secrets: they are kept in memory alone and never
// shown. One thread.
#pragma once

#include <memory>
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

// Which token a server is shown that asks for one; all empty: that of the kubeconfig's user.
struct TokenOrigin {
  std::string file;  // holds it
  // A service account, for which the user has one made that lives for ten minutes.
  std::string account_ns = {};
  std::string account = {};
  std::string audience = {};  // of such a token; empty: the API server
};

// The token that a server is shown, from the moment that it asks for one.
class UserToken {
 public:
  // `api`: the API server and the user, without what `login` adds. Null login: that is all of it.
  UserToken(kube::Credentials api, std::shared_ptr<PluginLogin> login, TokenOrigin origin);
  // Whether the server has asked for it; it is shown to nobody before.
  bool wanted() const { return wanted_; }
  void Want() { wanted_ = true; }
  // Errors: InvalidArgument where there is none, with what helps; those of PluginLogin.
  absl::StatusOr<std::string> Get(Instant now);
  // The server did not take it. False: there is no other.
  bool Forget();
  // For people: "that of the kubeconfig's user".
  std::string Whose() const;

 private:
  struct Made {
    std::string token;
    Instant ends;
  };
  absl::StatusOr<std::string> OfUser() const;
  absl::StatusOr<Made> MakeForAccount(Instant now) const;

  kube::Credentials api_;
  const std::shared_ptr<PluginLogin> login_;
  const TokenOrigin origin_;
  std::optional<Made> made_;  // for the account
  bool wanted_ = false;
};

}  // namespace tranche
