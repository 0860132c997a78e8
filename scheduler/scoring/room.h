// What is left of one node, in the form that decides what still fits: which card has how much does
// not matter, only how much the cards have.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/scoring/kinds.h"
#include "topology/base/units.h"

namespace tranche {

// Steps of a node's CPU that are distinguished, rounded down.
inline constexpr int64_t kRoomCpuSteps = 64;

struct Room {
  // The words that tell rooms apart: kind, CPU step, free milli of each card not cut into
  // instances (ascending), free replicas of each pool as far as there is place.
  static constexpr std::size_t kHead = 2;
  std::array<uint16_t, kHead + kMaxCards> words{};
  uint8_t cards = 0;
  uint8_t pools = 0;
  uint8_t idle = 0;   // cards nobody uses
  int64_t cpu = 0;    // milli, exact, not below 0
  int64_t milli = 0;  // free, of cards and pools

  KindId kind() const { return KindId{words[0]}; }
  std::span<const uint16_t> key() const { return std::span(words).first(kHead + cards + pools); }
  std::span<const uint16_t> card_milli() const { return std::span(words).subspan(kHead, cards); }
  std::span<const uint16_t> pool_replicas() const {
    return std::span(words).subspan(kHead + cards, pools);
  }
  friend bool operator==(const Room&, const Room&) = default;
};

// CPU of one step on a node that has so much; zero: CPU binds nothing.
inline int64_t CpuStep(MilliCpu capacity) { return capacity.count() / kRoomCpuSteps; }

// `id` is the inventory's kind among `kinds`. Cards of planned MIG layouts and their pools are left
// out.
Room RoomOf(const NodeKinds& kinds, KindId id, const Inventory& inventory, const Load& load,
            MilliCpu cpu_free);

// Milli of the card that more pods could use: the scarcer of compute and memory counts.
int64_t FreeMilli(const Card& card, const CardLoad& load);

}  // namespace tranche
