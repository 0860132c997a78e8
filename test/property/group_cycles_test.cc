// kube-scheduler's groups under random events: of a group whose pods were all seen, a cycle passes
// enough or nobody, and whoever passed is bound, whatever comes between.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/gangs/gang_seats.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;

class GroupStream {
 public:
  explicit GroupStream(uint64_t seed) : random_(seed), engine_(EngineOptions{}) {
    const std::string borrow = Draw(2) == 0 ? "" : "0";
    engine_.SetPolicies(
        test::Declare({.quotas = {Quota("org"),
                                  Quota("team-a").Under("org").Owns("a").Line(
                                      "any", std::to_string(4 + Draw(16)), borrow),
                                  Quota("team-b").Under("org").Owns("b").Line(
                                      "any", std::to_string(4 + Draw(16)), borrow)}}),
        GpuPolicy(), now_);
    for (int i = 0; i < 4; ++i) {
      NodeFacts node = test::StockNode(fmt::format("n{}", i), 8);
      node.labels = LabelText(Labels{{"topology.kubernetes.io/rack", fmt::format("r{}", i / 2)}});
      engine_.UpsertNode(node, now_);
      names_.push_back(node.name.str());
    }
    engine_.FinishRestore(now_);
  }

  // Empty: all is well.
  std::string Step() {
    switch (Draw(5)) {
      case 0:
        Create();
        return "";
      case 1:
        End();
        return "";
      case 2:
        PlaceSingle();
        return "";
      default:
        return RunCycle();
    }
  }
  std::vector<std::string> Audit() const { return engine_.Audit(); }
  int cycles() const { return cycles_; }
  int refusals() const { return refusals_; }

 private:
  struct Group {
    std::vector<PodRequest> waiting;
    std::vector<PodUid> bound;
    int least = 0;      // what kube-scheduler needs
    bool told = false;  // and we know
  };
  using Answers = std::vector<std::pair<PodRequest, std::string>>;

  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void Create() {
    if (groups_.size() > 12) return;
    Group group;
    const std::string name = fmt::format("g{}", ++serial_);
    const std::string ns = Draw(2) == 0 ? "a" : "b";
    const int pods = 1 + Draw(5), gpus = 1 << Draw(4);
    group.told = Draw(2) == 0;
    group.least = group.told ? 1 + Draw(pods) : pods;
    if (group.told) engine_.SetGangSize(ns, "group/" + name, group.least, now_);
    for (int i = 0; i < pods; ++i) {
      PodRequest request = test::WholePod(fmt::format("{}-{}", name, i), gpus);
      request.name.ns = ns;
      request.gang = "group/" + name;
      request.gang_size = kGangOfAll;
      engine_.UpsertPod(test::Pending(request), now_);
      group.waiting.push_back(std::move(request));
    }
    groups_[name] = std::move(group);
  }

  void End() {
    if (groups_.empty()) return;
    const auto at = std::next(groups_.begin(), Draw(static_cast<int>(groups_.size())));
    for (const PodUid& uid : at->second.bound) engine_.DeletePod(uid, now_);
    for (const PodRequest& pod : at->second.waiting) engine_.DeletePod(pod.uid, now_);
    groups_.erase(at);
  }

  std::string Ask(const PodRequest& request) {
    FilterAnswer answer;
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    engine_.Filter(request, names, now_, answer);
    return answer.chosen.empty() ? "" : names_[answer.chosen.front()];
  }
  bool Bind(const PodRequest& pod, const std::string& node) {
    const BindPlan plan = engine_.Bind(pod.name, pod.uid, NodeName(node), now_);
    if (plan.kind != BindPlan::Kind::kWrite) return false;
    engine_.SettleBind(pod.uid, NodeName(node), BindOutcome::kBound, now_);
    engine_.UpsertPod(test::Bound(pod, node, plan.allocation), now_);
    return true;
  }

  void PlaceSingle() {
    PodRequest pod = test::WholePod(fmt::format("s{}", ++serial_), 1 + Draw(4));
    pod.name.ns = Draw(2) == 0 ? "a" : "b";
    engine_.UpsertPod(test::Pending(pod), now_);
    const std::string node = Ask(pod);
    if (!node.empty() && Bind(pod, node)) {
      singles_.push_back(pod.uid);
    } else {
      engine_.DeletePod(pod.uid, now_);
    }
    if (singles_.size() < 6) return;
    engine_.DeletePod(singles_.front(), now_);
    singles_.erase(singles_.begin());
  }

  std::string RunCycle() {
    if (groups_.empty()) return "";
    const auto at = std::next(groups_.begin(), Draw(static_cast<int>(groups_.size())));
    Group& group = at->second;
    if (group.waiting.empty() || !group.bound.empty()) return "";
    ++cycles_;
    std::ranges::shuffle(group.waiting, random_);
    Answers passed;
    for (const PodRequest& pod : group.waiting) {
      if (const std::string node = Ask(pod); !node.empty()) passed.emplace_back(pod, node);
    }
    refusals_ += passed.empty() ? 1 : 0;
    const auto least = static_cast<std::size_t>(group.least);
    // Those that start alone have their turns one by one.
    if (!passed.empty() && passed.size() < least) {
      return fmt::format("{} of {} pods passed, expected none or {}", passed.size(),
                         group.waiting.size(), least);
    }
    if (passed.size() < least || (group.told && least <= 1)) return "";
    for (int i = Draw(4); i > 0; --i) PlaceSingle();
    now_ += std::chrono::seconds(Draw(5));
    engine_.Tick(now_);
    for (const auto& [pod, node] : passed) {
      if (!Bind(pod, node))
        return fmt::format("{} passed on {}, refused at bind", pod.name.name, node);
      group.bound.push_back(pod.uid);
      std::erase_if(group.waiting, [&](const PodRequest& one) { return one.uid == pod.uid; });
    }
    return "";
  }

  std::mt19937_64 random_;
  Engine engine_;
  Instant now_ = test::At(0);
  std::vector<std::string> names_;
  std::map<std::string, Group> groups_;
  std::vector<PodUid> singles_;
  int serial_ = 0, cycles_ = 0, refusals_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(GroupCycleProperties, EnoughOrNobodyPassesAndWhoPassedIsBound) {
  const uint64_t seed = FromEnvironment("TRANCHE_SEED", 1);
  const uint64_t rounds = FromEnvironment("TRANCHE_STEPS", 3'000) / 60;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  int cycles = 0, refusals = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    GroupStream stream(seed * 1'000 + round);
    for (int step = 0; step < 60; ++step) {
      ASSERT_EQ(stream.Step(), "") << "round " << round << ", step " << step;
    }
    ASSERT_EQ(stream.Audit(), std::vector<std::string>()) << "round " << round;
    cycles += stream.cycles();
    refusals += stream.refusals();
  }
  // The question was asked, and answered both ways.
  EXPECT_GT(refusals, cycles / 50);
  EXPECT_LT(refusals, cycles);
}

}  // namespace THIS_FILE
}  // namespace tranche
