// One law of the product, held against a run.
//
// A checker hears everything after the truth has heard it (truth.h), and keeps what else it needs
// in a model of its own. Thread rule: one thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/check/finding.h"
#include "test/sim/check/truth.h"

namespace tranche::sim::check {

class Checker {
 public:
  Checker(std::string name, const Truth& truth, const CheckOptions& options,
          std::vector<Finding>& findings)
      : truth_(truth), options_(options), name_(std::move(name)), findings_(findings) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  virtual ~Checker() = default;

  virtual void Hear(const Happening& /*happening*/) {}
  virtual void AtEnd(const Ending& /*ending*/) {}

 protected:
  // Of one thing the first fault alone is told: what follows from it would hide it.
  void Found(SimTime at, const std::string& about, std::string text) {
    if (told_.insert(about).second) {
      findings_.push_back({name_, about, std::move(text), at});
    }
  }

  const Truth& truth_;
  const CheckOptions& options_;

 private:
  const std::string name_;
  std::vector<Finding>& findings_;
  std::set<std::string> told_;
};

}  // namespace tranche::sim::check
