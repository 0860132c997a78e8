#include "topology/machine/ring_table.h"

#include <algorithm>
#include <array>
#include <bit>

#include "topology/base/check.h"

namespace tranche {
namespace {

using Bits = uint32_t;

Bits Bit(int gpu) { return Bits{1} << gpu; }
int Lowest(Bits bits) { return std::countr_zero(bits); }

// Both passes look at ways that start at the lowest GPU of a set and visit all of it, by the GPU
// they end in; a way to an end comes from a way through the set without that end, which is a
// smaller number.

// Where ways over hops of at least `least` NVLinks can end, for every set.
class Reach {
 public:
  Reach(const Machine& machine, int least) : near_(), ends_(std::size_t{1} << machine.size()) {
    for (int left = 0; left < machine.size(); ++left) {
      for (int right = 0; right < machine.size(); ++right) {
        if (left != right && machine.link(left, right).nvlinks >= least) {
          near_[static_cast<std::size_t>(left)] |= Bit(right);
        }
      }
    }
    for (Bits set = 1; set < ends_.size(); ++set) {
      const Bits start = Bit(Lowest(set));
      if (set == start) ends_[set] = start;
      for (Bits rest = set & ~start; rest != 0; rest &= rest - 1) {
        if (Meets(set & ~Bit(Lowest(rest)), Lowest(rest))) ends_[set] |= Bit(Lowest(rest));
      }
    }
  }
  bool Closes(Bits set) const { return Meets(set, Lowest(set)); }

 private:
  bool Meets(Bits set, int gpu) const {
    return (ends_[set] & near_[static_cast<std::size_t>(gpu)]) != 0;
  }

  std::array<Bits, kMostTabledGpus> near_;
  std::vector<Bits> ends_;
};

// Most NVLinks of a way, for every set and end.
class MostLinks {
 public:
  explicit MostLinks(const Machine& machine)
      : size_(static_cast<std::size_t>(machine.size())),
        links_((std::size_t{1} << machine.size()) * size_) {
    for (int left = 0; left < machine.size(); ++left) {
      for (int right = 0; right < machine.size(); ++right) {
        hops_.push_back(machine.link(left, right).nvlinks);
      }
    }
    for (Bits set = 1; set < Bit(machine.size()); ++set) {
      for (Bits rest = set & (set - 1); rest != 0; rest &= rest - 1) {
        const Bits end = Bit(Lowest(rest));
        links_[set * size_ + static_cast<std::size_t>(Lowest(rest))] = To(set & ~end, end);
      }
    }
  }
  uint16_t Closed(Bits set) const { return To(set, Bit(Lowest(set))); }

 private:
  // Through `set`, then on to `gpu`. Of a set of one, the way ends where it starts.
  uint16_t To(Bits set, Bits gpu) const {
    const Bits ends = std::has_single_bit(set) ? set : set & (set - 1);
    const std::size_t row = static_cast<std::size_t>(Lowest(gpu)) * size_;
    int most = 0;
    for (Bits rest = ends; rest != 0; rest &= rest - 1) {
      const auto end = static_cast<std::size_t>(Lowest(rest));
      most = std::max<int>(most, links_[set * size_ + end] + hops_[row + end]);
    }
    return static_cast<uint16_t>(most);
  }

  std::size_t size_;
  std::vector<uint16_t> hops_;
  std::vector<uint16_t> links_;
};

// Numbers of NVLinks that occur between two GPUs, fewest first.
std::vector<int> Strengths(const Machine& machine) {
  std::array<bool, kMaxNvlinks + 1> occurs = {};
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < left; ++right) occurs[machine.link(left, right).nvlinks] = true;
  }
  std::vector<int> strengths;
  for (int links = 1; links <= kMaxNvlinks; ++links) {
    if (occurs[static_cast<std::size_t>(links)]) strengths.push_back(links);
  }
  return strengths;
}

}  // namespace

std::vector<RingValue> RingTable(const Machine& machine) {
  TRANCHE_CHECK_LE(machine.size(), kMostTabledGpus);
  const Bits sets = Bit(machine.size());
  std::vector<RingValue> rings(sets);
  const MostLinks most(machine);
  for (Bits set = 1; set < sets; ++set) {
    if (!std::has_single_bit(set)) rings[set].links = most.Closed(set);
  }
  for (const int least : Strengths(machine)) {
    const Reach reach(machine, least);
    for (Bits set = 1; set < sets; ++set) {
      if (!std::has_single_bit(set) && reach.Closes(set)) {
        rings[set].weakest = static_cast<uint8_t>(least);
      }
    }
  }
  return rings;
}

}  // namespace tranche
