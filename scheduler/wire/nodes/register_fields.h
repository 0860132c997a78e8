// What device registers have in common: limits, the text form "<field>,<field>:<field>,<field>:",
// units of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/agent.h"
#include "scheduler/wire/json/field_reader.h"
#include "topology/base/status.h"
#include "topology/base/units.h"

namespace tranche::wire {

inline constexpr std::size_t kMaxRegisterDevices = 64;
inline constexpr int64_t kMaxRegisterIndex = 63;
inline constexpr int64_t kMaxRegisterSlots = 1'000'000;
inline constexpr int64_t kMaxRegisterCores = 100'000;  // agents scale cores beyond 100
inline constexpr int64_t kMaxRegisterNuma = 1023;

// Reads the fields of one device in order; the first error stays.
class DeviceFields {
 public:
  DeviceFields(std::string_view text, std::size_t position);

  std::size_t size() const { return fields_.size(); }

  int64_t Integer(std::size_t field, std::string_view name, IntegerRange range);
  std::string Text(std::size_t field, std::string_view name);
  bool Bool(std::size_t field, std::string_view name);
  void Fail(std::string_view expected, std::string_view found, std::string_view name);
  const absl::Status& status() const { return status_; }

 private:
  std::vector<std::string_view> fields_;
  std::size_t position_;
  absl::Status status_;
};

// Every device of `text`, each ended by ":", by `read(text, position)`.
template <typename Read>
absl::StatusOr<std::vector<AgentDevice>> ReadDeviceList(std::string_view text, Read read);

// Sorts by index. Every device is one card: a second one of the same index or uuid would be counted
// twice, and is an error, as are too many.
absl::Status OrderDevices(std::vector<AgentDevice>& devices);

// The size of a plugin's unit of memory, which it does not publish, by which a card of
// `card_memory` has `units`: the plugin divides the one by the unit and drops the rest. Without
// `card_memory` 1 MiB, or 1 GiB where that would make the card smaller than any is (1024 MiB).
Mebibytes UnitOf(int64_t units, std::optional<Mebibytes> card_memory);

// ---- template -----------------------------------------------------------------------------------

absl::Status MissingEnd(std::string_view rest, std::size_t devices);
std::optional<std::string_view> TakeDevice(std::string_view& text);

template <typename Read>
absl::StatusOr<std::vector<AgentDevice>> ReadDeviceList(std::string_view text, Read read) {
  std::vector<AgentDevice> devices;
  while (const std::optional<std::string_view> entry = TakeDevice(text)) {
    TRANCHE_ASSIGN_OR_RETURN(AgentDevice device, read(*entry, devices.size()));
    devices.push_back(std::move(device));
    if (devices.size() > kMaxRegisterDevices) return devices;
  }
  if (!text.empty()) return MissingEnd(text, devices.size());
  return devices;
}

}  // namespace tranche::wire
