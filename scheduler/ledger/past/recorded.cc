#include "scheduler/ledger/past/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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

// What each object of a kind said last.
absl::Status ReadLast(Database& database, const std::string& kind, Instant until,
                      RecordedPast& past) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT at, name, text FROM past_change AS one WHERE kind = ?1 AND at < ?2 "
                       "AND NOT EXISTS (SELECT 1 FROM past_change AS later WHERE later.kind = ?1 "
                       "AND later.name = one.name AND later.at < ?2 AND later.id > one.id) "
                       "ORDER BY name"));
  rows.Bind(kind, MillisOf(until));
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, rows.Row());
    if (!more) return absl::OkStatus();
    if (rows.Null(2)) continue;
    past.changes.push_back(
        {At(rows.Integer(0)), kind, std::string(rows.Bytes(1)), rows.Integer(2)});
  }
}

// The last so many of them; negative: all.
constexpr int64_t kAll = -1;
absl::Status ReadPods(Database& database, Instant since, Instant until, int64_t most,
                      RecordedPast& past) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(fmt::format(
          "SELECT uid, namespace, name, owner, created, text, node, started, devices, ended, how "
          "FROM past_pod WHERE created < {} AND (ended IS NULL OR ended > {}) {}",
          MillisOf(until), MillisOf(since),
          most == kAll ? "" : fmt::format("ORDER BY id DESC LIMIT {}", most))));
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

// Since when the file tells what happened. Of versions before 4, which only a writer takes further,
// it never does.
absl::StatusOr<std::optional<Instant>> ToldFrom(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  if (version < 4) return std::nullopt;
  TRANCHE_ASSIGN_OR_RETURN(Statement span,
                           database.Prepare("SELECT at FROM past_span WHERE key = 'from'"));
  TRANCHE_ASSIGN_OR_RETURN(const bool told, span.Row());
  if (!told) return std::nullopt;
  return At(span.Integer(0));
}

// One look: rows and their texts are of one moment.
absl::Status AtOnce(Database& database, const std::function<absl::Status()>& read) {
  TRANCHE_RETURN_IF_ERROR(database.Execute("BEGIN"));
  const absl::Status status = read();
  const absl::Status ended = database.Execute("ROLLBACK");
  return status.ok() ? ended : status;
}

// What pods did is told from version 5 on.
absl::StatusOr<bool> TellsUse(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  return version >= 5;
}

}  // namespace

absl::StatusOr<RecordedPast> ReadRecorded(Database& database, Instant since, Instant until) {
  RecordedPast past;
  TRANCHE_ASSIGN_OR_RETURN(past.from, ToldFrom(database));
  if (!past.from) return past;
  const auto read = [&]() -> absl::Status {
    TRANCHE_RETURN_IF_ERROR(ReadChanges(database, since, until, past));
    TRANCHE_RETURN_IF_ERROR(ReadPods(database, since, until, kAll, past));
    return ReadTexts(database, past);
  };
  TRANCHE_RETURN_IF_ERROR(AtOnce(database, read));
  return past;
}

absl::StatusOr<RecordedPast> ReadAsked(Database& database, const AskedQuery& query) {
  RecordedPast past;
  TRANCHE_ASSIGN_OR_RETURN(past.from, ToldFrom(database));
  if (!past.from) return past;
  const auto read = [&]() -> absl::Status {
    for (const std::string& kind : query.kinds) {
      TRANCHE_RETURN_IF_ERROR(ReadLast(database, kind, query.until, past));
    }
    TRANCHE_RETURN_IF_ERROR(ReadPods(database, query.since, query.until, query.most, past));
    return ReadTexts(database, past);
  };
  TRANCHE_RETURN_IF_ERROR(AtOnce(database, read));
  return past;
}

absl::StatusOr<std::vector<PodWork>> ReadWork(Database& database) {
  std::vector<PodWork> pods;
  TRANCHE_ASSIGN_OR_RETURN(const bool told, TellsUse(database));
  if (!told) return pods;
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows, database.Prepare("SELECT uid, device, hours, busiest, memory FROM past_work "
                                       "ORDER BY uid, device"));
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, rows.Row());
    if (!more) return pods;
    PodUid uid(std::string(rows.Bytes(0)));
    if (pods.empty() || pods.back().uid != uid) pods.push_back({std::move(uid), {}});
    WorkHistory& work = pods.back().work;
    work.hours = rows.Integer(2);
    DeviceHistory& device = work.devices.emplace_back();
    device.device = rows.Bytes(1);
    device.busiest_hour = static_cast<int>(rows.Integer(3));
    if (!rows.Null(4)) device.most_memory = Mebibytes::Of(rows.Integer(4));
  }
}

absl::StatusOr<std::vector<IdleSpan>> ReadIdle(Database& database, Instant since, Instant until) {
  std::vector<IdleSpan> spans;
  TRANCHE_ASSIGN_OR_RETURN(const bool told, TellsUse(database));
  if (!told) return spans;
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(fmt::format("SELECT uid, since, until FROM past_idle WHERE until > {} AND "
                                   "since < {} ORDER BY uid, since",
                                   MillisOf(since), MillisOf(until))));
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, rows.Row());
    if (!more) return spans;
    spans.push_back({PodUid(std::string(rows.Bytes(0))), At(rows.Integer(1)), At(rows.Integer(2))});
  }
}

}  // namespace tranche::ledger
