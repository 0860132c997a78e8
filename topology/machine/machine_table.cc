#include "topology/machine/machine_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "topology/machine/plugin_choice.h"
#include "topology/machine/ring_table.h"
#include "topology/machine/set_search.h"
#include "topology/machine/set_values.h"

namespace tranche {
namespace {

constexpr std::size_t kMostAnswers = 4096;
constexpr int kMostDamage = 15;

int LossOf(const SetQuality& found, const SetQuality& best) {
  if (found.connected != best.connected) return 6;
  if (found.ring_links != best.ring_links) return 5;
  if (found.links != best.links || found.ring_weakest != best.ring_weakest) return 4;
  if (found.worst_path != best.worst_path) return 3;
  if (found.numa_nodes != best.numa_nodes) return 2;
  return found.nic_distance != best.nic_distance ? 1 : 0;
}

// GPUs that stay free, were in groups of at least some size, and no longer can be.
int Spoilt(int grouped_before, int grouped_after, int taken) {
  return std::max(0, grouped_before - grouped_after - taken);
}

// Summed over the sizes of groups.
int DamageOf(const Packing& before, const Packing& after, int taken) {
  int damage = 0;
  int grouped_before = 0;
  int grouped_after = 0;
  const auto add = [&](int size, int groups_before, int groups_after) {
    grouped_before += size * groups_before;
    grouped_after += size * groups_after;
    damage += Spoilt(grouped_before, grouped_after, taken);
  };
  add(8, before.octets, after.octets);
  add(4, before.quads, after.quads);
  add(3, before.triples, after.triples);
  add(2, before.pairs, after.pairs);
  return std::min(kMostDamage, damage);
}

}  // namespace

bool IsBetter(const SetQuality& left, const SetQuality& right) { return Pack(left) > Pack(right); }

struct MachineTable::Memo {
  // Free GPUs, count, and the rules as a number.
  using Question = std::tuple<uint64_t, int, uint64_t>;

  explicit Memo(const Machine& machine) : values(machine) {}

  SetValues values;
  std::map<Question, std::optional<SetChoice>> answers;
  std::map<std::pair<uint64_t, int>, std::vector<GpuSet>> plugin_sets;
};

namespace {

// A single GPU has no links to care about, so it is taken where it does least damage.
SetRules Effective(SetRules rules, int count) {
  if (count == 1) rules.goal = SetGoal::kPreserve;
  return rules;
}

uint64_t Code(const SetRules& rules) {
  uint64_t code = rules.goal == SetGoal::kPreserve ? 1 : 0;
  const auto push = [&](uint64_t value, int width) { code = code << width | value; };
  push(rules.require_nvlink ? 1 : 0, 1);
  push(rules.one_numa ? 1 : 0, 1);
  push(rules.floor ? 1 : 0, 1);
  push(rules.floor ? static_cast<uint64_t>(rules.floor->path) : 0, 3);
  push(rules.floor ? rules.floor->nvlinks : 0, 8);
  push(rules.nic_floor ? 1 : 0, 1);
  push(rules.nic_floor ? static_cast<uint64_t>(*rules.nic_floor) : 0, 3);
  return code;
}

}  // namespace

MachineTable::MachineTable(std::shared_ptr<const Machine> machine)
    : machine_(std::move(machine)), memo_(std::make_unique<Memo>(*machine_)) {}

MachineTable::~MachineTable() = default;

SetChoice MachineTable::Describe(GpuSet set, GpuSet free, const SetRules& rules) {
  const SetValues& values = memo_->values;
  SetChoice choice;
  choice.set = set;
  choice.quality = QualityOf(set);
  if (rules.goal == SetGoal::kConnected && free != machine_->all()) {
    choice.loss = LossOf(choice.quality, Best(machine_->all(), set.size(), rules)->quality);
  }
  choice.damage = DamageOf(values.BestPacking(free), values.BestPacking(free - set), set.size());
  choice.exact = machine_->size() <= kMostTabledGpus || machine_->uniform();
  return choice;
}

std::optional<SetChoice> MachineTable::Best(GpuSet free, int count, const SetRules& rules) {
  free = free & machine_->all();
  if (count < 1 || free.size() < count) return std::nullopt;
  const SetRules effective = Effective(rules, count);
  const Memo::Question question = {free.bits(), count, Code(effective)};
  if (const auto known = memo_->answers.find(question); known != memo_->answers.end()) {
    return known->second;
  }
  const std::vector<SetChoice> ranked = Ranked(free, count, effective, 1);
  if (memo_->answers.size() >= kMostAnswers) memo_->answers.clear();
  return memo_->answers[question] = ranked.empty() ? std::nullopt : std::optional(ranked.front());
}

std::vector<SetChoice> MachineTable::Ranked(GpuSet free, int count, const SetRules& rules,
                                            std::size_t most) {
  free = free & machine_->all();
  std::vector<SetChoice> choices;
  if (count < 1 || most == 0) return choices;
  const SetRules effective = Effective(rules, count);
  const SetQuestion question = {*machine_, memo_->values, free, count, effective.goal};
  for (const GpuSet set : BestSets(question, AdmittedBy(*machine_, effective), most)) {
    choices.push_back(Describe(set, free, effective));
  }
  return choices;
}

const std::vector<GpuSet>& MachineTable::PluginSets(GpuSet free, int count) {
  if (memo_->plugin_sets.size() >= kMostAnswers) memo_->plugin_sets.clear();
  const auto [at, fresh] = memo_->plugin_sets.try_emplace({free.bits(), count});
  if (fresh) at->second = PluginChoices(*machine_, free, count);
  return at->second;
}

SetQuality MachineTable::QualityOf(GpuSet set) { return UnpackQuality(memo_->values.ToTake(set)); }

std::optional<MissingLink> MachineTable::Missing(GpuSet free, int count, const SetRules& rules) {
  free = free & machine_->all();
  if (count < 1 || free.size() < count || Best(free, count, rules)) return std::nullopt;
  const SetRules effective = Effective(rules, count);
  const Admitted admitted = AdmittedBy(*machine_, effective);
  const SetQuestion question = {*machine_, memo_->values, free, count, effective.goal};
  return FirstBreach(*machine_, admitted, ClosestSet(question, admitted));
}

std::shared_ptr<MachineTable> MachineTables::Of(const std::shared_ptr<const Machine>& machine) {
  if (const auto known = tables_.find(machine->digest()); known != tables_.end()) {
    if (std::shared_ptr<MachineTable> table = known->second.lock()) return table;
  }
  std::erase_if(tables_, [](const auto& entry) { return entry.second.expired(); });
  auto table = std::make_shared<MachineTable>(machine);
  tables_[machine->digest()] = table;
  return table;
}

}  // namespace tranche
