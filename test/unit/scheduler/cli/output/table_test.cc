// Tables and texts as a terminal of some width gets them.
#include "scheduler/cli/output/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tranche {
namespace THIS_FILE {

Table Verdicts() {
  Table table({"NODE", "RANK", "FITS", "BECAUSE"});
  table.Add({"h100-a", "10", "yes", "-"});
  table.Add({"a100-mig", "", "no", "the node's GPU model does not match"});
  return table;
}

TEST(TableTest, LinesStayWholeWithoutATerminal) {
  EXPECT_EQ(Verdicts().Text(),
            "NODE      RANK  FITS  BECAUSE\n"
            "h100-a      10  yes   -\n"
            "a100-mig        no    the node's GPU model does not match\n");
}

TEST(TableTest, TheWidestColumnOfWordsIsBroken) {
  EXPECT_EQ(Verdicts().Text({45, false}),
            "NODE      RANK  FITS  BECAUSE\n"
            "h100-a      10  yes   -\n"
            "a100-mig        no    the node's GPU model\n"
            "                      does not match\n");
  EXPECT_EQ(Verdicts().Text({200, false}), Verdicts().Text());
}

TEST(TableTest, NoWordIsBroken) {
  Table table({"A", "B"});
  table.Add({"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"});
  EXPECT_EQ(table.Text({40, false}),
            "A                                    B\n"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbb\n");
}

TEST(TableTest, ColourChangesNoText) {
  const std::string coloured = Verdicts().Text({45, true});
  EXPECT_NE(coloured.find("\033[1mNODE\033[0m"), std::string::npos) << coloured;
  EXPECT_NE(coloured.find("\033[32myes\033[0m"), std::string::npos) << coloured;
  EXPECT_NE(coloured.find("\033[31mno\033[0m"), std::string::npos) << coloured;
  std::string plain;
  for (std::size_t at = 0; at < coloured.size(); ++at) {
    if (coloured[at] == '\033') {
      at = coloured.find('m', at);
    } else {
      plain += coloured[at];
    }
  }
  EXPECT_EQ(plain, Verdicts().Text({45, false}));
}

TEST(TableTest, ControlCharactersDoNotReachTheTerminal) {
  Table table({"A"});
  table.Add({"x\033[31m\ny"});
  EXPECT_EQ(table.Text(), "A\nx?[31m?y\n");
}

TEST(TerminalTest, LinesOfFactsAreHarmless) {
  const struct {
    const char* text;
    const char* shown;
  } rows[] = {
      {"quota \x1b]0;owned\x07\x1b[2J", "leaf     quota ?]0;owned??[2J\n"},
      {"two\nlines\tof\x7f", "leaf     two?lines?of?\n"},
      {"\xc2\x9b"
       "31m",
       "leaf     ?31m\n"},
      {"Zürich \xc2\xa0 \xe2\x80\x9c", "leaf     Zürich \xc2\xa0 \xe2\x80\x9c\n"},
      {"ends in \xc2", "leaf     ends in \xc2\n"},
  };
  for (const auto& [text, shown] : rows) {
    std::ostringstream out;
    PrintLabelled("leaf", text, out);
    EXPECT_EQ(out.str(), shown);
  }
}

TEST(TerminalTest, TravelsWithTheStream) {
  std::ostringstream out;
  EXPECT_EQ(TerminalOf(out).columns, 0U);
  SetTerminal(out, {120, true});
  std::ostringstream page;
  page.copyfmt(out);
  EXPECT_EQ(TerminalOf(page).columns, 120U);
  EXPECT_TRUE(TerminalOf(page).colour);
}

TEST(TerminalTest, TextIsBrokenBetweenWords) {
  EXPECT_EQ(Wrapped("one two three", 0, 0), "one two three");
  EXPECT_EQ(Wrapped("one two three", 0, 8), "one two\nthree");
  EXPECT_EQ(Wrapped("one two three", 4, 8), "one\n    two\n    three");
  EXPECT_EQ(WrappedLines("a   one two\nb   one\n", 4, 8), "a   one\n    two\nb   one\n");
  std::ostringstream out;
  SetTerminal(out, {20, false});
  PrintLabelled("reason", "the team's GPUs are in use", out);
  EXPECT_EQ(out.str(), "reason   the team's\n         GPUs are in\n         use\n");
}

}  // namespace THIS_FILE
}  // namespace tranche
