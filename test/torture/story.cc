#include "test/torture/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <set>
#include <system_error>

namespace tranche::torture {
namespace fs = std::filesystem;

int64_t Size(int64_t sanitized, int64_t ci, int64_t nightly) {
#ifdef __SANITIZE_ADDRESS__
  constexpr bool kSanitized = true;
#else
  constexpr bool kSanitized = false;
#endif
  const char* asked = std::getenv("TRANCHE_TORTURE");
  if (asked != nullptr && std::string_view(asked) == "nightly") return nightly;
  return kSanitized ? sanitized : ci;
}

uint64_t PrintedSeed() {
  const char* asked = std::getenv("TRANCHE_SEED");
  const uint64_t seed = asked == nullptr ? 1 : std::strtoull(asked, nullptr, 10);
  fmt::print("TRANCHE_SEED={}\n", seed);
  return seed;
}

Folder::Folder() {
  // In a container it may be a few MiB.
  constexpr uintmax_t kRoomy = uintmax_t{2} << 30;
  const fs::path memory = "/dev/shm";
  std::error_code none;
  const bool roomy = fs::is_directory(memory, none) && fs::space(memory, none).available > kRoomy;
  const fs::path base = roomy ? memory : fs::temp_directory_path();
  std::string name = (base / "tranche-torture-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void CopyLedger(const std::string& from_folder, const std::string& to_folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from_folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".db-shm" || extension == ".reserve" || extension == ".lock") continue;
    std::error_code problem;
    fs::copy_file(entry.path(), fs::path(to_folder) / entry.path().filename(),
                  fs::copy_options::overwrite_existing, problem);
    // A living process writes files anew beside the old ones, and then they have another name.
    if (problem == std::errc::no_such_file_or_directory) continue;
    if (problem) throw fs::filesystem_error("copy of a ledger", entry.path(), problem);
  }
}

ledger::Options NextLife(Story& story, const std::string& path) {
  ledger::Options options;
  options.path = path;
  options.epoch = ++story.lives;
  options.now = story.now;
  options.group_delay = std::chrono::milliseconds(1);
  return options;
}

bool WaitCommitted(Ledger& ledger) {
  auto answer = std::make_shared<std::promise<bool>>();
  std::future<bool> committed = answer->get_future();
  ledger.WhenCommitted([answer](bool done) { answer->set_value(done); });
  return committed.get();
}

bool AppendAndWait(Ledger& ledger, Batch batch) {
  ledger.Append(std::move(batch.events), std::move(batch.closings));
  return WaitCommitted(ledger);
}

absl::StatusOr<std::vector<std::string>> FiguresOf(const std::string& path,
                                                   const MeterHistory& history, Instant now) {
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return reader.status();
  std::vector<std::string> lines;
  ledger::ReportQuery query;
  query.now = now;
  const absl::Status exported = reader->Export(query, [&](const ledger::ExportRow& row) {
    // What lasted no time may be told or not.
    if (row.end.value_or(now) <= row.interval.since) return;
    lines.push_back(IntervalLine(row.interval, row.interval.parts.at(0), row.end, row.estimated,
                                 row.devices, row.time, row.refunded));
  });
  if (!exported.ok()) return exported;
  const absl::StatusOr<std::vector<ledger::ReportRow>> report = reader->Report(query);
  if (!report.ok()) return report.status();
  for (const ledger::ReportRow& row : *report) {
    if (row.time != GpuTime{}) lines.push_back(ReportLine(row.leaf, row.model, row.time));
  }
  for (const OpenInterval& interval : history.open) lines.push_back(OpenLine(interval));
  for (const MeterEvent& event : history.events) lines.push_back(EventLine(event));
  for (const WindowClosing& closing : history.closings) lines.push_back(ClosingLine(closing));
  std::sort(lines.begin(), lines.end());
  return lines;
}

testing::AssertionResult SameFigures(const std::vector<std::string>& found,
                                     const std::vector<std::string>& expected) {
  if (found == expected) return testing::AssertionSuccess();
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                      std::back_inserter(missing));
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                      std::back_inserter(extra));
  testing::AssertionResult result = testing::AssertionFailure();
  result << fmt::format("{} lines expected and not found, {} found and not expected",
                        missing.size(), extra.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(missing.size(), 3); ++i) {
    result << "\n  expected " << missing[i];
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(extra.size(), 3); ++i) {
    result << "\n  found    " << extra[i];
  }
  return result;
}

testing::AssertionResult Verified(const std::string& path) {
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return testing::AssertionFailure() << reader.status();
  const absl::StatusOr<ledger::VerifyReport> report = reader->Verify([](int64_t, int64_t) {});
  if (!report.ok()) return testing::AssertionFailure() << report.status();
  if (report->faults.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << report->faults.size() << " faults, first: " << report->faults.front();
}

testing::AssertionResult Settle(Story& story, const std::string& path,
                                const ledger::SqliteLedger& ledger) {
  const MeterHistory& history = ledger.history();
  std::set<std::string> keys;
  for (const MeterEvent& event : history.events) keys.insert(KeyOf(event));
  const auto is_there = [&](const Batch& batch) {
    return std::all_of(batch.events.begin(), batch.events.end(),
                       [&](const MeterEvent& event) { return keys.contains(KeyOf(event)); });
  };
  const auto end = std::find_if_not(story.log.begin(), story.log.end(), is_there);
  const auto present = static_cast<std::size_t>(end - story.log.begin());
  if (present < story.acknowledged) {
    return testing::AssertionFailure() << fmt::format(
               "{} batches acknowledged, only the first {} found", story.acknowledged, present);
  }
  for (auto batch = story.log.begin(); batch != end; ++batch) story.settled.Apply(*batch);
  story.log.erase(story.log.begin(), end);
  story.acknowledged = 0;
  const absl::StatusOr<std::vector<std::string>> found = FiguresOf(path, history, story.now);
  if (!found.ok()) return testing::AssertionFailure() << found.status();
  return SameFigures(*found, story.settled.Figures(story.now));
}

testing::AssertionResult RepeatsChangeNothing(const Log& log, ledger::SqliteLedger& ledger) {
  const LedgerHealth before = ledger.health();
  for (const Batch& batch : log) ledger.Append(batch.events, {});
  if (!WaitCommitted(ledger)) return testing::AssertionFailure() << ledger.health().problem;
  const LedgerHealth after = ledger.health();
  if (before.last_entry == after.last_entry && before.head == after.head) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << fmt::format("expected last entry {} with hash {}, found {} with {}", before.last_entry,
                        before.head, after.last_entry, after.head);
}

}  // namespace tranche::torture
