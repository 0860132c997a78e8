#include "scheduler/ledger/integrity.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "scheduler/ledger/schema.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr std::size_t kMostFaults = 20;
constexpr std::chrono::hours kEvery{24};
constexpr int kStepsBetweenQuestions = 20'000;

int Ask(void* stop) { return (*static_cast<const std::function<bool()>*>(stop))() ? 1 : 0; }

// Appends what the pragma says; false when it was stopped.
absl::StatusOr<bool> RunCheck(Database& database, const std::string& pragma,
                              std::vector<std::string>& faults) {
  TRANCHE_ASSIGN_OR_RETURN(Statement rows, database.Prepare("PRAGMA " + pragma));
  while (faults.size() < kMostFaults) {
    const absl::StatusOr<bool> row = rows.Row();
    if (!row.ok()) {
      if (sqlite3_errcode(database.handle()) == SQLITE_INTERRUPT) return false;
      if (!absl::IsDataLoss(row.status())) return row.status();
      faults.push_back(fmt::format("{}: {}", pragma, std::string(row.status().message())));
      return true;
    }
    if (!*row) return true;
    const std::string said(rows.Bytes(0));
    if (pragma == "foreign_key_check") {
      faults.push_back(fmt::format("{}: row {} of {} refers to a missing row of {}", pragma,
                                   rows.Integer(1), said, rows.Bytes(2)));
    } else if (said != "ok") {
      faults.push_back(fmt::format("{}: {}", pragma, said));
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckIntegrity(Database& database, CheckDepth depth,
                                                        const std::function<bool()>& stop) {
  std::vector<std::string> pragmas = {"quick_check"};
  if (depth == CheckDepth::kFull) {
    // Table by table: one read transaction each, so that a writer's checkpoints get through.
    pragmas.clear();
    TRANCHE_ASSIGN_OR_RETURN(
        Statement tables,
        database.Prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"));
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, tables.Row());
      if (!row) break;
      pragmas.push_back(fmt::format("integrity_check('{}')", tables.Bytes(0)));
    }
    pragmas.push_back("foreign_key_check");
  }
  void* const context = const_cast<std::function<bool()>*>(&stop);
  sqlite3_progress_handler(database.handle(), kStepsBetweenQuestions, Ask, context);
  std::vector<std::string> faults;
  absl::Status failed;
  for (const std::string& pragma : pragmas) {
    const absl::StatusOr<bool> finished = RunCheck(database, pragma, faults);
    if (!finished.ok()) failed = finished.status();
    if (!finished.ok() || !*finished) break;
  }
  sqlite3_progress_handler(database.handle(), 0, nullptr, nullptr);
  if (!failed.ok()) return failed;
  return faults;
}

IntegrityWatch::IntegrityWatch(std::string path, bool at_once, const Workers& workers,
                               std::function<void(std::string)> report)
    : path_(std::move(path)), report_(std::move(report)), due_(at_once) {
  work_ = StartWork(workers, Work::kCheck, [this] { return Step(); });
}

IntegrityWatch::~IntegrityWatch() { Stop(); }

void IntegrityWatch::Stop() {
  stop_ = true;
  work_->Wake();
  work_->Join();
}

std::optional<Worker::Rest> IntegrityWatch::Step() {
  if (stop_) return std::nullopt;
  if (std::exchange(due_, true)) Check();
  return kEvery;
}

void IntegrityWatch::Check() {
  absl::StatusOr<Database> database = Database::Open(path_, Access::kRead);
  absl::Status status = database.ok() ? ApplyReadSettings(*database) : database.status();
  if (status.ok()) {
    const auto faults =
        CheckIntegrity(*database, CheckDepth::kFull, [this] { return stop_.load(); });
    status = faults.status();
    if (faults.ok() && !faults->empty()) report_(faults->front());
  }
  if (!status.ok()) report_(std::string(status.message()));
}

}  // namespace tranche::ledger
