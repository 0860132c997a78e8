#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "test/allocator/cases/world.h"

namespace tranche::test {
namespace {

constexpr int kUnits = 4;  // memory slices of a card that is cut into partitions

// Slices of one pool.
class PoolDraw {
 public:
  PoolDraw(Dice& dice, const Mix& mix, World& world, std::string_view driver, std::string pool)
      : dice_(dice), mix_(mix), world_(world), driver_(driver), pool_(std::move(pool)) {}

  // `node` is empty for a pool of several nodes.
  void Draw(const std::string& node) {
    node_ = node;
    partitioned_ = dice_.Percent(mix_.partitions);
    const int generation = dice_.Between(1, 3);
    Generation(generation, dice_.Percent(mix_.generations / 3));
    if (dice_.Percent(mix_.generations / 2)) {
      Generation(generation + (dice_.OneIn(2) ? 1 : -1), dice_.OneIn(2));
    }
  }

 private:
  struct Place {
    std::string spec;
    bool per_device = false;
  };

  void Generation(int generation, bool incomplete) {
    const int with_devices = dice_.Between(1, 3);
    const int slices = with_devices + (partitioned_ ? 1 : 0);
    count_ = incomplete ? slices + 1 : slices;
    generation_ = generation;
    devices_ = 0;
    if (partitioned_) CounterSlice();
    for (int i = 0; i < with_devices; ++i) DeviceSlice();
  }

  std::string Selector() {
    return fmt::format(R"("nodeSelector":{{"nodeSelectorTerms":[{{{}}}]}})",
                       SelectorTerm(dice_.Pick(world_.nodes), dice_));
  }
  std::string NodeOfDevice() {
    if (dice_.OneIn(3)) return R"("allNodes":true)";
    if (dice_.OneIn(3)) return Selector();
    return fmt::format(R"("nodeName":"{}")", dice_.Pick(world_.nodes).name);
  }
  Place DrawPlace() {
    if (!node_.empty()) return {fmt::format(R"("nodeName":"{}")", node_), false};
    if (dice_.OneIn(3)) return {R"("perDeviceNodeSelection":true)", true};
    return {NodeOfDevice(), false};
  }

  void Add(const Place& place, const std::string& body, std::vector<DrawnDevice> devices) {
    world_.slices.push_back(
        fmt::format(R"({{"metadata":{{"name":"slice-{}-{}"}},"spec":{{"driver":"{}",)"
                    R"("pool":{{"name":"{}","generation":{},"resourceSliceCount":{}}},{},{}}}}})",
                    dice_.Below(1000), world_.slices.size(), driver_, pool_, generation_, count_,
                    place.spec, body));
    world_.drawn.push_back({driver_, pool_, std::move(devices)});
  }

  // Two cards; a pool that is wrong lacks one, or names one twice.
  void CounterSlice() {
    std::vector<std::string> sets;
    const bool wrong = dice_.Percent(mix_.generations / 4);
    for (int card = 0; card < (wrong ? 1 : 2); ++card) {
      std::vector<std::string> counters = {fmt::format(R"("processors":{{"value":"{}"}})", 98)};
      for (int unit = 0; unit < kUnits; ++unit) {
        counters.push_back(fmt::format(R"("memory-slice-{}":{{"value":"1"}})", unit));
      }
      sets.push_back(
          fmt::format(R"({{"name":"card-{}","counters":{{{}}}}})", card, fmt::join(counters, ",")));
    }
    Place place = DrawPlace();
    if (place.per_device) place = {R"("allNodes":true)", false};
    Add(place, fmt::format(R"("sharedCounters":[{}])", fmt::join(sets, ",")), {});
  }

  std::string Consumes() {
    const int size = 1 << dice_.Below(3);
    const int start = size * dice_.Below(kUnits / size);
    std::vector<std::string> counters = {
        fmt::format(R"("processors":{{"value":"{}"}})", 24 * size)};
    for (int unit = start; unit < start + size; ++unit) {
      counters.push_back(fmt::format(R"("memory-slice-{}":{{"value":"1"}})", unit));
    }
    return fmt::format(R"(,"consumesCounters":[{{"counterSet":"card-{}","counters":{{{}}}}}])",
                       dice_.Below(2), fmt::join(counters, ","));
  }

  void DeviceSlice() {
    const Place place = DrawPlace();
    std::vector<DrawnDevice> devices;
    std::vector<std::string> texts;
    for (int i = dice_.Below(5); i > 0; --i) {
      // Names come twice in pools that are wrong.
      if (!dice_.Percent(mix_.generations / 8)) ++devices_;
      const std::string name = fmt::format("dev-{}", devices_);
      const bool again = std::ranges::any_of(
          devices, [&name](const DrawnDevice& other) { return other.name == name; });
      if (again) continue;
      std::string more = partitioned_ && !dice_.OneIn(5) ? Consumes() : "";
      if (place.per_device) more += "," + NodeOfDevice();
      devices.push_back(DrawDevice(dice_, mix_, name, driver_, more));
      texts.push_back(devices.back().json);
    }
    Add(place, fmt::format(R"("devices":[{}])", fmt::join(texts, ",")), std::move(devices));
  }

  Dice& dice_;
  const Mix& mix_;
  World& world_;
  std::string driver_, pool_, node_;
  bool partitioned_ = false;
  int generation_ = 0, count_ = 0, devices_ = 0;
};

}  // namespace

std::string SelectorTerm(const DrawnNode& node, Dice& dice) {
  switch (dice.Below(6)) {
    case 0:
      return fmt::format(
          R"("matchFields":[{{"key":"metadata.name","operator":"In","values":["{}"]}}])",
          node.name);
    case 1:
      return R"("matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}])";
    case 2:
      return R"("matchExpressions":[{"key":"cards","operator":"Gt","values":["2"]}])";
    case 3:
      return R"("matchExpressions":[{"key":"cards","operator":"Exists"}])";
    case 4:
      return R"("matchExpressions":[{"key":"zone","operator":"DoesNotExist"}])";
    default:
      break;
  }
  return R"("matchExpressions":[{"key":"zone","operator":"In","values":["a"]}])";
}

void DrawSlices(Dice& dice, const Mix& mix, World& world) {
  for (int i = dice.Between(1, 3); i > 0; --i) {
    DrawnNode node{fmt::format("node-{}", i), {}};
    if (!dice.OneIn(4)) node.labels["zone"] = dice.OneIn(2) ? "a" : "b";
    if (!dice.OneIn(4)) node.labels["cards"] = std::to_string(dice.Between(1, 4));
    world.nodes.push_back(std::move(node));
  }
  for (const DrawnNode& node : world.nodes) {
    for (const std::string_view driver : kDrivers) {
      if (dice.OneIn(driver == kDrivers[0] ? 5 : 3)) continue;
      PoolDraw(dice, mix, world, driver, node.name).Draw(node.name);
    }
  }
  for (int i = 0; i < 2; ++i) {
    if (!dice.Percent(mix.anywhere)) continue;
    PoolDraw(dice, mix, world, dice.Pick(kDrivers), fmt::format("fabric-{}", i)).Draw("");
  }
}

}  // namespace tranche::test
