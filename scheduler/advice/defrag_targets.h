// What could be freed on a node, and which pods would have to go for it.
//
// Three kinds: a partly used GPU; room for several GPUs together that somebody waits for or is
// expected to want; room for a large MIG profile on a planned card. Whether the pods find a place
// elsewhere is not looked at here. Cost: microseconds a target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/advice/defrag_books.h"
#include "scheduler/advice/defragment.h"

namespace tranche {

// Several whole GPUs of one node that a pod wants together.
struct RoomDemand {
  int gpus = 0;
  std::vector<std::string> models;  // empty: any
  int64_t missing = 0;              // how many more such rooms there should be
};
// Waiting and recorded demand, most GPUs first, at most eight kinds, as if there were no room yet.
std::vector<RoomDemand> RoomDemands(const AdviceCase& fleet);

struct DefragCandidate {
  enum class Kind : uint8_t { kGpu, kRoom, kSlice };
  Kind kind = Kind::kGpu;
  std::size_t node = 0;
  std::size_t card = 0;  // kGpu, kSlice; kRoom: index of the demand
  int profile = -1;      // kSlice
  // As far as known: at most this is freed, for at least this.
  int64_t freed_milli = 0;
  int64_t lost_gpu_ms = 0;
  std::size_t moves = 0;
};
// True: `left` frees more for what is lost; then fewer moves, node, card.
bool IsBetter(const DefragCandidate& left, const DefragCandidate& right);

class DefragTargets {
 public:
  // All of these outlive it.
  DefragTargets(const AdviceCase& fleet, const DefragBooks& books,
                const std::vector<RoomDemand>& demands, const DefragLimits& limits)
      : fleet_(fleet), books_(books), demands_(demands), limits_(limits) {}

  struct Plan {
    DefragTarget target;
    std::vector<std::size_t> movers;  // largest first
    int64_t freed_milli = 0;          // if all find a place and take no idle GPU for it
    int64_t lost_gpu_ms = 0;
  };
  // Everything that could be freed on the node as it is now, unvalued.
  void List(std::size_t node, std::vector<DefragCandidate>& out) const;
  // nullopt: cannot be freed, or is not worth freeing (any more).
  std::optional<Plan> Build(const DefragCandidate& candidate) const;

  // Why a pod has to stay; empty: it may move.
  std::string WhyFixed(std::size_t pod) const;
  // Pods that use a card of the set, moved ones left out.
  std::vector<std::size_t> PodsOn(std::size_t node, CardSet cards) const;
  // Cards of the node a pod of this room demand may have.
  CardSet Matching(std::size_t node, const RoomDemand& demand) const;

 private:
  std::optional<Plan> BuildGpu(const DefragCandidate& candidate) const;
  std::optional<Plan> BuildRoom(const DefragCandidate& candidate) const;
  std::optional<Plan> BuildSlice(const DefragCandidate& candidate) const;
  std::optional<DefragSlice> SliceFreedBy(const DefragCandidate& candidate, int start,
                                          std::vector<std::size_t>& movers) const;
  bool AllMove(const std::vector<std::size_t>& pods) const;
  CardSet FreedBy(std::size_t node, const std::vector<std::size_t>& movers) const;
  int64_t Lost(const std::vector<std::size_t>& pods) const;
  Plan Finish(Plan plan) const;

  const AdviceCase& fleet_;
  const DefragBooks& books_;
  const std::vector<RoomDemand>& demands_;
  const DefragLimits limits_;
};

}  // namespace tranche
