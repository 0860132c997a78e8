// Node names against a map: names come, go and come back, lists hold known names, strangers and
// names given twice, and every answer must be what a std::map says. Few different lengths and a
// table that grows from its smallest make places of the table meet. Seeds are printed.
#include "scheduler/index/node_names.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

constexpr std::size_t kLengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 57, 58, 59, 64, 66, 253};

// One of a few hundred names, the same for the same draw.
std::string NameOf(uint64_t draw) {
  const std::size_t length = kLengths[draw % std::size(kLengths)];
  std::string name(length, 'n');
  const std::string number = std::to_string(draw / std::size(kLengths) % 40);
  // What differs stands at the start or at the end.
  const std::size_t room = std::min(length, number.size());
  const std::size_t at = draw % 2 == 0 ? 0 : length - room;
  return name.replace(at, room, number, 0, room);
}

class Trial {
 public:
  explicit Trial(uint64_t seed) : random_(seed), names_(random_()) {}

  void Step() {
    const uint64_t kind = random_() % 10;
    if (kind < 5) return Intern();
    if (kind < 7) return Forget();
    Look();
  }
  void Check() {
    EXPECT_EQ(known_.size(), used_.size());
    std::vector<NodeId> ascending;
    for (const auto& [name, id] : known_) {
      EXPECT_EQ(names_.name(id).str(), name);
      EXPECT_EQ(names_.Find(name), id);
      ascending.push_back(id);
    }
    const std::vector<NodeId>& all = names_.ascending();
    ASSERT_GE(all.size(), ascending.size());
    EXPECT_TRUE(std::equal(ascending.begin(), ascending.end(),
                           all.end() - static_cast<std::ptrdiff_t>(ascending.size())));
  }

 private:
  void Intern() {
    const std::string name = NameOf(random_());
    const NodeId id = names_.Intern(NodeName(name));
    const auto [at, fresh] = known_.emplace(name, id);
    EXPECT_EQ(at->second, id);
    EXPECT_EQ(used_.insert(id).second, fresh) << "two names share a number";
  }
  void Forget() {
    if (known_.empty()) return;
    const auto at =
        std::next(known_.begin(), static_cast<std::ptrdiff_t>(random_() % known_.size()));
    names_.Forget(at->second);
    used_.erase(at->second);
    known_.erase(at);
  }
  void Look() {
    std::vector<std::string> list;
    const std::size_t size = random_() % 300;
    for (std::size_t i = 0; i < size; ++i) list.push_back(NameOf(random_()));
    std::vector<NodeId> wanted;
    std::set<std::string> met;
    for (const std::string& name : list) {
      const auto at = known_.find(name);
      const bool again = at != known_.end() && !met.insert(name).second;
      wanted.push_back(at == known_.end() ? kNoNode : again ? kNamedBefore : at->second);
    }
    const std::vector<std::string_view> views(list.begin(), list.end());
    names_.FindAll(views, found_);
    EXPECT_EQ(found_, wanted);
  }

  std::mt19937_64 random_;
  NodeNames names_;
  std::map<std::string, NodeId> known_;
  std::set<NodeId> used_;
  std::vector<NodeId> found_;
};

TEST(NodeNamesProperty, AgreeWithAMap) {
  uint64_t first = 1;
  uint64_t steps = 2'000;
  if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("TRANCHE_STEPS")) steps = std::strtoull(text, nullptr, 10);
  for (uint64_t seed = first; seed < first + 10; ++seed) {
    std::cout << "seed " << seed << " (TRANCHE_SEED)\n";
    Trial trial(seed);
    for (uint64_t step = 0; step < steps && !testing::Test::HasFailure(); ++step) trial.Step();
    trial.Check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "TRANCHE_SEED=" << seed;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
