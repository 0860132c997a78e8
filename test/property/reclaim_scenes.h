// Random reclaim problems that could stand in a cluster: work placed under quotas and on cards,
// marked as MarkLines marks it, and a preemptor that mostly does not fit. Only tests use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/tree/marking.h"
#include "quota/tree/quota_tree.h"
#include "test/property/reclaim_oracle.h"

namespace tranche {

// A problem and what it points to; stays where it is.
struct ReclaimScene {
  QuotaTree tree;
  ReclaimProblem problem;
  TableGeometry geometry;

  ReclaimScene() = default;
  ReclaimScene(const ReclaimScene&) = delete;
  ReclaimScene& operator=(const ReclaimScene&) = delete;
};

// The scene's units in another order; `order[i]` is the old position of the new unit i.
inline void CopyPermuted(const ReclaimScene& from, const std::vector<int>& order,
                         ReclaimScene& to) {
  to.tree = from.tree;
  to.problem = from.problem;
  to.problem.tree = &to.tree;
  to.geometry.regions = from.geometry.regions;
  to.problem.held = from.problem.held;
  to.problem.units.clear();
  for (const int old : order) {
    to.problem.units.push_back(from.problem.units[static_cast<std::size_t>(old)]);
    to.geometry.held.push_back(from.geometry.held[static_cast<std::size_t>(old)]);
  }
}

class ReclaimSceneMaker {
 public:
  ReclaimSceneMaker(uint64_t seed, int most_units, ReclaimScene& scene)
      : random_(seed), scene_(scene) {
    one_rank_ = OneIn(6);
    teamless_ = OneIn(3);
    crowd_ = OneIn(3);
    MakeTree();
    MakeRegions();
    const auto units =
        static_cast<std::size_t>(1 + std::min(Roll(0, most_units - 1), Roll(0, most_units - 1)));
    for (int i = Roll(0, 2); i > 0; --i) MakeWork(/*protected_work=*/true, 0);
    for (int tries = 2 * most_units; tries > 0 && scene.problem.units.size() < units; --tries) {
      MakeWork(/*protected_work=*/false, most_units);
    }
    MakePreemptor();
    MakeMarks();
    MakeLowerBounds();
    MakeSwitches();
  }

 private:
  static constexpr int64_t kQuarter = kQuantaPerGpu / 4;

  int Roll(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<uint64_t>(to - from + 1));
  }
  bool OneIn(int n) { return Roll(1, n) == 1; }
  Charge Quarters(int most) {
    const int64_t both = Roll(0, most);
    const int64_t memory = OneIn(5) ? Roll(0, most) : both;
    return {both * kQuarter, memory * kQuarter};
  }
  QuotaId AnyLeaf() { return leaves_[Index(leaves_.size())]; }
  std::size_t Index(std::size_t size) {
    return static_cast<std::size_t>(Roll(0, static_cast<int>(size) - 1));
  }
  static std::size_t At(int position) { return static_cast<std::size_t>(position); }

  LineLimits Limits(int nominal) {
    LineLimits limits{.nominal = Quarters(nominal)};
    if (OneIn(8)) limits.borrow_limit = Quarters(12);
    if (OneIn(6)) limits.lend_limit = Quarters(12);
    return limits;
  }

  // One or two roots, now and then quotas between. Where `any` is not limited, both models are:
  // of work that nothing limits, nobody asks whether it is borrowed.
  void MakeTree() {
    const bool any = OneIn(2);
    const bool h = !any || !OneIn(3);
    const bool l = !any || OneIn(2);
    std::vector<QuotaNode> nodes;
    const auto add = [&](const std::string& name, const std::string& parent, int nominal) {
      QuotaNode node{.name = name, .parent = parent, .lines = {}};
      const bool root = parent.empty();
      if (any && (root || OneIn(2))) node.lines.emplace_back("any", Limits(nominal));
      if (h && (root || !OneIn(4))) node.lines.emplace_back("h", Limits(nominal));
      if (l && (root || !OneIn(4))) node.lines.emplace_back("l", Limits(nominal));
      node.suspended = !root && OneIn(15);
      nodes.push_back(std::move(node));
    };
    add("r", "", OneIn(2) ? 0 : 12);
    std::vector<std::string> inner = {"r"};
    for (int i = Roll(0, 2); i > 0; --i) {
      const std::string name = "m" + std::to_string(i);
      add(name, inner[Index(inner.size())], OneIn(2) ? 0 : 8);
      inner.push_back(name);
    }
    std::vector<std::string> leaves;
    for (int i = Roll(2, 4); i > 0; --i) {
      leaves.push_back("t" + std::to_string(i));
      add(leaves.back(), inner[Index(inner.size())], OneIn(3) ? 20 : 8);
    }
    if (OneIn(8)) {
      add("s", "", 12);
      leaves.push_back("t9");
      add("t9", "s", 12);
    }
    scene_.tree = QuotaTree::Build(std::move(nodes)).value();
    for (const std::string& leaf : leaves) leaves_.push_back(scene_.tree.Find(leaf));
  }

  void MakeRegions() {
    for (int i = Roll(1, 3); i > 0; --i) {
      models_.push_back(OneIn(3) ? "l" : "h");
      TableGeometry::Region& region = scene_.geometry.regions.emplace_back();
      region.free_milli.assign(At(Roll(1, 5)), 1000);
    }
  }
  // A model nobody limits at all is on no line.
  LineId Line(const std::string& model) const { return scene_.tree.FindLine(model); }

  Charge ChargeOf(int milli) {
    const int64_t compute = kQuantaPerGpu * milli / 1000;
    if (!OneIn(6)) return {compute, compute};
    return {OneIn(3) ? 0 : compute, Roll(1, 4) * kQuarter};
  }
  bool Limited(QuotaId leaf, const std::string& model) const {
    return scene_.tree.Limits(leaf, Line(model));
  }

  // Runs a gang where there is room, mostly only if quota has some too.
  void MakeWork(bool protected_work, int most_units) {
    VictimUnit unit;
    unit.leaf = teamless_ && !protected_work && OneIn(4) ? kNoQuota : AnyLeaf();
    if (crowd_ && unit.leaf != kNoQuota && !OneIn(5)) unit.leaf = leaves_.front();
    if (unit.leaf == kNoQuota) unit.marks = {QuotaState::kBorrowed, false, false};
    unit.rank = one_rank_ ? 2 : Roll(0, 3);
    unit.start = Instant(Millis(Roll(0, 5)));
    unit.key = std::string(1, static_cast<char>('a' + Roll(0, 25))) + std::to_string(serial_++);
    unit.lost_gpu_ms = OneIn(2) ? Roll(0, 3) : Roll(0, 100);
    unit.own_rank_protected = OneIn(6);
    std::vector<TableGeometry::Held> held;
    std::string model = models_[Index(models_.size())];
    const bool two_models =
        OneIn(8) && unit.leaf != kNoQuota && Limited(unit.leaf, "h") && Limited(unit.leaf, "l");
    const int pods = OneIn(2) ? 1 : Roll(1, 4);
    std::vector<std::pair<LineId, Charge>> charges;
    for (int i = 0; i < pods; ++i) {
      if (two_models && OneIn(2)) model = model == "h" ? "l" : "h";
      const int milli = OneIn(3) ? 250 * Roll(1, 3) : 1000;
      unit.pods.push_back(RunPod(model, milli, held));
      held.back().charge = ChargeOf(milli);
      charges.emplace_back(Line(model), held.back().charge);
    }
    AddParts(charges, unit.parts);
    if (unit.leaf != kNoQuota && !OneIn(6) && !Admitted(unit)) return;
    for (const LineCharge& part : unit.parts) {
      if (unit.leaf == kNoQuota) break;
      scene_.tree.Add(unit.leaf, part.line, part.charge);
    }
    for (const TableGeometry::Held& one : held) {
      scene_.geometry.regions[one.region].free_milli[one.card] -= one.milli;
    }
    if (protected_work) {
      protected_.push_back(std::move(unit));
      return;
    }
    scene_.problem.units.push_back(std::move(unit));
    scene_.geometry.held.push_back(std::move(held));
    owners_.push_back(static_cast<int>(scene_.problem.units.size()) - 1);
    if (pods > 1 && OneIn(4)) MakeSpares(charges, most_units);
  }

  VictimPod RunPod(const std::string& model, int milli, std::vector<TableGeometry::Held>& held) {
    VictimPod pod;
    if (OneIn(3)) pod.budgets.push_back(Roll(0, 1));
    for (std::size_t region = 0; region < models_.size() && !OneIn(6); ++region) {
      if (models_[region] != model) continue;
      for (std::size_t card = 0; card < scene_.geometry.regions[region].free_milli.size(); ++card) {
        int free = scene_.geometry.regions[region].free_milli[card];
        for (const TableGeometry::Held& one : held) {
          if (one.region == region && one.card == card) free -= one.milli;
        }
        if (free < milli) continue;
        pod.region = region;
        held.push_back({region, card, milli, {}});
        return pod;
      }
    }
    held.push_back({0, 0, 0, {}});  // elsewhere
    return pod;
  }

  static void AddParts(const std::vector<std::pair<LineId, Charge>>& charges,
                       std::vector<LineCharge>& parts) {
    for (const LineId line : {kNoLine, LineId{1}, LineId{2}}) {
      Charge sum;
      for (const auto& [on, charge] : charges) {
        if (on == line) sum = {sum.compute + charge.compute, sum.memory + charge.memory};
      }
      if (sum != Charge{}) parts.push_back({line, sum});
    }
  }
  bool Admitted(const VictimUnit& unit) const {
    return std::all_of(unit.parts.begin(), unit.parts.end(), [&](const LineCharge& part) {
      return scene_.tree.Check(unit.leaf, part.line, part.charge).refusal == QuotaRefusal::kNone;
    });
  }

  // The gang just added may lose some of its pods one by one.
  void MakeSpares(const std::vector<std::pair<LineId, Charge>>& charges, int most_units) {
    const auto whole = scene_.problem.units.size() - 1;
    const std::size_t number = scene_.problem.spare_left.size();
    const int spares = Roll(1, static_cast<int>(charges.size()) - 1);
    scene_.problem.spare_left.push_back(spares);
    scene_.problem.units[whole].whole_of = number;
    for (std::size_t pod = 0; pod < charges.size(); ++pod) {
      if (static_cast<int>(scene_.problem.units.size()) >= most_units) return;
      VictimUnit spare = scene_.problem.units[whole];
      spare.key += "/" + std::to_string(pod);
      spare.whole_of.reset();
      spare.spare_of = number;
      spare.breaks = false;
      spare.parts = {{charges[pod].first, charges[pod].second}};
      spare.pods = {spare.pods[pod]};
      spare.lost_gpu_ms /= 2;
      const TableGeometry::Held held = scene_.geometry.held[whole][pod];
      scene_.problem.units.push_back(std::move(spare));
      scene_.geometry.held.push_back({held});
      owners_.push_back(static_cast<int>(whole));
    }
  }

  void MakePreemptor() {
    ReclaimProblem& problem = scene_.problem;
    problem.tree = &scene_.tree;
    problem.rank = one_rank_ ? 2 : std::max(Roll(0, 4), Roll(0, 4));
    // Mostly something that could be were everybody else gone.
    for (int tries = 5; tries > 0 && !Conceivable(); --tries) {
      problem.leaf = crowd_ ? leaves_.back() : AnyLeaf();
      problem.regions.clear();
      const int count = crowd_ ? Roll(1, 5) : std::min(Roll(1, 4), Roll(1, 4));
      const int milli = OneIn(3) ? 250 * Roll(1, 3) : 1000;
      const Charge one = ChargeOf(milli);
      for (std::size_t i = 0; i < models_.size(); ++i) {
        scene_.geometry.regions[i].count = OneIn(8) ? 0 : count;  // 0: devices are plenty
        scene_.geometry.regions[i].milli = milli;
        problem.regions.emplace_back().parts.push_back(
            {Line(models_[i]), {one.compute * count, one.memory * count}});
      }
    }
  }
  bool Conceivable() const {
    const ReclaimProblem& problem = scene_.problem;
    for (std::size_t i = 0; i < problem.regions.size(); ++i) {
      const TableGeometry::Region& region = scene_.geometry.regions[i];
      const LineCharge& part = problem.regions[i].parts.front();
      if (region.count <= static_cast<int>(region.free_milli.size()) &&
          scene_.tree.Check(problem.leaf, part.line, part.charge).refusal !=
              QuotaRefusal::kExceedsMax) {
        return true;
      }
    }
    return false;
  }

  static MarkUnit ToMark(const VictimUnit& unit, bool preemptible) {
    MarkUnit mark;
    mark.key = unit.key;
    mark.preemptible = preemptible;
    mark.rank = unit.rank;
    mark.start = unit.start;
    for (const LineCharge& part : unit.parts) mark.parts.push_back({part.line, part.charge});
    return mark;
  }
  std::vector<LineMarks> Marks(QuotaId leaf, const std::vector<MarkUnit>& units) const {
    return MarkLines(units, [&](LineId line) { return scene_.tree.Nominal(leaf, line); });
  }

  void MakeMarks() {
    ReclaimProblem& problem = scene_.problem;
    const bool odd = OneIn(20);  // marks that nobody would give
    const bool told = crowd_ || OneIn(2);
    for (const QuotaId leaf : leaves_) {
      std::vector<MarkUnit> marked;
      std::vector<int> which;
      for (const VictimUnit& unit : protected_) {
        if (unit.leaf == leaf) marked.push_back(ToMark(unit, false));
      }
      const std::size_t fixed = marked.size();
      const std::size_t first = problem.held.size();
      for (int i = 0; i < static_cast<int>(problem.units.size()); ++i) {
        if (problem.units[At(i)].leaf != leaf || owners_[At(i)] != i) continue;
        marked.push_back(ToMark(problem.units[At(i)], true));
        which.push_back(i);
      }
      const std::vector<LineMarks> marks = Marks(leaf, marked);
      for (std::size_t i = 0; i < which.size(); ++i) {
        LineMarks mark = marks[fixed + i];
        if (odd) mark = OddMark(problem.units[At(which[i])].rank);
        problem.units[At(which[i])].marks = mark;
        if (told) problem.units[At(which[i])].held = first + fixed + i;
      }
      for (const MarkUnit& unit : marked) {
        if (told) problem.held.push_back({leaf, unit});
      }
      if (leaf == problem.leaf) MarkPreemptor(std::move(marked));
    }
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (problem.units[i].leaf == kNoQuota) continue;
      problem.units[i].marks = problem.units[At(owners_[i])].marks;
      problem.units[i].held = problem.units[At(owners_[i])].held;
    }
  }
  LineMarks OddMark(int rank) {
    if (rank == 0) return {QuotaState::kScavenging, false, false};
    LineMarks mark{QuotaState::kBorrowed, OneIn(2), OneIn(2)};
    if (mark.in_model && mark.in_any) mark.state = QuotaState::kInQuota;
    return mark;
  }
  void MarkPreemptor(std::vector<MarkUnit> others) {
    for (ReclaimRegion& region : scene_.problem.regions) {
      std::vector<MarkUnit> units = others;
      MarkUnit& own = units.emplace_back();
      own.key = "~";
      own.rank = scene_.problem.rank;
      own.start = Instant(Millis(100));
      for (const LineCharge& part : region.parts) own.parts.push_back({part.line, part.charge});
      region.marks = Marks(scene_.problem.leaf, units).back();
    }
  }

  // What the least fitting sets free in the region, or less.
  void MakeLowerBounds() {
    const std::size_t units = scene_.problem.units.size();
    for (std::size_t region = 0; region < models_.size(); ++region) {
      if (!OneIn(2)) continue;
      Charge least{INT64_MAX, INT64_MAX};
      for (uint64_t set = 0; set < uint64_t{1} << units; ++set) {
        std::vector<int> gone;
        Charge freed;
        for (std::size_t i = 0; i < units; ++i) {
          if ((set >> i & 1) == 0) continue;
          gone.push_back(static_cast<int>(i));
          for (const TableGeometry::Held& one : scene_.geometry.held[i]) {
            if (one.milli == 0 || one.region != region) continue;
            freed = {freed.compute + one.charge.compute, freed.memory + one.charge.memory};
          }
        }
        if (!scene_.geometry.Fits(region, gone)) continue;
        least = {std::min(least.compute, freed.compute), std::min(least.memory, freed.memory)};
      }
      if (least.compute == INT64_MAX) continue;
      const int part = Roll(1, 2);
      scene_.problem.regions[region].short_by = {least.compute / part, least.memory / part};
    }
  }

  void MakeSwitches() {
    ReclaimProblem& problem = scene_.problem;
    problem.pdb_allowed = {Roll(0, 2), Roll(0, 2)};
    if (OneIn(2)) {
      for (std::size_t i = 0; i < scene_.tree.size(); ++i) {
        problem.cross_leaf_min_rank.push_back(OneIn(3) ? std::nullopt
                                                       : std::optional<int>(Roll(1, 3)));
      }
    }
    if (one_rank_ || OneIn(2)) {
      for (std::size_t i = 0; i < scene_.tree.size(); ++i) problem.fair_share.push_back(!OneIn(4));
    }
    for (std::size_t i = 0; i < scene_.tree.size(); ++i) problem.weights.push_back(Roll(1, 4));
    if (OneIn(4)) {
      for (std::size_t i = 0; i < scene_.tree.size(); ++i) {
        problem.evictions_left.push_back(Roll(0, 5));
      }
    }
  }

  std::mt19937_64 random_;
  ReclaimScene& scene_;
  bool one_rank_ = false;  // all are of one rank, for fair shares
  bool teamless_ = false;  // some work is of no team
  bool crowd_ = false;     // most work is of the first leaf, and the last one wants room
  int serial_ = 0;
  std::vector<QuotaId> leaves_;
  std::vector<std::string> models_;    // by region
  std::vector<VictimUnit> protected_;  // runs, and nobody may touch it
  std::vector<int> owners_;            // of a spare pod its gang, else the unit itself
};

}  // namespace tranche
