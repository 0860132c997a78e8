#include "scheduler/engine/claims/claim_scores.h"

#include <algorithm>

namespace tranche {
namespace {

bool AsksTheSame(const dra::Claim& known, const dra::Claim* claim) {
  return known.requests == claim->requests && known.constraints == claim->constraints &&
         known.configs == claim->configs;
}

}  // namespace

const ClaimScores::Score& ClaimScores::Wish::Put(NodeId id, int64_t cost,
                                                 const std::vector<ModelCharge>& parts) {
  if (id >= scores_.size()) scores_.resize(std::size_t{id} + 1);
  const auto known = std::ranges::find(parts_, parts);
  Entry& entry = scores_[id];
  entry = {{cost, static_cast<int>(known - parts_.begin())}, true};
  if (known == parts_.end()) parts_.push_back(parts);
  return entry.score;
}

ClaimScores::Wish& ClaimScores::Of(std::span<const dra::Claim* const> claims) {
  ++asked_;
  for (Wish& wish : wishes_) {
    if (!std::ranges::equal(wish.claims_, claims, AsksTheSame)) continue;
    wish.used_ = asked_;
    return wish;
  }
  if (wishes_.size() == kMostWishes) {
    wishes_.erase(std::ranges::min_element(wishes_, {}, &Wish::used_));
  }
  Wish& wish = wishes_.emplace_back();
  wish.used_ = asked_;
  for (const dra::Claim* claim : claims) {
    dra::Claim& kept = wish.claims_.emplace_back();
    kept.requests = claim->requests;
    kept.constraints = claim->constraints;
    kept.configs = claim->configs;
  }
  return wish;
}

void ClaimScores::Outdate(NodeId id) {
  for (Wish& wish : wishes_) {
    if (id < wish.scores_.size()) wish.scores_[id].known = false;
  }
}

}  // namespace tranche
