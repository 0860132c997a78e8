// One node's books: its inventory and everything pods hold of it.
//
// The load is always recomputed from the holdings, never kept by adding and subtracting, so that
// it is a pure function of (facts, holdings) and a rebuild after a restart finds the same numbers.
// Cost of a change: O(holdings of the node), a few microseconds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/facts/allocation.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "topology/base/ids.h"

namespace tranche {

// kEarmark: devices kept for a pod whose victims leave; until they have, it lies over their
// holdings, so that the load may exceed what the card has.
enum class HoldingKind : uint8_t { kTentative, kEarmark, kReservation, kAllocation };

// kOpen: a card for those who follow it; without any it holds nothing and is about to go.
// kLingering: likewise, and there to stay for a while. kLeaving: the card is nobody's any more.
enum class PlaceholderRole : uint8_t { kNone, kOpen, kLingering, kLeaving };

struct Holding {
  PodUid uid;
  HoldingKind kind = HoldingKind::kAllocation;
  std::shared_ptr<const PodRequest> request;
  // The record as written or read; nullopt: nobody wrote one.
  std::optional<Allocation> allocation;
  // What else names devices of the pod, and says otherwise: they are busy as well.
  std::vector<Allocation> others = {};
  // Nothing is known of the pod but that it is here: all GPUs of the node are busy.
  bool unreadable = false;
  PlaceholderRole placeholder = PlaceholderRole::kNone;
  GpuUuid told;  // of a placeholder: the card it was given; empty: not known yet

  // Derived by NodeState: where the pod is in the books, and whether that is knowledge.
  bool known = false;
  bool told_by_probe = false;  // `picks` are what the node's probe says
  std::string problem;         // why not
  Picks picks;
  PodUse use;
  // What `picks` answer where that is not what the pod asks now: a record decides what a bound pod
  // holds. Null: `request`.
  std::shared_ptr<const PodRequest> by_record = nullptr;

  const PodRequest& held() const { return by_record ? *by_record : *request; }
};

class NodeState {
 public:
  // The node as the cluster describes it now; nullopt: it is gone, or not seen yet. Holdings stay.
  // `tables`: as in BuildInventory.
  void SetFacts(std::optional<NodeFacts> facts, int hami_minor, MachineTables* tables = nullptr);
  // Adds or replaces the holding of that pod.
  void Hold(Holding holding);
  // Of a placeholder that is held here; else nothing happens.
  void SetPlaceholderRole(const PodUid& uid, PlaceholderRole role);
  // Removes it; nothing happens when there is none.
  void Release(const PodUid& uid);
  // What pods without GPUs request of the node's CPU together.
  void SetPlainCpu(MilliCpu cpu);
  // Where zones are known: the GPUs of pods that the exporter may not show yet (zone_lag.h). Kept
  // until it is said anew.
  void SetUnshown(int64_t gpus);
  // Units of nvidia.com/gpu that kubelet has handed out, by the books.
  static int64_t BookedGpus(const Inventory& inventory, const Load& load);
  // Records of an epoch above this are not believed.
  void SetEpoch(int64_t epoch);
  // May cards be held by placeholders? Set before any facts.
  // Which rules the node has of its own; SetFacts follows.
  void SetRules(NodeRules rules) { rules_ = std::move(rules); }
  // Inventory::metered_pool; SetFacts follows.
  void SetMeteredPool(std::string pool) { metered_pool_ = std::move(pool); }
  void AllowPlaceholders(bool allowed) { placeholders_allowed_ = allowed; }
  // Making a placeholder failed here a moment ago, or no longer.
  void SetNoNewPlaceholder(bool none);

  bool present() const { return facts_.has_value(); }
  const NodeFacts& facts() const { return *facts_; }  // Requires: present()
  const Inventory& inventory() const { return inventory_; }
  // Allocations and reservations.
  const Load& hard() const { return hard_; }
  // Claims too.
  const Load& soft() const { return soft_; }
  bool has_tentative() const { return tentative_ > 0; }
  // Ascending pod UID.
  const std::vector<Holding>& holdings() const { return holdings_; }
  const Holding* Find(const PodUid& uid) const;
  // The load without the pods for which `without` is true.
  template <typename Predicate>
  Load LoadWithout(Predicate without) const {
    Load load;
    ResetLoad(load);
    for (const Holding& holding : holdings_) {
      if (holding.kind == HoldingKind::kTentative || without(holding.uid)) continue;
      AddHolding(holding, load);
    }
    AddPlaceholders(load);
    return load;
  }

  // The load of those holdings (tentative ones aside) whose position satisfies `keep`, into `load`.
  template <typename Predicate>
  void LoadWhere(Predicate keep, Load& load) const {
    ResetLoad(load);
    for (std::size_t i = 0; i < holdings_.size(); ++i) {
      if (holdings_[i].kind == HoldingKind::kTentative || !keep(i)) continue;
      AddHolding(holdings_[i], load);
    }
    AddPlaceholders(load);
  }
  // Adds a pod that would take these devices.
  void AddRequest(const PodRequest& request, const Picks& picks, Load& load) const;

  // Two nodes of equal signature give every request the same verdict and score. `load` is hard()
  // or soft(). UUIDs and the order of cards are left out: requests that select cards by UUID are
  // evaluated node by node. Written into `out`.
  void Signature(const Load& load, std::string& out) const;

  // Free CPU of the node with that load in whole steps of capacity / kCpuSteps, rounded down: what
  // decisions look at, so that nodes which hardly differ are in one state. Zero capacity: not said.
  static constexpr int64_t kCpuSteps = 64;
  MilliCpu cpu_capacity() const;
  MilliCpu CpuFree(const Load& load) const;

 private:
  void ResetLoad(Load& load) const {
    load.Reset(inventory_);
    load.cpu = plain_cpu_;
    load.unshown = unshown_;
    load.booked = booked_;
    load.no_new_placeholder = no_new_placeholder_;
  }
  void Recompute();
  void AddHolding(const Holding& holding, Load& load) const;
  void AddKeys(const PodRequest& request, Load& load) const;
  // What placeholders hold, after those who follow them: a card that somebody of `load` follows on,
  // with the unit of nvidia.com/gpu that its placeholder takes or will take; and what those take
  // that leave.
  void AddPlaceholders(Load& load) const;
  // The holding's record with the cards that its UUIDs stand for now.
  Allocation Located(const Holding& holding) const;
  void Resolve(Holding& holding) const;
  // By the request where it fits the record, else by the record alone; false: neither.
  bool FollowRecord(Holding& holding) const;
  // Where the node's probe says which cards the pod has, that is where it is.
  void FollowProbe(Holding& holding) const;

  std::optional<NodeFacts> facts_;
  Inventory inventory_;
  std::vector<Holding> holdings_;
  Load hard_;
  Load soft_;
  int tentative_ = 0;
  int64_t epoch_ = 1;
  bool placeholders_allowed_ = false;
  NodeRules rules_;
  std::string metered_pool_;
  bool no_new_placeholder_ = false;
  MilliCpu plain_cpu_;
  int64_t unshown_ = 0;
  int64_t booked_ = 0;  // when that was said
  std::string static_signature_;
  bool uniform_cards_ = true;  // all of one product and mode
  Placer placer_;
};

}  // namespace tranche
