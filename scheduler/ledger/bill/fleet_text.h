// What a node offers, how much is stranded and what a price is, as text in the notes of the
// ledger's entries.
//
// JSON, the same text for equal values, so that texts can be compared. Read back strictly: a text
// that was not written here is an error that names the field. Pure functions; cost O(text).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/prices.h"
#include "policy/spec.h"

namespace tranche::ledger {

// Longer ones are not entered.
inline constexpr std::size_t kMostNote = 8 * 1024;
// More GPUs than any machine has; what says so is damaged or wrong.
inline constexpr int64_t kMostGpusOfNode = 4096;
inline constexpr int64_t kMostStrandedMilli = 1'000'000'000;

// A node, or that it is gone.
struct NodeOffer {
  std::string node;
  std::vector<std::pair<std::string, int64_t>> gpus;  // model, count; empty: gone
  NodeTraits traits;
  friend bool operator==(const NodeOffer&, const NodeOffer&) = default;
};

// GPUs of one kind, that is of one model and of nodes that are paid for alike, that are free and
// that nobody is expected to use.
struct StrandedGpus {
  std::string model;
  NodeTraits traits;
  int64_t milli = 0;
  friend bool operator==(const StrandedGpus&, const StrandedGpus&) = default;
};

// A price in force, or that it is not any more.
struct PriceOffer {
  std::string name;
  bool gone = false;
  GpuPrice price;
};

// Is this a name of a node or price, or a GPU model, that can be written at all?
bool IsFleetName(std::string_view text);

// {"node":"n1","gpus":[{"model":"h200","count":8}],"pool":"p","capacity":"Spot",
//  "instanceType":"t"}. An instance type that is no label's value is left out.
// Requires: IsFleetName of the node and the models.
std::string NodeText(const NodeOffer& offer);
// {"metadata":{"name":"h200"},"spec":{...}}, of which the spec is the object's.
std::string PriceText(const GpuPrice& price);
// {"stranded":1250,"model":"h200","pool":"p","capacity":"Spot","instanceType":"t"}, in milli-GPU.
// Requires: IsFleetName of the model.
std::string StrandedText(const StrandedGpus& stranded);
// The same of none: the text that two of one kind have in common.
std::string KindText(std::string_view model, const NodeTraits& traits);
std::string GoneNodeText(std::string_view node);
std::string GonePriceText(std::string_view price);

absl::StatusOr<NodeOffer> ReadNodeText(std::string_view text);
absl::StatusOr<StrandedGpus> ReadStrandedText(std::string_view text);
absl::StatusOr<PriceOffer> ReadPriceText(std::string_view text);

}  // namespace tranche::ledger
