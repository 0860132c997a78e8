// A kube-scheduler with Tranche as its extender: one pod at a time through filter, prioritize and
// the choice of a node, binds beside that in any number, preemption of its own when nothing fits,
// and nothing remembered over a restart. Real bytes go to the extender.
//
// Sources: kube-scheduler-extender sections 1 to 3 and 7; charts/tranche/templates
// _scheduler-config.tpl for how it is configured.
//
// Simplified: of its own filters there are resources, taints, cordons and node selectors; of its
// own scores the least used CPU.
//
// Fault kScheduler: restarts.
//
// Thread rule: one thread. Steps run as its actor, a new one for each life.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/net.h"
#include "test/sim/base/script.h"
#include "test/sim/claims/claim_plugin.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/cluster/network.h"
#include "test/sim/world/informer.h"
#include "test/sim/world/scheduler_cache.h"
#include "test/sim/world/scheduling_queue.h"

namespace tranche::sim {

struct KubeSchedulerOptions {
  std::string name = "gpu-scheduler";  // spec.schedulerName of its pods
  int minor = 34;                      // of version 1.x
  SimTime most_backoff = std::chrono::seconds(10);
  bool pops_early = false;
  bool nominates_before_bind = false;  // from 1.35 on, where a pod waits in PreBind
  SimTime cycle = std::chrono::milliseconds(2);
  bool allocates = false;  // resource claims; else its pods have none
  // Some pods wait before they are bound until a volume of theirs is made, for which the plugin
  // VolumeBinding gives them ten minutes. Source: kubernetes volume_binding.go, PreBind and
  // bindTimeoutSeconds.
  bool has_volumes = false;
};

class KubeScheduler {
 public:
  KubeScheduler(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                ApiServer& api, Network& network, KubeSchedulerOptions options, uint64_t seed);

  void Start(TrancheEndpoint& tranche);
  void Quiet() { quiet_ = true; }
  const std::string& name() const { return options_.name; }

 private:
  // One attempt to place one pod.
  struct Attempt {
    PodViewPtr pod;
    std::map<std::string, std::string> refused;  // node -> reason
    std::set<std::string> unresolvable;          // nodes that no preemption helps
    bool by_extender = false;
    bool on_nominated = false;  // the nominated node alone is asked about
    std::vector<std::string> names;
  };
  using AttemptPtr = std::shared_ptr<Attempt>;
  // A node where preemption might help.
  struct Candidate {
    std::string node;
    std::vector<PodViewPtr> victims;  // highest priority first
    int64_t violations = 0;
  };

  void Begin(const std::string& what);
  void Restart();
  void Tick();
  void HearPod(const Change& change);
  void HearNode(const Change& change);
  void Pump();
  void Next();
  // Calls a verb of the extender; the answer is null where none came or it was no JSON.
  void Ask(const std::string& verb, const PodView& pod, std::string body,
           std::function<void(const Json& answer)> done);
  static std::string Args(const PodView& pod, const std::vector<std::string>& names);

  void Cycle(const PodViewPtr& pod);
  void FilterAll(const AttemptPtr& attempt);
  void Filter(const AttemptPtr& attempt);
  void Filtered(const AttemptPtr& attempt, const Json& answer);
  void Prioritized(const AttemptPtr& attempt, const Json& answer);
  void Choose(const AttemptPtr& attempt, const std::string& node);
  void PreBind(const AttemptPtr& attempt, const std::string& node);
  void Bind(const AttemptPtr& attempt, const std::string& node);
  void NotBound(const AttemptPtr& attempt);
  // What keeps the pod from the node; empty: nothing.
  std::string WhyNot(const PodView& pod, const SchedulerCache::Node& node) const;
  void Fail(const AttemptPtr& attempt, SchedulingQueue::Failure why, const std::string& message);
  void SayWaiting(const PodView& pod, const char* reason, const std::string& message,
                  const std::optional<std::string>& nominated);
  static std::string FitMessage(const Attempt& attempt, std::size_t nodes);

  // In scheduler_preemption.cc.
  void Preempt(const AttemptPtr& attempt);
  bool MayPreempt(const Attempt& attempt) const;
  std::vector<Candidate> DryRun(const Attempt& attempt) const;
  void Preempted(const AttemptPtr& attempt, std::vector<Candidate> candidates, const Json& answer);
  void Execute(const AttemptPtr& attempt, const Candidate& chosen);
  void GiveUpPreemption(const AttemptPtr& attempt, const std::optional<std::string>& nominated);

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  Network& network_;
  const KubeSchedulerOptions options_;
  Draws draws_;
  Draws of_volumes_;
  const Actor fate_;  // outlives its lives
  TrancheEndpoint* tranche_ = nullptr;
  Actor actor_ = 0;
  int life_ = 0;
  bool quiet_ = false;
  bool busy_ = false;
  SchedulerCache cache_;
  SchedulingQueue queue_;
  std::unique_ptr<ClaimPlugin> claims_;      // null: it allocates none
  std::map<std::string, std::string> said_;  // uid -> the condition last written
  Informer pods_;
  Informer nodes_;
};

}  // namespace tranche::sim
