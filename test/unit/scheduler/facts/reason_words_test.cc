// What reasons say of a pod is about a pod.
#include "scheduler/facts/reason_words.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tranche {
namespace THIS_FILE {

TEST(ReasonWords, APodIsNotSpokenOfAsANode) {
  std::set<std::string_view> seen;
  for (int i = 1; i < static_cast<int>(Reason::kCount); ++i) {
    const auto reason = static_cast<Reason>(i);
    const std::string_view text = TextOf(reason, SaidOf::kPod);
    EXPECT_FALSE(text.empty()) << i;
    EXPECT_TRUE(seen.insert(text).second) << text << " stands for two reasons";
    for (const char* of_one : {"the node ", "the node's", "of this style", "this node"}) {
      EXPECT_EQ(text.find(of_one), std::string_view::npos) << Describe(reason).code << ": " << text;
    }
    EXPECT_EQ(TextOf(reason, SaidOf::kNode), Describe(reason).text);
  }
  EXPECT_EQ(TextOf(Reason::kNoRoom, SaidOf::kPod), "no node has enough free GPU capacity");
  EXPECT_EQ(TextOf(Reason::kBudgetExhausted, SaidOf::kPod),
            "the team's GPU-hour budget is used up");
}

}  // namespace THIS_FILE
}  // namespace tranche
