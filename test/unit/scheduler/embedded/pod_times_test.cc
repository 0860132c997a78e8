// Times of pods in the embedded cluster: the text and what the engine hears say the same.
#include <gtest/gtest.h>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

class EmbeddedTimes : public EmbeddedCluster {
 protected:
  // The pod as the engine heard it, and as it reads when looked up, must agree.
  const PodFacts& Heard(const std::string& name) {
    PodLookup found;
    cluster_.GetPod({"default", name}, PodUid(), [&](PodLookup l) { found = std::move(l); });
    const PodFacts& heard = recorder_.pod("default/" + name);
    EXPECT_EQ(found.pod->phase, heard.phase);
    EXPECT_EQ(found.pod->bound_at, heard.bound_at);
    EXPECT_EQ(found.pod->started_at, heard.started_at);
    EXPECT_EQ(found.pod->running_at, heard.running_at);
    EXPECT_EQ(found.pod->finished_at, heard.finished_at);
    EXPECT_EQ(found.pod->deletion_at, heard.deletion_at);
    return heard;
  }
};

TEST_F(EmbeddedTimes, BeginWithTheBinding) {
  Applied(Pod("a", R"(,"uid":"u")"));
  EXPECT_FALSE(Heard("a").bound_at.has_value());
  const Instant bound = clock_.AdvanceBy(Millis(10'250));
  Bound("a", "u", "n1");
  EXPECT_EQ(Heard("a").bound_at, bound);
  EXPECT_EQ(Heard("a").started_at, bound);
  EXPECT_EQ(Heard("a").running_at, bound);
  EXPECT_EQ(Stored("Pod", "a")["status"]["containerStatuses"],
            Json::parse(R"([{"name":"main","ready":true,
              "state":{"running":{"startedAt":"2026-03-01T00:00:10.250Z"}}}])"));
}

TEST_F(EmbeddedTimes, BeginWithTheApplyOfABoundPodThatStatesNone) {
  Applied(Pod("a", "", kOnNode));
  EXPECT_EQ(Heard("a").bound_at, kStart);
  EXPECT_EQ(Heard("a").started_at, kStart);
  EXPECT_EQ(Heard("a").running_at, kStart);
}

TEST_F(EmbeddedTimes, StayAsABoundPodStatesThem) {
  Applied(Pod("a", "", kOnNode,
              R"("phase":"Pending","startTime":"2026-02-01T00:00:01Z","conditions":[)"
              R"({"type":"PodScheduled","status":"True",)"
              R"("lastTransitionTime":"2026-02-01T00:00:00Z"}],"containerStatuses":[)"
              R"({"name":"main","state":{"running":{"startedAt":"2026-02-01T00:00:02Z"}}}])"));
  const Instant stated = std::chrono::sys_days(std::chrono::year(2026) / 2 / 1);
  EXPECT_EQ(Heard("a").phase, PodPhase::kRunning);
  EXPECT_EQ(Heard("a").bound_at, stated);
  EXPECT_EQ(Heard("a").started_at, stated + seconds(1));
  EXPECT_EQ(Heard("a").running_at, stated + seconds(2));
}

TEST_F(EmbeddedTimes, AreNotInventedForAPodAppliedAsRunning) {
  Applied(Pod("a", "", kOnNode, R"("phase":"Running")"));
  EXPECT_FALSE(Heard("a").bound_at || Heard("a").started_at || Heard("a").running_at);
}

TEST_F(EmbeddedTimes, KnowTheEndOfAGracePeriod) {
  clock_.AdvanceBy(Millis(250));
  Applied(Pod("a", R"(,"uid":"u")", kOnNode));
  Deleted(R"({"kind":"Pod","name":"a","gracePeriodSeconds":5})");
  EXPECT_EQ(Heard("a").deletion_at, kStart + Millis(5250));
  Applied(Pod("a", "", kOnNode));
  EXPECT_EQ(Heard("a").deletion_at, kStart + Millis(5250));
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
