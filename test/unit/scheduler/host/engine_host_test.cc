#include <fmt/format.h>

#include <string>
#include <vector>

#include "scheduler/host/host.h"
#include "scheduler/ports/ledger.h"
#include "scheduler/wire/records/reclaim_json.h"
#include "test/unit/scheduler/controllers/bind_bench.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

// ---- PodDisruptionBudgets -----------------------------------------------------------------------

PolicyObject Budget(const std::string& json) {
  return {"PodDisruptionBudget", "team-a", "keep", "u-keep", 1, json};
}

std::string BudgetJson(int allowed) {
  return fmt::format(R"({{"metadata":{{"name":"keep","namespace":"team-a"}},)"
                     R"("spec":{{"selector":{{"matchLabels":{{"app":"low"}}}}}},)"
                     R"("status":{{"disruptionsAllowed":{}}}}})",
                     allowed);
}

// team-a/low, which a PodDisruptionBudget may protect, holds both GPUs of gpu-1.
class BudgetedPod : public BindBench {
 protected:
  BudgetedPod() {
    Create(PodFrom(R"({"metadata":{"name":"low","namespace":"team-a","uid":"u-low",)"
                   R"("labels":{"app":"low"}},"spec":{"containers":[{"name":"main",)"
                   R"("resources":{"limits":{"nvidia.com/gpu":"2"}}}]}})"));
    Bind("gpu-1", "u-low", "low");
    EXPECT_EQ(Answer(), "ok");
  }
  // Budgets that would be violated by evicting it.
  int64_t Violations() {
    const std::vector<PreemptNode> asked = {{"gpu-1", {PodUid("u-low"), PodUid("nobody")}, 0}};
    const PodFacts high = GpuPod("high", "u-high", 2);
    const std::vector<PreemptNode> kept = host.engine.With(
        [&](Engine& engine, Instant now) { return engine.Preempt(high.request, asked, now); });
    EXPECT_EQ(kept.size(), 1U);
    return kept.empty() ? -1 : kept[0].pdb_violations;
  }
};

TEST_F(BudgetedPod, DisruptionBudgetsCountFromSeenToGone) {
  EXPECT_EQ(Violations(), 0);
  host.cluster.Receive(Budget(BudgetJson(0)));
  EXPECT_EQ(Violations(), 1);
  host.cluster.Receive(Budget(BudgetJson(1)));
  EXPECT_EQ(Violations(), 0);
  host.cluster.Receive(Budget(BudgetJson(0)));
  host.cluster.Receive(PolicyObjectGone{"PodDisruptionBudget", {"team-a", "keep"}});
  EXPECT_EQ(Violations(), 0);
}

TEST_F(BudgetedPod, DisruptionBudgetThatCannotBeReadLeavesItsFormerSelfInForce) {
  const std::string broken = R"({"metadata":{"name":"keep","namespace":"team-a"},"spec":7})";
  host.cluster.Receive(Budget(broken));
  EXPECT_EQ(Violations(), 0) << "nobody knows whom it protects";
  host.cluster.Receive(Budget(BudgetJson(0)));
  host.cluster.Receive(Budget(broken));
  EXPECT_EQ(Violations(), 1);
}

// ---- GPUReclaims --------------------------------------------------------------------------------

class NotingSink : public ReclaimSink {
 public:
  std::vector<std::string> restored;
  void Restored(const std::vector<Reclaim>& reclaims) override {
    for (const Reclaim& reclaim : reclaims) restored.push_back(reclaim.name);
  }
  void Queue(ReclaimWork, Instant) override {}
  void Carry() override {}
};

PolicyObject ReclaimObject(const std::string& name, Instant finished_at) {
  Reclaim reclaim;
  reclaim.name = name;
  reclaim.rule = ReclaimRule::kR1;
  reclaim.members = {{{"team-a", "gone"}, PodUid("u-gone"), NodeName("gpu-1"), true}};
  reclaim.phase = ReclaimPhase::kDone;
  reclaim.planned_at = finished_at;
  reclaim.finished_at = finished_at;
  return {"GPUReclaim",
          "",
          name,
          "u-" + name,
          1,
          fmt::format(R"({{"metadata":{{"name":"{}"}},{},{}}})", name,
                      wire::EncodeReclaimSpec(reclaim), wire::EncodeReclaimStatus(reclaim))};
}

TEST(HostTest, ReclaimsFoundAtStartAreRestoredOnceAndNewerOnesAreOurOwn) {
  ManualClock clock{Instant(std::chrono::hours(24 * 365 * 56))};
  Host host(HostOptions{}, clock);
  NotingSink sink;
  host.engine.Connect({.reclaims = &sink});
  host.cluster.Receive(ReclaimObject("r-1", clock.Now() - 1h));
  host.cluster.Receive(ReclaimObject("r-2", clock.Now() - 2h));
  host.cluster.Receive(ReclaimObject("r-3", clock.Now() - 3h));
  host.cluster.Receive(PolicyObject{"GPUReclaim", "", "broken", "u", 1, R"({"spec":7})"});
  host.cluster.Receive(PolicyObjectGone{"GPUReclaim", {"", "r-3"}});
  EXPECT_TRUE(sink.restored.empty());
  host.cluster.Receive(Synced());
  host.cluster.Receive(Synced());
  EXPECT_EQ(sink.restored, (std::vector<std::string>{"r-1", "r-2"}));
  host.cluster.Receive(ReclaimObject("r-4", clock.Now()));
  std::vector<std::string> known;
  host.engine.With([&known](Engine& engine, Instant) {
    for (const Reclaim& reclaim : engine.Reclaims()) known.push_back(reclaim.name);
  });
  EXPECT_EQ(known, (std::vector<std::string>{"r-2", "r-1"})) << "by planning time";
}

// ---- Ledger -------------------------------------------------------------------------------------

class NotingLedger : public Ledger {
 public:
  void NotePast(PastNews) override {}
  void NoteFleet(FleetNews) override {}
  std::vector<std::string> told;
  std::vector<MeterEvent> events;
  void Append(std::vector<MeterEvent> news, std::vector<WindowClosing>) override {
    told.push_back("events");
    events.insert(events.end(), news.begin(), news.end());
  }
  void Restore(std::vector<RestoredUse>) override { told.push_back("uses"); }
  void WhenCommitted(std::function<void(bool)> done) override { done(true); }
  void Heartbeat(Instant, std::vector<DecayRow>) override { told.push_back("heartbeat"); }
  LedgerHealth health() const override { return {}; }
};

// A leader that is killed before its first regular heartbeat has seen what was there: the next one
// may not take all that to have ended with the leader before.
TEST(HostTest, TheEndOfTheStartIsAHeartbeat) {
  ManualClock clock{Instant(std::chrono::hours(24 * 365 * 56))};
  NotingLedger ledger;
  EngineHost engine(EngineOptions{}, clock, &ledger, [] { return true; });
  engine.FinishRestore({}, {RestoredUse{}});
  EXPECT_EQ(ledger.told, (std::vector<std::string>{"uses", "heartbeat"}));
}

// Ten seconds ahead of the cluster's.
class AheadClock : public ManualClock {
 public:
  using ManualClock::ManualClock;
  std::optional<ClusterTime> Cluster() const override {
    return ClusterTime{Now() - 11s, Now() - 10s};
  }
};

TEST(HostTest, WhatTheClusterStampedIsTakenByOurClock) {
  AheadClock clock{Instant(std::chrono::hours(24 * 365 * 56))};
  NotingLedger ledger;
  HostOptions options;
  options.ledger = &ledger;
  Host host(std::move(options), clock);
  host.cluster.Receive(NodeChanged{GpuNode("gpu-1")});
  host.cluster.Receive(Synced());
  PodFacts pod = GpuPod("train", "u1", 1);
  pod.node = NodeName("gpu-1");
  pod.bound_at = clock.Now() - 30s;
  host.cluster.Receive(PodChanged{pod});
  ASSERT_FALSE(ledger.events.empty());
  EXPECT_EQ(ledger.events.front().at, clock.Now() - 20s);
}

}  // namespace THIS_FILE
}  // namespace tranche
