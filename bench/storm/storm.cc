#include "bench/storm/storm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "bench/report/report.h"
#include "bench/storm/scenes.h"
#include "scheduler/host/free_memory.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr std::chrono::milliseconds kStepGap{2};
constexpr std::chrono::milliseconds kTurnGap{250};
constexpr std::chrono::milliseconds kCallGap{2};
constexpr int kProbes = 50;  // pods asked about in turn

struct Row {
  std::string name;
  int size = 0;
  double p50_us = 0;
  double p99_us = 0;
  double hold_ms = 0;
  std::string caller;  // of the longest hold
  int64_t felt = 0;    // holds over EngineHolds::kFelt, of all but filter
  std::vector<metrics::HoldRow> holds;
  double before_mib = 0;
  double after_mib = 0;
  double ratio() const { return before_mib == 0 ? 0 : after_mib / before_mib; }
};

double ResidentMib() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / 1048576.0;
}

void NoteHolds(const std::vector<metrics::HoldRow>& holds, Row& row) {
  for (const metrics::HoldRow& hold : holds) {
    if (hold.caller == EngineCallerName(EngineCaller::kStart)) continue;
    row.holds.push_back(hold);
    if (hold.caller != EngineCallerName(EngineCaller::kFilter)) row.felt += hold.felt_holds;
    if (hold.longest_seconds * 1e3 <= row.hold_ms) continue;
    row.hold_ms = hold.longest_seconds * 1e3;
    row.caller = hold.caller;
  }
}

// Plays until told to stop, with what the server does by itself between.
void Play(World& world, const StormScene& scene, const std::atomic<bool>& stop) {
  SteadyClock::time_point turn = SteadyClock::now();
  bool more = true;
  for (int step = 0; !stop; ++step) {
    if (more) more = scene.play(world, step);
    if (SteadyClock::now() - turn >= kTurnGap) {
      world.Turn();
      turn = SteadyClock::now();
    }
    std::this_thread::sleep_for(kStepGap);
  }
}

std::vector<double> AskFilter(World& world, int calls) {
  std::vector<double> micros;
  FilterAnswer answer;
  for (int i = 0; i < calls; ++i) {
    const PodRequest probe = StormPod(fmt::format("probe-{}", i % kProbes), i % 7, 1 + i % 2);
    const SteadyClock::time_point begin = SteadyClock::now();
    world.host().With(EngineCaller::kFilter, [&](Engine& engine, Instant now) {
      engine.Filter(probe, world.gpu_nodes(), now, answer);
    });
    micros.push_back(Micros(SteadyClock::now() - begin).count());
    std::this_thread::sleep_for(kCallGap);
  }
  return micros;
}

Row RunScene(const Profile& profile, const StormScene& scene, int calls) {
  Row row;
  row.name = scene.name;
  row.size = scene.size;
  const auto world = std::make_unique<World>(profile);
  scene.prepare(*world);
  world->Turn();
  AskFilter(*world, kProbes);
  world->Settle();
  // As the server does every minute, then and now.
  ReturnFreePages();
  row.before_mib = ResidentMib();
  std::atomic<bool> stop = false;
  std::thread player([&] { Play(*world, scene, stop); });
  const std::vector<double> micros = AskFilter(*world, calls);
  stop = true;
  player.join();
  row.p50_us = Quantile(micros, 0.5);
  row.p99_us = Quantile(micros, 0.99);
  NoteHolds(world->host().Holds(), row);
  world->End();
  ReturnFreePages();
  row.after_mib = ResidentMib();
  return row;
}

void PrintCallers(const Row& row) {
  for (const metrics::HoldRow& hold : row.holds) {
    std::printf("  %-12s %8lld holds, %lld felt, %.2f ms the longest, %.0f ms all\n",
                hold.caller.c_str(), static_cast<long long>(hold.holds),
                static_cast<long long>(hold.felt_holds), hold.longest_seconds * 1e3,
                hold.total_seconds * 1e3);
  }
}

bool IsGood(const Row& row, double quiet_us) {
  return row.hold_ms <= kMostHoldMs && row.p99_us <= kMostSlowdown * quiet_us &&
         row.ratio() <= kMostMemory;
}

void Print(const Row& row, double quiet_us) {
  std::printf("%-14s %8d %8.0f %8.0f %6.1f %8.1f %-12s %8lld %6.0f %6.2f%s\n", row.name.c_str(),
              row.size, row.p50_us, row.p99_us, row.p99_us / quiet_us, row.hold_ms,
              row.caller.c_str(), static_cast<long long>(row.felt), row.before_mib, row.ratio(),
              IsGood(row, quiet_us) ? "" : "  over");
}

std::string JsonOf(const Row& row, double quiet_us) {
  return fmt::format(
      R"({{"storm":"{}","size":{},"quietP50Us":{:.1f},"filterP50Us":{:.1f},"filterP99Us":{:.1f},)"
      R"("longestHoldUs":{:.0f},"longestHoldCaller":"{}","rssRatio":{:.3f}}})",
      row.name, row.size, quiet_us, row.p50_us, row.p99_us, row.hold_ms * 1e3, row.caller,
      row.ratio());
}

}  // namespace

absl::StatusOr<bool> RunStorm(const StormOptions& options) {
  const absl::StatusOr<Profile> profile = ReadProfile(options.profile);
  if (!profile.ok()) return profile.status();
  SettleLargeBlocks();
  std::printf("%d nodes of %d GPUs and %d without\n\n", profile->nodes, profile->gpus_per_node,
              2 * profile->nodes);
  std::printf("%-14s %8s %8s %8s %6s %8s %-12s %8s %6s %6s\n", "storm", "size", "p50 us", "p99 us",
              "x p50", "hold ms", "by", ">0.3 ms", "MiB", "after");
  double quiet_us = 0;
  bool all_good = true;
  std::string runs;
  for (const StormScene& scene : StormScenes(options.scale)) {
    const bool asked = options.scenes.empty() || scene.name == "quiet" ||
                       std::ranges::find(options.scenes, scene.name) != options.scenes.end();
    if (!asked) continue;
    const Row row = RunScene(*profile, scene, options.calls);
    if (quiet_us == 0) quiet_us = row.p50_us;
    all_good &= IsGood(row, quiet_us);
    Print(row, quiet_us);
    if (options.callers) PrintCallers(row);
    runs += (runs.empty() ? "" : ",") + JsonOf(row, quiet_us);
  }
  const absl::Status written = WriteReport(
      fmt::format(R"({{"benchmark":"storm","nodes":{},"runs":[{}]}})", profile->nodes, runs),
      options.out);
  if (!written.ok()) return written;
  return all_good || !options.bounds;
}

}  // namespace tranche::bench
