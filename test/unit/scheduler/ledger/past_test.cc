// What happened in the cluster, as a ledger's file keeps it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::ledger {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PastPod Came(const std::string& uid, int64_t minute, const std::string& object = "{}") {
  PastPod pod;
  pod.uid = PodUid(uid);
  pod.name = {"ns", "pod-" + uid};
  pod.owner = "job";
  pod.created = Minute(minute);
  pod.object = object;
  return pod;
}
PastPod Started(const std::string& uid, int64_t minute, const std::string& node = "n1") {
  PastPod pod;
  pod.uid = PodUid(uid);
  pod.node = NodeName(node);
  pod.started = Minute(minute);
  pod.devices = "[gpu]";
  return pod;
}
PastPod Ended(const std::string& uid, int64_t minute, PastEnd how = PastEnd::kByItself) {
  PastPod pod;
  pod.uid = PodUid(uid);
  pod.ended = Minute(minute);
  pod.how = how;
  return pod;
}
PastChange Says(const std::string& kind, const std::string& name, int64_t minute,
                const std::string& object) {
  return {Minute(minute), kind, name, object};
}

class PastTest : public LedgerTest {
 protected:
  void Note(Ledger& ledger, int64_t minute, std::vector<PastPod> pods,
            std::vector<PastChange> changes = {},
            std::optional<PastNews::Rest> rest = PastNews::Rest()) {
    PastNews news{Minute(minute), std::move(pods), std::move(changes), std::move(rest)};
    ledger.NotePast(std::move(news));
    EXPECT_TRUE(Committed(ledger)) << ledger.health().problem;
  }
  RecordedPast Read(int64_t since, int64_t until) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    auto past = reader->Past(Minute(since), Minute(until));
    EXPECT_TRUE(past.ok()) << past.status();
    return past.ok() ? *std::move(past) : RecordedPast();
  }
  static int64_t MinutesOf(const std::optional<Instant>& at) {
    return at ? (*at - kTen) / std::chrono::minutes(1) : -1;
  }
  // "uid created-started@node-ended how".
  static std::vector<std::string> PodsOf(const RecordedPast& past) {
    std::vector<std::string> lines;
    for (const RecordedPod& pod : past.pods) {
      lines.push_back(fmt::format("{} {} {}@{} {} {}", pod.uid.str(), MinutesOf(pod.created),
                                  MinutesOf(pod.started), pod.node.str(), MinutesOf(pod.ended),
                                  static_cast<int>(pod.how)));
    }
    return lines;
  }
  static std::vector<std::string> ChangesOf(const RecordedPast& past) {
    std::vector<std::string> lines;
    for (const RecordedChange& change : past.changes) {
      lines.push_back(fmt::format("{} {}/{} {}", MinutesOf(change.at), change.kind, change.name,
                                  change.text ? past.texts.at(*change.text) : "gone"));
    }
    return lines;
  }
};

TEST_F(PastTest, APodIsOneRowHoweverOftenItIsTold) {
  const auto ledger = MustOpen();
  Note(*ledger, 0, {});
  for (int told = 0; told < 2; ++told) {
    Note(*ledger, 30, {Came("a", 1), Started("a", 2), Ended("a", 9), Came("b", 3)}, {},
         std::nullopt);
  }
  // A second start, a second end and another template are no news.
  Note(*ledger, 31, {Came("a", 5, "{\"other\":1}"), Started("a", 8, "n2"), Ended("a", 20)}, {},
       std::nullopt);
  EXPECT_THAT(PodsOf(Read(0, 60)), ElementsAre("a 1 2@n1 9 1", "b 3 -1@ -1 0"));
}

TEST_F(PastTest, PodsOfOneTemplateShareItsText) {
  const auto ledger = MustOpen();
  std::vector<PastPod> pods;
  for (int i = 0; i < 50; ++i) pods.push_back(Came(fmt::format("p{:02}", i), i, "{\"one\":true}"));
  Note(*ledger, 60, std::move(pods), {}, PastNews::Rest());
  EXPECT_EQ(Sql("SELECT count(*) FROM past_text"), "1");
  EXPECT_THAT(Read(0, 100).texts, SizeIs(1));
}

TEST_F(PastTest, ASpanHasWhatWasSoWhenItBeginsAndWhatChangedInIt) {
  const auto ledger = MustOpen();
  Note(*ledger, 50,
       {Came("early", 1), Started("early", 2), Ended("early", 5), Came("long", 1),
        Started("long", 2), Came("in", 12), Came("late", 40)},
       {Says("Node", "n1", 1, "A"), Says("Node", "n1", 3, "B"), Says("Node", "n2", 4, "C"),
        Says("Node", "n2", 6, ""), Says("GPUQuota", "q", 15, "D"), Says("Node", "n1", 45, "E")},
       std::nullopt);
  Note(*ledger, 50, {}, {},
       PastNews::Rest{{PodUid("in"), PodUid("late"), PodUid("long")},
                      {{"GPUQuota", "q"}, {"Node", "n1"}}});
  const RecordedPast past = Read(10, 30);
  EXPECT_THAT(PodsOf(past), ElementsAre("long 1 2@n1 -1 0", "in 12 -1@ -1 0"));
  EXPECT_THAT(ChangesOf(past), ElementsAre("3 Node/n1 B", "15 GPUQuota/q D"));
  EXPECT_EQ(MinutesOf(past.from), 50) << "before, nobody has seen everything";
}

TEST_F(PastTest, WhatWentWhileNobodyLookedIsGone) {
  {
    const auto ledger = MustOpen();
    Note(*ledger, 5, {Came("a", 1), Started("a", 2), Came("b", 1), Came("c", 1)},
         {Says("Node", "n1", 1, "A"), Says("Node", "n2", 1, "A")}, std::nullopt);
  }
  const auto ledger = MustOpen();
  // c ended by itself, and that is told after its end was taken for unseen.
  Note(*ledger, 90, {Came("b", 1)}, {Says("Node", "n1", 89, "A")},
       PastNews::Rest{{PodUid("b")}, {{"Node", "n1"}}});
  Note(*ledger, 91, {Ended("c", 40)}, {}, std::nullopt);
  // An API server that lags behind did not show b at first.
  Note(*ledger, 92, {}, {}, PastNews::Rest{{}, {{"Node", "n1"}}});
  Note(*ledger, 93, {Came("b", 1)}, {}, std::nullopt);
  const RecordedPast past = Read(0, 200);
  EXPECT_THAT(PodsOf(past), ElementsAre("a 1 2@n1 90 4", "b 1 -1@ -1 0", "c 1 -1@ 40 1"));
  EXPECT_THAT(ChangesOf(past), ElementsAre("1 Node/n1 A", "1 Node/n2 A", "90 Node/n2 gone"));
}

TEST_F(PastTest, WhatIsOlderThanItIsKeptIsForgottenAndItsTextsToo) {
  options_.past_kept = std::chrono::hours(24);
  const auto ledger = MustOpen();
  constexpr int64_t kDay = 24 * 60;
  Note(*ledger, 5, {Came("old", 1, "old"), Started("old", 2), Ended("old", 3), Came("runs", 1)},
       {Says("Node", "n1", 1, "first"), Says("Node", "n1", 2, "second"), Says("Node", "n2", 1, "x"),
        Says("Node", "n2", 3, "")},
       PastNews::Rest{{PodUid("runs")}, {{"Node", "n1"}}});
  Note(*ledger, 2 * kDay + 100, {Ended("never seen", 2)}, {}, std::nullopt);
  const RecordedPast past = Read(0, 3 * kDay);
  EXPECT_THAT(PodsOf(past), ElementsAre("runs 1 -1@ -1 0"));
  EXPECT_THAT(ChangesOf(past), ElementsAre("2 Node/n1 second"));
  EXPECT_EQ(Sql("SELECT count(*) FROM past_text"), "2") << "the pod's and the node's";
  EXPECT_EQ(MinutesOf(past.from), kDay + 100) << "it is whole from then on";
}

TEST_F(PastTest, TheJournalGoesOnWhereThePastCannotBeKept) {
  {
    const auto ledger = MustOpen();
    Note(*ledger, 1, {Came("a", 1)}, {}, std::nullopt);
  }
  Sql("DROP TABLE past_pod");
  const auto ledger = MustOpen();
  ledger->NotePast({Minute(2), {Came("b", 2)}, {}, std::nullopt});
  Write(*ledger, {Open("uid-1", Minute(2)), Close("uid-1", Minute(3))});
  EXPECT_EQ(Sql("SELECT count(*) FROM entry"), "2");
  EXPECT_TRUE(ledger->health().writable);
  EXPECT_THAT(ledger->health().problem, HasSubstr("what happened was not kept"));
}

TEST_F(PastTest, TextsThatMeetInOnePlaceStandBesideEachOther) {
  const auto ledger = MustOpen();
  Note(*ledger, 1, {Came("a", 1, "text")}, {}, std::nullopt);
  // As if another text had the same hash.
  Sql("UPDATE past_text SET text = 'other'");
  Note(*ledger, 2, {Came("b", 2, "text")}, {}, PastNews::Rest{{PodUid("a"), PodUid("b")}, {}});
  const RecordedPast past = Read(0, 10);
  ASSERT_THAT(past.pods, SizeIs(2));
  EXPECT_EQ(past.texts.at(past.pods[0].text), "other");
  EXPECT_EQ(past.texts.at(past.pods[1].text), "text");
}

TEST_F(PastTest, AFileThatTellsNothingSaysSo) {
  MustOpen();
  const RecordedPast past = Read(0, 10);
  EXPECT_FALSE(past.from);
  EXPECT_THAT(past.pods, IsEmpty());
}

TEST_F(PastTest, WhatNoTableCanHoldIsRefusedAndNamed) {
  const auto ledger = MustOpen();
  Note(*ledger, 1, {Came("", 1), Came(std::string(2'000, 'u'), 1), Came("a", 1)},
       {Says("Node", std::string(2'000, 'n'), 1, "A")}, PastNews::Rest{{PodUid("a")}, {}});
  EXPECT_THAT(PodsOf(Read(0, 10)), ElementsAre("a 1 -1@ -1 0"));
  EXPECT_THAT(ledger->health().problem, HasSubstr("refused 3 malformed events"));
}

class PastUseTest : public PastTest {
 protected:
  void Tell(Ledger& ledger, int64_t minute, std::vector<PodWork> work, std::vector<IdleSpan> idle) {
    PastNews news;
    news.at = Minute(minute);
    news.work = std::move(work);
    news.idle = std::move(idle);
    ledger.NotePast(std::move(news));
    EXPECT_TRUE(Committed(ledger)) << ledger.health().problem;
  }
  static PodWork Worked(const std::string& uid, int64_t hours, int busiest,
                        std::optional<int64_t> mib = std::nullopt) {
    PodWork pod{PodUid(uid), {hours, {{"G1", busiest, std::nullopt}}}};
    if (mib) pod.work.devices[0].most_memory = Mebibytes::Of(*mib);
    return pod;
  }
  static IdleSpan Idle(const std::string& uid, int64_t from, int64_t until) {
    return {PodUid(uid), Minute(from), Minute(until)};
  }
  std::vector<PodWork> Work() {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    auto work = reader->Work();
    EXPECT_TRUE(work.ok()) << work.status();
    return work.ok() ? *work : std::vector<PodWork>();
  }
  // "uid since-until" of all there is.
  std::vector<std::string> IdleOf(int64_t since = 0, int64_t until = 1'000'000) {
    auto database = Database::Open(options_.path, Access::kRead);
    EXPECT_TRUE(database.ok()) << database.status();
    const auto spans = ReadIdle(*database, Minute(since), Minute(until));
    EXPECT_TRUE(spans.ok()) << spans.status();
    std::vector<std::string> lines;
    for (const IdleSpan& span : *spans) {
      lines.push_back(
          fmt::format("{} {}-{}", span.uid.str(), MinutesOf(span.since), MinutesOf(span.until)));
    }
    return lines;
  }
};

TEST_F(PastUseTest, WhatAPodDidIsWhatWasToldLastUntilItEnds) {
  auto ledger = MustOpen();
  Note(*ledger, 0, {Came("a", 0), Came("b", 0)});
  Tell(*ledger, 60, {Worked("a", 1, 300, 500), Worked("b", 1, 10)}, {});
  Tell(*ledger, 120, {Worked("a", 2, 400, 700)}, {});
  EXPECT_THAT(Work(), ElementsAre(Worked("a", 2, 400, 700), Worked("b", 1, 10)));
  Note(*ledger, 121, {Ended("b", 121)}, {}, std::nullopt);
  EXPECT_THAT(Work(), ElementsAre(Worked("a", 2, 400, 700)));
}

TEST_F(PastUseTest, ASpanOfIdlenessGrows) {
  auto ledger = MustOpen();
  Tell(*ledger, 10, {}, {Idle("a", 0, 10), Idle("b", 5, 10)});
  Tell(*ledger, 20, {}, {Idle("a", 0, 20), Idle("a", 0, 15), Idle("b", 12, 20)});
  EXPECT_THAT(IdleOf(), ElementsAre("a 0-20", "b 5-10", "b 12-20"));
  EXPECT_THAT(IdleOf(10, 12), ElementsAre("a 0-20"));
}

TEST_F(PastUseTest, IsForgottenWithTheRest) {
  options_.past_kept = std::chrono::minutes(60);
  auto ledger = MustOpen();
  Tell(*ledger, 10, {Worked("a", 1, 5)}, {Idle("a", 0, 10), Idle("b", 0, 9)});
  Tell(*ledger, 69, {}, {Idle("a", 60, 69)});
  EXPECT_THAT(IdleOf(), ElementsAre("a 0-10", "a 60-69", "b 0-9"));
  Tell(*ledger, 80, {}, {Idle("a", 60, 80)});
  EXPECT_THAT(IdleOf(), ElementsAre("a 60-80"));
  EXPECT_THAT(Work(), IsEmpty());
}

TEST_F(PastUseTest, WhatCannotBeWrittenIsLeftOutAndSaid) {
  auto ledger = MustOpen();
  Tell(*ledger, 10, {Worked("a", 1, 1'001), Worked("", 1, 5)}, {Idle("a", 5, 5), Idle("b", 0, 1)});
  EXPECT_THAT(Work(), IsEmpty());
  EXPECT_THAT(IdleOf(), ElementsAre("b 0-1"));
  EXPECT_THAT(ledger->health().problem, HasSubstr("refused 3 malformed events"));
}

// Of many pods the last, and of a kind of object what it says now.
TEST_F(PastTest, ReadsWhatPodsAskedFor) {
  auto ledger = MustOpen();
  Note(*ledger, 0, {Came("a", 0), Came("b", 1), Ended("a", 5)},
       {Says("GPUClass", "c", 0, "old"), Says("GPUClass", "d", 0, "other"),
        Says("Node", "n", 0, "node")},
       std::nullopt);
  PastNews::Rest rest{{PodUid("b"), PodUid("c")}, {{"GPUClass", "c"}, {"Node", "n"}}};
  Note(*ledger, 10, {Came("c", 10)}, {Says("GPUClass", "c", 10, "new")}, rest);
  auto reader = Reader::Open(options_.path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto all = reader->Asked({Minute(0), Minute(11), 10, {"GPUClass"}});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(PodsOf(*all), ElementsAre("a 0 -1@ 5 1", "b 1 -1@ -1 0", "c 10 -1@ -1 0"));
  EXPECT_THAT(ChangesOf(*all), ElementsAre("10 GPUClass/c new"));
  const auto last = reader->Asked({Minute(6), Minute(11), 1, {}});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT(PodsOf(*last), ElementsAre("c 10 -1@ -1 0"));
  EXPECT_THAT(ChangesOf(*last), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
