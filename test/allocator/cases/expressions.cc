// Texts of CEL. Some are no expressions at all to CEL, which knows types; such a text is refused
// when an object with it is created.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/allocator/cases/world.h"

namespace tranche::test {
namespace {

constexpr std::string_view kSelectors[] = {
    "device.driver == 'gpu.nvidia.com'",
    "device.attributes['gpu.nvidia.com'].?profile.orValue('') == '1g.5gb'",
    "device.attributes['gpu.nvidia.com'].?type.orValue('gpu') != 'mig'",
    "'memory' in device.capacity['gpu.nvidia.com'] && "
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('5Gi')) >= 0",
    "device.capacity['gpu.nvidia.com'].?memory.orValue(quantity('0')).isGreaterThan("
    "quantity('4Gi'))",
    "device.attributes['gpu.nvidia.com'].?index.orValue(0) < 3",
    "has(device.attributes['gpu.nvidia.com'].healthy) && "
    "device.attributes['gpu.nvidia.com'].healthy",
    "'productName' in device.attributes['gpu.nvidia.com'] && "
    "device.attributes['gpu.nvidia.com'].productName.startsWith('NVIDIA')",
    "'driverVersion' in device.attributes['gpu.nvidia.com'] ? "
    "device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0')) : true",
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    "device.attributes[device.driver].?type.orValue('gpu') in ['gpu', 'mig']",
    "device.attributes['resource.kubernetes.io'].?numaNode.hasValue()",
};
// These fail on devices that lack what they ask for.
constexpr std::string_view kUnguarded[] = {
    "device.attributes['gpu.nvidia.com'].type == 'gpu'",
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('4Gi')) >= 0",
    "device.attributes['gpu.nvidia.com'].index in [0, 1, 2]",
    "device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('570.0.0')) > 0",
};
// One that Tranche does not read.
constexpr std::string_view kBeyond =
    "cel.bind(a, device.attributes['gpu.nvidia.com'], a.?type.orValue('') == 'gpu')";

// An expression by the type its value mostly has.
class ExpressionDraw {
 public:
  explicit ExpressionDraw(Dice& dice) : dice_(dice) {}

  std::string Truth(int depth) {
    if (depth <= 0) return Leaf();
    switch (dice_.Below(14)) {
      case 0:
        return fmt::format("{} && {}", Grouped(depth), Grouped(depth));
      case 1:
        return fmt::format("{} || {}", Grouped(depth), Grouped(depth));
      case 2:
        return "!" + Grouped(depth);
      case 3:
        return fmt::format("{} ? {} : {}", Grouped(depth), Grouped(depth), Grouped(depth));
      case 4:
        return fmt::format("{} {} {}", Any(depth), dice_.Pick(kEquals), Any(depth));
      case 5:
        return fmt::format("{} {} {}", Number(depth), dice_.Pick(kCompares), Number(depth));
      case 6:
        return fmt::format("{}.{}({})", Text(depth), dice_.Pick(kTextTests), Text(depth - 1));
      case 7:
        return fmt::format("{}.{}({})", Amount(depth), dice_.Pick(kOrders), Amount(depth - 1));
      case 8:
        return fmt::format("{}.{}({})", Version(depth), dice_.Pick(kOrders), Version(depth - 1));
      case 9:
        return Membership(depth);
      case 10:
        return fmt::format("{}.matches('{}')", Text(depth), dice_.Pick(kPatterns));
      case 11:
        return fmt::format("{}.compareTo({}) {} 0", dice_.OneIn(2) ? Amount(depth) : Version(depth),
                           dice_.OneIn(2) ? Amount(0) : Version(0), dice_.Pick(kCompares));
      case 12:
        return fmt::format("is{}({})", dice_.OneIn(2) ? "Quantity" : "Semver", Text(depth - 1));
      default:
        return Leaf();
    }
  }

 private:
  std::string Grouped(int depth) { return "(" + Truth(depth - 1) + ")"; }

  std::string Leaf() {
    switch (dice_.Below(8)) {
      case 0:
        return dice_.OneIn(2) ? "true" : "false";
      case 1:
        return "device.allowMultipleAllocations";
      case 2:
        return fmt::format("has({})", Attribute());
      case 3:
        return fmt::format("'{}' in device.attributes[{}]", dice_.Pick(kNames), Domain());
      case 4:
        return Optional() + ".hasValue()";
      case 5:
        return fmt::format("{} == {}", Attribute(), Literal());
      case 6:
        return Attribute();
      default:
        return fmt::format("{} in device.{}", Domain(), dice_.OneIn(2) ? "attributes" : "capacity");
    }
  }

  std::string Domain() {
    return dice_.OneIn(4) ? "device.driver" : fmt::format("'{}'", dice_.Pick(kDomains));
  }
  std::string Attribute() {
    const std::string map = fmt::format("device.attributes[{}]", Domain());
    return dice_.OneIn(3) ? fmt::format("{}['{}']", map, dice_.Pick(kNames))
                          : fmt::format("{}.{}", map, dice_.Pick(kNames));
  }
  // One that most devices have.
  std::string Named(std::string_view name) {
    return fmt::format("device.attributes['gpu.nvidia.com'].{}", name);
  }
  std::string Optional() {
    switch (dice_.Below(4)) {
      case 0:
        return fmt::format("device.attributes[?{}].{}", Domain(), dice_.Pick(kNames));
      case 1:
        return fmt::format("device.attributes[?{}].?{}", Domain(), dice_.Pick(kNames));
      case 2:
        return fmt::format("device.attributes[{}][?'{}']", Domain(), dice_.Pick(kNames));
      default:
        return fmt::format("device.attributes[{}].?{}", Domain(), dice_.Pick(kNames));
    }
  }

  std::string Literal() {
    switch (dice_.Below(7)) {
      case 0:
        return std::to_string(dice_.Between(-2, 5));
      case 1:
        return dice_.OneIn(2) ? "true" : "false";
      case 2:
        return fmt::format("quantity('{}')", dice_.Pick(kAmounts));
      case 3:
        return fmt::format("semver('{}')", dice_.Pick(kVersions));
      case 4:
        return dice_.OneIn(3) ? "null" : "0x1f";
      default:
        return fmt::format("'{}'", dice_.Pick(kTexts));
    }
  }
  std::string Any(int depth) {
    switch (dice_.Below(7)) {
      case 0:
        return Literal();
      case 1:
        return Text(depth - 1);
      case 2:
        return Number(depth - 1);
      case 3:
        return Amount(depth - 1);
      case 4:
        return fmt::format("{}.orValue({})", Optional(), Literal());
      case 5:
        return dice_.OneIn(2) ? Optional() + ".value()" : Version(depth - 1);
      default:
        return Attribute();
    }
  }

  std::string Text(int depth) {
    if (depth <= 0 && dice_.OneIn(2)) return fmt::format("'{}'", dice_.Pick(kTexts));
    if (depth <= 0) return dice_.OneIn(3) ? Attribute() : Named(dice_.Pick(kTextNames));
    switch (dice_.Below(6)) {
      case 0:
        return "device.driver";
      case 1:
        return Text(depth - 1) + (dice_.OneIn(2) ? ".lowerAscii()" : ".upperAscii()");
      case 2:
        return fmt::format("{}.orValue('{}')", Optional(), dice_.Pick(kTexts));
      case 3:
        return fmt::format("({} + {})", Text(0), Text(0));
      default:
        return Text(0);
    }
  }
  std::string Number(int depth) {
    if (depth <= 0 && dice_.OneIn(2)) return std::to_string(dice_.Between(-2, 5));
    if (depth <= 0) return dice_.OneIn(3) ? Attribute() : Named("index");
    switch (dice_.Below(9)) {
      case 0:
        return fmt::format("({} {} {})", Number(depth - 1), dice_.Pick(kSigns), Number(0));
      case 1:
        return fmt::format("size({})", Text(depth - 1));
      case 2:
        return Text(depth - 1) + ".size()";
      case 3:
        return Amount(depth - 1) + (dice_.OneIn(2) ? ".sign()" : ".asInteger()");
      case 4:
        return Version(depth - 1) + "." + std::string(dice_.Pick(kParts)) + "()";
      case 5:
        return fmt::format("{}.orValue({})", Optional(), dice_.Between(0, 3));
      case 6:
        return "-" + Number(0);
      default:
        return Number(0);
    }
  }
  std::string Amount(int depth) {
    if (depth <= 0 || dice_.OneIn(3)) return fmt::format("quantity('{}')", dice_.Pick(kAmounts));
    switch (dice_.Below(4)) {
      case 0:
        return fmt::format("{}.{}({})", Amount(depth - 1), dice_.OneIn(2) ? "add" : "sub",
                           dice_.OneIn(3) ? "3" : Amount(0));
      case 1:
        return fmt::format("device.capacity[{}].?memory.orValue(quantity('1Gi'))", Domain());
      default:
        return fmt::format("device.capacity[{}].{}", Domain(), dice_.Pick(kCapacities));
    }
  }
  std::string Version(int depth) {
    if (depth <= 0 || dice_.OneIn(3)) return fmt::format("semver('{}')", dice_.Pick(kVersions));
    return dice_.OneIn(3) ? fmt::format("semver({})", Text(0))
                          : fmt::format("device.attributes[{}].driverVersion", Domain());
  }
  std::string Membership(int depth) {
    std::vector<std::string> entries;
    const bool numbers = dice_.OneIn(2);
    for (int i = dice_.Below(4); i > 0; --i) {
      entries.push_back(numbers ? Number(0) : Text(0));
    }
    return fmt::format("{} in [{}]",
                       dice_.OneIn(8) ? Any(depth)
                       : numbers      ? Number(0)
                                      : Text(0),
                       fmt::join(entries, ", "));
  }

  static constexpr std::string_view kEquals[] = {"==", "!="};
  static constexpr std::string_view kCompares[] = {"==", "!=", "<", "<=", ">", ">="};
  static constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "%"};
  static constexpr std::string_view kTextTests[] = {"startsWith", "endsWith", "contains"};
  static constexpr std::string_view kOrders[] = {"isGreaterThan", "isLessThan"};
  static constexpr std::string_view kParts[] = {"major", "minor", "patch"};
  static constexpr std::string_view kPatterns[] = {
      "^NVIDIA.*", "[a-c]+00", "T4$", "^1g\\\\.5gb$", "g|x", "(A|H)100", "\\\\d+g"};
  static constexpr std::string_view kDomains[] = {"gpu.nvidia.com", "gpu.nvidia.com",
                                                  "resource.kubernetes.io", "absent.example.com"};
  static constexpr std::string_view kNames[] = {
      "type", "profile", "productName", "index", "healthy", "driverVersion", "numaNode", "absent"};
  static constexpr std::string_view kTextNames[] = {"type", "profile", "productName"};
  static constexpr std::string_view kCapacities[] = {"memory", "memory", "shares",
                                                     "multiprocessors"};
  static constexpr std::string_view kTexts[] = {
      "gpu", "mig", "1g.5gb", "NVIDIA", "A100", "", "Tesla T4", "580.65.6", "1.0", "5Gi", "ä"};
  static constexpr std::string_view kAmounts[] = {"5Gi", "0",   "1500m", "98",   "1024Mi", "1Gi",
                                                  "-2",  "1e3", "0.5",   "4000", "x",      "1 Gi"};
  static constexpr std::string_view kVersions[] = {"580.65.6", "580.65.6-rc.1",    "1.2.3+build.9",
                                                   "570.0.0",  "1.0.0-alpha.beta", "1.0.0-2",
                                                   "1.0",      "v1.2.3",           "01.2.3"};
  Dice& dice_;
};

}  // namespace

std::string DrawSelector(Dice& dice) {
  if (dice.OneIn(60)) return std::string(kBeyond);
  return std::string(dice.OneIn(15) ? dice.Pick(kUnguarded) : dice.Pick(kSelectors));
}

std::string DrawExpression(Dice& dice) { return ExpressionDraw(dice).Truth(dice.Between(1, 3)); }

}  // namespace tranche::test
