// What is told of the last decisions: one line each, in order, the oldest forgotten first.
#include "scheduler/host/recent_events.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using testing::ElementsAre;
using testing::IsEmpty;

MeterEvent Metered(MeterKind kind, const std::string& pod, int at) {
  MeterEvent event;
  event.kind = kind;
  event.at = At(at);
  event.pod = {"a", pod};
  event.node = NodeName("n1");
  event.leaf = "team-a";
  return event;
}

// "3 Placed a/one n1 team-a"
std::vector<std::string> Lines(const RecentEvents& recent, const RecentQuery& query = {}) {
  std::vector<std::string> lines;
  for (const RecentEvent& event : recent.Read(query).events) {
    std::string line = fmt::format("{} {}", event.id, RecentKindName(event.kind));
    for (const std::string& word :
         {event.pod.name.empty() ? "" : event.pod.str(), event.node.str(), event.text}) {
      if (!word.empty()) line += " " + word;
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(RecentEvents, EachEffectIsALineAndSomeAreNone) {
  RecentEvents recent;
  Effects effects;
  effects.metering = {Metered(MeterKind::kOpen, "one", 1), Metered(MeterKind::kRunning, "one", 2),
                      Metered(MeterKind::kClose, "one", 3), Metered(MeterKind::kVoid, "two", 4)};
  MeterEvent refund = Metered(MeterKind::kRefund, "one", 5);
  refund.until = At(65);
  refund.note = "NodeLost";
  effects.metering.push_back(refund);
  effects.reclaims.evictions = {{"r-1", {"b", "victim"}, PodUid("v"), std::nullopt}};
  effects.reclaims.nominations = {{{"a", "three"}, PodUid("t"), NodeName("n2")},
                                  {{"a", "three"}, PodUid("t"), NodeName()}};
  effects.faults = {{BookFaultKind::kKeptTwice, "uid-7"}};
  effects.requeue = {{{"a", "four"}, PodUid("f")}};
  recent.Note(effects, At(70));
  EXPECT_THAT(Lines(recent),
              ElementsAre("1 Placed a/one n1", "2 Running a/one n1", "3 Ended a/one n1",
                          "4 Undone a/two n1", "5 Refunded a/one n1 NodeLost: 60 s",
                          "6 EvictionAsked b/victim for reclaim r-1", "7 Nominated a/three n2",
                          "8 NominationEnded a/three",
                          fmt::format("9 BookFault {}: uid-7",
                                      BookFaultName(BookFaultKind::kKeptTwice))));
}

TEST(RecentEvents, AReclaimIsToldOfWhenItGetsFurther) {
  RecentEvents recent;
  Reclaim reclaim;
  reclaim.name = "r-1";
  reclaim.rule = ReclaimRule::kR1;
  reclaim.members = {{{"a", "wants"}, PodUid("w"), NodeName("n1"), false}};
  reclaim.victims.resize(2);
  const auto pass = [&](ReclaimPhase phase, const std::string& reason = "") {
    reclaim.phase = phase;
    reclaim.reason = reason;
    Effects effects;
    effects.reclaims.changed = {reclaim};
    recent.Note(effects, At(1));
  };
  pass(ReclaimPhase::kPlanned);
  pass(ReclaimPhase::kEvicting);
  pass(ReclaimPhase::kEvicting);
  pass(ReclaimPhase::kAborted, "Changed");
  EXPECT_THAT(
      Lines(recent),
      ElementsAre("1 Reclaim a/wants n1 Planned by rule R1, 0 of 2 victims gone (r-1)",
                  "2 Reclaim a/wants n1 Evicting by rule R1, 0 of 2 victims gone (r-1)",
                  "3 Reclaim a/wants n1 Aborted by rule R1: Changed, 0 of 2 victims gone (r-1)"));
}

TEST(RecentEvents, QuestionsNarrowAndTheNewestStay) {
  RecentEvents recent(/*most=*/4);
  EXPECT_THAT(Lines(recent), IsEmpty());
  EXPECT_FALSE(recent.Read({}).forgotten);
  Effects effects;
  for (int i = 1; i <= 6; ++i) {
    effects.metering.push_back(Metered(MeterKind::kOpen, i % 2 == 0 ? "even" : "odd", i));
  }
  effects.metering.back().leaf = "team-b";
  recent.Note(effects, At(9));
  const struct {
    RecentQuery query;
    std::vector<std::string> lines;
    bool forgotten;
  } table[] = {
      {{}, {"3 Placed a/odd n1", "4 Placed a/even n1", "5 Placed a/odd n1", "6 Placed a/even n1"},
       true},
      {{.since = 2, .limit = 1}, {"6 Placed a/even n1"}, false},
      {{.since = 4}, {"5 Placed a/odd n1", "6 Placed a/even n1"}, false},
      {{.since = 6}, {}, false},
      {{.since = 60}, {}, false},
      {{.pod = "odd"}, {"3 Placed a/odd n1", "5 Placed a/odd n1"}, true},
      {{.ns = "b"}, {}, true},
      {{.leaf = "team-b"}, {"6 Placed a/even n1"}, true},
      {{.kind = RecentKind::kEnded}, {}, true},
  };
  for (const auto& row : table) {
    EXPECT_EQ(Lines(recent, row.query), row.lines);
    EXPECT_EQ(recent.Read(row.query).forgotten, row.forgotten);
    EXPECT_EQ(recent.Read(row.query).newest, 6);
  }
}

TEST(RecentEvents, KindsHaveNames) {
  for (int i = 0; i < kRecentKinds; ++i) {
    const auto kind = static_cast<RecentKind>(i);
    EXPECT_EQ(FindRecentKind(RecentKindName(kind)), kind);
  }
  EXPECT_EQ(FindRecentKind("placed"), std::nullopt);
}

}  // namespace THIS_FILE
}  // namespace tranche
