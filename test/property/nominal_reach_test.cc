// What teams are told that they can count on, against what then happens: two nodes, three teams,
// every way to put single-GPU pods on them, in two orders of age.
//
// For each world the engine says how large a pod of team a would start, and how soon. Each size up
// to that is then tried in the same world of its own: kube-scheduler asks, plans are carried out by
// an API server that does as it is told, victims take all of their grace. The pod runs in time. The
// next larger one, of which it was said that it would not start, has not started hours later.
// Nothing is random here, so there is no seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/engine/engine.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Minutes;
using test::Quota;

// The holder of a GPU. Slow pods of b are guarded until they have run for 20 minutes.
enum class Use : uint8_t { kFree, kOwn, kQuick, kSlow, kThird, kThirdNever };
constexpr int kUses = 6;
constexpr std::array<const char*, kUses> kTeams = {"", "a", "b", "b", "c", "c"};
constexpr std::array<const char*, kUses> kClasses = {"",     "train", "train",
                                                     "slow", "train", "never"};

struct Quotas {
  const char* a;
  const char* b;
  const char* c;
};
constexpr std::array<Quotas, 3> kQuotas = {{{"2", "1", "2"}, {"3", "0", "2"}, {"3", "2", "0"}}};

using Node = std::vector<Use>;  // ascending

// Every multiset of uses of that many GPUs.
std::vector<Node> Fillings(int gpus) {
  std::vector<Node> all = {{}};
  for (int i = 0; i < gpus; ++i) {
    std::vector<Node> longer;
    for (const Node& node : all) {
      for (int use = node.empty() ? 0 : static_cast<int>(node.back()); use < kUses; ++use) {
        Node next = node;
        next.push_back(static_cast<Use>(use));
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

struct World {
  std::vector<Node> nodes;
  Quotas quotas;
  bool interleaved = false;  // by age: a pod here, a pod there; else node by node

  std::string Text() const {
    std::string text = fmt::format("quotas {} {} {}{}", quotas.a, quotas.b, quotas.c,
                                   interleaved ? ", interleaved" : "");
    for (const Node& node : nodes) {
      text += " |";
      for (const Use use : node) {
        text += fmt::format(" {}{}", kTeams[static_cast<std::size_t>(use)],
                            kClasses[static_cast<std::size_t>(use)]);
      }
    }
    return text;
  }
};

class Play {
 public:
  explicit Play(const World& world) {
    test::Objects objects;
    const Quotas& quotas = world.quotas;
    objects.quotas = {Quota("org"), Quota("a").Under("org").Owns("a").Line("h100", quotas.a),
                      Quota("b").Under("org").Owns("b").Line("h100", quotas.b),
                      Quota("c").Under("org").Owns("c").Line("h100", quotas.c)};
    objects.classes = {Class("never", 2, Preemptible::kNever), Class("slow", 2), Class("train", 2)};
    for (GpuClass& gpu_class : objects.classes) {
      gpu_class.min_runtime = gpu_class.name == "slow" ? Minutes(20) : Minutes(0);
      gpu_class.grace_period = std::chrono::seconds(30);
    }
    objects.namespaces = {"a", "b", "c"};
    engine_.SetPolicies(test::Declare(std::move(objects)), GpuPolicy(), now_);
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      names_.push_back(fmt::format("n{}", i));
      engine_.UpsertNode(test::StockNode(names_.back(), static_cast<int>(world.nodes[i].size())),
                         now_);
    }
    Fill(world);
    engine_.FinishRestore(now_);
    now_ += Minutes(5);
    engine_.Tick(now_);
  }

  LineReach Asked() {
    while (engine_.ReachSlice(now_)) {
    }
    for (QuotaView& view : engine_.Quotas(now_)) {
      if (view.report.name == "a" && !view.reach.empty()) return view.reach.front();
    }
    ADD_FAILURE() << "nothing is said";
    return {};
  }

  // How long the pod waits; nullopt: longer than `most`.
  std::optional<Millis> Start(int64_t gpus, Millis most) {
    const Instant came = now_;
    PodRequest request = test::WholePod("own", gpus);
    request.name.ns = "a";
    PodFacts pod = test::Pending(request);
    pod.created = now_;
    engine_.UpsertPod(pod, now_);
    while (now_ - came <= most) {
      if (Placed(request)) return now_ - came;
      Carry();
      std::optional<Instant> next = engine_.Tick(now_);
      for (const auto& [uid, left] : leaving_) next = next ? std::min(*next, left) : left;
      if (!next) return std::nullopt;  // nothing will ever happen
      now_ = std::max(*next, now_ + Millis(1));
      Leave();
      engine_.Tick(now_);
    }
    return std::nullopt;
  }

 private:
  void Fill(const World& world) {
    std::vector<std::pair<std::size_t, std::size_t>> order;  // node, GPU
    for (std::size_t node = 0; node < world.nodes.size(); ++node) {
      for (std::size_t gpu = 0; gpu < world.nodes[node].size(); ++gpu)
        order.emplace_back(node, gpu);
    }
    if (world.interleaved) {
      std::ranges::stable_sort(order, {}, [](const auto& at) { return at.second; });
    }
    for (const auto& [node, gpu] : order) {
      const auto use = static_cast<std::size_t>(world.nodes[node][gpu]);
      if (world.nodes[node][gpu] == Use::kFree) continue;
      PodRequest request = test::WholePod(fmt::format("p{}-{}", node, gpu), 1);
      request.name.ns = kTeams[use];
      request.priority_class = kClasses[use];
      PodFacts pod = test::Bound(request, names_[node], std::nullopt);
      pod.bound_at = now_;
      pod.running_at = now_;
      pod.evictable = true;
      engine_.UpsertPod(pod, now_);
      running_[request.uid] = pod;
      now_ += std::chrono::seconds(1);
    }
  }

  bool Placed(const PodRequest& request) {
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    FilterAnswer answer;
    engine_.Filter(request, names, now_, answer);
    if (answer.chosen.empty()) return false;
    const NodeName node{names_[answer.chosen.front()]};
    return engine_.Bind(request.name, request.uid, node, now_).kind == BindPlan::Kind::kWrite;
  }

  void Carry() {
    do {
      for (const EvictionOrder& order : std::exchange(engine_.effects().reclaims, {}).evictions) {
        PodFacts& pod = running_.at(order.uid);
        pod.terminating = true;
        pod.deletion_at = now_ + order.grace.value_or(pod.grace);
        leaving_[order.uid] = *pod.deletion_at;
        engine_.UpsertPod(pod, now_);
        engine_.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, {}, now_);
      }
    } while (engine_.PlanNext(now_) || !engine_.effects().reclaims.evictions.empty());
  }

  void Leave() {
    std::erase_if(leaving_, [this](const auto& entry) {
      if (entry.second > now_) return false;
      engine_.DeletePod(entry.first, now_);
      return true;
    });
  }

  Engine engine_{EngineOptions{}};
  Instant now_ = At(0);
  std::vector<std::string> names_;
  std::map<PodUid, PodFacts> running_;
  std::map<PodUid, Instant> leaving_;
};

TEST(NominalReach, WhatIsSaidHoldsInEverySmallWorld) {
  int worlds = 0, tries = 0, waits = 0, interleaved = 0;
  for (const Quotas& quotas : kQuotas) {
    for (const Node& first : Fillings(3)) {
      for (const Node& second : Fillings(2)) {
        for (const bool order : {false, true}) {
          const World world{{first, second}, quotas, order};
          SCOPED_TRACE(world.Text());
          ++worlds;
          const LineReach said = Play(world).Asked();
          for (int64_t gpus = 1; gpus <= said.gpus; ++gpus) {
            ++tries;
            const std::optional<Millis> took = Play(world).Start(gpus, said.within);
            ASSERT_TRUE(took) << gpus << " GPUs, said: within " << said.within.count() << " ms";
            waits += *took > Millis(0);
          }
          if (said.code != "Interleaved") continue;
          ++interleaved;
          ASSERT_FALSE(Play(world).Start(said.gpus + 1, Minutes(180))) << said.gpus + 1 << " GPUs";
        }
      }
    }
  }
  std::cout << worlds << " worlds, " << tries << " pods that started in time, " << waits
            << " of them after a wait, " << interleaved << " times the next size did not\n";
  EXPECT_GT(waits, worlds / 4);
  EXPECT_GT(interleaved, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
