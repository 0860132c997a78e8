#include "scheduler/foresight/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/facts/reason_words.h"
#include "scheduler/foresight/rehearsal.h"
#include "scheduler/foresight/replica.h"

namespace tranche {
namespace {

// How many of those whose end nobody knows are named.
constexpr std::size_t kNamed = 2;
constexpr int64_t kFewestPlans = 16;
constexpr int64_t kMostPlans = 256;

uint64_t Mixed(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint64_t HashOf(const std::string& text, uint64_t seed) {
  for (const char c : text) seed = Mixed(seed ^ static_cast<unsigned char>(c));
  return seed;
}

// Every rehearsal draws from another part of the chances, in an order of its own for each pod: few
// rehearsals then show the spread evenly.
class Draws {
 public:
  Draws(uint64_t seed, int rehearsals) : seed_(seed), rehearsals_(rehearsals) {}

  int64_t Millionths(const std::string& pod, int rehearsal) const {
    const uint64_t hash = HashOf(pod, seed_);
    const auto parts = static_cast<uint64_t>(rehearsals_);
    // A shuffle of 0..parts-1 of this pod's own.
    std::vector<uint64_t> order(parts);
    for (uint64_t i = 0; i < parts; ++i) order[i] = i;
    for (uint64_t i = parts - 1; i > 0; --i) std::swap(order[i], order[Mixed(hash + i) % (i + 1)]);
    const uint64_t part = order[static_cast<std::size_t>(rehearsal)];
    const uint64_t width = static_cast<uint64_t>(kCertain) / parts;
    return static_cast<int64_t>(part * width + Mixed(hash ^ (parts + part)) % width);
  }

 private:
  const uint64_t seed_;
  const int rehearsals_;
};

// When pods end, as far as anything is known of it.
class Ends {
 public:
  Ends(const ClusterCopy& copy, const Runtimes& runtimes) : curves_(runtimes), at_(copy.at) {
    for (const auto& [uid, pod] : copy.pods) {
      if (const std::optional<Instant> began = BeganAt(pod)) {
        curves_.AddRunning(KindOf(pod), std::max(at_ - *began, Millis(0)));
      }
    }
    for (const auto& [uid, pod] : copy.pods) {
      if (!pod.facts.request.asks_gpu()) continue;
      if (IsDeclared(pod)) {
        ++declared_;
      } else if (curves_.CurveOf(KindOf(pod)) != nullptr) {
        ++drawn_;
      } else if (!pod.facts.node.empty()) {
        unknown_.push_back(&pod);
      }
    }
  }

  std::optional<Instant> EndOf(const PodCopy& pod, const Draws& draws, int rehearsal) {
    const std::optional<Instant> began = BeganAt(pod);
    if (!began) return std::nullopt;
    const PodRequest& request = pod.facts.request;
    if (IsDeclared(pod)) return *began + *request.expected_runtime;
    const SurvivalCurve* curve = curves_.CurveOf(KindOf(pod));
    if (curve == nullptr) return std::nullopt;
    // Members of a gang end together. Of work that is alike, a quarter is taken to have more in
    // common than a curve tells (a sweep, the same mistake): it runs long or short together.
    std::string key =
        request.gang.empty() ? request.uid.str() : request.name.ns + "/" + request.gang;
    if (HashOf(key, 0) % 4 == 0) key = Runtimes::LevelsOf(KindOf(pod)).front();
    const Millis age = std::max(at_ - *began, Millis(0));
    const Instant end = *began + curve->QuantileFrom(age, draws.Millionths(key, rehearsal));
    return std::max(end, at_ + Millis(1));
  }

  bool exact() const { return drawn_ == 0; }
  int64_t drawn() const { return drawn_; }
  int64_t declared() const { return declared_; }
  // Those that run, and nobody knows how long.
  const std::vector<const PodCopy*>& unknown() const { return unknown_; }

 private:
  static std::optional<Instant> BeganAt(const PodCopy& pod) {
    if (pod.facts.node.empty()) return std::nullopt;
    return pod.facts.running_at ? pod.facts.running_at : pod.facts.bound_at;
  }
  static RunKind KindOf(const PodCopy& pod) {
    const PodRequest& request = pod.facts.request;
    return RunKindOf(request.name, pod.workload_class, GpusOf(request));
  }
  // One that runs longer than it said has told nothing.
  bool IsDeclared(const PodCopy& pod) const {
    const std::optional<Millis>& runtime = pod.facts.request.expected_runtime;
    if (!runtime) return false;
    const std::optional<Instant> began = BeganAt(pod);
    return !began || *began + *runtime >= at_;
  }

  RunCurves curves_;
  const Instant at_;
  int64_t declared_ = 0;
  int64_t drawn_ = 0;
  std::vector<const PodCopy*> unknown_;
};

// Work that is likely to come, by what came.
class Arrivals {
 public:
  Arrivals(const ClusterCopy& copy, const Runtimes& runtimes, const ForecastRules& rules)
      : at_(copy.at), rules_(rules) {
    std::map<std::string, Runtimes::Present> present;
    std::vector<std::pair<const PodCopy*, RunKind>> examples;  // the first of each kind
    for (const auto& [uid, pod] : copy.pods) {
      const PodRequest& request = pod.facts.request;
      const bool alone = request.gang.empty() && pod.facts.claims == nullptr;
      if (!request.asks_gpu() || !alone || pod.facts.placeholder || request.refusal) continue;
      RunKind kind = RunKindOf(request.name, pod.workload_class, GpusOf(request));
      kind.stem.clear();
      const auto [of_kind, is_first] = present.try_emplace(Runtimes::LevelsOf(kind).front());
      if (is_first) examples.emplace_back(&pod, kind);
      Count(pod, of_kind->second);
    }
    for (const auto& [pod, kind] : examples) {
      const Runtimes::Present& there = present.at(Runtimes::LevelsOf(kind).front());
      if (const auto gap = runtimes.GapOf(kind, at_, there)) kinds_.push_back({pod, *gap});
    }
  }
  bool none() const { return kinds_.empty(); }

  void AddTo(Rehearsal& rehearsal, const Draws& draws, int number) const {
    const auto kinds = static_cast<int64_t>(kinds_.size());
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      Instant at = at_;
      for (int64_t i = 0; i < rules_.most_arrivals / kinds; ++i) {
        const std::string uid = fmt::format("foreseen-{}-{}", k, i);
        at += SteadyEnd(kinds_[k].gap, draws.Millionths(uid, number));
        if (at - at_ > rules_.arrivals_for) break;
        rehearsal.Arrive(ExampleOf(*kinds_[k].pod, uid), at, Rehearsal::Arrival::kForeseen);
      }
    }
  }

 private:
  struct Kind {
    const PodCopy* pod = nullptr;
    Millis gap{0};
  };
  void Count(const PodCopy& pod, Runtimes::Present& present) const {
    const PodFacts& facts = pod.facts;
    const bool fresh = facts.created && at_ - *facts.created <= Runtimes::kArrivalSpan;
    const std::optional<Instant> began = facts.running_at ? facts.running_at : facts.bound_at;
    if (facts.node.empty()) {
      if (!fresh) return;
      ++present.waits;
      present.oldest = std::min(present.oldest.value_or(at_), *facts.created);
    } else if (began && at_ - *began <= Runtimes::kArrivalSpan) {
      ++present.begun;
      present.fresh += fresh ? 1 : 0;
    }
  }
  static PodCopy ExampleOf(const PodCopy& pod, const std::string& uid) {
    PodCopy example;
    example.workload_class = pod.workload_class;
    PodFacts& facts = example.facts;
    facts.request = pod.facts.request;
    facts.request.uid = PodUid(uid);
    facts.request.name.name = uid;
    facts.owner = uid;
    facts.evictable = pod.facts.evictable;
    facts.grace = pod.facts.grace;
    facts.labels = pod.facts.labels;
    return example;
  }

  const Instant at_;
  const ForecastRules& rules_;
  std::vector<Kind> kinds_;
};

struct Seen {
  std::vector<Instant> starts;  // of the rehearsals in which it started
  Reason reason = Reason::kNone;
};

// The start before which so many thousandths of what may happen lie: n rehearsals divide that into
// n + 1 parts that are equally likely. Above the middle the later one counts, below the earlier.
// nullopt: too few started.
std::optional<Instant> QuantileOf(const std::vector<Instant>& starts, int rehearsals,
                                  int64_t thousandths) {
  const int64_t parts = thousandths * (rehearsals + 1);
  const int64_t rank = thousandths > 500 ? (parts + 999) / 1000 : parts / 1000;
  const auto at = static_cast<std::size_t>(std::clamp<int64_t>(rank, 1, rehearsals) - 1);
  if (at >= starts.size()) return std::nullopt;
  return starts[at];
}

std::string NamesOf(const std::vector<const PodCopy*>& pods) {
  std::string names;
  for (std::size_t i = 0; i < std::min(pods.size(), kNamed); ++i) {
    names += (i > 0 ? ", " : "") + pods[i]->facts.request.name.str();
  }
  if (pods.size() > kNamed) names += fmt::format(" and {} more", pods.size() - kNamed);
  return names;
}

// Of those whose end nobody knows: who is in the pod's way, as far as that can be said.
std::vector<const PodCopy*> InTheWayOf(const PodCopy& pod, const std::vector<const PodCopy*>& all) {
  const auto rank = [&pod](const PodCopy* other) {
    const bool same_team = other->facts.request.name.ns == pod.facts.request.name.ns;
    return std::pair(IsQuotaReason(pod.last_reason) && !same_team,
                     -GpusOf(other->facts.request).count());
  };
  std::vector<const PodCopy*> sorted = all;
  std::ranges::stable_sort(sorted, [&rank](const PodCopy* left, const PodCopy* right) {
    return rank(left) < rank(right);
  });
  return sorted;
}

std::string Because(const PodCopy& pod, const Forecast& forecast, const Seen& seen,
                    const Ends& ends, const Forecasts& all) {
  const PodFacts& facts = pod.facts;
  const int rehearsals = all.rehearsals;
  if (facts.claims != nullptr) return "no time is given for pods that ask by resource claims";
  if (facts.request.refusal) return "not at all: " + facts.request.refusal->detail;
  if (facts.foreign_gates) return "not while a scheduling gate of somebody else is on it";
  if (forecast.p50 && all.exact) {
    return fmt::format("expected by the ends that {} pods declare", ends.declared());
  }
  if (forecast.p50) {
    return fmt::format(
        "expected in {} of {} rehearsals: {} pods declare how long they run, {} are taken to run "
        "as work like them did, and work comes as it came",
        seen.starts.size(), rehearsals, ends.declared(), ends.drawn());
  }
  const Reason reason = seen.reason != Reason::kNone ? seen.reason : pod.last_reason;
  const std::string why(reason == Reason::kNone ? "it has not been asked for yet"
                                                : TextOf(reason, SaidOf::kPod));
  if (!ends.unknown().empty()) {
    return fmt::format("not while others hold what it needs, and nobody knows how long {} run: {}",
                       NamesOf(InTheWayOf(pod, ends.unknown())), why);
  }
  if (pod.eligible_at && !forecast.earliest) {
    return "not before its team is let in again, and not at once then: " + why;
  }
  if (!seen.starts.empty()) {
    return fmt::format("it started in {} of {} rehearsals alone: {}", seen.starts.size(),
                       rehearsals, why);
  }
  return "not by anybody's end alone: " + why;
}

int RehearsalsOf(const ClusterCopy& copy, bool exact, const ForecastRules& rules) {
  if (exact) return 1;
  const auto pods = static_cast<int64_t>(copy.pods.size() + copy.nodes.size());
  return static_cast<int>(
      std::clamp<int64_t>(rules.work / std::max<int64_t>(pods, 1), 1, rules.most_rehearsals));
}

}  // namespace

Forecasts Foretell(const ClusterCopy& copy, const Runtimes& runtimes, const ForecastRules& rules) {
  Forecasts forecasts;
  forecasts.at = copy.at;
  forecasts.version = copy.version;
  std::map<PodUid, Seen> seen;
  for (const auto& [uid, pod] : copy.pods) {
    const PodFacts& facts = pod.facts;
    const bool asks = facts.request.asks_gpu() || facts.claims != nullptr;
    if (asks && facts.node.empty() && !facts.terminating) seen.try_emplace(uid);
  }
  if (seen.empty()) return forecasts;
  Ends ends(copy, runtimes);
  const Arrivals arrivals(copy, runtimes, rules);
  forecasts.exact = ends.exact() && arrivals.none();
  forecasts.rehearsals = RehearsalsOf(copy, forecasts.exact, rules);
  const Draws draws(rules.seed, forecasts.rehearsals);
  for (int i = 0; i < forecasts.rehearsals; ++i) {
    const std::unique_ptr<Engine> engine = MakeReplica(copy);
    RehearsalRules limits;
    limits.most_plans =
        std::clamp(rules.planning / static_cast<int64_t>(copy.pods.size() + copy.nodes.size() + 1),
                   kFewestPlans, kMostPlans);
    limits.may_go_on = rules.may_go_on;
    limits.end_of = [&ends, &draws, i](const PodCopy& pod) { return ends.EndOf(pod, draws, i); };
    Rehearsal rehearsal(*engine, copy, std::move(limits));
    arrivals.AddTo(rehearsal, draws, i);
    rehearsal.Run(copy.at + rules.horizon);
    for (const auto& [uid, at] : rehearsal.starts()) {
      if (const auto one = seen.find(uid); one != seen.end()) one->second.starts.push_back(at);
    }
    for (const auto& [uid, reason] : rehearsal.Waiting()) {
      if (const auto one = seen.find(uid); one != seen.end()) one->second.reason = reason;
    }
  }
  for (auto& [uid, one] : seen) {
    const PodCopy& pod = copy.pods.at(uid);
    std::ranges::sort(one.starts);
    Forecast forecast;
    forecast.uid = uid;
    forecast.workload_class = pod.workload_class;
    forecast.gang = pod.facts.request.gang;
    const std::vector<const GpuQuota*> leaves = copy.set == nullptr
                                                    ? std::vector<const GpuQuota*>()
                                                    : copy.set->LeavesOf(pod.facts.request.name.ns);
    if (leaves.size() == 1) forecast.leaf = leaves.front()->name;
    if (!one.starts.empty()) forecast.earliest = one.starts.front();
    forecast.p10 = QuantileOf(one.starts, forecasts.rehearsals, 100);
    forecast.p50 = QuantileOf(one.starts, forecasts.rehearsals, 500);
    forecast.p90 = QuantileOf(one.starts, forecasts.rehearsals, 900);
    forecast.because = Because(pod, forecast, one, ends, forecasts);
    if (!forecast.earliest) forecast.earliest = pod.eligible_at;
    forecasts.pods.insert_or_assign(pod.facts.request.name, std::move(forecast));
  }
  return forecasts;
}

}  // namespace tranche
