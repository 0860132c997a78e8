// What a pod's spec demands of its node beside devices: the part of kube-scheduler's own filters
// that our planner must respect, since it chooses nodes kube-scheduler has not offered.
//
// Covers spec.nodeSelector, required node affinity (matchExpressions and matchFields metadata.name)
// and tolerations. Plain values. What is not covered (CPU, volumes, affinity between pods) is found
// out by trying: see the planner's `Unclaimed`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/selector.h"

namespace tranche {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // "NoSchedule", "NoExecute"; others bind nobody
  friend bool operator==(const Taint&, const Taint&) = default;
};

struct Toleration {
  std::string key;  // empty with exists: all
  bool exists = false;
  std::string value;
  std::string effect;  // empty: all
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

struct NodeTerm {
  enum class Operator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  bool is_field = false;  // metadata.name
  Operator op = Operator::kIn;
  std::vector<std::string> values;
  friend bool operator==(const NodeTerm&, const NodeTerm&) = default;
};

struct NodeConstraints {
  Labels selector;                              // all of them
  std::vector<std::vector<NodeTerm>> affinity;  // any of these, all of its terms; empty: no demand
  bool has_affinity = false;  // required affinity is there; with no usable term it matches nothing
  std::vector<Toleration> tolerations;
  friend bool operator==(const NodeConstraints&, const NodeConstraints&) = default;
};

// A node's labels in one piece of text, as small as they can be kept by the thousand.
class LabelText {
 public:
  LabelText() = default;
  explicit LabelText(const Labels& labels);
  // nullptr-like: data() == nullptr when the label is absent.
  std::string_view Find(std::string_view key) const;
  // The same for selectors. Not longer than this.
  FindLabel Finder() const;
  friend bool operator==(const LabelText&, const LabelText&) = default;

 private:
  std::string text_;  // key \0 value \0, ascending
};

// Do node selector and required affinity allow the node, as kube-scheduler's NodeAffinity judges?
bool Selects(const NodeConstraints& constraints, std::string_view node, const LabelText& labels);
// The first taint that keeps such a pod away, as TaintToleration judges; nullptr: none does.
const Taint* FirstUntolerated(const std::vector<Toleration>& tolerations,
                              const std::vector<Taint>& taints);
// Both together. Without constraints a pod still tolerates no taint.
bool Suits(const NodeConstraints& constraints, std::string_view node, const LabelText& labels,
           const std::vector<Taint>& taints);
bool Tolerates(const std::vector<Toleration>& tolerations, const std::vector<Taint>& taints);

}  // namespace tranche
