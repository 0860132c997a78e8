// Tokens that are shown: who holds them and what they may see, asked of the API server, and kept.
//
//   everything        whoever may list gpuquotas
//   /metrics          these, and whoever may get the path /metrics
//   a namespace       whoever may get gpuquotaviews in it
//
// An answer serves for a minute, "nobody's token" for ten seconds. The API server is asked for one
// thing once, however many ask us, and no more often than the budget allows. Where callers are so
// many that it does not come to a review of everything in a minute, a yes serves for as long as a
// round of all of them takes, kStretch at most, and a no three times as long. With nothing left of
// the budget what is known serves on, to kLongest at most; beyond that, and beyond their own part
// of the budget strangers, callers are told to come back. Where the API server does not answer,
// nothing serves for more than its minute. A token is refused from the moment that it says it ends.
//
// Tokens are kept as SHA-256 and never logged. Memory: kMostMembers of what the API server says of
// a user (32 KiB at most each), kMostNamespaces for each, kMostStrangers of some hundred bytes.
// Thread rule: any thread; `done` is called on the caller's or on that of the reviews.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/server.h"
#include "scheduler/kube/reviews/reviews.h"
#include "scheduler/server/viewers/review_budget.h"
#include "scheduler/server/viewers/shown_token.h"

namespace tranche {

class Viewers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kServes{60};
  static constexpr std::chrono::seconds kNobodyServes{10};
  static constexpr std::chrono::minutes kStretch{25};
  static constexpr std::chrono::minutes kLongest{30};
  static constexpr int kNoServesTimes = 3;
  static constexpr std::chrono::minutes kMemberStays{20};  // after it was seen last
  static constexpr std::size_t kMostMembers = 4'096;
  static constexpr std::size_t kMostStrangers = 1'024;
  static constexpr std::size_t kMostNamespaces = 64;
  static constexpr std::size_t kMostAtOnce = 32;  // namespaces of one question; others are not seen
  static constexpr std::size_t kMostWaiting = 1'024;

  struct Clocks {
    std::function<TimePoint()> steady = std::chrono::steady_clock::now;
    // That of the cluster, which tokens speak of.
    std::function<std::chrono::system_clock::time_point()> wall = std::chrono::system_clock::now;
  };

  // `reviews` outlives this and every answer.
  Viewers(kube::Reviews& reviews, int reviews_per_second, Clocks clocks);
  Viewers(kube::Reviews& reviews, int reviews_per_second)
      : Viewers(reviews, reviews_per_second, Clocks()) {}

  // Of one token.
  class Member;

  struct Known {
    std::shared_ptr<Member> who;
    bool everything = false;
    bool metrics = false;  // where it was asked for
    // Of a service account, its own; and those that were found to be seen before.
    std::set<std::string> likely = {};
  };
  // The refusal, or who it is.
  struct Answer {
    std::optional<http::Response> refusal = std::nullopt;
    Known known = {};
  };
  enum class For : uint8_t { kApi, kMetrics };
  void Who(const std::string& authorization, For what, std::function<void(Answer)> done);

  // Which of the namespaces somebody may see.
  struct Seen {
    std::optional<http::Response> refusal = std::nullopt;
    std::set<std::string> namespaces = {};
  };
  void Which(std::shared_ptr<Member> who, std::vector<std::string> namespaces,
             std::function<void(Seen)> done);

  // Why nothing can be asked with that header, whatever the API server would say; nullopt: it may
  // be somebody's.
  std::optional<http::Response> RefuseUnseen(const std::string& authorization) const;

 private:
  // One thing that the API server said yes or no to.
  struct Fact {
    enum class Said : uint8_t { kNothing, kNo, kYes };
    Said said = Said::kNothing;
    TimePoint at;
    bool under_way = false;
    std::vector<std::function<void(const absl::Status&)>> waiting;
  };
  enum class Standing : uint8_t { kServes, kAsk, kWait, kTooOften, kTooMany };
  // What is asked for next: of the token itself where there is no question.
  struct Need {
    Fact* fact = nullptr;
    std::optional<kube::AccessQuestion> question;
    Standing standing = Standing::kServes;
  };
  struct Visit;

  void GoOn(const std::shared_ptr<Visit>& visit);
  // nullopt: all is known.
  std::optional<Need> Next(Visit& visit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // nullopt: what is needed serves.
  std::optional<Need> Missing(const Member& member, Need need) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Standing Judge(const Member& member, const Need& need, TimePoint now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long an answer serves: while reviews may be had, and with none to be had.
  struct Times {
    std::chrono::nanoseconds fresh, longest;
  };
  Times ServesFor(const Need& need) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Caller CallerOf(const Member& member, const Need& need) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins or joins the review of what is needed, or refuses the visit; true: to be launched.
  bool Begin(const std::shared_ptr<Visit>& visit, const Need& need)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Find(Visit& visit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Launch(const std::shared_ptr<Visit>& visit, const Need& need);
  void Hear(const std::shared_ptr<Member>& member, Fact* fact, uint64_t version,
            const absl::StatusOr<bool>& said, std::optional<kube::ReviewedUser> user);
  void Settle(const std::shared_ptr<Member>& member, bool somebody)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Weigh(Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const TokenDigest& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Fact& NamespaceOf(Member& member, const std::string& ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complain(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  kube::Reviews& reviews_;
  const Clocks clocks_;
  absl::Mutex mutex_;
  ReviewBudget budget_ ABSL_GUARDED_BY(mutex_);
  std::map<TokenDigest, std::shared_ptr<Member>> members_ ABSL_GUARDED_BY(mutex_);
  // Of both kinds, who was seen last comes first.
  std::list<TokenDigest> recent_ ABSL_GUARDED_BY(mutex_);
  std::list<TokenDigest> strangers_ ABSL_GUARDED_BY(mutex_);
  // Of all members, what a round of reviews comes to: kNoServesTimes for a yes, 1 for a no.
  int64_t weight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool away_ ABSL_GUARDED_BY(mutex_) = false;  // the last review came to nothing
  std::string complaint_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
