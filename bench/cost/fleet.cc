#include "bench/cost/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

namespace tranche::bench::cost {

int64_t Fleet::idle_milli(const Node& node) const {
  return std::accumulate(node.free.begin(), node.free.end(), int64_t{0});
}

bool Fleet::Bears(const Task& task, const Offer& offer) const {
  if (offer.capacity == CapacityType::kSpot && !task.interruptible) return false;
  if (task.models.empty()) return true;
  std::string model = offer.model;
  std::ranges::transform(model, model.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return ("," + task.models + ",").find("," + model + ",") != std::string::npos;
}

bool Fleet::FitsEmpty(const Pod& pod, const Offer& offer) const {
  return Bears((*tasks)[static_cast<std::size_t>(pod.task)], offer) && offer.gpus >= pod.gpus &&
         offer.cpu >= pod.cpu;
}

bool Fleet::Fits(const Pod& pod, int id) const {
  const Node& at = node(id);
  if (at.gone || at.cpu < pod.cpu) return false;
  if (!Bears((*tasks)[static_cast<std::size_t>(pod.task)], offer(at))) return false;
  return std::ranges::count_if(at.free, [&](int16_t free) { return free >= pod.milli; }) >=
         pod.gpus;
}

Seat Fleet::SeatOn(const Pod& pod, int id) const {
  const Node& at = node(id);
  Seat seat{id, 0};
  if (pod.milli < kWholeMilli) {
    int tightest = -1;
    for (int card = 0; card < kMostCards; ++card) {
      const int16_t free = at.free[static_cast<std::size_t>(card)];
      const bool tighter = tightest < 0 || free < at.free[static_cast<std::size_t>(tightest)];
      if (free >= pod.milli && tighter) tightest = card;
    }
    seat.cards = uint32_t{1} << tightest;
    return seat;
  }
  for (int card = 0; card < kMostCards && std::popcount(seat.cards) < pod.gpus; ++card) {
    if (at.free[static_cast<std::size_t>(card)] == kWholeMilli) seat.cards |= uint32_t{1} << card;
  }
  return seat;
}

absl::Status Fleet::Take(const Pod& pod, const Seat& seat) {
  Node& at = nodes[static_cast<std::size_t>(seat.node)];
  bool stands = Fits(pod, seat.node) && std::popcount(seat.cards) == pod.gpus;
  for (int card = 0; card < kMostCards; ++card) {
    if ((seat.cards >> card & 1) == 0) continue;
    stands = stands && at.free[static_cast<std::size_t>(card)] >= pod.milli;
  }
  if (!stands) {
    return absl::InternalError(fmt::format("expected room for task {}.{} on node {}, found none",
                                           pod.task, pod.number, seat.node));
  }
  for (int card = 0; card < kMostCards; ++card) {
    if ((seat.cards >> card & 1) == 0) continue;
    int16_t& free = at.free[static_cast<std::size_t>(card)];
    free = static_cast<int16_t>(free - pod.milli);
  }
  at.cpu -= pod.cpu;
  at.tasks.insert(pod.task);
  return absl::OkStatus();
}

void Fleet::GiveBack(const Pod& pod, const Seat& seat) {
  Node& at = nodes[static_cast<std::size_t>(seat.node)];
  for (int card = 0; card < kMostCards; ++card) {
    if ((seat.cards >> card & 1) == 0) continue;
    int16_t& free = at.free[static_cast<std::size_t>(card)];
    free = static_cast<int16_t>(free + pod.milli);
  }
  at.cpu += pod.cpu;
}

}  // namespace tranche::bench::cost
