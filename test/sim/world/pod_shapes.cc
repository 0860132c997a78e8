#include "test/sim/world/pod_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "test/sim/world/kubelet.h"

namespace tranche::sim {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";

void DrawManners(Draws& draws, const ShapeRules& rules, PodShape& shape) {
  constexpr std::array<const char*, 6> kClasses = {"",    "batch",     "batch",
                                                   "dev", "important", "batch-never"};
  shape.priority_class = kClasses[static_cast<std::size_t>(draws.Below(kClasses.size()))];
  constexpr std::array<int64_t, 4> kGraces = {0, 2, 30, 60};
  shape.grace_seconds = kGraces[static_cast<std::size_t>(draws.Below(kGraces.size()))];
  // Most are short, a few last much longer.
  const int64_t most = draws.Below(8) == 0 ? rules.mean_runtime_ms * 6 : rules.mean_runtime_ms;
  shape.runtime_ms = draws.Between(300, most * 2);
  shape.fails = draws.Below(20) == 0;
}

void AskHami(Draws& draws, PodShape& shape) {
  const int64_t cards = draws.Below(4) == 0 ? 2 : 1;
  shape.limits[kGpu] = std::to_string(cards);
  switch (draws.Below(4)) {
    case 0:
      shape.limits["nvidia.com/gpumem"] = std::to_string(draws.Between(1, 15) * 1000);
      break;
    case 1:
      shape.limits["nvidia.com/gpumem-percentage"] = std::to_string(draws.Between(1, 20) * 5);
      break;
    case 2:
      shape.limits["nvidia.com/gpumem"] = std::to_string(draws.Between(1, 30) * 500);
      shape.limits["nvidia.com/gpucores"] = std::to_string(draws.Between(1, 10) * 10);
      break;
    default:
      break;
  }
}

void AskTranche(Draws& draws, PodShape& shape) {
  shape.limits[kGpu] = "1";
  if (draws.Below(3) > 0) {
    shape.annotations["tranche.dev/gpu-fraction"] = fmt::format("0.{}", draws.Between(1, 9));
  } else {
    shape.annotations["tranche.dev/gpu-memory"] = std::to_string(draws.Between(1, 14) * 1024);
  }
}

}  // namespace

ShapeRules RulesFor(const std::vector<Machine>& machines) {
  ShapeRules rules;
  std::set<std::string> profiles;
  rules.most_cards = 1;
  for (const Machine& machine : machines) {
    if (machine.kind == NodeKind::kDra) continue;
    const auto cards = static_cast<int64_t>(machine.cards.size());
    const bool whole = machine.kind == NodeKind::kStock || machine.kind == NodeKind::kAgent;
    if (whole) rules.most_cards = std::max(rules.most_cards, cards);
    rules.stock = rules.stock || whole;
    rules.parts = rules.parts || machine.slots > 0;
    rules.hami = rules.hami || machine.kind == NodeKind::kHami;
    for (const MigInstance& instance : machine.instances) profiles.insert(instance.profile);
  }
  rules.profiles.assign(profiles.begin(), profiles.end());
  return rules;
}

PodShape DrawWholeCards(Draws& draws, const ShapeRules& rules, int64_t cards) {
  PodShape shape;
  DrawManners(draws, rules, shape);
  shape.limits[kGpu] = std::to_string(cards);
  return shape;
}

PodShape DrawShape(Draws& draws, const ShapeRules& rules) {
  constexpr std::array<int64_t, 8> kCards = {1, 1, 1, 1, 2, 2, 4, 8};
  PodShape shape;
  DrawManners(draws, rules, shape);
  const int64_t kind = draws.Below(20);
  const int64_t cards =
      std::min(draws.Pick(std::vector(kCards.begin(), kCards.end())), rules.most_cards);
  if (kind == 19) return shape;  // no GPU at all
  if (kind < 5 && !rules.profiles.empty()) {
    shape.limits["nvidia.com/mig-" + draws.Pick(rules.profiles)] =
        std::to_string(draws.Below(4) == 0 ? 2 : 1);
  } else if (kind < 9 && rules.hami) {
    AskHami(draws, shape);
  } else if (kind < 13 && (rules.hami || rules.parts)) {
    AskTranche(draws, shape);
  } else {
    shape.limits[kGpu] = std::to_string(cards);
  }
  return shape;
}

Json PodObject(const std::string& ns, const std::string& name, const std::string& scheduler,
               const PodShape& shape) {
  Json annotations = shape.annotations;
  annotations[kRuntimeKey] = std::to_string(shape.runtime_ms);
  if (shape.fails) annotations[kFailsKey] = "true";
  Json limits = shape.limits;
  limits["cpu"] = "2";
  limits["memory"] = "4096Mi";
  Json spec = {{"schedulerName", scheduler},
               {"terminationGracePeriodSeconds", shape.grace_seconds},
               {"restartPolicy", "Never"},
               {"containers",
                Json::array({{{"name", "main"}, {"resources", {{"limits", std::move(limits)}}}}})}};
  if (!shape.priority_class.empty()) spec["priorityClassName"] = shape.priority_class;
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"namespace", ns}, {"annotations", std::move(annotations)}}},
      {"spec", std::move(spec)}};
}

}  // namespace tranche::sim
