// What happened lately to pods and reclaims, a line each, for people: what the engine decided and
// the cluster showed, in the engine's order, and who changed quotas and other objects of ours. The
// ledger keeps what is charged; this forgets.
//
// Thread rule: any thread. Cost: Note O(effects) under a mutex of its own, Read O(what is kept).
// Memory: kMost lines of some hundred bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/engine/state/outbox.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

enum class RecentKind : uint8_t {
  kPlaced,           // devices are reserved and the Binding goes out
  kRunning,          // its containers run
  kEnded,            // it holds nothing any more
  kUndone,           // the Binding never came true
  kRefunded,         // use is given back, for the reason of the text
  kReclaim,          // a reclaim for the pod has got as far as the text says
  kEvictionAsked,    // the API server is asked to evict the pod
  kNominated,        // room on the node is its own, in kube-scheduler's eyes too
  kNominationEnded,  // likewise, no longer
  kLeavesSoon,       // it has to leave, for the reason of the text
  kBookFault,        // of no pod: what did not go together in the books
  kEdited,           // of no pod: somebody changed an object of ours, as the text says
};
inline constexpr int kRecentKinds = 12;
std::string_view RecentKindName(RecentKind kind);  // "Placed", ...
std::optional<RecentKind> FindRecentKind(std::string_view name);

struct RecentEvent {
  uint64_t id = 0;  // ascending, from 1 on; of one process
  Instant at;
  RecentKind kind = RecentKind::kPlaced;
  PodName pod = {};       // empty: it concerns none
  NodeName node = {};     // empty: none, or not known
  std::string leaf = {};  // empty: none
  std::string text = {};  // empty: the kind says all
};

struct RecentQuery {
  std::optional<std::string> ns = std::nullopt;
  std::optional<std::string> pod = std::nullopt;
  std::optional<std::string> node = std::nullopt;
  std::optional<std::string> leaf = std::nullopt;
  std::optional<RecentKind> kind = std::nullopt;
  uint64_t since = 0;  // those after this id
  std::size_t limit = 1'000;
};

class RecentEvents {
 public:
  static constexpr std::size_t kMost = 20'000;

  explicit RecentEvents(std::size_t most = kMost) : most_(most) {}

  // What one call of the engine made due. Calls come in the engine's order.
  void Note(const Effects& effects, Instant now);
  // What somebody did to an object of ours: of that team, or "".
  void NoteEdit(std::string leaf, std::string text, Instant now);

  struct Answer {
    std::vector<RecentEvent> events;  // ascending; the newest of those that match
    uint64_t newest = 0;              // id of the newest there is; 0: none
    bool forgotten = false;           // some after `since` are kept no longer
  };
  Answer Read(const RecentQuery& query) const;

 private:
  void Add(RecentEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteReclaim(const Reclaim& reclaim, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t most_;
  mutable absl::Mutex mutex_;
  std::deque<RecentEvent> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of reclaims that run, what was told of them last.
  std::map<std::string, ReclaimPhase> phases_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
