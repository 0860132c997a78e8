#include "topology/machine/packing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "topology/base/check.h"
#include "topology/machine/ring_table.h"

namespace tranche {
namespace {

constexpr int kLargest = 8;
constexpr int kLargestBut = 4;  // the next smaller
constexpr std::array<int, 4> kSizes = {8, 4, 3, 2};

// A packing of one group of this size, without its links; 0: groups of this size do not count.
uint64_t GroupOf(int size) {
  switch (size) {
    case 8:
      return uint64_t{1} << 32;
    case 4:
      return uint64_t{1} << kBelowQuads;
    case 3:
      return uint64_t{1} << 22;
    case 2:
      return uint64_t{1} << 16;
    default:
      return 0;
  }
}

std::vector<GpuSet> Linked(const Machine& machine) {
  std::vector<GpuSet> linked(static_cast<std::size_t>(machine.size()));
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < machine.size(); ++right) {
      if (machine.link(left, right).nvlinks > 0) linked[static_cast<std::size_t>(left)].Add(right);
    }
  }
  return linked;
}

// No packing of `count` GPUs is better: all of it in the largest groups, with `strongest` links.
uint64_t Bound(int count, int strongest) {
  uint64_t bound = 0;
  for (const int size : kSizes) {
    for (; count >= size; count -= size) {
      bound += GroupOf(size) + static_cast<uint64_t>(size * (size - 1) / 2 * strongest);
    }
  }
  return bound;
}

int Strongest(const Machine& machine) {
  int strongest = 0;
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < left; ++right) {
      strongest = std::max<int>(strongest, machine.link(left, right).nvlinks);
    }
  }
  return strongest;
}

// Of every set: what is best without its lowest GPU, or with any group that GPU can be in.
class PackingSearch {
 public:
  explicit PackingSearch(const Machine& machine)
      : machine_(machine), linked_(Linked(machine)), best_(std::size_t{1} << machine.size()) {
    const int strongest = Strongest(machine);
    for (uint64_t bits = 1; bits < best_.size(); ++bits) {
      GpuSet rest = GpuSet::Of(bits);
      bound_ = Bound(rest.size(), strongest);
      const int lowest = rest.first();
      rest.Remove(lowest);
      found_ = best_[rest.bits()];
      group_[0] = lowest;
      Grow(rest, rest & LinkedTo(lowest), 1, 0);
      best_[bits] = found_;
    }
  }
  std::vector<uint64_t> Take() { return std::move(best_); }

 private:
  GpuSet LinkedTo(int gpu) const { return linked_[static_cast<std::size_t>(gpu)]; }

  // Adds each of `mates` to the group of `size`; `rest` is what the group leaves.
  void Grow(GpuSet rest, GpuSet mates, int size, uint64_t links) {
    while (!mates.empty() && found_ < bound_) {
      const int gpu = mates.first();
      mates.Remove(gpu);
      uint64_t grown = links;
      for (int i = 0; i < size; ++i) {
        grown += machine_.link(group_[static_cast<std::size_t>(i)], gpu).nvlinks;
      }
      GpuSet left = rest;
      left.Remove(gpu);
      if (const uint64_t group = GroupOf(size + 1); group != 0) {
        found_ = std::max(found_, group + grown + best_[left.bits()]);
      }
      const GpuSet next = mates & LinkedTo(gpu);
      const int wanted = size + 1 < kLargestBut ? 1 : kLargest - size - 1;
      if (wanted == 0 || next.size() < wanted) continue;
      group_[static_cast<std::size_t>(size)] = gpu;
      Grow(left, next, size + 1, grown);
    }
  }

  const Machine& machine_;
  std::vector<GpuSet> linked_;
  std::vector<uint64_t> best_;
  uint64_t bound_ = 0;  // of the set at hand
  uint64_t found_ = 0;
  std::array<int, kLargest> group_ = {};
};

}  // namespace

uint64_t Pack(const Packing& packing) {
  return GroupOf(8) * static_cast<uint64_t>(packing.octets) +
         GroupOf(4) * static_cast<uint64_t>(packing.quads) +
         GroupOf(3) * static_cast<uint64_t>(packing.triples) +
         GroupOf(2) * static_cast<uint64_t>(packing.pairs) + static_cast<uint64_t>(packing.links);
}

Packing UnpackPacking(uint64_t packed) {
  const auto field = [&](int shift, int width) {
    return static_cast<int>(packed >> shift & ((uint64_t{1} << width) - 1));
  };
  return {.octets = field(32, 4),
          .quads = field(kBelowQuads, 5),
          .triples = field(22, 5),
          .pairs = field(16, 6),
          .links = field(0, 16)};
}

std::vector<uint64_t> PackingTable(const Machine& machine) {
  TRANCHE_CHECK_LE(machine.size(), kMostTabledGpus);
  return PackingSearch(machine).Take();
}

Packing GreedyPacking(const Machine& machine, GpuSet set) {
  const std::vector<GpuSet> linked = Linked(machine);
  uint64_t packed = 0;
  for (const int size : kSizes) {
    GpuSet seeds = set;
    while (!seeds.empty()) {
      GpuSet group;
      uint64_t links = 0;
      int next = seeds.first();
      GpuSet mates = set;
      while (next >= 0 && group.size() < size) {
        for (const int member : group) links += machine.link(member, next).nvlinks;
        group.Add(next);
        mates = mates & linked[static_cast<std::size_t>(next)];
        next = mates.empty() ? -1 : mates.first();
      }
      if (group.size() == size) {
        packed += GroupOf(size) + links;
        set = set - group;
        seeds = seeds - group;
      } else {
        seeds.Remove(seeds.first());
      }
    }
  }
  return UnpackPacking(packed);
}

}  // namespace tranche
