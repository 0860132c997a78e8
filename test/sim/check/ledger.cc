#include "test/sim/check/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "scheduler/ledger/reader.h"
#include "test/sim/base/wall.h"
#include "test/sim/check/rows.h"

namespace tranche::sim::check {
namespace {

constexpr const char* kEntries =
    "SELECT i.uid, i.number, i.namespace, i.pod, i.node, e.kind, e.at, e.flags, e.note "
    "FROM entry e JOIN interval i ON i.id = e.interval WHERE e.kind <= 4 ORDER BY e.id";

SimTime SinceBegin(int64_t unix_millis) {
  return std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(unix_millis)) -
         kWorldBegan;
}

void AddRow(const Rows& row, std::map<std::pair<std::string, int64_t>, LedgerInterval>& found) {
  const std::string uid = row.Text(0);
  const int64_t number = row.Number(1);
  LedgerInterval& interval = found[{uid, number}];
  interval.uid = uid;
  interval.number = number;
  interval.pod = row.Text(2) + "/" + row.Text(3);
  interval.node = row.Text(4);
  const int64_t at = row.Number(6);
  interval.stepped = interval.stepped || row.Text(8) == "ClockStep";
  switch (row.Number(5)) {
    case 1:
      interval.open = at;
      break;
    case 2:
      interval.running = at;
      break;
    case 3:
      interval.end = at;
      interval.estimated = (row.Number(7) & 1) != 0;
      break;
    default:
      interval.end = at;
      interval.is_void = true;
  }
}

}  // namespace

std::vector<LedgerInterval> ReadLedger(const std::string& path, std::string& problem) {
  std::map<std::pair<std::string, int64_t>, LedgerInterval> found;
  Rows rows(path, kEntries);
  while (rows.Next()) AddRow(rows, found);
  problem = rows.problem();
  std::vector<LedgerInterval> intervals;
  for (auto& [key, interval] : found) intervals.push_back(std::move(interval));
  return intervals;
}

std::map<std::string, Charged> ReadCharges(const std::vector<std::string>& ledgers) {
  std::map<std::string, Charged> charges;
  for (const std::string& path : ledgers) {
    std::string problem;  // told by the ledger's own checker
    for (const LedgerInterval& interval : ReadLedger(path, problem)) {
      if (interval.is_void || !interval.open) continue;
      Charged& of = charges[interval.uid];
      of.from = std::min(of.from, SinceBegin(*interval.open));
      of.open = !interval.end;
      of.estimated = interval.estimated;
      if (!interval.end) continue;
      of.to = std::max(of.to, SinceBegin(*interval.end));
      of.length += std::chrono::milliseconds(*interval.end - *interval.open);
    }
  }
  return charges;
}

std::string Seconds(SimTime time) {
  const int64_t size = std::abs(time.count());
  return fmt::format("{}{}.{:03} s", time.count() < 0 ? "-" : "", size / 1'000'000,
                     size / 1000 % 1000);
}

void LedgerChecker::Hear(const Happening& happening) {
  const bool twice = happening.text == "held_twice" || happening.text == "kept_twice";
  if (happening.kind == Happening::Kind::kDoubted && twice) {
    Found(happening.at, happening.who,
          fmt::format("expected every pod once in its books, found {} {} times", happening.text,
                      happening.number));
  }
  if (happening.kind != Happening::Kind::kPromised) return;
  const Json& entry = happening.after;
  if (!At(entry, {"interval"}).is_number_integer() || !At(entry, {"at"}).is_number_integer()) {
    return;
  }
  promised_.emplace(Entry{TextAt(entry, {"uid"}), entry["interval"].get<int64_t>(),
                          TextAt(entry, {"kind"}), entry["at"].get<int64_t>()},
                    happening.at);
}

void LedgerChecker::AtEnd(const Ending& ending) {
  std::set<Entry> there;
  for (const std::string& path : ending.ledgers) {
    std::string problem;
    const std::vector<LedgerInterval> intervals = ReadLedger(path, problem);
    if (!problem.empty() && options_.disks_are_sound) {
      Found(ending.at, "", "expected a ledger that can be read, found: " + problem);
    }
    for (const LedgerInterval& interval : intervals) {
      if (interval.open) there.emplace(interval.uid, interval.number, "open", *interval.open);
      if (interval.running) {
        there.emplace(interval.uid, interval.number, "running", *interval.running);
      }
      if (interval.end) {
        there.emplace(interval.uid, interval.number, interval.is_void ? "void" : "close",
                      *interval.end);
      }
    }
    if (!options_.disks_are_sound) continue;
    CheckIntervals(intervals, ending.at);
    Verify(path, ending.at);
  }
  if (ending.ledgers.empty() || !options_.disks_are_sound) return;
  for (const auto& [entry, at] : promised_) {
    const auto& [uid, interval, kind, time] = entry;
    if (kind == "refund" || there.contains(entry)) continue;
    const PodLife* const pod = truth_.pod(uid);
    Found(at, pod == nullptr ? uid : pod->key,
          fmt::format("expected the {} of interval {} at {}, which was said to be on disk, in the "
                      "ledger, found none",
                      kind, interval, time));
  }
}

// Intervals of one pod follow one another.
void LedgerChecker::CheckIntervals(const std::vector<LedgerInterval>& intervals, SimTime at) {
  const LedgerInterval* before = nullptr;
  for (const LedgerInterval& interval : intervals) {  // ascending uid, number
    if (!interval.open) {
      Found(at, interval.pod, "expected an interval that was opened, found its end alone");
      continue;
    }
    if (before != nullptr && before->uid == interval.uid && !before->is_void) {
      if (!before->end) {
        Found(at, interval.pod,
              fmt::format("expected interval {} to end before {} begins, found both open",
                          before->number, interval.number));
      } else if (*before->end > *interval.open && !before->stepped && !interval.stepped) {
        Found(at, interval.pod,
              fmt::format("expected interval {} to begin after {}, found {}", interval.number,
                          *before->end, *interval.open));
      }
    }
    before = &interval;
  }
}

void LedgerChecker::Verify(const std::string& path, SimTime at) {
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) {
    Found(at, "", "expected a ledger that opens, found: " + std::string(reader.status().message()));
    return;
  }
  const absl::StatusOr<ledger::VerifyReport> report = reader->Verify([](int64_t, int64_t) {});
  if (!report.ok()) {
    Found(at, "", "expected a ledger that verifies: " + std::string(report.status().message()));
  } else if (!report->faults.empty()) {
    Found(at, "", "expected a ledger that verifies, found: " + report->faults.front());
  }
}

}  // namespace tranche::sim::check
