// GET /api/v1/advice: how to divide the fleet, which MIG layouts to change, which pods to restart,
// which nodes to empty, which work would do with less.
//
// The cluster is copied under the engine's lock and weighed outside of it. An answer is kept for a
// while, so that a dashboard that asks often costs no more than one that asks rarely.
// Thread rule: any thread; who asks while an answer is made waits for it, who peeks does not. Never
// a verb's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/advice/case.h"
#include "scheduler/advice/defragment.h"
#include "scheduler/advice/emptying.h"
#include "scheduler/advice/fleet_split.h"
#include "scheduler/advice/repartition.h"
#include "scheduler/advice/right_size.h"
#include "scheduler/advice/use_history.h"
#include "scheduler/api/router.h"

namespace tranche {

struct Advice {
  Instant at;  // of the cluster it is about
  SplitAdvice split;
  std::optional<RepartitionPlan> repartition;  // nullopt: GPUPolicy.mig is Off
  DefragAdvice defragment;
  std::vector<EmptiedNode> consolidate;
  std::optional<RightSizeAdvice> right_sizes;  // nullopt: nobody is asked how much GPUs are used
};

// What advice shows and the mig_controller carries out, one node at a time.
inline constexpr RepartitionLimits kPlanLimits{.most_moves = 8, .most_nodes = 4};

// `use`: nullopt as above.
Advice MakeAdvice(const AdviceCase& fleet, const std::optional<UseHistory>& use);
// Work that is lost is in GPU-seconds, rounded up.
std::string EncodeAdvice(const Advice& advice);
// {"hours","busiestHourPercent","memoryMiB","unused","holds","wouldDo","request","savedMilli",
// "text"}, as the list has it and in words.
std::string EncodeRightSize(const RightSize& entry);

// What was made last, and soon anew; null: nothing yet. Waits for nothing.
using LatestAdvice = std::function<std::shared_ptr<const Advice>()>;
// nullptr: nothing is said of the pod. `advice` may be empty or give null.
std::shared_ptr<const RightSize> RightSizeOf(const LatestAdvice& advice, const PodUid& uid);

class Adviser {
 public:
  using Age = std::chrono::steady_clock::duration;
  static constexpr std::chrono::seconds kAnswerAge{10};
  static constexpr std::chrono::seconds kMetricAge{300};

  // The cluster as it is: Engine::Case under the engine's lock.
  using Look = std::function<AdviceCase()>;
  // What running pods did with their devices; nullopt: nobody is asked.
  using Use = std::function<std::optional<UseHistory>()>;
  // The process's time, which only goes forward; tests move it.
  using Time = std::function<std::chrono::steady_clock::time_point()>;
  Adviser(Look look, Use use, Time time = std::chrono::steady_clock::now);

  // Made at most `age` ago.
  std::shared_ptr<const Advice> Get(Age age);
  // What was made last, whatever its age; null: nothing yet. Where that is older than `age`,
  // `later` is given the making of another, unless it has one already. Waits for nothing.
  std::shared_ptr<const Advice> Peek(Age age,
                                     const std::function<void(std::function<void()>)>& later);

 private:
  bool IsFresh(Age age) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Look look_;
  const Use use_;
  const Time time_;
  absl::Mutex making_;  // held while advice is made, taken before mutex_
  absl::Mutex mutex_;
  bool ordered_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const Advice> made_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point made_at_ ABSL_GUARDED_BY(mutex_);
};

// The adviser must outlive the router's use.
void AddAdviceApi(Adviser& adviser, Router& router);

}  // namespace tranche
