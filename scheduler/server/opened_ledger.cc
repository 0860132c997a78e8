#include "scheduler/server/opened_ledger.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

namespace tranche {
namespace {

// A ledger whose newest moment is later than this was written by a clock that was wrong, or is read
// by one.
constexpr Millis kMostAhead{std::chrono::hours(24)};

Instant WallNow() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

// A disk that hangs keeps whoever waits for it for as long as it likes. The opening goes on by
// itself then, and what comes of it is closed again.
absl::StatusOr<std::unique_ptr<ledger::SqliteLedger>> OpenInTime(
    ledger::Options options, std::chrono::milliseconds patience) {
  if (options.workers) return ledger::SqliteLedger::Open(options);
  const std::string path = options.path;
  std::packaged_task<absl::StatusOr<std::unique_ptr<ledger::SqliteLedger>>()> opening(
      [options = std::move(options)] { return ledger::SqliteLedger::Open(options); });
  auto opened = opening.get_future();
  std::thread(std::move(opening)).detach();
  if (opened.wait_for(patience) == std::future_status::ready) return opened.get();
  return absl::UnavailableError(
      fmt::format("expected {} to be open within {} ms, found it is not", path, patience.count()));
}

}  // namespace

absl::StatusOr<OpenedLedger> OpenLedger(const ServeConfig& config, int64_t epoch, bool exact_epoch,
                                        std::function<bool()> may_write, IfUntrusted untrusted,
                                        LedgerWorks works) {
  OpenedLedger opened;
  if (config.ledger.empty()) return opened;
  ledger::Options options;
  options.path = config.ledger;
  options.epoch = epoch;
  options.continue_epoch = !exact_epoch;
  options.may_write = std::move(may_write);
  options.workers = std::move(works.workers);
  options.on_disk = std::move(works.on_disk);
  options.queue_limit = works.queue_limit.value_or(options.queue_limit);
  options.now = WallNow();
  options.check_every = config.ledger_check;
  options.past_kept = std::chrono::hours(24 * config.past_days);
  options.bill_labels = config.bill_labels;
  options.times = config.ledger_times;
  options.past = ledger::PastForm::kShort;
  options.accept_rollback = config.ledger_accept_rollback;
  options.network = config.ledger_network;
  // Time moved by hand may go anywhere.
  if (!config.manual_clock) options.most_ahead = kMostAhead;
  absl::StatusOr<std::unique_ptr<ledger::SqliteLedger>> ledger =
      OpenInTime(std::move(options), config.ledger_patience);
  if (ledger.ok()) {
    opened.ledger = *std::move(ledger);
    return opened;
  }
  const absl::Status& why = ledger.status();
  // What no later try can mend, and what somebody mends on purpose: said by not starting.
  if (untrusted == IfUntrusted::kFail || absl::IsInvalidArgument(why) || absl::IsNotFound(why) ||
      absl::IsFailedPrecondition(why)) {
    return why;
  }
  opened.untrusted = std::string(why.message());
  return opened;
}

}  // namespace tranche
