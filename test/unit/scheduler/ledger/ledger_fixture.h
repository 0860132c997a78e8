// A ledger in a folder of its own, events with few words, and SQL from outside.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/ledger/reader.h"
#include "scheduler/ledger/sqlite_ledger.h"

namespace tranche::ledger {

inline constexpr int64_t kGpu = kQuantaPerGpu;
// 2026-03-01T10:00:00Z, and minutes after it.
inline constexpr Instant kTen{Millis{1'772'359'200'000}};
inline Instant Minute(int64_t minutes) { return kTen + std::chrono::minutes(minutes); }

inline MeterEvent Event(MeterKind kind, const std::string& uid, Instant at, int interval = 0) {
  MeterEvent event;
  event.kind = kind;
  event.at = at;
  event.uid = PodUid(uid);
  event.interval = interval;
  event.pod = {"ns-a", "pod-" + uid};
  event.node = NodeName("node-1");
  event.leaf = "team-a";
  event.workload_class = "training";
  if (kind != MeterKind::kRunning) event.parts = {{"h200", {kGpu, kGpu}}};
  if (kind == MeterKind::kOpen) event.devices = R"([{"name":"main"}])";
  return event;
}
inline MeterEvent Open(const std::string& uid, Instant at, int interval = 0) {
  return Event(MeterKind::kOpen, uid, at, interval);
}
inline MeterEvent Running(const std::string& uid, Instant at) {
  return Event(MeterKind::kRunning, uid, at);
}
inline MeterEvent Close(const std::string& uid, Instant at, int interval = 0) {
  return Event(MeterKind::kClose, uid, at, interval);
}
inline MeterEvent Void(const std::string& uid, Instant at) {
  return Event(MeterKind::kVoid, uid, at);
}
inline MeterEvent Refund(const std::string& uid, Instant at, Instant until,
                         const std::string& note = "NodeLost") {
  MeterEvent event = Event(MeterKind::kRefund, uid, at);
  event.until = until;
  event.note = note;
  return event;
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    // In memory where that is possible: these tests sync often and measure nothing.
    const std::filesystem::path memory = "/dev/shm";
    std::string pattern =
        ((std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path()) /
         "ledgerXXXXXX")
            .string();
    folder_ = mkdtemp(pattern.data());
    options_.path = folder_ + "/ledger.db";
    options_.now = kTen;
    options_.group_delay = std::chrono::milliseconds(0);
  }
  ~LedgerTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SqliteLedger> MustOpen() {
    auto ledger = SqliteLedger::Open(options_);
    EXPECT_TRUE(ledger.ok()) << ledger.status();
    return ledger.ok() ? std::move(*ledger) : nullptr;
  }
  // The text of the error that opening gives.
  absl::Status OpenError() { return SqliteLedger::Open(options_).status(); }

  static bool Committed(Ledger& ledger) {
    std::mutex mutex;
    std::condition_variable changed;
    int answer = -1;
    ledger.WhenCommitted([&](bool done) {
      const std::lock_guard lock(mutex);
      answer = done ? 1 : 0;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answer >= 0; });
    return answer == 1;
  }
  static void Write(Ledger& ledger, std::vector<MeterEvent> events,
                    std::vector<WindowClosing> closings = {}) {
    ledger.Append(std::move(events), std::move(closings));
    EXPECT_TRUE(Committed(ledger)) << ledger.health().problem;
  }
  // Writes and closes.
  void WriteFile(std::vector<MeterEvent> events, std::vector<WindowClosing> closings = {}) {
    const auto ledger = MustOpen();
    ASSERT_NE(ledger, nullptr);
    Write(*ledger, std::move(events), std::move(closings));
  }

  // Runs SQL on the file, as somebody with an editor would; returns the last row's first column.
  std::string Sql(const std::string& sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(options_.path.c_str(), &database), SQLITE_OK);
    // The ledger may be at work beside us.
    sqlite3_busy_timeout(database, 5'000);
    std::string last;
    char* error = nullptr;
    sqlite3_exec(
        database, sql.c_str(),
        [](void* out, int, char** values, char**) {
          *static_cast<std::string*>(out) = values[0] == nullptr ? "" : values[0];
          return 0;
        },
        &last, &error);
    if (error != nullptr) last = error;
    sqlite3_free(error);
    sqlite3_close(database);
    return last;
  }

  std::vector<std::string> Faults() {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return {"not opened"};
    const auto report = reader->Verify([](int64_t, int64_t) {});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->faults : std::vector<std::string>{"not verified"};
  }
  // "leaf model hours, ..." of a span.
  std::string Report(Instant now, std::optional<Instant> from = {},
                     std::optional<Instant> to = {}) {
    auto reader = Reader::Open(options_.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return "not opened";
    const auto rows = reader->Report({from, to, std::nullopt, now});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::string text;
    for (const ReportRow& row : *rows) {
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", row.leaf, row.model,
                          FormatGpuHours(Larger(row.time)));
    }
    return text;
  }

  std::string folder_;
  Options options_;
};

}  // namespace tranche::ledger
