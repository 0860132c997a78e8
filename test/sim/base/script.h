// Everything the world does of its own will, one after another: an arrival, an edit, a crash, a
// lost answer. Each is numbered and may be left out, so that a failing run can be cut down to what
// it needs.
//
// An actor asks before it acts, and gets draws for the details of that one action. They depend on
// the seed, the action's name and its number alone, so that leaving one action out changes no
// other.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/draws.h"

namespace tranche::sim {

class Script {
 public:
  // "arrival#12": the twelfth action asked for under that name.
  using Id = std::string;

  explicit Script(uint64_t seed, std::set<Id> left_out = {})
      : draws_(seed), left_out_(std::move(left_out)) {}

  // nullopt: this action is left out.
  std::optional<Draws> Act(const std::string& name);
  // The same for what comes `parts` times in 10,000 only; ids are given to those that come.
  std::optional<Draws> ActByChance(const std::string& name, int parts);
  // What was done, in order.
  const std::vector<Id>& done() const { return done_; }

 private:
  struct Name {
    Draws chances;
    int64_t asked = 0;
    int64_t came = 0;
  };
  Name& NameOf(const std::string& name);

  const Draws draws_;
  const std::set<Id> left_out_;
  std::map<std::string, Name> names_;
  std::vector<Id> done_;
};

}  // namespace tranche::sim
