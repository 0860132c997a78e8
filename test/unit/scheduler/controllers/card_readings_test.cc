// What is told of cards: of which rows, and for how long.
#include "scheduler/controllers/card_readings.h"

#include <gtest/gtest.h>

#include "scheduler/facts/gpu_use.h"

namespace tranche {
namespace THIS_FILE {

using wire::UseMeasure;

wire::UseRow Row(const char* uuid, UseMeasure measure, int64_t amount, const char* instance = "") {
  return {GpuUuid(uuid), instance, {}, amount, measure};
}

TEST(CardReadings, OfWholeCardsTheLargerAmount) {
  const Instant now{Millis(1'000'000)};
  const wire::UseRow rows[] = {
      Row("a", UseMeasure::kBusiest, 900), Row("a", UseMeasure::kMean, 300),
      Row("a", UseMeasure::kMean, 410),    Row("a", UseMeasure::kMemory, 60'000),
      Row("a", UseMeasure::kCelsius, 63),  Row("a", UseMeasure::kWatts, 402),
      Row("b", UseMeasure::kBusiest, 7),   Row("b", UseMeasure::kBusiest, 5),
      Row("c", UseMeasure::kCelsius, 30),  Row("d", UseMeasure::kMean, 500, "7"),
      Row("", UseMeasure::kMean, 500),     Row("e", UseMeasure::kOwn, 500),
      Row("b", UseMeasure::kOwn, 600),
  };
  const CardReadings readings = ReadingsOf(rows, now);
  EXPECT_EQ(readings.cards.size(), 3U);
  EXPECT_EQ(*readings.Find(GpuUuid("a"), now), (CardReading{410, 60'000, 63, 402}));
  EXPECT_EQ(*readings.Find(GpuUuid("b"), now), (CardReading{7, {}, {}, {}}))
      << "for want of a mean";
  EXPECT_EQ(*readings.Find(GpuUuid("c"), now), (CardReading{{}, {}, 30, {}}));
  EXPECT_EQ(readings.Find(GpuUuid("d"), now), nullptr) << "an instance is no card";
  EXPECT_EQ(readings.Find(GpuUuid("e"), now), nullptr) << "nor what a pod does on it";
  EXPECT_EQ(readings.Find(GpuUuid(""), now), nullptr);
  EXPECT_NE(readings.Find(GpuUuid("a"), now + kUseGoodFor), nullptr);
  EXPECT_EQ(readings.Find(GpuUuid("a"), now + kUseGoodFor + Millis(1)), nullptr) << "too old";
}

}  // namespace THIS_FILE
}  // namespace tranche
