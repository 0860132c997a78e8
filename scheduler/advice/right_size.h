// Which running work asks for more than it uses, and what would do.
//
// Work is judged by its busiest hour and by the most memory it ever held, with a margin on both: a
// smaller device must hold a fifth more memory than was ever seen, and be busy for seven tenths of
// that hour at most. What is proposed has room now on a node of the same GPU model, by the
// placement rules, and takes the least of a GPU; all that is proposed has room together, so that
// nobody who follows waits. Gangs are left alone: how many they are is how they work. Pure. Cost:
// O(nodes + pods log pods), and for at most `most_looks` pods O(nodes) and 256 placements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/advice/use_history.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct RightSizeLimits {
  int64_t least_hours = 24;  // measured before anything is said of a pod
  // What is less is not worth the restart.
  MilliGpu least_saved = MilliGpu::Of(100);
  int most_entries = 100;
  int most_looks = 400;  // pods, those first that could save most
};

// What to ask for.
struct SmallerAsk {
  enum class Form : uint8_t { kGpus, kInstance, kFraction };
  Form form = Form::kGpus;
  int64_t gpus = 0;     // kGpus
  std::string profile;  // kInstance: canonical
  MilliGpu fraction;    // kFraction
  friend bool operator==(const SmallerAsk&, const SmallerAsk&) = default;
};
// "2 GPUs", "1g.10gb", "0.15 of a GPU".
std::string SizeText(const SmallerAsk& ask);
// How a pod asks for it: {"nvidia.com/mig-1g.10gb", "1"}, a limit; or {"tranche.dev/gpu-fraction",
// "0.15"}, an annotation.
struct AskText {
  std::string key;
  std::string value;
};
AskText RequestText(const SmallerAsk& ask);

struct RightSize {
  PodName pod;
  PodUid uid;
  NodeName node;
  std::string leaf;  // empty: no team
  int64_t hours = 0;
  int busiest_hour = 0;                  // permille, of the device that worked most
  std::optional<Mebibytes> most_memory;  // of the device that held most; nullopt: not told
  int64_t unused = 0;                    // devices that never did anything
  std::string holds;                     // as SizeText
  SmallerAsk would_do;
  MilliGpu saved;
};

// "holds 1 GPU; in 9 days its busiest hour was 4 % and the most memory 6.0 GiB: 1g.10gb would do,
// and leave 0.86 GPUs to others".
std::string WordsOf(const RightSize& entry);

struct RightSizeAdvice {
  std::vector<RightSize> entries;  // the most saved first, then by uid
  MilliGpu saved;                  // by all of them
  int64_t measuring = 0;           // pods that are measured
  int64_t measured = 0;            // of these, for long enough
  std::vector<std::string> notes;  // for people
};

// Of that pod; nullptr: nothing is said of it.
const RightSize* FindRightSize(const RightSizeAdvice& advice, const PodUid& uid);

RightSizeAdvice AdviseRightSizes(const AdviceCase& fleet, const UseHistory& history,
                                 const RightSizeLimits& limits);

}  // namespace tranche
