#include "test/sim/check/gangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "test/sim/check/fit.h"

namespace tranche::sim::check {
namespace {

constexpr SimTime kToGather = std::chrono::minutes(8);
constexpr SimTime kToLeave = std::chrono::minutes(3);
constexpr SimTime kToAskAgain = std::chrono::minutes(1);
constexpr SimTime kToBind = std::chrono::seconds(30);  // what was under way when one was evicted

// How many hold GPUs at `at` who were bound by `bound_by`.
int64_t Holding(const std::vector<const PodLife*>& pods, SimTime at, SimTime bound_by) {
  return std::ranges::count_if(pods, [at, bound_by](const PodLife* pod) {
    return pod->bound && *pod->bound <= std::min(at, bound_by) &&
           (!pod->ended || *pod->ended > at) && (!pod->leaving || *pod->leaving > at);
  });
}

// How many would hold GPUs at `at` of those bound by `bound_by`, had nobody but us ended any after
// `since`: users remove members, and some are done before others.
int64_t Spared(const std::vector<const PodLife*>& pods, SimTime since, SimTime at,
               SimTime bound_by) {
  return std::ranges::count_if(pods, [=](const PodLife* pod) {
    if (!pod->bound || *pod->bound > bound_by) return false;
    if (IsTranche(pod->evicted_by)) return !pod->leaving || *pod->leaving > at;
    return (!pod->ended || *pod->ended > since) && (!pod->leaving || *pod->leaving > since);
  });
}

// How many may have been seen at once by `at`, where the news of ends since `since` may be late.
int64_t Seen(const std::vector<const PodLife*>& pods, SimTime since, SimTime at) {
  return std::ranges::count_if(pods, [since, at](const PodLife* pod) {
    return pod->made <= at && (!pod->ended || *pod->ended > since) &&
           (!pod->leaving || *pod->leaving > since);
  });
}

}  // namespace

void GangChecker::Hear(const Happening& happening) {
  const bool refused = happening.kind == Happening::Kind::kRefused &&
                       happening.text.find("disruption budget") != std::string::npos;
  if (refused) refused_[happening.key].push_back(happening.at);
  if (happening.kind != Happening::Kind::kWritten || happening.resource != "pods") return;
  if (!IsTranche(happening.who) || happening.after.is_null()) return;
  const PodLife* const pod = truth_.pod(TextAt(happening.after, {"metadata", "uid"}));
  if (pod != nullptr && pod->bound == happening.at && GangSizeOf(*pod) > 1) Bound(*pod);
}

void GangChecker::Bound(const PodLife& pod) {
  const std::string gang = GangOf(pod);
  if (gang.empty()) return;
  const SimTime since = pod.filtered.value_or(pod.made) - options_.lag;
  std::vector<const PodLife*> members;
  int64_t size = 0;
  for (const auto& [uid, other] : truth_.pods()) {
    if (GangOf(other) != gang) continue;
    // Of one that runs, members come and go one by one.
    const bool runs = &other != &pod && other.bound && (!other.ended || *other.ended > since);
    if (runs) return;
    members.push_back(&other);
    size = std::max(size, GangSizeOf(other));
  }
  const int64_t most = Seen(members, since, *pod.bound);
  if (most >= size) return;
  Found(*pod.bound, gang,
        fmt::format("expected the first of {} members to be bound when all are there, found {}",
                    size, most));
}

void GangChecker::AtEnd(const Ending& ending) {
  std::map<std::string, std::vector<const PodLife*>> gangs;
  for (const auto& [uid, pod] : truth_.pods()) {
    const std::string gang = GangOf(pod);
    if (!gang.empty() && GangSizeOf(pod) > 1) gangs[gang].push_back(&pod);
  }
  for (const auto& [gang, pods] : gangs) Judge(gang, pods, ending.at);
}

bool GangChecker::WasRefused(const std::vector<const PodLife*>& pods, SimTime at) const {
  return std::ranges::any_of(pods, [&](const PodLife* pod) {
    const auto times = refused_.find(pod->key);
    return times != refused_.end() && std::ranges::any_of(times->second, [at](SimTime time) {
             return time <= at && time > at - kToAskAgain;
           });
  });
}

void GangChecker::Judge(const std::string& gang, const std::vector<const PodLife*>& pods,
                        SimTime end) {
  int64_t size = 0;
  std::optional<SimTime> first;
  int64_t bound = 0;
  for (const PodLife* const pod : pods) {
    size = std::max(size, GangSizeOf(*pod));
    if (!pod->bound) continue;
    ++bound;
    first = first ? std::min(*first, *pod->bound) : *pod->bound;
  }
  if (!first) return;
  const SimTime gathered = *first + kToGather;
  const int64_t by_then = std::ranges::count_if(
      pods, [&](const PodLife* pod) { return pod->bound && *pod->bound <= gathered; });
  if (gathered < end && by_then < size && Holding(pods, gathered, gathered) > 0) {
    Found(gathered, gang,
          fmt::format("expected {} members bound together or none, found {} of them bound since "
                      "{} ms, {} of {} in all",
                      size, Holding(pods, gathered, gathered), first->count() / 1000, bound,
                      pods.size()));
  }
  for (const PodLife* const pod : pods) {
    if (!pod->leaving || !IsTranche(pod->evicted_by)) continue;
    const SimTime left = *pod->leaving + kToLeave;
    // Members bound later are another gathering.
    const SimTime bound_by = *pod->leaving + kToBind;
    const int64_t held = Holding(pods, left, bound_by);
    const bool enough = Spared(pods, *pod->leaving, left, bound_by) >= size;
    if (left < end && held > 0 && !enough && !WasRefused(pods, left)) {
      Found(left, gang,
            fmt::format("expected all of a gang of {} evicted or enough of it left, found {} of "
                        "it after {} had to go",
                        size, held, pod->key));
    }
  }
}

}  // namespace tranche::sim::check
