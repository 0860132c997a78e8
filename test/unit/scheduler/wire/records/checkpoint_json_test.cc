// Checkpoints in statuses: what is written is read, and what is malformed is named.
#include "scheduler/wire/records/checkpoint_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/builders/budget.h"

namespace tranche::wire {
namespace THIS_FILE {

using test::Utc;
using ::testing::HasSubstr;

const std::string kId = "00112233445566778899aabbccddeeff";

std::string Budget(const std::string& checkpoint) {
  return fmt::format(R"({{"kind":"GPUBudget","status":{{"checkpoint":{}}}}})", checkpoint);
}

BudgetCheckpoint OfBudget() {
  BudgetCheckpoint checkpoint;
  checkpoint.mark = {kId, 42, Utc(2026, 1, 15, 2) + Millis(7)};
  checkpoint.stand.at = checkpoint.mark.at;
  checkpoint.stand.window = {Utc(2026, 1, 1), Utc(2026, 2, 1)};
  checkpoint.stand.parts = {{{Utc(2026, 1, 1), Utc(2026, 1, 15)}, {kMostCheckpointed, 0}}};
  checkpoint.stand.carried_in = {5, 0, 7};
  checkpoint.stand.debt_in = 12;
  return checkpoint;
}

LeafCheckpoint OfLeaf() {
  return {{kId, 42, Utc(2026, 1, 15)},
          {{"a100-80gb", {Utc(2025, 12, 1), Utc(2026, 1, 1)}, {1, 2}},
           {"h100", {Utc(2026, 1, 1), Utc(2026, 1, 15)}, {kGpuHour * 300, 4}}}};
}

TEST(CheckpointJsonTest, WhatIsWrittenIsRead) {
  const auto budget = DecodeBudgetCheckpoint(Budget(EncodeCheckpoint(OfBudget())));
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_TRUE(**budget == OfBudget());
  const auto leaf = DecodeLeafCheckpoint(Budget(EncodeCheckpoint(OfLeaf())));
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  EXPECT_TRUE(**leaf == OfLeaf());
}

TEST(CheckpointJsonTest, AnObjectWithoutOneHasNone) {
  for (const char* const json :
       {R"({"kind":"GPUBudget"})", R"({"status":{}})", R"({"status":{"checkpoint":null}})"}) {
    const auto budget = DecodeBudgetCheckpoint(json);
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_FALSE(budget->has_value());
    EXPECT_FALSE(DecodeLeafCheckpoint(json)->has_value());
  }
}

TEST(CheckpointJsonTest, WhatIsMalformedIsNamed) {
  struct Case {
    std::string from, to, error;
  };
  const std::string most = FormatInt128(kMostCheckpointed);
  const Case cases[] = {
      {kId, "00", "status.checkpoint.ledger: expected 32 hex digits, found \"00\""},
      {"\"entry\":42", "\"entry\":-1", "status.checkpoint.entry"},
      {"\"entry\":42", "\"entry\":\"x\"", "status.checkpoint.entry"},
      {"2026-01-15T02:00:00.007Z", "soon",
       "status.checkpoint.time: expected an RFC 3339 time, found \"soon\""},
      {"\"" + most + "\"", "\"" + most + "0\"",
       "status.checkpoint.parts[0].compute: expected a whole number of 0 to 10^36"},
      {"\"" + most + "\"", "\"-1\"", "status.checkpoint.parts[0].compute"},
      {"\"" + most + "\"", "\"1.5\"", "status.checkpoint.parts[0].compute"},
      {"\"" + most + "\"", "7", "status.checkpoint.parts[0].compute"},
      {"\"" + most + "\"", "\"" + std::string(300, '9') + "\"",
       "status.checkpoint.parts[0].compute"},
      {"\"end\":\"2026-01-15T00:00:00Z\"", "\"end\":\"2026-01-01T00:00:00Z\"",
       "status.checkpoint.parts[0].end: expected a time after 2026-01-01T00:00:00Z"},
      {"[\"5\",\"0\",\"7\"]", "[\"5\",6]", "status.checkpoint.carried[1]"},
      {"[\"5\",\"0\",\"7\"]",
       "[\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"]",
       "status.checkpoint.carried: expected at most 12 items, found more"},
      {"\"debtIn\":\"12\"", "\"debtIn\":\"-12\"", "status.checkpoint.debtIn"},
      {"\"windowEnd\":\"2026-02-01T00:00:00Z\",", "", "status.checkpoint.windowEnd"},
      {"\"parts\":[{", "\"parts\":[7,{", "status.checkpoint.parts[0]"},
      {"\"parts\":[", "\"parts\":{},\"other\":[", "status.checkpoint.parts"},
  };
  const std::string good = EncodeCheckpoint(OfBudget());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.from + " -> " + c.to.substr(0, 40));
    std::string text = good;
    const std::size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << good;
    text.replace(at, c.from.size(), c.to);
    const auto read = DecodeBudgetCheckpoint(Budget(text));
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.error));
  }
  EXPECT_FALSE(DecodeBudgetCheckpoint(Budget("[]")).ok());
  EXPECT_FALSE(DecodeBudgetCheckpoint("{").ok());
  std::string nameless = EncodeCheckpoint(OfLeaf());
  nameless.replace(nameless.find("h100"), 4, "");
  EXPECT_THAT(std::string(DecodeLeafCheckpoint(Budget(nameless)).status().message()),
              HasSubstr("status.checkpoint.uses[1].model: expected 1 to 317 characters"));
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
