// Names and places that cannot be swapped.
#include "topology/base/ids.h"

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <type_traits>
#include <unordered_set>

namespace tranche {
namespace THIS_FILE {

using RowId = Index<struct RowTag, int32_t>;
using ColumnId = Index<struct ColumnTag>;

static_assert(!std::convertible_to<RowId, ColumnId>);
static_assert(!std::convertible_to<int, RowId>);
static_assert(!std::equality_comparable_with<RowId, ColumnId>);
static_assert(!std::convertible_to<NodeName, GpuUuid>);
static_assert(sizeof(ColumnId) == sizeof(uint32_t) && std::is_trivially_copyable_v<ColumnId>);

TEST(IndexTest, IndexesArraysAndCounts) {
  constexpr std::array<int, 3> values = {10, 20, 30};
  int sum = 0;
  for (RowId row; row < values.size(); ++row) sum += values[row];
  EXPECT_EQ(sum, 60);
  EXPECT_EQ(RowId(2).number(), 2);
}

TEST(IndexTest, NoneSortsBeforeTheFirst) {
  constexpr RowId none{-1};
  EXPECT_LT(none, RowId(0));
  EXPECT_EQ(none.number(), -1);
  EXPECT_NE(none, RowId());
}

TEST(IndexTest, HashesAsItsNumber) {
  EXPECT_EQ(std::hash<ColumnId>()(ColumnId(7)), std::hash<uint32_t>()(7));
  EXPECT_TRUE((std::unordered_set<ColumnId>{ColumnId(1), ColumnId(2)}.contains(ColumnId(2))));
}

TEST(NamespacedNameTest, SortsByNamespaceFirstAndReadsAsKubernetesWritesIt) {
  EXPECT_LT((NamespacedName{"a", "z"}), (NamespacedName{"b", "a"}));
  EXPECT_EQ((NamespacedName{"team", "pod"}.str()), "team/pod");
}

}  // namespace THIS_FILE
}  // namespace tranche
