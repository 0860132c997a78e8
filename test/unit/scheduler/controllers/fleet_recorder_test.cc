// What a ledger is told of nodes and prices, and when.
#include "scheduler/controllers/fleet_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/host/clocks.h"
#include "test/builders/cluster.h"
#include "test/fakes/quiet_ledger.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

class ToldLedger : public test::QuietLedger {
 public:
  std::vector<std::string> told;
  std::vector<std::string> stranded;  // beside it
  void NoteFleet(FleetNews news) override {
    const bool all_stranded = std::ranges::all_of(
        news.facts, [](const FleetFact& fact) { return fact.kind == FleetKind::kStranded; });
    if (news.whole || !all_stranded) told.push_back(news.whole ? "whole" : "news");
    for (const FleetFact& fact : news.facts) {
      auto& lines = fact.kind == FleetKind::kStranded ? stranded : told;
      lines.push_back(fact.text.empty() ? fact.key + " gone" : fact.text);
    }
  }
};

class FleetRecorderTest : public testing::Test {
 protected:
  static NodeFacts Node(const std::string& name, const Labels& labels = {}) {
    NodeFacts node = test::StockNode(name, 8);
    node.labels = LabelText(labels);
    return node;
  }
  void Declare(const std::string& kind, const std::string& name, const std::string& spec) {
    host_.cluster.Receive(PolicyObject{
        kind, "", name, name, 1, R"({"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}"});
    host_.cluster.Receive(PolicyObjectsSettled());
  }
  // What is told a look later.
  std::vector<std::string> Told(Millis later = FleetRecorder::kLookEvery) {
    clock_.AdvanceBy(later);
    recorder_.Tick(clock_.Now());
    return std::exchange(ledger_.told, {});
  }
  std::vector<std::string> ToldStranded(Millis later = FleetRecorder::kStrandedEvery) {
    Told(later);
    return std::exchange(ledger_.stranded, {});
  }
  // Pods of so many GPUs come and are asked about, as many as make a mix; the first runs there.
  void Come(int gpus, const std::string& node) {
    for (int i = 0; i < 16; ++i) {
      const PodRequest request = test::WholePod("pod-" + std::to_string(i), gpus);
      host_.cluster.Receive(PodChanged{test::Pending(request)});
      const std::string_view names[] = {node};
      FilterAnswer answer;
      host_.engine.With([&](Engine& engine, Instant now) {
        engine.Filter(request, names, now, answer);
        if (i == 0) engine.Bind(request.name, request.uid, NodeName(node), now);
      });
    }
  }

  ManualClock clock_{Instant(std::chrono::hours(24 * 365 * 56))};
  ToldLedger ledger_;
  Host host_{HostOptions{}, clock_};
  FleetRecorder recorder_{host_, &ledger_};
};

const std::string kN1 = R"({"node":"n1","gpus":[{"model":"h100","count":8}]})";

TEST_F(FleetRecorderTest, NothingIsToldBeforeTheClusterWasHeardOf) {
  host_.cluster.Receive(NodeChanged{Node("n1")});
  EXPECT_THAT(Told(), IsEmpty());
  host_.cluster.Receive(Synced());
  EXPECT_THAT(Told(), ElementsAre("whole", kN1));
}

TEST_F(FleetRecorderTest, AllOnceThenWhatChangesThenAllAgain) {
  host_.cluster.Receive(NodeChanged{Node("n1")});
  host_.cluster.Receive(Synced());
  EXPECT_THAT(Told(), ElementsAre("whole", kN1));
  EXPECT_THAT(Told(), IsEmpty());
  Declare("GPUPool", "spot", R"({"nodes":{"matchLabels":{"a":"b"}},"capacity":"Spot"})");
  EXPECT_THAT(Told(), IsEmpty()) << "no node is in it";
  host_.cluster.Receive(NodeChanged{Node("n2", {{"a", "b"}})});
  EXPECT_THAT(Told(FleetRecorder::kLookEvery - Millis(1)), IsEmpty()) << "not so soon";
  const std::string n2 =
      R"({"node":"n2","gpus":[{"model":"h100","count":8}],"pool":"spot","capacity":"Spot"})";
  EXPECT_THAT(Told(Millis(1)), ElementsAre("news", n2));
  Declare("GPUPrice", "all", R"({"perGpuHour":"2.5","currency":"USD"})");
  const std::string price =
      R"({"metadata":{"name":"all"},"spec":{"perGpuHour":"2.5","currency":"USD"}})";
  EXPECT_THAT(Told(), ElementsAre("news", price));
  host_.cluster.Receive(NodeGone{NodeName("n2")});
  EXPECT_THAT(Told(), ElementsAre("news", "n2 gone"));
  EXPECT_THAT(Told(FleetRecorder::kWholeEvery), ElementsAre("whole", kN1, price));
}

TEST_F(FleetRecorderTest, WhatIsStrandedIsToldNowAndThenWhereItIsAnother) {
  host_.cluster.Receive(NodeChanged{Node("n1")});
  host_.cluster.Receive(NodeChanged{Node("n2", {{"node.kubernetes.io/instance-type", "t"}})});
  host_.cluster.Receive(Synced());
  const std::string none = R"({"stranded":0,"model":"h100"})";
  const std::string none_of_t = R"({"stranded":0,"model":"h100","instanceType":"t"})";
  EXPECT_THAT(ToldStranded(), ElementsAre(none_of_t, none)) << "that it is known";
  EXPECT_THAT(ToldStranded(), IsEmpty());
  Come(3, "n1");
  EXPECT_THAT(ToldStranded(FleetRecorder::kLookEvery), IsEmpty()) << "not so soon";
  // Of eight two, of five two: pods of three come.
  const std::string two = R"({"stranded":2000,"model":"h100"})";
  const std::string two_of_t = R"({"stranded":2000,"model":"h100","instanceType":"t"})";
  EXPECT_THAT(ToldStranded(), ElementsAre(two_of_t, two));
  host_.cluster.Receive(NodeGone{NodeName("n2")});
  EXPECT_THAT(ToldStranded(), ElementsAre(none_of_t + " gone"));
  EXPECT_THAT(ToldStranded(FleetRecorder::kWholeEvery), ElementsAre(two));
}

}  // namespace THIS_FILE
}  // namespace tranche
