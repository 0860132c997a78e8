// The cluster as the engine knows it: nodes with what is held there, pods, quota's books, and what
// teams declare. The parts to the right of it read it and change it through what is here.
//
// After any change of what is held on a node, Refresh brings everything that follows from it up to
// date. Externally synchronised; ids of nodes are good until the node is gone and nothing is held
// there. Cost: a hash look-up a call; Refresh lays a signature of the node.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/policy_set.h"
#include "quota/quota_book.h"
#include "scheduler/dra/catalog.h"
#include "scheduler/engine/placeholders/placeholders.h"
#include "scheduler/engine/state/agent_queues.h"
#include "scheduler/engine/state/asking_schedulers.h"
#include "scheduler/engine/state/node_overlay.h"
#include "scheduler/engine/state/node_prices.h"
#include "scheduler/engine/state/options.h"
#include "scheduler/engine/state/outbox.h"
#include "scheduler/engine/state/plain_pods.h"
#include "scheduler/engine/state/recent_pods.h"
#include "scheduler/engine/state/records.h"
#include "scheduler/index/charge_of.h"
#include "scheduler/index/node_names.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/state_table.h"
#include "scheduler/scoring/score.h"
#include "topology/machine/machine_table.h"

namespace tranche {

// What the hot loop reads of a node, packed.
struct NodeHot {
  StateId hard = kNoState;
  StateId soft = kNoState;
  Reason closed = Reason::kUnknownNode;
  CapacityType capacity = CapacityType::kOnDemand;
  PriceGroup price_group = 0;
  ChargeKind kind;
};

// Until when a node is paid for anyway; kept where there are prices.
struct NodePay {
  Instant until;  // the last of its work ends, by its own word; the epoch: some of it says nothing
  int64_t milli = 0;  // milli-GPU of the whole node
};

// The node with that load, as the scorer looks at it.
inline NodeRoom RoomOf(const NodeState& state, const Load& load) {
  return {&state.inventory(), &load, state.cpu_capacity(), state.CpuFree(load)};
}

class ClusterState {
 public:
  explicit ClusterState(const EngineOptions& engine_options)
      : options(engine_options),
        schedulers(engine_options.scheduler),
        epoch(engine_options.epoch),
        placeholders(engine_options.placeholder_times, engine_options.epoch),
        names(engine_options.name_seed),
        agents(engine_options.agent_patience) {}

  // Grows with every change that a plan may depend on; raised here and nowhere else.
  uint64_t version() const { return version_; }
  void NoteChange() { ++version_; }
  // Everything is as it was at that version.
  void RestoreVersion(uint64_t version) { version_ = version; }

  // ---- nodes
  NodeId InternNode(const NodeName& name);
  // State ids and closed reason after any change.
  void Refresh(NodeId id, Instant now);
  // Nodes refreshed since the last call, each once.
  std::vector<NodeId> TakeRefreshed();
  // A kubelet refused a GPU pod: after several, the node is closed for a while.
  void NoteRefusal(const NodeName& node, Instant now);
  // Pods without GPUs on the node request more or less than before.
  void NotePlainCpu(const NodeName& node, Instant now);
  // Nodes of equal kind charge a request the same.
  ChargeKind KindOf(const Inventory& inventory);
  void CountCards(const NodeEntry& entry, int sign);

  // ---- pods
  PodRecord* Find(const PodUid& uid);
  PodRecord& Touch(const PodRequest& request);
  // Requires: the pod is known.
  void ErasePod(const PodUid& uid);
  // The tentative placement of the pod's last filter ends.
  void DropTentative(const PodUid& uid, PodRecord& record, Instant now);
  void NotePending(const PodUid& uid, const PodRecord& record) {
    if (record.seen && IsPending(record)) {
      pending.insert(uid);
    } else {
      pending.erase(uid);
    }
  }
  static bool IsPending(const PodRecord& record) {
    return !record.terminal && record.node.empty() && record.reserved.empty() &&
           record.request->asks_gpu();
  }
  bool IsPlain(const PodUid& uid) const { return plain.Has(uid) || plain_seen.Has(uid); }
  // What the pod will hold, without its charge.
  HeldWork WorkOf(const PodRequest& request, const QuotaMembership& membership,
                  Instant since) const;
  const GpuPolicy& default_policy() const { return policies.back(); }

  const EngineOptions options;
  AskingSchedulers schedulers;
  int64_t epoch;  // of what is written; see EngineOptions
  Outbox outbox;
  Placeholders placeholders;
  Instant latest;                 // the newest time any call came with
  bool cluster_complete = false;  // the first complete set of pods is in

  std::shared_ptr<const PolicySet> set = std::make_shared<const PolicySet>();
  std::vector<GpuPolicy> policies = {GpuPolicy()};  // in order of precedence; the last for all
  QuotaBook book;

  NodeNames names;
  std::vector<std::unique_ptr<NodeEntry>> nodes;  // by NodeId
  std::vector<NodeHot> hot;                       // by NodeId
  std::vector<NodePay> pays;                      // by NodeId
  StateTable states{4096};
  Scorer scorer;
  std::multimap<Instant, NodeId> reopenings;
  int64_t ill_nodes = 0;          // those with a GPU in NodeEntry::ill
  int64_t emptied_nodes = 0;      // those with NodeEntry::emptying
  int64_t interrupted_nodes = 0;  // those with NodeEntry::interruption
  int64_t windows = 0;            // nodes whose pool has maintenance to come; kept by NotePool
  NodePrices prices;
  std::unordered_map<std::string, ChargeKind> kinds;
  std::map<std::string, int64_t> capacity;  // quanta of GPU-equivalents by model
  // Those of metered pools by line_name.h, by model and as kAnyModel.
  std::map<std::string, int64_t> pool_capacity;
  uint64_t inventories = 1;  // grows whenever a node comes, goes or changes
  MachineTables machines;
  NodeOverlay overlay;
  dra::Catalog catalog;
  AgentQueues agents;

  std::unordered_map<PodUid, PodRecord> pods;  // looked up, never iterated for an answer
  std::set<std::pair<PodName, PodUid>> pods_by_name;
  std::set<PodUid> pending;  // GPU pods the cluster shows that wait for a node
  // The few that a plan asks about beside those it may evict: being terminated, and publishing
  // checkpoints.
  std::set<PodUid> terminating;
  std::set<PodUid> checkpointing;
  std::set<std::pair<Instant, PodUid>> reservations;
  // Pods with an earmark that is taken out for a question and comes back after it (ScopedRemoval),
  // unless it is dropped or replaced meanwhile.
  std::set<PodUid> lifted;
  // Gangs whose size is told and that have not started, by key: the ones anything is to be done
  // for. Kept by gangs/gangs.h.
  std::set<std::string> open_gangs;
  // Tentative placements by their end, ascending; they order answers and refuse nothing.
  std::deque<std::tuple<Instant, PodUid, uint64_t>> tentative_ends;
  uint64_t tentative_serial = 0;
  int64_t tentative_placements = 0;
  PlainPodBooks plain_seen;  // pods without GPUs the cluster shows us
  RecentPods plain{10'000};  // those only filter saw; a bind may follow
  // GPU pods that were deleted: kube-scheduler may hear of that later than we, and go on asking.
  RecentPods gone{20'000};
  RecentPods marked{10'000};  // pods without GPUs and node on which a user wrote a record

 private:
  NodePay PayOf(const NodeState& state, Instant now) const;
  Reason ClosedReason(const NodeEntry& entry, Instant now) const;
  // What its exporter may not show, after any change of what is held there.
  void FollowZones(NodeId id, Instant now);
  void TendPlaceholders(NodeId id, Instant now);

  uint64_t version_ = 1;
  std::vector<bool> refreshed_;  // by NodeId
  std::vector<NodeId> refreshed_ids_;
  std::string text_;  // scratch, kept between calls so that nothing is allocated
};

// At a start: goes on from the highest believable epoch that the pods on nodes were given.
void GoOnFromEpochs(ClusterState& cluster, Instant now);

// What the pod holds on the node, as its record says; nullopt: nothing that is known.
std::optional<Allocation> AllocationOn(const ClusterState& cluster, const NodeName& node,
                                       const PodUid& uid);

// Is one of the models the request asks for on a node, or in the catalogue? True of one that asks
// for none. Cost: O(models of the cluster and the catalogue).
bool KnowsModelOf(const ClusterState& cluster, const PodRequest& request);

// Why the pod waits: our own last answer, else that a kube-scheduler which asks us had no node to
// ask about.
inline Reason WaitsBecause(const ClusterState& cluster, const PodRecord& record) {
  const bool told = record.last_reason == Reason::kNone && record.traits.unschedulable &&
                    cluster.schedulers.Asks(record.request->scheduler);
  return told ? Reason::kNoNodeOffered : record.last_reason;
}

}  // namespace tranche
