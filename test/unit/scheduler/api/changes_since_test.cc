// Lists with ?since=: what came, went and became other between two looks.
#include "scheduler/api/lists/changes_since.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using World = std::map<std::string, std::string>;  // by name: what is told of an entry
using Changes = ChangesSince<std::string>;

Changes::Look See(Changes& changes, const World& world,
                  const std::optional<std::string>& since = std::nullopt) {
  return changes.See(
      [&world] {
        std::vector<Changes::Entry> list;
        for (const auto& [name, told] : world) {
          list.push_back({name, std::hash<std::string>()(told)});
        }
        return list;
      },
      since);
}

// "+a +b -c", or "all".
std::string Told(Changes& changes, const World& world, const std::string& since) {
  const Changes::Look look = See(changes, world, since);
  if (look.complete) return "all";
  std::string text;
  std::size_t at = 0;
  for (const auto& [name, told] : world) {
    if (look.changed[at++] != 0) text += (text.empty() ? "+" : " +") + name;
  }
  for (const std::string& gone : look.gone) text += (text.empty() ? "-" : " -") + gone;
  return text;
}

TEST(ChangesSinceTest, TellsWhatChangedSinceAnyEarlierLook) {
  Changes changes("p");
  const World worlds[] = {
      {},
      {{"a", "1"}, {"b", "1"}, {"c", "1"}},
      {{"a", "1"}, {"b", "2"}, {"c", "1"}},
      {{"b", "2"}, {"c", "1"}},
      {{"b", "2"}, {"c", "1"}},  // nothing
      {{"a", "1"}, {"c", "2"}, {"d", "1"}},
  };
  std::vector<std::string> versions;
  for (const World& world : worlds) versions.push_back(See(changes, world).version);
  EXPECT_EQ(versions, (std::vector<std::string>{"p-0", "p-1", "p-2", "p-3", "p-3", "p-4"}));
  const std::pair<const char*, const char*> rows[] = {
      {"p-0", "+a +c +d -b"},
      {"p-1", "+a +c +d -b"},
      {"p-2", "+a +c +d -b"},
      {"p-3", "+a +c +d -b"},
      {"p-4", ""},
  };
  for (const auto& [since, told] : rows) {
    EXPECT_EQ(Told(changes, worlds[5], since), told) << since;
  }
  EXPECT_EQ(Told(changes, worlds[3], "p-4"), "+b +c -a -d");
}

TEST(ChangesSinceTest, VersionsOfOthersAndOfLongAgoHaveEverything) {
  Changes changes("p");
  const World one = {{"a", "1"}};
  See(changes, one);
  for (const char* since :
       {"", "p", "p-", "p-2", "q-1", "p-1x", "p--1", "p-99999999999999999999"}) {
    const Changes::Look look = See(changes, one, since);
    EXPECT_TRUE(look.complete) << since;
    EXPECT_EQ(look.version, "p-1");
  }
  EXPECT_EQ(Told(changes, one, "p-1"), "");
  // More went than are kept.
  World many;
  for (std::size_t i = 0; i <= Changes::kMostGone; ++i) many[std::to_string(i)] = "1";
  const std::string full = See(changes, many).version;
  EXPECT_EQ(See(changes, one).version, "p-3");
  EXPECT_EQ(Told(changes, one, full), "all") << "one of those that went is forgotten";
  EXPECT_EQ(Told(changes, {}, "p-3"), "-a");
}

TEST(ChangesSinceTest, OfEqualKeysTheFirstCounts) {
  Changes changes("p");
  const auto see = [&changes](std::vector<Changes::Entry> list, const char* since) {
    return changes.See([&list] { return list; }, since);
  };
  see({{"a", 1}, {"b", 2}}, "");
  const Changes::Look look = see({{"a", 1}, {"b", 2}, {"b", 3}, {"a", 4}}, "p-1");
  EXPECT_EQ(look.version, "p-1");
  EXPECT_EQ(look.changed, std::vector<char>({0, 0, 0, 0}));
}

}  // namespace THIS_FILE
}  // namespace tranche
