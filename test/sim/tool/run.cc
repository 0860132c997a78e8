#include "test/sim/tool/run.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "test/sim/base/draws.h"
#include "test/sim/base/loop.h"
#include "test/sim/check/checkers.h"
#include "test/sim/product/replicas.h"
#include "test/sim/world/world.h"
#include "topology/base/plant.h"

namespace tranche::sim {
namespace {

constexpr SimTime kSlice = std::chrono::seconds(10);
constexpr SimTime kLongest = std::chrono::minutes(30);  // for lives to end, once all have come
constexpr SimTime kQuietTime = std::chrono::minutes(10);
// In one slice: far more than a busy one needs, and soon over where somebody turns in circles.
constexpr int64_t kMostSteps = 400'000;
constexpr uint64_t kOfQueue = 0x7175657565;  // draws of their own
constexpr uint64_t kOfElection = 0x656c6563;
constexpr uint64_t kOfRemains = 0x6561726c79a4e4;  // gives none to worlds of test/sim/seeds

// Of this process alone, in memory where the machine has such a place.
std::string FolderForVolumes() {
  std::error_code error;
  const std::filesystem::path in_memory("/dev/shm");
  const auto place = std::filesystem::is_directory(in_memory, error)
                         ? in_memory
                         : std::filesystem::temp_directory_path();
  return place / ("tranche-sim-" + std::to_string(getpid()));
}

struct RemoveFolder {
  std::string folder;
  ~RemoveFolder() {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
};

ReplicasOptions DrawReplicas(Draws draws, uint64_t seed, const FaultPlan& faults,
                             std::string folder, const std::string& log) {
  ReplicasOptions options;
  options.seed = seed;
  options.replicas = static_cast<int>(draws.Between(1, 3));
  options.fail_open = draws.Chance(3'000);
  Draws of_election = draws.Fork(kOfElection);
  options.elects = options.replicas > 1 || !of_election.Chance(3'000);
  // So few that a disk which hangs fills the queue: what has no place in it is charged nowhere.
  Draws own = draws.Fork(kOfQueue);
  if (faults.has(Fault::kDisk) && own.Chance(4'000)) {
    options.ledger_queue = static_cast<std::size_t>(own.Between(4, 60));
  }
  // Where a ledger that cannot be trusted closes nothing, so that work goes on without it.
  options.bits_flip = faults.has(Fault::kDisk) && options.fail_open && own.Chance(5'000);
  options.folder = std::move(folder);
  options.log_level = log;
  return options;
}

CheckOptions OptionsOf(const FaultPlan& faults, const ReplicasOptions& replicas) {
  CheckOptions options;
  options.disks_are_sound = !replicas.bits_flip;
  options.faults = faults;
  // Disks lose what was not synced, fill, fail and hang; what was synced they keep. Only what was
  // never written is charged by guess.
  options.charges = !faults.has(Fault::kDisk);
  // Watches that lag, requests that are repeated: the news of a cluster in trouble comes late.
  const bool late = faults.has(Fault::kApiServer) || faults.has(Fault::kNetwork) ||
                    faults.has(Fault::kPause) || faults.has(Fault::kCrash);
  if (late) options.lag = std::chrono::seconds(150);
  return options;
}

bool AllEnded(const check::Truth& truth) {
  for (const auto& [uid, pod] : truth.pods()) {
    if (!pod.ended) return false;
  }
  return true;
}

std::set<std::string> TakePlants() {
#ifdef TRANCHE_PLANTS
  return Plant::TakeReached();
#else
  return {};
#endif
}

// Runs until the lives have come and ended; false: somebody turns in circles.
bool LiveOn(Loop& loop, const World& world, const check::Truth& truth) {
  std::optional<SimTime> latest;
  while (!latest || loop.now() < *latest) {
    if (!loop.RunUntil(loop.now() + kSlice, kMostSteps)) return false;
    if (!world.arrived()) continue;
    if (!latest) latest = loop.now() + kLongest;
    if (AllEnded(truth)) break;
  }
  return true;
}

}  // namespace

Outcome RunSeed(const RunOptions& options) {
  Outcome outcome;
  Draws draws = Draws(options.seed).Fork(0x746f6f6c);
  const FaultPlan faults = DrawFaults(draws, options.faults, outcome.problem);
  if (!outcome.problem.empty()) return outcome;
  TakePlants();  // the run's own alone
  const RemoveFolder volumes{FolderForVolumes()};
  Loop loop(options.seed);
  History history(loop);
  Script script(options.seed, options.left_out);
  const ReplicasOptions replicas_options =
      DrawReplicas(draws.Fork(1), options.seed, faults, volumes.folder, options.log);
  Checkers checkers(loop, history, OptionsOf(faults, replicas_options));
  if (options.listener) history.Listen(options.listener);
  // An elected leader has seen all pods before it leads; a single one may come upon later epochs.
  const bool has_remains =
      Draws(options.seed).Fork(kOfRemains).Chance(replicas_options.elects ? 500 : 3'500);
  World world(loop, history, script, faults,
              {.seed = options.seed, .lives = options.lives, .has_remains = has_remains});
  Replicas replicas(loop, history, script, faults, world.api(), replicas_options);
  replicas.Start();
  world.Start(replicas);
  bool moves_on = LiveOn(loop, world, checkers.truth());
  world.Quiet();
  replicas.Quiet();
  const SimTime end = loop.now() + kQuietTime;
  while (moves_on && loop.now() < end) {
    moves_on = loop.RunUntil(std::min(loop.now() + kSlice, end), kMostSteps);
  }
  replicas.TellDoubts();
  if (moves_on) {
    checkers.Final([&](const std::string& target) { return replicas.Ask(target); },
                   replicas.LedgerFiles());
  }
  outcome.findings = checkers.findings();
  if (!moves_on) {
    outcome.findings.push_back(
        {"steps", "", "expected time to go on, found steps without end at one moment", loop.now()});
  }
  outcome.digest = history.digest();
  outcome.lives = world.lives();
  outcome.steps = loop.steps();
  outcome.simulated = loop.now();
  outcome.done = script.done();
  outcome.plants = TakePlants();
  return outcome;
}

}  // namespace tranche::sim
