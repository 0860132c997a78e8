#include "test/sim/check/charges.h"

#include <fmt/format.h>

#include <algorithm>

namespace tranche::sim::check {
namespace {

constexpr SimTime kAllowed = std::chrono::seconds(1);
// A list whose answer is lost is given up after a minute, and so is what it is asked for again.
constexpr SimTime kFirstAnswers = std::chrono::seconds(125);

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

// Is its time in the ledger? A leader without its ledger meters nothing; what it placed is charged
// where it is still there when one with a ledger leads.
bool ChargeChecker::IsCharged(const PodLife& pod) const {
  if (!pod.bound || !IsTranche(pod.binder) || !pod.record || pod.record->devices.empty()) {
    return false;
  }
  return terms_.Meters(pod.binder) || !pod.ended || *pod.ended > terms_.AwareBy(*pod.bound);
}

// The earliest that the pod's devices may have been taken for it.
SimTime ChargeChecker::Reserved(const PodLife& pod) const {
  // A bind whose caller ended, or whose answer was lost, is not in the history.
  const FaultPlan& faults = options_.faults;
  const bool lost = faults.has(Fault::kScheduler) || faults.has(Fault::kNetwork) ||
                    faults.has(Fault::kPause) || faults.has(Fault::kCrash);
  return std::min(*pod.bound, lost ? pod.made : pod.filtered.value_or(pod.made));
}

// Nobody was told how its bind went, and whoever asked for it then was told that it was gone: what
// it had is known when its news come.
bool ChargeChecker::WasGoneAtOnce(const PodLife& pod) const {
  return pod.doubted && pod.ended && *pod.ended <= *pod.bound + options_.lag;
}

void ChargeChecker::JudgeLength(const PodLife& pod, const Charged& charged) {
  if (charged.open || charged.estimated || !pod.ended || IsLost(truth_, pod)) return;
  if (!terms_.LedByOne(Reserved(pod), *pod.ended + options_.lag)) return;
  const SimTime ended = std::min(*pod.ended, pod.finished.value_or(*pod.ended));
  // What a kubelet tells is cut to whole seconds, and it says nothing of the way to it.
  const SimTime allowed = 3 * kAllowed;
  const SimTime least = ended - *pod.bound - allowed;
  const SimTime most = *pod.ended + options_.lag - Reserved(pod) + allowed;
  const SimTime drift = most / 1000;
  if (charged.length < least - drift || charged.length > most + drift) {
    Found(*pod.ended, pod.key,
          fmt::format("expected it charged for {} to {}, found for {}", Seconds(least),
                      Seconds(most), Seconds(charged.length)));
  }
}

void ChargeChecker::Judge(const PodLife& pod, const Charged& charged, SimTime now) {
  const SimTime from = charged.from, to = charged.to;
  const bool open = charged.open, estimated = charged.estimated;
  const SimTime lag = options_.lag;
  if (from < Reserved(pod) - kAllowed || from > terms_.AwareBy(*pod.bound) + kAllowed) {
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
  SimTime latest = terms_.AwareBy(*pod.ended) + kAllowed + lag;
  if (estimated) {
    // Where news are late, a leader that began after the end may not have heard of it, and told
    // that all was well.
    const SimTime told = terms_.LedUntil(*pod.ended + lag - CheckOptions{}.lag);
    latest = std::min(latest - kAllowed, std::max(told, *pod.bound)) + kAllowed;
  }
  if (open) {
    if (latest < now) {
      Found(*pod.ended, pod.key,
            fmt::format("expected its charge to end at {}, found it open", Seconds(*pod.ended)));
    }
    return;
  }
  SimTime earliest = std::min(*pod.ended, pod.finished.value_or(*pod.ended)) - kAllowed;
  if (estimated) {
    earliest = std::min(earliest, terms_.UnledSince(*pod.ended, lag) - std::chrono::minutes(1));
  }
  if (to < earliest || to > latest) {
    Found(*pod.ended, pod.key,
          fmt::format("expected it charged until {}, found until {}", Seconds(*pod.ended),
                      Seconds(to)));
  }
}

void ChargeChecker::AtEnd(const Ending& ending) {
  if (ending.ledgers.empty() || !options_.disks_are_sound) return;
  const std::map<std::string, Charged> charged = ReadCharges(ending.ledgers);
  const bool labels = options_.faults.has(Fault::kClock);
  for (const auto& [uid, pod] : truth_.pods()) {
    const auto found = charged.find(uid);
    if (labels) {
      const bool ours = pod.bound && IsTranche(pod.binder);
      if (ours && found != charged.end()) JudgeLength(pod, found->second);
      continue;
    }
    if (found == charged.end()) {
      // It was there before all of us, and had gone before the first to lead had its answers.
      const auto late = {Fault::kPause, Fault::kDisk, Fault::kNetwork, Fault::kApiServer};
      const bool may_be_late =
          std::ranges::any_of(late, [this](Fault fault) { return options_.faults.has(fault); });
      const bool before_us = *pod.bound == SimTime{0} && pod.ended && pod.gone && may_be_late &&
                             *pod.ended < terms_.FirstLed() + kFirstAnswers;
      const bool unseen = WasGoneAtOnce(pod) || before_us;
      if (!unseen && IsCharged(pod) && terms_.AwareBy(*pod.bound) < ending.at) {
        Found(*pod.bound, pod.key, "expected the pod's time in the ledger, found none");
      }
      continue;
    }
    const Charged& of = found->second;
    if (!pod.bound) {
      const bool charges = of.open || of.to - of.from > kAllowed;
      const bool guessed = of.estimated && pod.ended &&
                           terms_.MayBeTakenToEnd(*pod.ended, of.to - kAllowed, options_.lag);
      if (charges && pod.ended && !guessed) {
        Found(*pod.ended, pod.key, "expected no charge of a pod that had no node, found one");
      }
    } else if (IsTranche(pod.binder)) {
      Judge(pod, of, ending.at);
    }
  }
}

}  // namespace tranche::sim::check
