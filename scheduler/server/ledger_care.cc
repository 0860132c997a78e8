#include "scheduler/server/ledger_care.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "scheduler/ledger/backup.h"

namespace tranche {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr milliseconds kFirstRetry{1'000};
constexpr milliseconds kLastRetry{minutes(5)};
// A takeover is left in peace first.
constexpr milliseconds kFirstLook{minutes(1)};
constexpr milliseconds kLookEvery{minutes(5)};
constexpr std::chrono::hours kCopyEvery{24};

Instant MachineTime() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

}  // namespace

LedgerCare::LedgerCare(const ServeConfig& config, ledger::SqliteLedger* book,
                       const std::string& why, LedgerCareHooks hooks)
    : config_(config),
      book_(book),
      hooks_(std::move(hooks)),
      began_(MachineTime()),
      pause_(book == nullptr ? kFirstRetry : kFirstLook) {
  if (book_ == nullptr) own_[LedgerFault::kUnopened] = why;
}

LedgerCare::~LedgerCare() { End(); }

void LedgerCare::Begin() {
  work_ = ledger::StartWork(hooks_.workers, ledger::Work::kCare, [this] { return Step(); });
}

void LedgerCare::End() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  if (!work_) return;
  work_->Wake();
  work_->Join();
}

std::optional<milliseconds> LedgerCare::Step() {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return std::nullopt;
  }
  const bool due = std::exchange(begun_work_, true);
  if (due) pause_ = book_ == nullptr ? TryAgain() : CopyWhenDue();
  return pause_;
}

milliseconds LedgerCare::TryAgain() {
  const absl::Status tried = hooks_.try_again();
  if (!tried.ok()) {
    Set(LedgerFault::kUnopened, std::string(tried.message()));
    // A process that is about to end has it: soon over.
    return absl::IsFailedPrecondition(tried) ? kFirstRetry : std::min(2 * pause_, kLastRetry);
  }
  if (hooks_.restart) {
    hooks_.restart("the ledger can be taken up: starting again with it");
  } else {
    Set(LedgerFault::kUnopened, "it can be taken up by now, which takes a restart");
  }
  return kLastRetry;
}

milliseconds LedgerCare::CopyWhenDue() {
  const Instant now = MachineTime();
  const std::optional<Instant> newest = ledger::NewestBackup(config_.ledger);
  // One of the future was made by a clock that was wrong.
  if (newest && *newest <= now && now - *newest < kCopyEvery) return kLookEvery;
  const absl::StatusOr<std::string> copy = book_->Backup(now);
  Set(LedgerFault::kCopy, copy.ok() ? "" : std::string(copy.status().message()));
  if (copy.ok()) spdlog::info("ledger copied to {}", *copy);
  return kLookEvery;
}

void LedgerCare::Set(LedgerFault fault, const std::string& text) {
  const std::lock_guard lock(mutex_);
  own_.erase(fault);
  if (!text.empty()) own_[fault] = text;
}

LedgerProblems LedgerCare::problems() const {
  LedgerProblems all = book_ == nullptr ? LedgerProblems() : book_->health().problems;
  const std::lock_guard lock(mutex_);
  all.insert(own_.begin(), own_.end());
  return all;
}

void LedgerCare::Tick() {
  LedgerProblems now = problems();
  LedgerProblems before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(told_, now);
  }
  // What is done about it first: whoever reads the log may rely on it.
  const auto untrusted = [](const LedgerProblems& problems) {
    return problems.contains(LedgerFault::kUnopened) || problems.contains(LedgerFault::kFile);
  };
  if (config_.ledger_failure == LedgerFailure::kClosed && untrusted(now) != untrusted(before)) {
    hooks_.close(untrusted(now));
  }
  for (const auto& [fault, text] : now) {
    const auto known = before.find(fault);
    // The size of a log that grows is no news.
    const bool news =
        known == before.end() || (known->second != text && fault != LedgerFault::kLog);
    if (news) spdlog::error("ledger, {}: {}", NameOf(fault), text);
  }
  for (const auto& [fault, text] : before) {
    if (!now.contains(fault)) spdlog::info("ledger, {}: over", NameOf(fault));
  }
}

std::string LedgerCare::Note() const {
  std::string names;
  for (const auto& [fault, text] : problems()) {
    names += (names.empty() ? "" : ", ") + std::string(NameOf(fault));
  }
  return names.empty() ? "" : "the ledger has a problem, see the log: " + names;
}

std::optional<int64_t> LedgerCare::copy_age() const {
  if (book_ == nullptr) return std::nullopt;
  // Without any, what counts is for how long there was none: copies that never succeed age too.
  const Instant newest = ledger::NewestBackup(config_.ledger).value_or(began_);
  const Millis age = std::max(MachineTime() - newest, Millis::zero());
  return std::chrono::duration_cast<std::chrono::seconds>(age).count();
}

}  // namespace tranche
