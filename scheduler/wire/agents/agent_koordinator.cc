// Koordinator's koordlet: one JSON list of cards for the whole pod, each with core percent, memory
// and percent of memory. Source: request-dialects section 12.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "scheduler/wire/agents/agent_grammars.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/resource_amount.h"
#include "topology/base/quantity.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kRecord = "scheduling.koordinator.sh/device-allocated";
constexpr std::array kKeys = {kRecord};

constexpr std::string_view kCore = "koordinator.sh/gpu-core";
constexpr std::string_view kMemory = "koordinator.sh/gpu-memory";
constexpr std::string_view kRatio = "koordinator.sh/gpu-memory-ratio";

using CardUses = std::map<int, Device>;

void AddDevices(const Allocation& allocation, std::string_view container, CardUses& uses) {
  for (const Device& device : DevicesOf(allocation, container)) {
    if (device.mig) continue;  // koordlet shows whole cards only
    Device& use =
        uses.try_emplace(device.card, Device{device.card, device.uuid, {}, {}, {}}).first->second;
    use.milli += device.milli;
    use.memory += device.memory;
  }
}

// The most that the pod takes of each card at any time of its life: app containers and sidecars
// together, or an init container with the sidecars before it.
CardUses LifeUses(const PodRequest& request, const Allocation& allocation) {
  CardUses most;
  CardUses lasting;
  const auto raise = [&](const CardUses& uses) {
    for (const auto& [card, use] : uses) {
      Device& target = most.try_emplace(card, use).first->second;
      target.milli = std::max(target.milli, use.milli);
      target.memory = std::max(target.memory, use.memory);
    }
  };
  for (const ContainerInfo& container : request.containers) {
    if (container.role == ContainerRole::kInit) {
      CardUses moment = lasting;
      AddDevices(allocation, container.name, moment);
      raise(moment);
    } else {
      AddDevices(allocation, container.name, lasting);
    }
  }
  raise(lasting);
  return most;
}

// As Kubernetes prints it: "8Gi", "4000Mi".
std::string MemoryText(Mebibytes memory) {
  constexpr int64_t kMebibytesPerGibibyte = 1024;
  const int64_t mib = memory.count();
  if (mib == 0) return "0";
  if (mib % kMebibytesPerGibibyte == 0) return fmt::format("{}Gi", mib / kMebibytesPerGibibyte);
  return fmt::format("{}Mi", mib);
}

int64_t RatioPercent(Mebibytes memory, const AgentCall& call, int card) {
  const auto position = static_cast<std::size_t>(card);
  const int64_t whole = position < call.card_memory.size() ? call.card_memory[position].count() : 0;
  if (whole == 0) return 0;
  return std::min<int64_t>(100, memory.count() * 100 / whole);
}

void Write(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
           Annotations& out) {
  std::string list;
  for (const auto& [card, use] : LifeUses(request, allocation)) {
    if (!list.empty()) list += ',';
    fmt::format_to(std::back_inserter(list), "{{\"minor\":{}", card);
    if (!use.uuid.empty()) {
      list += ",\"id\":";
      AppendQuoted(list, use.uuid.str());
    }
    fmt::format_to(std::back_inserter(list),
                   ",\"resources\":{{\"{}\":\"{}\",\"{}\":\"{}\",\"{}\":\"{}\"}}}}", kCore,
                   std::min<int64_t>(100, CoresPercent(use.milli)), kMemory, MemoryText(use.memory),
                   kRatio, RatioPercent(use.memory, call, card));
  }
  if (!list.empty()) out.emplace(kRecord, "{\"gpu\":[" + list + "]}");
}

// Reads the list; the position of the device at hand is part of every error.
class RecordReader {
 public:
  absl::StatusOr<std::vector<Device>> Read(Element document) {
    const std::optional<Object> object = reader_.AsObject(document, kRecord);
    if (!object) return reader_.status();
    const std::optional<Array> list = reader_.ReadArray(*object, "gpu", kRecord);
    std::vector<Device> devices;
    if (list) {
      for (const Element entry : *list) {
        ReadDevice(entry, devices);
        if (!reader_.ok()) break;
      }
    }
    if (!reader_.ok()) return reader_.status();
    return devices;
  }

 private:
  void ReadDevice(Element entry, std::vector<Device>& devices) {
    const std::string where = fmt::format("device {} of {}", devices.size(), kRecord);
    if (devices.size() == kMaxAgentDevices) {
      reader_.Fail(
          fmt::format("expected at most {} devices, found more, in {}", kMaxAgentDevices, kRecord));
    }
    const std::optional<Object> object = reader_.AsObject(entry, where);
    if (!object) return;
    Device device;
    const std::optional<int64_t> minor =
        reader_.ReadInteger(*object, "minor", where, {0, kMaxAgentCard});
    if (!minor) reader_.Fail(fmt::format("expected a minor, found none, in {}", where));
    device.card = static_cast<int>(minor.value_or(0));
    const bool seen = std::any_of(devices.begin(), devices.end(),
                                  [&](const Device& other) { return other.card == device.card; });
    if (seen) {
      reader_.Fail(fmt::format("expected different minors, found {}, in {}", device.card, where));
    }
    if (const std::string_view id = reader_.ReadText(*object, "id", where); !id.empty()) {
      const absl::StatusOr<GpuUuid> uuid = ReadUuid(id, where);
      if (uuid.ok()) {
        device.uuid = *uuid;
      } else {
        reader_.Fail(std::string(uuid.status().message()));
      }
    }
    if (const std::optional<Object> resources = reader_.ReadObject(*object, "resources", where)) {
      device.milli = MilliGpu::Of(Amount(*resources, kCore, where, 100) * kMilliPerPercent);
      constexpr int64_t kBytesPerMebibyte = int64_t{1} << 20;
      device.memory = Mebibytes::Of(
          Amount(*resources, kMemory, where, INT32_MAX * kBytesPerMebibyte) / kBytesPerMebibyte);
    }
    devices.push_back(std::move(device));
  }

  // A quantity, written as text or as a number; zero when absent.
  int64_t Amount(Object resources, std::string_view key, std::string_view where, int64_t most) {
    const std::optional<Element> value = Find(resources, key);
    if (!value) return 0;
    const std::string text = AmountText(*value);
    const absl::StatusOr<int64_t> amount = ParseWholeQuantity(text);
    if (amount.ok() && *amount >= 0 && *amount <= most) return *amount;
    reader_.Fail(fmt::format("expected whole number from 0 to {}, found {}, in {} of {}", most,
                             DescribeElement(*value), key, where));
    return 0;
  }

  FieldReader reader_;
};

absl::StatusOr<std::vector<ContainerDevices>> Read(const AgentValues& values,
                                                   const PodRequest& request) {
  const std::optional<std::string_view> record = ValueOf(values, kRecord);
  if (!record) return std::vector<ContainerDevices>();
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(*record);
  if (!document.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}, in {}", std::string(document.status().message()), kRecord));
  }
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Device> devices, RecordReader().Read(*document));
  if (devices.empty()) return std::vector<ContainerDevices>();  // other kinds of devices only
  return DealOut(std::move(devices), request, kRecord);
}

// koordlet knows the pod and writes nothing back.
AgentProgress Progress(const AgentValues& /*values*/) { return AgentProgress::kUnknown; }

}  // namespace

constinit const AgentGrammar kKoordinatorGrammar = {
    AgentKind::kKoordinator, RequestStyle::kNone, {}, kKeys, {}, Write, Read, Progress};

}  // namespace tranche::wire
