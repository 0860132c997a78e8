#include "scheduler/ledger/watch.h"

#include <chrono>
#include <utility>

#include "scheduler/ledger/integrity.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/sqlite.h"

namespace tranche::ledger {
namespace {

constexpr std::chrono::hours kEvery{24};

}  // namespace

IntegrityWatch::IntegrityWatch(std::string path, bool at_once,
                               std::function<void(std::string)> report)
    : path_(std::move(path)), at_once_(at_once), report_(std::move(report)) {
  thread_ = std::thread([this] { Loop(); });
}

IntegrityWatch::~IntegrityWatch() { Stop(); }

void IntegrityWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void IntegrityWatch::Loop() {
  if (at_once_) Check();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kEvery, [this] { return stop_; })) return;
    }
    Check();
  }
}

void IntegrityWatch::Check() {
  absl::StatusOr<Database> database = Database::Open(path_, Access::kRead);
  absl::Status status = database.ok() ? ApplyReadSettings(*database) : database.status();
  if (status.ok()) {
    const auto faults = CheckIntegrity(*database, CheckDepth::kFull, [this] { return Stopping(); });
    status = faults.status();
    if (faults.ok() && !faults->empty()) report_(faults->front());
  }
  if (!status.ok()) report_(std::string(status.message()));
}

bool IntegrityWatch::Stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

}  // namespace tranche::ledger
