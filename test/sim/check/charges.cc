#include "test/sim/check/charges.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "test/sim/base/wall.h"
#include "test/sim/check/ledger.h"

namespace tranche::sim::check {
namespace {

constexpr SimTime kAllowed = std::chrono::seconds(1);

SimTime SinceBegin(int64_t unix_millis) {
  return std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(unix_millis)) -
         kWorldBegan;
}

std::string Seconds(SimTime time) {
  return fmt::format("{}.{:03} s", time.count() / 1'000'000, time.count() / 1000 % 1000);
}

// A node that is not there, or was not heard of, when the pod ended.
bool IsLost(const Truth& truth, const PodLife& pod) {
  const Json* const node = truth.object("nodes", pod.node);
  if (node == nullptr) return true;
  const Json& conditions = At(*node, {"status", "conditions"});
  if (!conditions.is_array()) return false;
  return std::ranges::any_of(conditions, [](const Json& condition) {
    return TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) != "True";
  });
}

}  // namespace

void ChargeChecker::Judge(const PodLife& pod, SimTime from, SimTime to, bool open, bool estimated,
                          SimTime now) {
  const SimTime lag = options_.lag;
  // A bind whose caller ended, or whose answer was lost, is not in the history.
  const FaultPlan& faults = options_.faults;
  const bool lost = faults.has(Fault::kScheduler) || faults.has(Fault::kNetwork) ||
                    faults.has(Fault::kPause) || faults.has(Fault::kCrash);
  const SimTime reserved = lost ? pod.made : pod.filtered.value_or(pod.made);
  if (from < std::min(*pod.bound, reserved) - kAllowed ||
      from > terms_.AwareBy(*pod.bound) + kAllowed) {
    Found(*pod.bound, pod.key,
          fmt::format("expected it charged from {} on, found from {}", Seconds(*pod.bound),
                      Seconds(from)));
  }
  if (!pod.ended) {
    if (!open) {
      Found(now, pod.key, fmt::format("expected it charged on, found its end at {}", Seconds(to)));
    }
    return;
  }
  if (IsLost(truth_, pod)) return;
  const SimTime latest = terms_.AwareBy(*pod.ended) + kAllowed + lag;
  if (open) {
    if (latest < now) {
      Found(*pod.ended, pod.key,
            fmt::format("expected its charge to end at {}, found it open", Seconds(*pod.ended)));
    }
    return;
  }
  SimTime earliest = std::min(*pod.ended, pod.finished.value_or(*pod.ended)) - kAllowed;
  if (estimated)
    earliest = std::min(earliest, terms_.UnledSince(*pod.ended) - std::chrono::minutes(1));
  if (to < earliest || to > latest) {
    Found(*pod.ended, pod.key,
          fmt::format("expected it charged until {}, found until {}", Seconds(*pod.ended),
                      Seconds(to)));
  }
}

void ChargeChecker::AtEnd(const Ending& ending) {
  if (ending.ledgers.empty() || !options_.disks_are_sound) return;
  struct Charged {
    std::optional<SimTime> from;
    SimTime to{0};
    bool open = false;
    bool estimated = false;
  };
  std::map<std::string, Charged> charged;
  for (const std::string& path : ending.ledgers) {
    std::string problem;  // told by the ledger's own checker
    for (const LedgerInterval& interval : ReadLedger(path, problem)) {
      if (interval.is_void || !interval.open) continue;
      Charged& of = charged[interval.uid];
      const SimTime from = SinceBegin(*interval.open);
      of.from = of.from ? std::min(*of.from, from) : from;
      of.open = !interval.end;
      of.estimated = interval.estimated;
      if (interval.end) of.to = std::max(of.to, SinceBegin(*interval.end));
    }
  }
  if (options_.faults.has(Fault::kClock)) return;
  for (const auto& [uid, pod] : truth_.pods()) {
    const auto found = charged.find(uid);
    if (found == charged.end()) {
      const bool ours = pod.bound && IsTranche(pod.binder) && pod.record;
      if (ours && terms_.AwareBy(*pod.bound) < ending.at) {
        Found(*pod.bound, pod.key, "expected the pod's time in the ledger, found none");
      }
      continue;
    }
    const Charged& of = found->second;
    if (!pod.bound) {
      const bool charges = of.open || of.to - *of.from > kAllowed;
      const bool guessed = of.estimated && pod.ended &&
                           terms_.MayBeTakenToEnd(*pod.ended, of.to - kAllowed, options_.lag);
      if (charges && pod.ended && !guessed) {
        Found(*pod.ended, pod.key, "expected no charge of a pod that had no node, found one");
      }
    } else if (IsTranche(pod.binder)) {
      Judge(pod, *of.from, of.to, of.open, of.estimated, ending.at);
    }
  }
}

}  // namespace tranche::sim::check
