#include "test/sim/check/leaders.h"

#include <fmt/format.h>

#include <algorithm>

namespace tranche::sim::check {
namespace {

// As long as the network of the simulator holds a request.
constexpr SimTime kHeld = std::chrono::milliseconds(8'010);

}  // namespace

void LeaderChecker::Lease(const Happening& happening) {
  elects_ = true;
  const std::string before = TextAt(happening.before, {"spec", "holderIdentity"});
  const std::string after = TextAt(happening.after, {"spec", "holderIdentity"});
  if (before == after && !holder_.empty()) return;
  holder_ = after.empty() ? "" : happening.who;
  since_ = happening.at;
}

bool LeaderChecker::WasHeld(const Happening& happening) const {
  const auto ended = ended_.find(happening.who);
  return options_.faults.has(Fault::kNetwork) && ended != ended_.end() &&
         happening.at <= ended->second + kHeld;
}

void LeaderChecker::Hear(const Happening& happening) {
  if (happening.kind == Happening::Kind::kEnded || happening.kind == Happening::Kind::kLost) {
    ended_.emplace(happening.who, happening.at);
  }
  if (happening.kind == Happening::Kind::kLeads) {
    if (elects_ && happening.number <= newest_) {
      Found(happening.at, happening.who,
            fmt::format("expected an epoch above {}, found {}", newest_, happening.number));
    }
    newest_ = std::max(newest_, happening.number);
    epochs_[happening.who] = happening.number;
    // From the highest that pods tell it goes on.
    int64_t told = 0;
    for (const auto& [uid, pod] : truth_.pods()) {
      if (pod.holds() && pod.record) told = std::max(told, pod.record->epoch);
    }
    told_[happening.who] = told;
    return;
  }
  if (happening.kind != Happening::Kind::kWritten || !IsTranche(happening.who)) return;
  if (happening.resource == "leases") return Lease(happening);
  if (elects_ && happening.who != holder_ && !WasHeld(happening)) {
    Found(
        happening.at, happening.who,
        fmt::format("expected writes by \"{}\" alone, which holds the lease since {} ms, found {} "
                    "{} written",
                    holder_, since_.count() / 1000, happening.resource, happening.key));
  }
  if (happening.resource != "pods" || happening.after.is_null()) return;
  const PodLife* const pod = truth_.pod(TextAt(happening.after, {"metadata", "uid"}));
  if (pod == nullptr || pod->bound != happening.at || !pod->record) return;
  const auto epoch = epochs_.find(happening.who);
  if (elects_ && epoch != epochs_.end() &&
      pod->record->epoch != static_cast<int64_t>(epoch->second) &&
      (pod->record->epoch < static_cast<int64_t>(epoch->second) ||
       pod->record->epoch != told_.at(happening.who))) {
    Found(
        happening.at, happening.key,
        fmt::format("expected a record of epoch {}, found {}", epoch->second, pod->record->epoch));
  }
}

}  // namespace tranche::sim::check
