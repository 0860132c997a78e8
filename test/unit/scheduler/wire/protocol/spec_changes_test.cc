// What differs between two versions of a spec, in a line.
#include "scheduler/wire/protocol/spec_changes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace tranche::wire {
namespace THIS_FILE {

TEST(SpecChangesTest, NamesFieldsWithTheirValues) {
  const std::string long_text(100, 'x');
  struct Row {
    std::string before, after, text;
  };
  const Row rows[] = {
      {R"({"a":1})", R"({ "a" : 1 })", ""},
      {R"({"a":1,"b":"x"})", R"({"b":"y","a":1})", R"(b "x" -> "y")"},
      {R"({"lines":[{"nominal":{"gpus":8}},{"model":"l4"}]})",
       R"({"lines":[{"nominal":{"gpus":10}},{"model":"l40s"}]})",
       R"(lines.0.nominal.gpus 8 -> 10; lines.1.model "l4" -> "l40s")"},
      {R"({"lines":[1]})", R"({"lines":[1,2]})", "lines [1] -> [1,2]"},
      {R"({"a":1})", R"({"b":true})", "a 1 -> (none); b (none) -> true"},
      {R"({"a":{"b":1}})", R"({"a":[]})", R"(a {"b":1} -> [])"},
      {R"({"a":null})", "{}", "a null -> (none)"},
      {"{}", R"({"a":")" + long_text + R"("})",
       "a (none) -> \"" + std::string(kMostValueBytes - 1, 'x') + "..."},
      {"", "{}", "its spec"},
      {"[1]", "{}", "its spec"},
      {"{", "{}", "its spec"},
      {"{}", R"({"a":")" + std::string(kMostComparedBytes, 'x') + R"("})", "its spec"},
  };
  for (const Row& row : rows) EXPECT_EQ(SpecChanges(row.before, row.after), row.text) << row.before;
}

TEST(SpecChangesTest, OfManyFieldsTheFirstAreNamed) {
  std::string before = "{";
  std::string after = "{";
  for (std::size_t field = 0; field < kMostFieldsSaid + 3; ++field) {
    before += fmt::format("{}\"f{:02}\":1", field == 0 ? "" : ",", field);
    after += fmt::format("{}\"f{:02}\":2", field == 0 ? "" : ",", field);
  }
  EXPECT_EQ(SpecChanges(before + "}", after + "}"),
            "f00 1 -> 2; f01 1 -> 2; f02 1 -> 2; f03 1 -> 2; f04 1 -> 2; f05 1 -> 2; f06 1 -> 2; "
            "f07 1 -> 2; and 3 more");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
