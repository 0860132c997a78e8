#include "scheduler/scoring/span_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tranche {
namespace THIS_FILE {

TEST(SpanTableTest, NumbersSequencesInTheOrderTheyAreMet) {
  SpanTable table;
  std::map<std::vector<uint16_t>, uint32_t> expected;
  for (uint32_t i = 0; i < 20'000; ++i) {
    // Few values and several lengths: prefixes of each other and repetitions abound.
    std::vector<uint16_t> words(i % 5);
    for (std::size_t w = 0; w < words.size(); ++w) {
      words[w] = static_cast<uint16_t>(i * 2654435761U >> (28 - 4 * w) & 15U);
    }
    const auto [at, fresh] = expected.emplace(words, static_cast<uint32_t>(expected.size()));
    EXPECT_EQ(table.Intern(words), std::pair(at->second, fresh));
  }
  EXPECT_EQ(table.size(), expected.size());
  for (const auto& [words, number] : expected) {
    EXPECT_TRUE(std::ranges::equal(table[number], words));
  }
  table.Clear();
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.Intern(std::vector<uint16_t>{7}), std::pair(0U, true));
}

}  // namespace THIS_FILE
}  // namespace tranche
