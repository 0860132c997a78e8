// Asks an autoscaler for all the nodes of a gang or none, where GPUPolicy.provisioning says so: one
// ProvisioningRequest for each gang that waits for room and lacks nothing else.
//
// Every ten seconds, which is as often as cluster-autoscaler looks: our requests are listed, the
// cluster is looked at, and what provisioning_plan.h makes of both is done. What the autoscaler
// says is told by Events on a pod of the gang; once it says Provisioned, nobody is evicted for the
// gang for as long as preemption.waitForNodes has it. Nothing is kept in memory that a restart
// would miss: requests carry our label, pods the request's name. Where the policy says Off, and
// nothing of ours is left, nobody looks.
//
// Thread rule: Tick by one thread at a time; AddTo and StandingOf from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/controllers/scaling/provisioning_plan.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/object_writes.h"

namespace tranche {

class Provisioner {
 public:
  static constexpr Millis kLookEvery{10'000};
  // A list without an answer is given up.
  static constexpr Millis kMostListing{60'000};

  // What it needs of the rest; all are called without locks.
  struct Hooks {
    // The cluster was heard of lately: nothing is judged on old knowledge.
    std::function<bool()> fresh;
    std::function<Provisioning()> mode;  // GPUPolicy.provisioning
    std::function<AdviceCase()> look;
    // Engine::NoteScaleUp of each.
    std::function<void(const std::vector<ExpectedNode>& expected)> expect;
  };

  // All must outlive this.
  Provisioner(ProvisioningRequests& requests, PodMarks& pods, ObjectWrites& objects, Hooks hooks);

  // `now` does not go back.
  void Tick(Instant now);
  void AddTo(metrics::Scrape& scrape) const;
  // The request of the gang as it was seen last; nullopt: there is none, or it waits no more.
  std::optional<ProvisioningFound> StandingOf(const std::string& ns, const std::string& gang) const;

 private:
  // Where the answer to a list is left, also when nobody waits for it any more.
  struct Mailbox {
    absl::Mutex mutex;
    std::optional<ProvisioningList> list ABSL_GUARDED_BY(mutex);
  };

  void List(Instant now);
  void Act(const ProvisioningList& list, Provisioning mode, Instant now);
  void Make(const ProvisioningPlan& plan, Instant now);
  void Remove(const ProvisioningPlan& plan);
  void Mark(const ProvisioningPlan& plan);
  void Keep(const ProvisioningList& list, const ProvisioningPlan& plan);
  void TellChanges(const ProvisioningList& list, const ProvisioningPlan& plan, Instant now);
  void Tell(const RoomWish::Member& pod, const std::string& note, Instant now);
  void Count(const ProvisioningList& list);

  ProvisioningRequests& requests_;
  PodMarks& pods_;
  ObjectWrites& objects_;
  const Hooks hooks_;
  std::optional<Instant> looked_;
  std::shared_ptr<Mailbox> listing_;  // null: no list is under way
  std::map<NamespacedName, Instant> asked_;
  // What was last told of each; nullopt: the first look of this process tells nothing old.
  std::optional<std::map<NamespacedName, ProvisioningState>> told_;
  bool nothing_left_ = false;  // of ours, where none is wanted
  bool said_why_not_ = false;  // why they cannot be listed
  mutable absl::Mutex shown_mutex_;
  std::map<std::string, int64_t> counts_ ABSL_GUARDED_BY(shown_mutex_);
  // By namespace and gang.
  std::map<std::pair<std::string, std::string>, ProvisioningFound> standing_
      ABSL_GUARDED_BY(shown_mutex_);
};

}  // namespace tranche
