// Which rows of a measurement are a pod's, and what a reader makes of answers and of none.
#include "scheduler/controllers/use_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/host/clocks.h"
#include "test/builders/cluster.h"
#include "test/fakes/quiet_ledger.h"
#include "test/unit/scheduler/controllers/measured_pod.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kIdle = 10;

// A pod of namespace "a" that is bound, with whole cards of these UUIDs; "" where none is known.
PodView Holder(const std::string& name, const std::vector<std::string>& cards,
               Knowledge knowledge = Knowledge::kExact) {
  PodView pod;
  pod.name = {"a", name};
  pod.uid = PodUid(name);
  pod.state = PodState::kBound;
  pod.allocation.emplace();
  pod.allocation->knowledge = knowledge;
  for (const std::string& card : cards) {
    Device device;
    device.uuid = GpuUuid(card);
    device.milli = kWholeGpu;
    pod.allocation->containers.push_back({"main", {device}});
  }
  return pod;
}
PodView OfMig(PodView pod) {
  for (ContainerDevices& container : pod.allocation->containers) {
    container.devices[0].mig.emplace();
  }
  return pod;
}
PodView OfGang(PodView pod) {
  pod.gang = "g";
  return pod;
}
wire::UseRow Card(const std::string& uuid, int permille, const std::string& pod = "") {
  return {GpuUuid(uuid), "", pod.empty() ? PodName() : PodName{"a", pod}, permille};
}
wire::UseRow Instance(const std::string& uuid, const std::string& id, int permille,
                      const std::string& pod) {
  return {GpuUuid(uuid), id, {"a", pod}, permille};
}
wire::UseRow Of(wire::UseMeasure measure, wire::UseRow row) {
  row.measure = measure;
  return row;
}
// "p 5 idle", "q 40", "r ?"
std::vector<std::string> Measured(const std::vector<PodView>& pods,
                                  const std::vector<wire::UseRow>& rows) {
  std::vector<std::string> texts;
  for (const MeasuredPod& pod : MeasurePods(pods, rows, kIdle).pods) {
    texts.push_back(pod.uid.str() + (pod.permille ? fmt::format(" {}", *pod.permille) : " ?") +
                    (pod.idle ? " idle" : ""));
  }
  return texts;
}

TEST(MeasurePodsTest, APodIsMeasuredWhereAllItHoldsIs) {
  using wire::UseMeasure;
  struct Case {
    const char* what;
    std::vector<PodView> pods;
    std::vector<wire::UseRow> rows;
    std::vector<std::string> measured;
  };
  const auto counts = Knowledge::kCounts;
  const Case kCases[] = {
      {"its card, by UUID", {Holder("p", {"G1"})}, {Card("G1", 10)}, {"p 10 idle"}},
      {"the busiest of two",
       {Holder("p", {"G1", "G2"})},
       {Card("G1", 0), Card("G2", 40)},
       {"p 40"}},
      {"one of two is missing", {Holder("p", {"G1", "G2"})}, {Card("G1", 0)}, {"p ?"}},
      {"a card that two share counts for both",
       {Holder("p", {"G1"}), Holder("q", {"G1"})},
       {Card("G1", 500, "p")},
       {"p 500", "q 500"}},
      {"of a card that two share each for itself, where that is told",
       {Holder("p", {"G1"}), Holder("q", {"G1"})},
       {Card("G1", 700, "p"), Of(UseMeasure::kOwn, Card("G1", 0, "p")),
        Of(UseMeasure::kOwn, Card("G1", 690, "q"))},
       {"p 0 idle", "q 690"}},
      {"told of one alone: the card counts for the other",
       {Holder("p", {"G1"}), Holder("q", {"G1"})},
       {Card("G1", 700), Of(UseMeasure::kOwn, Card("G1", 0, "p"))},
       {"p 0 idle", "q 700"}},
      {"its own use without the card's is no measurement",
       {Holder("p", {"G1"}), Holder("q", {"G1"})},
       {Of(UseMeasure::kOwn, Card("G1", 0, "p"))},
       {"p ?", "q ?"}},
      {"its own use of another card says nothing of this one",
       {Holder("p", {"G1"}), Holder("q", {"G1"})},
       {Card("G1", 700), Of(UseMeasure::kOwn, Card("G2", 0, "p"))},
       {"p 700", "q 700"}},
      {"of two cards the one it shares for itself, the other as a whole",
       {Holder("p", {"G1", "G2"}), Holder("q", {"G1"})},
       {Card("G1", 700), Card("G2", 300), Of(UseMeasure::kOwn, Card("G1", 0, "p")),
        Of(UseMeasure::kOwn, Card("G2", 0, "p"))},
       {"p 300", "q 700"}},
      {"alone on its card: the card counts, and its own use where that is more",
       {Holder("p", {"G1"}), Holder("q", {"G2"})},
       {Card("G1", 500), Of(UseMeasure::kOwn, Card("G1", 0, "p")), Card("G2", 0),
        Of(UseMeasure::kOwn, Card("G2", 40, "q"))},
       {"p 500", "q 40"}},
      {"of several rows of its own the busiest",
       {Holder("p", {"G1"}), Holder("q", {"G1"})},
       {Card("G1", 700), Of(UseMeasure::kOwn, Card("G1", 0, "p")),
        Of(UseMeasure::kOwn, Card("G1", 60, "p"))},
       {"p 60", "q 700"}},
      {"an instance is no whole card",
       {OfMig(Holder("p", {"G1"})), Holder("q", {"G1"})},
       {Card("G1", 700), Instance("G1", "7", 80, "p"),
        Of(UseMeasure::kOwn, Instance("G1", "7", 0, "p"))},
       {"p 80", "q 700"}},
      {"nobody knows its card: by rows that name it",
       {Holder("p", {"", ""}, counts)},
       {Card("G1", 3, "p"), Card("G2", 4, "p")},
       {"p 4 idle"}},
      {"fewer rows than it has devices",
       {Holder("p", {"", ""}, counts)},
       {Card("G1", 3, "p")},
       {"p ?"}},
      {"the same row twice is one",
       {Holder("p", {"", ""}, counts)},
       {Card("G1", 3, "p"), Card("G1", 3, "p")},
       {"p ?"}},
      {"a guess is no knowledge",
       {Holder("p", {"G1"}, Knowledge::kPredicted)},
       {Card("G1", 0)},
       {"p ?"}},
      {"its instance, by name, whatever the card does",
       {OfMig(Holder("p", {"G1"}))},
       {Card("G1", 900), Instance("G1", "7", 0, "p")},
       {"p 0 idle"}},
      {"an instance of somebody else",
       {OfMig(Holder("p", {"G1"}))},
       {Instance("G1", "7", 0, "q")},
       {"p ?"}},
      {"rows of both kinds: the busiest",
       {Holder("p", {"G1"})},
       {Card("G1", 0), Card("G2", 700, "p")},
       {"p 700"}},
      {"a gang works where one of it does",
       {OfGang(Holder("p", {"G1"})), OfGang(Holder("q", {"G2"}))},
       {Card("G1", 0), Card("G2", 300)},
       {"p 300", "q 300"}},
      {"of a gang one is not measured",
       {OfGang(Holder("p", {"G1"})), OfGang(Holder("q", {"G2"})), Holder("r", {"G3"})},
       {Card("G1", 0), Card("G3", 0)},
       {"p ?", "q ?", "r 0 idle"}},
      {"holds nothing", {Holder("p", {})}, {Card("G1", 0, "p")}, {"p ?"}},
  };
  for (const Case& c : kCases) EXPECT_EQ(Measured(c.pods, c.rows), c.measured) << c.what;
}

TEST(MeasurePodsTest, WhatWaitsOrCannotBeReadIsNotMeasured) {
  PodView waits = Holder("waits", {"G1"});
  waits.state = PodState::kClaimed;
  PodView unknown = Holder("unknown", {"G1"});
  unknown.devices_unknown = true;
  EXPECT_THAT(Measured({waits, unknown}, {Card("G1", 0), Card("G1", 0, "unknown")}),
              ElementsAre("unknown ?"));
}

// "G1 40 6000" of each device: how much it worked, and the memory it held.
std::vector<std::string> Samples(const PodView& pod, const std::vector<wire::UseRow>& rows) {
  std::vector<std::string> texts;
  for (const PodSample& sample : MeasurePods(std::vector{pod}, rows, kIdle).samples) {
    for (const DeviceSample& device : sample.devices) {
      texts.push_back(fmt::format("{} {} {}", device.device, device.permille,
                                  device.memory ? device.memory->count() : -1));
    }
  }
  return texts;
}

TEST(MeasurePodsTest, ASampleIsOfEachDevice) {
  using wire::UseMeasure;
  struct Case {
    const char* what;
    PodView pod;
    std::vector<wire::UseRow> rows;
    std::vector<std::string> samples;
  };
  const auto counts = Knowledge::kCounts;
  const Case kCases[] = {
      {"mean and memory of its card",
       Holder("p", {"G1"}),
       {Card("G1", 900), Of(UseMeasure::kMean, Card("G1", 40)),
        Of(UseMeasure::kMemory, Card("G1", 6000))},
       {"G1 40 6000"}},
      {"without a mean the busiest moment counts",
       Holder("p", {"G1", "G2"}),
       {Card("G1", 900), Card("G2", 0)},
       {"G1 900 -1", "G2 0 -1"}},
      {"an instance, by the row that names the pod",
       OfMig(Holder("p", {"G1"})),
       {Instance("G1", "7", 300, "p"), Of(UseMeasure::kMean, Instance("G1", "7", 200, "p")),
        Of(UseMeasure::kMemory, Instance("G1", "7", 4000, "p"))},
       {"G1/7 200 4000"}},
      {"memory alone measures no device",
       Holder("p", {""}, counts),
       {Of(UseMeasure::kMemory, Card("G1", 4000, "p"))},
       {}},
      {"one of two is missing", Holder("p", {"G1", "G2"}), {Card("G1", 3)}, {}},
      {"of a gang each pod is measured for itself",
       OfGang(Holder("p", {"G1"})),
       {Card("G1", 3)},
       {"G1 3 -1"}},
  };
  for (const Case& c : kCases) EXPECT_EQ(Samples(c.pod, c.rows), c.samples) << c.what;
}

// "p 3 h", "p idle 0-10" in minutes since the start of the test.
class ToldLedger : public test::QuietLedger {
 public:
  explicit ToldLedger(Instant start) : start_(start) {}
  void NotePast(PastNews news) override {
    ++calls;
    for (const PodWork& pod : news.work) told.push_back(fmt::format("{} h", pod.work.hours));
    for (const IdleSpan& span : news.idle) {
      told.push_back(fmt::format("idle {}-{}", MinuteOf(span.since), MinuteOf(span.until)));
    }
  }
  int calls = 0;
  std::vector<std::string> told;

 private:
  int64_t MinuteOf(Instant at) const { return (at - start_) / std::chrono::minutes(1); }
  const Instant start_;
};

class UseReaderTest : public testing::Test {
 protected:
  UseReaderTest() {
    host_.cluster.Receive(NodeChanged{test::StockNode("n1", 8)});
    host_.cluster.Receive(PodChanged{test::MeasuredPod(clock_.Now())});
  }
  static std::string AnswerOf(const std::vector<std::string>& rows) {
    return fmt::format(R"({{"status":"success","data":{{"resultType":"vector","result":[{}]}}}})",
                       fmt::join(rows, ","));
  }
  static std::string RowOf(const std::string& ns, int gpu, const std::string& value) {
    return fmt::format(
        R"({{"metric":{{"UUID":"G{}","namespace":"{}","pod":"p"}},"value":[1,"{}"]}})", gpu, ns,
        value);
  }
  std::optional<GpuUse> UseOfPod() {
    const std::vector<PodView> pods = host_.engine.Pods();
    return pods.empty() ? std::nullopt : pods[0].use;
  }
  std::string Row() {
    const metrics::UseRow row = reader_.row(clock_.Now());
    std::string idle;
    for (const metrics::IdleRow& one : row.idle) idle += fmt::format(" idle {}", one.devices);
    return fmt::format("age {} failures {} measured {} of {}{}", row.age_seconds, row.failures,
                       row.measured, row.measured + row.unmeasured, idle);
  }

  ManualClock clock_{Instant(std::chrono::hours(24 * 365 * 56))};
  Host host_{HostOptions{}, clock_};
  ToldLedger ledger_{clock_.Now()};
  UseReader reader_{host_, 1, clock_.Now(), &ledger_, {}};
};

TEST_F(UseReaderTest, TellsTheEngineWhatItIsTold) {
  host_.cluster.Receive(Synced());
  const std::string ns = host_.engine.Pods().at(0).name.ns;
  reader_.Take(AnswerOf({RowOf(ns, 1, "0"), RowOf(ns, 2, "0.002")}));
  EXPECT_EQ(UseOfPod(), (GpuUse{2, clock_.Now(), clock_.Now()}));
  EXPECT_EQ(Row(), "age 0 failures 0 measured 1 of 1 idle 2");
  clock_.AdvanceBy(Millis(61'000));
  EXPECT_EQ(Row(), "age 61 failures 0 measured 1 of 1 idle 2");
}

TEST_F(UseReaderTest, AnHourOfAnswersIsHistory) {
  host_.cluster.Receive(Synced());
  const std::string ns = host_.engine.Pods().at(0).name.ns;
  const PodUid uid = host_.engine.Pods().at(0).uid;
  for (int minute = 0; minute <= 60; ++minute) {
    reader_.Take(AnswerOf({RowOf(ns, 1, "0"), RowOf(ns, 2, minute < 30 ? "0.5" : "0")}));
    clock_.AdvanceBy(Millis(60'000));
  }
  const UseHistory history = reader_.history();
  const WorkHistory* const work = history.Find(uid);
  ASSERT_NE(work, nullptr);
  EXPECT_EQ(work->hours, 1);
  EXPECT_THAT(work->devices, ElementsAre(DeviceHistory{"G1", 0, std::nullopt},
                                         DeviceHistory{"G2", 246, std::nullopt}));
}

TEST_F(UseReaderTest, TheLedgerIsToldOfHoursAndOfIdleness) {
  host_.cluster.Receive(Synced());
  const std::string ns = host_.engine.Pods().at(0).name.ns;
  for (int minute = 0; minute <= 60; ++minute) {
    reader_.Take(AnswerOf({RowOf(ns, 1, "0"), RowOf(ns, 2, minute < 45 ? "0" : "0.5")}));
    clock_.AdvanceBy(Millis(60'000));
  }
  EXPECT_THAT(ledger_.told,
              ElementsAre("idle 0-10", "idle 0-20", "idle 0-30", "idle 0-40", "idle 0-44", "1 h"));
}

TEST_F(UseReaderTest, WhatTheLedgerKnewIsHistory) {
  host_.cluster.Receive(Synced());
  const PodView pod = host_.engine.Pods().at(0);
  UseReader reader(host_, 1, clock_.Now(), nullptr,
                   {{pod.uid, {30, {{"G1", 10, {}}, {"G2", 20, {}}}}}});
  for (int minute = 0; minute <= 60; ++minute) {
    reader.Take(AnswerOf({RowOf(pod.name.ns, 1, "0.5"), RowOf(pod.name.ns, 2, "0")}));
    clock_.AdvanceBy(Millis(60'000));
  }
  const UseHistory history = reader.history();
  ASSERT_NE(history.Find(pod.uid), nullptr);
  EXPECT_EQ(*history.Find(pod.uid),
            (WorkHistory{31, {{"G1", 500, std::nullopt}, {"G2", 20, std::nullopt}}}));
}

TEST_F(UseReaderTest, NoAnswerChangesNothingAndIsCounted) {
  host_.cluster.Receive(Synced());
  clock_.AdvanceBy(Millis(60'000));
  const std::vector<absl::StatusOr<std::string>> answers = {
      absl::UnavailableError("connection refused"), std::string(), std::string("<html>"),
      std::string(R"({"status":"error","errorType":"timeout","error":"query timed out"})")};
  for (const auto& answer : answers) reader_.Take(answer);
  EXPECT_EQ(UseOfPod(), std::nullopt);
  EXPECT_EQ(reader_.history().Find(host_.engine.Pods().at(0).uid), nullptr);
  EXPECT_EQ(Row(), "age 60 failures 4 measured 0 of 0");
  reader_.Take(AnswerOf({}));
  EXPECT_EQ(Row(), "age 0 failures 4 measured 0 of 1") << "an answer without rows is one";
  EXPECT_EQ(UseOfPod(), std::nullopt);
}

TEST_F(UseReaderTest, BeforeAllIsKnownNothingIsTold) {
  reader_.Take(AnswerOf({RowOf("a", 1, "0"), RowOf("a", 2, "0")}));
  EXPECT_EQ(UseOfPod(), std::nullopt);
  EXPECT_EQ(Row(), "age 0 failures 0 measured 0 of 0");
}

}  // namespace THIS_FILE
}  // namespace tranche
