#include "test/sim/world/programs.h"

#include <utility>

#include "test/sim/world/pod_view.h"

namespace tranche::sim {
namespace {

constexpr const char* kCheckpoint = "tranche.dev/checkpointed-at";
constexpr uint64_t kOfPrograms = 0x70726f67;

std::string PhaseOf(const Stored& pod) {
  return pod.object().value("status", Json::object()).value("phase", "");
}

}  // namespace

Programs::Programs(Loop& loop, Script& script, ApiServer& api, uint64_t seed)
    : loop_(loop),
      script_(script),
      api_(api),
      draws_(Draws(seed).Fork(kOfPrograms)),
      some_save_(draws_.Chance(2'500)) {}

void Programs::Start() {
  // Other worlds are as if there were no programs.
  if (!some_save_) return;
  self_ = loop_.NewActor("program");
  api_.store().Listen([this](std::string_view resource, const Change& change) {
    if (resource != "pods" || change.type != Change::Type::kModified) return;
    const bool begins =
        PhaseOf(*change.object) == "Running" && PhaseOf(*change.before) != "Running";
    if (begins) Begin(*change.object);
  });
}

void Programs::Begin(const Stored& pod) {
  std::optional<Draws> act = script_.ActByChance("saves", 6'000);
  if (!act) return;
  const SimTime gap = std::chrono::milliseconds(act->Between(1'000, 8'000));
  loop_.After(gap, self_, [this, program = Program{pod.key(), std::string(pod.uid()), gap, *act}] {
    Save(program);
  });
}

void Programs::Save(Program program) {
  const StoredPtr pod = api_.store().Find("pods", program.key);
  if (pod == nullptr || pod->uid() != program.uid || PhaseOf(*pod) != "Running") return;
  SimTime said = loop_.now();
  if (program.draws.Chance(500)) said += std::chrono::seconds(program.draws.Between(-60, 60));
  Write write{loop_.NameOf(self_), "PATCH", {FindResource("pods")}, "application/merge-patch+json"};
  const std::size_t slash = program.key.find('/');
  write.path.ns = program.key.substr(0, slash);
  write.path.name = program.key.substr(slash + 1);
  write.body = {{"metadata", {{"annotations", {{kCheckpoint, TimeText(said)}}}}}};
  api_.Do(self_, std::move(write));
  if (program.draws.Chance(500)) return;  // it saves no more
  const SimTime next = program.draws.Chance(1'000) ? 3 * program.gap : program.gap;
  loop_.After(next, self_, [this, program = std::move(program)] { Save(program); });
}

}  // namespace tranche::sim
