#include "scheduler/ledger/past/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

absl::Status ReadChanges(Database& database, Instant since, Instant until, RecordedPast& past) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows, database.Prepare(fmt::format(
                          "SELECT at, kind, name, text FROM past_change WHERE at < {} ORDER BY id",
                          MillisOf(until))));
  std::map<std::pair<std::string, std::string>, RecordedChange> before;
  std::vector<RecordedChange> within;
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, rows.Row());
    if (!more) break;
    RecordedChange change;
    change.at = At(rows.Integer(0));
    change.kind = rows.Bytes(1);
    change.name = rows.Bytes(2);
    if (!rows.Null(3)) change.text = rows.Integer(3);
    if (change.at > since) {
      within.push_back(std::move(change));
    } else {
      before.insert_or_assign({change.kind, change.name}, std::move(change));
    }
  }
  for (auto& [object, change] : before) {
    if (change.text) past.changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(within, {}, &RecordedChange::at);
  std::ranges::move(within, std::back_inserter(past.changes));
  return absl::OkStatus();
}

absl::Status ReadPods(Database& database, Instant since, Instant until, RecordedPast& past) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(fmt::format(
          "SELECT uid, namespace, name, owner, created, text, node, started, devices, ended, how "
          "FROM past_pod WHERE created < {} AND (ended IS NULL OR ended > {})",
          MillisOf(until), MillisOf(since))));
  const auto time = [&rows](int column) {
    return rows.Null(column) ? std::nullopt : std::optional(At(rows.Integer(column)));
  };
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, rows.Row());
    if (!more) break;
    RecordedPod& pod = past.pods.emplace_back();
    pod.uid = PodUid(std::string(rows.Bytes(0)));
    pod.name = {std::string(rows.Bytes(1)), std::string(rows.Bytes(2))};
    pod.owner = rows.Bytes(3);
    pod.created = At(rows.Integer(4));
    pod.text = rows.Integer(5);
    pod.node = NodeName(std::string(rows.Bytes(6)));
    pod.started = time(7);
    pod.devices = rows.Bytes(8);
    pod.ended = time(9);
    pod.how = static_cast<PastEnd>(rows.Integer(10));
  }
  std::ranges::sort(past.pods, {},
                    [](const RecordedPod& pod) { return std::tie(pod.created, pod.uid); });
  return absl::OkStatus();
}

absl::Status ReadTexts(Database& database, RecordedPast& past) {
  TRANCHE_ASSIGN_OR_RETURN(Statement find,
                           database.Prepare("SELECT text FROM past_text WHERE id = ?"));
  const auto read = [&](int64_t id) -> absl::Status {
    if (past.texts.contains(id)) return absl::OkStatus();
    find.Bind(id);
    TRANCHE_ASSIGN_OR_RETURN(const bool there, find.Row());
    if (!there) {
      return absl::DataLossError(fmt::format("expected text {} in past_text, found none", id));
    }
    past.texts.emplace(id, std::string(find.Bytes(0)));
    find.Reset();
    return absl::OkStatus();
  };
  for (const RecordedChange& change : past.changes) {
    if (change.text) TRANCHE_RETURN_IF_ERROR(read(*change.text));
  }
  for (const RecordedPod& pod : past.pods) TRANCHE_RETURN_IF_ERROR(read(pod.text));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordedPast> ReadRecorded(Database& database, Instant since, Instant until) {
  RecordedPast past;
  // Files of versions 1 to 3, which only a writer takes further, tell nothing of it.
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  if (version < 4) return past;
  TRANCHE_ASSIGN_OR_RETURN(Statement span,
                           database.Prepare("SELECT at FROM past_span WHERE key = 'from'"));
  TRANCHE_ASSIGN_OR_RETURN(const bool told, span.Row());
  if (!told) return past;
  past.from = At(span.Integer(0));
  span.Reset();
  // One look: rows and their texts are of one moment.
  TRANCHE_RETURN_IF_ERROR(database.Execute("BEGIN"));
  absl::Status status = ReadChanges(database, since, until, past);
  if (status.ok()) status = ReadPods(database, since, until, past);
  if (status.ok()) status = ReadTexts(database, past);
  const absl::Status ended = database.Execute("ROLLBACK");
  if (!status.ok()) return status;
  if (!ended.ok()) return ended;
  return past;
}

}  // namespace tranche::ledger
