// tranche-node --config FILE: the node agent. --help and --version say what it is.
#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#include "scheduler/agent/agent.h"
#include "scheduler/agent/config.h"
#include "scheduler/kube/transport/credentials.h"

namespace {

using tranche::agent::Agent;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr std::chrono::seconds kStep{1};
// What a list of pods took goes back to the system at once.
constexpr int kMappedFrom = 128 * 1024;

volatile std::sig_atomic_t ended = 0;

int Fail(const absl::Status& status, int code) {
  fmt::print(stderr, "tranche-node: {}\n", std::string(status.message()));
  return code;
}

int Run(const tranche::agent::Config& config) {
  auto credentials = config.kubeconfig.empty() ? tranche::kube::InClusterCredentials()
                                               : tranche::kube::LoadKubeconfig(config.kubeconfig);
  if (!credentials.ok()) return Fail(credentials.status(), kFailed);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("tranche-node"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  Agent agent(config, *std::move(credentials));
  std::string told;
  while (ended == 0) {
    const absl::Status status = agent.Step(std::chrono::steady_clock::now());
    const std::string problem(status.message());
    if (problem != told && !problem.empty()) spdlog::warn("{}", problem);
    told = problem;
    std::this_thread::sleep_for(kStep);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc == 2 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    fmt::print(
        "Gives each container the GPUs, parts of GPUs and MIG instances of its pod's record:\n"
        "a kubelet device plugin, run on nodes with the label tranche.dev/agent: \"true\".\n\n"
        "Usage: tranche-node [OPTIONS]\n\n"
        "Options:\n"
        "  -h,--help          print this help message and exit\n"
        "  --version          print the version and exit\n"
        "  --config FILE REQUIRED\n"
        "                     YAML file with the keys below\n\n"
        "Keys of the file, and what holds without them:\n{}",
        tranche::agent::ConfigHelp());
    return 0;
  }
  if (first == "--version") {
    fmt::print("tranche-node {}\n", TRANCHE_VERSION);
    return 0;
  }
  if (argc != 3 || std::string_view(argv[1]) != "--config") {
    fmt::print(stderr, "tranche-node: expected --config FILE\n");
    return kUsage;
  }
  const auto config = tranche::agent::LoadConfig(argv[2]);
  if (!config.ok()) return Fail(config.status(), kUsage);
  mallopt(M_MMAP_THRESHOLD, kMappedFrom);
  // Its many threads do little: pieces of memory of their own for each would cost megabytes.
  mallopt(M_ARENA_MAX, 1);
  std::signal(SIGTERM, [](int) { ended = 1; });
  std::signal(SIGINT, [](int) { ended = 1; });
  return Run(*config);
}
