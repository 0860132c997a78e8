// Lives on in a replica: pods that wait are asked about, bound and run, work ends, victims go, as
// kube-scheduler, the kubelets and the reclaimer would have it, on a time of its own.
//
// Pods are tried in kube-scheduler's order (priority, then age), on nodes that their selectors,
// required node affinity and tolerations allow; CPU, volumes and affinity between pods are not
// seen. One that was refused is tried
// again where something changed that could let it in, and pods of its kind with it: equal in
// namespace, priority class, shape and gang. What was refused for want of room is tried on the
// nodes alone that have more of it since.
//
// Deterministic; no clock. Thread rule: as of an engine. Cost: for each start and each end some
// tens of microseconds, for each kind of waiting pod a filter call on the nodes that changed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/replica_walk.h"
#include "scheduler/facts/metering.h"
#include "scheduler/foresight/allowed_nodes.h"

namespace tranche {

// Something that happened to a pod.
struct Rehearsed {
  enum class What : uint8_t { kStart, kEnd, kEvicted };
  What what = What::kStart;
  Instant at;
  const PodCopy& pod;  // on its node
};

struct RehearsalRules {
  // When a pod that runs will have ended; nullopt: nobody knows. Null: nothing ends by itself.
  std::function<std::optional<Instant>(const PodCopy& pod)> end_of = nullptr;
  // Evicted pods of controllers come back and wait, under another uid (OriginOf).
  bool evicted_return = true;
  // Goes on although nobody waits any more who was told of.
  bool to_the_end = false;
  // Hears of starts and ends as they happen; of one that is evicted, of that and of its end. Null:
  // nobody does.
  std::function<void(const Rehearsed& news)> heard = nullptr;
  // Hears what the engine would tell a ledger. Null: nobody does.
  std::function<void(const MeterEvent& event)> metered = nullptr;
  // Asked now and then; false: it gives up. Null: it may.
  std::function<bool()> may_go_on = nullptr;
  // Then it gives up: filter calls, rounds of planning, moments at which something happens.
  int64_t most_tries = 100'000;
  int64_t most_plans = 256;
  int64_t most_moments = 100'000;
};

// The pod that came back as this one; of any other its own uid.
PodUid OriginOf(const PodUid& uid);

class Rehearsal {
 public:
  // `engine` is a replica of `copy`, edited or not. Both outlive this.
  Rehearsal(Engine& engine, const ClusterCopy& copy, RehearsalRules rules);
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  // The node has come or gone; pods of one that is gone are lost.
  void NodeCame(const NodeFacts& node);
  void NodeWent(const NodeName& node);
  // Time has passed, and nothing happened.
  void Pass(Instant now) { now_ = std::max(now_, now); }
  // The pod, which waits, will be created then. kForeseen: others like it have come so far; when it
  // starts is nobody's question.
  enum class Arrival : uint8_t { kTold, kForeseen };
  void Arrive(PodCopy pod, Instant at, Arrival arrival);
  // The pod, which is there or comes then, is taken away at that moment.
  void Leave(const PodUid& uid, Instant at);
  // What the engine was told changes what is refused.
  void PoliciesChanged() { WakeAll(); }
  // Goes on until all who were told of have started, nothing is to happen any more, or `until`.
  void Run(Instant until);

  const std::map<PodUid, Instant>& starts() const { return starts_; }
  // Those that were evicted or lost their node; ascending uid.
  const std::map<PodUid, PodName>& evicted() const { return evicted_; }
  // Of those that wait still: why.
  std::map<PodUid, Reason> Waiting() const;
  bool gave_up() const { return gave_up_; }
  int64_t tries() const { return tries_; }  // filter calls
  Instant now() const { return now_; }

 private:
  // Rounds of starts, plans and effects at one moment.
  static constexpr int kMostRounds = 64;

  struct Kind;
  struct Entry {
    PodCopy pod;
    Kind* kind = nullptr;  // of one that waits
    bool beside = false;   // it came back, or is foreseen: nobody asks when it starts
  };
  // Lower comes first: kube-scheduler's queue.
  using Order = std::tuple<int64_t, Instant, PodUid>;
  enum class What : uint8_t { kEnd, kGone, kComes };
  struct Happening {
    Instant at;
    PodUid uid;
    What what = What::kEnd;
    friend auto operator<=>(const Happening&, const Happening&) = default;
  };

  // Pods that wait and are answered alike.
  struct Kind {
    std::map<Order, Entry*> waiting;
    std::shared_ptr<const NodeConstraints> constraints;
    std::size_t allowed = 0;  // the place of its list of nodes
    // The last refusal of its first pod, and how many nodes had been freed by then.
    bool refused = false;
    Reason reason = Reason::kNone;
    std::size_t seen = 0;
    bool wants_room() const { return WantsRoom(reason); }
  };
  // Nothing but devices that others give back can help.
  static bool WantsRoom(Reason reason) {
    return reason >= Reason::kUnknownNode && reason <= Reason::kNoRoom;
  }

  static Order OrderOf(const PodCopy& pod);
  std::string KeyOf(const PodCopy& pod, std::size_t allowed) const;
  static bool MayStart(const PodCopy& pod);
  void Queue(Entry& entry);
  void Unqueue(Entry& entry);
  void FollowEnd(const Entry& entry);
  void Free(const NodeName& node);
  // False: nothing happens, as the pod was evicted meanwhile.
  bool Happen(const Happening& happening);
  void Lose(Entry& entry);
  void ComeBack(const PodCopy& pod);
  // Starts those who can be, and has room made for others.
  void Settle();
  bool StartThose();  // true: one started, or what is refused may have changed
  void TryKind(Kind& kind);
  void TryAlone(Entry& entry, const NodeName& node);
  Reason Ask(Kind& kind, const Entry& entry);
  Reason Filter(const Entry& entry, const std::vector<std::string_view>& nodes);
  bool Start(Entry& entry, const std::vector<std::string_view>& nodes);
  bool Plan();
  void TakeEffects();
  void Evict(const EvictionOrder& order);
  EvictionOutcome Disrupt(const PodFacts& pod);
  void TendPlaceholders(AgentWork work);
  void WakeRefused();
  void WakeAll();
  void Tell(Rehearsed::What what, const Entry& entry) const;
  bool Spent();

  Engine& engine_;
  const RehearsalRules rules_;
  Instant now_;
  AllowedNodes allowed_;
  std::map<PodUid, Entry> pods_;
  std::map<PodUid, std::pair<PodCopy, Arrival>> arriving_;
  int64_t told_waiting_ = 0;  // that are queued, or are to come
  std::map<std::string, std::unique_ptr<Kind>> kinds_;
  std::set<std::pair<Order, Kind*>> ready_;  // kinds to be tried, by their first pod
  // Pods to be tried by themselves, and where; empty: anywhere.
  std::deque<std::pair<PodUid, NodeName>> urgent_;
  std::vector<std::size_t> freed_;         // numbers of nodes that got more room, in order
  std::vector<std::size_t> fresh_;         // scratch: of those, since the kind at hand was refused
  std::vector<std::string_view> changed_;  // scratch: nodes the pod at hand is asked about
  const std::vector<std::string_view>* asked_ = nullptr;
  std::set<Happening> coming_;
  std::vector<DisruptionBudget> disruption_budgets_;
  std::map<PodUid, Allocation> turns_;
  std::map<PodUid, Instant> starts_;
  std::map<PodUid, PodName> evicted_;
  FilterAnswer answer_;
  int64_t tries_ = 0;
  int64_t plans_ = 0;
  int64_t begun_ = 0;  // starts of anybody
  int64_t serial_ = 0;
  bool by_runtime_ = false;  // declared runtimes tell kinds apart
  bool gave_up_ = false;
};

}  // namespace tranche
