// All checkers over one run: they listen to the history from its beginning, and look once more at
// its end.
//
// Thread rule: one thread. Cost: a few microseconds for a happening; the end reads ledgers.
#pragma once

#include <memory>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/check/checker.h"
#include "test/sim/check/finding.h"
#include "test/sim/check/truth.h"

namespace tranche::sim {

class Checkers {
 public:
  // Listens to `history`, which outlives this.
  Checkers(const Loop& loop, History& history, CheckOptions options);
  Checkers(const Checkers&) = delete;
  Checkers& operator=(const Checkers&) = delete;

  // Ten simulated minutes after all faults and arrivals stopped.
  void Final(const Ask& ask, const std::vector<std::string>& ledgers);
  // In the order they were found.
  const std::vector<Finding>& findings() const { return findings_; }
  const check::Truth& truth() const { return truth_; }

 private:
  const Loop& loop_;
  const CheckOptions options_;
  check::Truth truth_;
  std::vector<Finding> findings_;
  std::vector<std::unique_ptr<check::Checker>> checkers_;
};

}  // namespace tranche::sim
