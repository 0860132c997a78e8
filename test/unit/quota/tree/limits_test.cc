#include "quota/tree/limits.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche {
namespace THIS_FILE {

using testing::HasSubstr;

QuotaAmount MilliGpus(int64_t milli) {
  return {QuotaAmount::Form::kGpus, MilliGpu::Of(milli), {}, Mebibytes::Zero()};
}

QuotaAmount Slices(std::vector<std::pair<std::string, int64_t>> slices) {
  return {QuotaAmount::Form::kSlices, MilliGpu::Zero(), std::move(slices), Mebibytes::Zero()};
}

QuotaAmount Memory(int64_t mib) {
  return {QuotaAmount::Form::kMemory, MilliGpu::Zero(), {}, Mebibytes::Of(mib)};
}

std::string ErrorOf(const QuotaAmount& amount, std::string_view model) {
  const absl::StatusOr<ChargeLimit> limit = ToLimit(amount, model);
  return limit.ok() ? "none" : std::string(limit.status().message());
}

TEST(LimitsTest, AmountsOfEveryFormBecomeLimits) {
  const struct {
    const char* model;
    QuotaAmount amount;
    ChargeLimit limit;
  } kCases[] = {
      {"h200", MilliGpus(0), {0, 0}},
      {"h200", MilliGpus(7500), {135'135'000, 135'135'000}},
      {"any", MilliGpus(1), {18'018, 18'018}},
      {"a-model-of-next-year", MilliGpus(2000), {36'036'000, 36'036'000}},
      // Seven small slices are a whole GPU's compute and 7/8 of its memory.
      {"h200", Slices({{"1g.18gb", 7}}), {18'018'000, 15'765'750}},
      {"h200", Slices({{"3g.71gb", 1}, {"4g.71gb", 1}}), {18'018'000, 18'018'000}},
      {"h200", Slices({}), {0, 0}},
      // One name, two boards: the profile, not its name's number, says how much.
      {"h200", Slices({{"1g.35gb", 1}}), {2'574'000, 4'504'500}},
      {"gb300", Slices({{"1g.35gb", 1}}), {2'574'000, 2'252'250}},
      // A model of two boards.
      {"h20", Slices({{"1g.12gb", 1}, {"1g.18gb", 1}}), {5'148'000, 4'504'500}},
      {"h200", Memory(20'480), {{}, 2'566'642}},
      {"h200", Memory(143'771), {{}, 18'018'000}},
      {"h20-141gb", Memory(143'771), {{}, 18'018'000}},
      {"gh200-96gb", Memory(97'871), {{}, 18'018'000}},
      {"l4", Memory(2 * 23'034), {{}, 36'036'000}},
      {"v100-32gb", Memory(32'510), {{}, 18'018'000}},
      {"t4", Memory(0), {{}, 0}},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<ChargeLimit> limit = ToLimit(c.amount, c.model);
    ASSERT_TRUE(limit.ok()) << c.model << ": " << limit.status();
    EXPECT_EQ(limit->compute, c.limit.compute) << c.model;
    EXPECT_EQ(limit->memory, c.limit.memory) << c.model;
  }
}

TEST(LimitsTest, AmountsThatMeanNothingAreRefusedInWords) {
  EXPECT_EQ(ErrorOf(Slices({{"1g.5gb", 1}}), "h200"),
            "slices.1g.5gb: expected a MIG profile of h200, found 1g.5gb");
  EXPECT_EQ(ErrorOf(Slices({{"1g.5gb", 1}}), "l4"),
            "slices.1g.5gb: expected a MIG profile of l4, found 1g.5gb");
  EXPECT_EQ(ErrorOf(Slices({{"1g.5gb", 1}}), "any"),
            "slices.1g.5gb: expected a line of one GPU model, found any");
  EXPECT_EQ(ErrorOf(Memory(1024), "any"),
            "gpuMemory: expected a line of a GPU model of known memory, found any");
  EXPECT_THAT(ErrorOf(Memory(1024), "h300"), HasSubstr("found h300"));
  EXPECT_THAT(ErrorOf(Memory(1024), "p100-12gb"), HasSubstr("known memory"));
}

TEST(LimitsTest, ALineKeepsAbsentAndZeroLimitsApart) {
  QuotaLine line{"h200", MilliGpus(8000), MilliGpus(0), std::nullopt};
  absl::StatusOr<LineLimits> limits = ToLimits(line);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->nominal, ChargeLimit(8 * kQuantaPerGpu, 8 * kQuantaPerGpu));
  EXPECT_EQ(limits->borrow_limit, ChargeLimit(0, 0));
  EXPECT_EQ(limits->lend_limit, ChargeLimit());

  line.borrow_limit = std::nullopt;
  line.lend_limit = Memory(143'771);
  limits = ToLimits(line);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->borrow_limit, ChargeLimit());
  EXPECT_EQ(limits->lend_limit, ChargeLimit({}, kQuantaPerGpu));
}

TEST(LimitsTest, ErrorsOfALineSayWhichAmount) {
  const QuotaAmount good = MilliGpus(1000);
  const QuotaAmount bad = Slices({{"9g.1gb", 1}});
  const struct {
    QuotaLine line;
    const char* path;
  } kCases[] = {
      {{"h200", bad, good, good}, "nominal.slices.9g.1gb: expected a MIG profile of h200"},
      {{"h200", good, bad, good}, "borrowLimit.slices.9g.1gb: "},
      {{"h200", good, good, bad}, "lendLimit.slices.9g.1gb: "},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<LineLimits> limits = ToLimits(c.line);
    ASSERT_FALSE(limits.ok()) << c.path;
    EXPECT_EQ(limits.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(limits.status().message()), testing::StartsWith(c.path));
  }
}

// ToLimit takes the first board of a model that knows the profile.
TEST(LimitsTest, BoardsOfOneModelAgreeOnWhatAProfileCosts) {
  std::map<std::pair<std::string, std::string_view>, Charge> seen;
  for (const MigBoard& board : MigBoards()) {
    for (const std::string_view product : board.products) {
      for (const MigProfile& profile : board.profiles) {
        const Charge charge = ChargeOfMig(board, profile);
        const auto at = seen.emplace(std::pair(GpuModelName(product), profile.name), charge).first;
        EXPECT_EQ(at->second, charge) << product << " " << profile.name;
      }
    }
  }
  EXPECT_GT(seen.size(), 100U);
}

TEST(LimitsTest, AmountsBeyondCountingAreNoLimit) {
  EXPECT_EQ(ToLimit(MilliGpus(INT64_MAX), "any").value(), ChargeLimit());
  EXPECT_EQ(ToLimit(Slices({{"7g.141gb", INT64_MAX}}), "h200").value(), ChargeLimit());
  EXPECT_EQ(ToLimit(Memory(INT64_MAX), "h200").value(), ChargeLimit());
}

TEST(LimitsTest, BothDimensionsAreComparedAndSummedApart) {
  const ChargeLimit memory({}, 9);
  EXPECT_TRUE(memory.Allows({kQuantaPerGpu, 9}));
  EXPECT_FALSE(memory.Allows({0, 10}));
  EXPECT_EQ(memory.Minus({5, 4}), ChargeLimit({}, 5));
  EXPECT_EQ(memory.Plus(Charge{1, 2}), ChargeLimit({}, 11));
  EXPECT_EQ(memory.Smaller(), Limit(9));
  EXPECT_EQ(memory.Larger(), Limit());
  EXPECT_EQ(AddSaturating(Charge{1, kSaturated}, Charge{2, 3}), (Charge{3, kSaturated}));
}

}  // namespace THIS_FILE
}  // namespace tranche
