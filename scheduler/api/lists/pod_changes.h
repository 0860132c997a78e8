// What has changed of the pods since somebody looked, so that a list of many thousands need not be
// sent whole every few seconds.
//
// Each look at all pods has a version. A pod has the version of the look that found it new or
// other than before, and so has one that was found gone. Versions are good within one process.
//
// Thread rule: any thread; looks come one after another. Memory: name, uid and a number for each
// pod, and for kMostGone of those that went. Cost of a look: all pods are copied and encoded.
#pragma once

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
#include "scheduler/engine/state/views.h"

namespace tranche {

class PodChanges {
 public:
  static constexpr std::size_t kMostGone = 16'384;

  // `process`: tells versions of this process from others'; letters and digits.
  explicit PodChanges(std::string process) : process_(std::move(process)) {}

  struct Key {
    PodName name;
    PodUid uid;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Look {
    std::string version;
    bool complete = true;            // nobody can say what changed since: all are to be sent
    std::vector<PodView> pods;       // all
    std::vector<std::string> texts;  // of each
    std::vector<char> changed;       // of each, where that is known: whether it is new or other
    std::vector<Key> gone;           // likewise, ascending
  };
  // `read`: all pods by namespace, name and uid. `encode`: what is told of one. `since`: the
  // version of an earlier look; one that is none of ours, or too old, is as none.
  Look See(const std::function<std::vector<PodView>()>& read,
           const std::function<std::string(const PodView&)>& encode,
           const std::optional<std::string>& since) ABSL_LOCKS_EXCLUDED(mutex_);

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
  void Compare(const Look& look) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // nullopt: nobody can say what changed since.
  std::optional<uint64_t> ReadVersion(std::string_view text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string process_;
  absl::Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;  // what went up to that look is not known
  std::vector<Known> known_ ABSL_GUARDED_BY(mutex_);
  std::deque<Gone> gone_ ABSL_GUARDED_BY(mutex_);  // versions ascend
};

// That of a process, at random.
std::string NameOfProcess();

}  // namespace tranche
