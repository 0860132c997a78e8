#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "test/allocator/cases/world.h"

namespace tranche::test {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view kClasses[] = {"gpu", "mig", "any", "fpga", "healthy"};

std::string Selectors(const Texts& texts) {
  Texts list;
  for (const std::string& text : texts) {
    list.push_back(fmt::format(R"({{"cel":{{"expression":{}}}}})", Quoted(text)));
  }
  return fmt::format(R"("selectors":[{}])", fmt::join(list, ","));
}

class ClaimDraw {
 public:
  ClaimDraw(Dice& dice, const Mix& mix) : dice_(dice), mix_(mix) {}

  std::string Claim(std::string name) {
    Texts requests;
    for (int i = dice_.OneIn(2) ? 1 : dice_.Between(1, 3); i > 0; --i) {
      requests.push_back(Request(fmt::format("r{}", i)));
    }
    Texts constraints;
    while (dice_.OneIn(3) && constraints.size() < 3) constraints.push_back(Constraint());
    return fmt::format(R"({{"metadata":{{"namespace":"team","name":"{0}","uid":"uid-{0}"}},)"
                       R"("spec":{{"devices":{{"requests":[{1}],"constraints":[{2}]}}}}}})",
                       name, fmt::join(requests, ","), fmt::join(constraints, ","));
  }

 private:
  std::string Request(const std::string& name) {
    names_.push_back(name);
    if (!dice_.OneIn(4)) {
      const bool admin = dice_.OneIn(12);
      return fmt::format(R"({{"name":"{}","exactly":{{{}{}}}}})", name, Body(),
                         admin ? R"(,"adminAccess":true)" : "");
    }
    Texts ways;
    for (int i = dice_.Between(1, 3); i > 0; --i) {
      const std::string way = fmt::format("w{}", i);
      names_.push_back(name + "/" + way);
      ways.push_back(fmt::format(R"({{"name":"{}",{}}})", way, Body()));
    }
    return fmt::format(R"({{"name":"{}","firstAvailable":[{}]}})", name, fmt::join(ways, ","));
  }

  std::string Body() {
    const std::string_view device_class = dice_.OneIn(60) ? "absent" : dice_.Pick(kClasses);
    std::string body = fmt::format(R"("deviceClassName":"{}")", device_class);
    Texts selectors;
    while (dice_.OneIn(3) && selectors.size() < 2) selectors.push_back(DrawSelector(dice_));
    if (!selectors.empty()) body += "," + Selectors(selectors);
    if (dice_.OneIn(7)) {
      body += R"(,"allocationMode":"All")";
    } else if (!dice_.OneIn(4)) {
      const int count = dice_.OneIn(20)  ? dice_.Between(10, 40)
                        : dice_.OneIn(2) ? dice_.Between(2, 4)
                                         : 1;
      body += fmt::format(R"(,"allocationMode":"ExactCount","count":{})", count);
    }
    if (dice_.Percent(mix_.taints)) body += Tolerations();
    if (dice_.Percent(mix_.shares / 2 + 3)) body += Capacity();
    return body;
  }

  std::string Tolerations() {
    switch (dice_.Below(5)) {
      case 0:
        return R"(,"tolerations":[{"operator":"Exists"}])";
      case 1:
        return R"(,"tolerations":[{"key":"unhealthy","operator":"Equal","value":"bad"}])";
      case 2:
        return R"(,"tolerations":[{"key":"unhealthy","effect":"NoSchedule"}])";
      case 3:
        return R"(,"tolerations":[{"key":"unhealthy","operator":"Exists"},)"
               R"({"key":"example.com/slow","operator":"Exists","effect":"NoExecute"}])";
      default:
        return "";
    }
  }

  std::string Capacity() {
    Texts asked;
    constexpr std::string_view kAmounts[] = {"1Gi", "2Gi", "1500Mi", "5Gi", "9Gi", "0"};
    if (!dice_.OneIn(4)) {
      const std::string name = dice_.OneIn(5) ? "gpu.nvidia.com/memory" : "memory";
      asked.push_back(fmt::format(R"("{}":"{}")", name, dice_.Pick(kAmounts)));
    }
    if (dice_.OneIn(3)) asked.push_back(fmt::format(R"("shares":"{}")", dice_.Between(1, 5)));
    if (dice_.OneIn(8)) asked.push_back(R"("multiprocessors":"14")");
    return fmt::format(R"(,"capacity":{{"requests":{{{}}}}})", fmt::join(asked, ","));
  }

  std::string Constraint() {
    constexpr std::string_view kAttributes[] = {
        "gpu.nvidia.com/parentUUID",    "resource.kubernetes.io/numaNode",
        "gpu.nvidia.com/index",         "resource.kubernetes.io/pcieRoot",
        "gpu.nvidia.com/driverVersion", "gpu.nvidia.com/healthy"};
    std::set<std::string> requests;
    if (!dice_.OneIn(2)) {
      for (int i = dice_.Between(1, 2); i > 0; --i) requests.insert(dice_.Pick(names_));
    }
    return fmt::format(R"({{"requests":[{}],"{}Attribute":"{}"}})",
                       QuotedList(Texts(requests.begin(), requests.end())),
                       dice_.OneIn(3) ? "distinct" : "match", dice_.Pick(kAttributes));
  }

  Dice& dice_;
  const Mix& mix_;
  Texts names_;
};

std::string ResultOf(Dice& dice, const DrawnSlice& slice, const DrawnDevice& device, int share) {
  std::string more;
  if (dice.OneIn(10)) more += R"(,"adminAccess":true)";
  // A device may have been changed since.
  if (device.shareable != dice.OneIn(25)) {
    Texts consumed;
    for (const DrawnCapacity& capacity : device.capacities) {
      const int amount = dice.Between(0, dice.OneIn(3) ? capacity.whole : capacity.whole / 3);
      consumed.push_back(fmt::format(R"("{}":"{}{}")", capacity.name, amount, capacity.unit));
    }
    more += fmt::format(R"(,"shareID":"00000000-0000-0000-0000-{:012}")", share);
    if (!dice.OneIn(10)) {
      more += fmt::format(R"(,"consumedCapacity":{{{}}})", fmt::join(consumed, ","));
    }
  }
  return fmt::format(R"({{"request":"r","driver":"{}","pool":"{}","device":"{}"{}}})", slice.driver,
                     slice.pool, device.name, more);
}

}  // namespace

void DrawClasses(Dice& dice, World& world) {
  const Texts selectors[] = {
      {"device.driver == 'gpu.nvidia.com' && "
       "device.attributes['gpu.nvidia.com'].?type.orValue('') == 'gpu'"},
      {"device.driver == 'gpu.nvidia.com' && 'type' in device.attributes['gpu.nvidia.com'] && "
       "device.attributes['gpu.nvidia.com'].type == 'mig'"},
      {},
      {"device.driver == 'fpga.example.com'"},
      {"has(device.attributes[device.driver].healthy)",
       "device.attributes[device.driver].healthy"}};
  for (std::size_t i = 0; i < std::size(kClasses); ++i) {
    std::string spec = Selectors(selectors[i]);
    if (dice.OneIn(2)) {
      spec += fmt::format(R"(,"extendedResourceName":"example.com/{}")",
                          dice.OneIn(2) ? "gpu" : "other");
    }
    world.classes.push_back(
        fmt::format(R"({{"metadata":{{"name":"{}","creationTimestamp":"2026-03-01T00:00:0{}Z"}},)"
                    R"("spec":{{{}}}}})",
                    kClasses[i], dice.Below(3), spec));
  }
}

void DrawClaims(Dice& dice, const Mix& mix, World& world) {
  const int count = dice.OneIn(2) ? 1 : dice.Between(1, 3);
  for (int i = 0; i < count; ++i) {
    world.claims.push_back(ClaimDraw(dice, mix).Claim(fmt::format("new-{}", i)));
  }
}

void DrawHolders(Dice& dice, World& world) {
  const int share_of_devices = dice.OneIn(3) ? 0 : dice.Between(5, 60);
  for (const DrawnSlice& slice : world.drawn) {
    for (const DrawnDevice& device : slice.devices) {
      if (!dice.Percent(share_of_devices)) continue;
      const int holders = device.shareable ? dice.Between(1, 2) : 1;
      for (int i = 0; i < holders; ++i) {
        const auto number = static_cast<int>(world.held.size());
        std::string where;
        if (dice.OneIn(3)) {
          where = fmt::format(R"(,"nodeSelector":{{"nodeSelectorTerms":[{{{}}}]}})",
                              SelectorTerm(dice.Pick(world.nodes), dice));
        }
        world.held.push_back(fmt::format(
            R"({{"metadata":{{"namespace":"team","name":"held-{0}","uid":"uid-held-{0}"}},)"
            R"("spec":{{"devices":{{"requests":[{{"name":"r","exactly":)"
            R"({{"deviceClassName":"any"}}}}]}}}},)"
            R"("status":{{"allocation":{{"devices":{{"results":[{1}]}}{2}}}}}}})",
            number, ResultOf(dice, slice, device, number), where));
      }
    }
  }
}

}  // namespace tranche::test
