// Names and their numbers, and lists of names looked up at once.
#include "scheduler/index/node_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/base/text_hash.h"

namespace tranche {
namespace THIS_FILE {

std::vector<NodeId> FindAll(NodeNames& names, const std::vector<std::string>& list) {
  const std::vector<std::string_view> views(list.begin(), list.end());
  std::vector<NodeId> ids;
  names.FindAll(views, ids);
  return ids;
}

// Pairs of different names whose hashes under seed 0 agree in all bits that the table keeps.
std::vector<std::pair<std::string, std::string>> CollidingNames() {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::unordered_map<uint32_t, std::string> met;
  for (int i = 0; i < 300'000; ++i) {
    const std::string name = "gpu-worker-" + std::to_string(i);
    const auto [at, fresh] = met.emplace(static_cast<uint32_t>(HashText(name, 0)), name);
    if (!fresh) pairs.emplace_back(at->second, name);
  }
  return pairs;
}

TEST(NodeNames, NumbersStayAndThoseForgottenAreGivenOutAgain) {
  NodeNames names;
  const NodeId a = names.Intern(NodeName("a")), b = names.Intern(NodeName("b"));
  EXPECT_NE(a, b);
  EXPECT_EQ(names.Intern(NodeName("a")), a);
  EXPECT_EQ(names.Find("b"), b);
  EXPECT_EQ(names.Find("c"), kNoNode);
  names.Forget(a);
  EXPECT_EQ(names.Find("a"), kNoNode);
  EXPECT_EQ(names.Find("b"), b);
  EXPECT_EQ(names.Intern(NodeName("c")), a);
  EXPECT_EQ(names.name(a), NodeName("c"));
  EXPECT_EQ(names.rank(b), 0U);
  EXPECT_EQ(names.rank(a), 1U);
}

TEST(NodeNames, AListIsAnsweredInItsOrderAndANameThatComesAgainIsMarked) {
  NodeNames names;
  const NodeId a = names.Intern(NodeName("a")), b = names.Intern(NodeName("b"));
  // More lists than the counter of lists has left before it goes round.
  for (int round = 0; round < 40; ++round) {
    EXPECT_EQ(FindAll(names, {"b", "x", "a", "b", "x", "", "a"}),
              (std::vector<NodeId>{b, kNoNode, a, kNamedBefore, kNoNode, kNoNode, kNamedBefore}));
  }
  EXPECT_EQ(FindAll(names, {}), std::vector<NodeId>());
  EXPECT_FALSE(IsNode(kNoNode));
  EXPECT_FALSE(IsNode(kNamedBefore));
  EXPECT_TRUE(IsNode(b));
}

// A name of a node has up to 253 bytes; where one ends, and where a line has no more room for it,
// is where a comparison by words could go wrong.
TEST(NodeNames, TellsNamesOfEveryLengthApart) {
  NodeNames names;
  std::vector<std::string> list;
  for (std::size_t size = 0; size <= 253; ++size) {
    list.push_back(std::string(size, 'n'));
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      if (size == 0) continue;
      std::string other(size, 'n');
      other[at] = 'm';
      if (other != list.back()) list.push_back(other);
    }
  }
  std::vector<NodeId> wanted;
  for (const std::string& name : list) wanted.push_back(names.Intern(NodeName(name)));
  EXPECT_EQ(FindAll(names, list), wanted);
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(names.name(wanted[i]).str(), list[i]);
  std::vector<std::string> strangers;
  for (std::size_t size = 1; size <= 253; ++size) {
    strangers.push_back(std::string(size - 1, 'n') + 'o');
    strangers.push_back('o' + std::string(size - 1, 'n'));
  }
  EXPECT_EQ(FindAll(names, strangers), std::vector<NodeId>(strangers.size(), kNoNode));
}

TEST(NodeNames, ANameOfAnyLengthIsOnlyAName) {
  NodeNames names;
  const std::string long_name(100'000, 'n'), longer(100'001, 'n');
  const NodeId id = names.Intern(NodeName(long_name));
  EXPECT_EQ(FindAll(names, {longer, long_name}), (std::vector<NodeId>{kNoNode, id}));
}

TEST(NodeNames, EqualHashesAreToldApartByTheNames) {
  const auto pairs = CollidingNames();
  ASSERT_GE(pairs.size(), 3U);
  NodeNames names(/*seed=*/0);
  for (const auto& [one, other] : pairs) {
    const NodeId id = names.Intern(NodeName(one));
    EXPECT_EQ(FindAll(names, {other, one}), (std::vector<NodeId>{kNoNode, id}));
    const NodeId second = names.Intern(NodeName(other));
    EXPECT_NE(second, id);
    EXPECT_EQ(FindAll(names, {other, one, other}), (std::vector<NodeId>{second, id, kNamedBefore}));
    names.Forget(id);
    EXPECT_EQ(FindAll(names, {other, one}), (std::vector<NodeId>{second, kNoNode}));
  }
}

TEST(NodeNames, RanksFollowTheNamesWhateverTheSeed) {
  for (const uint64_t seed : {0ULL, 1ULL, 0xfedcba9876543210ULL}) {
    NodeNames names(seed);
    for (const char* name : {"c", "a", "b"}) names.Intern(NodeName(name));
    EXPECT_EQ(names.ascending(), (std::vector<NodeId>{NodeId{1}, NodeId{2}, NodeId{0}}));
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
