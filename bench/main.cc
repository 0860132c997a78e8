// tranche-bench: one subcommand a benchmark.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "bench/claims/claims.h"
#include "bench/compare/compare.h"
#include "bench/cost/cost.h"
#include "bench/decide/decide.h"
#include "bench/fill/fill.h"
#include "bench/forecast/forecast.h"
#include "bench/gang/gang.h"
#include "bench/ledger/ledger.h"
#include "bench/mig/mig.h"
#include "bench/preempt/preempt.h"
#include "bench/replay/replay.h"
#include "bench/restart/restart.h"
#include "bench/ring/ring.h"
#include "bench/storm/storm.h"
#include "bench/tenants/tenants.h"

namespace {

namespace bench = tranche::bench;
using tranche::kMostMoneyRate;

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "tranche-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

// The tranche program that was built beside this one.
std::string Server() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tranche").string();
}

// The profile a command reads, and what its options say instead.
void AddProfile(CLI::App* command, const std::string& name, bench::ProfileOptions& options) {
  options.file = TRANCHE_BENCH_PROFILES "/" + name + ".yaml";
  command->add_option("--profile", options.file, "YAML, as in bench/profiles");
  command->add_option("--nodes", options.nodes)->check(CLI::Range(1, 200'000));
  command->add_option("--gpus-per-node", options.gpus_per_node)->check(CLI::Range(1, 16));
}

CLI::App* AddClaims(CLI::App& app, bench::ClaimsOptions& options) {
  CLI::App* command = app.add_subcommand("claims", "latency of filter for pods with claims (DRA)");
  AddProfile(command, "claims", options.profile);
  command->add_option("--fill", options.profile.fill, "share of all GPUs in use")
      ->check(CLI::Range(0.0, 0.95));
  command->add_option("--pods", options.pods, "measured")->check(CLI::Range(4, 1'000'000));
  command->add_option("--seeds", options.seed);
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddCompare(CLI::App& app, bench::CompareOptions& options) {
  CLI::App* command = app.add_subcommand("compare", "a result beside what was measured before");
  command->add_option("--baseline", options.baseline, "YAML, as in bench/baselines")->required();
  command->add_option("result", options.result, "JSON, as --out writes it")->required();
  return command;
}

CLI::App* AddCost(CLI::App& app, bench::CostOptions& options) {
  options.offers = TRANCHE_BENCH_PROFILES "/cost-offers.csv";
  CLI::App* command = app.add_subcommand(
      "cost", "money for an hour of work on rented machines, beside other policies");
  command->add_option("--offers", options.offers,
                      "CSV: cloud,instance_type,model,gpus,cpu_milli,capacity,per_hour");
  command->add_option("--openb", options.openb, "CSV: tasks of the OpenB trace, with times");
  command->add_option("--jobs", options.jobs, "CSV: vc,job,submit_s,gpus,duration_s");
  command->add_option("--tenants", options.tenants, "CSV: vc,nodes");
  command->add_option("--synthetic-tasks", options.synthetic, "where no trace is given")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--cloud", options.clouds, "of the offers; all, each by itself")
      ->delimiter(',');
  command
      ->add_option("--policy", options.policies,
                   "any of cheapest-first,cheapest-machine,best-fit,tranche-no-money,tranche,"
                   "tranche-declared")
      ->delimiter(',');
  command->add_option("--money", options.money, "placement.money; Auto where it is not given")
      ->check(CLI::Range(0, kMostMoneyRate));
  command->add_option("--boot", options.rules.boot, "seconds")->check(CLI::Range(0, 86'400));
  command->add_option("--idle", options.rules.idle, "seconds until a machine is given back")
      ->check(CLI::Range(0, 86'400));
  command->add_option("--checkpoint", options.rules.checkpoint, "seconds of work between two")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--spot-hours", options.rules.mean_spot_hours,
                   "mean life of a spot machine, exponential")
      ->check(CLI::Range(0.1, 100'000.0));
  command->add_option("--seeds", options.seeds, "\"42..51\", \"1,5,7..9\"");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddDecide(CLI::App& app, bench::DecideOptions& options) {
  options.server = Server();
  CLI::App* command =
      app.add_subcommand("decide", "latency of filter + prioritize over HTTP, with its floor");
  AddProfile(command, "decide", options.profile);
  command->add_option("--fill", options.profile.fill, "share of all GPUs in use")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--pods-per-node", options.profile.pods_per_node)->check(CLI::Range(1, 64));
  command->add_option("--rate", options.rate, "decisions per second")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--seconds", options.seconds)->check(CLI::Range(1, 600));
  command->add_option("--seeds", options.seed);
  command->add_option("--server", options.server, "the tranche program");
  command->add_flag(
      "--quota", options.quota,
      "compare: without quota, and with the profile's teams, their quotas and budgets");
  command->add_option("--beside", options.beside,
                      "compare: another tranche program, such as an older build");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddFill(CLI::App& app, bench::FillOptions& options) {
  options.server = Server();
  CLI::App* command =
      app.add_subcommand("fill", "how full a cluster gets, beside the published policies");
  command->add_option("--nodes", options.nodes, "CSV: cpu_milli,memory_mib,gpu,model")->required();
  command
      ->add_option("--pods", options.pods,
                   "CSV, one a variant: cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]")
      ->delimiter(',')
      ->required();
  command->add_option("--tune", options.tune, "what is asked for, in clusters")
      ->check(CLI::Range(0.01, 10.0));
  command
      ->add_option("--policy", options.policies,
                   "any of random,dotprod,clustering,packing,bestfit,fgd,tranche")
      ->delimiter(',');
  command->add_option("--seeds", options.seeds, "\"42..51\", \"1,5,7..9\"");
  command->add_flag("--protocol", options.protocol,
                    "also over HTTP, with a stub of kube-scheduler's selection");
  command
      ->add_option("--sample", options.samples,
                   "the same where the stub looks at so many percent of the nodes; 0: as "
                   "kube-scheduler does by default")
      ->delimiter(',')
      ->check(CLI::Range(0, 100));
  command->add_option("--prices", options.prices,
                      "CSV: model,per_gpu_hour; adds tranche-money, whose GPUPrices they are");
  command->add_option("--money", options.money, "its placement.money; Auto where it is not given")
      ->check(CLI::Range(0, kMostMoneyRate));
  command
      ->add_option("--fleet", options.fleet, "nodes: the first of the file, or all again and again")
      ->check(CLI::Range(1, 100'000));
  command->add_flag("--churn", options.churn, "tasks come at random and leave again");
  command->add_option("--load", options.loads, "of churn, in clusters")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 10.0));
  command->add_option("--jobs", options.jobs, "runs at a time; 0: one a core")
      ->check(CLI::Range(0, 256));
  command->add_option("--server", options.server, "the tranche program");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddForecast(CLI::App& app, bench::ForecastOptions& options) {
  CLI::App* command = app.add_subcommand("forecast", "expected starts against what then happened");
  CLI::Option* jobs =
      command->add_option("--jobs", options.jobs, "CSV: vc,job,submit_s,gpus,duration_s");
  command->add_option("--tenants", options.tenants, "CSV: vc,nodes")->needs(jobs);
  jobs->needs(command->get_option("--tenants"));
  command->add_option("--most-jobs", options.most_jobs, "of the file, the first ones")
      ->check(CLI::Range(10, 10'000'000));
  command->add_option("--synthetic-jobs", options.synthetic_jobs)->check(CLI::Range(10, 100'000));
  command->add_option("--every-hours", options.every_hours, "between two forecasts")
      ->check(CLI::Range(1, 1'000));
  command->add_option("--rehearsals", options.most_rehearsals)->check(CLI::Range(1, 1'000));
  command->add_option("--fleet", options.fleet_nodes, "time one forecast of so many nodes")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--seeds", options.seed);
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddLedger(CLI::App& app, bench::LedgerOptions& options) {
  CLI::App* command =
      app.add_subcommand("ledger", "writing, opening and asking a ledger of one year");
  command->add_option("--entries", options.entries)->check(CLI::Range(3, 100'000'000));
  command->add_option("--seconds", options.seconds, "write no longer than this; 0: to the end")
      ->check(CLI::Range(0, 3'600));
  command->add_option("--batch", options.batch, "events a commit")->check(CLI::Range(1, 20'000));
  command->add_option("--folder", options.folder, "where the file goes for the time being");
  command->add_flag("--keep", options.keep, "leave the file");
  command->add_flag("--verify", options.verify, "check the whole file at the end");
  command->add_option("--seeds", options.seed);
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddTenants(CLI::App& app, bench::TenantsOptions& options) {
  CLI::App* command =
      app.add_subcommand("tenants", "waiting and lost work of tenants that share a cluster");
  command->add_option("--jobs", options.jobs, "CSV: vc,job,submit_s,gpus,duration_s")->required();
  command->add_option("--tenants", options.tenants, "CSV: vc,nodes")->required();
  command
      ->add_option("--mode", options.modes, "any of static,shared,borrow,reclaim-at-once,reclaim")
      ->delimiter(',');
  command->add_option("--split", options.splits, "seeds: the jobs are those of drawn tenants")
      ->delimiter(',');
  command->add_option("--window-hours", options.window_hours, "utilisation is told of it")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddPreempt(CLI::App& app, bench::PreemptOptions& options) {
  CLI::App* command =
      app.add_subcommand("preempt", "latency of the preemption planner, with its floor");
  AddProfile(command, "preempt", options.profile);
  command->add_option("--pods", options.profile.pods, "running; they fill every GPU")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--seconds", options.seconds)->check(CLI::Range(1, 3'600));
  command->add_option("--turns", options.turns, "waiting pods, instead of seconds")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--seeds", options.seed);
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddMig(CLI::App& app, bench::MigOptions& options) {
  CLI::App* command =
      app.add_subcommand("mig", "MIG profiles that come and go, beside the published policies");
  command->add_option("--gpus", options.gpus)->check(CLI::Range(1, 10'000));
  command->add_option("--mix", options.mixes,
                      "uniform, small, big or weights of 7g,4g,3g,2g,1g.20gb,1g.10gb; repeatable");
  command->add_option("--load", options.loads, "arriving work by capacity")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 10.0));
  command->add_option("--policy", options.policies)->delimiter(',');
  command->add_option("--seeds", options.seeds, "first..last");
  command->add_flag("--known,!--learned", options.known,
                    "tranche is told the mix instead of learning it");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddGang(CLI::App& app, bench::GangOptions& options) {
  CLI::App* command =
      app.add_subcommand("gang", "gangs in a tree of zones, blocks and racks that others use too");
  command->add_option("--zones", options.tree.zones)->check(CLI::Range(1, 64));
  command->add_option("--blocks", options.tree.blocks, "of a zone")->check(CLI::Range(1, 64));
  command->add_option("--racks", options.tree.racks, "of a block")->check(CLI::Range(1, 64));
  command->add_option("--nodes", options.tree.nodes, "of a rack")->check(CLI::Range(1, 64));
  command->add_option("--background", options.background, "share of all GPUs that others hold")
      ->check(CLI::Range(0.0, 0.99));
  command->add_option("--load", options.load, "members that run at a time, by free places")
      ->check(CLI::Range(0.01, 10.0));
  command->add_option("--gangs", options.gangs, "that arrive in a run")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--scene", options.scenes,
                   "how the others lie (empty, random, packed) and GPUs of a member: random-4")
      ->delimiter(',');
  command->add_option("--policy", options.policies, "any of random,binpack,first-fit,tranche")
      ->delimiter(',');
  command->add_option("--seeds", options.seeds, "first..last");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddRing(CLI::App& app, bench::RingOptions& options) {
  CLI::App* command = app.add_subcommand(
      "ring", "which GPUs of one machine jobs get, and what their rings are worth");
  command->add_option("--matrix", options.matrices, "CSV files: bandwidths in GB/s, 10 is PCIe")
      ->delimiter(',')
      ->required();
  command
      ->add_option("--policy", options.policies,
                   "any of baseline,topoaware,greedy,preserve,tranche")
      ->delimiter(',');
  command->add_option("--seeds", options.seeds, "first..last");
  command->add_option("--jobs", options.jobs, "of a run")->check(CLI::Range(1, 1'000'000));
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddReplay(CLI::App& app, bench::ReplayBenchOptions& options) {
  CLI::App* command = app.add_subcommand(
      "replay", "what recording costs, and how fast a recorded past is lived again");
  command->add_option("--nodes", options.nodes)->check(CLI::Range(1, 100'000));
  command->add_option("--pods", options.pods)->check(CLI::Range(1, 10'000'000));
  command->add_option("--days", options.days)->check(CLI::Range(1, 400));
  command->add_option("--fill", options.fill)->check(CLI::Range(0.01, 2.0));
  command->add_option("--folder", options.folder, "where the file goes for the time being");
  command->add_flag("--keep", options.keep, "leave the file");
  command->add_option("--seeds", options.seed);
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddRestart(CLI::App& app, bench::RestartOptions& options) {
  options.server = Server();
  CLI::App* command =
      app.add_subcommand("restart", "a start with a ledger of many pods that ended not long ago");
  command->add_option("--ended", options.ended, "pods")->check(CLI::Range(1, 10'000'000));
  command->add_option("--folder", options.folder, "where the files go for the time being");
  command->add_flag("--keep", options.keep, "leave the files");
  command->add_flag("--bounds,!--no-bounds", options.bounds,
                    "exit status 1 when it takes long or much memory");
  command->add_option("--seeds", options.seed);
  command->add_option("--server", options.server, "the tranche program");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

CLI::App* AddStorm(CLI::App& app, bench::StormOptions& options) {
  CLI::App* command = app.add_subcommand(
      "storm", "how long one caller keeps all others waiting, in situations made to hurt");
  AddProfile(command, "storm", options.profile);
  command->add_option("--scale", options.scale, "of what scenes bring; the fleet is --nodes")
      ->check(CLI::Range(0.0001, 10.0));
  command->add_option("--scene", options.scenes, "these alone, and quiet")->delimiter(',');
  command->add_option("--calls", options.calls, "of filter, a scene")
      ->check(CLI::Range(10, 100'000));
  command->add_flag("--bounds,!--no-bounds", options.bounds,
                    "exit status 1 when filter is slowed down or a hold is long");
  command->add_flag("--callers", options.callers, "print who held the engine how long");
  command->add_option("--out", options.out, "JSON file to write");
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of the Tranche scheduler extender");
  app.require_subcommand(1);
  bench::ClaimsOptions claims;
  const CLI::App* claims_command = AddClaims(app, claims);
  bench::CompareOptions compare;
  const CLI::App* compare_command = AddCompare(app, compare);
  bench::CostOptions cost;
  const CLI::App* cost_command = AddCost(app, cost);
  bench::DecideOptions decide;
  const CLI::App* decide_command = AddDecide(app, decide);
  bench::FillOptions fill;
  const CLI::App* fill_command = AddFill(app, fill);
  bench::LedgerOptions ledger;
  const CLI::App* ledger_command = AddLedger(app, ledger);
  bench::TenantsOptions tenants;
  const CLI::App* tenants_command = AddTenants(app, tenants);
  bench::MigOptions mig;
  const CLI::App* mig_command = AddMig(app, mig);
  bench::ForecastOptions forecast;
  const CLI::App* forecast_command = AddForecast(app, forecast);
  bench::GangOptions gang;
  const CLI::App* gang_command = AddGang(app, gang);
  bench::PreemptOptions preempt;
  const CLI::App* preempt_command = AddPreempt(app, preempt);
  bench::ReplayBenchOptions replay;
  const CLI::App* replay_command = AddReplay(app, replay);
  bench::RestartOptions restart;
  const CLI::App* restart_command = AddRestart(app, restart);
  bench::RingOptions ring;
  const CLI::App* ring_command = AddRing(app, ring);
  bench::StormOptions storm;
  const CLI::App* storm_command = AddStorm(app, storm);
  uint16_t floor_port = 0;
  CLI::App* floor = app.add_subcommand("floor", "the bare server decide measures beside Tranche");
  floor->add_option("--port", floor_port)->required();

  CLI11_PARSE(app, argc, argv);
  if (claims_command->parsed()) return Report(bench::RunClaims(claims));
  if (compare_command->parsed()) {
    const absl::StatusOr<bool> agrees = bench::Compare(compare);
    return agrees.ok() && !*agrees ? 1 : Report(agrees.status());
  }
  if (cost_command->parsed()) return Report(bench::RunCost(cost));
  if (decide_command->parsed()) return Report(bench::RunDecide(decide));
  if (fill_command->parsed()) return Report(bench::RunFill(fill));
  if (ledger_command->parsed()) return Report(bench::RunLedger(ledger));
  if (tenants_command->parsed()) return Report(bench::RunTenants(tenants));
  if (mig_command->parsed()) return Report(bench::RunMig(mig));
  if (forecast_command->parsed()) return Report(bench::RunForecast(forecast));
  if (gang_command->parsed()) return Report(bench::RunGang(gang));
  if (preempt_command->parsed()) return Report(bench::RunPreempt(preempt));
  if (replay_command->parsed()) return Report(bench::RunReplay(replay));
  if (restart_command->parsed()) {
    const absl::StatusOr<bool> kept = bench::RunRestart(restart);
    return kept.ok() && !*kept ? 1 : Report(kept.status());
  }
  if (ring_command->parsed()) return Report(bench::RunRing(ring));
  if (storm_command->parsed()) {
    const absl::StatusOr<bool> kept = bench::RunStorm(storm);
    return kept.ok() && !*kept ? 1 : Report(kept.status());
  }
  return Report(bench::ServeFloor(floor_port));
}
