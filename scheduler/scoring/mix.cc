#include "scheduler/scoring/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace tranche {
namespace {

// Counts are kept in 1024ths so that halving keeps small classes for a while.
constexpr int64_t kOne = 1024;
// All counts are halved after so many arrivals: the memory is a few thousand pods long.
constexpr int64_t kHalfLife = 2048;
// FGD's target workload holds the commonest classes that make up 95 % of the arrivals.
constexpr int64_t kCoverPercent = 95;
constexpr std::size_t kMaxClasses = 48;
constexpr int64_t kMinGap = 16;
constexpr int64_t kMaxGap = 1000;

std::string KeyOf(const MixClass& type) {
  std::string key = fmt::format("{}/{}/{}/{}", type.cards, type.milli,
                                static_cast<int>(type.memory.kind), type.memory.value);
  for (const std::string& model : type.models_any) key += "/" + model;
  return key;
}

MixClass Whole(int64_t cards) {
  MixClass type;
  type.milli = 1000;
  type.memory.kind = MemoryNeed::Kind::kWholeCard;
  type.cards = cards;
  return type;
}

// Sum of |share before - share after| over all classes, in thousandths (0..2000).
int64_t Distance(const Mix& before, const Mix& after) {
  if (before.total == 0) return 2000;
  std::map<std::string, std::pair<int64_t, int64_t>> shares;
  for (const MixClass& type : before.classes) {
    shares[KeyOf(type)].first = type.count * 1000 / before.total;
  }
  for (const MixClass& type : after.classes) {
    shares[KeyOf(type)].second = type.count * 1000 / after.total;
  }
  int64_t sum = 0;
  for (const auto& [key, pair] : shares) sum += std::abs(pair.first - pair.second);
  return sum;
}

}  // namespace

MixLearner::MixLearner() {
  // Until arrivals say otherwise: one each of the commonest requests there are.
  MixClass half;
  half.milli = 500;
  half.memory = {MemoryNeed::Kind::kMilliOfCard, 500};
  for (const MixClass& type : {half, Whole(1), Whole(2), Whole(4), Whole(8)}) {
    MixClass first = type;
    first.count = kOne;
    counts_.emplace(KeyOf(type), std::move(first));
  }
  Snapshot();
}

void MixLearner::Arrived(const PodRequest& request) {
  bool counted = false;
  for (const Ask& ask : request.asks) {
    const bool share = ask.resource == Resource::kShare;
    if (!share && ask.resource != Resource::kGpu) continue;
    MixClass type = Whole(ask.count);
    if (share) {
      type.milli = ask.compute.count();
      type.memory = ask.memory;
    }
    type.models_any = request.models_any;
    std::string key = KeyOf(type);
    auto [at, fresh] = counts_.try_emplace(std::move(key), std::move(type));
    at->second.count += kOne;
    counted = true;
  }
  if (!counted) return;
  ++arrivals_;
  if (arrivals_ % kHalfLife == 0) {
    for (auto& [key, type] : counts_) type.count /= 2;
    std::erase_if(counts_, [](const auto& entry) { return entry.second.count == 0; });
  }
  if (arrivals_ < next_snapshot_) return;
  next_snapshot_ = arrivals_ + std::clamp(arrivals_ / 2, kMinGap, kMaxGap);
  Snapshot();
}

void MixLearner::Snapshot() {
  std::vector<std::pair<std::string, MixClass>> sorted(counts_.begin(), counts_.end());
  std::ranges::sort(sorted, {}, [](const auto& entry) {
    return std::pair<int64_t, const std::string&>(-entry.second.count, entry.first);
  });
  int64_t all = 0;
  for (const auto& [key, type] : sorted) all += type.count;
  Mix next;
  for (auto& [key, type] : sorted) {
    if (next.total * 100 >= all * kCoverPercent || next.classes.size() == kMaxClasses) break;
    next.total += type.count;
    next.classes.push_back(std::move(type));
  }
  if (Distance(mix_, next) <= 50) return;
  next.version = mix_.version + 1;
  mix_ = std::move(next);
}

}  // namespace tranche
