// What selectors say of a device, and where they say that they cannot tell.
#include "scheduler/dra/cel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

struct CelRow {
  std::string_view text;
  Match match;
};

std::string_view Name(Match match) {
  switch (match) {
    case Match::kNo:
      return "no";
    case Match::kYes:
      return "yes";
    case Match::kError:
      return "error";
    case Match::kUnknown:
      break;
  }
  return "unknown";
}

// A 1g.5gb instance of an A100 as NVIDIA's driver publishes it.
Device Slice1g() {
  Device device = MigDevice("gpu-0-mig-19-4-1", "1g.5gb", "GPU-a", "NVIDIA A100-SXM4-40GB", 4864);
  device.attributes.push_back({{"resource.kubernetes.io", "pcieRoot"}, std::string("pci0000:00")});
  device.attributes.push_back({{"gpu.nvidia.com", "index"}, int64_t{3}});
  device.attributes.push_back({{"gpu.nvidia.com", "healthy"}, true});
  device.attributes.push_back({{"gpu.nvidia.com", "driverVersion"}, VersionText{"580.65.6"}});
  device.attributes.push_back({{"gpu.nvidia.com", "roots"}, OtherValue{}});
  Sort(device);
  return device;
}

void Check(const std::vector<CelRow>& rows) {
  const Device device = Slice1g();
  for (const CelRow& row : rows) {
    const Verdict verdict = Expression::Compile(row.text).Matches(device, kGpuDriver);
    EXPECT_EQ(Name(verdict.match), Name(row.match)) << row.text << ": " << verdict.why;
  }
}

TEST(Cel, SelectorsOfClassesAndDemos) {
  Check({
      {"device.driver == 'gpu.nvidia.com' && "
       "device.attributes['gpu.nvidia.com'].type == 'mig'",
       Match::kYes},
      {"device.driver == \"gpu.nvidia.com\" && device.attributes[\"gpu.nvidia.com\"].type == "
       "\"gpu\"",
       Match::kNo},
      {"device.attributes['gpu.nvidia.com'].profile == '1g.5gb'", Match::kYes},
      {"device.attributes['gpu.nvidia.com']['profile'] == '1g.5gb'", Match::kYes},
      {"'profile' in device.attributes['gpu.nvidia.com'] && "
       "device.attributes['gpu.nvidia.com'].profile == '3g.20gb'",
       Match::kNo},
      {"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('4Gi')) >= 0", Match::kYes},
      {"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('10Gi')) >= 0", Match::kNo},
      {"device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('4863Mi'))", Match::kYes},
      {"device.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('4864Mi'))", Match::kNo},
      {"device.capacity['gpu.nvidia.com'].memory == quantity('4864Mi')", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*a100.*$')",
       Match::kYes},
      {"device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*h100.*$')",
       Match::kNo},
      {"device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('580.0.0')) >= 0",
       Match::kYes},
      {"device.attributes['gpu.nvidia.com'].driverVersion.isLessThan(semver('580.65.6-rc.1'))",
       Match::kNo},
      {"device.attributes['gpu.nvidia.com'].index in [1, 3, 5]", Match::kYes},
      {"!(device.attributes['gpu.nvidia.com'].index in [1, 5])", Match::kYes},
      {"device.allowMultipleAllocations == true", Match::kNo},
      {"device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'", Match::kYes},
  });
}

TEST(Cel, AMissingAttributeIsAnErrorAndAMissingDomainIsEmpty) {
  Check({
      {"device.attributes['gpu.nvidia.com'].numa == 1", Match::kError},
      {"device.capacity['gpu.nvidia.com'].bandwidth.isLessThan(quantity('1'))", Match::kError},
      {"device.attributes['other.com'].numa == 1", Match::kError},
      {"'numa' in device.attributes['other.com']", Match::kNo},
      {"'other.com' in device.attributes", Match::kNo},
      {"'gpu.nvidia.com' in device.attributes", Match::kYes},
      {"has(device.attributes['gpu.nvidia.com'].profile)", Match::kYes},
      {"has(device.attributes['gpu.nvidia.com'].numa)", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].?numa.orValue(1) == 1", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].?index.orValue(1) == 1", Match::kNo},
      {"device.attributes['gpu.nvidia.com'][?'index'].hasValue()", Match::kYes},
      {"device.attributes.?other.?numa.hasValue()", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].?numa.value() == 1", Match::kError},
      // The facts' example of what looks right and is not.
      {"device.attributes['memory'].compareTo(quantity('10Gi')) >= 0", Match::kError},
  });
}

TEST(Cel, AndAndOrAbsorb) {
  Check({
      {"false && device.attributes['gpu.nvidia.com'].numa == 1", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].numa == 1 && false", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].numa == 1 || true", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].numa == 1 || false", Match::kError},
      {"true && device.attributes['gpu.nvidia.com'].numa == 1", Match::kError},
      {"[1].exists(x, x == 1) && false", Match::kNo},
      {"[1].exists(x, x == 1) || true", Match::kYes},
      {"[1].exists(x, x == 1) && true", Match::kUnknown},
      // It could be false, which would win, or true, which would leave the error.
      {"[1].exists(x, x == 1) && device.attributes['gpu.nvidia.com'].numa == 1", Match::kUnknown},
      {"true ? false : device.attributes['gpu.nvidia.com'].numa == 1", Match::kNo},
      {"1 && false", Match::kNo},
      {"1 && true", Match::kError},
      {"true && true && true && true && false || true", Match::kYes},
  });
}

TEST(Cel, TypesAreKeptApart) {
  Check({
      {"device.attributes['gpu.nvidia.com'].index == '3'", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].index != '3'", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].index < '3'", Match::kError},
      {"device.attributes['gpu.nvidia.com'].index.startsWith('3')", Match::kError},
      {"!device.attributes['gpu.nvidia.com'].index", Match::kError},
      {"device.attributes['gpu.nvidia.com'].healthy", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].index", Match::kError},
      {"device.attributes['gpu.nvidia.com'].profile < '2g'", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].driverVersion == semver('580.65.6+build.7')",
       Match::kYes},
      // Versions and quantities on the left are compared with their like alone.
      {"device.attributes['gpu.nvidia.com'].driverVersion == '580.65.6'", Match::kError},
      {"device.attributes['gpu.nvidia.com'].driverVersion != '580.65.6'", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].profile == semver('580.65.6')", Match::kNo},
      {"quantity('1') == device.attributes['gpu.nvidia.com'].index", Match::kError},
      {"device.attributes['gpu.nvidia.com'].driverVersion == null", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].driverVersion in ['1', '2']", Match::kError},
      {"device.attributes['gpu.nvidia.com'].driverVersion in ['1'] && false", Match::kError},
      {"true || device.attributes['gpu.nvidia.com'].driverVersion in ['1']", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].driverVersion in ['1', device.driver]", Match::kNo},
      {"device.attributes['gpu.nvidia.com'].absent in []", Match::kNo},
      {"sign(quantity('-2')) == -1", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].driverVersion.major() == 580", Match::kYes},
      {"-device.attributes['gpu.nvidia.com'].index + 4 * 2 == 5", Match::kYes},
      {"7 / 2 == 3 && 7 % 2 == 1", Match::kYes},
      {"1 / 0 == 1", Match::kError},
      {"9223372036854775807 + 1 > 0", Match::kError},
      {"semver('1.2').major() == 1", Match::kError},
      {"isSemver('1.2')", Match::kNo},
      {"isQuantity('1Gi')", Match::kYes},
      {"quantity('1500m').isInteger()", Match::kNo},
      {"quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi')", Match::kYes},
      {"quantity('2Gi') == quantity('1Gi').add(quantity('1Gi'))", Match::kError},
      {"quantity('2Gi').compareTo(quantity('1Gi').add(quantity('1Gi'))) == 0", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].profile.size() == 6", Match::kYes},
      {"device.attributes['gpu.nvidia.com'].uuid.contains('IG') && "
       "'a.b'.endsWith('.b') && 'A'.lowerAscii() == 'a' && 'a'.upperAscii() == 'A'",
       Match::kYes},
  });
}

TEST(Cel, WhatIsNotReadIsUnknown) {
  Check({
      {"cel.bind(gpu, device.attributes['gpu.nvidia.com'], gpu.profile == '1g.5gb')",
       Match::kUnknown},
      {"device.attributes['gpu.nvidia.com'].roots == 'a'", Match::kUnknown},
      {"device.attributes['gpu.nvidia.com'].roots.includes('a')", Match::kUnknown},
      {"device.attributes['gpu.nvidia.com'].productName.matches('(a|b)')", Match::kUnknown},
      {"1.5 < 2.0", Match::kUnknown},
      {"1u == 1u", Match::kUnknown},
      {"b'a' == b'a'", Match::kUnknown},
      {"device.futureField == 'x'", Match::kUnknown},
      {"sign(quantity('9Ei')) == 1", Match::kUnknown},
      {"", Match::kUnknown},
      {"true true", Match::kUnknown},
      {"true &&", Match::kUnknown},
      {"(true", Match::kUnknown},
      {"'open", Match::kUnknown},
      {"{'a': 1}.a == 1", Match::kUnknown},
      {"device.attributes['gpu.nvidia.com'].size() > 3", Match::kUnknown},
  });
}

TEST(Cel, WordsAndBlanks) {
  Check({
      {" true // and why\n", Match::kYes},
      {"r'\\d' == '\\\\d'", Match::kYes},
      {"'\\x41\\'' == \"A'\"", Match::kYes},
      {"0x10 == 16", Match::kYes},
      {"1 in [1, 2,]", Match::kYes},
      {"'a' in []", Match::kNo},
      {"null == null", Match::kYes},
      {"!!true", Match::kYes},
      {"1 < 2 == true", Match::kYes},
  });
}

TEST(Cel, SaysWhy) {
  const Device device = Slice1g();
  const auto why = [&device](std::string_view text) {
    return Expression::Compile(text).Matches(device, kGpuDriver).why;
  };
  EXPECT_EQ(why("device.attributes['gpu.nvidia.com'].numa == 1"), "no attribute numa");
  EXPECT_EQ(why("cel.bind(a, b, c)"), "not supported bind()");
  EXPECT_EQ(why("true &&"), "no operand at byte 7");
}

TEST(Cel, LimitsAreKept) {
  const Device device = Slice1g();
  const auto match = [&device](const std::string& text) {
    return Expression::Compile(text).Matches(device, kGpuDriver).match;
  };
  const auto repeated = [](std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  EXPECT_EQ(match(repeated("(", 50) + "true" + repeated(")", 50)), Match::kYes);
  EXPECT_EQ(match(repeated("(", 100) + "true" + repeated(")", 100)), Match::kUnknown);
  EXPECT_EQ(match(repeated("!", 100) + "true"), Match::kUnknown);
  EXPECT_EQ(match("device" + repeated(".a", 100) + " == 1"), Match::kUnknown);
  // A chain of && is one operation, however long.
  EXPECT_EQ(match(repeated("true && ", 1000) + "true"), Match::kYes);
  EXPECT_EQ(match(repeated("true && ", 2000) + "true"), Match::kUnknown) << "over 10 KiB";
}

TEST(Cel, CompilesATextOnce) {
  Expressions expressions;
  const Expression& first = expressions.Get("true");
  EXPECT_EQ(&first, &expressions.Get("true"));
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
