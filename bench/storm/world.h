// The fleet of a storm, behind the host that the server has.
//
// Thread rule: the host may be asked by any thread; the rest belongs to the one that plays.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/profile/profile.h"
#include "bench/storm/deaf_clients.h"
#include "scheduler/host/clocks.h"
#include "scheduler/host/engine_host.h"

namespace tranche::bench {

// What waits, unless it says more: so many GPUs, in the namespace of a team.
PodRequest StormPod(const std::string& name, int team, int64_t gpus);

class World : private ReclaimSink {
 public:
  explicit World(const Profile& profile);

  // Teams with equal shares, each owner of the namespaces labelled with it.
  void Declare(int teams, int namespaces, std::vector<GpuBudget> budgets = {});
  // One more namespace of some team.
  void AddNamespace();
  void See(PodFacts pod);
  // Bound on that node, and running.
  PodFacts Running(PodRequest request, int node) const;
  void Gone(const PodUid& uid);
  // Evictions that were asked for are done, and the pods gone; how many.
  int Evict();
  // What the server does by itself.
  void Turn();
  void Pass(Millis time) { clock_.AdvanceBy(time); }
  // What is there now stays when the storm is over.
  void Settle() { brought_.clear(); }
  // The storm is over: pods that it brought are gone, and so are its clients.
  void End();
  // One more client of the pages that reads no answer.
  absl::Status ComeDeaf(std::size_t most);

  EngineHost& host() { return host_; }
  const Profile& profile() const { return profile_; }
  const std::vector<std::string_view>& gpu_nodes() const { return views_; }

 private:
  void Restored(const std::vector<Reclaim>&) override {}
  void Queue(ReclaimWork work, Instant) override;
  void Carry() override {}
  void Apply();

  const Profile profile_;
  ManualClock clock_;
  EngineHost host_;
  std::vector<std::string> names_;
  std::vector<std::string_view> views_;  // of names_
  PolicySet declared_;
  std::shared_ptr<const PolicySet> last_;  // given to the engine
  std::set<PodUid> brought_;               // by the storm, and still there
  std::unique_ptr<DeafClients> deaf_;
  int64_t turns_ = 0;
  int teams_ = 0;
  absl::Mutex mutex_;
  std::deque<EvictionOrder> evictions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche::bench
