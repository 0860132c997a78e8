#include "scheduler/ledger/interval_check.h"

#include <fmt/format.h>

#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/ledger/bill/workload_text.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

bool AreOpposite(const std::vector<Posting>& left, const std::vector<Posting>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].account != right[i].account || left[i].compute != -right[i].compute ||
        left[i].memory != -right[i].memory) {
      return false;
    }
  }
  return true;
}

}  // namespace

void IntervalChecker::Check(const EntryRow& entry, std::vector<std::string>& faults) {
  if (refund_.id != 0 && entry.kind != EntryKind::kRefundEnd) {
    faults.push_back(fmt::format("rule 4: entry {}: expected the end of refund {}, found kind {}",
                                 entry.id, refund_.id, static_cast<int64_t>(entry.kind)));
    refund_ = {};
  }
  switch (entry.kind) {
    case EntryKind::kOpen:
      CheckOpen(entry, faults);
      break;
    case EntryKind::kRunning: {
      const auto found = open_.find(entry.interval);
      if (found == open_.end() || found->second.running != 0 || entry.at < found->second.at) {
        faults.push_back(fmt::format(
            "rule 4: entry {}: expected interval {} open and not yet running, found otherwise",
            entry.id, entry.interval));
      } else {
        found->second.running = entry.id;
      }
      break;
    }
    case EntryKind::kClose:
    case EntryKind::kVoid:
      CheckEnd(entry, faults);
      break;
    case EntryKind::kRefundStart:
      refund_ = entry;
      break;
    case EntryKind::kRefundEnd:
      CheckRefundEnd(entry, faults);
      break;
    case EntryKind::kWindow:
    case EntryKind::kRestored:
      break;
    case EntryKind::kFleet:
    case EntryKind::kPrice:
    case EntryKind::kStranded:
      CheckFleet(entry, faults);
      break;
  }
}

void IntervalChecker::CheckFleet(const EntryRow& entry, std::vector<std::string>& faults) {
  absl::Status read;
  if (entry.kind == EntryKind::kFleet) read = ReadNodeText(entry.note).status();
  if (entry.kind == EntryKind::kPrice) read = ReadPriceText(entry.note).status();
  if (entry.kind == EntryKind::kStranded) read = ReadStrandedText(entry.note).status();
  if (!read.ok()) {
    faults.push_back(fmt::format("rule 7: entry {}: expected a note that says it, found: {}",
                                 entry.id, std::string(read.message())));
  }
  if (entry.interval != 0 || !entry.postings.empty()) {
    faults.push_back(fmt::format(
        "rule 7: entry {}: expected no interval and no postings, found some", entry.id));
  }
}

void IntervalChecker::CheckOpen(const EntryRow& entry, std::vector<std::string>& faults) {
  ++opened_;
  if (const absl::Status read = ReadWorkloadText(entry.opened.workload).status(); !read.ok()) {
    faults.push_back(fmt::format("rule 7: entry {}: expected a workload that says it, found: {}",
                                 entry.id, std::string(read.message())));
  }
  if (entry.opened.id != entry.interval) {
    faults.push_back(fmt::format("rule 4: entry {}: expected interval {}, found none", entry.id,
                                 entry.interval));
  }
  if (!open_.try_emplace(entry.interval, Open{entry.id, entry.at, 0, entry.postings}).second) {
    faults.push_back(fmt::format("rule 3: entry {}: expected interval {} opened once, found twice",
                                 entry.id, entry.interval));
  }
}

void IntervalChecker::CheckEnd(const EntryRow& entry, std::vector<std::string>& faults) {
  const auto found = open_.find(entry.interval);
  if (found == open_.end()) {
    faults.push_back(fmt::format("rule 4: entry {}: expected interval {} open, found it is not",
                                 entry.id, entry.interval));
    return;
  }
  const Open& open = found->second;
  if (!AreOpposite(entry.postings, open.postings)) {
    faults.push_back(
        fmt::format("rule 4: entry {}: expected the amounts of entry {} reversed, found others",
                    entry.id, open.entry));
  }
  const bool in_time = entry.kind == EntryKind::kVoid ? entry.at == open.at : entry.at >= open.at;
  if (!in_time) {
    faults.push_back(fmt::format("rule 4: entry {}: expected an end not before {}, found {}",
                                 entry.id, open.at, entry.at));
  }
  open_.erase(found);
}

void IntervalChecker::CheckRefundEnd(const EntryRow& entry, std::vector<std::string>& faults) {
  if (refund_.id != entry.id - 1 || refund_.interval != entry.interval ||
      refund_.note != entry.note || entry.at <= refund_.at ||
      !AreOpposite(entry.postings, refund_.postings)) {
    faults.push_back(
        fmt::format("rule 4: entry {}: expected the refund of entry {} reversed, found another",
                    entry.id, entry.id - 1));
  }
  refund_ = {};
}

absl::Status IntervalChecker::Compare(Database& database, std::vector<std::string>& faults) {
  if (refund_.id != 0) {
    faults.push_back(fmt::format("rule 4: expected the end of refund {}, found none", refund_.id));
  }
  TRANCHE_ASSIGN_OR_RETURN(const int64_t intervals,
                           database.Integer("SELECT count(*) FROM interval"));
  if (intervals != opened_) {
    faults.push_back(fmt::format("rule 4: expected {} intervals that were opened, found {}",
                                 opened_, intervals));
  }
  TRANCHE_RETURN_IF_ERROR(CompareOpen(database, faults));
  return CheckRepeats(database, faults);
}

absl::Status IntervalChecker::CompareOpen(Database& database,
                                          std::vector<std::string>& faults) const {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT interval, entry, coalesce(running, 0) FROM open_interval ORDER BY interval"));
  std::size_t met = 0;
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) break;
    const auto found = open_.find(rows.Integer(0));
    if (found != open_.end() && found->second.entry == rows.Integer(1) &&
        found->second.running == rows.Integer(2)) {
      ++met;
      continue;
    }
    faults.push_back(
        fmt::format("rule 2: open_interval {}: expected what its entries say, found "
                    "another",
                    rows.Integer(0)));
  }
  if (met != open_.size()) {
    faults.push_back(
        fmt::format("rule 2: expected {} open intervals, found {} that agree", open_.size(), met));
  }
  return absl::OkStatus();
}

absl::Status IntervalChecker::CheckRepeats(Database& database,
                                           std::vector<std::string>& faults) const {
  // Neighbours by pod: only pods metered more than once are looked at closer. After a step of the
  // clock the labels may overlap though the time did not.
  const std::pair<const char*, const char*> queries[] = {
      {"WITH pair AS (SELECT uid, number, id, before FROM "
       "(SELECT uid, number, id, lag(id) OVER w AS before, lag(uid) OVER w AS previous "
       "FROM interval WINDOW w AS (ORDER BY uid, number)) WHERE previous = uid) "
       "SELECT pair.uid, pair.number FROM pair "
       "JOIN entry o ON o.interval = pair.id AND o.kind = 1 AND o.kind <= 4 "
       "LEFT JOIN entry e ON e.interval = pair.id AND e.kind IN (3, 4) AND e.kind <= 4 "
       "JOIN entry b ON b.interval = pair.before AND b.kind = 1 AND b.kind <= 4 "
       "LEFT JOIN entry c ON c.interval = pair.before AND c.kind IN (3, 4) AND c.kind <= 4 "
       "WHERE o.note <> 'ClockStep' AND (e.id IS NULL OR e.at > o.at) "
       "AND (c.id IS NULL OR (c.at > o.at AND c.at > b.at AND c.note <> 'ClockStep'))",
       "rule 4: pod {}: expected interval {} to start after the one before it ended"},
      {"SELECT uid, number FROM interval GROUP BY uid, number HAVING count(*) > 1",
       "rule 3: pod {}: expected interval {} once, found it twice"},
      {"SELECT i.uid, i.number FROM entry e JOIN interval i ON i.id = e.interval WHERE e.kind = 5 "
       "GROUP BY e.interval, e.at, e.note HAVING count(*) > 1",
       "rule 3: pod {}: expected a refund of interval {} once, found it twice"},
      {"SELECT i.uid, i.number FROM entry r JOIN entry u ON u.id = r.id + 1 "
       "JOIN interval i ON i.id = r.interval "
       "JOIN entry o ON o.interval = r.interval AND o.kind = 1 AND o.kind <= 4 "
       "LEFT JOIN entry e ON e.interval = r.interval AND e.kind IN (3, 4) AND e.kind <= 4 "
       "WHERE r.kind = 5 AND (r.at < o.at OR u.at > e.at)",
       "rule 4: pod {}: expected a refund of interval {} to lie in it, found another"},
      {"SELECT i.uid, i.number FROM entry r JOIN interval i ON i.id = r.interval "
       "JOIN entry o ON o.interval = r.interval AND o.kind = 1 AND o.kind <= 4 "
       "JOIN posting p ON p.entry = r.id "
       "JOIN account a ON a.id = p.account AND a.kind = 'refunded' "
       "WHERE r.kind = 5 AND ("
       "p.compute > coalesce((SELECT sum(q.compute) FROM posting q JOIN account h "
       "ON h.id = q.account WHERE q.entry = o.id AND h.kind = 'held' AND h.model = a.model), 0) OR "
       "p.memory > coalesce((SELECT sum(q.memory) FROM posting q JOIN account h "
       "ON h.id = q.account WHERE q.entry = o.id AND h.kind = 'held' AND h.model = a.model), 0))",
       "rule 4: pod {}: expected a refund of interval {} not above it, found more"},
  };
  for (const auto& [sql, fault] : queries) {
    TRANCHE_ASSIGN_OR_RETURN(Statement rows, database.Prepare(sql));
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
      if (!row) break;
      faults.push_back(fmt::format(fmt::runtime(fault), rows.Bytes(0), rows.Integer(1)));
    }
  }
  return absl::OkStatus();
}

}  // namespace tranche::ledger
