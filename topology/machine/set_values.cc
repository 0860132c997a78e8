#include "topology/machine/set_values.h"

#include <algorithm>

#include "topology/base/check.h"
#include "topology/machine/ring.h"
#include "topology/machine/ring_table.h"

namespace tranche {
namespace {

constexpr int kFarthest = static_cast<int>(PathClass::kBoard);

// Writes and reads bit fields from the most important down; a field holds its largest value for
// kMaxMachineGpus GPUs of kMaxNvlinks links each.
class Fields {
 public:
  explicit Fields(uint64_t packed = 0) : packed_(packed) {}
  template <typename T>
  void Push(T value, int width) {
    const auto field = static_cast<uint64_t>(value);
    TRANCHE_CHECK_EQ(field >> width, 0);
    packed_ = packed_ << width | field;
  }
  // The last pushed first.
  int64_t Pop(int width) {
    const uint64_t value = packed_ & ((uint64_t{1} << width) - 1);
    packed_ >>= width;
    return static_cast<int64_t>(value);
  }
  uint64_t packed() const { return packed_; }

 private:
  uint64_t packed_;
};

constexpr int kLinkBits = 16;  // of sums over all pairs
constexpr int kNearnessBits = 14;
constexpr int kMostNicDistance = kMaxMachineGpus * kFarthest;

// How far the nearest fabric NIC is: 0 PIX to 4 SYS; 0 where the machine has none.
std::vector<int64_t> NicDistances(const Machine& machine) {
  std::vector<int64_t> distances;
  for (int gpu = 0; gpu < machine.size(); ++gpu) {
    const std::optional<PathClass> nearest = NearestNic(machine, gpu);
    distances.push_back(
        nearest ? std::max(0, static_cast<int>(PathClass::kPix) - static_cast<int>(*nearest)) : 0);
  }
  return distances;
}

// By GPU: the first GPU that is in the same NUMA node; unknown ones count as one node.
std::vector<int> NodesOf(const Machine& machine) {
  std::vector<int> nodes;
  for (int gpu = 0; gpu < machine.size(); ++gpu) {
    int first = 0;
    while (machine.gpu(first).numa != machine.gpu(gpu).numa) ++first;
    nodes.push_back(first);
  }
  return nodes;
}

}  // namespace

uint64_t Pack(const SetQuality& quality) {
  Fields fields;
  fields.Push(quality.connected, 1);
  fields.Push(quality.ring_links, 11);
  fields.Push(quality.links, kLinkBits);
  fields.Push(quality.ring_weakest, 5);
  fields.Push(quality.worst_path, 3);
  fields.Push(kMaxMachineGpus - quality.numa_nodes, 7);
  fields.Push(kMostNicDistance - quality.nic_distance, 9);
  return fields.packed();
}

SetQuality UnpackQuality(uint64_t packed) {
  Fields fields(packed);
  SetQuality quality;
  quality.nic_distance = kMostNicDistance - fields.Pop(9);
  quality.numa_nodes = kMaxMachineGpus - static_cast<int>(fields.Pop(7));
  quality.worst_path = static_cast<PathClass>(fields.Pop(3));
  quality.ring_weakest = static_cast<int>(fields.Pop(5));
  quality.links = fields.Pop(kLinkBits);
  quality.ring_links = fields.Pop(11);
  quality.connected = fields.Pop(1) != 0;
  return quality;
}

PathClass Nearness(const Machine& machine, int left, int right) {
  PathClass nearness = machine.link(left, right).path;
  if (machine.gpu(left).numa && machine.gpu(left).numa == machine.gpu(right).numa) {
    nearness = std::max(nearness, PathClass::kNode);
  }
  for (const MachineNic& nic : machine.nics()) {
    if (!nic.fabric) continue;
    nearness = std::max(nearness, std::min(nic.paths[static_cast<std::size_t>(left)],
                                           nic.paths[static_cast<std::size_t>(right)]));
  }
  return nearness;
}

std::optional<PathClass> NearestNic(const Machine& machine, int gpu) {
  std::optional<PathClass> nearest;
  for (const MachineNic& nic : machine.nics()) {
    if (!nic.fabric) continue;
    nearest = std::max(nearest, std::optional(nic.paths[static_cast<std::size_t>(gpu)]));
  }
  return nearest;
}

SetValues::SetValues(const Machine& machine)
    : machine_(machine), node_(NodesOf(machine)), nic_distance_(NicDistances(machine)) {
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < machine.size(); ++right) {
      nearness_.push_back(Nearness(machine, left, right));
    }
  }
  if (machine.size() <= kMostTabledGpus) MakeTables();
}

KeepValue SetValues::ToKeep(GpuSet free, GpuSet set) const {
  const uint64_t machine = PackedPacking(machine_.all() - set);
  const Bonds bonds = BondsOf(free - set);
  Fields first(machine >> kBelowQuads);
  first.Push(PackedPacking(free - set), kPackingBits);
  first.Push(bonds.links, kLinkBits);
  Fields second(machine);
  second.Push(bonds.nearness, kNearnessBits);
  second.Push(BondsOf(machine_.all() - set).nearness, kNearnessBits);
  return {first.packed(), second.packed()};
}

SetQuality SetValues::QualityButRing(GpuSet set) const {
  SetQuality quality;
  quality.connected = true;
  GpuSet nodes;
  for (const int gpu : set) {
    quality.nic_distance += nic_distance_[static_cast<std::size_t>(gpu)];
    nodes.Add(node_[static_cast<std::size_t>(gpu)]);
    for (const int other : set) {
      if (other >= gpu) break;
      const Link link = machine_.link(gpu, other);
      quality.links += link.nvlinks;
      if (link.nvlinks > 0) continue;
      quality.connected = false;
      quality.worst_path = std::min(quality.worst_path, link.path);
    }
  }
  quality.numa_nodes = nodes.size();
  return quality;
}

SetQuality SetValues::WorkOutQuality(GpuSet set) const {
  SetQuality quality = QualityButRing(set);
  const Ring ring = BestRing(machine_, set);
  quality.ring_weakest = ring.weakest;
  quality.ring_links = ring.links;
  return quality;
}

SetValues::Bonds SetValues::WorkOutBonds(GpuSet set) const {
  int links = 0;
  int nearness = 0;
  for (const int gpu : set) {
    for (const int other : set) {
      if (other >= gpu) break;
      links += machine_.link(gpu, other).nvlinks;
      nearness +=
          static_cast<int>(nearness_[static_cast<std::size_t>(gpu * machine_.size() + other)]);
    }
  }
  return {static_cast<uint16_t>(links), static_cast<uint16_t>(nearness)};
}

void SetValues::MakeTables() {
  packings_ = PackingTable(machine_);
  const std::vector<RingValue> rings = RingTable(machine_);
  take_.reserve(rings.size());
  bonds_.reserve(rings.size());
  for (uint64_t bits = 0; bits < rings.size(); ++bits) {
    SetQuality quality = QualityButRing(GpuSet::Of(bits));
    quality.ring_weakest = rings[bits].weakest;
    quality.ring_links = rings[bits].links;
    take_.push_back(Pack(quality));
    bonds_.push_back(WorkOutBonds(GpuSet::Of(bits)));
  }
}

}  // namespace tranche
