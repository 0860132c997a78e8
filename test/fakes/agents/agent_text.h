// Reading what schedulers write for agents: small parsers that refuse instead of guessing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"

namespace tranche::fakes {

// Parts between the separators; n separators make n + 1 parts.
std::vector<std::string> SplitText(const std::string& text, char separator);
// Digits only, fits 64 bits; nullopt otherwise, also for an empty text.
std::optional<uint64_t> ReadNumber(const std::string& text);
// "0,2" -> {0, 2}; nullopt: empty, or a part is no card of the node.
std::optional<std::vector<int>> ReadCards(const std::string& text, const FakeNode& node);

// One device of the list HAMi and its relatives use: "<uuid>,<type>,<MiB>,<core percent>".
struct ListedDevice {
  std::string uuid;
  std::string type;
  int64_t memory_mib = 0;
  int64_t cores = 0;
  friend bool operator==(const ListedDevice&, const ListedDevice&) = default;
};
using DeviceList = std::vector<std::vector<ListedDevice>>;  // by container

// `closed`: every container ends with ';' (HAMi); else ';' stands between them (Volcano). Every
// device ends with ':'. nullopt: not this grammar.
std::optional<DeviceList> ReadDeviceList(const std::string& text, bool closed);
std::string WriteDeviceList(const DeviceList& list, bool closed);
// "GPU-a[1-0]" -> "GPU-a": without the MIG instance.
std::string PlainUuid(const std::string& uuid);

// The place of the n-th container the agent's list counts; -1: the pod has none.
// `with_init` false: app containers only.
int ContainerPlace(const FakePod& pod, std::size_t n, bool with_init);

}  // namespace tranche::fakes
