// A pod is bound once, where its bind was asked for, and node and record are one write.
//
// Its model: of each pod the node it was given first, and the success that a bind verb told of.
#pragma once

#include <map>
#include <string>

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

class BindingChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;

 private:
  void Written(const Happening& happening);
  void Asked(const Happening& happening);
};

}  // namespace tranche::sim::check
