// What pods ask for over time, from a state alone.
#include "scheduler/engine/teams/demand_notes.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

class DemandNotesTest : public testing::Test, protected test::StateRoom {
 protected:
  DemandNotesTest() { Node(test::StockNode("n1", 8)); }
  // "training 2x: 1 now, 1 waiting, 1 arrived" of every kind.
  std::vector<std::string> Rows() {
    std::vector<std::string> texts;
    for (const DemandRow& row : notes_.log.Rows(now)) {
      texts.push_back(fmt::format("{} {}x: {} now, {} waiting, {} arrived", row.kind.workload_class,
                                  row.kind.devices, row.now, row.waiting, row.arrivals));
    }
    return texts;
  }

  DemandNotes notes_{cluster};
};

TEST_F(DemandNotesTest, APodIsCountedOnceFromItsFirstWaitToItsEnd) {
  Declare({.classes = {test::Class("training")}});
  const PodRequest pod = test::TeamPod("a", "p", 2, "training");
  PodRecord& record = Wait(pod);
  notes_.Note(record, now);
  notes_.Note(record, now);
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 1 now, 1 waiting, 1 arrived"));
  Place(pod, "n1");
  notes_.Note(record, now);
  notes_.Note(record, now);
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 1 now, 0 waiting, 1 arrived"));
  notes_.End(record, now);
  notes_.End(record, now);
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 0 now, 0 waiting, 1 arrived"));
}

TEST_F(DemandNotesTest, APodThatGoesWhileItWaitsWaitsNoMore) {
  PodRecord& record = Wait(test::TeamPod("a", "p", 1));
  notes_.Note(record, now);
  notes_.End(record, now);
  EXPECT_THAT(Rows(), ElementsAre(" 1x: 0 now, 0 waiting, 1 arrived"));
}

TEST_F(DemandNotesTest, WhatWasNeverNotedEndsNothing) {
  notes_.End(Wait(test::TeamPod("a", "p", 1)), now);
  EXPECT_THAT(Rows(), IsEmpty());
}

// What a ledger tells of before: minutes before the start at which pods came, were placed, ended.
class RecallTest : public DemandNotesTest {
 protected:
  void Came(int64_t gpus, int64_t came, std::optional<int64_t> placed = {},
            std::optional<int64_t> ended = {}) {
    const auto at = [this](std::optional<int64_t> minutes) -> std::optional<Instant> {
      if (!minutes) return std::nullopt;
      return now - std::chrono::minutes(*minutes);
    };
    asked_.push_back({std::make_shared<const PodRequest>(test::TeamPod("a", "p", gpus)), "training",
                      *at(came), at(placed), at(ended)});
  }
  void Recall() { notes_.Recall(asked_, now); }

  std::vector<AskedBefore> asked_;
};

TEST_F(RecallTest, WhatEndedIsDemandOfBefore) {
  Came(2, 90, 80, 30);
  Came(2, 60, 50, 20);
  Came(4, 40, {}, 10);
  Recall();
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 0 now, 0 waiting, 2 arrived",
                                  "training 4x: 0 now, 0 waiting, 1 arrived"));
  EXPECT_EQ(notes_.log.Rows(now)[0].peak, 2);
  EXPECT_EQ(notes_.log.since(), now - std::chrono::minutes(90));
}

TEST_F(RecallTest, WhatIsThereStillIsCountedOnceItIsFound) {
  Declare({.classes = {test::Class("training")}});
  Came(2, 90, 80);
  Recall();
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 0 now, 0 waiting, 0 arrived"));
  const PodRequest pod = test::TeamPod("a", "p", 2, "training");
  Place(pod, "n1");
  notes_.Note(Wait(pod), now);
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 1 now, 0 waiting, 1 arrived"));
  EXPECT_EQ(notes_.log.Rows(now)[0].peak, 1);
}

TEST_F(RecallTest, TimesThatCannotBeAreBroughtIntoTheirOrder) {
  Came(2, -5, -9, -7);
  Came(2, 30, 40, 50);
  Recall();
  EXPECT_THAT(Rows(), ElementsAre("training 2x: 0 now, 0 waiting, 2 arrived"));
}

TEST_F(RecallTest, RoomIsKeptForWhatUsuallyCame) {
  const PodRequest request = test::TeamPod("a", "p", 2);
  const uint32_t before = cluster.scorer.version(request);
  for (int64_t pod = 0; pod < 100; ++pod) Came(2, 200 - pod, 200 - pod, 99 - pod / 2);
  Recall();
  EXPECT_NE(cluster.scorer.version(request), before) << "the mix is another";
}

}  // namespace THIS_FILE
}  // namespace tranche
