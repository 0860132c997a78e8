#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/allocator/cases/world.h"

namespace tranche::test {
namespace {

using Texts = std::vector<std::string>;

const Texts kProducts = {"NVIDIA A100-SXM4-40GB", "NVIDIA H100", "Tesla T4"};
const Texts kVersions = {"580.65.6", "570.0.0", "580.65.6-rc.1", "1.2.3+build.7", "535.104.5"};

std::string Gib(int count) { return fmt::format("{}Gi", count); }

// "type" or "gpu.nvidia.com/type": the same to every reader but one that compares texts.
std::string Name(Dice& dice, std::string_view driver, std::string_view name) {
  return dice.OneIn(8) ? fmt::format("{}/{}", driver, name) : std::string(name);
}

Texts DrawAttributes(Dice& dice, std::string_view driver) {
  Texts fields;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (dice.OneIn(8)) return;
    fields.push_back(fmt::format(R"("{}":{{{}}})", Name(dice, driver, name), value));
  };
  const auto text = [](std::string_view value) { return fmt::format(R"("string":"{}")", value); };
  add("type", text(dice.OneIn(3) ? "mig" : "gpu"));
  add("profile", text(dice.OneIn(2) ? "1g.5gb" : "3g.20gb"));
  add("parentUUID", text(dice.OneIn(2) ? "GPU-a" : "GPU-b"));
  add("productName", text(dice.Pick(kProducts)));
  add("index", fmt::format(R"("int":{})", dice.Between(-1, 4)));
  add("healthy", fmt::format(R"("bool":{})", !dice.OneIn(3)));
  add("driverVersion", fmt::format(R"("version":"{}")", dice.Pick(kVersions)));
  if (dice.OneIn(2)) {
    fields.push_back(
        fmt::format(R"("resource.kubernetes.io/numaNode":{{"int":{}}})", dice.Below(2)));
  }
  if (dice.OneIn(2)) {
    fields.push_back(fmt::format(R"("resource.kubernetes.io/pcieRoot":{{"string":"pci0000:0{}"}})",
                                 dice.Below(3)));
  }
  return fields;
}

// What is asked of a part, within what the API takes.
std::string DrawPolicy(Dice& dice, int whole) {
  const int least = dice.Between(1, whole);
  switch (dice.Below(5)) {
    case 0:
      return "";
    case 1:
      return fmt::format(R"(,"requestPolicy":{{"default":"{}"}})", Gib(least));
    case 2: {
      const int second = dice.Between(least, whole);
      Texts values = {fmt::format(R"("{}")", Gib(least))};
      if (second > least) values.push_back(fmt::format(R"("{}")", Gib(second)));
      return fmt::format(R"(,"requestPolicy":{{"default":"{}","validValues":[{}]}})", Gib(least),
                         fmt::join(values, ","));
    }
    default:
      break;
  }
  const int low = dice.Between(0, whole / 2);
  const int step = dice.Between(1, 3);
  const int steps = (whole - low) / step;
  std::string range = fmt::format(R"("min":"{}")", Gib(low));
  if (dice.OneIn(2) && steps > 0) {
    range += fmt::format(R"(,"step":"{}")", Gib(step));
    if (dice.OneIn(2)) {
      range += fmt::format(R"(,"max":"{}")", Gib(low + step * dice.Between(1, steps)));
    }
  } else if (dice.OneIn(2)) {
    range += fmt::format(R"(,"max":"{}")", Gib(dice.Between(low, whole)));
  }
  return fmt::format(R"(,"requestPolicy":{{"default":"{}","validRange":{{{}}}}})", Gib(low), range);
}

Texts DrawCapacities(Dice& dice, std::string_view driver, DrawnDevice& device) {
  Texts fields;
  const auto add = [&](std::string_view name, int whole, const std::string& unit,
                       const std::string& policy) {
    if (dice.OneIn(8)) return;
    // A device that is published again writes its names as it did before.
    const bool full = device.name.back() == '3';
    DrawnCapacity capacity{full ? fmt::format("{}/{}", driver, name) : std::string(name), whole,
                           unit};
    fields.push_back(
        fmt::format(R"("{}":{{"value":"{}{}"{}}})", capacity.name, whole, unit, policy));
    device.capacities.push_back(std::move(capacity));
  };
  const int whole = dice.Between(2, 10);
  add("memory", whole, "Gi", device.shareable ? DrawPolicy(dice, whole) : "");
  if (device.shareable && dice.OneIn(2)) {
    add("shares", 4, "", R"(,"requestPolicy":{"default":"1"})");
  } else {
    add("multiprocessors", dice.Between(14, 98), "", "");
  }
  return fields;
}

std::string DrawTaint(Dice& dice, std::string_view key) {
  constexpr std::string_view kEffects[] = {"NoSchedule", "NoExecute", "None"};
  const std::string value = dice.OneIn(2) ? R"("value":"bad",)" : "";
  return fmt::format(R"({{"key":"{}",{}"effect":"{}"}})", key, value, dice.Pick(kEffects));
}

std::string DrawTaints(Dice& dice) {
  Texts taints;
  for (int i = dice.Between(1, 2); i > 0; --i) {
    taints.push_back(DrawTaint(dice, i == 1 ? "unhealthy" : "example.com/slow"));
  }
  return fmt::format(R"(,"taints":[{}])", fmt::join(taints, ","));
}

}  // namespace

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string QuotedList(std::span<const std::string> texts) {
  Texts quoted;
  for (const std::string& text : texts) quoted.push_back(Quoted(text));
  return fmt::format("{}", fmt::join(quoted, ","));
}

DrawnDevice DrawDevice(Dice& dice, const Mix& mix, std::string name, std::string_view driver,
                       const std::string& more) {
  DrawnDevice device;
  device.name = std::move(name);
  device.shareable = dice.Percent(mix.shares);
  const Texts attributes = DrawAttributes(dice, driver);
  const Texts capacities = DrawCapacities(dice, driver, device);
  std::string rest = more;
  if (device.shareable) rest += R"(,"allowMultipleAllocations":true)";
  if (dice.Percent(mix.taints / 3)) rest += DrawTaints(dice);
  if (dice.Percent(mix.taints / 5)) {
    rest += R"(,"bindingConditions":["ready"],"bindingFailureConditions":["failed"])";
  }
  device.json =
      fmt::format(R"({{"name":"{}","attributes":{{{}}},"capacity":{{{}}}{}}})", device.name,
                  fmt::join(attributes, ","), fmt::join(capacities, ","), rest);
  return device;
}

void DrawTaintRules(Dice& dice, const Mix& mix, World& world) {
  if (!dice.Percent(mix.taints)) return;
  for (int i = dice.Between(1, 3); i > 0; --i) {
    Texts names;
    if (!world.drawn.empty()) {
      const DrawnSlice& slice = dice.Pick(world.drawn);
      if (dice.OneIn(2)) names.push_back(fmt::format(R"("driver":"{}")", slice.driver));
      if (dice.OneIn(2)) names.push_back(fmt::format(R"("pool":"{}")", slice.pool));
      if (!slice.devices.empty() && dice.OneIn(2)) {
        names.push_back(fmt::format(R"("device":"{}")", dice.Pick(slice.devices).name));
      }
    }
    if (dice.OneIn(8)) names = {R"("pool":"nowhere")"};
    const std::string selector =
        dice.OneIn(8) ? "" : fmt::format(R"("deviceSelector":{{{}}},)", fmt::join(names, ","));
    world.rules.push_back(
        fmt::format(R"({{"metadata":{{"name":"rule-{}"}},"spec":{{{}"taint":{}}}}})", i, selector,
                    DrawTaint(dice, dice.OneIn(2) ? "unhealthy" : "maintenance")));
  }
}

}  // namespace tranche::test
