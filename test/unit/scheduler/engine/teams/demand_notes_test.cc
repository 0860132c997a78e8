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

}  // namespace THIS_FILE
}  // namespace tranche
