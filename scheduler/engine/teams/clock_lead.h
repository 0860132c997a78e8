// How far our time is ahead of the cluster's, which stamps what the API server and kubelets tell:
// no more than is certain, so zero where they may agree. Negative: ours is behind.
//
// Externally synchronised. Cost: a handful of comparisons.
#pragma once

#include <algorithm>
#include <optional>

#include "topology/base/units.h"

namespace tranche {

class ClockLead {
 public:
  // At `now` by our clock it is some moment between the two by the cluster's.
  void Note(Instant earliest, Instant latest, Instant now) {
    lead_ = std::clamp(Millis{0}, Millis(now - latest), Millis(now - earliest));
  }
  // Our clock was set, by so much. Where nothing was told the two were the same before.
  void Step(Millis by) { lead_ += by; }
  Millis Now() const { return lead_; }
  // A time of the cluster's clock by ours, never in the future.
  std::optional<Instant> Ours(std::optional<Instant> told, Instant now) const {
    return told ? std::optional(std::min(*told + lead_, now)) : std::nullopt;
  }

 private:
  Millis lead_{0};
};

}  // namespace tranche
