// What the engine keeps about pods with scheduling gates of ours. Part of its books (impl.h),
// nobody else includes this.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quota/quota_book.h"
#include "scheduler/engine/engine.h"
#include "scheduler/facts/reason.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct GateBooks {
  using Team = std::pair<std::string, std::string>;  // namespace and priority class
  using Turn = std::pair<Instant, PodUid>;           // waits since

  // A pod whose quota gate is being taken away: what it will be charged counts until it is placed.
  struct Admitted {
    HeldWork work;
    Instant until;  // then it stands in line again, if its gate is still there
  };

  std::map<Team, std::set<Turn>> for_quota;
  std::unordered_map<PodUid, std::pair<Team, Turn>> places;  // in for_quota
  std::set<PodUid> for_gang;
  std::map<PodUid, Admitted> admitted;
  std::map<PodUid, Instant> completed;  // gang gates being taken away: when to try again
  // When quota was looked at last: state of the books and time.
  uint64_t looked = 0;
  Instant looked_at;
};

struct PodRecord;

// What quota says to a pod that could be served somewhere, whether there is room now or not.
struct QuotaWord {
  Reason reason = Reason::kNone;  // kNone: it is let in, or has no quota to keep
  std::vector<ModelCharge> parts;
  std::optional<Instant> eligible_at;
};

// Does all that is done with the engine's GateBooks.
class GateKeeper {
 public:
  explicit GateKeeper(Engine::Impl& engine) : engine_(engine), gates_(BooksOf(engine)) {}

  // The pod or its gates have changed, or it is about to go.
  void Note(const PodUid& uid, const PodRecord& record);
  void Forget(const PodUid& uid);
  void Tend(Instant now);
  GateSet For(const PodRequest& request, Instant now);

 private:
  static GateBooks& BooksOf(Engine::Impl& engine);
  void LetIn(Instant now);
  std::vector<PodUid> Next(Instant now);
  void NoteWaits(const PodUid& uid, PodRecord& record, const QuotaWord& word, Instant now);
  // Of the kinds of node that could serve it, does quota let it in on one, `times` over?
  QuotaWord Ask(const PodRequest& request, int64_t times, Instant now);
  // How many pods of its gang have no place yet, with it: they need quota together.
  int64_t UnplacedOf(const PodRequest& request) const;

  Engine::Impl& engine_;
  GateBooks& gates_;
};

}  // namespace tranche
