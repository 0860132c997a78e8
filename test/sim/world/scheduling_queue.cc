#include "test/sim/world/scheduling_queue.h"

#include <algorithm>

namespace tranche::sim {

bool SchedulingQueue::Helps(Event event, Failure why) {
  if (why == Failure::kError) return false;
  return why == Failure::kExtender || event != Event::kOther;
}

void SchedulingQueue::Put(const std::string& uid, Pod& pod, Place place, SimTime now) {
  active_.erase({-pod.priority, pod.since, uid});
  early_.erase({-pod.priority, pod.since, uid});
  pod.place = place;
  pod.since = now;
  if (place == Place::kActive) active_.insert({-pod.priority, now, uid});
  const bool early = place == Place::kBackoff && pod.why != Failure::kError;
  if (early && options_.pops_early) early_.insert({-pod.priority, now, uid});
}

void SchedulingQueue::Return(const std::string& uid, Pod& pod, SimTime now) {
  Put(uid, pod, pod.backoff_until <= now ? Place::kActive : Place::kBackoff, now);
}

void SchedulingQueue::Add(const std::string& uid, int64_t priority, SimTime now) {
  const auto [found, is_new] = pods_.try_emplace(uid);
  if (!is_new) return;
  found->second.priority = priority;
  Put(uid, found->second, Place::kActive, now);
}

void SchedulingQueue::Update(const std::string& uid, SimTime now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  if (pod.place == Place::kUnschedulable && Helps(Event::kOther, pod.why)) Return(uid, pod, now);
  // One that is under way is tried again after this attempt.
  if (pod.place == Place::kUnderWay) pod.popped = 0;
}

void SchedulingQueue::Remove(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  active_.erase({-found->second.priority, found->second.since, uid});
  early_.erase({-found->second.priority, found->second.since, uid});
  pods_.erase(found);
}

std::optional<std::string> SchedulingQueue::Pop(SimTime now) {
  const std::set<Rank>& from = active_.empty() ? early_ : active_;
  if (from.empty()) return std::nullopt;
  const std::string uid = std::get<2>(*from.begin());
  Pod& pod = pods_.at(uid);
  Put(uid, pod, Place::kUnderWay, now);
  ++pod.attempts;
  pod.popped = events_;
  return uid;
}

void SchedulingQueue::Failed(const std::string& uid, Failure why, SimTime now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  pod.why = why;
  const int doublings = std::min(pod.attempts - 1, 10);
  pod.backoff_until =
      now + std::min(options_.first_backoff * (1 << std::max(doublings, 0)), options_.most_backoff);
  bool helped = why == Failure::kError;
  for (const Event event : {Event::kFreed, Event::kNodeChanged, Event::kOther}) {
    helped = helped || (Helps(event, why) && last_[static_cast<int>(event)] > pod.popped);
  }
  Put(uid, pod, helped ? Place::kBackoff : Place::kUnschedulable, now);
}

void SchedulingQueue::Happened(Event event, SimTime now) {
  last_[static_cast<int>(event)] = ++events_;
  for (auto& [uid, pod] : pods_) {
    if (pod.place == Place::kUnschedulable && Helps(event, pod.why)) Return(uid, pod, now);
  }
}

void SchedulingQueue::Tick(SimTime now) {
  for (auto& [uid, pod] : pods_) {
    if (pod.place == Place::kBackoff && pod.backoff_until <= now) {
      Put(uid, pod, Place::kActive, now);
    }
    if (pod.place == Place::kUnschedulable && pod.since + options_.flush_after <= now) {
      Return(uid, pod, now);
    }
  }
}

bool SchedulingQueue::ready() const { return !active_.empty() || !early_.empty(); }

}  // namespace tranche::sim
