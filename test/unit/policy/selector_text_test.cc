#include "policy/selector_text.h"

#include <string>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

TEST(SelectorText, MatchesAsKubectlDoes) {
  const Labels labels = {
      {"team", "a"}, {"tier", "gold"}, {"example.com/gen", "7"}, {"empty", ""}, {"in", "in"}};
  const struct {
    const char* text;
    bool matches;
  } rows[] = {
      {"", true},
      {"  ", true},
      {"team=a", true},
      {"team==a", true},
      {" team = a ", true},
      {"team=b", false},
      {"team!=a", false},
      {"team!=b", true},
      {"owner!=b", true},  // without the label, too
      {"owner=", false},
      {"empty=", true},
      {"empty=,team=a", true},
      {"team", true},
      {"owner", false},
      {"!owner", true},
      {"! team", false},
      {"tier in (silver, gold)", true},
      {"tier in(gold)", true},
      {"tier in (silver)", false},
      {"tier notin (silver,bronze)", true},
      {"tier notin (gold)", false},
      {"owner notin (a)", true},
      {"owner in (a)", false},
      {"empty in (,)", true},
      {"tier in (,gold)", true},
      {"in in (in)", true},  // words of the grammar are names, too
      {"in", true},
      {"notin", false},
      {"example.com/gen>6", true},
      {"example.com/gen > 7", false},
      {"example.com/gen<8", true},
      {"example.com/gen<-8", false},
      {"team>1", false},  // no number
      {"owner<1", false},
      {"team=a,tier in (gold),!owner,example.com/gen>1,empty", true},
      {"team=a,tier in (gold),!owner,example.com/gen>9,empty", false},
  };
  for (const auto& [text, matches] : rows) {
    const auto selector = ParseLabelSelector(text);
    ASSERT_TRUE(selector.ok()) << text << ": " << selector.status();
    EXPECT_EQ(selector->Matches(labels), matches) << text;
  }
}

TEST(SelectorText, WhatIsWrongIsSaidWithItsPlace) {
  const std::string long_word(64, 'a');
  const struct {
    std::string text;
    std::string error;
  } rows[] = {
      {",", "expected the key of a label at byte 0, found \",\""},
      {"team=a,", "expected the key of a label at byte 7, found the end"},
      {"team=a tier=b", "expected a comma or the end at byte 7, found \"tier\""},
      {"team in", "expected ( behind in and notin at byte 7, found the end"},
      {"team in a", "expected ( behind in and notin at byte 8, found \"a\""},
      {"team in ()", "expected at least one value at byte 9, found \")\""},
      {"team in (a b)", "expected a comma or ) at byte 11, found \"b\""},
      {"team in (a", "expected a comma or ) at byte 10, found the end"},
      {"team a", "expected one of = == != in notin < >, a comma or the end at byte 5, found \"a\""},
      {"team=(a)", "expected the value of a label at byte 5, found \"(\""},
      {"team===a", "expected the value of a label at byte 6, found \"=\""},
      {"!team=a", "expected a comma or the end at byte 5, found \"=\""},
      {"!", "expected the key of a label at byte 1, found the end"},
      {"gen>a", "expected a whole number at byte 4, found \"a\""},
      {"gen<", "expected a whole number at byte 4, found the end"},
      {"-a", "expected the key of a label, as example.com/team at byte 0, found \"-a\""},
      {"a/b/c", "expected the key of a label, as example.com/team at byte 0, found \"a/b/c\""},
      {"/a", "expected the key of a label, as example.com/team at byte 0, found \"/a\""},
      {long_word,
       "expected the key of a label, as example.com/team at byte 0, found \"" + long_word + "\""},
      {"team=" + long_word, "expected the value of a label at byte 5, found \"" + long_word + "\""},
      {"team=a_", "expected the value of a label at byte 5, found \"a_\""},
      {std::string(20'000, ' '), "expected at most 16384 bytes, found 20000"},
  };
  for (const auto& [text, error] : rows) {
    EXPECT_EQ(std::string(ParseLabelSelector(text).status().message()), error) << text;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
