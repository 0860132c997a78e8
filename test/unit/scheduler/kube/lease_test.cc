// Which process may lead: tables of what happened when, and what it does next.
#include "scheduler/kube/leadership/lease.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tranche::kube {
namespace THIS_FILE {

using std::chrono::milliseconds;
using Do = LeaseMachine::Do;
using Role = LeaseMachine::Role;

constexpr LeaseTimes kTimes;  // 15 s, 10 s, 2 s
// A follower's wait is the retry period and at most a fifth of it more.
constexpr int kRetry = 2'000;
constexpr int kRetryMost = 2'400;

BootTime At(int ms) { return milliseconds(1'000'000 + ms); }

LeaseRecord Held(const std::string& holder, const std::string& renewed, int64_t transitions = 4) {
  LeaseRecord record;
  record.holder = holder;
  record.duration = std::chrono::seconds(15);
  record.transitions = transitions;
  record.acquired = "long ago";
  record.renewed = renewed;
  record.version = "v-" + renewed;
  record.object = std::make_shared<const nlohmann::json>(nlohmann::json::object());
  return record;
}

// What came of what was asked for.
struct Found {
  LeaseRecord record;
};
struct Missing {};
struct Wrote {
  int sent;
};
struct Turned {};
struct Failed {};
struct Nothing {};
using Event = std::variant<Nothing, Found, Missing, Wrote, Turned, Failed>;

struct Row {
  int at;  // ms
  Event event;
  Role role;
  Do next;
  int from = 0;  // with Do::kWait: until when, ms, at the earliest and at the latest
  int to = 0;
};

void Play(LeaseMachine& machine, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    SCOPED_TRACE("row " + std::to_string(i));
    const BootTime now = At(row.at);
    if (const auto* found = std::get_if<Found>(&row.event)) machine.Found(found->record, now);
    if (std::holds_alternative<Missing>(row.event)) machine.Missing(now);
    if (const auto* wrote = std::get_if<Wrote>(&row.event)) {
      LeaseRecord stored = machine.Claim("at " + std::to_string(wrote->sent), 0);
      stored.version = "ours-" + std::to_string(wrote->sent);
      machine.Wrote(stored, At(wrote->sent), now);
    }
    if (std::holds_alternative<Turned>(row.event)) machine.Refused(now);
    if (std::holds_alternative<Failed>(row.event)) machine.Failed(now);
    const LeaseMachine::Step step = machine.Next(now);
    EXPECT_EQ(machine.role(), row.role);
    ASSERT_EQ(step.what, row.next);
    if (row.next != Do::kWait) continue;
    EXPECT_GE(step.at, At(row.from));
    EXPECT_LE(step.at, At(row.to == 0 ? row.from : row.to));
  }
}

struct Case {
  const char* name;
  std::vector<Row> rows;
};

TEST(LeaseMachineTest, DoesWhatTheTablesSay) {
  constexpr Role kF = Role::kFollower;
  constexpr Role kL = Role::kLeader;
  const Case cases[] = {
      {"nobody ever led: create and lead",
       {{0, Nothing{}, kF, Do::kRead},
        {10, Missing{}, kF, Do::kCreate},
        {20, Wrote{10}, kL, Do::kWait, 10 + kRetry}}},
      {"somebody created it at the same moment: look who",
       {{0, Missing{}, kF, Do::kCreate},
        {10, Turned{}, kF, Do::kRead},
        {20, Found{Held("other", "a")}, kF, Do::kWait, 20 + kRetry, 20 + kRetryMost}}},
      {"given back: taken at once", {{0, Found{Held("", "a")}, kF, Do::kWrite}}},
      {"a new process waits a whole lease after a crash, however old renewTime is",
       {{0, Found{Held("other", "2001")}, kF, Do::kWait, kRetry, kRetryMost},
        {2'400, Found{Held("other", "2001")}, kF, Do::kWait, 2'400 + kRetry, 2'400 + kRetryMost},
        // Not a whole period more: the lease ends before that.
        {14'000, Found{Held("other", "2001")}, kF, Do::kWait, 15'000},
        {15'000, Nothing{}, kF, Do::kRead},
        {15'010, Found{Held("other", "2001")}, kF, Do::kWrite}}},
      {"every renewal begins the wait anew",
       {{0, Found{Held("other", "a")}, kF, Do::kWait, kRetry, kRetryMost},
        {14'000, Found{Held("other", "b")}, kF, Do::kWait, 16'000, 16'400},
        {28'999, Found{Held("other", "b")}, kF, Do::kWait, 29'000},
        {29'000, Found{Held("other", "b")}, kF, Do::kWrite}}},
      {"a label is no sign of life",
       {{0, Found{Held("other", "a")}, kF, Do::kWait, kRetry, kRetryMost},
        {15'000, Found{[] {
           LeaseRecord labelled = Held("other", "a");
           labelled.version = "another";
           return labelled;
         }()},
         kF, Do::kWrite}}},
      {"the API server was away: its word counts from when it is heard",
       {{0, Found{Held("other", "a")}, kF, Do::kWait, kRetry, kRetryMost},
        {2'400, Failed{}, kF, Do::kWait, 4'400, 4'800},
        {60'000, Found{Held("other", "b")}, kF, Do::kWait, 62'000, 62'400}}},
      {"two wanted it: the second looks again",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {10, Turned{}, kF, Do::kRead},
        {20, Found{Held("other", "b")}, kF, Do::kWait, 2'020, 2'420}}},
      {"took it and the answer was lost: it is ours, and the grant counts from a later write",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {5'000, Failed{}, kF, Do::kWait, 7'000, 7'400},
        {7'400, Found{Held("me", "b")}, kF, Do::kWrite},
        {7'410, Wrote{7'400}, kL, Do::kWait, 9'400}}},
      {"renews every two seconds",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {10, Wrote{0}, kL, Do::kWait, 2'000},
        {2'000, Nothing{}, kL, Do::kWrite},
        {2'010, Wrote{2'000}, kL, Do::kWait, 4'000}}},
      {"tries until ten seconds after it sent the last renewal that succeeded, then ends",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {900, Wrote{0}, kL, Do::kWait, 2'000},
        {7'000, Failed{}, kL, Do::kWait, 9'000},
        {9'000, Nothing{}, kL, Do::kWrite},
        {9'500, Failed{}, kL, Do::kWait, 10'000},
        {10'000, Nothing{}, Role::kLost, Do::kStop},
        // Nothing brings it back.
        {10'010, Wrote{9'400}, Role::kLost, Do::kStop}}},
      {"paused for twenty seconds: it is over before anything else",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {10, Wrote{0}, kL, Do::kWait, 2'000},
        {20'000, Nothing{}, Role::kLost, Do::kStop}}},
      {"an answer that came too late to lead by",
       {{0, Found{Held("", "a")}, kF, Do::kWrite}, {10'001, Wrote{0}, Role::kLost, Do::kStop}}},
      {"somebody wrote to the lease of the leader: ours still",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {10, Wrote{0}, kL, Do::kWait, 2'000},
        {2'010, Turned{}, kL, Do::kRead},
        {2'020, Found{Held("me", "x")}, kL, Do::kWrite},
        {2'030, Wrote{2'020}, kL, Do::kWait, 4'020}}},
      {"somebody took the lease of the leader: over at once",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {10, Wrote{0}, kL, Do::kWait, 2'000},
        {2'010, Turned{}, kL, Do::kRead},
        {2'020, Found{Held("other", "x")}, Role::kLost, Do::kStop}}},
      {"deleted under a leader: made anew, the leader stays",
       {{0, Found{Held("", "a")}, kF, Do::kWrite},
        {10, Wrote{0}, kL, Do::kWait, 2'000},
        {2'010, Turned{}, kL, Do::kRead},
        {2'020, Missing{}, kL, Do::kCreate},
        {2'030, Wrote{2'020}, kL, Do::kWait, 4'020}}},
      {"deleted under a follower: its holder is given the time it was promised",
       {{0, Found{Held("other", "a")}, kF, Do::kWait, kRetry, kRetryMost},
        {2'400, Missing{}, kF, Do::kWait, 4'400, 4'800},
        {14'900, Missing{}, kF, Do::kWait, 15'000},
        {15'000, Missing{}, kF, Do::kCreate}}},
      {"deleted after it was given back: nobody is waited for",
       {{0, Found{Held("", "a")}, kF, Do::kWrite}, {10, Missing{}, kF, Do::kCreate}}},
      {"a holder that promised no time has ours",
       {{0, Found{[] {
           LeaseRecord bare = Held("other", "a");
           bare.duration = std::chrono::seconds(0);
           return bare;
         }()},
         kF, Do::kWait, kRetry, kRetryMost},
        {14'999, Nothing{}, kF, Do::kRead}}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    LeaseMachine machine("me", kTimes, 7);
    Play(machine, one.rows);
  }
}

// Between two looks; whoever labels the object changes its version and says nothing of the holder.
TEST(LeaseMachineTest, EveryFieldOfTheHoldersIsASignOfLife) {
  const struct {
    const char* what;
    void (*change)(LeaseRecord&);
    bool alive;
  } rows[] = {
      {"nothing", [](LeaseRecord&) {}, false},
      {"version", [](LeaseRecord& lease) { lease.version = "another"; }, false},
      {"object", [](LeaseRecord& lease) { lease.object = nullptr; }, false},
      {"holder", [](LeaseRecord& lease) { lease.holder = "third"; }, true},
      {"duration", [](LeaseRecord& lease) { lease.duration = std::chrono::seconds(14); }, true},
      {"transitions", [](LeaseRecord& lease) { ++lease.transitions; }, true},
      {"acquired", [](LeaseRecord& lease) { lease.acquired = "just now"; }, true},
      {"renewed", [](LeaseRecord& lease) { lease.renewed = "b"; }, true},
  };
  for (const auto& [what, change, alive] : rows) {
    LeaseMachine machine("me", kTimes, 7);
    LeaseRecord lease = Held("other", "a");
    machine.Found(lease, At(0));
    change(lease);
    machine.Found(lease, At(15'000));
    EXPECT_EQ(machine.Next(At(15'000)).what, alive ? Do::kWait : Do::kWrite) << what;
  }
}

TEST(LeaseMachineTest, WhoHasSeenNoLeaseHasNoEpoch) {
  LeaseMachine machine("me", kTimes, 7);
  EXPECT_EQ(machine.epoch(), 0);
  machine.Found(Held("other", "a", 4), At(0));
  EXPECT_EQ(machine.epoch(), 5);
}

TEST(LeaseMachineTest, TheGrantEndsTenSecondsAfterTheRenewalWasSent) {
  LeaseMachine machine("me", kTimes, 7);
  machine.Found(Held("", "a"), At(0));
  LeaseRecord claim = machine.Claim("now", 0);
  machine.Wrote(claim, At(100), At(4'000));
  EXPECT_EQ(machine.grant_end(), At(10'100));
}

TEST(LeaseMachineTest, ClaimsCountEpochsUp) {
  const struct {
    const char* name;
    std::optional<LeaseRecord> seen;
    int64_t least_epoch;
    int64_t transitions;
    const char* acquired;
  } cases[] = {
      {"the first ever", std::nullopt, 0, 0, "now"},
      {"deleted, and pods remember epoch 9", std::nullopt, 9, 8, "now"},
      {"from another", Held("other", "a", 4), 0, 5, "now"},
      {"from another, pods remember more", Held("other", "a", 4), 20, 19, "now"},
      {"from another, pods remember less", Held("other", "a", 4), 3, 5, "now"},
      {"given back", Held("", "a", 4), 5, 5, "now"},
      {"at the end of the API's numbers", Held("other", "a", INT32_MAX), 9, INT32_MAX, "now"},
      {"far beyond it", Held("other", "a", 4), INT64_MAX, INT32_MAX, "now"},
      {"renewed", Held("me", "a", 4), 90, 4, "long ago"},
  };
  for (const auto& [name, seen, least, transitions, acquired] : cases) {
    SCOPED_TRACE(name);
    LeaseMachine machine("me", kTimes, 7);
    if (seen) machine.Found(*seen, At(0));
    const LeaseRecord claim = machine.Claim("now", least);
    EXPECT_EQ(claim.holder, "me");
    EXPECT_EQ(claim.transitions, transitions);
    EXPECT_EQ(claim.acquired, acquired);
    EXPECT_EQ(claim.renewed, "now");
    EXPECT_EQ(claim.duration, std::chrono::seconds(15));
    EXPECT_EQ(claim.version, seen ? seen->version : "");
  }
}

TEST(LeaseTextTest, CarriesWhatItDoesNotKnow) {
  const std::string object = R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
    "metadata":{"name":"tranche","namespace":"ns","resourceVersion":"17","uid":"u",
      "labels":{"a":"b"},"managedFields":[{"manager":"m"}]},
    "spec":{"holderIdentity":"other","leaseDurationSeconds":20,"leaseTransitions":3,
      "acquireTime":"2026-03-01T00:00:00.000000Z","renewTime":"2026-03-01T00:00:02.500000Z",
      "strategy":"OldestEmulationVersion"}})";
  const absl::StatusOr<LeaseRecord> read = DecodeLease(object);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->holder, "other");
  EXPECT_EQ(read->duration, std::chrono::seconds(20));
  EXPECT_EQ(read->transitions, 3);
  EXPECT_EQ(read->renewed, "2026-03-01T00:00:02.500000Z");
  EXPECT_EQ(read->version, "17");

  LeaseRecord changed = *read;
  changed.holder = "me";
  changed.transitions = 4;
  const auto written = nlohmann::json::parse(EncodeLease(changed, {"ns", "tranche"}));
  EXPECT_EQ(written["spec"]["holderIdentity"], "me");
  EXPECT_EQ(written["spec"]["leaseTransitions"], 4);
  EXPECT_EQ(written["spec"]["strategy"], "OldestEmulationVersion");
  EXPECT_EQ(written["metadata"]["resourceVersion"], "17");
  EXPECT_EQ(written["metadata"]["uid"], "u");
  EXPECT_EQ(written["metadata"]["labels"]["a"], "b");
  EXPECT_FALSE(written["metadata"].contains("managedFields"));
}

TEST(LeaseTextTest, ReadsABareLeaseAndRefusesOtherThings) {
  const absl::StatusOr<LeaseRecord> bare =
      DecodeLease(R"({"kind":"Lease","metadata":{"resourceVersion":"1"}})");
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->holder, "");
  EXPECT_EQ(bare->duration.count(), 0);
  for (const char* text :
       {"", "{}", "[]", "<html>", R"({"kind":"Status","metadata":{"resourceVersion":"1"}})",
        R"({"kind":"Lease","metadata":{}})", R"({"kind":"Lease","metadata":7})",
        R"({"kind":"Lease"})", R"({"kind":7,"metadata":{"resourceVersion":"1"}})"}) {
    EXPECT_FALSE(DecodeLease(text).ok()) << text;
  }
  const auto fresh = nlohmann::json::parse(EncodeLease(Held("me", "x"), {"ns", "tranche"}));
  EXPECT_EQ(fresh["spec"]["holderIdentity"], "me");
}

// What somebody wrote there by hand is nobody's lease, and not a reason to stop.
TEST(LeaseTextTest, FieldsOfAnotherTypeAreEmpty) {
  for (const char* spec :
       {"[]", "{}", "null",
        R"({"holderIdentity":7,"leaseDurationSeconds":"15","leaseTransitions":1.5})"}) {
    const absl::StatusOr<LeaseRecord> read = DecodeLease(
        std::string(R"({"kind":"Lease","metadata":{"resourceVersion":"1"},"spec":)") + spec + "}");
    ASSERT_TRUE(read.ok()) << spec << ": " << read.status();
    EXPECT_EQ(read->holder, "") << spec;
    EXPECT_EQ(read->duration.count(), 0) << spec;
    EXPECT_EQ(read->transitions, 0) << spec;
    const auto written = nlohmann::json::parse(EncodeLease(*read, {"ns", "tranche"}));
    EXPECT_EQ(written["spec"]["holderIdentity"], "") << spec;
  }
}

TEST(LeaseTextTest, WritesTimesWithSixDecimals) {
  const auto when = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(4) +
                    std::chrono::microseconds(70);
  EXPECT_EQ(MicroTime(std::chrono::system_clock::time_point(when)), "2026-03-01T04:00:00.000070Z");
}

TEST(GrantTest, HoldsUntilItsMomentAndNotAfterItsEnd) {
  Grant grant;
  EXPECT_FALSE(grant.holds());
  grant.GiveUntil(BootNow() + std::chrono::hours(1));
  EXPECT_TRUE(grant.holds());
  grant.GiveUntil(BootNow() - std::chrono::milliseconds(1));
  EXPECT_FALSE(grant.holds());
  grant.GiveUntil(BootNow() + std::chrono::hours(1));
  grant.End();
  EXPECT_FALSE(grant.holds());
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
