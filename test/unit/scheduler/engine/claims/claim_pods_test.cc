// Pods that use claims, and those that quota keeps waiting: from the parts left of it alone.
#include "scheduler/engine/claims/claim_pods.h"

#include "test/unit/scheduler/engine/claims/claims_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Allocated;
using test::Asks;
using test::At;
using test::PodUsing;
using testing::ElementsAre;
using testing::IsEmpty;

class ClaimPodsTest : public testing::Test, protected test::ClaimsRoom {
 protected:
  static constexpr bool kRuns = false, kEnded = true;

  void Gated(const std::string& name, const std::string& claim) {
    PodFacts pod = PodUsing(name, {claim});
    pod.our_gates.quota = true;
    pod.created = now;
    pods_.Note(pod, kRuns, now);
  }
  // Gates that are taken away at that moment.
  std::vector<std::string> LetInAt(Instant at) {
    now = at;
    pods_.Tend(now);
    std::vector<std::string> names;
    for (const GateRemoval& removal : std::exchange(cluster.outbox.effects().ungate, {}))
      names.push_back(removal.pod.name);
    return names;
  }

  ClaimPods pods_{cluster, books, rules, wishes, charges};
};

TEST_F(ClaimPodsTest, APodIsKnownUntilItEnds) {
  TeamOwns("2");
  Put(Asks("c"));
  const PodFacts pod = PodUsing("p", {"c"});
  pods_.Note(pod, kRuns, now);
  charges.Keep(pod.request, WishFor({"c"}), IdOf("n1"), now);
  EXPECT_FALSE(books.pods.at(PodUid("p")).wants_gpus) << "no filter has asked yet";
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"p"}));
  pods_.Note(PodUsing("p", {"c"}, "n1"), kRuns, now);
  EXPECT_TRUE(books.pods.at(PodUid("p")).wants_gpus);
  EXPECT_EQ(books.pods.at(PodUid("p")).node, NodeName("n1"));
  pods_.Note(PodUsing("p", {"c"}, "n1"), kEnded, now);
  EXPECT_THAT(books.pods, IsEmpty());
  EXPECT_THAT(books.by_name, IsEmpty());
}

TEST_F(ClaimPodsTest, WhatWasKeptForAPodThatGoesIsFree) {
  TeamOwns("1");
  Put(Asks("c"));
  const PodFacts pod = PodUsing("p", {"c"});
  pods_.Note(pod, kRuns, now);
  charges.Keep(pod.request, WishFor({"c"}), IdOf("n1"), now);
  EXPECT_FALSE(Admits(1));
  pods_.Forget(PodUid("p"));
  EXPECT_TRUE(Admits(1));
}

TEST_F(ClaimPodsTest, WhatWasKeptLapsesWithTime) {
  TeamOwns("1");
  Put(Asks("c"));
  charges.Keep(PodUsing("p", {"c"}).request, WishFor({"c"}), IdOf("n1"), now);
  EXPECT_EQ(pods_.Due(), At(10));
  LetInAt(At(9));
  EXPECT_FALSE(Admits(1));
  LetInAt(At(10));
  EXPECT_TRUE(Admits(1));
  EXPECT_EQ(pods_.Due(), std::nullopt);
}

TEST_F(ClaimPodsTest, GatesGoByTheLengthOfTheWaitAndEachCountsThoseBeforeIt) {
  TeamOwns("1");
  for (const char* claim : {"a", "b"}) Put(Asks(claim));
  Gated("z-first", "a");
  now = At(1);
  Gated("later", "b");
  EXPECT_THAT(LetInAt(At(2)), ElementsAre("z-first"));
  EXPECT_EQ(books.pods.at(PodUid("later")).last_reason, Reason::kWaitingForQuota);
  EXPECT_THAT(LetInAt(At(4)), IsEmpty()) << "it was told a moment ago";
  Put(Allocated(Asks("a"), "n1", "gpu-0", {"z-first"}));
  pods_.Note(PodUsing("z-first", {"a"}, "n1"), kRuns, now);
  EXPECT_THAT(LetInAt(At(30)), IsEmpty()) << "the team has used what it owns";
  RemoveClaim("a");
  EXPECT_THAT(LetInAt(At(60)), ElementsAre("later"));
}

TEST_F(ClaimPodsTest, APodThatFilterRefusedIsBroughtBackInsteadOfUngated) {
  TeamOwns("1");
  Put(Asks("a"));
  pods_.Note(PodUsing("p", {"a"}), kRuns, now);
  books.pods.at(PodUid("p")).last_reason = Reason::kWaitingForQuota;
  EXPECT_THAT(LetInAt(At(2)), IsEmpty());
  EXPECT_THAT(Requeued(), ElementsAre("p"));
}

TEST_F(ClaimPodsTest, AtItsCreationAPodHearsOfQuota) {
  cluster.catalog.PutTemplate(Asks("template", 2));
  dra::PodClaims uses;
  uses.claims.push_back({"gpu", "", "template"});
  const PodRequest request = PodUsing("p", {}).request;
  const std::tuple<const char*, QuotaMode, bool> cases[] = {{"2", QuotaMode::kEnforce, false},
                                                            {"1", QuotaMode::kEnforce, true},
                                                            {"1", QuotaMode::kObserve, false}};
  for (const auto& [owns, mode, waits] : cases) {
    TeamOwns(owns, mode);
    rules.ForgetPolicies();
    const ClaimForecast forecast = pods_.Forecast(request, uses, now);
    EXPECT_TRUE(forecast.wants_gpus) << owns;
    EXPECT_EQ(forecast.quota_waits, waits) << owns;
  }
  EXPECT_FALSE(pods_.Forecast(request, {}, now).wants_gpus);
}

}  // namespace THIS_FILE
}  // namespace tranche
