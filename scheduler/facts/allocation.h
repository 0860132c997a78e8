// The devices a pod holds, as written on the Binding (annotation tranche.dev/allocation).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// How much is known about which device inside the node a pod really got.
enum class Knowledge : uint8_t {
  kCounts,     // only how many: the device plugin chooses and tells nobody
  kPredicted,  // there is one legal choice, or the plugin's rule was replayed
  kExact,      // the node's agent obeys our choice
};
std::string_view KnowledgeName(Knowledge knowledge);  // "counts", "predicted", "exact"
std::optional<Knowledge> ParseKnowledge(std::string_view name);

// An epoch so far above the one that is known was never anybody's: leaders follow one by one.
inline constexpr int64_t kMostEpochsAhead = 1'000;

struct MigDevice {
  std::string profile;  // canonical, "1g.10gb+me"
  int start = 0;        // memory unit; a prediction where knowledge is counts
  int size = 0;
  friend bool operator==(const MigDevice&, const MigDevice&) = default;
};

struct Device {
  // The card of the node in our books, 0..n-1. Equals the index people see where knowledge is
  // exact or predicted; otherwise it is bookkeeping (JSON "slot") and "index" is null.
  int card = 0;
  GpuUuid uuid;  // empty: unknown
  MilliGpu milli;
  Mebibytes memory;
  std::optional<MigDevice> mig;
  // `card` is bookkeeping although the UUID is known: the card of a placeholder
  // (facts/placeholder.h).
  bool slot = false;
  friend bool operator==(const Device&, const Device&) = default;
};

struct ContainerDevices {
  std::string container;
  std::vector<Device> devices;
  friend bool operator==(const ContainerDevices&, const ContainerDevices&) = default;
};

struct Allocation {
  int64_t epoch = 0;
  std::string leaf;  // empty: no quota tree, nobody owns the namespace
  Knowledge knowledge = Knowledge::kCounts;
  std::vector<ContainerDevices> containers;  // only containers with devices, in pod order
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// Is every device that `named` tells one of `record`'s? By UUID, or by index where one has none.
bool NamesNoOther(const Allocation& record, const Allocation& named);

}  // namespace tranche
