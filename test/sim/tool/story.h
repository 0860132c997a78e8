// A run as a person can read it: when, who, what, a line each.
//
// Thread rule: one thread. Cost: a line of text for each happening.
#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/check/finding.h"

namespace tranche::sim {

class Story {
 public:
  // How much of an object a line tells.
  static constexpr std::size_t kUsual = 160;
  explicit Story(std::size_t most = kUsual) : most_(most) {}
  void Hear(const Happening& happening);
  // Tells what concerns `about` (keys of pods and names of nodes; and what happened to processes),
  // or all of it. Findings stand where they were found.
  void Print(std::ostream& out, const std::set<std::string>& about, bool all,
             const std::vector<Finding>& findings) const;

 private:
  struct Line {
    SimTime at;
    std::string who;
    std::string what;
    std::set<std::string> about;  // empty: concerns everybody
  };
  const std::size_t most_;
  std::vector<Line> lines_;
};

}  // namespace tranche::sim
