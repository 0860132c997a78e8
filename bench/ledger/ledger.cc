#include "bench/ledger/ledger.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/ledger/committed.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/ledger/sqlite_ledger.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Instant kStart{Millis{1'767'225'600'000}};  // 2026-01-01
constexpr Millis kYear = std::chrono::hours(24 * 365);
constexpr int kEntriesPerPod = 3;
constexpr const char* kModels[] = {"h200", "a100", "l4"};
constexpr const char* kClasses[] = {"inference-prod", "training", "notebook", "scavenger"};

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// One year of pods, in the order things happen.
class Year {
 public:
  explicit Year(const LedgerOptions& options)
      : random_(options.seed),
        step_(kYear / std::max<int64_t>(1, options.entries / kEntriesPerPod)) {}

  MeterEvent Next() {
    if (!ends_.empty() && ends_.begin()->first <= now_) {
      MeterEvent close = ends_.begin()->second;
      close.kind = MeterKind::kClose;
      close.at = ends_.begin()->first;
      ends_.erase(ends_.begin());
      return close;
    }
    if (opened_) {
      opened_ = false;
      MeterEvent running = last_;
      running.kind = MeterKind::kRunning;
      running.at += Millis(3'000);
      running.parts.clear();
      now_ += step_;
      return running;
    }
    last_ = Open();
    opened_ = true;
    ends_.emplace(now_ + Millis(60'000 + static_cast<int64_t>(random_() % 14'400'000)), last_);
    return last_;
  }

 private:
  MeterEvent Open() {
    MeterEvent event;
    event.at = now_;
    event.uid = PodUid(fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", random_() >> 32,
                                   random_() & 0xffff, random_() & 0xfff, random_() & 0xfff,
                                   random_() & 0xffffffffffff));
    const auto team = random_() % 20;
    event.leaf = fmt::format("team-{}", team);
    event.pod = {event.leaf, fmt::format("job-{}", pods_++)};
    event.node = NodeName(fmt::format("gpu-node-{}", random_() % 125));
    event.workload_class = kClasses[random_() % 4];
    const int64_t gpus = random_() % 8 == 0 ? 4 : 1;
    event.parts = {{kModels[team % 3], {gpus * kQuantaPerGpu, gpus * kQuantaPerGpu}}};
    event.devices =
        fmt::format(R"([{{"name":"main","devices":[{{"index":{},"uuid":"GPU-{:016x}","milli":1000,)"
                    R"("mib":143771}}]}}])",
                    random_() % 8, random_());
    return event;
  }

  std::mt19937_64 random_;
  Millis step_;
  Instant now_ = kStart;
  MeterEvent last_;
  bool opened_ = false;
  int64_t pods_ = 0;
  std::multimap<Instant, MeterEvent> ends_;
};

struct Measured {
  double write_seconds = 0;
  int64_t entries = 0;
  int64_t bytes = 0;
  double open_seconds = 0;
  std::size_t history_events = 0;
  double report_seconds = 0;  // the whole file
  double span_seconds = 0;    // from and to inside a day
  double verify_seconds = 0;
  Instant end;
};

absl::Status Write(const LedgerOptions& options, const ledger::Options& file, Measured& measured) {
  const absl::StatusOr<std::unique_ptr<ledger::SqliteLedger>> ledger =
      ledger::SqliteLedger::Open(file);
  if (!ledger.ok()) return ledger.status();
  Year year(options);
  const auto start = SteadyClock::now();
  int64_t appended = 0;
  double generating = 0;
  while (appended < options.entries &&
         (options.seconds == 0 || SecondsSince(start) < options.seconds)) {
    // Far below the queue's limit; the writer always has the next batch waiting.
    const auto before = SteadyClock::now();
    std::vector<std::vector<MeterEvent>> groups(
        static_cast<std::size_t>(std::max(1, 20'000 / options.batch)));
    for (auto& group : groups) {
      for (int i = 0; i < options.batch; ++i) group.push_back(year.Next());
      appended += options.batch;
    }
    measured.end = groups.back().back().at;
    generating += SecondsSince(before);
    for (auto& group : groups) (*ledger)->Append(std::move(group), {});
    if (!Committed(**ledger)) return absl::UnavailableError((*ledger)->health().problem);
  }
  measured.write_seconds = SecondsSince(start) - generating;
  (*ledger)->Heartbeat(measured.end, {});
  measured.entries = (*ledger)->health().last_entry;
  (*ledger)->Close();
  measured.bytes = static_cast<int64_t>(std::filesystem::file_size(file.path));
  return absl::OkStatus();
}

absl::Status OpenAndAsk(const LedgerOptions& options, ledger::Options file, Measured& measured) {
  file.now = measured.end;
  auto start = SteadyClock::now();
  const auto ledger = ledger::SqliteLedger::Open(file);
  if (!ledger.ok()) return ledger.status();
  measured.open_seconds = SecondsSince(start);
  measured.history_events = (*ledger)->history().events.size();

  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(file.path);
  if (!reader.ok()) return reader.status();
  ledger::ReportQuery query;
  query.now = measured.end;
  start = SteadyClock::now();
  if (const auto rows = reader->Report(query); !rows.ok()) return rows.status();
  measured.report_seconds = SecondsSince(start);
  const Millis span = measured.end - kStart;
  query.from = kStart + span / 3 + std::chrono::hours(7);
  query.to = kStart + span / 2 + std::chrono::hours(19);
  start = SteadyClock::now();
  if (const auto rows = reader->Report(query); !rows.ok()) return rows.status();
  measured.span_seconds = SecondsSince(start);
  if (!options.verify) return absl::OkStatus();
  start = SteadyClock::now();
  const auto report = reader->Verify([](int64_t, int64_t) {});
  if (!report.ok()) return report.status();
  measured.verify_seconds = SecondsSince(start);
  return report->faults.empty() ? absl::OkStatus() : absl::DataLossError(report->faults.front());
}

void Print(const LedgerOptions& options, const Measured& measured) {
  const double rate = static_cast<double>(measured.entries) / measured.write_seconds;
  const double mib = static_cast<double>(measured.bytes) / (1 << 20);
  fmt::print(
      "entries {}  batch {}  entries/s {:.0f}  file {:.0f} MiB ({:.0f} bytes an entry)\n"
      "open {:.2f} s ({} events of history)  report: all {:.3f} s, part of days {:.3f} s\n",
      measured.entries, options.batch, rate, mib,
      static_cast<double>(measured.bytes) / static_cast<double>(measured.entries),
      measured.open_seconds, measured.history_events, measured.report_seconds,
      measured.span_seconds);
  if (options.verify) fmt::print("verify {:.1f} s\n", measured.verify_seconds);
  if (options.out.empty()) return;
  std::ofstream(options.out) << fmt::format(
      R"({{"benchmark":"ledger","runs":[{{"policy":"batch-{}","seeds":[{}],"entries":{},)"
      R"("entriesPerSecond":{:.0f},"fileMiB":{:.1f},"openSeconds":{:.3f},"reportSeconds":{:.3f},)"
      R"("reportPartSeconds":{:.3f}}}]}})"
      "\n",
      options.batch, options.seed, measured.entries, rate, mib, measured.open_seconds,
      measured.report_seconds, measured.span_seconds);
}

}  // namespace

absl::Status RunLedger(const LedgerOptions& options) {
  std::error_code ignored;
  const std::filesystem::path folder =
      (options.folder.empty() ? std::filesystem::temp_directory_path()
                              : std::filesystem::path(options.folder)) /
      "tranche-bench-ledger";
  std::filesystem::remove_all(folder, ignored);
  std::filesystem::create_directories(folder, ignored);
  ledger::Options file;
  file.path = (folder / "ledger.db").string();
  file.now = kStart;
  file.group_size = static_cast<std::size_t>(options.batch);
  Measured measured;
  absl::Status status = Write(options, file, measured);
  if (status.ok()) status = OpenAndAsk(options, file, measured);
  if (status.ok()) Print(options, measured);
  if (!options.keep) std::filesystem::remove_all(folder, ignored);
  return status;
}

}  // namespace tranche::bench
