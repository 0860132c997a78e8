// Algorithm: kinds are put on models one after another, those with the fewest models to go to
// first, of these the higher class; each goes to the models where its class gets what it prefers,
// the smallest cards first. How many of a kind a model holds is found by dividing its GPUs anew
// (split_model.h).
#include "scheduler/advice/fleet_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/advice/split_model.h"
#include "scheduler/index/charge_of.h"

namespace tranche {
namespace {

constexpr std::chrono::hours kDay{24};

std::map<std::string, SplitOfModel> ModelsOf(const AdviceCase& fleet) {
  std::map<std::string, SplitOfModel> models;
  for (const AdviceNode& node : fleet.nodes) {
    for (const Card& card : node.inventory.cards) {
      if (!card.healthy) continue;
      const std::string model = ModelOf(node.inventory, card);
      const auto at = models.try_emplace(model, model, card.product, card.memory).first;
      at->second.AddCard(card.mode, card.memory);
    }
  }
  return models;
}

std::vector<SplitNeed> NeedsOf(const AdviceCase& fleet, bool peaks) {
  std::vector<SplitNeed> needs;
  for (const DemandRow& row : fleet.demand) {
    const int64_t pods = peaks ? row.peak : row.now;
    if (pods == 0 || row.kind.devices == 0) continue;
    const std::string& name = row.kind.workload_class;
    const auto known = std::ranges::find(fleet.classes, name, &GpuClass::name);
    const GpuClass of = known != fleet.classes.end() ? *known : DefaultClass(name);
    needs.push_back({row.kind, pods, of.rank, of.sharing});
  }
  return needs;
}

// The models that can serve the need, the best first.
std::vector<SplitOfModel*> ChoicesOf(const SplitNeed& need,
                                     std::map<std::string, SplitOfModel>& models) {
  std::vector<std::pair<std::tuple<int, Mebibytes, std::string>, SplitOfModel*>> ranked;
  for (auto& [name, model] : models) {
    const auto use = model.UseFor(need);
    if (use) ranked.push_back({{use->preference, model.memory(), name}, &model});
  }
  std::ranges::sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<SplitOfModel*> choices;
  for (const auto& [rank, model] : ranked) choices.push_back(model);
  return choices;
}

std::string Unserved(const SplitNeed& need) {
  const DemandKind& kind = need.kind;
  const std::string what = !kind.mig_profile.empty() ? kind.mig_profile : "what is asked";
  return fmt::format("no GPU of the fleet offers {}{}{}: {} pod{}", what,
                     kind.models.empty() ? "" : " on " + kind.models,
                     kind.workload_class.empty() ? "" : " (" + kind.workload_class + ")", need.pods,
                     need.pods == 1 ? "" : "s");
}

std::string BasisOf(const AdviceCase& fleet, bool peaks) {
  const Millis span = fleet.now - fleet.demand_since;
  if (!peaks) return "what runs and waits now; a day of records is needed for more";
  const int64_t days = std::min<int64_t>(span / kDay, DemandLog::kHours / 24);
  return fmt::format("the most of each kind at a time in the last {}",
                     days == 1 ? "day" : fmt::format("{} days", days));
}

}  // namespace

SplitAdvice AdviseSplit(const AdviceCase& fleet) {
  const bool peaks = fleet.demand_since != Instant() && fleet.now - fleet.demand_since >= kDay;
  SplitAdvice advice;
  advice.basis = BasisOf(fleet, peaks);
  std::map<std::string, SplitOfModel> models = ModelsOf(fleet);
  std::vector<SplitNeed> needs = NeedsOf(fleet, peaks);
  const auto order = [&models](const SplitNeed& need) {
    const DemandKind& kind = need.kind;
    return std::tuple(ChoicesOf(need, models).size(), -need.rank, -kind.milli, kind);
  };
  std::ranges::sort(needs, {}, order);
  for (const SplitNeed& need : needs) {
    const std::vector<SplitOfModel*> choices = ChoicesOf(need, models);
    if (choices.empty()) {
      advice.notes.push_back(Unserved(need));
      continue;
    }
    int64_t left = need.pods;
    for (SplitOfModel* model : choices) {
      if (left > 0) left -= model->Assign(need, left);
    }
    if (left > 0) choices.front()->FallShort(need, left);
  }
  for (auto& [name, model] : models) {
    advice.models.push_back(model.Result());
    if (model.doubt() > 0) {
      advice.notes.push_back(fmt::format("{}: up to {} GPUs fewer might do for its MIG instances",
                                         name, model.doubt()));
    }
  }
  return advice;
}

}  // namespace tranche
