#include "scheduler/engine/teams/earlier_numbers.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tranche {

void EarlierNumbers::NoteEnded(const std::vector<EndedNumber>& numbers) {
  ended_.insert(ended_.end(), numbers.begin(), numbers.end());
  sorted_ = false;
}

void EarlierNumbers::NoteRecent(const PodUid& uid, int number, Instant ended) {
  recent_[uid] = {{number, ended}, ++serial_};
  order_.emplace_back(serial_, uid);
  if (order_.size() <= kMostRecent) return;
  const auto oldest = recent_.find(order_.front().second);
  if (oldest != recent_.end() && oldest->second.serial == order_.front().first) {
    recent_.erase(oldest);
  }
  order_.pop_front();
}

Instant EarlierNumbers::EndOf(const PodUid& uid) { return LastOf(uid).ended; }

EarlierNumbers::Last EarlierNumbers::LastOf(const PodUid& uid) {
  if (!std::exchange(sorted_, true)) {
    std::ranges::sort(ended_, [](const EndedNumber& left, const EndedNumber& right) {
      return std::tie(left.pod, left.interval) < std::tie(right.pod, right.interval);
    });
  }
  Last last;
  const auto take = [&last](const Last& other) {
    last.number = std::max(last.number, other.number);
    last.ended = std::max(last.ended, other.ended);
  };
  const auto after = std::ranges::upper_bound(ended_, KeyOf(uid), {}, &EndedNumber::pod);
  if (after != ended_.begin() && std::prev(after)->pod == KeyOf(uid)) {
    take({std::prev(after)->interval, std::prev(after)->ended});
  }
  if (const auto known = known_.find(uid); known != known_.end()) take(known->second);
  if (const auto recent = recent_.find(uid); recent != recent_.end()) take(recent->second.last);
  return last;
}

int EarlierNumbers::NextOf(const PodUid& uid, int at_least) {
  const int next = std::max(at_least, LastOf(uid).number + 1);
  known_.erase(uid);
  return next;
}

void EarlierNumbers::KeepOnly(const std::vector<PodUid>& uids) {
  std::map<PodUid, Last> kept;
  for (const PodUid& uid : uids) {
    if (const Last last = LastOf(uid); last.number >= 0) kept[uid] = last;
  }
  for (const auto& [uid, known] : known_) {
    if (kept.contains(uid)) continue;
    const Last last = LastOf(uid);
    NoteRecent(uid, last.number, last.ended);
  }
  known_ = std::move(kept);
  if (ended_.size() > kMostRecent) {
    const auto last = ended_.begin() + kMostRecent;
    std::ranges::nth_element(ended_, last, [](const EndedNumber& left, const EndedNumber& right) {
      return std::tie(right.ended, right.pod, right.interval) <
             std::tie(left.ended, left.pod, left.interval);
    });
    ended_.erase(last, ended_.end());
  }
  ended_.shrink_to_fit();
  sorted_ = false;
}

}  // namespace tranche
