#include "scheduler/wire/json/yaml_to_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche::embedded {
namespace THIS_FILE {

std::string Convert(const std::string& yaml) {
  const auto json = YamlToJson(yaml);
  return json.ok() ? *json : "error: " + std::string(json.status().message());
}

TEST(YamlToJson, TypesScalarsAsTheCoreSchemaDoes) {
  struct Case {
    const char* yaml;
    const char* json;
  };
  const std::vector<Case> cases = {
      {"1", "1"},
      {"-7", "-7"},
      {"+5", "5"},
      {"007", "7"},
      {"-0", "0"},
      {"0x1F", "31"},
      {"0o17", "15"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"5.", "5.0"},
      {"+1.50", "1.50"},
      {"00.5", "0.5"},
      {"1e3", "1e3"},
      {"1.E+3", "1e+3"},
      {"true", "true"},
      {"True", "true"},
      {"FALSE", "false"},
      {"null", "null"},
      {"~", "null"},
      {"\"1\"", "\"1\""},
      {"'true'", "\"true\""},
      {"'null'", "\"null\""},
      {"''", "\"\""},
      {"|\n  1\n", "\"1\\n\""},
      {">-\n  12\n", "\"12\""},
      {"!!str 12", "\"12\""},
      {"!!int 12", "12"},
      {"yes", "true"},
      {"Y", "true"},
      {"ON", "true"},
      {"off", "false"},
      {"No", "false"},
      {"n", "false"},
      {"oN", "\"oN\""},
      {"\"off\"", "\"off\""},
      {"1_000", "\"1_000\""},
      {"20Gi", "\"20Gi\""},
      {"1.2.3", "\"1.2.3\""},
      {"1e", "\"1e\""},
      {".", "\".\""},
      {"-", "[null]"},
      {"0x", "\"0x\""},
      {"0o8", "\"0o8\""},
      {"12:30:45", "\"12:30:45\""},
      {"2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""},
      {"\"a\\tb\\u00e9\"", "\"a\\tb\xC3\xA9\""},
  };
  for (const Case& c : cases) EXPECT_EQ(Convert(c.yaml), std::string("[") + c.json + "]") << c.yaml;
}

TEST(YamlToJson, WritesMapsAndListsOfBothStyles) {
  EXPECT_EQ(Convert("a:\n  b: [1, {c: x}]\n  d:\n  - 2\n  - e: 3\n    f:\n"),
            R"([{"a":{"b":[1,{"c":"x"}],"d":[2,{"e":3,"f":null}]}}])");
  EXPECT_EQ(Convert("a: []\nb: {}\n"), R"([{"a":[],"b":{}}])");
}

TEST(YamlToJson, MakesEveryScalarKeyText) {
  EXPECT_EQ(Convert("1: a\ntrue: b\n'c d': e\n"), R"([{"1":"a","true":"b","c d":"e"}])");
}

TEST(YamlToJson, KeepsEveryDocumentAndShowsEmptyOnesAsNull) {
  EXPECT_EQ(Convert("a: 1\n---\n# nothing\n---\nb: 2\n...\n"), R"([{"a":1},null,{"b":2}])");
  EXPECT_EQ(Convert(""), "[]");
}

TEST(YamlToJson, CopiesAliasesOut) {
  EXPECT_EQ(Convert("a: &x {k: [1]}\nb: *x\nc: &y 5\nd: *y\n"),
            R"([{"a":{"k":[1]},"b":{"k":[1]},"c":5,"d":5}])");
  EXPECT_EQ(Convert("- &k key\n- *k : 1\n"), R"([["key",{"key":1}]])");
}

TEST(YamlToJson, ForgetsAnchorsAtTheEndOfADocument) {
  EXPECT_NE(Convert("a: &x 1\n---\nb: *x\n").find("error: YAML document 2, line 3"),
            std::string::npos);
}

std::string AliasBomb() {
  std::string yaml = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 0; j < 9; ++j) yaml += "," + below;
    yaml += "]\n";
  }
  return yaml;
}

std::string Nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(YamlToJson, RefusesWhatJsonCannotSayOrWouldGrowWithoutBound) {
  struct Case {
    std::string yaml;
    std::string error;
  };
  const std::vector<Case> cases = {
      {"a: 18446744073709551616", "line 1, column 4: expected an integer within 64 bits"},
      {"a: -9223372036854775809", "expected an integer within 64 bits"},
      {"a: 0x10000000000000000", "expected an integer within 64 bits"},
      {"a: 1e999", "expected a number within double, found \"1e999\""},
      {"a: -.inf", "expected a finite number, found \"-.inf\""},
      {"a: .NaN", "expected a finite number"},
      {"a: &b {x: 1}\nc:\n  <<: *b\n", "line 3, column 3: expected keys written out"},
      {"? [a]\n: b\n", "expected a text key"},
      {"~: b\n", "expected a key, found null"},
      {"a: &x [*x]\n", "expected an anchor that is complete"},
      {"a: !!binary aGk=\n", "found the tag"},
      {"a: !mine {}\n", "found the tag"},
      {"a: [1\n", "YAML document 1, line"},
      {"a: b: c\n", "YAML document 1, line 1"},
      {"[\"\"],", "document 2, line 1, column 5: expected the end of the text or a new document"},
      {"a: 1\n---\n[x],\n", "document 3, line 3, column 4: expected the end of the text"},
      {"---\n,", "document 2, line 2, column 1: expected the end of the text"},
      {AliasBomb(), "bytes from aliases, found more"},
      {Nested(64), "expected at most 63 levels"},
      {Nested(100'000), "expected at most 63 levels"},
  };
  for (const Case& c : cases) {
    const std::string result = Convert(c.yaml);
    EXPECT_EQ(result.rfind("error: ", 0), 0U) << result;
    EXPECT_NE(result.find(c.error), std::string::npos) << result;
  }
  EXPECT_EQ(Convert(Nested(63)), "[" + Nested(63) + "]");
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
