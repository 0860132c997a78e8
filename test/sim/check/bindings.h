// A pod is bound once, where its bind was asked for, and node and record are one write. A bind that
// the API server refused is over: two minutes later nothing is under way, but where it was tried
// again since.
//
// Its model: of each pod the node it was given first, the success that a bind verb told of, and
// when its Binding was refused last.
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
  void Refused(const Happening& happening);

  std::map<std::string, SimTime> refused_;  // by uid, by the leader that is there now
};

}  // namespace tranche::sim::check
