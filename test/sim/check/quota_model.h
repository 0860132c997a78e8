// Teams and what they may use, by the recurrences of the quota model read literally: from the
// objects as they are stored, from scratch for every question. Slow and obviously right.
//
// Amounts in the form gpus alone are understood; where a quota says slices or memory the model does
// not know, and says so.
//
// A plain value; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quota/tree/charge.h"
#include "test/property/quota_oracle.h"
#include "test/sim/check/truth.h"

namespace tranche::sim::check {

// What a pod holds of GPUs of one model.
struct Holding {
  std::string model;  // with "@POOL" on nodes of a pool
  Charge charge;
};

// The one leaf whose selector has the namespace's labels; empty: none, or several.
std::string OwnerOf(const Objects& quotas, const Objects& namespaces, const std::string& ns);

class QuotaModel {
 public:
  using Objects = check::Objects;

  // GPUQuotas and Namespaces by name.
  QuotaModel(const Objects& quotas, const Objects& namespaces);

  bool known() const { return known_; }
  bool empty() const { return names_.empty(); }
  std::string LeafOf(const std::string& ns) const { return OwnerOf(quotas_, namespaces_, ns); }
  bool Has(const std::string& quota) const { return Number(quota) >= 0; }
  // Does the leaf refuse what it may not have?
  bool Enforces(const std::string& leaf) const;
  // Does the GPUBudget meter work of the leaf, as far as quotas tell?
  bool IsBudgetOf(const Json& budget, const std::string& leaf) const {
    const std::string quota = TextAt(budget, {"spec", "quotaRef"});
    return quota.empty() || CommonAncestor(leaf, quota) == quota;
  }
  // The nearest common ancestor; empty: none.
  std::string CommonAncestor(const std::string& a, const std::string& b) const;

  void Use(const std::string& quota, const Holding& holding);
  // May the leaf use so much more? Smaller of the model's line and `any`, each dimension by itself;
  // a dimension of which nothing is asked refuses nothing.
  bool Admits(const std::string& leaf, const Holding& more) const;
  // Does it stay within the leaf's own nominal with so much more?
  bool WithinNominal(const std::string& leaf, const Holding& more) const;
  // The line that a charge of that name (model, or model@pool) counts on for the quota's tree: of
  // the model in the pool, of the pool, of the model, the first that somebody has.
  std::string LineOf(const std::string& quota, const std::string& charged) const;
  // The leaf's nominal of a line ("any" too) in one dimension; nullopt: no line of its tree says.
  std::optional<int64_t> Nominal(const std::string& leaf, const std::string& line,
                                 Dimension dimension) const;

 private:
  // Per line, in both dimensions.
  using Line = std::map<Dimension, Oracle>;
  void CutCircles();
  int Number(const std::string& quota) const;
  void AddLine(const std::string& name);
  void ImplyAny();
  bool IsLimited(int quota, const std::string& line) const;
  std::vector<std::string> LinesOf(int leaf, const std::string& model) const;

  bool known_ = true;
  std::vector<std::string> names_;
  std::vector<Json> specs_;
  Oracle shape_;                       // parents and children alone
  std::map<std::string, Line> lines_;  // by model, model@pool, any@pool, and "any"
  std::map<std::string, std::vector<bool>> defined_;
  Objects quotas_;
  Objects namespaces_;
};

// What the record takes, by the model and the card of its node: what a share's memory is of the
// card's, and as much of its compute where memory alone was asked for; MIG by slices. nullopt: the
// node tells no model, or the board is unknown.
std::optional<Holding> HoldingOf(const Record& record, const Json& node);
// The same of a pod that has a node, also of one that another scheduler placed: the whole cards it
// asks for, at most. What it got when it was bound is charged on, whatever machine has taken the
// node's name since.
std::optional<Holding> HoldingOf(const PodLife& pod, const Json& node);
// What is kept on the node for a pod that may come there, wherever it was bound in the end: the
// whole cards it asks for, at most.
std::optional<Holding> KeptHolding(const PodLife& pod, const Json& node);
// What a claim's devices take, by model: whole cards, and MIG by slices. nullopt: no slice told
// what one of them is.
std::optional<std::vector<Holding>> HoldingsOf(const Allocation& allocation);

}  // namespace tranche::sim::check
