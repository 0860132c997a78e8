// What is expected beside what waits: how far the demand of the last days, half way between its
// mean and its peak, lies above the demand of now and the room that is free for it.
//
// Counted in cards and instances. Kinds bound to different lists of models are counted each by
// itself. Parts of cards are not expected of any geometry, but make whole cards wanted. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/advice/geometry_trial.h"
#include "topology/mig.h"

namespace tranche {

// The patterns of DemandKind::models, of which the product satisfies one. Empty: any.
bool AcceptsModel(std::string_view models, std::string_view product);

class ExpectedDemand {
 public:
  ExpectedDemand(const AdviceCase& fleet, const std::vector<TrialNode>& nodes);

  // Milli of expected demand that `after` serves and `before`, the same node, does not; may be
  // negative.
  int64_t Gain(const TrialNode& before, const TrialNode& after) const;
  void Commit(const TrialNode& before, const TrialNode& after);
  // Somebody wanted what a card of the product cut like this gives.
  bool WasWanted(std::string_view product, const Geometry& geometry) const;

 private:
  struct Need {
    std::string models;
    std::string profile;  // empty: whole cards
    int64_t units = 0;
    int64_t free = 0;
    int64_t milli = 0;  // of one
  };
  const AdviceCase* fleet_;
  std::vector<Need> needs_;
};

}  // namespace tranche
