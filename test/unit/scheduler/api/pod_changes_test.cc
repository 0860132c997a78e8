// GET /api/v1/pods?since=: what came, went and became other between two looks.
#include "scheduler/api/lists/pod_changes.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using World = std::map<std::string, std::string>;  // by name: what is told of a pod

std::vector<PodView> ViewsOf(const World& world) {
  std::vector<PodView> pods;
  for (const auto& [name, told] : world) {
    PodView pod;
    pod.name = {"ns", name};
    pod.uid = PodUid("uid-" + name);
    pod.detail = told;
    pods.push_back(pod);
  }
  return pods;
}

PodChanges::Look See(PodChanges& changes, const World& world,
                     const std::optional<std::string>& since = std::nullopt) {
  return changes.See([&world] { return ViewsOf(world); },
                     [](const PodView& pod) { return pod.detail; }, since);
}

// "+a +b -c", or "all".
std::string Told(const PodChanges::Look& look) {
  if (look.complete) return "all";
  std::string text;
  for (std::size_t at = 0; at < look.pods.size(); ++at) {
    if (look.changed[at] != 0) text += (text.empty() ? "+" : " +") + look.pods[at].name.name;
  }
  for (const auto& gone : look.gone) text += (text.empty() ? "-" : " -") + gone.name.name;
  return text;
}

TEST(PodChangesTest, TellsWhatChangedSinceAnyEarlierLook) {
  PodChanges changes("p");
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
    EXPECT_EQ(Told(See(changes, worlds[5], since)), told) << since;
  }
  EXPECT_EQ(Told(See(changes, worlds[3], "p-4")), "+b +c -a -d");
}

TEST(PodChangesTest, VersionsOfOthersAndOfLongAgoHaveEverything) {
  PodChanges changes("p");
  const World one = {{"a", "1"}};
  See(changes, one);
  for (const char* since :
       {"", "p", "p-", "p-2", "q-1", "p-1x", "p--1", "p-99999999999999999999"}) {
    const PodChanges::Look look = See(changes, one, since);
    EXPECT_TRUE(look.complete) << since;
    EXPECT_EQ(look.version, "p-1");
    EXPECT_EQ(look.pods.size(), 1U);
  }
  EXPECT_EQ(Told(See(changes, one, "p-1")), "");
  // More went than are kept.
  World many;
  for (std::size_t i = 0; i <= PodChanges::kMostGone; ++i) many[std::to_string(i)] = "1";
  const std::string full = See(changes, many).version;
  EXPECT_EQ(See(changes, one).version, "p-3");
  EXPECT_EQ(Told(See(changes, one, full)), "all") << "one of those that went is forgotten";
  EXPECT_EQ(Told(See(changes, {}, "p-3")), "-a");
}

TEST(PodChangesTest, LabelsThatArentToldAreAChange) {
  PodChanges changes("p");
  std::vector<PodView> pods = ViewsOf({{"a", "1"}});
  const auto see = [&](const std::optional<std::string>& since) {
    return changes.See([&pods] { return pods; }, [](const PodView& pod) { return pod.detail; },
                       since);
  };
  const std::string first = see(std::nullopt).version;
  pods[0].labels = std::make_shared<const Labels>(Labels{{"team", "a"}});
  EXPECT_EQ(Told(see(first)), "+a");
  pods[0].labels = std::make_shared<const Labels>(Labels{{"team", "b"}});
  EXPECT_EQ(Told(see("p-2")), "+a");
  EXPECT_EQ(Told(see("p-3")), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
