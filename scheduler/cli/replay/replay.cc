#include "scheduler/cli/replay/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>
#include <vector>

#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/replay/recorded_work.h"
#include "scheduler/cli/replay/replay_report.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/status.h"

namespace tranche::replay {
namespace {

constexpr std::size_t kMostEdits = 10'000;
constexpr std::chrono::hours kLongest{24 * 400};

// "30d", or as Go writes durations.
std::optional<Millis> ReadSpan(std::string_view text) {
  if (text.ends_with('d')) {
    const std::optional<int64_t> days = wire::ParsePlainInteger(text.substr(0, text.size() - 1));
    if (!days || *days < 1 || *days > 400) return std::nullopt;
    return std::chrono::hours(24 * *days);
  }
  const std::optional<Millis> span = wire::ParseDuration(text, kLongest);
  return span && *span > Millis(0) ? span : std::nullopt;
}

absl::Status Wrong(std::string_view flag, std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", flag, expected, wire::Quoted(found)));
}

struct Asked {
  ledger::RecordedPast recorded;
  WorkQuery query;
};

absl::StatusOr<Asked> Ask(const ReplayOptions& options) {
  Asked asked;
  if (options.strategy) {
    if (*options.strategy == "Fragmentation") asked.query.strategy = Strategy::kFragmentation;
    if (*options.strategy == "BestFit") asked.query.strategy = Strategy::kBestFit;
    if (*options.strategy == "Spread") asked.query.strategy = Strategy::kSpread;
    if (!asked.query.strategy) {
      return Wrong("--strategy", "Fragmentation, BestFit or Spread", *options.strategy);
    }
  }
  if (options.edits) {
    TRANCHE_ASSIGN_OR_RETURN(asked.query.edits, ReadObjectEdits(*options.edits, kMostEdits));
  }
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(options.path));
  TRANCHE_ASSIGN_OR_RETURN(asked.query.until, reader.LastTime());
  if (options.until) {
    const std::optional<Instant> until = wire::ParseTime(*options.until);
    if (!until) return Wrong("--until", "a time of RFC 3339", *options.until);
    asked.query.until = std::min(asked.query.until, *until);
  }
  if (const std::optional<Instant> since = wire::ParseTime(options.since)) {
    asked.query.from = *since;
  } else if (const std::optional<Millis> span = ReadSpan(options.since)) {
    asked.query.from = asked.query.until - *span;
  } else {
    return Wrong("--since", "a time of RFC 3339, or how long ago as 30d or 12h", options.since);
  }
  TRANCHE_ASSIGN_OR_RETURN(asked.recorded, reader.Past(asked.query.from, asked.query.until));
  if (!asked.recorded.from) {
    return absl::FailedPreconditionError(
        fmt::format("expected what happened to be recorded in {}, found nothing (ledger.pastDays)",
                    options.path));
  }
  if (*asked.recorded.from > asked.query.from) {
    asked.query.from = *asked.recorded.from;
    TRANCHE_ASSIGN_OR_RETURN(asked.recorded, reader.Past(asked.query.from, asked.query.until));
  }
  if (asked.query.from >= asked.query.until) {
    return absl::InvalidArgumentError(fmt::format(
        "expected a span in which something was recorded, found {} to {}, recorded from {}",
        wire::FormatTime(asked.query.from), wire::FormatTime(asked.query.until),
        wire::FormatTime(*asked.recorded.from)));
  }
  return asked;
}

// A line that is written over, where somebody watches.
class Progress {
 public:
  Progress(std::ostream& err, const char* what, const Past& past)
      : err_(err),
        what_(what),
        past_(past),
        watched_(&err == &std::cerr && isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_) err_ << "\r\033[K";
  }
  bool Show(Instant now) {
    const auto clock = std::chrono::steady_clock::now();
    if (!watched_ || clock - last_ < std::chrono::seconds(1)) return true;
    last_ = clock;
    shown_ = true;
    err_ << fmt::format("\r{}: {} of {}", what_, wire::FormatTime(now),
                        wire::FormatTime(past_.until))
         << std::flush;
    return true;
  }

 private:
  std::ostream& err_;
  const char* const what_;
  const Past& past_;
  const bool watched_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

LivedPast LiveShown(const Past& past, const char* what, std::ostream& err) {
  Progress progress(err, what, past);
  return LiveAgain(past, [&progress](Instant now) { return progress.Show(now); });
}

absl::StatusOr<Json> MakeReport(const ReplayOptions& options, std::ostream& err) {
  TRANCHE_ASSIGN_OR_RETURN(Asked asked, Ask(options));
  const bool edited = asked.query.strategy || !asked.query.edits.empty();
  WorkQuery plain;
  plain.from = asked.query.from;
  plain.until = asked.query.until;
  TRANCHE_ASSIGN_OR_RETURN(RecordedWork as_was, MakeWork(asked.recorded, plain));
  std::optional<RecordedWork> with_edits;
  if (edited) {
    TRANCHE_ASSIGN_OR_RETURN(with_edits, MakeWork(asked.recorded, asked.query));
  }
  const LivedPast replayed = LiveShown(as_was.past, "as it was", err);
  std::optional<LivedPast> lived_edited;
  if (with_edits) lived_edited = LiveShown(with_edits->past, "with edits", err);
  for (std::size_t i = 0; i < replayed.lives.size(); ++i) {
    as_was.happened.lives[i].gpus = replayed.lives[i].gpus;
  }
  ReplayReport report{plain.from, plain.until, {}, as_was.guesses, as_was.budgets};
  report.courses.push_back({"happened", &as_was.happened, &replayed});
  report.courses.push_back({"replayed", &replayed, &replayed});
  if (lived_edited) report.courses.push_back({"edited", &*lived_edited, &*lived_edited});
  return ReportJson(report);
}

}  // namespace

int Replay(const ReplayOptions& options, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Json> report = MakeReport(options, err);
  if (!report.ok()) {
    err << "tranche: " << std::string(report.status().message()) << '\n';
    return absl::IsDataLoss(report.status()) ? kExitNo : kExitUsage;
  }
  if (options.json) {
    out << wire::Dump(*report, wire::kIndented) << '\n';
  } else {
    out << ReportText(*report, TerminalOf(out));
  }
  return kExitDone;
}

}  // namespace tranche::replay
