// One writes at a time: nobody writes who does not hold the lease, and epochs rise.
//
// Its model: the Lease as the API server has it. From the write that put somebody's name there on,
// until its name is taken away, that life of a process alone may write. An epoch that was led
// under, or is in a Binding, is one that nobody led under before. What was sent before its time was
// over may arrive later than that where something on the way holds it: then nothing but the API
// server's own conditions stand against it (ADR 0023). One who leads without a lease
// knows what its ledger says, if it has one, and goes on from the highest that records tell of.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

class LeaderChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;

 private:
  void Lease(const Happening& happening);
  // Sent by one who may write no more, and held on its way?
  bool WasHeld(const Happening& happening) const;

  bool elects_ = false;  // there is a lease
  std::string holder_;   // the life that wrote its name last; empty: nobody holds it
  SimTime since_{0};
  uint64_t newest_ = 0;
  std::map<std::string, SimTime> ended_;    // since when a life may not write
  std::map<std::string, uint64_t> epochs_;  // of lives that led
  std::map<std::string, int64_t> told_;     // the highest epoch of records when it began
};

}  // namespace tranche::sim::check
