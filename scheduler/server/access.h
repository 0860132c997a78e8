// Access: what each caller may ask, at which of the server's addresses, and how many bytes of
// memory that may take. Decided from the head of a request, before its body is read.
//
//   health          everybody, everywhere; an address may be for health alone
//   verbs           everywhere, or over TLS with a client certificate alone (tls.verbs: Required);
//                   over TLS only clients of tls.allowedClients, where there is such a list
//   admission       as the listener of TLS takes its callers
//   pages           metrics, API, page: with the bearer token where one is configured, or one that
//                   may be a user's of the cluster (viewers/ finds out whose); on their own
//                   address, where they have one, and on the plain address unless verbs need TLS
//
// Nobody's browser is used against us: a page of another site may change nothing anywhere, and on
// an address of the loopback Host must be a name that no foreign name server can have given.
//
// Changes to the embedded cluster are guarded as the verbs are. Verbs, admission and pages have
// budgets of bytes of their own, so that what one of them is asked never leaves another unanswered.
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/byte_budget.h"
#include "scheduler/http/server.h"
#include "scheduler/kube/transport/token.h"
#include "scheduler/server/caller_rates.h"
#include "scheduler/server/config.h"

namespace tranche {

enum class Door : uint8_t { kPlain, kTls, kPages, kProbes };

// What paths take a body for.
enum class Subject : uint8_t { kHealth, kVerbs, kAdmission, kPageFiles, kPages };
Subject SubjectOf(std::string_view path);

// Of this machine itself, as a caller's address or one to listen on.
bool IsLoopbackAddress(std::string_view address);

// The largest bodies. Pages are asked by GET; a what-if is a list of pods; an AdmissionReview has
// the new and the old pod, each up to etcd's 1.5 MiB, which escapes make six times as long.
inline constexpr std::size_t kPageBodyBytes = 64 * 1024;
inline constexpr std::size_t kWhatIfBodyBytes = 1024 * 1024;
inline constexpr std::size_t kAdmissionBodyBytes = 32 * 1024 * 1024;

class Access {
 public:
  // Why a header is nobody's token, whatever an API server would say; nullopt: it may be
  // somebody's.
  using Unseen = std::function<std::optional<http::Response>(const std::string& authorization)>;

  // `time` is that of the rates.
  explicit Access(const ServeConfig& config,
                  std::function<CallerRates::TimePoint()> time = std::chrono::steady_clock::now);
  // Where users of the cluster are asked for: before requests come.
  void AskForUsers(Unseen unseen) { unseen_ = std::move(unseen); }
  // The token can be read. Errors: FailedPrecondition naming the file.
  absl::Status Check();
  // Whether there is anything to ask at that door.
  bool IsOpen(Door door) const;
  // nullopt: the request may be answered.
  std::optional<http::Response> Refuse(Door door, const http::Request& request);
  // The same with what the request may cost.
  http::Terms Judge(Door door, const http::Request& head);

 private:
  // Of one subject: bodies being read, answers being sent.
  struct Budgets {
    http::ByteBudget bodies;
    http::ByteBudget answers;
  };

  // A caller that asks for pages too often; nobody on this machine does.
  std::optional<http::Response> RefuseHaste(const http::Request& request);
  std::optional<http::Response> RefuseVerb(Door door, const http::Request& request) const;
  std::optional<http::Response> RefusePage(const http::Request& request);
  std::optional<http::Response> RefuseForeignPage(Door door, const http::Request& request) const;

  const bool tls_;
  const bool verbs_need_tls_;
  const bool own_pages_;
  const bool own_probes_;
  const bool plain_is_local_;  // listens on this machine's loopback alone
  const bool pages_are_local_;
  const std::size_t verb_body_bytes_;
  Budgets verbs_, admission_, pages_;
  CallerRates page_rates_;
  const std::set<std::string> allowed_;
  Unseen unseen_;  // null: not asked for
  absl::Mutex mutex_;
  // Null: none is asked for.
  const std::unique_ptr<kube::TokenSource> token_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace tranche
