// Takes in what a cluster reports: facts go to the engine, policy objects to their intake, and what
// was heard when decides whether Tranche may decide.
//
// Thread rule: any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/host/policy_intake.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche {

enum class Readiness : uint8_t {
  kReady,
  kLoading,   // the first complete set of nodes and pods is not in yet
  kStale,     // nothing was heard of nodes or pods for longer than the cache limit
  kStandby,   // another process leads
  kStopping,  // on the way out
};
// A fixed sentence without numbers: it reaches kube-scheduler, which re-queues pods whose message
// changes.
std::string_view Describe(Readiness readiness);

// What the watch shows of a node, as far as it is compared with the books.
struct ShownNode {
  NodeUid uid;
  bool ready = true;
  bool cordoned = false;
  std::optional<ResourceCount> gpu;
  friend bool operator==(const ShownNode&, const ShownNode&) = default;
};
ShownNode ShownOf(const NodeFacts& node);

class ClusterIntake : public ClusterEvents {
 public:
  // Where the watch shows a pod that holds what it holds there: a number of the node's name; 0:
  // nowhere, or nothing can be said.
  using Place = std::size_t;
  static Place PlaceOf(const NodeName& node);
  // How far somebody has come who looks at all that the watch shows, while it goes on.
  struct ShownWalk {
    std::size_t bucket = 0;
    std::size_t buckets = 0;
    bool pods_done = false;
    NodeName node;
    bool done = false;
  };

  // `cache_limit`: the oldest cache a decision may rest on; zero: any age. `may_write`: whether
  // this process may still write what it decides; null: always.
  ClusterIntake(EngineHost& engine, PolicyIntake& policies, std::chrono::milliseconds cache_limit,
                std::function<bool()> may_write);

  Readiness readiness() const;
  void BeginStopping() { stopping_ = true; }
  // Time since "pods" or "nodes" was heard of; nullopt: never, or another resource.
  std::optional<std::chrono::milliseconds> HeardAge(std::string_view resource) const;

  void Receive(ClusterEvent event) override;
  // Whole lists of pods so far: what came and went before one is in no event.
  int64_t pod_lists() const { return pod_lists_; }
  // A pod that somebody has read by itself, past the watch. One whose end was heard of lately stays
  // gone: no other word of its end would come.
  void ReceiveRead(PodFacts pod);
  bool IsGone(const PodUid& uid) const;
  // Whether the watch shows the pod: it told of it, and not yet of its end.
  bool Shows(const PodUid& uid) const;
  bool Shows(const NodeName& node) const;
  // The next pods that the watch shows, then the next nodes; about `most`. Under the engine's lock
  // (EngineHost::With) these and the engine's books are of one moment. The visitors must not call
  // back.
  void VisitShown(ShownWalk& walk, std::size_t most,
                  const std::function<void(const PodUid&, Place)>& pod,
                  const std::function<void(const NodeName&, const ShownNode&)>& node) const;

 private:
  struct Receiver;
  using Steady = std::chrono::steady_clock;
  static constexpr std::array<std::string_view, 2> kWatched = {"pods", "nodes"};
  static constexpr Steady::rep kNever = -1;
  // Longer than any answer is under way.
  static constexpr std::chrono::minutes kRemembered{10};
  static constexpr std::size_t kMostRemembered = 100'000;

  EngineHost& engine_;
  PolicyIntake& policies_;
  const std::chrono::milliseconds cache_limit_;
  const std::function<bool()> may_write_;
  std::atomic<bool> synced_ = false;  // the engine has ended its restart
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> pod_lists_ = 0;
  // Under the engine's lock, with what the engine is told.
  void NoteShown(const PodFacts& pod);
  void NoteShown(const NodeFacts& node);
  void NoteGone(const PodUid& uid);
  void NoteGone(const NodeName& node);
  mutable absl::Mutex mutex_;
  std::unordered_map<PodUid, Place> shown_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeName, ShownNode> shown_nodes_ ABSL_GUARDED_BY(mutex_);
  // For kRemembered; the order is that of their ends.
  std::unordered_set<PodUid> gone_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<Steady::time_point, PodUid>> ends_ ABSL_GUARDED_BY(mutex_);
  // Steady time of the last sign of life, parallel to kWatched.
  std::array<std::atomic<Steady::rep>, kWatched.size()> heard_ = {kNever, kNever};
};

}  // namespace tranche
