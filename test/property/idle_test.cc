// Random work and random failures of telemetry: nobody is evicted for idleness who worked.
//
// Pods on one node work in spells of at least eight minutes, with pauses between. Every minute
// Prometheus is asked, and fails in all ways it has: no answer, half of one, an error, other JSON,
// rows that are missing, of others, without a number, without names; outages of up to half an hour;
// and exporters that tell of one pod what another does not. By the truth
//   whoever is asked to leave did nothing for its idleAfter, but for a spell that began in the
//   five minutes of silence that are taken for none
//   whoever did nothing for twice that long, with telemetry that works, has been asked to leave
//   TRANCHE_SEED=7 TRANCHE_STEPS=100 property_tests --gtest_filter='Idle*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "scheduler/controllers/use_reader.h"
#include "scheduler/wire/agents/use_rows.h"
#include "test/builders/budget_history.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::FromEnvironment;
using test::Minutes;

constexpr int kIdleAfter = 40;   // minutes
constexpr int kShortest = 8;     // minutes that a spell of work has at least
constexpr int kLength = 6 * 60;  // minutes of a world
constexpr int kPods = 6;

struct Counts {
  int64_t failures = 0;
  int64_t evicted = 0;
};

class World {
 public:
  World(uint64_t seed, Counts& counts) : random_(seed), counts_(counts) {
    NodeFacts node = test::AgentNode(AgentKind::kTranche, "n1", kPods, 81'559);
    node.product = "NVIDIA-H100-80GB-HBM3";
    for (AgentDevice& device : node.agent->devices) device.slots = 1;
    node.gpu = ResourceCount{kPods, kPods};
    engine_.UpsertNode(node, now_);
    GpuClass lazy = Class("lazy");
    lazy.idle_after = Minutes(kIdleAfter);
    engine_.SetPolicies(test::Declare({.classes = {lazy}}), GpuPolicy(), now_);
    for (int i = 0; i < kPods; ++i) Start(i);
    reliable_ = random_() % 4 == 0;
  }

  void Run() {
    for (minute_ = 1; minute_ <= kLength; ++minute_) {
      now_ += Minutes(1);
      Work();
      Ask();
      engine_.Tick(now_);
      while (engine_.PlanNext(now_)) {
      }
      for (const EvictionOrder& order : std::exchange(engine_.effects().reclaims, {}).evictions) {
        Judge(order);
      }
      if (testing::Test::HasFailure()) return;
    }
    if (!reliable_) return;
    for (int i = 0; i < kPods; ++i) {
      const bool must_go = minute_ - last_work_[i] > 2 * kIdleAfter;
      EXPECT_TRUE(!must_go || !running_.contains(i)) << "pod " << i << " is idle, and stays";
    }
  }

 private:
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  static std::string NameOf(int pod) { return "p" + std::to_string(pod); }

  void Start(int i) {
    PodRequest request = test::WholePod(NameOf(i), 1);
    request.priority_class = "lazy";
    engine_.UpsertPod(test::Pending(request), now_);
    const BindPlan plan = engine_.Bind(request.name, request.uid, NodeName("n1"), now_);
    ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite);
    engine_.SettleBind(request.uid, NodeName("n1"), BindOutcome::kBound, now_);
    PodFacts pod = test::Bound(request, "n1", plan.allocation);
    pod.running_at = now_;
    pod.evictable = true;
    engine_.UpsertPod(pod, now_);
    running_.emplace(i, pod);
    card_[i] = plan.allocation.containers.at(0).devices.at(0).uuid.str();
    namespace_ = request.name.ns;
  }

  // Spells of work and pauses, minute by minute.
  void Work() {
    for (int i = 0; i < kPods; ++i) {
      if (minute_ >= until_[i]) {
        const bool begins = !works_[i] && Chance(70);
        if (begins) {
          before_[i] = last_work_[i];
          began_[i] = minute_;
        }
        works_[i] = begins;
        until_[i] = minute_ + (works_[i] ? kShortest : 1) + static_cast<int>(random_() % 60);
      }
      if (works_[i]) last_work_[i] = minute_;
    }
  }

  // What was in use at any time in the last two minutes.
  std::string Rows() {
    std::string rows;
    for (int i = 0; i < kPods; ++i) {
      const bool works = minute_ - last_work_[i] < 2;
      std::string value = works ? fmt::format("0.{:03}", 11 + random_() % 900)
                                : fmt::format("0.0{:02}", random_() % 10);
      std::string labels = fmt::format(R"("UUID":"{}")", card_[i]);
      if (Chance(50)) {
        labels += fmt::format(R"(,"namespace":"{}","pod":"{}")", namespace_, NameOf(i));
      }
      if (!reliable_ && Chance(5)) {
        ++counts_.failures;
        switch (random_() % 4) {
          case 0:
            continue;
          case 1:
            value = "NaN";
            break;
          case 2:
            labels = R"("UUID":"GPU-of-another-cluster")";
            break;
          default:
            labels = R"("gpu":"0")";
        }
      }
      rows += fmt::format(R"({}{{"metric":{{{}}},"value":[1,"{}"]}})", rows.empty() ? "" : ",",
                          labels, value);
    }
    return R"({"status":"success","data":{"resultType":"vector","result":[)" + rows + "]}}";
  }

  void Ask() {
    std::string text = Rows();
    if (!reliable_ && minute_ >= outage_ && Chance(2)) {
      outage_ = minute_ + static_cast<int>(random_() % 30);
    }
    if (minute_ < outage_) {
      ++counts_.failures;
      return;
    }
    if (!reliable_ && Chance(10)) {
      ++counts_.failures;
      switch (random_() % 4) {
        case 0:
          return;
        case 1:
          text.resize(random_() % text.size());
          break;
        case 2:
          text = R"({"status":"error","errorType":"timeout","error":"x"})";
          break;
        default:
          text = R"({"status":"success","data":{"resultType":"vector","result":[]}})";
      }
    }
    const auto rows = wire::DecodeUseRows(text);
    if (!rows.ok()) return;
    std::vector<PodView> pods = engine_.Pods({}, {}, 100);
    engine_.NoteUse(MeasurePods(pods, rows->rows, 10).pods, now_);
  }

  void Judge(const EvictionOrder& order) {
    for (const auto& [i, pod] : running_) {
      if (pod.request.uid != order.uid) continue;
      const int pause_from = works_[i] ? before_[i] : last_work_[i];
      const int pause_to = works_[i] ? began_[i] : minute_;
      const int hidden = minute_ - pause_to;
      EXPECT_LE(hidden, kUseGoodFor / Minutes(1)) << "pod " << i << " in minute " << minute_;
      EXPECT_GE(pause_to - pause_from, kIdleAfter - hidden) << "pod " << i;
      ++counts_.evicted;
      engine_.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, std::nullopt,
                             now_);
      engine_.DeletePod(order.uid, now_);
      running_.erase(i);
      return;
    }
  }

  std::mt19937_64 random_;
  Counts& counts_;
  Engine engine_{EngineOptions{}};
  Instant now_ = At(0);
  int minute_ = 0;
  bool reliable_ = false;
  int outage_ = 0;  // until that minute nobody answers
  std::string namespace_;
  std::map<int, PodFacts> running_;
  std::map<int, std::string> card_;
  std::map<int, bool> works_;
  std::map<int, int> until_;
  std::map<int, int> last_work_;
  std::map<int, int> began_;   // the spell it is in, or was in last
  std::map<int, int> before_;  // when it had worked last before that
};

TEST(IdleProperty, NobodyLeavesWhoWorked) {
  const auto first = static_cast<uint64_t>(FromEnvironment("TRANCHE_SEED", 1));
  const auto count = static_cast<uint64_t>(FromEnvironment("TRANCHE_STEPS", 80));
  std::printf("seeds %llu to %llu (TRANCHE_SEED)\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + count - 1));
  Counts counts;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World(seed, counts).Run();
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%lld failures of telemetry, %lld pods evicted\n",
              static_cast<long long>(counts.failures), static_cast<long long>(counts.evicted));
  EXPECT_GT(counts.failures, 0);
  EXPECT_GT(counts.evicted, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
