// What would be free, and where pods would be, if moves were carried out one after another: the
// working copy of defragmentation advice.
//
// A pod moves as kube-scheduler and we would place it again: off its devices, then to the tightest
// place on an open node of the same GPU model. What the placement rules choose on a node is taken
// as it is or not at all, since nobody can ask for another device when it is carried out. No move
// takes room that is as good as what it is to free. Deterministic; cost of a move: a few
// placements, found through an index of partly used GPUs, idle GPUs and MIG layouts.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/advice/case.h"

namespace tranche {

// Cards of one node, a bit each.
using CardSet = uint64_t;
static_assert(kMaxCards <= 64);
inline constexpr CardSet OneCard(std::size_t card) { return CardSet{1} << card; }

// What is to become free.
struct DefragSlice {
  int profile = 0;  // index into the board's profiles
  int start = 0;    // first memory unit
};
struct DefragTarget {
  std::size_t node = 0;
  CardSet cards = 0;                 // to be idle; of a slice the card it is on
  std::optional<DefragSlice> slice;  // nullopt: whole GPUs
};

// Thousandths of GPUs that the pod uses where it is.
int64_t MilliOf(const AdvicePod& pod, const Inventory& inventory);

// Takes the pod off its node: the inverse of DefragBooks::Add.
void RemoveFrom(Load& load, const Inventory& inventory, const AdvicePod& pod);

class DefragBooks {
 public:
  // `room_sizes`: numbers of GPUs on one node that somebody wants together. `fleet` outlives it.
  DefragBooks(const AdviceCase& fleet, std::vector<int> room_sizes);

  const AdviceNode& node(std::size_t at) const { return fleet_.nodes[at]; }
  const Load& load(std::size_t at) const { return loads_[at]; }
  // The pods of a node before any move: [first, last) of AdviceCase::pods.
  std::pair<std::size_t, std::size_t> pods_of(std::size_t node) const {
    return {first_pod_[node], first_pod_[node + 1]};
  }
  bool moved(std::size_t pod) const { return moved_[pod] != 0; }

  // Cards new pods may get, MIG ones aside: none of a node that is closed or partly unknown.
  CardSet usable(std::size_t node) const { return usable_[node]; }
  // Of these, those nobody uses; those in use with compute left.
  CardSet Idle(std::size_t node) const { return IdleIn(node, loads_[node]); }
  CardSet IdleIn(std::size_t node, const Load& load) const;  // if that were its load
  CardSet PartlyUsed(std::size_t node) const;
  // Already promised by an entry.
  CardSet promised(std::size_t node) const { return promised_[node]; }

  // The node takes pods and has the CPU for this one.
  bool MayHost(std::size_t node, const PodRequest& request) const;
  static void Add(Load& load, const Inventory& inventory, const PodRequest& request,
                  const Picks& picks);
  // What is left on a node without these pods of its own.
  Load LoadWithout(std::size_t node, std::span<const std::size_t> pods) const;

  // Takes the pod off and puts it where it would go; the node it went to, nullopt where there is
  // none (then Undo). `target` stays clear of it.
  std::optional<std::size_t> Move(std::size_t pod, const DefragTarget& target);
  // Idle GPUs that the moves since the last Keep or Undo have taken.
  int64_t taken() const { return taken_; }
  // The node's load before them.
  const Load& LoadBefore(std::size_t node) const;
  // Makes the moves final; nobody will be put on those cards of the node any more.
  void Keep(std::size_t node, CardSet promised);
  void Undo();

  // Placements tried so far, of all moves: what the whole advice costs.
  int64_t trials() const { return trials_; }

 private:
  // Ways through the index, tightest first.
  struct Hole {  // a partly used GPU
    int product = 0;
    int64_t free = 0;  // thousandths, the scarcer of compute and memory
    std::size_t node = 0;
    std::size_t card = 0;
    friend auto operator<=>(const Hole&, const Hole&) = default;
  };
  struct Room {  // a node's idle GPUs
    int product = 0;
    int idle = 0;
    std::size_t node = 0;
    friend auto operator<=>(const Room&, const Room&) = default;
  };
  struct LayoutKey {  // planned cards that are alike
    int product = 0;
    int free_units = 0;
    LayoutId layout = kEmptyLayout;
    friend auto operator<=>(const LayoutKey&, const LayoutKey&) = default;
  };

  // Puts the node's entries into the index, or takes them out.
  enum class Entries : uint8_t { kAdd, kRemove };
  void WithEntries(std::size_t node, Entries change);
  void Touch(std::size_t node);
  bool TryHoles(std::size_t pod, const CardNeed& need, const DefragTarget& target);
  bool TryRooms(std::size_t pod, const DefragTarget& target);
  bool TryLayouts(std::size_t pod, const DefragTarget& target);
  bool TryNode(std::size_t pod, std::size_t node, const DefragTarget& target);
  bool MayTake(const AdvicePod& mover, std::size_t node, const DefragTarget& target,
               int64_t& taken) const;
  bool KeepsSlices(std::size_t node, const Load& after, const DefragTarget& target) const;

  const AdviceCase& fleet_;
  const std::vector<int> room_sizes_;
  std::vector<Load> loads_;
  std::vector<MilliCpu> cpu_free_;
  std::vector<std::size_t> first_pod_;
  std::vector<char> moved_;
  std::vector<CardSet> usable_;
  std::vector<CardSet> promised_;
  // Cards of equal number are of one product and, if planned, of one board.
  std::map<std::pair<std::string, const MigSpace*>, int> products_;
  std::vector<std::vector<int>> card_products_;  // node -> card -> product
  std::set<Hole> holes_;
  std::set<Room> rooms_;
  std::map<LayoutKey, std::set<std::pair<std::size_t, std::size_t>>> layouts_;

  // Since the last Keep or Undo.
  struct Touched {
    std::size_t node = 0;
    Load load;
    MilliCpu cpu_free;
  };
  std::vector<Touched> touched_;
  std::vector<std::size_t> moves_;
  int64_t taken_ = 0;

  int64_t trials_ = 0;
  // Of the move under way.
  int tries_left_ = 0;
  bool whole_ = false;  // it needs whole GPUs
  std::size_t moved_to_ = 0;
  Placer placer_;
  Picks picks_;
};

}  // namespace tranche
