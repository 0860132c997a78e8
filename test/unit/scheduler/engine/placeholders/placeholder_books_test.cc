// The placeholders of one node as a story: what is seen and followed, and what is to be done then.
#include "scheduler/engine/placeholders/placeholder_books.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

const NodeName kNode("gpu-1");
constexpr PlaceholderTimes kTimes;

Instant At(int64_t seconds) { return Instant(std::chrono::seconds(1'000'000 + seconds)); }

class PlaceholderBooksTest : public testing::Test {
 protected:
  PlaceholderBooksTest() { books.Complete(At(0)); }

  void See(const std::string& name, int card, const std::string& told, int64_t at,
           bool leaving = false, bool ended = false) {
    books.See({{kPlaceholderNamespace, name},
               PodUid("uid-" + name),
               kNode,
               card,
               GpuUuid(told),
               leaving,
               ended},
              At(at));
  }
  // What Tend says, in words: "order 0 | told 1=GPU-a | refused 2 | k1 open | end k2 | paused".
  std::string Tend(const std::vector<FollowedCard>& followed, int64_t at, bool certain = true) {
    const PlaceholderAnswer answer = books.Tend(kNode, followed, certain, At(at));
    std::vector<std::string> words;
    for (const int card : answer.orders) words.push_back("order " + std::to_string(card));
    for (const auto& [card, uuid] : answer.told) {
      words.push_back("told " + std::to_string(card) + "=" + uuid.str());
    }
    for (const int card : answer.refused) words.push_back("refused " + std::to_string(card));
    for (const auto& [uid, role] : answer.roles) {
      const char* const names[] = {"none", "open", "lingering", "leaving"};
      words.push_back(uid.str().substr(4) + " " + names[static_cast<int>(role)]);
    }
    for (const PlaceholderEnd& end : books.TakeEnds()) {
      words.push_back("end " + end.pod.name + (end.uid.empty() ? " unseen" : ""));
    }
    if (answer.unkept) words.push_back("unkept " + answer.unkept->uuid.str());
    if (answer.paused) words.push_back("paused");
    due = answer.due;
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " | ") + word;
    return line;
  }
  void Order(const std::string& name, int card, int64_t at) {
    books.Ordered({kPlaceholderNamespace, name}, kNode, card, At(at));
  }

  PlaceholderBooks books{kTimes};
  std::optional<Instant> due;
};

TEST_F(PlaceholderBooksTest, OneIsMadeForACardThatIsFollowedAndGoesWithTheLast) {
  EXPECT_EQ(Tend({{2, {}}}, 0), "order 2");
  Order("k1", 2, 0);
  EXPECT_EQ(Tend({{2, {}}}, 1), "");
  EXPECT_EQ(due, At(120));
  See("k1", 2, "", 2);
  EXPECT_EQ(Tend({{2, {}}}, 2), "k1 open");
  See("k1", 2, "GPU-x", 3);
  EXPECT_EQ(Tend({{2, {}}}, 3), "told 2=GPU-x | k1 open");
  EXPECT_EQ(Tend({{2, GpuUuid("GPU-x")}}, 500), "told 2=GPU-x | k1 open");
  EXPECT_EQ(Tend({}, 501), "k1 leaving | end k1");
  // Asked for once more where it is still there.
  EXPECT_EQ(Tend({}, 510), "k1 leaving");
  EXPECT_EQ(Tend({}, 531), "k1 leaving | end k1");
  EXPECT_EQ(books.Gone(PodUid("uid-k1")), kNode);
  EXPECT_EQ(Tend({}, 532), "");
  EXPECT_FALSE(books.On(kNode));
}

TEST_F(PlaceholderBooksTest, OneThatNeverTellsIsGivenUpAndTheNodeRests) {
  Order("k1", 0, 0);
  See("k1", 0, "", 1);
  EXPECT_EQ(Tend({{0, {}}}, 119), "k1 open");
  EXPECT_EQ(Tend({{0, {}}}, 120), "refused 0 | k1 leaving | end k1 | paused");
  EXPECT_EQ(Tend({{1, {}}}, 121), "refused 1 | k1 leaving | paused");
  books.Gone(PodUid("uid-k1"));
  EXPECT_EQ(Tend({{1, {}}}, 131), "order 1");
  // The next failure rests twice as long.
  Order("k2", 1, 131);
  books.NotMade({kPlaceholderNamespace, "k2"}, At(132));
  EXPECT_EQ(Tend({{1, {}}}, 151), "refused 1 | paused");
  EXPECT_EQ(Tend({{1, {}}}, 152), "order 1");
}

TEST_F(PlaceholderBooksTest, OneThatWasNotMadeOrNeverSeenIsForgotten) {
  Order("k1", 0, 0);
  books.NotMade({kPlaceholderNamespace, "k1"}, At(1));
  EXPECT_EQ(Tend({}, 1), "paused");
  Order("k2", 0, 20);
  EXPECT_EQ(Tend({{0, {}}}, 140), "refused 0 | end k2 unseen | paused");
  // Its creation was only late: nobody follows it now.
  See("k2", 0, "", 141);
  EXPECT_EQ(Tend({}, 141), "k2 leaving | end k2 | paused");
}

TEST_F(PlaceholderBooksTest, OneThatTheKubeletRefusedIsReplacedAfterARest) {
  Order("k1", 0, 0);
  See("k1", 0, "", 1, false, true);
  EXPECT_EQ(Tend({{0, {}}}, 1), "refused 0 | end k1 | paused");
  EXPECT_EQ(Tend({{0, {}}}, 11), "order 0");
}

TEST_F(PlaceholderBooksTest, AnotherCardThanPodsSeeIsNoReplacement) {
  See("k1", 0, "GPU-x", 0);
  EXPECT_EQ(Tend({{0, GpuUuid("GPU-x")}}, 1), "told 0=GPU-x | k1 open");
  // Somebody deletes it. Nothing is made in its place before it is gone: that would be given
  // another card.
  See("k1", 0, "GPU-x", 2, true);
  EXPECT_EQ(Tend({{0, GpuUuid("GPU-x")}}, 2), "refused 0 | k1 leaving | end k1 | unkept GPU-x");
  books.Gone(PodUid("uid-k1"));
  EXPECT_EQ(Tend({{0, GpuUuid("GPU-x")}}, 3), "order 0 | unkept GPU-x");
  Order("k2", 0, 3);
  See("k2", 0, "GPU-y", 4);
  EXPECT_EQ(Tend({{0, GpuUuid("GPU-x")}}, 4),
            "refused 0 | k2 leaving | end k2 | unkept GPU-x | paused");
  books.Gone(PodUid("uid-k2"));
  EXPECT_EQ(Tend({{0, GpuUuid("GPU-x")}}, 14), "order 0 | unkept GPU-x");
  Order("k3", 0, 14);
  See("k3", 0, "GPU-x", 15);
  EXPECT_EQ(Tend({{0, GpuUuid("GPU-x")}}, 15), "told 0=GPU-x | k3 open");
}

TEST_F(PlaceholderBooksTest, OfTwoOnOneCardTheOneThatToldStays) {
  See("k1", 0, "", 0);
  See("k2", 0, "GPU-x", 0);
  See("k3", 0, "GPU-y", 0);
  EXPECT_EQ(Tend({{0, {}}}, 1),
            "told 0=GPU-x | k1 leaving | k2 open | k3 leaving | end k1 | end k3");
}

TEST_F(PlaceholderBooksTest, OneWithoutAReadableCardGoes) {
  See("k1", -1, "GPU-x", 0);
  EXPECT_EQ(Tend({}, 0), "k1 leaving | end k1");
}

TEST_F(PlaceholderBooksTest, AnUncertainLookEndsNobody) {
  See("k1", 0, "GPU-x", 0);
  EXPECT_EQ(Tend({}, 1, false), "k1 lingering");
  EXPECT_EQ(Tend({}, 2), "k1 leaving | end k1");
}

// A Binding of the process before may still be on its way.
TEST(PlaceholdersStartTest, WhatWasThereBeforeUsStaysForAWhile) {
  PlaceholderBooks books{kTimes};
  books.See({{kPlaceholderNamespace, "k1"}, PodUid("uid-k1"), kNode, 0, GpuUuid("GPU-x")}, At(0));
  const auto role = [&](int64_t at) {
    return books.Tend(kNode, {}, true, At(at)).roles.front().second;
  };
  EXPECT_EQ(role(1), PlaceholderRole::kLingering);
  books.Complete(At(10));
  EXPECT_EQ(role(99), PlaceholderRole::kLingering);
  EXPECT_FALSE(books.HasEnds());
  EXPECT_EQ(role(100), PlaceholderRole::kLeaving);
  EXPECT_TRUE(books.HasEnds());
}

}  // namespace THIS_FILE
}  // namespace tranche
