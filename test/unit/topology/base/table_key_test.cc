#include "topology/base/table_key.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

std::string KeyOf(const std::vector<std::string>& texts) {
  std::string key;
  for (const std::string& text : texts) AppendToKey(key, text);
  return key;
}

TEST(TableKeyTest, NeighboursCannotBeTakenForEachOther) {
  EXPECT_NE(KeyOf({"ab", "c"}), KeyOf({"a", "bc"}));
  EXPECT_NE(KeyOf({"", "a"}), KeyOf({"a", ""}));
  EXPECT_EQ(KeyOf({"ab", "c"}), KeyOf({"ab", "c"}));
}

TEST(TableKeyTest, ANumberAlwaysHasEightBytes) {
  std::string key;
  AppendToKey(key, 1);
  AppendToKey(key, -1);
  EXPECT_EQ(key.size(), 16u);
}

}  // namespace THIS_FILE
}  // namespace tranche
