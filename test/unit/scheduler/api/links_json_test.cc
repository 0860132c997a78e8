#include "scheduler/api/links_json.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "test/builders/machines.h"

namespace tranche {
namespace THIS_FILE {

using Json = nlohmann::json;
using Groups = std::vector<std::vector<int>>;

TEST(LinksJsonTest, GroupsAreTheGpusThatReachEachOtherOverNvlink) {
  struct Row {
    std::vector<std::vector<int>> nvlinks;
    Groups groups;
  };
  const std::vector<Row> rows = {
      {{{0}}, {}},
      {{{0, 0}, {0, 0}}, {}},
      {{{0, 4}, {4, 0}}, {{0, 1}}},
      // Two pairs, crossed; the last GPU alone.
      {{{0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 0, 0, 0}},
       {{0, 2}, {1, 3}}},
      // A chain, whose ends are joined through what lies between: 3-1, 1-2, 2-0.
      {{{0, 0, 1, 0}, {0, 0, 1, 1}, {1, 1, 0, 0}, {0, 1, 0, 0}}, {{0, 1, 2, 3}}},
  };
  for (const Row& row : rows) {
    const Machine machine = test::MakeMachine(row.nvlinks, std::vector<int>(row.nvlinks.size(), 0));
    EXPECT_EQ(NvlinkGroups(machine), row.groups) << row.nvlinks.size() << " GPUs";
  }
  EXPECT_EQ(NvlinkGroups(test::CubeMesh()), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

Json WrittenLinks(LinksJson& links, const NodeView& node) {
  std::string out = "{";
  links.Append(out, node);
  return Json::parse(out + "}")["nvlink"];
}

TEST(LinksJsonTest, SaysWhatIsKnownAndWhoSharesAMachineGetsTheSame) {
  LinksJson links;
  NodeView node;
  EXPECT_EQ(WrittenLinks(links, node), nullptr);
  node.machine = std::make_shared<MachineTable>(std::make_shared<const Machine>(test::CubeMesh()));
  const Json guessed = WrittenLinks(links, node);
  EXPECT_EQ(guessed["verified"], false);
  EXPECT_EQ(guessed["groups"], (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_NE(guessed["text"].get<std::string>().find("hybrid cube mesh"), std::string::npos);
  node.links_verified = true;
  const Json seen = WrittenLinks(links, node);
  EXPECT_EQ(seen["verified"], true);
  EXPECT_EQ(seen["text"], guessed["text"]);
}

}  // namespace THIS_FILE
}  // namespace tranche
