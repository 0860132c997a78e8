#include "scheduler/wire/nodes/node_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/machine/numa_align.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMaxZones = 128;
constexpr int64_t kMaxNumaNode = 1023;    // Linux numbers no more
constexpr std::size_t kMaxDevices = 128;  // the API's limit of a slice
constexpr std::string_view kZonePrefix = "node-";
constexpr std::string_view kGpuDriver = "gpu.nvidia.com";
constexpr std::string_view kPcieRoot = "resource.kubernetes.io/pcieRoot";
constexpr std::string_view kPciBus = "resource.kubernetes.io/pciBusID";
constexpr std::string_view kNuma = "resource.kubernetes.io/numaNode";

std::string Unexpected(std::string_view expected, std::string_view found, std::string_view where) {
  return fmt::format("expected {}, found {}, in {}", expected, found, where);
}

class ZonesReader {
 public:
  absl::StatusOr<NodeZones> Read(Element element) {
    const std::optional<Object> object = reader_.AsObject(element, "object");
    if (!object) return reader_.status();
    // The attributes are newer and win.
    ReadDeprecatedPolicy(*object);
    ReadAttributes(*object);
    ReadZones(*object);
    if (!reader_.ok()) return reader_.status();
    std::sort(
        zones_.zones.begin(), zones_.zones.end(),
        [](const ZoneCounts& left, const ZoneCounts& right) { return left.zone < right.zone; });
    return std::move(zones_);
  }

 private:
  // "SingleNUMANodePodLevel", "Restricted", ...: policy and scope in one word.
  void ReadDeprecatedPolicy(Object object) {
    constexpr std::string_view kWhere = "object.topologyPolicies";
    const std::optional<Array> policies = reader_.ReadArray(object, "topologyPolicies", "object");
    if (!policies || policies->size() == 0) return;
    const std::optional<std::string_view> text = reader_.AsText(*policies->begin(), kWhere);
    if (!text) return;
    std::string_view word = *text;
    constexpr std::string_view kPod = "PodLevel";
    constexpr std::string_view kContainer = "ContainerLevel";
    if (word.ends_with(kContainer)) {
      word.remove_suffix(kContainer.size());
    } else if (word.ends_with(kPod)) {
      word.remove_suffix(kPod.size());
      zones_.scope = NumaScope::kPod;
    }
    if (word == "SingleNUMANode") {
      zones_.policy = NumaPolicy::kSingleNode;
    } else if (word == "Restricted") {
      zones_.policy = NumaPolicy::kRestricted;
    } else if (word == "BestEffort") {
      zones_.policy = NumaPolicy::kBestEffort;
    } else if (word != "None") {
      reader_.Fail(Unexpected("a Topology Manager policy such as SingleNUMANodePodLevel",
                              Quoted(*text), kWhere));
    }
  }

  void ReadAttributes(Object object) {
    constexpr std::string_view kWhere = "object.attributes";
    for (const Object attribute :
         reader_.Objects(reader_.ReadArray(object, "attributes", "object"), kWhere)) {
      const std::string_view name = reader_.ReadText(attribute, "name", kWhere);
      const std::string_view value = reader_.ReadText(attribute, "value", kWhere);
      if (name == "topologyManagerPolicy") {
        const std::optional<NumaPolicy> policy = ParseNumaPolicy(value);
        if (!policy) {
          reader_.Fail(Unexpected("none, best-effort, restricted or single-numa-node",
                                  Quoted(value), "object.attributes topologyManagerPolicy"));
        }
        zones_.policy = policy.value_or(NumaPolicy::kNone);
      } else if (name == "topologyManagerScope") {
        const std::optional<NumaScope> scope = ParseNumaScope(value);
        if (!scope) {
          reader_.Fail(Unexpected("container or pod", Quoted(value),
                                  "object.attributes topologyManagerScope"));
        }
        zones_.scope = scope.value_or(NumaScope::kContainer);
      }
    }
  }

  void ReadZones(Object object) {
    constexpr std::string_view kWhere = "object.zones";
    for (const Object zone :
         reader_.Objects(reader_.ReadArray(object, "zones", "object"), kWhere)) {
      if (reader_.ReadText(zone, "type", kWhere) != "Node") continue;
      if (zones_.zones.size() == kMaxZones) {
        reader_.Fail(
            Unexpected(fmt::format("at most {} zones of type Node", kMaxZones), "more", kWhere));
        return;
      }
      ReadZone(zone);
    }
  }

  void ReadZone(Object zone) {
    const std::string_view name = reader_.ReadText(zone, "name", "object.zones");
    std::optional<int64_t> number;
    if (name.starts_with(kZonePrefix)) {
      number = ParsePlainInteger(name.substr(kZonePrefix.size()));
    }
    if (!number || *number < 0 || *number > kMaxNumaNode) {
      reader_.Fail(Unexpected(fmt::format("{}0 to {}{}", kZonePrefix, kZonePrefix, kMaxNumaNode),
                              Quoted(name), "object.zones name"));
      return;
    }
    ZoneCounts counts;
    counts.zone = static_cast<int>(*number);
    const bool twice =
        std::any_of(zones_.zones.begin(), zones_.zones.end(),
                    [&counts](const ZoneCounts& other) { return other.zone == counts.zone; });
    if (twice) {
      reader_.Fail(Unexpected("every zone once", Quoted(name) + " again", "object.zones name"));
    }
    const std::string where = fmt::format("object.zones {} resources", name);
    if (const std::optional<Array> resources = reader_.ReadArray(zone, "resources", where)) {
      for (const Element element : *resources) ReadResource(element, where, counts);
    }
    zones_.zones.push_back(counts);
  }

  void ReadResource(Element element, const std::string& where, ZoneCounts& counts) {
    const std::optional<Object> resource = reader_.AsObject(element, where);
    if (!resource) return;
    const std::string_view name = reader_.ReadText(*resource, "name", where);
    if (name == kGpuKey) {
      counts.gpus_capacity = Amount(*resource, "capacity", where, WholeAmount);
      counts.gpus_available = Amount(*resource, "available", where, WholeAmount);
    } else if (name == "cpu") {
      counts.cpus_capacity = Amount(*resource, "capacity", where, CpuAmount);
      counts.cpus_available = Amount(*resource, "available", where, CpuAmount);
    }
  }

  template <typename Value>
  Value Amount(Object resource, std::string_view key, const std::string& where,
               std::optional<Value> (*read)(Element)) {
    const std::optional<Element> found = Find(resource, key);
    const std::optional<Value> amount = found ? read(*found) : std::nullopt;
    if (!amount) {
      reader_.Fail(Unexpected(fmt::format("a quantity from 0 to {}", kMaxAmount),
                              found ? DescribeElement(*found) : "nothing",
                              fmt::format("{} {}", where, key)));
    }
    return amount.value_or(Value());
  }

  FieldReader reader_;
  NodeZones zones_;
};

class SliceReader {
 public:
  absl::StatusOr<NodeSlice> Read(Element element) {
    const std::optional<Object> object = reader_.AsObject(element, "object");
    if (!object) return reader_.status();
    const std::optional<Object> spec = reader_.ReadObject(*object, "spec", "object");
    if (!spec) reader_.Fail(Unexpected("object", "nothing", "object.spec"));
    if (!reader_.ok()) return reader_.status();
    slice_.node = NodeName(reader_.ReadText(*spec, "nodeName", "spec"));
    slice_.driver = reader_.ReadText(*spec, "driver", "spec");
    if (const std::optional<Object> pool = reader_.ReadObject(*spec, "pool", "spec")) {
      slice_.pool = reader_.ReadText(*pool, "name", "spec.pool");
      slice_.generation =
          reader_.ReadInteger(*pool, "generation", "spec.pool", {0, INT64_MAX}).value_or(0);
    }
    if (!slice_.node.empty()) ReadDevices(*spec);
    if (!reader_.ok()) return reader_.status();
    return std::move(slice_);
  }

 private:
  void ReadDevices(Object spec) {
    const std::optional<Array> devices = reader_.ReadArray(spec, "devices", "spec");
    if (!devices) return;
    if (devices->size() > kMaxDevices) {
      reader_.Fail(Unexpected(fmt::format("at most {} devices", kMaxDevices),
                              std::to_string(devices->size()), "spec.devices"));
      return;
    }
    for (const Object device : reader_.Objects(devices, "spec.devices")) {
      ReadDevice(device);
    }
  }

  void ReadDevice(Object object) {
    SliceDevice device;
    device.name = reader_.ReadText(object, "name", "spec.devices");
    const std::string where = fmt::format("spec.devices {}", device.name);
    // v1beta1 has all but the name one level deeper.
    const std::optional<Object> basic = reader_.ReadObject(object, "basic", where);
    const std::optional<Object> attributes =
        reader_.ReadObject(basic.value_or(object), "attributes", where);
    if (!attributes) return;
    attributes_ = *attributes;
    where_ = where;
    device.pcie_root = Text(kPcieRoot);
    device.pci_bus = Text(kPciBus);
    device.numa = Numa();
    if (slice_.driver == kGpuDriver) {
      const std::string_view type = OwnText("type");
      device.uuid = GpuUuid(OwnText("uuid"));
      if ((!type.empty() && type != "gpu") || device.uuid.empty()) return;
    } else {
      device.is_nic = true;
      if (device.pcie_root.empty() || SaysNoRdma()) return;
    }
    slice_.devices.push_back(std::move(device));
  }

  std::optional<Object> Attribute(std::string_view name) {
    return reader_.ReadObject(attributes_, name, where_);
  }
  // Names without a domain are the driver's own.
  std::optional<Object> OwnAttribute(std::string_view name) {
    const std::optional<Object> found = Attribute(name);
    return found ? found : Attribute(fmt::format("{}/{}", slice_.driver, name));
  }
  // Empty when absent, and for an attribute of another type, as lists are.
  std::string_view TextOf(std::optional<Object> attribute, std::string_view name) {
    return attribute ? reader_.ReadText(*attribute, "string", fmt::format("{} {}", where_, name))
                     : std::string_view();
  }
  std::string_view Text(std::string_view name) { return TextOf(Attribute(name), name); }
  std::string_view OwnText(std::string_view name) { return TextOf(OwnAttribute(name), name); }

  // -1 is how Linux says that a device belongs to no NUMA node.
  std::optional<int> Numa() {
    std::optional<Object> attribute = Attribute(kNuma);
    if (!attribute) attribute = OwnAttribute("numaNode");
    if (!attribute) return std::nullopt;
    const std::optional<int64_t> node =
        reader_.ReadInteger(*attribute, "int", where_ + " numaNode", {-1, kMaxNumaNode});
    if (!node || *node < 0) return std::nullopt;
    return static_cast<int>(*node);
  }

  bool SaysNoRdma() {
    const std::optional<Object> rdma = OwnAttribute("rdma");
    return rdma && !reader_.ReadBool(*rdma, "bool", where_ + " rdma").value_or(true);
  }

  FieldReader reader_;
  NodeSlice slice_;
  Object attributes_;  // of the device being read
  std::string where_;
};

}  // namespace

absl::StatusOr<NodeZones> DecodeNodeZones(Element object) { return ZonesReader().Read(object); }

absl::StatusOr<NodeSlice> DecodeResourceSlice(Element slice) { return SliceReader().Read(slice); }

}  // namespace tranche::wire
