#include "scheduler/advice/rules.h"

#include <algorithm>

namespace tranche {

PlaceRules RulesIn(const AdviceCase& fleet, const PodRequest& request,
                   const std::string& workload_class) {
  PlaceRules rules;
  rules.policy = &fleet.policy;
  rules.layout_values = &fleet.layout_values;
  if (request.card_choice != CardChoice::kStrategy) rules.choice = request.card_choice;
  const auto known = std::ranges::find(fleet.classes, workload_class, &GpuClass::name);
  if (known != fleet.classes.end()) rules.sharing = &known->sharing;
  return rules;
}

bool SuitsNode(const PodRequest& request, const AdviceNode& node) {
  static const NodeConstraints kNone;
  return Suits(request.constraints ? *request.constraints : kNone, node.name.str(), node.labels,
               node.taints);
}

}  // namespace tranche
