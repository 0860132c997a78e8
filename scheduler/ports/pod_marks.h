// Annotations by which Tranche tells other controllers of the cluster something of a pod.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"

namespace tranche {

// One annotation and what it is to become; nullopt: it is not there.
struct PodMark {
  std::string key;
  std::optional<std::string> before;  // the condition
  std::optional<std::string> after;
  bool ours_alone = false;  // there is no condition: nobody else has a say in it
};

struct PodMarkWrite {
  PodName pod;
  PodUid uid;  // a precondition
  std::vector<PodMark> marks;
};

class PodMarks {
 public:
  virtual ~PodMarks() = default;
  // All of the marks or none. Where one of the annotations is not what it was said to be, nobody's
  // word is written over: kRejected with 409. They are there already: kDone. Best effort.
  virtual void MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
