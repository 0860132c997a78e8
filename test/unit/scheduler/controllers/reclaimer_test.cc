// A Reclaimer between an engine that is played by the test and a scripted API server.
#include "scheduler/controllers/reclaimer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "test/unit/scheduler/controllers/quiet_objects.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

const Instant kStart{std::chrono::hours(24 * 365 * 56)};

WriteResult Done() { return {WriteResult::Kind::kDone, 200, ""}; }
WriteResult Rejected(int code) { return {WriteResult::Kind::kRejected, code, "no"}; }

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Notes every call in one line, and answers at once unless told to hold answers of a kind.
class NotingApi : public Evictions, public QuietObjects {
 public:
  std::vector<std::string> calls;
  std::vector<EventWrite> events;
  std::vector<ObjectWrite> objects;
  std::deque<WriteResult> write_answers;     // empty: all done
  std::deque<EvictionResult> evict_answers;  // likewise
  std::deque<WriteResult> deletion_answers;  // likewise
  bool hold_writes = false;
  std::deque<std::function<void(WriteResult)>> held_writes;
  int deepest = 0;  // evictions asked for from within an eviction

  void Write(ObjectWrite write, std::function<void(WriteResult)> done) override {
    calls.push_back((write.status ? "status " : "object ") + write.name);
    objects.push_back(std::move(write));
    if (hold_writes) {
      held_writes.push_back(std::move(done));
    } else {
      done(Next(write_answers));
    }
  }
  void DeleteReclaim(std::string name, std::function<void(WriteResult)> done) override {
    calls.push_back("delete " + name);
    done(Next(deletion_answers));
  }
  void Evict(EvictionWrite write, std::function<void(EvictionResult)> done) override {
    deepest = std::max(deepest, ++depth_);
    calls.push_back("evict " + write.pod.str());
    EvictionResult result{Done(), std::nullopt};
    if (!evict_answers.empty()) {
      result = evict_answers.front();
      evict_answers.pop_front();
    }
    done(result);
    --depth_;
  }
  void Nominate(PodName pod, PodUid, NodeName node,
                std::function<void(WriteResult)> done) override {
    calls.push_back("nominate " + pod.str() + " " + node.str());
    done(Done());
  }
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override {
    events.push_back(std::move(event));
    done(Done());
  }
  void AnswerWrite(const WriteResult& result) {
    const auto done = std::move(held_writes.front());
    held_writes.pop_front();
    done(result);
  }
  std::vector<std::string> TakeCalls() { return std::exchange(calls, {}); }
  std::vector<EventWrite> TakeEvents() { return std::exchange(events, {}); }

 private:
  static WriteResult Next(std::deque<WriteResult>& answers) {
    if (answers.empty()) return Done();
    WriteResult result = answers.front();
    answers.pop_front();
    return result;
  }
  int depth_ = 0;
};

Reclaim MakeReclaim(const std::string& name, int victims) {
  Reclaim reclaim;
  reclaim.name = name;
  reclaim.rule = ReclaimRule::kR1;
  reclaim.leaf = "prod";
  reclaim.members = {{{"prod", "serve-0"}, PodUid("u-serve"), NodeName("gpu-1"), false}};
  reclaim.planned_at = kStart;
  for (int i = 0; i < victims; ++i) {
    ReclaimVictim victim;
    victim.pod = {"team-b", "train-" + std::to_string(i)};
    victim.uid = PodUid("u-train-" + std::to_string(i));
    victim.leaf = "research";
    victim.state = QuotaState::kBorrowed;
    victim.lost_gpu_ms = 1'920'000;
    reclaim.victims.push_back(victim);
  }
  return reclaim;
}

Reclaim InPhase(Reclaim reclaim, ReclaimPhase phase) {
  reclaim.phase = phase;
  if (reclaim.finished()) reclaim.finished_at = kStart;
  return reclaim;
}

EvictionOrder OrderFor(const Reclaim& reclaim, std::size_t victim) {
  return {reclaim.name, reclaim.victims[victim].pod, reclaim.victims[victim].uid, std::nullopt};
}

class ReclaimerTest : public testing::Test {
 protected:
  struct Settled {
    std::string reclaim;
    PodUid uid;
    EvictionOutcome outcome;
    std::optional<Millis> retry_after;
  };

  void Do(ReclaimWork work, Instant now = kStart) {
    reclaimer.Queue(std::move(work), now);
    reclaimer.Carry();
  }
  void Change(const Reclaim& reclaim, Instant now = kStart) {
    Do({{reclaim}, {}, {}, {}, {}}, now);
  }
  void Evict(const Reclaim& reclaim, std::size_t victim) {
    Do({{}, {}, {OrderFor(reclaim, victim)}, {}, {}});
  }
  bool HasMetric(const std::string& line) const {
    return Contains("\n" + metrics.Render({}), "\n" + line + "\n");
  }

  NotingApi api;
  metrics::Metrics metrics;
  std::vector<Settled> settled;
  std::function<void()> on_settle;
  Reclaimer reclaimer{
      api,
      api,
      metrics,
      {[this](const std::string& reclaim, const PodUid& uid, EvictionOutcome outcome,
              std::optional<Millis> retry_after) {
         settled.push_back({reclaim, uid, outcome, retry_after});
         if (on_settle) on_settle();
       },
       [](const std::string& kind, const std::string& name) { return "uid of " + kind + name; }}};
};

using Lines = std::vector<std::string>;

// ---- the record ---------------------------------------------------------------------------------

TEST_F(ReclaimerTest, RecordIsWrittenBeforeTheFirstEviction) {
  const Reclaim reclaim = MakeReclaim("r1", 2);
  Do({{reclaim},
      {{{"prod", "serve-0"}, PodUid("u-serve"), NodeName("gpu-1")}},
      {OrderFor(reclaim, 0)},
      {},
      {}});
  EXPECT_EQ(api.calls, (Lines{"object r1", "nominate prod/serve-0 gpu-1", "status r1",
                              "evict team-b/train-0"}));
  EXPECT_TRUE(Contains(api.objects[0].fields, "\"spec\"")) << api.objects[0].fields;
  EXPECT_TRUE(Contains(api.objects[1].fields, "team-b/train-1")) << api.objects[1].fields;
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].outcome, EvictionOutcome::kAccepted);
}

TEST_F(ReclaimerTest, EvictionWaitsForTheAnswersOfBothWrites) {
  api.hold_writes = true;
  const Reclaim reclaim = MakeReclaim("r1", 1);
  Do({{reclaim}, {}, {OrderFor(reclaim, 0)}, {}, {}});
  EXPECT_EQ(api.TakeCalls(), Lines{"object r1"});
  api.AnswerWrite(Done());
  EXPECT_EQ(api.TakeCalls(), Lines{"status r1"});
  api.AnswerWrite(Done());
  EXPECT_EQ(api.TakeCalls(), Lines{"evict team-b/train-0"});
}

TEST_F(ReclaimerTest, RecordThatCannotBeWrittenHoldsEvictionsUpForOneTryOnly) {
  const WriteResult lost{WriteResult::Kind::kUnknown, 500, "etcd"};
  const std::vector<std::deque<WriteResult>> failures = {
      {Rejected(404)}, {Rejected(403)}, {lost}, {Done(), lost}, {Done(), Rejected(404)}};
  for (std::size_t i = 0; i < failures.size(); ++i) {
    SCOPED_TRACE(i);
    api.write_answers = failures[i];
    const Reclaim reclaim = MakeReclaim("r" + std::to_string(i), 1);
    Do({{reclaim}, {}, {OrderFor(reclaim, 0)}, {}, {}});
    const Lines calls = api.TakeCalls();
    EXPECT_EQ(calls.size(), failures[i].size() + 1);
    EXPECT_EQ(calls.back(), "evict team-b/train-0");
    EXPECT_EQ(reclaimer.failures(), static_cast<int64_t>(i + 1));
  }
}

TEST_F(ReclaimerTest, AMemberWhoseRoomMovedIsWrittenIntoTheSpecAgain) {
  Reclaim reclaim = MakeReclaim("r1", 1);
  Change(reclaim);
  EXPECT_EQ(api.TakeCalls(), (Lines{"object r1", "status r1"}));
  reclaim.members[0].node = NodeName("gpu-2");
  api.write_answers = {{WriteResult::Kind::kUnknown, 500, "etcd"}};
  Change(reclaim);
  EXPECT_EQ(api.TakeCalls(), Lines{"object r1"});
  EXPECT_TRUE(Contains(api.objects.back().fields, "gpu-2")) << api.objects.back().fields;
  Change(InPhase(reclaim, ReclaimPhase::kEvicting));
  EXPECT_EQ(api.TakeCalls(), (Lines{"object r1", "status r1"})) << "the first try has failed";
  Change(InPhase(reclaim, ReclaimPhase::kReserved));
  EXPECT_EQ(api.TakeCalls(), Lines{"status r1"});
}

TEST_F(ReclaimerTest, OfChangesDuringAWriteOnlyTheNewestIsWritten) {
  api.hold_writes = true;
  Reclaim reclaim = MakeReclaim("r1", 2);
  Change(reclaim);
  api.AnswerWrite(Done());
  api.TakeCalls();
  for (std::size_t i = 0; i < 2; ++i) {
    reclaim.victims[i].evicted_at = kStart + 1s;
    Change(InPhase(reclaim, ReclaimPhase::kEvicting));
  }
  Change(InPhase(reclaim, ReclaimPhase::kReserved));
  EXPECT_EQ(api.TakeCalls(), Lines{}) << "the status is still being written";
  api.AnswerWrite(Done());
  EXPECT_EQ(api.TakeCalls(), Lines{"status r1"});
  EXPECT_TRUE(Contains(api.objects.back().fields, "Reserved")) << api.objects.back().fields;
  api.AnswerWrite(Done());
  EXPECT_EQ(api.TakeCalls(), Lines{});
}

TEST_F(ReclaimerTest, DeletedObjectIsMadeAgainWithTheNextChange) {
  const Reclaim reclaim = MakeReclaim("r1", 1);
  Change(reclaim);
  api.TakeCalls();
  api.write_answers = {Rejected(404)};
  Change(InPhase(reclaim, ReclaimPhase::kEvicting));
  Change(InPhase(reclaim, ReclaimPhase::kReserved));
  EXPECT_EQ(api.TakeCalls(), (Lines{"status r1", "object r1", "status r1"}));
}

TEST_F(ReclaimerTest, FailedWriteIsTriedAgainAfterAWhileUnlessThereIsNoSuchKind) {
  reclaimer.Tick(kStart);
  api.write_answers = {Done(), {WriteResult::Kind::kNotSent, 0, "refused"}};
  Change(MakeReclaim("lost", 1));
  api.write_answers = {Rejected(404)};
  Change(MakeReclaim("no-kind", 1));
  api.TakeCalls();
  reclaimer.Tick(kStart + Reclaimer::kRetryGap - 1ms);
  EXPECT_EQ(api.TakeCalls(), Lines{});
  reclaimer.Tick(kStart + Reclaimer::kRetryGap);
  EXPECT_EQ(api.TakeCalls(), Lines{"status lost"});
}

// ---- evictions ----------------------------------------------------------------------------------

TEST_F(ReclaimerTest, AnswersOfTheServerAreWhatTheEngineIsTold) {
  struct Row {
    WriteResult answer;
    EvictionOutcome outcome;
    const char* metric;  // the failure that is counted; nullptr: none
  };
  using Kind = WriteResult::Kind;
  const std::vector<Row> table = {
      {{Kind::kDone, 201, ""}, EvictionOutcome::kAccepted, nullptr},
      {{Kind::kRejected, 404, ""}, EvictionOutcome::kGone, nullptr},
      {{Kind::kRejected, 409, ""}, EvictionOutcome::kFailed, "failed"},
      {{Kind::kRejected, 429, ""}, EvictionOutcome::kBlocked, "disruption_budget"},
      {{Kind::kRejected, 403, ""}, EvictionOutcome::kForbidden, "forbidden"},
      {{Kind::kRejected, 400, ""}, EvictionOutcome::kFailed, "failed"},
      {{Kind::kUnknown, 500, ""}, EvictionOutcome::kFailed, "failed"},
      {{Kind::kUnknown, 0, ""}, EvictionOutcome::kFailed, "failed"},
      {{Kind::kNotSent, 0, ""}, EvictionOutcome::kFailed, "failed"},
  };
  const Reclaim reclaim = MakeReclaim("r1", 1);
  Change(reclaim);
  std::map<std::string, int> failures;
  for (const Row& row : table) {
    SCOPED_TRACE(std::to_string(static_cast<int>(row.answer.kind)) + " " +
                 std::to_string(row.answer.http_code));
    settled.clear();
    api.evict_answers = {{row.answer, 7s}};
    Evict(reclaim, 0);
    ASSERT_EQ(settled.size(), 1U);
    EXPECT_EQ(settled[0].outcome, row.outcome);
    EXPECT_EQ(settled[0].reclaim, "r1");
    EXPECT_EQ(settled[0].uid, PodUid("u-train-0"));
    EXPECT_EQ(settled[0].retry_after, Millis(7s));
    if (row.metric != nullptr) ++failures[row.metric];
  }
  for (const auto& [reason, count] : failures) {
    EXPECT_TRUE(HasMetric("tranche_eviction_failures_total{reason=\"" + reason + "\"} " +
                          std::to_string(count)))
        << reason;
  }
}

TEST_F(ReclaimerTest, AnswersThatComeAtOnceDoNotNest) {
  constexpr std::size_t kVictims = 2'000;
  const Reclaim reclaim = MakeReclaim("r1", kVictims);
  Change(reclaim);
  // As the engine does: the next eviction when the last one is settled.
  on_settle = [&] {
    if (settled.size() == kVictims) return;
    reclaimer.Queue({{}, {}, {OrderFor(reclaim, settled.size())}, {}, {}}, kStart);
    reclaimer.Carry();
  };
  Evict(reclaim, 0);
  EXPECT_EQ(settled.size(), kVictims);
  EXPECT_EQ(api.deepest, 1);
}

TEST_F(ReclaimerTest, AfterARestartEvictionsGoOnWithoutASecondRecord) {
  Reclaim reclaim = MakeReclaim("r1", 2);
  reclaim.phase = ReclaimPhase::kEvicting;
  reclaim.victims[0].evicted_at = kStart;
  reclaimer.Restored({reclaim});
  EXPECT_EQ(reclaimer.running(), 1);
  Evict(reclaim, 1);
  reclaim.victims[1].evicted_at = kStart + 1s;
  Change(reclaim);
  EXPECT_EQ(api.calls, (Lines{"evict team-b/train-1", "status r1"}));
  ASSERT_EQ(api.events.size(), 1U) << "what was told before the restart is not told again";
  EXPECT_EQ(api.events[0].name, "train-1");
  EXPECT_FALSE(HasMetric(R"(tranche_reclaim_total{from="research",rule="R1",to="prod"} 1)"));
}

// ---- what people are told -----------------------------------------------------------------------

TEST_F(ReclaimerTest, BothSidesAreToldOnce) {
  Reclaim reclaim = MakeReclaim("r1", 7);
  Change(reclaim);
  EXPECT_TRUE(api.TakeEvents().empty()) << "nobody is evicted yet";
  reclaim.victims[0].evicted_at = kStart + 1s;
  reclaim.phase = ReclaimPhase::kEvicting;
  Change(reclaim, kStart + 1s);
  const std::vector<EventWrite> events = api.TakeEvents();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].reason, "Preempting");
  EXPECT_EQ(events[0].uid, "u-serve");
  EXPECT_FALSE(events[0].warning);
  EXPECT_EQ(events[0].note,
            "evicting 7 pods to make room: team-b/train-0, team-b/train-1, team-b/train-2, "
            "team-b/train-3, team-b/train-4 and 2 more; rule R1: the team takes back what is its "
            "own from those who borrowed it");
  EXPECT_EQ(events[1].reason, "PreemptedByTranche");
  EXPECT_EQ(events[1].action, "Evicted");
  EXPECT_EQ(events[1].uid, "u-train-0");
  EXPECT_EQ(events[1].when, kStart + 1s);
  EXPECT_EQ(events[1].note,
            "room is made for prod/serve-0 by rule R1: the team takes back what is its own from "
            "those who borrowed it; about 1920 GPU-seconds of work are lost");
  Change(reclaim);
  EXPECT_TRUE(api.TakeEvents().empty());
}

TEST_F(ReclaimerTest, GivingUpIsAWarning) {
  Reclaim reclaim = MakeReclaim("r1", 2);
  Change(reclaim);
  reclaim.victims[0].gone_at = kStart;
  reclaim.reason = "PDBBlocked";
  Change(InPhase(reclaim, ReclaimPhase::kAborted));
  Change(InPhase(reclaim, ReclaimPhase::kAborted));
  ASSERT_EQ(api.events.size(), 1U);
  EXPECT_TRUE(api.events[0].warning);
  EXPECT_EQ(api.events[0].reason, "PreemptionAborted");
  EXPECT_EQ(api.events[0].note, "PDBBlocked: given up with 1 of 2 pods gone; reclaim r1");
}

TEST_F(ReclaimerTest, ReleasesNameWhatAsksForThem) {
  const std::tuple<ReclaimRule, std::string, std::string> table[] = {
      {ReclaimRule::kDrain, "GPUBudget", "PreemptedByTranche"},
      {ReclaimRule::kShrink, "GPUQuota", "PreemptedByTranche"},
      {ReclaimRule::kMaxRuntime, "GPUClass", "MaxRuntime"},
      {ReclaimRule::kMaintenance, "GPUPool", "Maintenance"},
      {ReclaimRule::kUnhealthy, "Node", "UnhealthyGPU"},
      {ReclaimRule::kInterruption, "Node", "Interrupted"}};
  for (const auto& [rule, kind, reason] : table) {
    SCOPED_TRACE(ReclaimRuleName(rule));
    Reclaim reclaim = MakeReclaim("of-" + std::string(ReclaimRuleName(rule)), 1);
    reclaim.rule = rule;
    reclaim.members.clear();
    reclaim.source = "monthly";
    reclaim.phase = ReclaimPhase::kEvicting;
    reclaim.victims[0].evicted_at = kStart;
    Change(reclaim);
    const std::vector<EventWrite> events = api.TakeEvents();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].kind, kind);
    EXPECT_EQ(events[0].name, "monthly");
    EXPECT_EQ(events[0].uid, "uid of " + kind + "monthly");
    EXPECT_TRUE(Contains(events[1].note, kind + " monthly")) << events[1].note;
    EXPECT_EQ(events[1].reason, reason);
  }
}

TEST_F(ReclaimerTest, EvictionsAreCountedByRuleAndTeam) {
  Reclaim reclaim = MakeReclaim("r1", 3);
  reclaim.victims[2].leaf = "vision";
  reclaim.victims[1].again = true;
  Change(reclaim);
  EXPECT_EQ(reclaimer.running(), 1);
  for (ReclaimVictim& victim : reclaim.victims) {
    victim.evicted_at = kStart;
    Change(InPhase(reclaim, ReclaimPhase::kEvicting));
  }
  Change(InPhase(reclaim, ReclaimPhase::kDone));
  Do({{}, {}, {}, {{"prod", "serve", Millis(20s), true}}, {}});
  EXPECT_EQ(reclaimer.running(), 0);
  for (const char* line : {
           R"(tranche_reclaim_total{from="research",rule="R1",to="prod"} 1)",
           R"(tranche_reclaim_total{from="vision",rule="R1",to="prod"} 1)",
           R"(tranche_evicted_pods_total{leaf="research",rule="R1"} 2)",
           R"(tranche_evicted_pods_total{leaf="vision",rule="R1"} 1)",
           R"(tranche_lost_work_gpu_seconds_total{leaf="research"} 3840)",
           R"(tranche_reevictions_total{leaf="research"} 1)",
           R"(tranche_time_to_nominal_seconds_bucket{le="15"} 0)",
           R"(tranche_time_to_nominal_seconds_bucket{le="30"} 1)",
           R"(tranche_wait_seconds_count{class="serve",leaf="prod"} 1)",
       }) {
    EXPECT_TRUE(HasMetric(line)) << line << "\n" << metrics.Render({});
  }
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(ReclaimerTest, ObjectsStayForADayAfterTheirReclaimEnded) {
  Reclaim before = InPhase(MakeReclaim("before", 1), ReclaimPhase::kDone);
  before.finished_at = kStart - 23h;
  reclaimer.Restored({before});
  Change(InPhase(MakeReclaim("done", 1), ReclaimPhase::kDone));
  Change(MakeReclaim("runs", 1));
  api.TakeCalls();
  reclaimer.Tick(kStart + 1h - 1ms);
  EXPECT_EQ(api.TakeCalls(), Lines{});
  reclaimer.Tick(kStart + 1h);
  EXPECT_EQ(api.TakeCalls(), Lines{"delete before"});
  reclaimer.Tick(kStart + 24h);
  EXPECT_EQ(api.TakeCalls(), Lines{"delete done"});
  reclaimer.Tick(kStart + 240h);
  EXPECT_EQ(api.TakeCalls(), Lines{});
}

TEST_F(ReclaimerTest, OnlySoManyEndedReclaimsStayTheOldestGoFirst) {
  std::vector<Reclaim> ended;
  for (std::size_t i = 0; i < Reclaimer::kMostFinished + 2; ++i) {
    ended.push_back(InPhase(MakeReclaim("r" + std::to_string(i), 1), ReclaimPhase::kDone));
    ended.back().finished_at = kStart - Millis(i);
  }
  reclaimer.Restored(ended);
  reclaimer.Tick(kStart);
  EXPECT_EQ(api.calls, (Lines{"delete r1001", "delete r1000"}));
}

TEST_F(ReclaimerTest, DeletionThatFailedIsTriedAgain) {
  reclaimer.Restored({InPhase(MakeReclaim("r1", 1), ReclaimPhase::kDone)});
  api.deletion_answers = {Rejected(403), Rejected(404)};
  reclaimer.Tick(kStart + 24h);
  reclaimer.Tick(kStart + 24h + Reclaimer::kRetryGap);
  reclaimer.Tick(kStart + 24h + 2 * Reclaimer::kRetryGap);
  EXPECT_EQ(api.calls, (Lines{"delete r1", "delete r1"}));
}

}  // namespace THIS_FILE
}  // namespace tranche
