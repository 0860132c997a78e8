#include "scheduler/cli/output/suggestion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

TEST(SuggestionTest, ClosestWordOrNone) {
  const std::vector<std::string> words = {"explain", "nodes",      "quota",           "reclaims",
                                          "top",     "completion", "scheduler-config"};
  const std::pair<const char*, const char*> table[] = {
      {"expalin", "explain"},
      {"exlpain", "explain"},
      {"Nodes", "nodes"},
      {"node", "nodes"},
      {"nods", "nodes"},
      {"qouta", "quota"},
      {"tpo", "top"},
      {"tops", "top"},
      {"sched", "scheduler-config"},
      {"comp", "completion"},
      {"fly", ""},
      {"xyz", ""},
      {"", ""},
      {"apply", ""},
      {"quotas!!", ""},
  };
  for (const auto& [word, wanted] : table) EXPECT_EQ(ClosestWord(word, words), wanted) << word;
  EXPECT_EQ(DidYouMean("expalin", words), "; did you mean explain?");
  EXPECT_EQ(DidYouMean("fly", words), "");
  EXPECT_EQ(ClosestWord(std::string(100'000, 'x'), words), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
