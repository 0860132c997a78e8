// The writer's side of what happened: rows of pods, changes of objects, and the texts they share.
//
// The caller surrounds Note with a transaction and throws the PastBook away when that fails.
// Thread rule: one thread. Cost: of a pod one to three writes of some 200 bytes in all, and its
// text if nobody had that yet; memory some 100 bytes for each object that can change.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/facts/past.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

// Can it be written? Empty: it can.
std::string Malformed(const PastPod& pod);
std::string Malformed(const PastChange& change);
std::string Malformed(const PodWork& pod);
std::string Malformed(const IdleSpan& span);

struct PastLimits {
  Millis kept{0};  // what ended longer ago is forgotten; not positive: nothing is ever
  int64_t most_pods = 2'000'000;  // then those that ended first go; as many idle spans
  Millis forget_every{600'000};
  int64_t forgotten_at_once = 2'000;  // rows of a table, so that a commit stays short
};

class PastBook {
 public:
  // `database` outlives it.
  PastBook(Database& database, PastLimits limits) : database_(&database), limits_(limits) {}

  absl::Status Note(const PastNews& news);
  // The same for who has more to write in the transaction: what cannot be kept is left out, and
  // `problem` says why. Errors: those that are of the disk.
  absl::Status Keep(const PastNews& news, std::string& problem);

 private:
  using Object = std::pair<std::string, std::string>;  // kind, name
  absl::Status Prepare();
  absl::Status LoadNewest();
  absl::Status NotePod(const PastPod& pod);
  absl::Status NoteChange(const PastChange& change);
  absl::Status NoteWork(const PodWork& pod, Instant at);
  absl::Status NoteIdle(const IdleSpan& span);
  absl::Status NoteRest(const PastNews::Rest& rest, Instant at);
  absl::Status Forget(Instant now);
  absl::Status ForgetUse(int64_t before);
  absl::StatusOr<int64_t> TextId(const std::string& text, int64_t at);

  Database* database_;
  const PastLimits limits_;
  // Of each object that is there, the text it has; nullopt: not read yet.
  std::optional<std::map<Object, int64_t>> newest_;
  std::optional<Instant> forgot_;
  Statement find_text_;
  Statement insert_text_;
  Statement use_text_;
  Statement insert_pod_;
  Statement update_pod_;
  Statement insert_change_;
  Statement drop_work_;
  Statement insert_work_;
  Statement insert_idle_;
};

}  // namespace tranche::ledger
