// The machines that are rented, as the benchmark keeps them, and what a policy is asked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/cost/market.h"
#include "bench/cost/work.h"

namespace tranche::bench::cost {

inline constexpr int kMostCards = 16;

// One pod of a task.
struct Pod {
  int task = 0;
  int number = 0;  // within its task
  int gpus = 0;
  int64_t milli = kWholeMilli;
  int64_t cpu = 0;
  int round = 0;  // grows with every interruption
};

struct Seat {
  int node = -1;
  uint32_t cards = 0;  // bit i: GPU i
};

struct Node {
  int offer = 0;
  int64_t rented = 0;  // s; paid from here on
  int64_t ready = 0;
  bool gone = false;
  int64_t idle_since = 0;
  std::array<int16_t, kMostCards> free{};  // milli
  int64_t cpu = 0;                         // milli that are free
  std::set<int> tasks;                     // with pods here, or seats for them
};

// Everything a policy may look at.
struct Fleet {
  const std::vector<Offer>* offers = nullptr;
  const std::vector<Task>* tasks = nullptr;
  std::vector<Node> nodes;  // in the order they were rented; those that are gone too
  std::set<int> open;       // nodes that are there, or boot

  const Offer& offer(const Node& node) const {
    return (*offers)[static_cast<std::size_t>(node.offer)];
  }
  const Node& node(int id) const { return nodes[static_cast<std::size_t>(id)]; }
  int64_t idle_milli(const Node& node) const;
  // By hardware and by how it is paid for.
  bool Bears(const Task& task, const Offer& offer) const;
  bool Fits(const Pod& pod, int node) const;
  bool FitsEmpty(const Pod& pod, const Offer& offer) const;
  // The tightest GPU, or the first idle ones. Requires: Fits.
  Seat SeatOn(const Pod& pod, int node) const;
  // Error: Internal, what would be wrong.
  absl::Status Take(const Pod& pod, const Seat& seat);
  void GiveBack(const Pod& pod, const Seat& seat);
};

// Where a pod goes: to a machine that is rented, or to one that is rented for it.
class Policy {
 public:
  virtual ~Policy() = default;

  // nullopt: on none that is rented.
  virtual absl::StatusOr<std::optional<Seat>> Place(const Fleet& fleet, const Pod& pod,
                                                    int64_t now) = 0;
  // The offer to rent; nullopt: none would do.
  virtual absl::StatusOr<std::optional<int>> Rent(const Fleet& fleet, const Pod& pod,
                                                  int64_t now) = 0;
  virtual void Rented(const Fleet&, int /*node*/, int64_t /*now*/) {}
  virtual void Returned(int /*node*/, int64_t /*now*/) {}
  virtual void Left(const Pod&, int64_t /*now*/) {}
};

}  // namespace tranche::bench::cost
