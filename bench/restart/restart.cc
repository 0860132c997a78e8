#include "bench/restart/restart.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "bench/http/client.h"
#include "bench/http/process.h"
#include "bench/report/report.h"
#include "bench/restart/past.h"
#include "topology/base/status.h"

namespace tranche::bench {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr double kMostSeconds = 5;
constexpr double kMostPeak = 1.5;
// What it runs with is looked at when the work of the start is over.
constexpr std::chrono::seconds kSettles{3};

struct Measured {
  double ready_seconds = 0;
  int64_t peak_mib = 0;
  int64_t running_mib = 0;
};

absl::StatusOr<Measured> Restart(const RestartOptions& options, const std::string& folder) {
  const uint16_t port = FreePort();
  const std::string log = folder + "/tranche.log";
  const auto start = SteadyClock::now();
  TRANCHE_ASSIGN_OR_RETURN(
      Process server, Process::Start({options.server, "serve", "--cluster", "embedded", "--ledger",
                                      folder + "/ledger.db", "--objects", folder + "/owners.json",
                                      "--listen", fmt::format("127.0.0.1:{}", port)},
                                     log, /*core=*/-1));
  if (const absl::Status ready = WaitReady(port, server); !ready.ok()) {
    return absl::UnavailableError(
        fmt::format("{} (its log: {})", std::string(ready.message()), log));
  }
  Measured measured;
  measured.ready_seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  measured.peak_mib = server.PeakMib();
  std::this_thread::sleep_for(kSettles);
  measured.running_mib = server.ResidentMib();
  // Not by chance without what was to be read.
  Client client(port);
  TRANCHE_RETURN_IF_ERROR(client.Connect());
  TRANCHE_ASSIGN_OR_RETURN(const std::string_view metrics, client.Get("/metrics"));
  const std::string entries = fmt::format("\ntranche_ledger_last_entry {}", 3 * options.ended);
  if (metrics.find(entries) == std::string_view::npos) {
    return absl::InternalError(
        fmt::format("expected a ledger with {} entries, found another", 3 * options.ended));
  }
  return measured;
}

absl::StatusOr<bool> Measure(const RestartOptions& options, const std::string& folder) {
  std::fprintf(stderr, "writing a ledger of %lld pods that ended\n",
               static_cast<long long>(options.ended));
  TRANCHE_RETURN_IF_ERROR(WritePastLedger({options.ended, options.seed}, folder + "/ledger.db"));
  TRANCHE_RETURN_IF_ERROR(WritePastOwners(folder + "/owners.json"));
  TRANCHE_ASSIGN_OR_RETURN(const Measured measured, Restart(options, folder));
  const double factor = static_cast<double>(measured.peak_mib) /
                        static_cast<double>(std::max<int64_t>(1, measured.running_mib));
  fmt::print(
      "ended {}  ready {:.2f} s  peak {} MiB when ready, {} MiB while it runs: {:.2f} times\n",
      options.ended, measured.ready_seconds, measured.peak_mib, measured.running_mib, factor);
  TRANCHE_RETURN_IF_ERROR(
      WriteReport(fmt::format(R"({{"benchmark":"restart","runs":[{{"endedPods":{},"seeds":[{}],)"
                              R"("readySeconds":{:.3f},"peakRssMiB":{},"runningRssMiB":{}}}]}})",
                              options.ended, options.seed, measured.ready_seconds,
                              measured.peak_mib, measured.running_mib),
                  options.out));
  if (!options.bounds) return true;
  const bool kept = measured.ready_seconds <= kMostSeconds && factor <= kMostPeak;
  if (!kept) {
    fmt::print("expected at most {} s and {} times the memory it runs with\n", kMostSeconds,
               kMostPeak);
  }
  return kept;
}

}  // namespace

absl::StatusOr<bool> RunRestart(const RestartOptions& options) {
  std::string folder =
      ((options.folder.empty() ? fs::temp_directory_path() : fs::path(options.folder)) /
       "tranche-bench-restart-XXXXXX")
          .string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError("expected to make a temporary folder, could not");
  }
  absl::StatusOr<bool> kept = Measure(options, folder);
  std::error_code ignored;
  if (options.keep) {
    fmt::print("files: {}\n", folder);
  } else {
    fs::remove_all(folder, ignored);
  }
  return kept;
}

}  // namespace tranche::bench
