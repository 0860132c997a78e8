// Gangs under random events: no member is ever placed while the gang has no place for its size, no
// device is given twice, and everything is given back in the end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "scheduler/engine/engine.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

class GangStream {
 public:
  explicit GangStream(uint64_t seed) : random_(seed), engine_(EngineOptions{}) {
    test::SetPolicy(engine_, GpuPolicy());
    for (int i = 0; i < kNodes; ++i) {
      NodeFacts node = test::StockNode(fmt::format("n{}", i), 8);
      node.labels = LabelText(Labels{{"nvidia.com/gpu.clique", fmt::format("c{}", i / 3)}});
      engine_.UpsertNode(node, now_);
      names_.push_back(node.name.str());
    }
    engine_.FinishRestore(now_);
  }

  void Step() {
    switch (Draw(8)) {
      case 0:
        return Create();
      case 1:
      case 2:
      case 3:
        return AskForOne();
      case 4:
        return EndGang();
      case 5:
        return DeleteOne();
      case 6:
        now_ += std::chrono::seconds(Draw(20));
        return static_cast<void>(engine_.Tick(now_));
      default:
        return CarryOut();
    }
  }

  // Empty: all is well.
  std::string Check() {
    const std::vector<std::string> audit = engine_.Audit();
    if (!audit.empty()) return audit.front();
    for (const auto& [gang, size] : sizes_) {
      int bound = 0, alive = 0;
      for (const auto& [uid, pod] : pods_) {
        if (pod.request.gang != gang) continue;
        ++alive;
        bound += !pod.node.empty();
      }
      // One that has once been whole may lose pods; another is whole, or gathers with nothing
      // bound, or its last members have their places kept.
      if (bound >= size) whole_.insert(gang);
      if (bound == 0) whole_.erase(gang);
      if (bound == 0 || whole_.contains(gang) || lost_.contains(gang) || GivesBack(gang)) continue;
      int kept = 0;
      for (const auto& [uid, pod] : pods_) {
        if (pod.request.gang != gang || !pod.node.empty()) continue;
        kept += !AskNode(pod.request).empty();
      }
      if (bound + kept < size) {
        return fmt::format("gang {} of {}: {} bound, {} kept, {} alive", gang, size, bound, kept,
                           alive);
      }
    }
    return "";
  }

 private:
  // Its time is over, and its members are being evicted.
  bool GivesBack(const std::string& gang) {
    for (const Reclaim& reclaim : engine_.Reclaims()) {
      if (reclaim.rule == ReclaimRule::kGang && reclaim.source == "team/" + gang) return true;
    }
    return false;
  }

  static constexpr int kNodes = 9;
  struct Pod {
    PodRequest request;
    std::string node;
  };

  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void Create() {
    if (pods_.size() > 40) return;
    const std::string gang = fmt::format("g{}", ++serial_);
    const int size = 1 + Draw(5), gpus = 1 << Draw(4);
    const int created = std::max(1, size - (Draw(6) == 0 ? 1 : 0));
    sizes_[gang] = size;
    for (int i = 0; i < created; ++i) {
      PodRequest request = test::WholePod(fmt::format("{}-{}", gang, i), gpus);
      request.gang = gang;
      request.gang_size = size;
      if (Draw(2) == 0) request.topology = TopologyWish::kRequired;
      engine_.UpsertPod(test::Pending(request), now_);
      pods_[request.uid] = {request, ""};
    }
  }

  std::string AskNode(const PodRequest& request) {
    FilterAnswer answer;
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    engine_.Filter(request, names, now_, answer);
    return answer.chosen.empty() ? "" : names_[answer.chosen.front()];
  }

  Pod* Any(bool bound) {
    std::vector<Pod*> some;
    for (auto& [uid, pod] : pods_) {
      if (pod.node.empty() != bound) some.push_back(&pod);
    }
    return some.empty() ? nullptr
                        : some[static_cast<std::size_t>(Draw(static_cast<int>(some.size())))];
  }

  void AskForOne() {
    Pod* pod = Any(false);
    if (pod == nullptr) return;
    const std::string node = AskNode(pod->request);
    if (node.empty() || Draw(4) == 0) return;
    const BindPlan plan = engine_.Bind(pod->request.name, pod->request.uid, NodeName(node), now_);
    if (plan.kind != BindPlan::Kind::kWrite) return;
    const bool arrives = Draw(8) != 0;
    engine_.SettleBind(pod->request.uid, NodeName(node),
                       arrives ? BindOutcome::kBound : BindOutcome::kNotBound, now_);
    if (!arrives) return;
    PodFacts facts = test::Bound(pod->request, node, plan.allocation);
    facts.evictable = true;
    engine_.UpsertPod(facts, now_);
    pod->node = node;
  }

  void Delete(const PodUid& uid) {
    // A gang in part that loses a pod cannot be completed; its time then runs.
    lost_.insert(pods_.at(uid).request.gang);
    engine_.DeletePod(uid, now_);
    pods_.erase(uid);
  }

  void DeleteOne() {
    if (Draw(4) != 0) return;
    if (const Pod* pod = Any(Draw(2) == 0)) Delete(PodUid(pod->request.uid));
  }

  void EndGang() {
    const Pod* pod = Any(true);
    if (pod == nullptr) return;
    const std::string gang = pod->request.gang;
    std::vector<PodUid> members;
    for (const auto& [uid, other] : pods_) {
      if (other.request.gang == gang) members.push_back(uid);
    }
    for (const PodUid& uid : members) Delete(uid);
  }

  void CarryOut() {
    const ReclaimWork work = std::exchange(engine_.effects().reclaims, {});
    for (const EvictionOrder& order : work.evictions) {
      engine_.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, std::nullopt,
                             now_);
      if (pods_.contains(order.uid)) Delete(PodUid(order.uid));
    }
  }

  std::mt19937_64 random_;
  Engine engine_;
  Instant now_ = test::At(0);
  std::vector<std::string> names_;
  std::map<PodUid, Pod> pods_;
  std::map<std::string, int> sizes_;
  std::set<std::string> whole_, lost_;
  int serial_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(GangProperties, AllOrNoneUnderRandomEvents) {
  const uint64_t seed = FromEnvironment("TRANCHE_SEED", 1);
  const uint64_t steps = FromEnvironment("TRANCHE_STEPS", 6'000);
  std::printf("seed %llu, %llu steps\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(steps));
  for (uint64_t round = 0; round < 10; ++round) {
    GangStream stream(seed * 1'000 + round);
    for (uint64_t step = 0; step < steps / 10; ++step) {
      stream.Step();
      const std::string wrong = stream.Check();
      ASSERT_EQ(wrong, "") << "round " << round << ", step " << step;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
