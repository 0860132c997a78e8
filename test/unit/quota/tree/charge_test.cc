#include "quota/tree/charge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "topology/mig.h"

namespace tranche {
namespace THIS_FILE {

constexpr Mebibytes kH200 = Mebibytes::Of(143771);

const MigBoard& Board(std::string_view product) {
  const MigBoard* board = FindMigBoard(product, Mebibytes::Zero());
  EXPECT_NE(board, nullptr) << product;
  return *board;
}

// Charges of instances named "4g.71gb", "3g.71gb", ...
std::vector<Charge> Charges(const MigBoard& board, std::initializer_list<const char*> profiles) {
  std::vector<Charge> charges;
  for (const char* name : profiles) {
    charges.push_back(ChargeOfMig(board, *FindMigProfile(board, name)));
  }
  return charges;
}

Charge Sum(const std::vector<Charge>& charges) {
  Charge sum;
  for (const Charge& charge : charges) sum = AddSaturating(sum, charge);
  return sum;
}

TEST(ChargeTest, SharesOfADeviceAreExact) {
  const struct {
    int64_t milli, mib, card;
    Charge charge;
  } kCases[] = {
      {1000, 143771, 143771, {18'018'000, 18'018'000}},
      {500, 71885, 143771, {9'009'000, 9'009'000}},  // floor of an odd half
      {1, 143, 143771, {18'018, 18'018}},
      {0, 20480, 143771, {0, 2'566'642}},
      {0, 1, 143771, {0, 126}},
      {0, 143771, 143771, {0, 18'018'000}},
      {300, 20480, 143771, {5'405'400, 2'566'642}},
      {250, 0, 143771, {4'504'500, 0}},
      {0, 0, 143771, {0, 0}},
      {0, 200000, 143771, {0, 18'018'000}},
      {1000, 0, 0, {18'018'000, 18'018'000}},  // a card of unknown memory
      {250, 0, 0, {4'504'500, 4'504'500}},
      {0, 4096, 0, {0, 18'018'000}},
  };
  for (const auto& c : kCases) {
    const Charge charge =
        ChargeOfShare(MilliGpu::Of(c.milli), Mebibytes::Of(c.mib), Mebibytes::Of(c.card));
    EXPECT_EQ(charge.compute, c.charge.compute) << c.milli << " " << c.mib << " " << c.card;
    EXPECT_EQ(charge.memory, c.charge.memory) << c.milli << " " << c.mib << " " << c.card;
  }
}

TEST(ChargeTest, EveryFractionOfEveryCardIsChargedAsThatFraction) {
  for (const int64_t card : {15109, 22731, 81559, 143771, 183359}) {
    for (int64_t milli = 1; milli <= 1000; ++milli) {
      const Charge charge = ChargeOfShare(MilliGpu::Of(milli), Mebibytes::Of(card * milli / 1000),
                                          Mebibytes::Of(card));
      ASSERT_EQ(charge, (Charge{18'018 * milli, 18'018 * milli})) << milli << " of " << card;
    }
  }
}

TEST(ChargeTest, MemoryIsNeverChargedBelowItsPartOfTheCard) {
  for (int64_t mib = 0; mib <= kH200.count(); ++mib) {
    const Charge charge = ChargeOfShare(MilliGpu::Zero(), Mebibytes::Of(mib), kH200);
    ASSERT_GE(charge.memory * kH200.count(), kQuantaPerGpu * mib);
    ASSERT_LT((charge.memory - 1) * kH200.count(), kQuantaPerGpu * mib);
  }
}

TEST(ChargeTest, TheLargestMemoryACounterCanHoldDoesNotOverflow) {
  const Mebibytes huge = Mebibytes::Of(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ChargeOfShare(kWholeGpu, huge, huge), (Charge{kQuantaPerGpu, kQuantaPerGpu}));
  EXPECT_EQ(ChargeOfShare(MilliGpu::Zero(), Mebibytes::Of(huge.count() / 2), huge).memory,
            kQuantaPerGpu / 2);
}

TEST(ChargeTest, MigIsChargedBySlicesAndUnits) {
  const struct {
    const char* product;
    const char* profile;
    Charge charge;
  } kCases[] = {
      {"NVIDIA-H200", "1g.18gb", {2'574'000, 2'252'250}},
      {"NVIDIA-H200", "1g.18gb+me", {2'574'000, 2'252'250}},
      {"NVIDIA-H200", "1g.35gb", {2'574'000, 4'504'500}},
      {"NVIDIA-H200", "2g.35gb", {5'148'000, 4'504'500}},
      {"NVIDIA-H200", "3g.71gb", {7'722'000, 9'009'000}},
      {"NVIDIA-H200", "4g.71gb", {10'296'000, 9'009'000}},
      {"NVIDIA-H200", "7g.141gb", {18'018'000, 18'018'000}},
      // The same name is a quarter of the memory above and an eighth here.
      {"NVIDIA-GB300", "1g.35gb", {2'574'000, 2'252'250}},
      {"NVIDIA-A30", "2g.12gb+me", {9'009'000, 9'009'000}},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "1g.24gb-me", {4'504'500, 4'504'500}},
  };
  for (const auto& c : kCases) {
    const MigBoard& board = Board(c.product);
    const Charge charge = ChargeOfMig(board, *FindMigProfile(board, c.profile));
    EXPECT_EQ(charge.compute, c.charge.compute) << c.product << " " << c.profile;
    EXPECT_EQ(charge.memory, c.charge.memory) << c.product << " " << c.profile;
  }
}

TEST(ChargeTest, AFullGpuOfSlicesIsWorthOneGpu) {
  const MigBoard& h200 = Board("NVIDIA-H200");
  const std::vector<std::vector<Charge>> kSets = {
      Charges(h200, {"4g.71gb", "3g.71gb"}),
      Charges(h200, {"3g.71gb", "3g.71gb"}),
      Charges(h200, {"1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb"}),
      Charges(h200, {"1g.35gb", "1g.35gb", "1g.35gb", "1g.35gb"}),
  };
  for (const std::vector<Charge>& set : kSets) {
    EXPECT_EQ(GpuEquivalents(Sum(set)), kQuantaPerGpu);
    EXPECT_EQ(MilliGpuRoundedUp(GpuEquivalents(Sum(set))), kWholeGpu);
  }
}

// Every multiset of instances that one H200 can hold, media profiles aside.
std::vector<std::vector<Charge>> LegalH200Sets() {
  const MigBoard& board = Board("NVIDIA-H200");
  std::vector<std::vector<Charge>> sets;
  std::vector<int> counts(board.profiles.size(), 0);
  for (size_t i = 0; i < counts.size();) {
    if (LayOutMig(board, counts, 1).has_value()) {
      std::vector<Charge>& set = sets.emplace_back();
      for (size_t p = 0; p < counts.size(); ++p) {
        set.insert(set.end(), static_cast<size_t>(counts[p]),
                   ChargeOfMig(board, board.profiles[p]));
      }
    }
    for (i = 0; i < counts.size(); ++i) {
      const MigProfile& profile = board.profiles[i];
      if (profile.name != "1g.18gb+me" && counts[i] < profile.max_instances) {
        ++counts[i];
        break;
      }
      counts[i] = 0;
    }
  }
  return sets;
}

TEST(ChargeTest, NoLegalSetIsWorthMoreThanAGpuUnlessMaximaAreSummed) {
  int64_t worst = 0;
  int above = 0;
  const std::vector<std::vector<Charge>> sets = LegalH200Sets();
  EXPECT_EQ(sets.size(), 78U);
  for (const std::vector<Charge>& set : sets) {
    EXPECT_LE(GpuEquivalents(Sum(set)), kQuantaPerGpu);
    int64_t wrong = 0;
    for (const Charge& charge : set) wrong += GpuEquivalents(charge);
    if (wrong > kQuantaPerGpu) ++above;
    worst = std::max(worst, wrong);
  }
  EXPECT_EQ(above, 18);
  EXPECT_EQ(worst, kQuantaPerGpu / 28 * 31);
}

TEST(ChargeTest, ReplicasAreExactUpToSixteenAndNeverExceedTheGpu) {
  for (int64_t n = 1; n <= 100; ++n) {
    const Charge charge = ChargeOfReplica(n);
    EXPECT_EQ(charge.compute, charge.memory);
    EXPECT_LE(charge.compute * n, kQuantaPerGpu);
    if (n <= 16) {
      EXPECT_EQ(charge.compute * n, kQuantaPerGpu) << n;
    }
  }
}

TEST(ChargeTest, MpsReplicasGetAWholePercentageOfTheThreads) {
  const struct {
    int64_t n;
    Charge charge;
  } kCases[] = {
      {1, {18'018'000, 18'018'000}}, {2, {9'009'000, 9'009'000}},
      {3, {5'945'940, 6'006'000}},  // 33 percent, a third
      {7, {2'522'520, 2'574'000}},  // 14 percent, a seventh
      {17, {900'900, 1'059'882}},    {100, {180'180, 180'180}},
      {101, {0, 178'396}},
  };
  for (const auto& c : kCases) EXPECT_EQ(ChargeOfMpsReplica(c.n), c.charge) << c.n;
}

TEST(ChargeTest, MemoryWithoutAWordAboutComputeCountsInBoth) {
  EXPECT_EQ(ChargeOfMemory(Mebibytes::Of(20480), kH200), (Charge{2'566'642, 2'566'642}));
  EXPECT_EQ(ChargeOfMemory(kH200, kH200), (Charge{kQuantaPerGpu, kQuantaPerGpu}));
  EXPECT_EQ(ChargeOfMemory(Mebibytes::Of(1), Mebibytes::Zero()),
            (Charge{kQuantaPerGpu, kQuantaPerGpu}));
}

TEST(ChargeTest, MilliGpusRoundUp) {
  const struct {
    int64_t quanta, milli;
  } kCases[] = {{0, 0}, {1, 1}, {18'018, 1}, {18'019, 2}, {2'566'642, 143}, {18'018'000, 1000}};
  for (const auto& c : kCases) EXPECT_EQ(MilliGpuRoundedUp(c.quanta), MilliGpu::Of(c.milli));
  EXPECT_EQ(MilliGpuRoundedUp(std::numeric_limits<int64_t>::max()).count(), 511'897'659'943'101);
}

}  // namespace THIS_FILE
}  // namespace tranche
