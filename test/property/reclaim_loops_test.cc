// Reclaims come to an end, each raises the potential, and nobody entitled is left waiting.
//
//   TRANCHE_SEED=7 TRANCHE_STEPS=1 property_tests --gtest_filter='ReclaimLoops.*'
#include "test/property/reclaim_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim_search.h"
#include "quota/tree/gpu_text.h"
#include "test/property/reclaim_oracle.h"

namespace tranche {
namespace THIS_FILE {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

ReclaimAnswer Plan(const ReclaimProblem& problem, ReclaimGeometry& geometry) {
  return PlanReclaim(problem, geometry);
}

Charge Gpus(int64_t count) { return {kQuantaPerGpu * count, kQuantaPerGpu * count}; }

struct Scenario {
  // What can be promised without a look at the devices: pods of one GPU go anywhere, and there are
  // as many GPUs of each model as its nominal, of which nobody holds any protected.
  bool plain = false;
  std::vector<QuotaNode> quotas;
  std::vector<LoopNode> nodes;
  std::vector<LoopGang> gangs;
  std::vector<std::optional<int>> cross_leaf_min_rank;
  std::vector<char> fair_share;
};

class ScenarioMaker {
 public:
  explicit ScenarioMaker(std::mt19937_64& random) : random_(random) {}

  Scenario Make() {
    Scenario scenario;
    scenario.plain = Roll(0, 1) == 0;
    lines_ = static_cast<Lines>(Roll(0, scenario.plain ? 3 : 4));
    MakeQuotas(scenario);
    MakeNodes(scenario);
    // Lesser work mostly comes first, else there is little to take back.
    const int gangs = Roll(4, 12);
    for (int i = 0; i < gangs; ++i) scenario.gangs.push_back(MakeGang(scenario, 2 * i < gangs));
    if (Roll(0, 1) == 0) {
      for (std::size_t i = 0; i < scenario.quotas.size(); ++i) {
        const bool off = Roll(0, 3) == 0;
        scenario.cross_leaf_min_rank.push_back(off ? std::nullopt : std::optional(Roll(1, 3)));
      }
    }
    if (Roll(0, 5) == 0) scenario.fair_share.assign(scenario.quotas.size(), 1);
    return scenario;
  }

  int Roll(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<uint64_t>(to - from + 1));
  }

 private:
  // Which lines the tree has; kImplied: both models, and `any` as their sum; kMixed: `any`, and
  // only one of the models.
  enum class Lines : uint8_t { kH, kAny, kTwo, kImplied, kMixed };

  LoopGang MakeGang(const Scenario& scenario, bool lesser) {
    LoopGang gang;
    gang.key = "g" + std::to_string(serial_++);
    gang.leaf = leaves_[static_cast<std::size_t>(Roll(0, static_cast<int>(leaves_.size()) - 1))];
    gang.rank = lesser ? std::min(Roll(0, 3), Roll(0, 3)) : std::max(Roll(0, 3), Roll(0, 3));
    gang.never = gang.rank == 3 && Roll(0, 2) == 0;
    gang.own_rank_protected = Roll(0, 5) == 0;
    gang.pods = std::min(Roll(1, 6), Roll(1, 6));
    gang.gpus = scenario.plain ? 1 : Roll(1, gang.pods == 1 ? 4 : 2);
    gang.guarded = !scenario.plain && Roll(0, 9) == 0;
    gang.lost = Roll(0, 5);
    const bool two = lines_ != Lines::kH && lines_ != Lines::kAny;
    gang.models = {two && Roll(0, 1) == 0 ? "l" : "h"};
    if (two && Roll(0, 4) == 0) gang.models = {"h", "l"};
    return gang;
  }

  LineLimits Limits(const Scenario& scenario, int nominal) {
    LineLimits limits{.nominal = Gpus(nominal)};
    if (scenario.plain) return limits;
    if (Roll(0, 3) == 0) limits.borrow_limit = Gpus(Roll(0, 6));
    if (Roll(0, 3) == 0) limits.lend_limit = Gpus(Roll(0, 6));
    return limits;
  }

  void AddQuota(const std::string& name, const std::string& parent, int most, Scenario& scenario) {
    QuotaNode node{.name = name, .parent = parent, .lines = {}};
    const auto line = [&](const std::string& model) {
      const int nominal = Roll(0, most);
      nominal_[model] += nominal;
      node.lines.emplace_back(model, Limits(scenario, nominal));
    };
    const auto any = [&](int nominal) {
      node.lines.emplace_back("any", Limits(scenario, nominal));
    };
    if (lines_ == Lines::kAny || lines_ == Lines::kMixed) {
      const int nominal = Roll(0, most);
      nominal_["any"] += nominal;
      any(nominal);
    }
    if (lines_ == Lines::kImplied && parent.empty()) {
      line("h");
      line("l");
      int64_t sum = 0;
      for (const auto& [model, limits] : node.lines) sum += limits.nominal.compute.saturated();
      node.lines.insert(node.lines.begin(), {"any", {.nominal = {sum, sum}}});
    } else if (lines_ != Lines::kAny) {
      line("h");
      if (lines_ == Lines::kTwo || lines_ == Lines::kImplied) line("l");
    }
    scenario.quotas.push_back(std::move(node));
  }

  void MakeQuotas(Scenario& scenario) {
    std::vector<std::string> parents = {"r"};
    AddQuota("r", "", Roll(0, 1) * 3, scenario);
    if (Roll(0, 1) == 0) {
      parents = {"p", "q"};
      for (const std::string& parent : parents) AddQuota(parent, "r", Roll(0, 1) * 2, scenario);
    }
    const int leaves = Roll(2, 4);
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const std::string& parent = parents[static_cast<std::size_t>(leaf) % parents.size()];
      AddQuota(std::string(1, static_cast<char>('a' + leaf)), parent, 5, scenario);
    }
    // Ids ascend by name: the leaves come first.
    for (int leaf = 0; leaf < leaves; ++leaf) leaves_.push_back(QuotaId(leaf));
  }

  void MakeNodes(Scenario& scenario) {
    const auto fill = [&](const std::string& model, int gpus) {
      while (gpus > 0) {
        const int count = std::min(gpus, Roll(1, 6));
        scenario.nodes.push_back({model, count});
        gpus -= count;
      }
    };
    const bool two = lines_ != Lines::kH && lines_ != Lines::kAny;
    const int more = Roll(0, 1) * Roll(0, 2);
    const int of_any = lines_ == Lines::kAny ? nominal_["any"] : 0;
    fill("h", scenario.plain ? std::max(1, nominal_["h"] + of_any + more) : Roll(2, 12));
    if (two) fill("l", scenario.plain ? std::max(1, nominal_["l"] + more) : Roll(2, 12));
  }

  std::mt19937_64& random_;
  Lines lines_ = Lines::kH;
  std::map<std::string, int> nominal_;
  std::vector<QuotaId> leaves_;
  int serial_ = 0;
};

// Nobody who is entitled waits, unless no set of victims the rules allow makes room.
std::string LeftWaiting(const ReclaimWorld& world, bool plain) {
  for (std::size_t i = 0; i < world.gangs().size(); ++i) {
    const LoopGang& gang = world.gangs()[i];
    if (gang.Runs()) continue;
    for (const std::string& model : gang.models) {
      if (!world.Entitled(i, world.tree().FindLine(model))) continue;
      if (plain) return gang.key + " is entitled and waits";
      ReclaimWorld::Question question = world.Ask(i);
      if (question.problem.regions.empty()) continue;
      ReclaimOracle oracle(question.problem, question.geometry);
      if (oracle.Solve().result != ReclaimOracle::Result::kImpossible) {
        return gang.key + " is entitled and waits, and there is a plan";
      }
    }
  }
  return "";
}

std::string Show(const Scenario& scenario) {
  std::string text = scenario.plain ? "plain\n" : "";
  for (const QuotaNode& quota : scenario.quotas) {
    text += quota.name + " in " + (quota.parent.empty() ? "-" : quota.parent);
    for (const auto& [model, limits] : quota.lines) {
      text += ", " + model + " " + GpusRoundedDown(limits.nominal.compute) + " borrow " +
              GpusRoundedDown(limits.borrow_limit.compute) + " lend " +
              GpusRoundedDown(limits.lend_limit.compute);
    }
    text += "\n";
  }
  for (const LoopNode& node : scenario.nodes)
    text += node.model + ":" + std::to_string(node.gpus) + " ";
  text += "\n";
  return text;
}

std::string Show(const ReclaimWorld& world) {
  std::string text;
  for (const LoopGang& gang : world.gangs()) {
    text += gang.key + " of " + (gang.leaf == kNoQuota ? "no team" : world.tree().name(gang.leaf)) +
            ", rank " + std::to_string(gang.rank) + (gang.never ? " never" : "") + ", " +
            std::to_string(gang.pods) + " x " + std::to_string(gang.gpus);
    for (const std::string& model : gang.models) text += " " + model;
    text += std::string(gang.guarded ? " guarded" : "") +
            (gang.keeps_nominal ? " over nominal" : "") + (gang.Runs() ? " runs\n" : " waits\n");
  }
  return text + world.story();
}

// What a seed has drawn, as a test wants it.
using Change = std::function<void(uint64_t seed, ScenarioMaker& maker, Scenario& scenario)>;
// What is wrong once all has settled; "": nothing.
using Look = std::function<std::string(const ReclaimWorld& world, const Scenario& scenario)>;

// Gangs arrive in a few waves; some leave between them. Returns how many evictions that took.
int64_t LiveThrough(uint64_t seed, const Change& change, const Look& look) {
  std::mt19937_64 random(seed);
  ScenarioMaker maker(random);
  Scenario scenario = maker.Make();
  change(seed, maker, scenario);
  ReclaimWorld world(QuotaTree::Build(scenario.quotas).value(), scenario.nodes, Plan);
  world.cross_leaf_min_rank = scenario.cross_leaf_min_rank;
  world.fair_share = scenario.fair_share;
  for (std::size_t next = 0; next < scenario.gangs.size() && world.fault().empty();) {
    for (int i = maker.Roll(1, 4); i > 0 && next < scenario.gangs.size(); --i) {
      world.Arrive(scenario.gangs[next++]);
    }
    world.Settle(random);
    const std::string wrong = look(world, scenario);
    EXPECT_TRUE(world.fault().empty() && wrong.empty())
        << "seed " << seed << ": " << world.fault() << wrong << "\n"
        << Show(scenario) << Show(world);
    if (maker.Roll(0, 2) == 0) {
      world.Leave(
          static_cast<std::size_t>(maker.Roll(0, static_cast<int>(world.gangs().size()) - 1)));
    }
  }
  return world.evictions();
}

void LiveThroughSeeds(const Change& change, const Look& look) {
  const uint64_t first = FromEnvironment("TRANCHE_SEED", 1);
  const uint64_t steps = FromEnvironment("TRANCHE_STEPS", 10'000);
  std::cout << "seeds " << first << " to " << first + steps - 1 << " (TRANCHE_SEED)\n";
  int64_t evictions = 0;
  for (uint64_t seed = first; seed < first + steps && !testing::Test::HasFailure(); ++seed) {
    evictions += LiveThrough(seed, change, look);
  }
  std::cout << evictions << " evictions\n";
  EXPECT_TRUE(testing::Test::HasFailure() || evictions > static_cast<int64_t>(steps) / 2);
}

TEST(ReclaimLoops, EveryEvictionRaisesThePotentialAndNoEntitledRequestIsLeftWaiting) {
  LiveThroughSeeds([](uint64_t, ScenarioMaker&, Scenario&) {},
                   [](const ReclaimWorld& world, const Scenario& scenario) {
                     return LeftWaiting(world, scenario.plain);
                   });
}

// Classes decide among what has no team, and between it and teams; nothing that is in quota falls
// for them.
TEST(ReclaimLoops, ClassesWithoutTeamsRaiseThePotentialToo) {
  const auto without_teams = [](uint64_t seed, ScenarioMaker& maker, Scenario& scenario) {
    const bool any_team = seed % 4 != 0;
    for (LoopGang& gang : scenario.gangs) {
      if (!any_team || maker.Roll(0, 1) == 0) gang.leaf = kNoQuota;
    }
    scenario.fair_share.clear();
  };
  LiveThroughSeeds(without_teams,
                   [](const ReclaimWorld&, const Scenario&) { return std::string(); });
}

// Work that goes only beyond its team's nominal stands in nobody's way who is entitled.
TEST(ReclaimLoops, BurstsThatKeepTheirNominalEndToo) {
  const auto with_bursts = [](uint64_t seed, ScenarioMaker& maker, Scenario& scenario) {
    for (LoopGang& gang : scenario.gangs) {
      gang.keeps_nominal = !gang.never && maker.Roll(0, 2) != 0;
      if (seed % 5 == 0 && maker.Roll(0, 2) == 0) gang.leaf = kNoQuota;
    }
    if (seed % 5 == 0) scenario.fair_share.clear();
  };
  LiveThroughSeeds(with_bursts, [](const ReclaimWorld& world, const Scenario& scenario) {
    const bool all_have_teams = std::ranges::none_of(
        world.gangs(), [](const LoopGang& gang) { return gang.leaf == kNoQuota; });
    return all_have_teams ? LeftWaiting(world, scenario.plain) : std::string();
  });
}

// A cluster written down by hand, to which gangs come one by one.
class Stage {
 public:
  Stage(std::vector<QuotaNode> quotas, std::vector<LoopNode> nodes)
      : world_(QuotaTree::Build(std::move(quotas)).value(), std::move(nodes), Plan) {}

  ReclaimWorld& world() { return world_; }

  // `gang` comes to the team and all settles; returns who runs then.
  std::string Arrive(const std::string& team, LoopGang gang) {
    gang.leaf = world_.tree().Find(team);
    world_.Arrive(std::move(gang));
    std::mt19937_64 random(1);
    world_.Settle(random);
    EXPECT_EQ(world_.fault(), "") << world_.story();
    std::string running;
    for (const LoopGang& one : world_.gangs()) {
      if (one.Runs()) running += (running.empty() ? "" : " ") + one.key;
    }
    return running;
  }

 private:
  ReclaimWorld world_;
};

QuotaNode Quota(const std::string& name, const std::string& parent,
                const std::vector<std::pair<std::string, int>>& nominals) {
  QuotaNode node{.name = name, .parent = parent, .lines = {}};
  for (const auto& [model, gpus] : nominals) {
    node.lines.emplace_back(model, LineLimits{.nominal = Gpus(gpus)});
  }
  return node;
}

LoopGang Gang(const std::string& key, int rank, int pods, const std::string& model) {
  LoopGang gang;
  gang.key = key;
  gang.rank = rank;
  gang.pods = pods;
  gang.models = {model};
  return gang;
}

std::vector<QuotaNode> TwoTeams() {
  return {Quota("r", "", {}), Quota("a", "r", {{"h", 3}}), Quota("b", "r", {{"h", 3}})};
}

// A rule that looks at what a team uses before the gang is placed swaps the two for ever.
TEST(ReclaimLoops, TwoGangsAboveTheirTeamsNominalDoNotSwap) {
  Stage stage(TwoTeams(), {{"h", 6}});
  EXPECT_EQ(stage.Arrive("a", Gang("a4", 2, 4, "h")), "a4");
  EXPECT_EQ(stage.Arrive("b", Gang("b4", 2, 4, "h")), "a4");
}

// A rule by which the sum of min(usage, nominal) must rise would leave b3 waiting.
TEST(ReclaimLoops, AGangWithinItsNominalTakesBackWhatAGangAboveBorrowed) {
  Stage stage(TwoTeams(), {{"h", 6}});
  EXPECT_EQ(stage.Arrive("a", Gang("a4", 2, 4, "h")), "a4");
  EXPECT_EQ(stage.Arrive("b", Gang("b3", 2, 3, "h")), "b3");
}

// `l` has no nominal of its own: what holds `any` for it is less than a nominal of h.
TEST(ReclaimLoops, AHigherRankInQuotaThroughAnyAloneLeavesAModelsNominalAlone) {
  Stage stage({Quota("r", "", {}), Quota("a", "r", {{"any", 2}, {"h", 2}})}, {{"h", 2}, {"l", 2}});
  EXPECT_EQ(stage.Arrive("a", Gang("low", 1, 2, "h")), "low");
  EXPECT_EQ(stage.Arrive("a", Gang("high", 3, 2, "l")), "low");
}

// b's first gang is beyond its nominal of h and within that of `any`; the second is beyond both.
TEST(ReclaimLoops, WhoIsEntitledThroughAnyAloneTakesOnlyWhatIsBorrowedOnAny) {
  for (const bool guarded : {false, true}) {
    Stage stage({Quota("r", "", {}), Quota("a", "r", {{"any", 4}, {"h", 0}}),
                 Quota("b", "r", {{"any", 4}, {"h", 0}}), Quota("c", "r", {{"any", 0}, {"h", 4}})},
                {{"h", 4}, {"l", 8}});
    EXPECT_EQ(stage.Arrive("b", Gang("within", 3, 4, "h")), "within");
    LoopGang beyond = Gang("beyond", 1, 4, "l");
    beyond.guarded = guarded;
    EXPECT_EQ(stage.Arrive("b", beyond), "within beyond");
    EXPECT_EQ(stage.Arrive("a", Gang("new", 1, 4, "l")), guarded ? "within beyond" : "within new");
  }
}

// q takes one of `any` from p, which has it to spare; that is no reason not to give d its h.
TEST(ReclaimLoops, WhatIsNotShortKeepsNobodyFromTakingBackWhatIs) {
  Stage stage({Quota("r", "", {{"any", 0}}), Quota("p", "r", {}), Quota("q", "r", {}),
               Quota("a", "p", {{"l", 2}}), Quota("b", "q", {}), Quota("d", "q", {{"h", 1}})},
              {{"h", 1}, {"l", 2}});
  EXPECT_EQ(stage.Arrive("a", Gang("a1", 2, 1, "h")), "a1");
  EXPECT_EQ(stage.Arrive("b", Gang("b1", 2, 1, "l")), "a1 b1");
  EXPECT_EQ(stage.Arrive("d", Gang("d1", 2, 1, "h")), "b1 d1");
}

// Scavengers within what their teams could have: neither team borrows, so no share is smaller.
TEST(ReclaimLoops, TeamsThatBorrowNothingDoNotTakeFairSharesFromEachOther) {
  Stage stage(TwoTeams(), {{"h", 3}});
  stage.world().fair_share = {1, 1, 1};
  EXPECT_EQ(stage.Arrive("a", Gang("a2", 0, 2, "h")), "a2");
  EXPECT_EQ(stage.Arrive("b", Gang("b2", 0, 2, "h")), "a2");
}

}  // namespace THIS_FILE
}  // namespace tranche
