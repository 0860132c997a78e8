// Access: what each caller may ask, and at which of the server's addresses.
//
//   health          everybody, everywhere
//   verbs           everywhere, or over TLS with a client certificate alone (tls.verbs: Required);
//                   over TLS only clients of tls.allowedClients, where there is such a list
//   admission       as the listener of TLS takes its callers
//   pages           metrics, API, page: with the bearer token where one is configured; on their own
//                   address, where they have one, and on the plain address unless verbs need TLS
//
// Changes to the embedded cluster are guarded as the verbs are.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/server.h"
#include "scheduler/kube/token.h"
#include "scheduler/server/config.h"

namespace tranche {

enum class Door : uint8_t { kPlain, kTls, kPages };

class Access {
 public:
  explicit Access(const ServeConfig& config);
  // The token can be read. Errors: FailedPrecondition naming the file.
  absl::Status Check();
  // Whether there is anything to ask at that door.
  bool IsOpen(Door door) const;
  // nullopt: the request may be answered.
  std::optional<http::Response> Refuse(Door door, const http::Request& request);

 private:
  std::optional<http::Response> RefuseVerb(Door door, const http::Request& request) const;
  std::optional<http::Response> RefusePage(const http::Request& request);

  const bool tls_;
  const bool verbs_need_tls_;
  const bool own_pages_;
  const std::set<std::string> allowed_;
  absl::Mutex mutex_;
  // Null: none is asked for.
  const std::unique_ptr<kube::TokenSource> token_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace tranche
