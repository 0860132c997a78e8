// ResourceSlice.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/wire/claims/claim_fields.h"
#include "scheduler/wire/claims/claim_objects.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMostDevices = 128;
constexpr std::size_t kMostCounterSets = 8;
constexpr std::size_t kMostCounters = 32;
constexpr std::size_t kMostConsumptions = 8;
constexpr std::size_t kMostValues = 48;  // attributes and capacities of a device
constexpr std::size_t kMostText = 64;
constexpr std::size_t kMostTaints = 16;
constexpr std::size_t kMostValidValues = 10;
constexpr IntegerRange kNatural = {0, INT64_MAX};
constexpr IntegerRange kAnyInteger = {INT64_MIN, INT64_MAX};

class SliceDecoder {
 public:
  absl::StatusOr<dra::Slice> Decode(Element element) {
    const std::optional<Object> object = reader_.AsObject(element, "object");
    if (!object) return reader_.status();
    slice_.name = ReadObjectName(*object, reader_).name;
    const std::optional<Object> spec = reader_.ReadObject(*object, "spec", "object");
    if (!spec) reader_.Fail("expected object, found nothing, in object.spec");
    if (!reader_.ok()) return reader_.status();
    slice_.driver = reader_.ReadText(*spec, "driver", "spec");
    ReadPool(*spec);
    slice_.node = ReadNodeChoice(*spec, "spec");
    if (reader_.ReadBool(*spec, "perDeviceNodeSelection", "spec").value_or(false)) {
      slice_.node.kind = dra::NodeChoice::Kind::kPerDevice;
    }
    slice_.counters = ReadCounterSets(*spec, "sharedCounters", "name", "spec", kMostCounterSets);
    ReadDevices(*spec);
    if (!reader_.ok()) return reader_.status();
    return std::move(slice_);
  }

 private:
  void ReadPool(Object spec) {
    const std::optional<Object> pool = reader_.ReadObject(spec, "pool", "spec");
    if (!pool) {
      reader_.Fail("expected object, found nothing, in spec.pool");
      return;
    }
    slice_.pool = reader_.ReadText(*pool, "name", "spec.pool");
    slice_.generation = reader_.ReadInteger(*pool, "generation", "spec.pool", kNatural).value_or(0);
    slice_.slice_count =
        reader_.ReadInteger(*pool, "resourceSliceCount", "spec.pool", kNatural).value_or(0);
  }

  // Exactly one of them is set; if several are, they count in the allocator's order.
  dra::NodeChoice ReadNodeChoice(Object parent, std::string_view where) {
    dra::NodeChoice choice;
    choice.name = NodeName(reader_.ReadText(parent, "nodeName", where));
    const bool all = reader_.ReadBool(parent, "allNodes", where).value_or(false);
    const std::optional<Object> selector = reader_.ReadObject(parent, "nodeSelector", where);
    if (!choice.name.empty()) {
      choice.kind = dra::NodeChoice::Kind::kName;
    } else if (all) {
      choice.kind = dra::NodeChoice::Kind::kAll;
    } else if (selector) {
      choice.kind = dra::NodeChoice::Kind::kSelector;
      choice.selector = ReadNodeSelector(*selector, where, reader_);
    }
    return choice;
  }

  std::vector<dra::CounterSet> ReadCounterSets(Object parent, std::string_view key,
                                               std::string_view name_key, std::string_view where,
                                               std::size_t most) {
    std::vector<dra::CounterSet> sets;
    for (const Object object :
         reader_.Objects(ReadList(parent, key, where, most, reader_), where)) {
      dra::CounterSet& set = sets.emplace_back();
      set.name = reader_.ReadText(object, name_key, where);
      const std::optional<Object> counters = reader_.ReadObject(object, "counters", where);
      if (!counters) continue;
      if (counters->size() > kMostCounters) TooMany("counters", kMostCounters, where);
      for (const auto field : *counters) {
        const std::optional<Object> counter = reader_.AsObject(field.value, where);
        if (!counter) break;
        const auto value = ReadQuantity(*counter, "value", where, reader_);
        set.counters.push_back({std::string(field.key), value.value_or(dra::Quantity())});
      }
      std::sort(set.counters.begin(), set.counters.end(),
                [](const auto& left, const auto& right) { return left.name < right.name; });
    }
    return sets;
  }

  void TooMany(std::string_view what, std::size_t most, std::string_view where) {
    reader_.Fail(fmt::format("expected at most {} {}, found more, in {}", most, what, where));
  }

  void ReadDevices(Object spec) {
    for (const Object device : reader_.Objects(
             ReadList(spec, "devices", "spec", kMostDevices, reader_), "spec.devices")) {
      ReadDevice(device);
    }
  }

  void ReadDevice(Object object) {
    dra::Device& device = slice_.devices.emplace_back();
    device.name = reader_.ReadText(object, "name", "spec.devices");
    const std::string where = fmt::format("spec.devices {}", device.name);
    const Object body = reader_.ReadObject(object, "basic", where).value_or(object);
    ReadAttributes(body, where, device);
    ReadCapacities(body, where, device);
    device.consumes =
        ReadCounterSets(body, "consumesCounters", "counterSet", where, kMostConsumptions);
    ReadTaints(body, where, device);
    device.shareable = reader_.ReadBool(body, "allowMultipleAllocations", where).value_or(false);
    const std::optional<Array> conditions = reader_.ReadArray(body, "bindingConditions", where);
    device.conditional = conditions && conditions->size() > 0;
    device.node = ReadNodeChoice(body, where);
  }

  void ReadAttributes(Object body, const std::string& where, dra::Device& device) {
    const std::optional<Object> attributes = reader_.ReadObject(body, "attributes", where);
    if (!attributes) return;
    if (attributes->size() > kMostValues) TooMany("attributes", kMostValues, where);
    for (const auto field : *attributes) {
      const std::optional<Object> value = reader_.AsObject(field.value, where);
      if (!value) return;
      const std::string path = fmt::format("{} {}", where, field.key);
      AddNamed(device.attributes,
               {QualifiedNameOf(field.key, slice_.driver), ReadValue(*value, path)}, field.key);
    }
    SortByName(device.attributes);
  }

  dra::AttributeValue ReadValue(Object value, const std::string& where) {
    if (const auto number = reader_.ReadInteger(value, "int", where, kAnyInteger)) return *number;
    if (const auto truth = reader_.ReadBool(value, "bool", where)) return *truth;
    for (const std::string_view key : {"string", "version"}) {
      if (!Find(value, key)) continue;
      std::string text(reader_.ReadText(value, key, where));
      if (text.size() > kMostText) TooMany("bytes", kMostText, where);
      if (key == "string") return text;
      return dra::VersionText{std::move(text)};
    }
    return dra::OtherValue{};
  }

  void ReadCapacities(Object body, const std::string& where, dra::Device& device) {
    const std::optional<Object> capacities = reader_.ReadObject(body, "capacity", where);
    if (!capacities) return;
    if (capacities->size() > kMostValues) TooMany("capacities", kMostValues, where);
    for (const auto field : *capacities) {
      const std::optional<Object> object = reader_.AsObject(field.value, where);
      if (!object) return;
      const std::string path = fmt::format("{} {}", where, field.key);
      dra::Capacity capacity;
      capacity.name = QualifiedNameOf(field.key, slice_.driver);
      capacity.with_domain = field.key.find('/') != std::string_view::npos;
      capacity.value = ReadQuantity(*object, "value", path, reader_).value_or(dra::Quantity());
      if (const auto policy = reader_.ReadObject(*object, "requestPolicy", path)) {
        capacity.policy = ReadPolicy(*policy, path);
      }
      AddNamed(device.capacities, std::move(capacity), field.key);
    }
    SortByName(device.capacities);
  }

  dra::RequestPolicy ReadPolicy(Object policy, const std::string& where) {
    dra::RequestPolicy read;
    read.usual = ReadQuantity(policy, "default", where, reader_);
    if (const auto values = ReadList(policy, "validValues", where, kMostValidValues, reader_)) {
      for (const Element element : *values) {
        const auto text = reader_.AsText(element, where);
        const auto value = text ? dra::ParseQuantity(*text) : std::nullopt;
        if (!value) reader_.Fail(fmt::format("expected quantities, found another, in {}", where));
        read.valid_values.push_back(value.value_or(dra::Quantity()));
      }
      std::sort(read.valid_values.begin(), read.valid_values.end());
    }
    if (const auto range = reader_.ReadObject(policy, "validRange", where)) {
      read.range = dra::RequestPolicy::Range{ReadQuantity(*range, "min", where, reader_),
                                             ReadQuantity(*range, "max", where, reader_),
                                             ReadQuantity(*range, "step", where, reader_)};
    }
    return read;
  }

  void ReadTaints(Object body, const std::string& where, dra::Device& device) {
    for (const Object taint :
         reader_.Objects(ReadList(body, "taints", where, kMostTaints, reader_), where)) {
      device.taints.push_back(ReadTaint(taint, where, reader_));
    }
  }

  // A name that is there both with the driver's domain and without: the one with it counts.
  template <typename Named>
  static void AddNamed(std::vector<Named>& list, Named entry, std::string_view key) {
    const auto same = std::ranges::find_if(
        list, [&entry](const Named& other) { return other.name == entry.name; });
    if (same == list.end()) {
      list.push_back(std::move(entry));
    } else if (key.find('/') != std::string_view::npos) {
      *same = std::move(entry);
    }
  }
  template <typename Named>
  static void SortByName(std::vector<Named>& list) {
    std::sort(list.begin(), list.end(),
              [](const Named& left, const Named& right) { return left.name < right.name; });
  }

  FieldReader reader_;
  dra::Slice slice_;
};

}  // namespace

absl::StatusOr<dra::Slice> DecodeSlice(Element object) { return SliceDecoder().Decode(object); }

}  // namespace tranche::wire
