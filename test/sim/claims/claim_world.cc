#include "test/sim/claims/claim_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "test/sim/claims/device_slices.h"

namespace tranche::sim {
namespace {

ClaimWorkOptions Fitting(ClaimWorkOptions options, const std::vector<Machine>& machines) {
  std::set<std::string> profiles;
  for (const Machine& machine : machines) {
    if (machine.kind != NodeKind::kDra) continue;
    int64_t cards = 0;
    for (const DraDevice& device : DevicesOf(machine)) cards += device.instance < 0 ? 1 : 0;
    options.most_cards = std::max(options.most_cards, cards);
    for (const MigInstance& cut : machine.instances) profiles.insert(cut.profile);
  }
  options.profiles.assign(profiles.begin(), profiles.end());
  return options;
}

}  // namespace

std::vector<Machine> DrawDraMachines(Draws draws) {
  std::vector<Machine> machines;
  if (draws.Below(3) != 0) return machines;
  const int64_t count = draws.Between(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    machines.push_back(DrawMachine(draws, fmt::format("dra-{}", i), NodeKind::kDra, 1));
  }
  return machines;
}

ClaimWorld::ClaimWorld(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                       ApiServer& api, const std::vector<Machine>& machines,
                       ClaimWorkOptions options, std::function<ClaimWork::Mood()> mood, Draws draws)
    : api_(api),
      drivers_(loop, history, script, faults, api, draws.Next()),
      controller_(loop, api, draws.Next()),
      work_(loop, script, faults, api, Fitting(std::move(options), machines), std::move(mood)) {}

void ClaimWorld::Start() {
  for (Json& one : DraClasses(/*serves_gpus=*/false)) {
    api_.Put("administrator", "deviceclasses", std::move(one));
  }
  drivers_.Start();
  controller_.Start();
  work_.Start();
}

void ClaimWorld::Quiet() {
  drivers_.Quiet();
  work_.Quiet();
}

}  // namespace tranche::sim
