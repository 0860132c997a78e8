// What has changed of a list since somebody looked, so that one of many thousands need not be sent
// whole every few seconds.
//
// Each look at all of it has a version. An entry has the version of the look that found it new or
// other than before, and so has one that was found gone. Versions are good within one process.
//
// Thread rule: any thread; looks come one after another. Memory: the key and two numbers for each
// entry, and for kMostGone of those that went. Cost of a look: one pass over the list.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tranche {

// That of a process, at random; letters and digits.
std::string NameOfProcess();
// The number of a version "PROCESS-NUMBER"; nullopt: the text is none of this process.
std::optional<uint64_t> NumberOfVersion(std::string_view text, std::string_view process);

// Keys have a total order. Lists ascend by it; of equal ones the first counts.
template <typename Key>
class ChangesSince {
 public:
  static constexpr std::size_t kMostGone = 16'384;

  // `process`: tells versions of this process from others'.
  explicit ChangesSince(std::string process) : process_(std::move(process)) {}

  struct Entry {
    Key key;
    uint64_t digest = 0;  // of all that is told of it
  };
  struct Look {
    std::string version;
    bool complete = true;       // nobody can say what changed since: all are to be sent
    std::vector<char> changed;  // of each entry, where that is known: whether it is new or other
    std::vector<Key> gone;      // likewise, ascending
  };
  // `read`: all there is. `since`: the version of an earlier look; one that is none of ours, or too
  // old, is as none.
  Look See(const std::function<std::vector<Entry>()>& read, const std::optional<std::string>& since)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    const std::vector<Entry> list = read();
    Compare(list);
    Look look;
    look.version = fmt::format("{}-{}", process_, version_);
    const std::optional<uint64_t> from = since ? ReadVersion(*since) : std::nullopt;
    if (!from) return look;
    look.complete = false;
    look.changed.reserve(list.size());
    auto known = known_.begin();
    for (const Entry& entry : list) {
      while (known != known_.end() && known->key < entry.key) ++known;
      const bool found = known != known_.end() && known->key == entry.key;
      look.changed.push_back(found && known->version > *from);
    }
    for (const Gone& one : gone_) {
      // One that went and came back is there.
      const bool back = std::ranges::binary_search(known_, one.key, {}, &Known::key);
      if (one.version > *from && !back) look.gone.push_back(one.key);
    }
    std::ranges::sort(look.gone);
    look.gone.erase(std::unique(look.gone.begin(), look.gone.end()), look.gone.end());
    return look;
  }

 private:
  struct Known {
    Key key;
    uint64_t digest = 0;
    uint64_t version = 0;
  };
  struct Gone {
    Key key;
    uint64_t version = 0;
  };

  // Both lists ascend, so one pass over the two tells what came, went and became other.
  void Compare(const std::vector<Entry>& list) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t next = version_ + 1;
    bool other = false;
    std::vector<Key> lost;
    std::vector<Known> now;
    now.reserve(list.size());
    auto before = known_.begin();
    for (const Entry& entry : list) {
      // Pages of a list are copied one after another: what moved meanwhile may come twice.
      if (!now.empty() && entry.key <= now.back().key) continue;
      Known found = {entry.key, entry.digest, next};
      while (before != known_.end() && before->key < found.key) {
        lost.push_back(std::move((before++)->key));
      }
      const bool same = before != known_.end() && before->key == found.key;
      if (same && before->digest == found.digest) found.version = before->version;
      if (same) ++before;
      other = other || found.version == next;
      now.push_back(std::move(found));
    }
    while (before != known_.end()) lost.push_back(std::move((before++)->key));
    known_ = std::move(now);
    if (other || !lost.empty()) version_ = next;
    for (Key& key : lost) gone_.push_back({std::move(key), next});
    while (gone_.size() > kMostGone) {
      forgotten_ = gone_.front().version;
      gone_.pop_front();
    }
  }

  // nullopt: nobody can say what changed since.
  std::optional<uint64_t> ReadVersion(std::string_view text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<uint64_t> version = NumberOfVersion(text, process_);
    if (!version || *version < forgotten_ || *version > version_) return std::nullopt;
    return version;
  }

  const std::string process_;
  absl::Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;  // what went up to that look is not known
  std::vector<Known> known_ ABSL_GUARDED_BY(mutex_);
  std::deque<Gone> gone_ ABSL_GUARDED_BY(mutex_);  // versions ascend
};

}  // namespace tranche
