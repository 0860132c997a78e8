// scheduler/docs/team-guide.md lists every reason, in order, with the text kube-scheduler shows.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/facts/reason.h"
#include "test/fakes/places.h"

namespace tranche {
namespace THIS_FILE {

using Row = std::pair<std::string, std::string>;  // code, text

// Rows "| `Code` | text | advice |" of the section "## Every reason".
std::vector<Row> ReadRows() {
  std::ifstream guide(fakes::SourceFolder() + "/scheduler/docs/team-guide.md");
  EXPECT_TRUE(guide.is_open());
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(guide, line);) {
    if (line.starts_with("## ")) inside = line == "## Every reason";
    if (!inside || !line.starts_with("| `")) continue;
    const size_t code_end = line.find("` | ", 3);
    const size_t text_end = line.find(" | ", code_end + 4);
    EXPECT_NE(code_end, std::string::npos) << line;
    EXPECT_NE(text_end, std::string::npos) << line;
    if (code_end == std::string::npos || text_end == std::string::npos) continue;
    EXPECT_GT(line.size(), text_end + 6)
        << "expected what the team can do, found nothing: " << line;
    rows.emplace_back(line.substr(3, code_end - 3),
                      line.substr(code_end + 4, text_end - code_end - 4));
  }
  return rows;
}

TEST(TeamGuide, ListsEveryReason) {
  std::vector<Row> expected;
  for (int i = 1; i < static_cast<int>(Reason::kCount); ++i) {
    const ReasonText& reason = Describe(static_cast<Reason>(i));
    expected.emplace_back(reason.code, reason.text);
  }
  EXPECT_EQ(ReadRows(), expected);
}

}  // namespace THIS_FILE
}  // namespace tranche
