// The node's device register: text up to HAMi 2.7.1, JSON from 2.8 on.
// Source: request-dialects section 4.2.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "scheduler/wire/field_reader.h"
#include "scheduler/wire/hami.h"
#include "scheduler/wire/text_fields.h"

namespace tranche::wire {
namespace {

constexpr int kTextMinor = 4;
constexpr int kJsonMinor = 9;
constexpr int kMigProfilesMinor = 10;
constexpr std::size_t kMaxDevices = 64;
constexpr int64_t kMaxIndex = 63;
constexpr int64_t kMaxSlots = 1'000'000;
constexpr int64_t kMaxCores = 100'000;  // HAMi scales cores beyond 100
constexpr int64_t kMaxNuma = 1023;
constexpr int64_t kMaxMigUnits = 63;
constexpr std::string_view kDefaultMode = "hami-core";

// Reads the fields of one text entry in order; the first error stays.
class TextEntry {
 public:
  TextEntry(std::string_view text, std::size_t position)
      : fields_(SplitList(text)), position_(position) {}

  std::size_t size() const { return fields_.size(); }

  int64_t Integer(std::size_t field, std::string_view name, IntegerRange range) {
    const std::optional<int64_t> value = ParsePlainInteger(fields_[field]);
    if (value && *value >= range.low && *value <= range.high) return *value;
    Fail(fmt::format("whole number from {} to {}", range.low, range.high), fields_[field], name);
    return range.low;
  }
  std::string Text(std::size_t field, std::string_view name) {
    if (fields_[field].empty()) Fail("text", fields_[field], name);
    return std::string(fields_[field]);
  }
  bool Bool(std::size_t field, std::string_view name) {
    if (fields_[field] != "true" && fields_[field] != "false") {
      Fail("true or false", fields_[field], name);
    }
    return fields_[field] == "true";
  }
  void Fail(std::string_view expected, std::string_view found, std::string_view name) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(fmt::format("expected {}, found {}, in {} of device {}",
                                                     expected, Quoted(found), name, position_));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::vector<std::string_view> fields_;
  std::size_t position_;
  absl::Status status_;
};

// "<uuid>,<slots>,<MiB>,<cores>,<type>,<numa>,<health>[,<index>,<mode>]"
absl::StatusOr<HamiDevice> ReadTextDevice(std::string_view text, std::size_t position) {
  TextEntry entry(text, position);
  if (entry.size() != 7 && entry.size() != 9) {
    entry.Fail("7 or 9 fields", text, "the fields");
    return entry.status();
  }
  HamiDevice device;
  device.uuid = GpuUuid(entry.Text(0, "uuid"));
  device.slots = static_cast<int>(entry.Integer(1, "count", {0, kMaxSlots}));
  device.memory = Mebibytes::Of(entry.Integer(2, "devmem", {0, INT32_MAX}));
  device.cores_percent = static_cast<int>(entry.Integer(3, "devcore", {0, kMaxCores}));
  device.type = entry.Text(4, "type");
  device.numa = static_cast<int>(entry.Integer(5, "numa", {-1, kMaxNuma}));
  device.healthy = entry.Bool(6, "health");
  // The short form has no index; devices are listed in the driver's order.
  device.index = static_cast<int>(position);
  device.mode = kDefaultMode;
  if (entry.size() == 9) {
    device.index = static_cast<int>(entry.Integer(7, "index", {0, kMaxIndex}));
    device.mode = entry.Text(8, "mode");
  }
  if (!entry.status().ok()) return entry.status();
  return device;
}

absl::StatusOr<HamiRegister> ReadText(std::string_view text) {
  HamiRegister found;
  found.minor = kTextMinor;
  while (const std::optional<std::string_view> entry = TakeUntil(text, ':')) {
    absl::StatusOr<HamiDevice> device = ReadTextDevice(*entry, found.devices.size());
    if (!device.ok()) return device.status();
    found.devices.push_back(*std::move(device));
    if (found.devices.size() > kMaxDevices) break;
  }
  if (!text.empty() && found.devices.size() <= kMaxDevices) {
    return absl::InvalidArgumentError(
        fmt::format("expected \":\" behind every device, found {}, behind device {}", Quoted(text),
                    found.devices.size()));
  }
  return found;
}

HamiMigProfile ReadProfile(Object object, std::string_view where, FieldReader& reader) {
  HamiMigProfile profile;
  profile.name = reader.ReadText(object, "name", where);
  if (profile.name.empty()) reader.Fail(fmt::format("expected a name, found none, in {}", where));
  profile.memory =
      Mebibytes::Of(reader.ReadInteger(object, "memoryMB", where, {0, INT32_MAX}).value_or(0));
  profile.cores_percent =
      static_cast<int>(reader.ReadInteger(object, "core", where, {0, kMaxCores}).value_or(0));
  const std::optional<Array> placements = reader.ReadArray(object, "placements", where);
  if (!placements) return profile;
  for (const Element element : *placements) {
    const std::optional<Object> placement = reader.AsObject(element, where);
    if (!placement) break;
    const auto read = [&](std::string_view key) {
      return static_cast<int>(
          reader.ReadInteger(*placement, key, where, {0, kMaxMigUnits}).value_or(0));
    };
    profile.placements.emplace_back(read("start"), read("size"));
  }
  return profile;
}

// Go leaves out zero values, so an absent member is zero, "" or false.
HamiDevice ReadJsonDevice(Object object, const std::string& where, FieldReader& reader) {
  const auto read = [&](std::string_view key, IntegerRange range) {
    return reader.ReadInteger(object, key, where, range).value_or(0);
  };
  HamiDevice device;
  device.uuid = GpuUuid(reader.ReadText(object, "id", where));
  if (device.uuid.empty()) reader.Fail(fmt::format("expected a uuid, found none, in {}.id", where));
  device.index = static_cast<int>(read("index", {0, kMaxIndex}));
  device.slots = static_cast<int>(read("count", {0, kMaxSlots}));
  device.memory = Mebibytes::Of(read("devmem", {0, INT32_MAX}));
  device.cores_percent = static_cast<int>(read("devcore", {0, kMaxCores}));
  device.type = reader.ReadText(object, "type", where);
  device.numa = static_cast<int>(read("numa", {-1, kMaxNuma}));
  const std::string_view mode = reader.ReadText(object, "mode", where);
  device.mode = mode.empty() ? kDefaultMode : mode;
  device.healthy = reader.ReadBool(object, "health", where).value_or(false);
  if (const std::optional<Array> profiles = reader.ReadArray(object, "migProfiles", where)) {
    const std::string profile_where = where + ".migProfiles";
    for (const Element element : *profiles) {
      const std::optional<Object> profile = reader.AsObject(element, profile_where);
      if (!profile) break;
      device.mig_profiles.push_back(ReadProfile(*profile, profile_where, reader));
    }
  }
  return device;
}

absl::StatusOr<HamiRegister> ReadJson(std::string_view text) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(text, false);
  if (!document.ok()) return document.status();
  Array devices;
  if (document->get(devices) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("expected array, found {}, in the register", DescribeElement(*document)));
  }
  FieldReader reader;
  HamiRegister found;
  found.minor = kJsonMinor;
  for (const Element element : devices) {
    if (found.devices.size() > kMaxDevices || !reader.ok()) break;
    const std::string where = fmt::format("device {}", found.devices.size());
    const std::optional<Object> object = reader.AsObject(element, where);
    if (!object) break;
    found.devices.push_back(ReadJsonDevice(*object, where, reader));
    if (Find(*object, "migProfiles")) found.minor = kMigProfilesMinor;
  }
  if (!reader.ok()) return reader.status();
  return found;
}

// Every device is one card: a second one of the same index or uuid would be counted twice.
absl::Status CheckDistinct(const std::vector<HamiDevice>& devices) {
  if (devices.size() > kMaxDevices) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} devices, found more, in the register", kMaxDevices));
  }
  std::set<std::string_view> uuids;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (i > 0 && devices[i].index == devices[i - 1].index) {
      return absl::InvalidArgumentError(fmt::format(
          "expected one device of index {}, found {} and {}, in the register", devices[i].index,
          Quoted(devices[i - 1].uuid.str()), Quoted(devices[i].uuid.str())));
    }
    if (!uuids.insert(devices[i].uuid.str()).second) {
      return absl::InvalidArgumentError(
          fmt::format("expected distinct uuids, found {} twice, in the register",
                      Quoted(devices[i].uuid.str())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HamiRegister> ParseHamiRegister(std::string_view text) {
  text = Trimmed(text);
  absl::StatusOr<HamiRegister> found = text.starts_with('[') ? ReadJson(text) : ReadText(text);
  if (!found.ok()) return found;
  std::stable_sort(
      found->devices.begin(), found->devices.end(),
      [](const HamiDevice& left, const HamiDevice& right) { return left.index < right.index; });
  if (absl::Status distinct = CheckDistinct(found->devices); !distinct.ok()) return distinct;
  return found;
}

}  // namespace tranche::wire
