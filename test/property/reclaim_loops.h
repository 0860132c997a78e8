// A small cluster under quotas in which gangs wait, start, and are evicted for one another until
// nothing moves any more: what the rules of reclaim lead to in the long run. Only tests use it.
//
// Every eviction must raise the potential of quota-model section 4, told here by tier (first what
// is never preempted, then rank, highest first): GPUs in quota on limited model lines, then GPUs in
// quota on `any`, then GPUs that are borrowed or of no team.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/preemption/reclaim_search.h"
#include "quota/tree/marking.h"
#include "quota/tree/quota_tree.h"

namespace tranche {

// Pods of `gpus` each on nodes with free GPUs; a region is a set of nodes.
class NodeGeometry : public ReclaimGeometry {
 public:
  int pods = 0;
  int gpus = 0;
  std::vector<int> free;                                // by node
  std::vector<std::vector<int>> regions;                // nodes
  std::vector<std::vector<std::pair<int, int>>> holds;  // by unit: node and GPUs, a pod each

  bool Fits(std::size_t region, std::span<const int> gone) override {
    std::vector<int> left = free;
    for (const int unit : gone) {
      for (const auto& [node, count] : holds[static_cast<std::size_t>(unit)]) {
        left[static_cast<std::size_t>(node)] += count;
      }
    }
    int room = 0;
    for (const int node : regions[region]) room += left[static_cast<std::size_t>(node)] / gpus;
    return room >= pods;
  }
};

struct LoopGang {
  std::string key;
  QuotaId leaf = kNoQuota;  // kNoQuota: of no team
  int rank = 0;
  bool never = false;    // not preemptible, and only ever in quota
  bool guarded = false;  // runs protected for now
  bool own_rank_protected = false;
  bool keeps_nominal = false;  // runs protected while it is in quota
  int pods = 1;
  int gpus = 1;  // a pod
  std::vector<std::string> models;
  int64_t lost = 0;
  // While it runs:
  std::vector<int> nodes;  // by pod; empty: it waits
  int64_t start = 0;

  bool Runs() const { return !nodes.empty(); }
  int Gpus() const { return pods * gpus; }
};

struct LoopNode {
  std::string model;
  int gpus = 0;
};

class ReclaimWorld {
 public:
  using Planner = std::function<ReclaimAnswer(const ReclaimProblem&, ReclaimGeometry&)>;
  // One waiting gang's problem.
  struct Question {
    ReclaimProblem problem;
    NodeGeometry geometry;
    std::vector<std::size_t> gangs;   // by unit
    std::vector<std::string> models;  // by region
  };
  struct Potential {
    static constexpr std::size_t kTiers = 5;
    std::array<int64_t, 2 * kTiers> in_quota{};  // model lines by tier, then `any` by tier
    std::array<int64_t, kTiers> borrowed{};
    friend auto operator<=>(const Potential&, const Potential&) = default;
  };

  ReclaimWorld(QuotaTree tree, std::vector<LoopNode> nodes, Planner planner)
      : tree_(std::move(tree)), nodes_(std::move(nodes)), planner_(std::move(planner)) {}

  std::vector<std::optional<int>> cross_leaf_min_rank;
  std::vector<char> fair_share;
  bool chooses = true;  // R1 may choose anew what is borrowed

  void Arrive(LoopGang gang) { gangs_.push_back(std::move(gang)); }
  void Leave(std::size_t gang) {
    if (gangs_[gang].Runs()) Stop(gang);
    gangs_.erase(gangs_.begin() + static_cast<std::ptrdiff_t>(gang));
  }

  // Lets waiting gangs try, in random order, until none of them can start.
  void Settle(std::mt19937_64& random) {
    constexpr int kMostEvictions = 500;
    const int before = evictions_;
    for (bool moved = true; moved && fault_.empty();) {
      moved = false;
      std::vector<std::size_t> waiting;
      for (std::size_t i = 0; i < gangs_.size(); ++i) {
        if (!gangs_[i].Runs()) waiting.push_back(i);
      }
      std::shuffle(waiting.begin(), waiting.end(), random);
      for (const std::size_t gang : waiting) moved = Try(gang) || moved;
      if (evictions_ - before > kMostEvictions) Fault("evictions do not end");
    }
  }

  Question Ask(std::size_t which) const {
    const LoopGang& gang = gangs_[which];
    Question question;
    ReclaimProblem& problem = question.problem;
    problem.tree = &tree_;
    problem.leaf = gang.leaf;
    problem.rank = gang.rank;
    problem.cross_leaf_min_rank = cross_leaf_min_rank;
    problem.fair_share = fair_share;
    problem.weights.assign(tree_.size(), 1);
    question.geometry.pods = gang.pods;
    question.geometry.gpus = gang.gpus;
    for (const LoopNode& node : nodes_) question.geometry.free.push_back(node.gpus);
    for (const std::string& model : gang.models) AddRegions(which, model, question);
    if (gang.leaf != kNoQuota && chooses) AddHeld(question);
    for (std::size_t i = 0; i < gangs_.size(); ++i) AddUnit(i, question);
    return question;
  }

  // With it running on a GPU of the model its leaf borrows nothing on the line.
  bool Entitled(std::size_t which, LineId model) const {
    const LoopGang& gang = gangs_[which];
    if (gang.rank == 0 || gang.leaf == kNoQuota) return false;
    QuotaTree tree = tree_;
    tree.Add(gang.leaf, model, ChargeOf(gang));
    return tree.Borrowed(gang.leaf, model) == Charge{} &&
           tree.Borrowed(gang.leaf, kAnyLine) == Charge{};
  }

  Potential Now() const {
    Potential potential;
    const std::vector<LineMarks> marks = Marks();
    for (std::size_t i = 0; i < gangs_.size(); ++i) {
      const LoopGang& gang = gangs_[i];
      if (!gang.Runs()) continue;
      const std::size_t tier = gang.never ? 0 : static_cast<std::size_t>(4 - gang.rank);
      if (gang.leaf == kNoQuota) {
        potential.borrowed[tier] += gang.Gpus();
        continue;
      }
      const bool in_model = tree_.Limits(gang.leaf, LineOf(gang)) && marks[i].in_model;
      const bool in_any = tree_.Limits(gang.leaf, kAnyLine) && marks[i].in_any;
      if (in_model) potential.in_quota[tier] += gang.Gpus();
      if (in_any) potential.in_quota[Potential::kTiers + tier] += gang.Gpus();
      if (marks[i].state != QuotaState::kInQuota) potential.borrowed[tier] += gang.Gpus();
    }
    return potential;
  }

  const std::vector<LoopGang>& gangs() const { return gangs_; }
  const QuotaTree& tree() const { return tree_; }
  int evictions() const { return evictions_; }
  const std::string& fault() const { return fault_; }
  const std::string& story() const { return story_; }

 private:
  static constexpr LineMarks kOfNoTeam{QuotaState::kBorrowed, false, false};

  static Charge ChargeOf(const LoopGang& gang) {
    return {kQuantaPerGpu * gang.Gpus(), kQuantaPerGpu * gang.Gpus()};
  }
  LineId LineOf(const LoopGang& gang) const {
    return tree_.FindLine(nodes_[static_cast<std::size_t>(gang.nodes.front())].model);
  }
  static MarkUnit ToMark(const LoopGang& gang, LineId line, int64_t start) {
    MarkUnit unit;
    unit.key = gang.key;
    unit.preemptible = !gang.never;
    unit.rank = gang.rank;
    unit.start = Instant(Millis(start));
    unit.parts.push_back({line, ChargeOf(gang)});
    return unit;
  }
  std::vector<LineMarks> MarksOf(QuotaId leaf, const std::vector<MarkUnit>& units) const {
    return MarkLines(units, [&](LineId line) { return tree_.Nominal(leaf, line); });
  }

  // By gang; of waiting ones nothing is said.
  std::vector<LineMarks> Marks() const {
    std::vector<LineMarks> marks(gangs_.size(), kOfNoTeam);
    for (QuotaId leaf{0}; leaf < tree_.size(); ++leaf) {
      std::vector<MarkUnit> units;
      std::vector<std::size_t> which;
      for (std::size_t i = 0; i < gangs_.size(); ++i) {
        if (gangs_[i].leaf != leaf || !gangs_[i].Runs()) continue;
        units.push_back(ToMark(gangs_[i], LineOf(gangs_[i]), gangs_[i].start));
        which.push_back(i);
      }
      const std::vector<LineMarks> told = MarksOf(leaf, units);
      for (std::size_t i = 0; i < which.size(); ++i) marks[which[i]] = told[i];
    }
    return marks;
  }
  LineMarks MarksIfPlaced(std::size_t which, LineId line) const {
    if (gangs_[which].leaf == kNoQuota) return kOfNoTeam;
    std::vector<MarkUnit> units;
    for (const LoopGang& gang : gangs_) {
      if (gang.leaf != gangs_[which].leaf || !gang.Runs()) continue;
      units.push_back(ToMark(gang, LineOf(gang), gang.start));
    }
    units.push_back(ToMark(gangs_[which], line, clock_ + 1));
    return MarksOf(gangs_[which].leaf, units).back();
  }

  // A gang may go anywhere on a model's nodes, a pod goes to one node.
  void AddRegions(std::size_t which, const std::string& model, Question& question) const {
    const LineId line = tree_.FindLine(model);
    ReclaimRegion region;
    region.parts = {{line, ChargeOf(gangs_[which])}};
    region.marks = MarksIfPlaced(which, line);
    const bool has_team = gangs_[which].leaf != kNoQuota;
    if (has_team && gangs_[which].never && region.marks.state != QuotaState::kInQuota) return;
    const auto add = [&](std::vector<int> nodes) {
      if (nodes.empty()) return;
      question.problem.regions.push_back(region);
      question.geometry.regions.push_back(std::move(nodes));
      question.models.push_back(model);
    };
    std::vector<int> together;
    for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
      if (nodes_[static_cast<std::size_t>(node)].model != model) continue;
      together.push_back(node);
      if (gangs_[which].pods == 1) add({node});
    }
    if (gangs_[which].pods > 1) add(std::move(together));
  }

  void AddHeld(Question& question) const {
    for (const LoopGang& gang : gangs_) {
      if (!gang.Runs() || gang.leaf == kNoQuota) continue;
      question.problem.held.push_back({gang.leaf, ToMark(gang, LineOf(gang), gang.start)});
    }
  }

  void AddUnit(std::size_t which, Question& question) const {
    const LoopGang& gang = gangs_[which];
    for (const int node : gang.nodes) {
      question.geometry.free[static_cast<std::size_t>(node)] -= gang.gpus;
    }
    if (!gang.Runs() || gang.never || gang.guarded) return;
    const LineMarks marks = Marks()[which];
    if (gang.keeps_nominal && marks.state == QuotaState::kInQuota) return;
    VictimUnit unit;
    unit.key = gang.key;
    unit.leaf = gang.leaf;
    unit.rank = gang.rank;
    unit.own_rank_protected = gang.own_rank_protected;
    unit.marks = marks;
    unit.parts = {{LineOf(gang), ChargeOf(gang)}};
    unit.lost_gpu_ms = gang.lost;
    for (std::size_t i = 0; i < question.problem.held.size(); ++i) {
      if (question.problem.held[i].unit.key == gang.key) unit.held = i;
    }
    unit.start = Instant(Millis(gang.start));
    std::vector<std::pair<int, int>> holds;
    for (const int node : gang.nodes) {
      holds.emplace_back(node, gang.gpus);
      VictimPod& pod = unit.pods.emplace_back();
      for (std::size_t region = 0; region < question.geometry.regions.size(); ++region) {
        const std::vector<int>& nodes = question.geometry.regions[region];
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) continue;
        pod.region = region;
      }
    }
    question.problem.units.push_back(std::move(unit));
    question.geometry.holds.push_back(std::move(holds));
    question.gangs.push_back(which);
  }

  // Starts the gang if it can be; says whether it did.
  bool Try(std::size_t which) {
    Question question = Ask(which);
    if (question.problem.regions.empty()) return false;
    const Potential before = Now();
    for (std::size_t region = 0; region < question.problem.regions.size(); ++region) {
      if (!FitsNow(question, region)) continue;
      Start(which, question, region);
      if (Now() <= before) Fault(gangs_[which].key + " starts freely and lowers the potential");
      return true;
    }
    const ReclaimAnswer answer = planner_(question.problem, question.geometry);
    if (!answer.plan.has_value()) return false;
    const ReclaimPlan& plan = *answer.plan;
    Tell(std::string(ReclaimRuleName(plan.rule)) + ":");
    QuotaId from = kNoQuota;
    for (const int victim : plan.victims) {
      ++evictions_;
      from = question.problem.units[static_cast<std::size_t>(victim)].leaf;
      Stop(question.gangs[static_cast<std::size_t>(victim)]);
    }
    question = Ask(which);
    if (!FitsNow(question, plan.region)) {
      Fault(gangs_[which].key + " does not fit once its victims are gone");
      return false;
    }
    Start(which, question, plan.region);
    ExpectRise(plan.rule, before, Now());
    if (plan.rule == ReclaimRule::kR5) ExpectNoFlap(which, from);
    return true;
  }

  bool FitsNow(Question& question, std::size_t region) const {
    const LineCharge& part = question.problem.regions[region].parts.front();
    return question.geometry.Fits(region, {}) &&
           (question.problem.leaf == kNoQuota ||
            tree_.Check(question.problem.leaf, part.line, part.charge).refusal ==
                QuotaRefusal::kNone);
  }

  void Start(std::size_t which, const Question& question, std::size_t region) {
    LoopGang& gang = gangs_[which];
    for (const int node : question.geometry.regions[region]) {
      int free = question.geometry.free[static_cast<std::size_t>(node)];
      for (; free >= gang.gpus && static_cast<int>(gang.nodes.size()) < gang.pods;
           free -= gang.gpus) {
        gang.nodes.push_back(node);
      }
    }
    gang.start = ++clock_;
    if (gang.leaf != kNoQuota) tree_.Add(gang.leaf, LineOf(gang), ChargeOf(gang));
    Tell("start " + gang.key + " on " + question.models[region] + "\n");
  }
  void Stop(std::size_t which) {
    LoopGang& gang = gangs_[which];
    if (gang.leaf != kNoQuota) tree_.Remove(gang.leaf, LineOf(gang), ChargeOf(gang));
    gang.nodes.clear();
    Tell("stop " + gang.key);
  }

  void ExpectRise(ReclaimRule rule, const Potential& before, const Potential& after) {
    switch (rule) {
      case ReclaimRule::kR1:
      case ReclaimRule::kR2a:
        if (after.in_quota <= before.in_quota) Fault("what is in quota did not rise");
        return;
      case ReclaimRule::kR0:
        if (after.in_quota < before.in_quota) Fault("what is in quota fell");
        if (after <= before) Fault("the potential did not rise");
        return;
      case ReclaimRule::kR2b:
      case ReclaimRule::kR3:
        if (after.in_quota < before.in_quota) Fault("what is in quota fell");
        if (after.borrowed <= before.borrowed) Fault("what is borrowed did not rise");
        return;
      default:
        return;
    }
  }

  // A team that lost work by a fair share may not take it back from the team that got it.
  void ExpectNoFlap(std::size_t which, QuotaId from) {
    for (std::size_t i = 0; i < gangs_.size(); ++i) {
      if (gangs_[i].Runs() || gangs_[i].leaf != from) continue;
      Question question = Ask(i);
      if (question.problem.regions.empty()) continue;
      const ReclaimAnswer answer = planner_(question.problem, question.geometry);
      if (!answer.plan || answer.plan->rule != ReclaimRule::kR5) continue;
      for (const int victim : answer.plan->victims) {
        if (question.gangs[static_cast<std::size_t>(victim)] == which)
          Fault("R5 goes back at once");
      }
    }
  }

  void Tell(const std::string& what) { story_ += what + " "; }
  void Fault(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }

  QuotaTree tree_;
  std::vector<LoopNode> nodes_;
  Planner planner_;
  std::vector<LoopGang> gangs_;
  int64_t clock_ = 0;
  int evictions_ = 0;
  std::string fault_;
  std::string story_;
};

}  // namespace tranche
