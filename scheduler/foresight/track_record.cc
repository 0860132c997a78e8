#include "scheduler/foresight/track_record.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "scheduler/foresight/runtimes.h"
#include "topology/base/int128.h"
#include "topology/base/stable_hash.h"

namespace tranche {
namespace {

constexpr Millis kEpisode = std::chrono::hours(6);
constexpr Millis kRemembered = std::chrono::hours(24 * 14);
// A pod is kept again so much later.
constexpr Millis kAgain = std::chrono::hours(1);
constexpr Millis kLearnedFor = std::chrono::minutes(1);
constexpr std::array<int64_t, 2> kChances = {100'000, 900'000};
// Divided by how many are in an episode.
constexpr int64_t kWeightOfEpisode = 720'720;

}  // namespace

int64_t WeighedQuantile(std::vector<Weighed> values, int64_t millionths) {
  std::ranges::sort(values, [](const Weighed& left, const Weighed& right) {
    return std::tuple(left.value, !left.known) < std::tuple(right.value, !right.known);
  });
  Int128 at_risk = 0;
  for (const Weighed& value : values) at_risk += value.weight;
  constexpr Int128 kAll = Int128{kCertain} * kCertain;
  Int128 left = kAll;
  for (const Weighed& value : values) {
    if (value.known) {
      left = left * (at_risk - value.weight) / at_risk;
      if (kAll - left >= Int128{millionths} * kCertain) return value.value;
    }
    at_risk -= value.weight;
  }
  return values.empty() ? 0 : values.back().value;
}

// An hour more than its width, so that spans without any can be moved.
Millis TrackRecord::UnitOf(const Times& times) {
  return times[2] - times[0] + std::chrono::hours(1);
}

TrackRecord::Times TrackRecord::Moved(const Times& times, const Moves& moves, Instant now) {
  const auto unit = Int128{UnitOf(times).count()};
  const auto moved = [&](Instant time, int64_t move) {
    const Millis by(static_cast<int64_t>(FloorDiv(unit * move, Int128{kCertain})));
    return std::max(time + by, now);
  };
  const Instant first = moved(times[0], moves[0]);
  const Instant last = std::max(moved(times[2], moves[1]), first);
  return {first, std::clamp(times[1], first, last), last};
}

TrackRecord::Told* TrackRecord::Find(const std::pair<Episode, int64_t>& of) {
  const auto episode = episodes_.find(of.first);
  if (episode == episodes_.end()) return nullptr;
  const auto told = std::ranges::lower_bound(episode->second, of.second, {}, &Told::number);
  return told != episode->second.end() && told->number == of.second ? &*told : nullptr;
}

void TrackRecord::NoteStart(const PodUid& uid, Instant at) {
  const auto waiting = waiting_.find(uid);
  if (waiting == waiting_.end()) return;
  for (const auto& of : waiting->second.told) {
    Told* const told = Find(of);
    if (told == nullptr) continue;
    told->started = true;
    told->until = std::max(at, told->at);
    Judge(*told);
  }
  waiting_.erase(waiting);
}

void TrackRecord::Judge(const Told& told) {
  if (told.until < told.shown[0]) {
    ++judged_.before;
  } else if (told.until > told.shown[2] + std::chrono::seconds(1)) {
    ++judged_.after;
  } else {
    ++judged_.within;
  }
}

TrackRecord::Moves TrackRecord::Learned(Instant at, bool exact) const {
  std::array<std::vector<Weighed>, 2> values;
  int64_t episodes = 0;
  for (const auto& [episode, all] : episodes_) {
    const auto of_these = std::ranges::count(all, exact, &Told::exact);
    bool started = false;
    for (const Told& told : all) {
      if (told.exact != exact || at - told.at > kRemembered) continue;
      started = started || told.started;
      const auto unit = Int128{UnitOf(told.said).count()};
      const int64_t weight = kWeightOfEpisode / of_these;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Millis off = told.until - told.said[i == 0 ? 0 : 2];
        const auto parts = static_cast<int64_t>(FloorDiv(Int128{off.count()} * kCertain, unit));
        values[i].push_back({parts, weight, told.started});
      }
    }
    episodes += started ? 1 : 0;
  }
  Moves moves{};
  if (episodes < kEnough) return moves;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    moves[i] = WeighedQuantile(std::move(values[i]), kChances[i]);
  }
  if (episodes < kEnoughToNarrow) {
    moves = {std::min<int64_t>(moves[0], 0), std::max<int64_t>(moves[1], 0)};
  }
  return moves;
}

void TrackRecord::LearnAgain(Instant at) {
  if (learned_at_ && at - *learned_at_ < kLearnedFor && at >= *learned_at_) return;
  learned_at_ = at;
  moves_ = {Learned(at, /*exact=*/false), Learned(at, /*exact=*/true)};
}

void TrackRecord::Forget(Instant at) {
  while (!episodes_.empty()) {
    const auto oldest = episodes_.begin();
    const Instant ended = Instant(kEpisode * (oldest->first.first + 1));
    if (kept_ <= kMostKept && at - ended <= kRemembered) return;
    kept_ -= oldest->second.size();
    episodes_.erase(oldest);
  }
}

void TrackRecord::CloseGone(const Forecasts& forecasts) {
  for (const auto& [name, forecast] : forecasts.pods) {
    const auto waiting = waiting_.find(forecast.uid);
    if (waiting == waiting_.end()) continue;
    waiting->second.seen = forecasts.at;
    std::erase_if(waiting->second.told, [&](const auto& of) {
      Told* const told = Find(of);
      if (told != nullptr) told->until = forecasts.at;
      return told == nullptr;
    });
  }
  std::erase_if(waiting_, [&](const auto& one) { return one.second.seen != forecasts.at; });
}

void TrackRecord::Keep(const Episode& episode, std::vector<Candidate> candidates, Instant at,
                       bool exact) {
  std::vector<Told>& kept = episodes_[episode];
  const std::size_t most = std::min(kMostOfLook, kMostOfEpisode - kept.size());
  std::erase_if(candidates, [&](const Candidate& one) {
    const auto waiting = waiting_.find(one.first->uid);
    if (waiting == waiting_.end() || waiting->second.told.empty()) return false;
    const Told* const last = Find(waiting->second.told.back());
    return last != nullptr && at - last->at < kAgain;
  });
  // Some, by chance, and always the same.
  const auto hash = [&](const Candidate& one) {
    return std::tuple(StableHash(one.first->uid.str() + std::to_string(episode.first)),
                      one.first->uid);
  };
  if (candidates.size() > most) {
    std::ranges::sort(candidates, {}, hash);
    candidates.resize(most);
  }
  for (const auto& [forecast, said] : candidates) {
    Told& told = kept.emplace_back();
    told.number = next_++;
    told.at = at;
    told.said = said;
    told.shown = {*forecast->p10, *forecast->p50, *forecast->p90};
    told.exact = exact;
    told.until = at;
    Waiting& waiting = waiting_[forecast->uid];
    waiting.seen = at;
    waiting.told.emplace_back(episode, told.number);
    ++kept_;
  }
}

void TrackRecord::Move(Forecasts& forecasts) {
  CloseGone(forecasts);
  LearnAgain(forecasts.at);
  const Moves& moves = moves_[forecasts.exact ? 1 : 0];
  const bool none = moves == Moves{};
  const auto quarter =
      static_cast<int64_t>(FloorDiv(forecasts.at.time_since_epoch().count(), kEpisode.count()));
  std::map<std::string, std::vector<Candidate>> candidates;
  for (auto& [name, forecast] : forecasts.pods) {
    if (!forecast.p10 || !forecast.p50 || !forecast.p90) continue;
    const Times said = {*forecast.p10, *forecast.p50, *forecast.p90};
    candidates[forecast.leaf].emplace_back(&forecast, said);
    if (none) continue;
    const Times shown = Moved(said, moves, forecasts.at);
    forecast.p10 = shown[0];
    forecast.p50 = shown[1];
    forecast.p90 = shown[2];
    if (forecast.earliest) forecast.earliest = std::min(*forecast.earliest, shown[0]);
    forecast.because += "; its span is as wide as earlier ones had to be";
  }
  forecasts.judged = judged_;
  for (auto& [leaf, of_leaf] : candidates) {
    Keep({quarter, leaf}, std::move(of_leaf), forecasts.at, forecasts.exact);
  }
  Forget(forecasts.at);
}

}  // namespace tranche
