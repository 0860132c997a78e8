// Checkers of the ledger and of charged time, over files that the real ledger wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/check/scene.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::sim {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kUid = "u-a/one";

// Seconds since the world began, by the ledger's clock.
Instant Second(double seconds) {
  return Instant(std::chrono::floor<Millis>(WallOf(SimTime(int64_t(seconds * 1e6)))));
}

class SimLedger : public ledger::LedgerTest {
 protected:
  Scene& Promise(const char* kind, double at) {
    const Json entry = {{"uid", kUid},
                        {"interval", 0},
                        {"kind", kind},
                        {"at", Second(at).time_since_epoch().count()}};
    return scene_.Say({.kind = Happening::Kind::kPromised, .who = kLeader, .after = entry});
  }
  // a/one holds a GPU from 10 s to 100 s.
  Scene& Life() {
    scene_.StockNode("n1", 1).Pod("a/one", 1).Leads(kLeader, 1);
    scene_.At(10).Bind("a/one", "n1", {{"GPU-0"}}).At(100).End("a/one").At(600);
    return scene_;
  }
  std::set<std::string> Found() { return scene_.Found({}, {options_.path}); }

  Scene scene_;
};

TEST_F(SimLedger, ThePastOfPodsIsWhatBecameOfThem) {
  struct Row {
    const char* uid;
    const char* node;
    PastEnd how;
    const char* found;  // empty: nothing
  };
  for (const Row& row :
       {Row{kUid, "n1", PastEnd::kNot, ""}, Row{kUid, "n2", PastEnd::kNot, "past"},
        Row{kUid, "n1", PastEnd::kByItself, ""}, Row{"u-a/two", "n1", PastEnd::kUnseen, ""},
        Row{"u-a/two", "n1", PastEnd::kByItself, "past"},
        Row{"u-a/none", "n1", PastEnd::kNot, "past"}}) {
    options_.path += "x";
    PastPod pod;
    pod.uid = PodUid(row.uid);
    pod.name = {"a", std::string(row.uid).substr(4)};
    pod.created = Second(1);
    pod.object = "{}";
    pod.node = NodeName(row.node);
    pod.started = Second(10);
    if (row.how != PastEnd::kNot) pod.ended = Second(100);
    pod.how = row.how;
    MustOpen()->NotePast({Second(100), {pod}, {}, std::nullopt});
    Scene scene;
    scene.StockNode("n1", 2).Pod("a/one", 1).Pod("a/two", 1).Leads(kLeader, 1);
    scene.At(10).Bind("a/one", "n1", {{"GPU-0"}}).Bind("a/two", "n1", {{"GPU-1"}});
    scene.At(100).End("a/one").At(600);
    const std::set<std::string> found = scene.Found({}, {options_.path});
    EXPECT_EQ(found.contains("past"), row.found[0] != 0) << row.uid << ": " << scene.Texts();
  }
}

TEST_F(SimLedger, WhatWasPromisedIsThere) {
  WriteFile({ledger::Open(kUid, Second(10)), ledger::Close(kUid, Second(100))});
  Life();
  Promise("open", 10);
  Promise("close", 100);
  EXPECT_THAT(Found(), IsEmpty()) << scene_.Texts();
}

TEST_F(SimLedger, APromiseThatIsNotThereIsFound) {
  WriteFile({ledger::Open(kUid, Second(10)), ledger::Close(kUid, Second(100))});
  Life();
  Promise("running", 12);
  EXPECT_THAT(Found(), ElementsAre("ledger")) << scene_.Texts();
}

TEST_F(SimLedger, AFileThatSomebodyChangedDoesNotVerify) {
  WriteFile({ledger::Open(kUid, Second(10)), ledger::Close(kUid, Second(100))});
  Sql("DROP TRIGGER entry_update; DROP TRIGGER entry_no_update;");
  Sql("UPDATE balance SET compute = compute + 1");
  Life();
  EXPECT_THAT(Found(), ElementsAre("ledger")) << scene_.Texts();
}

TEST_F(SimLedger, ADiskThatHarmsWhatWasSyncedExcusesAll) {
  Scene scene({.disks_are_sound = false});
  scene.StockNode("n1", 1);
  EXPECT_THAT(scene.Found({}, {options_.path}), IsEmpty()) << scene.Texts();
}

struct Charged {
  const char* what;
  double from, to;  // to 0: open
  bool wrong;
};

TEST_F(SimLedger, TimeIsChargedToTheSecond) {
  const Charged kRows[] = {
      {"to the millisecond", 10, 100, false}, {"a reservation before", 9.5, 100, false},
      {"too early", 7.9, 100, true},          {"too late", 13.5, 100, true},
      {"a word late", 10, 100.9, false},      {"ended too early", 10, 98, true},
      {"ended too late", 10, 104, true},      {"never ended", 10, 0, true},
  };
  for (const Charged& row : kRows) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    std::vector<MeterEvent> events = {ledger::Open(kUid, Second(row.from))};
    if (row.to > 0) events.push_back(ledger::Close(kUid, Second(row.to)));
    WriteFile(std::move(events));
    Scene scene;
    scene.StockNode("n1", 1).Leads(kLeader, 1).At(9).Pod("a/one", 1);
    scene.At(10).Bind("a/one", "n1", {{"GPU-0"}}).At(100).End("a/one").At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("charges"), row.wrong) << row.what << "\n"
                                                                               << scene.Texts();
  }
}

struct Unseen {
  const char* what;
  bool told;        // its caller, how the bind went
  double from, to;  // as charged; 0: not at all
  bool wrong;
};

// Where nobody was told how its bind went it may have gone before anybody saw it with a node. Who
// saw it late knows since when it had it.
TEST_F(SimLedger, APodThatNobodySawIsNotChargedFor) {
  const Unseen kRows[] = {{"seen by nobody", false, 0, 0, false},
                          {"seen by nobody, bound by us", true, 0, 0, true},
                          {"seen late, charged from then", false, 60, 60, true},
                          {"seen late, bound by us, charged from then", true, 60, 60, true},
                          {"seen late, charged for what it had", false, 10, 40, false}};
  for (const Unseen& row : kRows) {
    SCOPED_TRACE(row.what);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    std::vector<MeterEvent> events;
    if (row.to > 0) {
      events = {ledger::Open(kUid, Second(row.from)), ledger::Close(kUid, Second(row.to))};
    }
    WriteFile(std::move(events));
    CheckOptions late;
    late.lag = std::chrono::seconds(75);
    Scene scene(late);
    scene.StockNode("n1", 1).Leads(kLeader, 1).At(9).Pod("a/one", 1);
    scene.At(10).Bind("a/one", "n1", {{"GPU-0"}});
    const char* const error = row.told ? "" : "the outcome of the bind is not known yet";
    scene.At(14).Say({.kind = Happening::Kind::kAsked,
                      .key = "a/one",
                      .text = "bind",
                      .after = Json({{"Error", error}})});
    scene.At(40).End("a/one").At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("charges"), row.wrong) << scene.Texts();
  }
}

TEST_F(SimLedger, ATimeWithoutLeaderIsAllowedFor) {
  for (const bool down : {true, false}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    WriteFile({ledger::Open(kUid, Second(10)), ledger::Close(kUid, Second(125))});
    Scene scene;
    scene.StockNode("n1", 1).Leads(kLeader, 1).Pod("a/one", 1);
    scene.At(10).Bind("a/one", "n1", {{"GPU-0"}}).At(90);
    if (down) scene.Say({.kind = Happening::Kind::kEnded, .who = kLeader});
    scene.At(100).End("a/one").At(120);
    if (down) scene.Leads("tranche-0/2", 2);
    scene.At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("charges"), !down) << scene.Texts();
  }
}

TEST_F(SimLedger, NoPodIsInTheBooksTwice) {
  WriteFile({});
  for (const char* const what : {"held_twice", "kept_twice", "disputed_devices"}) {
    Scene scene;
    scene.Say({.kind = Happening::Kind::kDoubted, .number = 1, .who = kLeader, .text = what});
    const bool wrong = what != std::string("disputed_devices");
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("ledger"), wrong) << scene.Texts();
  }
}

// Ended while nobody led: until the last leader's last word, which it was told to be a guess.
TEST_F(SimLedger, AGuessChargesNothingThatNobodySaw) {
  struct Row {
    const char* what;
    bool estimated;
    double until;
    bool wrong;
  };
  const Row kRows[] = {{"the last word", true, 89, false},
                       {"when somebody led again", true, 120, true},
                       {"as the pod itself said", false, 120, false}};
  for (const Row& row : kRows) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    MeterEvent close = ledger::Close(kUid, Second(row.until));
    close.estimated = row.estimated;
    WriteFile({ledger::Open(kUid, Second(10)), std::move(close)});
    Scene scene;
    scene.StockNode("n1", 1).Leads(kLeader, 1).Pod("a/one", 1);
    scene.At(10).Bind("a/one", "n1", {{"GPU-0"}});
    scene.At(90).Say({.kind = Happening::Kind::kEnded, .who = kLeader});
    scene.At(119).End("a/one").At(120).Leads("tranche-0/2", 2).At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("charges"), row.wrong) << row.what << "\n"
                                                                               << scene.Texts();
  }
}

// The second leader has no ledger where the row says so; another one leads from 200 s on.
TEST_F(SimLedger, ALeaderWithoutItsLedgerMetersNothing) {
  struct Row {
    const char* what;
    const char* why;
    double ended;
    bool wrong;
  };
  const Row kRows[] = {
      {"over before anybody with a ledger led", "held by another", 150, false},
      {"still there then", "held by another", 300, true},
      {"placed by one with its ledger", "", 150, true},
  };
  for (const Row& row : kRows) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    WriteFile({});
    Scene scene;
    scene.StockNode("n1", 1).Leads("tranche-0/1", 1).Pod("a/one", 1);
    // The first stands still, and is found to have been lost later.
    scene.At(90).Leads("tranche-1/1", 2, row.why);
    scene.At(100).Bind("a/one", "n1", {{"GPU-0"}}, "", "tranche-1/1", 2);
    scene.At(120).Say({.kind = Happening::Kind::kLost, .who = "tranche-0/1"});
    if (row.ended < 200) scene.At(row.ended).End("a/one");
    scene.At(200).Leads("tranche-0/2", 3);
    if (row.ended > 200) scene.At(row.ended).End("a/one");
    scene.At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("charges"), row.wrong) << row.what << "\n"
                                                                               << scene.Texts();
  }
}

TEST_F(SimLedger, ARecordWithoutDevicesChargesNothing) {
  WriteFile({});
  scene_.StockNode("n1", 1).Leads(kLeader, 1).Pod("a/one", 0);
  scene_.At(10).Bind("a/one", "n1", {}).At(600);
  EXPECT_THAT(Found(), IsEmpty()) << scene_.Texts();
}

TEST_F(SimLedger, APodWithoutANodeIsChargedNothing) {
  WriteFile({ledger::Open(kUid, Second(10)), ledger::Close(kUid, Second(60))});
  scene_.StockNode("n1", 1).Leads(kLeader, 1).Pod("a/one", 1);
  scene_.At(100).Remove("pods", "a/one").At(600);
  EXPECT_THAT(Found(), ElementsAre("charges")) << scene_.Texts();
}

TEST_F(SimLedger, ABindWhoseOutcomeNobodyLearntIsChargedUntilTheLeaderWasLost) {
  struct Row {
    const char* what;
    bool estimated;
    double gone;   // when the pod is removed; from 60 to 120 nobody leads
    double until;  // charged
    bool wrong;
  };
  const Row kRows[] = {
      {"gone before anybody led again", true, 90, 59, false},
      {"charged beyond the last word of it", true, 90, 80, true},
      {"called certain", false, 90, 59, true},
      {"gone while somebody led", true, 50, 40, true},
      {"gone just before the leader was lost", true, 59, 59.5, false},
  };
  for (const Row& row : kRows) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    MeterEvent close = ledger::Close(kUid, Second(row.until));
    close.estimated = row.estimated;
    WriteFile({ledger::Open(kUid, Second(10)), std::move(close)});
    Scene scene;
    scene.StockNode("n1", 1).Leads(kLeader, 1).Pod("a/one", 1);
    if (row.gone < 60) scene.At(row.gone).Remove("pods", "a/one");
    scene.At(60).Say({.kind = Happening::Kind::kLost, .who = kLeader});
    if (row.gone > 60) scene.At(row.gone).Remove("pods", "a/one");
    scene.At(120).Leads("tranche-1/1", 2).At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("charges"), row.wrong) << row.what << "\n"
                                                                               << scene.Texts();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
