// What nodes cost: prices in force, as placement weighs them beside packing (ADR 0053).
//
// Nodes that every price means alike are one group. What a GPU of a group costs is worked out when
// the prices or policies change and when an hour ends or begins (Advance), so that a decision only
// looks it up. Externally synchronised, as the state is. Cost: Advance and Declare, groups x
// prices; GroupOf, a look-up in a map; RateOf, none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/policy_set.h"
#include "policy/prices.h"
#include "policy/spec.h"
#include "topology/base/units.h"

namespace tranche {

// Number of a group of nodes; 0: nobody says what they cost.
using PriceGroup = uint16_t;

class NodePrices {
 public:
  // Other prices or policies are in force. Where prices are others, all groups are void: every node
  // is to be asked about anew. True: they are void.
  bool Declare(const std::shared_ptr<const PolicySet>& set, const std::vector<GpuPolicy>& policies,
               Instant now);
  bool any() const { return set_ != nullptr && !set_->prices.empty(); }
  // Hours that began or ended are taken up. Without any, a comparison.
  void Advance(Instant now) {
    if (now >= until_) Reprice(now);
  }
  // When the next hour begins or ends; Instant::max(): none does.
  Instant until() const { return until_; }

  // `model`: lower case.
  PriceGroup GroupOf(const NodeTraits& traits, const std::string& model, Instant now);
  // What a GPU of each group costs under that policy, in milli-GPU of waste, by PriceGroup;
  // nullptr: money has no say. Good until a group is added or a price changes.
  const std::vector<int64_t>* RatesOf(std::size_t policy_index) const;
  // The price a GPU of the group has now; nullptr: none.
  const GpuPrice* PriceIn(PriceGroup group) const { return groups_[group].price; }

 private:
  struct Group {
    NodeTraits traits;
    std::string model;
    const GpuPrice* price = nullptr;
  };
  using Key = std::pair<std::string, std::string>;  // traits as text, model

  void Reprice(Instant now);
  void PriceGroupAt(Group& group, Instant now);
  int64_t RateOf(const Group& group, const GpuPolicy& policy) const;

  std::shared_ptr<const PolicySet> set_;
  std::vector<GpuPolicy> policies_;
  int64_t highest_ = 0;  // micros of the dearest price there is
  bool names_types_ = false;
  std::vector<Group> groups_ = std::vector<Group>(1);
  std::map<Key, PriceGroup> numbers_;
  std::vector<std::vector<int64_t>> rates_;  // by policy, then group
  Instant until_ = Instant::max();
};

}  // namespace tranche
