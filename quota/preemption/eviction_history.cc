#include "quota/preemption/eviction_history.h"

#include <algorithm>
#include <iterator>

#include "topology/base/check.h"

namespace tranche {
namespace {

constexpr Millis kHour = std::chrono::hours(1);

// Ascending times after `limit`.
auto FirstAfter(const std::deque<Instant>& times, Instant limit) {
  return std::upper_bound(times.begin(), times.end(), limit);
}

}  // namespace

void EvictionHistory::Note(const std::string& owner, const std::string& leaf, int64_t pods,
                           Instant at) {
  std::deque<Instant>& times = by_owner_[owner];
  const auto place = std::lower_bound(times.begin(), times.end(), at);
  if (place != times.end() && *place == at) return;
  times.insert(place, at);
  NoteMore(leaf, pods, at);
}

void EvictionHistory::NoteMore(const std::string& leaf, int64_t pods, Instant at) {
  std::deque<Entry>& entries = by_leaf_[leaf];
  const auto later =
      std::upper_bound(entries.begin(), entries.end(), at,
                       [](Instant time, const Entry& entry) { return time < entry.at; });
  entries.insert(later, {at, pods});
}

void EvictionHistory::Forget(Instant now) {
  const Instant limit = now - kEvictionDay;
  for (auto& [owner, times] : by_owner_) times.erase(times.begin(), FirstAfter(times, limit));
  for (auto& [leaf, entries] : by_leaf_) {
    while (!entries.empty() && entries.front().at <= limit) entries.pop_front();
  }
  std::erase_if(by_owner_, [](const auto& owner) { return owner.second.empty(); });
  std::erase_if(by_leaf_, [](const auto& leaf) { return leaf.second.empty(); });
}

int EvictionHistory::Evictions(const std::string& owner, Instant now) const {
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end()) return 0;
  return static_cast<int>(
      std::distance(FirstAfter(found->second, now - kEvictionDay), found->second.end()));
}

std::optional<Instant> EvictionHistory::ImmuneUntil(const std::string& owner, Instant started,
                                                    Millis base, Instant now) const {
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end()) return std::nullopt;
  const std::deque<Instant>& times = found->second;
  const auto first = FirstAfter(times, now - kEvictionDay);
  const auto end = std::lower_bound(first, times.end(), started);
  if (first == end) return std::nullopt;
  Millis guard = std::min(base, kGuardCap);
  for (auto at = std::next(first); at != end && guard > Millis(0) && guard < kGuardCap; ++at) {
    guard = std::min(guard * 2, kGuardCap);
  }
  const Instant until = *std::prev(end) + guard;
  return until > now ? std::optional(until) : std::nullopt;
}

std::optional<Instant> EvictionHistory::DayFullUntil(const std::string& owner,
                                                     std::optional<int> most, Instant now) const {
  if (!most || Evictions(owner, now) < *most) return std::nullopt;
  return *std::prev(by_owner_.at(owner).end(), *most) + kEvictionDay;
}

int64_t EvictionHistory::PodsInHour(const std::string& leaf, Instant now) const {
  const auto found = by_leaf_.find(leaf);
  if (found == by_leaf_.end()) return 0;
  int64_t pods = 0;
  for (auto entry = found->second.rbegin();
       entry != found->second.rend() && entry->at > now - kHour; ++entry) {
    pods += entry->pods;
  }
  return pods;
}

std::optional<Instant> EvictionHistory::HourFullUntil(const std::string& leaf, int64_t most,
                                                      Instant now) const {
  TRANCHE_CHECK_GT(most, 0);
  if (PodsInHour(leaf, now) < most) return std::nullopt;
  // Of the newest, the first with which the limit is reached: it is full until that one leaves.
  const std::deque<Entry>& entries = by_leaf_.at(leaf);
  int64_t pods = 0;
  auto entry = entries.rbegin();
  while ((pods += entry->pods) < most) ++entry;
  return entry->at + kHour;
}

}  // namespace tranche
