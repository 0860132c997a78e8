// A span of what happened, read from a ledger's file.
//
// Plain values. Cost: O(pods and changes of the span); some 300 bytes a pod.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/past.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

struct RecordedChange {
  Instant at;
  std::string kind;
  std::string name;
  std::optional<int64_t> text;  // a key of RecordedPast::texts; nullopt: it is gone
};

struct RecordedPod {
  PodUid uid;
  PodName name;
  std::string owner;
  Instant created;
  int64_t text = 0;
  NodeName node;
  std::optional<Instant> started;
  std::string devices;
  std::optional<Instant> ended;
  PastEnd how = PastEnd::kNot;
};

struct RecordedPast {
  // Since when all that happened is told; nullopt: nothing is.
  std::optional<Instant> from;
  std::unordered_map<int64_t, std::string> texts;  // looked up only
  // Before `until`, in the order in which they happened; of those before the span what is still so
  // when it begins.
  std::vector<RecordedChange> changes;
  std::vector<RecordedPod> pods;  // ascending created, uid
};

// Of the pods that were there between `since` and `until` those that came last, at most `most`, and
// what objects of these kinds said when it ended.
struct AskedQuery {
  Instant since;
  Instant until;
  int64_t most = 0;
  std::vector<std::string> kinds;
};
absl::StatusOr<RecordedPast> ReadAsked(Database& database, const AskedQuery& query);

// What running pods did, as it was told last. Ascending uid.
absl::StatusOr<std::vector<PodWork>> ReadWork(Database& database);
// When pods did nothing between the two. Ascending uid, since.
absl::StatusOr<std::vector<IdleSpan>> ReadIdle(Database& database, Instant since, Instant until);

// What was there between `since` and `until`. Of pods those that had not ended by `since`.
absl::StatusOr<RecordedPast> ReadRecorded(Database& database, Instant since, Instant until);

}  // namespace tranche::ledger
