#include "scheduler/scoring/mix.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "scheduler/facts/agent.h"
#include "topology/base/int128.h"
#include "topology/base/table_key.h"

namespace tranche {
namespace {

// An arrival counts for 1 / (1 - 1 / n) of the one before it.
constexpr int64_t kRecentArrivals = 2000;
constexpr int64_t kLastingArrivals = 10'000;
// Above this all counts of a memory are divided by kShrink.
constexpr int64_t kLargestOne = int64_t{1} << 40;
constexpr int64_t kShrink = int64_t{1} << 20;
constexpr int64_t kMinMixGap = 16;
constexpr int64_t kMaxMixGap = 1000;
// A new snapshot is worth it when so much of the shares moved, in kAll parts, both ways together.
constexpr int64_t kMixMoved = MixLearner::kAll / 20;

int64_t Share(int64_t count, int64_t all) {
  return all == 0 ? 0 : MulDivFloor(count, MixLearner::kAll, all);
}

// How far the recent shares moved, sum over all types, or the turnover: whichever moved more.
int64_t Distance(const Mix& before, const Mix& after) {
  int64_t moved = 0;
  const MixType none;
  auto old_type = before.types.begin();
  auto new_type = after.types.begin();
  while (old_type != before.types.end() || new_type != after.types.end()) {
    const bool is_old = new_type == after.types.end() ||
                        (old_type != before.types.end() && old_type->key <= new_type->key);
    const bool is_new = old_type == before.types.end() ||
                        (new_type != after.types.end() && new_type->key <= old_type->key);
    const MixType& was = is_old ? *old_type++ : none;
    const MixType& is = is_new ? *new_type++ : none;
    moved += std::abs(was.recent - is.recent);
  }
  return std::max(moved, std::abs(before.turnover - after.turnover));
}

}  // namespace

void AppendTypeKey(const PodRequest& request, const Ask& ask, MilliCpu cpu, std::string& key) {
  AppendToKey(key, static_cast<int64_t>(ask.resource));
  AppendToKey(key, ask.count);
  AppendToKey(key, ask.mig.profile);
  AppendToKey(key, ask.mig.shared);
  AppendToKey(key, ask.compute.count());
  AppendToKey(key, static_cast<int64_t>(ask.memory.kind));
  AppendToKey(key, ask.memory.value);
  AppendToKey(key, ask.exclusive);
  AppendToKey(key, cpu.count());
  AppendToKey(key, request.min_gpu_memory.count());
  AppendToKey(key,
              Serves(AgentKind::kNone, request.style) ? 0 : static_cast<int64_t>(request.style));
  for (const auto* models : {&request.models_any, &request.models_none}) {
    AppendToKey(key, static_cast<int64_t>(models->size()));
    for (const std::string& model : *models) AppendToKey(key, model);
  }
}

MixLearner::MixLearner() {
  MixLearner prior{Blank()};
  PodRequest request;
  request.style = RequestStyle::kNative;
  Ask ask;
  for (const int64_t cards : {1, 2, 4, 8}) {
    ask.count = cards;
    request.asks = {ask};
    prior.Count(request, ask, cards);
  }
  ask.resource = Resource::kShare;
  ask.count = 1;
  ask.compute = MilliGpu::Of(500);
  ask.memory = {MemoryNeed::Kind::kMilliOfCard, 500};
  request.asks = {ask};
  prior.Count(request, ask, 1);
  mix_ = prior.Now();
  mix_.version = 1;
  sequenced_ = mix_;
}

MixChange MixLearner::Arrived(const PodRequest& request) {
  int64_t units = 0;
  for (const Ask& ask : request.asks) units += ask.count;
  if (units == 0) return MixChange::kNone;
  for (const Ask& ask : request.asks) Count(request, ask, units);
  if (counts_.size() > kMaxTypes) DropRarest();
  came_ += recent_one_;
  if (Age(recent_one_, kRecentArrivals)) {
    for (auto& [key, type] : counts_) type.recent /= kShrink;
    came_ /= kShrink;
    ended_ /= kShrink;
  }
  if (Age(lasting_one_, kLastingArrivals)) {
    for (auto& [key, type] : counts_) type.lasting /= kShrink;
  }
  if (++arrivals_ < next_snapshot_) return MixChange::kNone;
  next_snapshot_ = arrivals_ + std::clamp(arrivals_ / 2, kMinMixGap, kMaxMixGap);
  Mix next = Now();
  const bool moved = Distance(sequenced_, next) >= kMixMoved;
  if (moved) sequenced_ = next;
  next.turnover = sequenced_.turnover;
  next.version = mix_.version + (moved ? 1 : 0);
  mix_ = std::move(next);
  return moved ? MixChange::kAll : MixChange::kLasting;
}

void MixLearner::Count(const PodRequest& request, const Ask& ask, int64_t units) {
  const MilliCpu cpu = MilliCpu::Of(request.cpu.count() * ask.count / units);
  key_.clear();
  AppendTypeKey(request, ask, cpu, key_);
  auto at = counts_.find(key_);
  if (at == counts_.end()) {
    MixType type;
    type.key = key_;
    type.request.style = request.style;
    type.request.asks.push_back(ask);
    type.request.asks.front().container = 0;
    type.request.models_any = request.models_any;
    type.request.models_none = request.models_none;
    type.request.min_gpu_memory = request.min_gpu_memory;
    type.request.cpu = cpu;
    at = counts_.emplace(key_, std::move(type)).first;
  }
  at->second.recent += recent_one_;
  at->second.lasting += lasting_one_;
}

void MixLearner::DropRarest() {
  const auto rarest =
      std::ranges::min_element(counts_, {}, [](const auto& entry) { return entry.second.lasting; });
  counts_.erase(rarest);
}

bool MixLearner::Age(int64_t& one, int64_t arrivals) {
  one += one / (arrivals - 1);
  if (one <= kLargestOne) return false;
  one /= kShrink;
  return true;
}

void MixLearner::Departed(const PodRequest& request) {
  if (!request.asks.empty()) ended_ += recent_one_;
}

Mix MixLearner::Now() const {
  int64_t recent = 0;
  int64_t lasting = 0;
  for (const auto& [key, type] : counts_) {
    recent += type.recent;
    lasting += type.lasting;
  }
  Mix mix;
  mix.one = Share(lasting_one_, lasting);
  mix.turnover = std::min(Share(ended_, came_), kAll);
  for (const auto& [key, type] : counts_) {
    MixType share = type;
    share.recent = Share(type.recent, recent);
    share.lasting = Share(type.lasting, lasting);
    if (share.lasting > 0) mix.types.push_back(std::move(share));
  }
  return mix;
}

}  // namespace tranche
