#include "test/sim/world/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "test/sim/claims/claim_world.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/cluster/network.h"
#include "test/sim/world/controllers.h"
#include "test/sim/world/kube_scheduler.h"
#include "test/sim/world/kubelets.h"
#include "test/sim/world/node_changes.h"
#include "test/sim/world/programs.h"
#include "test/sim/world/strangers.h"
#include "test/sim/world/tenants.h"
#include "test/sim/world/user_edits.h"
#include "test/sim/world/workload.h"

namespace tranche::sim {
namespace {

constexpr int kOldestHami = 7;  // whose register is JSON
constexpr std::ptrdiff_t kWaitWithClaims = 3;
constexpr uint64_t kOfClaims = 0x647261;  // draws of their own
constexpr uint64_t kOfSharing = 0x7368617265;
constexpr uint64_t kOfNominations = 0x6e6f6d;
constexpr uint64_t kOfEmptying = 0x656d70;
// These give nothing to the worlds of test/sim/seeds.
constexpr uint64_t kOfPools = 0x706f6f6c04a5;
constexpr uint64_t kOfVolumes = 0x766f6c03a6;
constexpr uint64_t kOfNames = 0x6e616d6573018a;
constexpr uint64_t kOfGuards = 0x70646273011c;
constexpr uint64_t kOfShrinking = 0x666f72676505f0;
constexpr uint64_t kOfHanging = 0x736c6f770024;
constexpr uint64_t kOfReads = 0x726561647304ae;
constexpr uint64_t kOfRemains = 0x6561726c79;
constexpr uint64_t kOfSpot = 0x73706f74;
constexpr uint64_t kOfAgents = 0x6167656e7473;
constexpr int kSome = 2'000;  // of 10,000 seeds

// What some worlds have.
bool IsOneOf(uint64_t seed, uint64_t of) { return Draws(seed).Fork(of).Chance(kSome); }

// `of_hami`: all that have GPUs.
std::vector<Machine> DrawFleet(Draws& draws, int nodes, bool of_hami) {
  std::vector<Machine> machines;
  const int64_t favourite = draws.Below(4);
  for (int i = 0; i < nodes; ++i) {
    const int64_t sort = draws.Below(2) == 0 ? favourite : draws.Below(4);
    // Never MIG alone: whole cards are asked for everywhere.
    const NodeKind kind = sort == 0 && i > 0 ? NodeKind::kMig
                          : sort == 1        ? NodeKind::kHami
                                             : NodeKind::kStock;
    machines.push_back(
        DrawMachine(draws, fmt::format("node-{}", i), of_hami ? NodeKind::kHami : kind, 1));
  }
  const int64_t plain = draws.Below(5);
  for (int64_t i = 0; i < plain; ++i) {
    machines.push_back(DrawMachine(draws, fmt::format("plain-{}", i), NodeKind::kPlain, 1));
  }
  return machines;
}

// tranche-node in place of NVIDIA's plugin on some machines; on half of them pods may share cards.
void InstallAgents(std::vector<Machine>& machines, Draws draws) {
  constexpr int kSlots = 10;
  for (Machine& machine : machines) {
    if (machine.kind != NodeKind::kStock || draws.Below(4) == 0) continue;
    machine.kind = NodeKind::kAgent;
    if (draws.Below(2) == 0) machine.slots = kSlots;
  }
}

}  // namespace

struct World::Parts {
  Parts(Loop& the_loop, History& the_history, Script& script, const FaultPlan& faults,
        const WorldOptions& options)
      : draws(options.seed),
        loop(the_loop),
        history(the_history),
        network(loop, history, script, faults, draws.Next()),
        api(loop, history, script, faults, network, draws.Next()),
        hami_minor(static_cast<int>(draws.Between(kOldestHami + 1, 10))),
        kubelets(loop, history, script, faults, api, {hami_minor}, draws.Next()),
        controllers(loop, api, draws.Next()),
        edits(loop, history, script, faults, api, tenants, machines),
        programs(loop, script, api, options.seed) {
    const int nodes = options.nodes > 0 ? options.nodes : static_cast<int>(draws.Between(3, 12));
    // Where HAMi divides all cards, pods may share them by our word alone.
    const bool shares_freely = Draws(options.seed).Fork(kOfSharing).Chance(1'000);
    machines = DrawFleet(draws, nodes, shares_freely);
    if (faults.trial && IsOneOf(options.seed, kOfAgents)) {
      InstallAgents(machines, Draws(options.seed).Fork(kOfAgents).Fork(1));
    }
    const Draws of_claims = Draws(options.seed).Fork(kOfClaims);
    const std::vector<Machine> dra =
        shares_freely ? std::vector<Machine>() : DrawDraMachines(of_claims);
    machines.insert(machines.end(), dra.begin(), dra.end());
    const bool pools = dra.empty() && Draws(options.seed).Fork(kOfPools).Chance(2'500);
    for (std::size_t i = 1; pools && i < machines.size(); i += 2) machines[i].pool = "odd";
    tenants = DrawTenants(draws, machines, hami_minor);
    if (pools) DeclarePool(tenants, "odd");
    if (shares_freely) AllowUnenforcedSharing(tenants);
    if (Draws(options.seed).Fork(kOfNominations).Chance(5'000)) NominateEarly(tenants);
    if (Draws(options.seed).Fork(kOfEmptying).Chance(2'500)) Consolidate(tenants);
    if (IsOneOf(options.seed, kOfGuards)) GuardNamespaces(tenants);
    const bool is_spot = faults.trial && IsOneOf(options.seed, kOfSpot);
    if (is_spot && Draws(options.seed).Fork(kOfSpot).Fork(1).Chance(7'000)) DrainNoticed(tenants);
    api.set_policies_hang(IsOneOf(options.seed, kOfHanging));
    api.set_reads_dawdle(IsOneOf(options.seed, kOfReads));
    if (faults.has(Fault::kUsers)) {
      edits.set_habits({.shrink_records = IsOneOf(options.seed, kOfShrinking),
                        .guard_pods = IsOneOf(options.seed, kOfGuards),
                        .delete_read = IsOneOf(options.seed, kOfReads)});
    }
    MakeSchedulers(script, faults, options, !dra.empty());
    WorkloadOptions work;
    work.lives = options.lives;
    work.rules = RulesFor(machines);
    work.rules.mean_runtime_ms = draws.Between(2'000, 20'000);
    work.mean_gap = std::chrono::milliseconds(draws.Between(100, 600));
    work.most_waiting = static_cast<std::size_t>(draws.Between(3, 14));
    if (!dra.empty()) work.most_waiting += kWaitWithClaims;
    work.namespaces = tenants.namespaces;
    work.sizes_late = shares_freely;
    work.keeps_names = IsOneOf(options.seed, kOfNames);
    for (const auto& scheduler : schedulers) work.schedulers.push_back(scheduler->name());
    strangers = std::make_unique<Strangers>(loop, script, faults, api, tenants.namespaces.back(),
                                            work.rules);
    workload = std::make_unique<Workload>(loop, script, api, std::move(work), draws.Next());
    nodes_change =
        std::make_unique<NodeChanges>(loop, history, script, faults, api, kubelets, *workload,
                                      NodeChangesOptions{draws.Below(3) == 0, 3, is_spot});
    if (!dra.empty()) MakeClaims(script, faults, of_claims.Fork(1));
  }

  // Few of them wait at a time, so that others come too.
  ClaimWork::Mood MoodOfClaims() const {
    if (workload->arrived()) return ClaimWork::Mood::kIsDone;
    const auto many =
        kWaitWithClaims <= std::ranges::count_if(workload->waiting(), [](const std::string& key) {
          return key.find("/claimer-") != std::string::npos;
        });
    return many ? ClaimWork::Mood::kWaits : ClaimWork::Mood::kGoesOn;
  }

  void MakeClaims(Script& script, const FaultPlan& faults, Draws of_claims) {
    ClaimWorkOptions work;
    work.namespaces = tenants.namespaces;
    work.scheduler = schedulers.front()->name();
    work.mean_runtime_ms = of_claims.Between(2'000, 20'000);
    work.mean_gap = std::chrono::milliseconds(of_claims.Between(500, 4'000));
    claims = std::make_unique<ClaimWorld>(
        loop, history, script, faults, api, machines, std::move(work),
        [this] { return MoodOfClaims(); }, of_claims);
    kubelets.OnMachines([this](const std::string& node, const Machine* machine) {
      if (machine == nullptr) return claims->drivers().Left(node);
      claims->drivers().Joined(*machine);
    });
  }

  void MakeSchedulers(Script& script, const FaultPlan& faults, const WorldOptions& options,
                      bool has_claims) {
    const int count = options.schedulers > 0
                          ? options.schedulers
                          : static_cast<int>(draws.Below(2) == 0 ? 1 : draws.Between(2, 3));
    const int minor = draws.Below(2) == 0 ? 34 : 37;
    api.pods().set_clears_nominations(minor >= 35);
    for (int i = 0; i < count; ++i) {
      KubeSchedulerOptions one;
      one.allocates = has_claims && i == 0;
      if (i > 0) one.name += fmt::format("-{}", i + 1);
      one.minor = minor;
      one.most_backoff = std::chrono::seconds(draws.Below(2) == 0 ? 10 : 30);
      one.pops_early = draws.Below(4) == 0;
      one.nominates_before_bind = draws.Below(4) < 2;
      one.has_volumes = IsOneOf(options.seed, kOfVolumes);
      schedulers.push_back(std::make_unique<KubeScheduler>(loop, history, script, faults, api,
                                                           network, one, draws.Next()));
    }
  }

  Draws draws;
  Loop& loop;
  History& history;
  Network network;
  ApiServer api;
  const int hami_minor;
  Kubelets kubelets;
  Controllers controllers;
  std::vector<Machine> machines;
  Tenants tenants;
  UserEdits edits;
  Programs programs;
  std::vector<std::unique_ptr<KubeScheduler>> schedulers;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Strangers> strangers;
  std::unique_ptr<NodeChanges> nodes_change;
  std::unique_ptr<ClaimWorld> claims;  // null: nobody has any
};

World::World(Loop& loop, History& history, Script& script, const FaultPlan& faults,
             WorldOptions options)
    : parts_(std::make_unique<Parts>(loop, history, script, faults, options)) {
  // What is there before anybody asks.
  for (const auto& [resource, object] : parts_->tenants.objects) {
    parts_->api.Put("administrator", resource, object);
  }
  for (const Machine& machine : parts_->machines) parts_->kubelets.Join(machine, "administrator");
  if (!options.has_remains) return;
  PutRemains(
      parts_->api, parts_->machines, parts_->tenants,
      [this](const Machine& machine, const Stored& pod, Json devices) {
        parts_->kubelets.all().at(machine.name)->Adopt(pod, std::move(devices));
      },
      Draws(options.seed).Fork(kOfRemains));
}

World::~World() = default;

ApiEndpoint& World::api() { return parts_->api; }

void World::Start(TrancheEndpoint& tranche) {
  if (parts_->draws.Below(2) == 0) parts_->api.admission().set_endpoint(&tranche);
  parts_->network.Start();
  parts_->api.Start();
  parts_->kubelets.Start();
  for (const auto& scheduler : parts_->schedulers) scheduler->Start(tranche);
  parts_->controllers.Start();
  parts_->workload->Start();
  parts_->edits.Start();
  parts_->programs.Start();
  parts_->strangers->Start();
  parts_->nodes_change->Start();
  if (parts_->claims != nullptr) parts_->claims->Start();
}

bool World::arrived() const { return parts_->workload->arrived(); }

void World::Quiet() {
  parts_->network.Quiet();
  parts_->api.Quiet();
  parts_->kubelets.Quiet();
  for (const auto& scheduler : parts_->schedulers) scheduler->Quiet();
  parts_->workload->Quiet();
  parts_->edits.Quiet();
  parts_->strangers->Quiet();
  parts_->nodes_change->Quiet();
  if (parts_->claims != nullptr) parts_->claims->Quiet();
  Happening quiet{Happening::Kind::kQuiet};
  quiet.who = "world";
  parts_->history.Add(std::move(quiet));
}

int64_t World::lives() const { return parts_->workload->lives(); }
const Store& World::store() const { return parts_->api.store(); }

}  // namespace tranche::sim
