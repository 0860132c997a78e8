// Does a request fit a node, and on which of its devices?
//
// Exact for every request whose asks are of one size; a pod with several shares of different sizes,
// or with several MIG instances on a node of planned layouts, is searched depth first within a step
// bound. Deterministic: equal inputs give equal devices.
// Source of the rules: request-dialects 4.5, node-inventory 3, kube-client-protocol 18.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/spec.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "topology/machine/machine_table.h"
#include "topology/mig_space.h"

namespace tranche {

// One device taken for one unit of one ask.
struct Pick {
  int ask = 0;
  int card = 0;
  int pool = -1;  // >= 0: instance `slot` of that pool
  int slot = 0;
  MilliGpu milli;
  Mebibytes memory;
  int exclusive = 0;
  MigPlace place = {};  // cut cards: of the instance
};
// Example, two halves and a whole card: picks {ask 0, card 2, 500}, {ask 0, card 3, 500},
// {ask 1, card 5, 1000}.
using Picks = std::vector<Pick>;

// What each layout of a board is worth, by LayoutId; empty: not known yet. A placement is worth the
// layout after it less the one before.
using LayoutValueMap = std::map<const MigSpace*, std::vector<int32_t>>;

struct PlaceRules {
  const GpuPolicy* policy = nullptr;
  CardChoice choice = CardChoice::kTightest;
  int preferred_card = -1;  // tried first where one card is asked for; -1: none
  // How the pod's class may share, in order of preference; null or empty: any way.
  const std::vector<SharingMode>* sharing = nullptr;
  // Planned layouts: the place of the highest gain is taken; null, or no values for the board: the
  // fullest card, there the start that leaves the most later placements.
  const LayoutValueMap* layout_values = nullptr;
};

// How an ask would share a card of this node: whole cards are exclusive, MIG instances of one user
// MIG, replicas and shares MPS where its server divides the card, else time-sliced.
SharingMode ModeOf(const Inventory& inventory, const Ask& ask, const Card& card);
std::string_view SharingModeName(SharingMode mode);  // "Exclusive", "MIG", "MPS", "TimeSliced"
// Where that mode stands in a list like PlaceRules::sharing, 0 the most wanted; nullopt: not in it.
std::optional<int> PreferenceOf(const Inventory& inventory, const Ask& ask, const Card& card,
                                const std::vector<SharingMode>* sharing);

// The whole cards a pod's long-running containers use together.
struct CardQuestion {
  GpuSet free;                // with room for what it asks of one
  int count = 0;              // 0: it asks for none, or init containers alone do
  bool one_container = true;  // asks for all of them
};

class Placer {
 public:
  // kNone and the picks in ask order; otherwise the most fundamental reason, picks undefined.
  // Cost: O(asks x cards) typically; at most 20,000 steps.
  Reason Place(const Inventory& inventory, const Load& load, const PodRequest& request,
               const PlaceRules& rules, Picks& picks);
  // Of the last Place that answered kNone: the set its whole cards are; nullopt: none were asked
  // for together, or nobody says how the node's cards are connected.
  const std::optional<SetChoice>& cards() const { return cards_; }
  // The set question that Place asks for this request; for explain.
  static CardQuestion CardQuestionOf(const Inventory& inventory, const Load& load,
                                     const PodRequest& request, const PlaceRules& rules);
  // Same, ignoring room: puts the pod somewhere even if that over-uses a device. For pods whose
  // devices are unknown. Asks the node has no device for stay without a pick.
  void Force(const Inventory& inventory, const Load& load, const PodRequest& request, Picks& picks);

 private:
  struct Query;
  Reason PlacePlanned(const Inventory& inventory, const Load& load, const PodRequest& request,
                      const PlaceRules& rules, Picks& picks);
  static bool IsConnected(const Query& query, const Ask& ask);
  static const Ask* AlignedAsk(const Query& query);
  static CardQuestion QuestionOf(const Query& query);
  Reason ChooseSet(Query& query);
  bool KeepsRules(const Query& query) const;
  bool PlaceAsk(Query& query, std::size_t position);
  bool PickCards(Query& query, std::size_t position, int unit, std::size_t from,
                 const std::vector<int>& order);
  bool PickReplicas(Query& query, std::size_t position, const Ask& ask);
  bool PickInstances(Query& query, std::size_t position, const Ask& ask, int pool);

  std::optional<SetChoice> cards_;
  std::vector<std::size_t> ask_order_;
  std::vector<std::vector<int>> card_order_;  // per ask position
  int steps_left_ = 0;
};

// The part of a card's memory a share asks for, in thousandths; nullopt: it names an amount.
std::optional<int64_t> PartOfCard(const MemoryNeed& memory);

// What one unit of `ask` takes of `card`. A kGpu or kGpuShared ask takes the node's unit. On a
// replicated card a pod that declares no memory takes a replica's part of it: nothing isolates the
// pods there, so the parts must add up to no more than the card. On a cut card a share takes the
// smallest instance that holds it.
struct CardNeed {
  MilliGpu milli;
  Mebibytes memory;
  int exclusive = 0;
  const CutProfile* instance = nullptr;  // cut cards: what it will be, of card.cut
  bool fits = true;                      // on the card if nobody else were there
};
CardNeed NeedOn(const Inventory& inventory, const Ask& ask, const Card& card);

// The context of a container takes memory beside what it asks for where that is an amount: a part
// of a card, or a replica of it, is a part of everything on it, and who is alone needs no room for
// others.
inline bool TakesBeside(const Ask& ask) {
  const bool amount =
      ask.memory.kind == MemoryNeed::Kind::kMib || ask.memory.kind == MemoryNeed::Kind::kAgentUnits;
  return ask.resource == Resource::kShare && amount && !ask.exclusive;
}

// What the policy says of sharing one card of this node, the node's own rules before it.
struct CardLimits {
  int64_t users = 0;      // 0: no limit
  Mebibytes beside = {};  // of each user whose context takes memory beside what it asks for
};
CardLimits LimitsOf(const GpuPolicy& policy, const Inventory& inventory);

// The pool that serves `ask` on this node; -1: cards serve it.
int PoolFor(const Inventory& inventory, const Ask& ask);

// Planned layouts: what the layouts of the cards are worth with the picks less what they are worth
// now. 0 where there are no planned layouts, or no values for the board.
int64_t LayoutGain(const Inventory& inventory, const Load& load, const Picks& picks,
                   const LayoutValueMap& values);

PodUse UseOf(const PodRequest& request, const Picks& picks);
Allocation ToAllocation(const Inventory& inventory, const PodRequest& request, const Picks& picks);
// The picks an allocation record stands for. nullopt when the record does not describe devices of
// this node that answer this request (hazard 57: forged, copied or stale); `problem` then says
// what was expected and found. Amounts are the larger of record and request.
std::optional<Picks> FromAllocation(const Inventory& inventory, const PodRequest& request,
                                    const Allocation& allocation, std::string& problem);

// A pod's devices, and the asks that they answer one by one.
struct HeldDevices {
  PodRequest request;  // the pod's, with those asks
  Picks picks;
};
// Could the wishes of a pod be edited while it runs? True of those that annotations tell, and of
// those that cannot be read; what its containers ask of the kubelet stays as it is.
bool MayBeEdited(const PodRequest& request);
// What a record stands for whatever the pod asks now. nullopt where it names no devices, or some
// that the node does not have, or fewer than the kubelet gave; `problem` as above.
std::optional<HeldDevices> FromRecordAlone(const Inventory& inventory, const PodRequest& request,
                                           const Allocation& allocation, std::string& problem);
// Adds the devices another record names, of those that are the node's and not in `held` yet. False
// where one of them cannot be told; `problem` as above.
bool AddNamed(const Inventory& inventory, const Allocation& named, HeldDevices& held,
              std::string& problem);
// The request of a pod whose wishes cannot be read: whole units, as many as the kubelet gave.
PodRequest WholeUnits(const PodRequest& request);

}  // namespace tranche
