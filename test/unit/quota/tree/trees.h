// Quota trees for tests, in whole GPUs.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "quota/tree/quota_tree.h"

namespace tranche::test {

inline Charge Gpus(int64_t count) { return {count * kQuantaPerGpu, count * kQuantaPerGpu}; }

inline LineLimits Limits(int64_t nominal, std::optional<int64_t> borrow = std::nullopt,
                         std::optional<int64_t> lend = std::nullopt) {
  LineLimits limits{.nominal = Gpus(nominal)};
  if (borrow.has_value()) limits.borrow_limit = Gpus(*borrow);
  if (lend.has_value()) limits.lend_limit = Gpus(*lend);
  return limits;
}

inline QuotaTree Tree(std::vector<QuotaNode> nodes) {
  absl::StatusOr<QuotaTree> tree = QuotaTree::Build(std::move(nodes));
  EXPECT_TRUE(tree.ok()) << tree.status();
  return *std::move(tree);
}

}  // namespace tranche::test
