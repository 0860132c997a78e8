#include "scheduler/ledger/past/past_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/stable_hash.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr std::size_t kMostName = 1'024;
constexpr std::size_t kMostText = 1 << 20;
// How often it is noted that a text is in use still.
constexpr int64_t kUseEvery = 24 * 3'600'000;
constexpr int64_t kIds = INT64_MAX;

// The same on every machine: ids are stored. Who chooses texts that meet in one place has them
// stand one behind the other.
int64_t PlaceOf(std::string_view text) { return static_cast<int64_t>(StableHash(text) % kIds); }

std::string TooLong(std::string_view what, std::size_t most, std::size_t found) {
  return found <= most
             ? ""
             : fmt::format("expected at most {} bytes of {}, found {}", most, what, found);
}

}  // namespace

std::string Malformed(const PastPod& pod) {
  if (pod.uid.empty()) return "expected the uid of a pod that came, found none";
  for (const std::string* name :
       {&pod.uid.str(), &pod.name.ns, &pod.name.name, &pod.owner, &pod.node.str()}) {
    std::string why = TooLong("a pod's name", kMostName, name->size());
    if (!why.empty()) return why;
  }
  std::string why = TooLong("a pod's record", kMostText, pod.devices.size());
  return why.empty() ? TooLong("a pod", kMostText, pod.object.size()) : why;
}

std::string Malformed(const PastChange& change) {
  std::string why = TooLong("an object's name", kMostName, change.kind.size() + change.name.size());
  return why.empty() ? TooLong("an object", kMostText, change.object.size()) : why;
}

std::string Malformed(const PodWork& pod) {
  if (pod.uid.empty()) return "expected the uid of a pod that was measured, found none";
  std::string why = TooLong("a pod's uid", kMostName, pod.uid.str().size());
  for (const DeviceHistory& device : pod.work.devices) {
    if (why.empty()) why = TooLong("a device's name", kMostName, device.device.size());
    if (device.busiest_hour < 0 || device.busiest_hour > 1000) {
      return fmt::format("expected a share of an hour from 0 to 1000, found {}",
                         device.busiest_hour);
    }
  }
  return why;
}

std::string Malformed(const IdleSpan& span) {
  if (span.uid.empty()) return "expected the uid of a pod that was idle, found none";
  if (span.until <= span.since) return "expected an idle span that ends after it began, found none";
  return TooLong("a pod's uid", kMostName, span.uid.str().size());
}

absl::Status PastBook::Prepare() {
  if (insert_change_.prepared()) return absl::OkStatus();
  TRANCHE_ASSIGN_OR_RETURN(find_text_,
                           database_->Prepare("SELECT text, used FROM past_text WHERE id = ?"));
  TRANCHE_ASSIGN_OR_RETURN(
      insert_text_, database_->Prepare("INSERT INTO past_text(id, text, used) VALUES (?, ?, ?)"));
  TRANCHE_ASSIGN_OR_RETURN(use_text_,
                           database_->Prepare("UPDATE past_text SET used = ? WHERE id = ?"));
  TRANCHE_ASSIGN_OR_RETURN(
      insert_pod_,
      database_->Prepare("INSERT INTO past_pod(uid, namespace, name, owner, created, text, node, "
                         "devices, how) VALUES (?, ?, ?, ?, ?, ?, '', '', 0) "
                         "ON CONFLICT(uid) DO UPDATE SET ended = iif(how = 4, NULL, ended), "
                         "how = iif(how = 4, 0, how)"));
  // (One that comes again was taken for gone.) A start that is known stays: a pod starts once. So
  // does an end, unless it was not seen.
  TRANCHE_ASSIGN_OR_RETURN(
      update_pod_,
      database_->Prepare(
          "UPDATE past_pod SET node = iif(node = '', ?2, node), "
          "started = coalesce(started, ?3), devices = iif(devices = '', ?4, devices), "
          "ended = iif(ended IS NULL OR how = 4, coalesce(?5, ended), ended), "
          "how = iif(?5 IS NOT NULL AND (ended IS NULL OR how = 4), ?6, how) WHERE uid = ?1"));
  TRANCHE_ASSIGN_OR_RETURN(
      insert_change_,
      database_->Prepare("INSERT INTO past_change(at, kind, name, text) VALUES (?, ?, ?, ?)"));
  TRANCHE_ASSIGN_OR_RETURN(drop_work_, database_->Prepare("DELETE FROM past_work WHERE uid = ?"));
  TRANCHE_ASSIGN_OR_RETURN(
      insert_work_,
      database_->Prepare("INSERT OR REPLACE INTO past_work(uid, device, hours, busiest, memory, "
                         "told) VALUES (?, ?, ?, ?, ?, ?)"));
  TRANCHE_ASSIGN_OR_RETURN(
      insert_idle_,
      database_->Prepare("INSERT INTO past_idle(uid, since, until) VALUES (?, ?, ?) "
                         "ON CONFLICT DO UPDATE SET until = max(until, excluded.until)"));
  return absl::OkStatus();
}

absl::Status PastBook::LoadNewest() {
  std::map<Object, int64_t> newest;
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows, database_->Prepare("SELECT kind, name, text FROM past_change ORDER BY id"));
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, rows.Row());
    if (!more) break;
    Object object{std::string(rows.Bytes(0)), std::string(rows.Bytes(1))};
    if (rows.Null(2)) {
      newest.erase(object);
    } else {
      newest.insert_or_assign(std::move(object), rows.Integer(2));
    }
  }
  newest_ = std::move(newest);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PastBook::TextId(const std::string& text, int64_t at) {
  for (int64_t id = PlaceOf(text);; id = (id + 1) % kIds) {
    find_text_.Bind(id);
    TRANCHE_ASSIGN_OR_RETURN(const bool there, find_text_.Row());
    if (!there) {
      TRANCHE_RETURN_IF_ERROR(insert_text_.RunWith(id, text, at));
      return id;
    }
    const bool same = find_text_.Bytes(0) == text;
    const int64_t used = find_text_.Integer(1);
    find_text_.Reset();
    if (!same) continue;
    if (at > used + kUseEvery) TRANCHE_RETURN_IF_ERROR(use_text_.RunWith(at, id));
    return id;
  }
}

absl::Status PastBook::NotePod(const PastPod& pod) {
  if (!pod.object.empty() && pod.created) {
    const int64_t created = MillisOf(*pod.created);
    TRANCHE_ASSIGN_OR_RETURN(const int64_t text, TextId(pod.object, created));
    TRANCHE_RETURN_IF_ERROR(
        insert_pod_.RunWith(pod.uid.str(), pod.name.ns, pod.name.name, pod.owner, created, text));
  }
  if (pod.ended) TRANCHE_RETURN_IF_ERROR(drop_work_.RunWith(pod.uid.str()));
  if (!pod.started && !pod.ended && pod.node.empty()) return absl::OkStatus();
  update_pod_.Bind(pod.uid.str(), pod.node.str());
  update_pod_.BindAt(3, pod.started ? std::optional(MillisOf(*pod.started)) : std::nullopt);
  update_pod_.BindAt(4, std::string_view(pod.devices));
  update_pod_.BindAt(5, pod.ended ? std::optional(MillisOf(*pod.ended)) : std::nullopt);
  update_pod_.BindAt(6, std::optional(static_cast<int64_t>(pod.how)));
  return update_pod_.Run();
}

absl::Status PastBook::NoteChange(const PastChange& change) {
  Object object{change.kind, change.name};
  const auto known = newest_->find(object);
  const int64_t at = MillisOf(change.at);
  if (change.object.empty()) {
    if (known == newest_->end()) return absl::OkStatus();
    newest_->erase(known);
    return insert_change_.RunWith(at, change.kind, change.name, nullptr);
  }
  TRANCHE_ASSIGN_OR_RETURN(const int64_t text, TextId(change.object, at));
  if (known != newest_->end() && known->second == text) return absl::OkStatus();
  newest_->insert_or_assign(std::move(object), text);
  return insert_change_.RunWith(at, change.kind, change.name, text);
}

absl::Status PastBook::NoteWork(const PodWork& pod, Instant at) {
  TRANCHE_RETURN_IF_ERROR(drop_work_.RunWith(pod.uid.str()));
  for (const DeviceHistory& device : pod.work.devices) {
    insert_work_.Bind(pod.uid.str(), device.device, pod.work.hours,
                      static_cast<int64_t>(device.busiest_hour));
    insert_work_.BindAt(
        5, device.most_memory ? std::optional(device.most_memory->count()) : std::nullopt);
    insert_work_.BindAt(6, std::optional(MillisOf(at)));
    TRANCHE_RETURN_IF_ERROR(insert_work_.Run());
  }
  return absl::OkStatus();
}

absl::Status PastBook::NoteIdle(const IdleSpan& span) {
  return insert_idle_.RunWith(span.uid.str(), MillisOf(span.since), MillisOf(span.until));
}

absl::Status PastBook::NoteRest(const PastNews::Rest& rest, Instant at) {
  std::vector<std::string> gone;
  TRANCHE_ASSIGN_OR_RETURN(Statement open,
                           database_->Prepare("SELECT uid FROM past_pod WHERE ended IS NULL"));
  for (;;) {
    TRANCHE_ASSIGN_OR_RETURN(const bool more, open.Row());
    if (!more) break;
    std::string uid(open.Bytes(0));
    if (!std::ranges::binary_search(rest.pods, PodUid(uid))) gone.push_back(std::move(uid));
  }
  for (std::string& uid : gone) {
    PastPod pod;
    pod.uid = PodUid(std::move(uid));
    pod.ended = at;
    pod.how = PastEnd::kUnseen;
    TRANCHE_RETURN_IF_ERROR(NotePod(pod));
  }
  std::vector<Object> lost;
  for (const auto& [object, text] : *newest_) {
    if (!std::ranges::binary_search(rest.objects, object)) lost.push_back(object);
  }
  for (const auto& [kind, name] : lost) {
    TRANCHE_RETURN_IF_ERROR(NoteChange({at, kind, name, ""}));
  }
  return absl::OkStatus();
}

absl::Status PastBook::Forget(Instant now) {
  if (limits_.kept <= Millis(0)) return absl::OkStatus();
  if (forgot_ && now >= *forgot_ && now - *forgot_ < limits_.forget_every) return absl::OkStatus();
  forgot_ = now;
  const int64_t before = MillisOf(now - limits_.kept);
  const int64_t most = limits_.forgotten_at_once;
  int64_t forgotten = 0;
  const auto drop = [&](const std::string& sql) {
    const absl::Status status = database_->Execute(sql);
    forgotten += database_->changes();
    return status;
  };
  TRANCHE_RETURN_IF_ERROR(drop(fmt::format(
      "DELETE FROM past_pod WHERE id IN (SELECT id FROM past_pod WHERE ended < {} ORDER BY ended "
      "LIMIT {})",
      before, most)));
  TRANCHE_ASSIGN_OR_RETURN(const int64_t pods, database_->Integer("SELECT count(*) FROM past_pod"));
  if (pods > limits_.most_pods) {
    TRANCHE_RETURN_IF_ERROR(drop(fmt::format(
        "DELETE FROM past_pod WHERE id IN (SELECT id FROM past_pod WHERE ended IS NOT NULL "
        "ORDER BY ended LIMIT {})",
        std::min(most, pods - limits_.most_pods))));
  }
  // What an object said last before the span is what it says in it. That one is gone is forgotten
  // when nothing it said is left.
  TRANCHE_RETURN_IF_ERROR(drop(fmt::format(
      "DELETE FROM past_change WHERE id IN (SELECT id FROM past_change AS old WHERE at < {0} AND "
      "EXISTS (SELECT 1 FROM past_change AS new WHERE new.kind = old.kind AND new.name = old.name "
      "AND new.id > old.id AND new.at <= {0}) LIMIT {1})",
      before, most)));
  TRANCHE_RETURN_IF_ERROR(drop(fmt::format(
      "DELETE FROM past_change WHERE id IN (SELECT id FROM past_change AS old WHERE at < {} AND "
      "text IS NULL AND NOT EXISTS (SELECT 1 FROM past_change AS prior WHERE prior.kind = old.kind "
      "AND prior.name = old.name AND prior.id < old.id) LIMIT {})",
      before, most)));
  TRANCHE_RETURN_IF_ERROR(database_->Execute(fmt::format(
      "DELETE FROM past_text WHERE id IN (SELECT id FROM past_text AS one WHERE used < {} AND NOT "
      "EXISTS (SELECT 1 FROM past_pod WHERE past_pod.text = one.id) AND NOT EXISTS (SELECT 1 FROM "
      "past_change WHERE past_change.text = one.id) LIMIT {})",
      before, most)));
  TRANCHE_RETURN_IF_ERROR(ForgetUse(before));
  if (forgotten == 0) return absl::OkStatus();
  return database_->Execute(
      fmt::format("UPDATE past_span SET at = max(at, {}) WHERE key = 'from'", before));
}

absl::Status PastBook::ForgetUse(int64_t before) {
  const int64_t most = limits_.forgotten_at_once;
  // Pods of which nobody told that they ended.
  TRANCHE_RETURN_IF_ERROR(
      database_->Execute(fmt::format("DELETE FROM past_work WHERE told < {}", before)));
  TRANCHE_ASSIGN_OR_RETURN(const int64_t spans,
                           database_->Integer("SELECT count(*) FROM past_idle"));
  return database_->Execute(fmt::format(
      "DELETE FROM past_idle WHERE (uid, since) IN (SELECT uid, since FROM past_idle WHERE until < "
      "{} ORDER BY until LIMIT {})",
      spans > limits_.most_pods ? kIds : before, most));
}

absl::Status PastBook::Note(const PastNews& news) {
  TRANCHE_RETURN_IF_ERROR(Prepare());
  if (!newest_) TRANCHE_RETURN_IF_ERROR(LoadNewest());
  for (const PastChange& change : news.changes) TRANCHE_RETURN_IF_ERROR(NoteChange(change));
  for (const PodWork& pod : news.work) TRANCHE_RETURN_IF_ERROR(NoteWork(pod, news.at));
  for (const IdleSpan& span : news.idle) TRANCHE_RETURN_IF_ERROR(NoteIdle(span));
  for (const PastPod& pod : news.pods) TRANCHE_RETURN_IF_ERROR(NotePod(pod));
  if (news.rest) {
    TRANCHE_RETURN_IF_ERROR(NoteRest(*news.rest, news.at));
    TRANCHE_RETURN_IF_ERROR(database_->Execute(
        fmt::format("INSERT INTO past_span(key, at) VALUES ('from', {}) ON CONFLICT DO NOTHING",
                    MillisOf(news.at))));
  }
  return Forget(news.at);
}

absl::Status PastBook::Keep(const PastNews& news, std::string& problem) {
  if (news.empty()) return absl::OkStatus();
  TRANCHE_RETURN_IF_ERROR(database_->Execute("SAVEPOINT past"));
  const absl::Status status = Note(news);
  if (status.ok()) return database_->Execute("RELEASE past");
  if (IsDiskFull(status) || absl::IsUnavailable(status)) return status;
  problem = std::string(status.message());
  newest_.reset();
  return database_->Execute("ROLLBACK TO past; RELEASE past");
}

}  // namespace tranche::ledger
