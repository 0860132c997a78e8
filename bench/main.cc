// tranche-bench: one subcommand a benchmark.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "bench/decide/decide.h"
#include "bench/ledger/ledger.h"

namespace {

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "tranche-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using tranche::bench::DecideOptions;
  CLI::App app("Benchmarks of the Tranche scheduler extender");
  app.require_subcommand(1);

  DecideOptions decide;
  decide.server =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tranche").string();
  CLI::App* decide_command =
      app.add_subcommand("decide", "latency of filter + prioritize over HTTP, with its floor");
  decide_command->add_option("--nodes", decide.fleet.nodes)->check(CLI::Range(1, 200'000));
  decide_command->add_option("--gpus-per-node", decide.fleet.gpus_per_node)
      ->check(CLI::Range(1, 16));
  decide_command->add_option("--fill", decide.fleet.fill, "share of all GPUs in use")
      ->check(CLI::Range(0.0, 1.0));
  decide_command->add_option("--pods-per-node", decide.fleet.pods_per_node)
      ->check(CLI::Range(1, 64));
  decide_command->add_option("--rate", decide.rate, "decisions per second")
      ->check(CLI::Range(1, 100'000));
  decide_command->add_option("--seconds", decide.seconds)->check(CLI::Range(1, 600));
  decide_command->add_option("--seeds", decide.fleet.seed);
  decide_command->add_option("--server", decide.server, "the tranche program");
  decide_command->add_flag("--quota", decide.quota,
                           "compare: without quota, and with 40 teams, their quotas and budgets");
  decide_command->add_option("--out", decide.out, "JSON file to write");

  tranche::bench::LedgerOptions ledger;
  CLI::App* ledger_command =
      app.add_subcommand("ledger", "writing, opening and asking a ledger of one year");
  ledger_command->add_option("--entries", ledger.entries)->check(CLI::Range(3, 100'000'000));
  ledger_command
      ->add_option("--seconds", ledger.seconds, "write no longer than this; 0: to the end")
      ->check(CLI::Range(0, 3'600));
  ledger_command->add_option("--batch", ledger.batch, "events a commit")
      ->check(CLI::Range(1, 20'000));
  ledger_command->add_option("--folder", ledger.folder, "where the file goes for the time being");
  ledger_command->add_flag("--keep", ledger.keep, "leave the file");
  ledger_command->add_flag("--verify", ledger.verify, "check the whole file at the end");
  ledger_command->add_option("--seeds", ledger.seed);
  ledger_command->add_option("--out", ledger.out, "JSON file to write");

  uint16_t floor_port = 0;
  CLI::App* floor = app.add_subcommand("floor", "the bare server decide measures beside Tranche");
  floor->add_option("--port", floor_port)->required();

  CLI11_PARSE(app, argc, argv);
  if (decide_command->parsed()) return Report(tranche::bench::RunDecide(decide));
  if (ledger_command->parsed()) return Report(tranche::bench::RunLedger(ledger));
  return Report(tranche::bench::ServeFloor(floor_port));
}
