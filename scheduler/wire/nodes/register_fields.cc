#include "scheduler/wire/nodes/register_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"

namespace tranche::wire {

DeviceFields::DeviceFields(std::string_view text, std::size_t position)
    : fields_(SplitList(text)), position_(position) {}

int64_t DeviceFields::Integer(std::size_t field, std::string_view name, IntegerRange range) {
  const std::optional<int64_t> value = ParsePlainInteger(fields_[field]);
  if (value && *value >= range.low && *value <= range.high) return *value;
  Fail(fmt::format("whole number from {} to {}", range.low, range.high), fields_[field], name);
  return range.low;
}

std::string DeviceFields::Text(std::size_t field, std::string_view name) {
  if (fields_[field].empty()) Fail("text", fields_[field], name);
  return std::string(fields_[field]);
}

bool DeviceFields::Bool(std::size_t field, std::string_view name) {
  if (fields_[field] != "true" && fields_[field] != "false") {
    Fail("true or false", fields_[field], name);
  }
  return fields_[field] == "true";
}

void DeviceFields::Fail(std::string_view expected, std::string_view found, std::string_view name) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(fmt::format("expected {}, found {}, in {} of device {}",
                                                   expected, Quoted(found), name, position_));
}

absl::Status MissingEnd(std::string_view rest, std::size_t devices) {
  return absl::InvalidArgumentError(fmt::format(
      "expected \":\" behind every device, found {}, behind device {}", Quoted(rest), devices));
}

std::optional<std::string_view> TakeDevice(std::string_view& text) { return TakeUntil(text, ':'); }

absl::Status OrderDevices(std::vector<AgentDevice>& devices) {
  if (devices.size() > kMaxRegisterDevices) {
    return absl::InvalidArgumentError(fmt::format(
        "expected at most {} devices, found more, in the register", kMaxRegisterDevices));
  }
  std::stable_sort(
      devices.begin(), devices.end(),
      [](const AgentDevice& left, const AgentDevice& right) { return left.index < right.index; });
  std::set<std::string_view> uuids;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (i > 0 && devices[i].index == devices[i - 1].index) {
      return absl::InvalidArgumentError(fmt::format(
          "expected one device of index {}, found {} and {}, in the register", devices[i].index,
          Quoted(devices[i - 1].uuid.str()), Quoted(devices[i].uuid.str())));
    }
    // Agents that go by index name no uuid.
    if (!devices[i].uuid.empty() && !uuids.insert(devices[i].uuid.str()).second) {
      return absl::InvalidArgumentError(
          fmt::format("expected distinct uuids, found {} twice, in the register",
                      Quoted(devices[i].uuid.str())));
    }
  }
  return absl::OkStatus();
}

Mebibytes UnitOf(int64_t units, std::optional<Mebibytes> card_memory) {
  constexpr int64_t kLeastMibOfCard = 1024;
  constexpr int64_t kMibOfGib = 1024;
  constexpr std::array<int64_t, 6> kUsual = {1, kMibOfGib, 1000, 256, 100, 10};
  if (units < 1) return Mebibytes::Of(1);
  if (!card_memory) return Mebibytes::Of(units >= kLeastMibOfCard ? 1 : kMibOfGib);
  const int64_t mib = card_memory->count();
  for (const int64_t unit : kUsual) {
    if (mib / unit == units) return Mebibytes::Of(unit);
  }
  // Another factor, or memory that is scaled up.
  return Mebibytes::Of(std::max<int64_t>((mib + units / 2) / units, 1));
}

}  // namespace tranche::wire
