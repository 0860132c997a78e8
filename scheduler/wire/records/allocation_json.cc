#include "scheduler/wire/records/allocation_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMaxCard = 63;
constexpr std::size_t kMaxDevices = 64;
constexpr int64_t kMaxMib = int64_t{1} << 31;
constexpr int64_t kMostEpoch = INT32_MAX;  // as a lease counts them
constexpr std::size_t kLongestLeaf = 253;

// The name of an object, as the API allows them: nothing else reaches people's terminals.
bool IsObjectName(std::string_view text) {
  return text.size() <= kLongestLeaf && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

void AppendDevice(std::string& out, const Device& device, Knowledge knowledge) {
  if (knowledge == Knowledge::kCounts) {
    fmt::format_to(std::back_inserter(out), "{{\"index\":null,\"slot\":{},\"uuid\":null",
                   device.card);
  } else {
    fmt::format_to(std::back_inserter(out), "{{{}{},\"uuid\":",
                   device.slot ? "\"index\":null,\"slot\":" : "\"index\":", device.card);
    if (device.uuid.empty()) {
      out += "null";
    } else {
      AppendQuoted(out, device.uuid.str());
    }
  }
  fmt::format_to(std::back_inserter(out), ",\"milli\":{},\"mib\":{},\"mig\":", device.milli.count(),
                 device.memory.count());
  if (device.mig) {
    out += "{\"profile\":";
    AppendQuoted(out, device.mig->profile);
    fmt::format_to(std::back_inserter(out), ",\"start\":{},\"size\":{}}}", device.mig->start,
                   device.mig->size);
  } else {
    out += "null";
  }
  out += '}';
}

// Reads one annotation; the path of the device at hand is part of every error.
class AllocationReader {
 public:
  absl::StatusOr<Allocation> Read(Element document) {
    const std::optional<Object> object = reader_.AsObject(document, "allocation");
    if (!object) return reader_.status();
    Required(*object, "v", "allocation", {kVersion, kVersion});
    allocation_.epoch = Required(*object, "epoch", "allocation", {0, kMostEpoch});
    // It only says what was: one that cannot be a leaf is left out.
    const std::string_view leaf = reader_.ReadText(*object, "leaf", "allocation");
    if (IsObjectName(leaf)) allocation_.leaf = leaf;
    const std::string_view name = reader_.ReadText(*object, "knowledge", "allocation");
    const std::optional<Knowledge> knowledge = ParseKnowledge(name);
    if (knowledge) {
      allocation_.knowledge = *knowledge;
    } else {
      reader_.Fail(
          fmt::format("expected counts, predicted or exact, found {}, in "
                      "allocation.knowledge",
                      Quoted(name)));
    }
    const std::optional<Array> containers = reader_.ReadArray(*object, "containers", "allocation");
    if (!containers) reader_.Fail("expected array, found nothing, in allocation.containers");
    if (!reader_.ok()) return reader_.status();
    for (const Element container : *containers) ReadContainer(container);
    if (!reader_.ok()) return reader_.status();
    return std::move(allocation_);
  }

 private:
  int64_t Required(Object parent, std::string_view key, std::string_view where,
                   IntegerRange range) {
    const std::optional<int64_t> value = reader_.ReadInteger(parent, key, where, range);
    if (value) return *value;
    reader_.Fail(fmt::format("expected whole number, found nothing, in {}.{}", where, key));
    return range.low;
  }

  void ReadContainer(Element element) {
    const std::optional<Object> object = reader_.AsObject(element, "allocation.containers");
    if (!object) return;
    ContainerDevices container;
    container.container = reader_.ReadText(*object, "name", "allocation.containers");
    if (container.container.empty()) {
      reader_.Fail("expected a name, found none, in allocation.containers.name");
    }
    const std::optional<Array> devices =
        reader_.ReadArray(*object, "devices", "allocation.containers");
    if (!devices) return;
    const std::string where = fmt::format("devices of container {}", Quoted(container.container));
    for (const Element device : *devices) {
      if (container.devices.size() == kMaxDevices) {
        reader_.Fail(
            fmt::format("expected at most {} devices, found more, in {}", kMaxDevices, where));
      }
      if (!reader_.ok()) return;
      container.devices.push_back(ReadDevice(device, where));
    }
    if (!container.devices.empty()) allocation_.containers.push_back(std::move(container));
  }

  Device ReadDevice(Element element, std::string_view where) {
    Device device;
    const std::optional<Object> object = reader_.AsObject(element, where);
    if (!object) return device;
    const bool counts = allocation_.knowledge == Knowledge::kCounts;
    device.slot = !counts && Find(*object, "slot").has_value();
    const bool by_slot = counts || device.slot;
    device.card =
        static_cast<int>(Required(*object, by_slot ? "slot" : "index", where, {0, kMaxCard}));
    if (!counts) device.uuid = GpuUuid(reader_.ReadText(*object, "uuid", where));
    device.milli = MilliGpu::Of(Required(*object, "milli", where, {0, kWholeGpu.count()}));
    device.memory = Mebibytes::Of(Required(*object, "mib", where, {0, kMaxMib}));
    if (const std::optional<Object> mig = reader_.ReadObject(*object, "mig", where)) {
      MigDevice instance;
      instance.profile = reader_.ReadText(*mig, "profile", where);
      if (instance.profile.empty()) {
        reader_.Fail(fmt::format("expected a MIG profile, found none, in {}", where));
      }
      instance.start = static_cast<int>(Required(*mig, "start", where, {0, kMaxCard}));
      instance.size = static_cast<int>(Required(*mig, "size", where, {0, kMaxCard}));
      device.mig = std::move(instance);
    }
    return device;
  }

  FieldReader reader_;
  Allocation allocation_;
};

}  // namespace

std::string EncodeAllocation(const Allocation& allocation) {
  std::string out = fmt::format("{{\"v\":{},\"epoch\":{},\"leaf\":", kVersion, allocation.epoch);
  AppendQuoted(out, allocation.leaf);
  out += ",\"knowledge\":";
  AppendQuoted(out, KnowledgeName(allocation.knowledge));
  out += ",\"containers\":[";
  for (const ContainerDevices& container : allocation.containers) {
    if (out.back() != '[') out += ',';
    out += "{\"name\":";
    AppendQuoted(out, container.container);
    out += ",\"devices\":[";
    for (const Device& device : container.devices) {
      if (out.back() != '[') out += ',';
      AppendDevice(out, device, allocation.knowledge);
    }
    out += "]}";
  }
  return out + "]}";
}

absl::StatusOr<Allocation> DecodeAllocation(std::string_view text) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  return AllocationReader().Read(document);
}

}  // namespace tranche::wire
