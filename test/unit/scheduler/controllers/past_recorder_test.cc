// What the ledger is told of the events that pass by.
#include "scheduler/controllers/past_recorder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/builders/cluster.h"
#include "test/fakes/quiet_ledger.h"

namespace tranche {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TellingLedger : public test::QuietLedger {
 public:
  void NotePast(PastNews news) override {
    for (const PastChange& change : news.changes) {
      told.push_back(fmt::format("{}/{} {}", change.kind, change.name,
                                 change.object.empty() ? "gone" : change.object));
    }
    for (const PastPod& pod : news.pods) {
      if (pod.created) came = *pod.created;
      told.push_back(
          fmt::format("{}{}{}{}", pod.uid.str(), pod.created ? " came " + pod.object : "",
                      pod.started ? " started on " + pod.node.str() : "",
                      pod.ended ? fmt::format(" ended {}", static_cast<int>(pod.how)) : ""));
    }
    if (!news.rest) return;
    for (const PodUid& uid : news.rest->pods) told.push_back("rest " + uid.str());
    for (const auto& [kind, name] : news.rest->objects) told.push_back("rest " + kind + "/" + name);
  }

  std::vector<std::string> told;
  Instant came;  // the newest pod
};

class NextEvents : public ClusterEvents {
 public:
  void Receive(ClusterEvent) override { ++received; }
  int received = 0;
};

class StillClock : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::hours(1)); }
};

class PastRecorderTest : public ::testing::Test {
 protected:
  static PodFacts Pod(const std::string& uid, const std::string& node = "") {
    PodFacts pod;
    pod.request = test::WholePod(uid, 1);
    pod.request.uid = PodUid(uid);
    pod.request.name = {"a", uid};
    pod.node = NodeName(node);
    return pod;
  }
  static PodFacts Disrupted(const std::string& uid) {
    PodFacts pod = Pod(uid, "n1");
    pod.disrupted = true;
    return pod;
  }
  std::vector<std::string> Told() {
    recorder_.Tick();
    return std::exchange(ledger_.told, {});
  }
  void Sync() {
    recorder_.Receive(Synced());
    Told();
  }

  NextEvents next_;
  TellingLedger ledger_;
  StillClock clock_;
  PastRecorder recorder_{next_, &ledger_, clock_, GpuPolicy()};
};

TEST_F(PastRecorderTest, APodsLifeIsThreeNewsHoweverOftenItChanges) {
  Sync();
  for (int i = 0; i < 2; ++i) recorder_.Receive(PodChanged{Pod("p"), "object"});
  EXPECT_THAT(Told(), ElementsAre("p came object"));
  for (int i = 0; i < 2; ++i) recorder_.Receive(PodChanged{Pod("p", "n1"), "object"});
  EXPECT_THAT(Told(), ElementsAre("p started on n1"));
  PodFacts ended = Pod("p", "n1");
  ended.phase = PodPhase::kSucceeded;
  recorder_.Receive(PodChanged{ended, "object"});
  recorder_.Receive(PodGone{PodUid("p")});
  EXPECT_THAT(Told(), ElementsAre("p ended 1"));
  EXPECT_EQ(next_.received, 7) << "all were passed on";
}

TEST_F(PastRecorderTest, WhatIsHeardAtOnceIsToldToTheMoment) {
  const Instant now = clock_.Now();
  struct Row {
    Millis told_before;  // in the object, in whole seconds
    Millis recorded_before;
  };
  for (const Row& row : {Row{Millis(400), Millis(0)}, Row{Millis(5'000), Millis(4'001)},
                         Row{Millis(-3'000), Millis(-3'000)}}) {
    PodFacts pod = Pod("p");
    pod.created = now - row.told_before;
    recorder_.Receive(PodChanged{pod, "o"});
    recorder_.Receive(PodGone{PodUid("p")});
    recorder_.Tick();
    EXPECT_EQ(ledger_.came, now - row.recorded_before) << row.told_before.count();
  }
}

TEST_F(PastRecorderTest, HowAPodWentIsTold) {
  Sync();
  recorder_.Receive(PodChanged{Pod("deleted", "n1"), "o"});
  recorder_.Receive(PodChanged{Pod("evicted", "n1"), "o"});
  recorder_.Receive(PodChanged{Disrupted("evicted"), "o"});
  recorder_.Receive(PodGone{PodUid("deleted")});
  recorder_.Receive(PodGone{PodUid("evicted")});
  recorder_.Receive(PodGone{PodUid("never seen")});
  EXPECT_THAT(Told(), ElementsAre("deleted came o started on n1", "evicted came o started on n1",
                                  "deleted ended 2", "evicted ended 3"));
}

TEST_F(PastRecorderTest, WorkThatWasDoneInItsGraceIsDone) {
  Sync();
  for (const auto& [phase, ended] :
       {std::pair{PodPhase::kSucceeded, "p ended 1"}, std::pair{PodPhase::kFailed, "p ended 3"}}) {
    recorder_.Receive(PodChanged{Disrupted("p"), "o"});
    PodFacts pod = Pod("p", "n1");
    pod.phase = phase;
    recorder_.Receive(PodChanged{pod, "o"});
    EXPECT_THAT(Told(), ElementsAre("p came o started on n1", ended));
  }
}

TEST_F(PastRecorderTest, NodesWithoutGpusAreNotKept) {
  Sync();
  NodeChanged node;
  node.node.name = NodeName("n1");
  node.object = "A";
  recorder_.Receive(node);
  node.node.gpu = ResourceCount{0, 8};
  recorder_.Receive(node);
  node.node.gpu = std::nullopt;
  recorder_.Receive(node);
  EXPECT_THAT(Told(), ElementsAre("Node/n1 A", "Node/n1 gone"));
}

TEST_F(PastRecorderTest, PodsWithoutGpusAreNotKept) {
  Sync();
  PodFacts plain = Pod("plain");
  plain.request.style = RequestStyle::kNone;
  recorder_.Receive(PodChanged{plain});
  recorder_.Receive(PodGone{PodUid("plain")});
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(PastRecorderTest, AfterTheFirstCompleteSetItTellsWhatElseThereIs) {
  recorder_.Receive(PolicyObject{"GPUQuota", "", "q", "", 1, R"({"kind":"GPUQuota","status":{}})"});
  recorder_.Receive(PolicyObject{"GPUReclaim", "", "r", "", 1, "{}"});
  NodeChanged node;
  node.node.name = NodeName("n1");
  node.node.gpu = ResourceCount{8, 8};
  node.object = "N";
  recorder_.Receive(node);
  recorder_.Receive(PodChanged{Pod("b"), "o"});
  recorder_.Receive(PodChanged{Pod("a"), "o"});
  recorder_.Receive(Synced());
  const char* const settings =
      R"(server-policy/settings {"apiVersion":"tranche.dev/v1alpha1","kind":"GPUPolicy",)"
      R"("metadata":{"name":"settings"},"spec":{)"
      R"("placement":{"strategy":"Fragmentation","filterWidth":11},)"
      R"("sharing":{"unenforced":"Refuse"},"preemption":{"actor":"Planner"}}})";
  EXPECT_THAT(Told(), ElementsAre(R"(GPUQuota/q {"kind":"GPUQuota"})", "Node/n1 N", settings,
                                  "b came o", "a came o", "rest a", "rest b", "rest GPUQuota/q",
                                  "rest Node/n1", "rest server-policy/settings"));
  recorder_.Receive(Synced());
  EXPECT_THAT(Told(), IsEmpty()) << "once";
}

TEST_F(PastRecorderTest, ObjectsAreToldWhenTheySaySomethingElse) {
  Sync();
  NodeChanged node;
  node.node.name = NodeName("n1");
  node.node.gpu = ResourceCount{8, 8};
  for (const char* const says : {"A", "A", "B"}) {
    node.object = says;
    recorder_.Receive(node);
  }
  recorder_.Receive(NodeGone{NodeName("n1")});
  recorder_.Receive(NodeGone{NodeName("n1")});
  recorder_.Receive(GangSizeChanged{"a", "g", 4});
  recorder_.Receive(GangSizeChanged{"a", "g", 0});
  EXPECT_THAT(Told(), ElementsAre("Node/n1 A", "Node/n1 B", "Node/n1 gone", "gang-size/a/g 4",
                                  "gang-size/a/g gone"));
}

TEST_F(PastRecorderTest, MuchNewsDoesNotWait) {
  Sync();
  for (std::size_t i = 0; i < PastRecorder::kMostKept; ++i) {
    recorder_.Receive(PodChanged{Pod(fmt::format("p{}", i)), "o"});
  }
  EXPECT_EQ(ledger_.told.size(), PastRecorder::kMostKept);
}

TEST_F(PastRecorderTest, WithoutALedgerEventsAreOnlyPassedOn) {
  PastRecorder recorder(next_, nullptr, clock_, GpuPolicy());
  recorder.Receive(PodChanged{Pod("p")});
  recorder.Tick();
  EXPECT_EQ(next_.received, 1);
}

}  // namespace THIS_FILE
}  // namespace tranche
