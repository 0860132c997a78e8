#include "scheduler/turns/turns.h"

#include <gmock/gmock.h>

namespace tranche::agent {
namespace THIS_FILE {

using ::testing::HasSubstr;

Device Whole(const std::string& uuid) {
  Device device;
  device.uuid = GpuUuid(uuid);
  device.milli = kWholeGpu;
  return device;
}

Allocation Record(std::vector<std::pair<std::string, std::vector<std::string>>> containers) {
  Allocation record;
  record.knowledge = Knowledge::kExact;
  for (auto& [name, uuids] : containers) {
    ContainerDevices one{name, {}};
    for (const std::string& uuid : uuids) one.devices.push_back(Whole(uuid));
    record.containers.push_back(std::move(one));
  }
  return record;
}

// A pod of one container "main" whose record names these GPUs.
BoundPod Pod(const std::string& name, const std::vector<std::string>& gpus) {
  BoundPod pod;
  pod.name = {"team", name};
  pod.uid = PodUid("uid-" + name);
  pod.asking = {{"main", static_cast<int64_t>(gpus.size())}};
  pod.record = Record({{"main", gpus}});
  return pod;
}

KubeletPod Known(const std::string& name, std::vector<Holding> holdings = {}) {
  return {{"team", name}, std::move(holdings)};
}

// Four healthy cards, a to d.
Look LookOf(std::vector<BoundPod> pods, std::vector<KubeletPod> kubelet) {
  Look look;
  look.pods = std::move(pods);
  look.kubelet = std::move(kubelet);
  for (const char* uuid : {"a", "b", "c", "d"}) look.cards.push_back({GpuUuid(uuid), ""});
  return look;
}

Offer All(int64_t size) { return {{"a", "b", "c", "d"}, {}, size}; }

using Ids = std::vector<std::string>;

DeviceId Id(const std::string& text) { return ParseDeviceId(text); }

TEST(TurnsTest, GivesWhatTheRecordNames) {
  Turns turns;
  const Look look = LookOf({Pod("p", {"c", "b"})}, {Known("p")});
  const auto ids = turns.Open(look, All(2));
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, (Ids{"b", "c"}));
  const auto grant = turns.Close({"c", "b"});
  ASSERT_TRUE(grant && grant->ok());
  const Grant expected{{"team", "p"}, PodUid("uid-p"), "main", {Id("c"), Id("b")}};
  EXPECT_EQ(**grant, expected);
  EXPECT_EQ(turns.Close({"c", "b"}), std::nullopt) << "a turn is closed once";
}

TEST(TurnsTest, RefusesWhereNothingIsRight) {
  struct Row {
    const char* what;
    std::function<void(Look&, BoundPod&)> change;
    const char* error;
  };
  const Row table[] = {
      {"no record", [](Look&, BoundPod& pod) { pod.record.reset(); }, "not placed by Tranche"},
      {"a broken record",
       [](Look&, BoundPod& pod) {
         pod.record.reset();
         pod.record_problem = "expected 1, found 2, in allocation.v";
       },
       "found 2, in allocation.v"},
      {"a record of counts",
       [](Look&, BoundPod& pod) { pod.record->knowledge = Knowledge::kCounts; }, "says counts"},
      {"a record of another size",
       [](Look&, BoundPod& pod) { pod.record->containers[0].devices.pop_back(); },
       "expected 2 GPUs for container main in the record, found 1"},
      {"a GPU twice",
       [](Look&, BoundPod& pod) { pod.record->containers[0].devices[1] = Whole("a"); },
       "names GPU a twice"},
      {"a GPU of two containers",
       [](Look&, BoundPod& pod) {
         pod.asking.push_back({"side", 1});
         pod.record->containers.push_back({"side", {Whole("b")}});
       },
       "names GPU b twice"},
      {"no UUID", [](Look&, BoundPod& pod) { pod.record->containers[0].devices[1] = Whole(""); },
       "without its UUID"},
      {"a part",
       [](Look&, BoundPod& pod) { pod.record->containers[0].devices[1].milli = MilliGpu::Of(500); },
       "a part of a GPU"},
      {"an instance",
       [](Look&, BoundPod& pod) {
         pod.record->containers[0].devices[1].mig = MigDevice{"1g.10gb", 0, 1};
       },
       "expected 2 GPUs for container main in the record, found 1"},
      {"a GPU that is not here",
       [](Look&, BoundPod& pod) { pod.record->containers[0].devices[1] = Whole("x"); },
       "GPU x of its record: this node has no such GPU"},
      {"a GPU that fell off",
       [](Look& look, BoundPod&) { look.cards[1].problem = "it no longer answers"; },
       "GPU b of its record: it no longer answers"},
      {"a GPU in another record",
       [](Look& look, BoundPod&) { look.pods->push_back(Pod("other", {"b"})); },
       "GPU b of its record: the record of pod team/other names it too"},
      {"a GPU somebody holds",
       [](Look& look, BoundPod&) {
         look.kubelet.push_back(Known("old", {{"main", {"b"}}}));
       },
       "container main of pod team/old holds it"},
      {"devices named by the pod itself",
       [](Look&, BoundPod& pod) { pod.asking[0].own_variables = {"NVIDIA_VISIBLE_DEVICES"}; },
       "sets NVIDIA_VISIBLE_DEVICES itself"},
  };
  for (const Row& row : table) {
    Look look = LookOf({}, {Known("p")});
    BoundPod pod = Pod("p", {"a", "b"});
    row.change(look, pod);
    look.pods->insert(look.pods->begin(), pod);
    Turns turns;
    const auto ids = turns.Open(look, All(2));
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kFailedPrecondition) << row.what;
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr("pod team/p: ")) << row.what;
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr(row.error)) << row.what;
    EXPECT_EQ(turns.Close({"a", "b"}), std::nullopt) << row.what;
  }
}

TEST(TurnsTest, WhatTheKubeletDoesNotOfferIsNotGiven) {
  Turns turns;
  const auto ids = turns.Open(LookOf({Pod("p", {"a"})}, {Known("p")}), {{"b", "c"}, {}, 1});
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("GPU a of its record: the kubelet"));
}

TEST(TurnsTest, OtherIdsThanThoseOfTheTurnAreRefused) {
  Turns turns;
  const Look look = LookOf({Pod("p", {"a"})}, {Known("p")});
  ASSERT_TRUE(turns.Open(look, All(1)).ok());
  const auto grant = turns.Close({"b"});
  ASSERT_TRUE(grant);
  EXPECT_THAT(std::string(grant->status().message()),
              HasSubstr("expected the kubelet to choose a"));
}

// The kubelet names no pod: whose turn it is.
TEST(TurnsTest, TellsWhoseTurnItIs) {
  BoundPod running = Pod("running", {"d"});
  running.acknowledged = true;
  BoundPod lost = Pod("lost", {"c"});
  lost.acknowledged = true;
  BoundPod idle = Pod("idle", {});
  idle.asking.clear();
  const KubeletPod holds_d = Known("running", {{"main", {"d"}}});
  struct Row {
    const char* what;
    std::vector<BoundPod> pods;
    std::vector<KubeletPod> kubelet;
    Ids expected;       // empty: cannot be told
    const char* error;  // then
  };
  const Row table[] = {
      {"beside a running one", {running, Pod("p", {"a"})}, {holds_d, Known("p")}, {"a"}, ""},
      {"the one the kubelet knows", {Pod("p", {"a"}), Pod("q", {"b"})}, {Known("q")}, {"b"}, ""},
      {"the one of that size",
       {Pod("p", {"a", "b"}), Pod("q", {"c"})},
       {Known("p"), Known("q")},
       {"c"},
       ""},
      {"the new one before one that started",
       {lost, Pod("p", {"a"})},
       {Known("lost"), Known("p")},
       {"a"},
       ""},
      {"one whose devices the kubelet forgot", {lost}, {Known("lost")}, {"c"}, ""},
      {"a successor of the same name",
       {Pod("p", {"a"})},
       {Known("p", {{"main", {"d"}}}), Known("p")},
       {"a"},
       ""},
      {"two",
       {Pod("p", {"a"}), Pod("q", {"b"})},
       {Known("p"), Known("q")},
       {},
       "found team/p and team/q"},
      {"none that the kubelet knows", {Pod("p", {"a"})}, {}, {}, "found none"},
      {"none that asks", {idle}, {Known("idle")}, {}, "found none"},
      {"none that waits", {running}, {holds_d}, {}, "found none"},
  };
  for (const Row& row : table) {
    Turns turns;
    const auto ids = turns.Open(LookOf(row.pods, row.kubelet), All(1));
    if (!row.expected.empty()) {
      ASSERT_TRUE(ids.ok()) << row.what << ": " << ids.status();
      EXPECT_EQ(*ids, row.expected) << row.what;
      continue;
    }
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kUnavailable) << row.what;
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr(row.error)) << row.what;
  }
}

TEST(TurnsTest, WithoutTheApiServerNothingIsGiven) {
  Look look = LookOf({}, {Known("p")});
  look.pods.reset();
  Turns turns;
  EXPECT_EQ(turns.Open(look, All(1)).status().code(), absl::StatusCode::kUnavailable);
}

TEST(TurnsTest, ARefusedPodIsNoLongerMeant) {
  Turns turns;
  Look look = LookOf({Pod("p", {"a"})}, {Known("p")});
  look.pods->front().record.reset();
  ASSERT_FALSE(turns.Open(look, All(1)).ok());
  look.pods->push_back(Pod("q", {"b"}));
  look.kubelet.push_back(Known("q"));
  const auto ids = turns.Open(look, All(1));
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, (Ids{"b"}));
}

// The kubelet gives the ids of an init container on, in an order of its own.
TEST(TurnsTest, LaterContainersGetTheirOwnOfWhatTheInitContainerHad) {
  BoundPod pod = Pod("p", {});
  pod.asking = {{"load", 2, true}, {"one", 1}, {"two", 1}};
  pod.record = Record({{"load", {"a", "b"}}, {"one", {"a"}}, {"two", {"b"}}});
  Turns turns;
  Look look = LookOf({pod}, {Known("p")});
  ASSERT_TRUE(turns.Open(look, All(2)).ok());
  ASSERT_TRUE(turns.Close({"a", "b"})->ok());
  const auto one = turns.Serve(look, {"b"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->container, "one");
  EXPECT_EQ(one->devices, std::vector<DeviceId>{Id("a")});
  look.kubelet = {Known("p", {{"one", {"b"}}})};
  const auto two = turns.Serve(look, {"a"});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->container, "two");
  EXPECT_EQ(two->devices, std::vector<DeviceId>{Id("b")});
  look.kubelet = {Known("p", {{"one", {"b"}}, {"two", {"a"}}})};
  EXPECT_TRUE(turns.MayStart(look, {"b"}).ok());
  EXPECT_FALSE(turns.MayStart(look, {"c"}).ok());
}

TEST(TurnsTest, IdsOfNoInitContainerAreNotGivenOn) {
  Turns turns;
  const Look look = LookOf({Pod("p", {"a"})}, {Known("p")});
  EXPECT_EQ(turns.Serve(look, {"b"}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(TurnsTest, AContainerStartsWhereHolderAndRecordAgree) {
  const Holding holds_a{"main", {"a"}};
  struct Row {
    const char* what;
    std::vector<BoundPod> pods;
    std::vector<KubeletPod> kubelet;
    const char* error;  // empty: it starts
  };
  const Row table[] = {
      {"they agree", {Pod("p", {"a"})}, {Known("p", {holds_a})}, ""},
      {"another pod holds it",
       {Pod("p", {"a"}), Pod("q", {"b"})},
       {Known("p"), Known("q", {holds_a})},
       "expected the record of container main of pod team/q to name a"},
      {"a record of more", {Pod("p", {"a", "b"})}, {Known("p", {holds_a})}, "to name a"},
      {"two hold it",
       {Pod("p", {"a"})},
       {Known("p", {holds_a}), Known("q", {holds_a})},
       "pods team/p and team/q hold the same GPU"},
      {"no record", {}, {Known("p", {holds_a})}, "to name a"},
  };
  for (const Row& row : table) {
    Turns turns;
    const absl::Status may = turns.MayStart(LookOf(row.pods, row.kubelet), {"a"});
    EXPECT_EQ(may.ok(), std::string_view(row.error).empty()) << row.what << ": " << may;
    EXPECT_THAT(std::string(may.message()), HasSubstr(row.error)) << row.what;
  }
  Turns turns;
  Look broken = LookOf({Pod("p", {"a"})}, {Known("p", {holds_a})});
  broken.cards[0].problem = "it no longer answers";
  EXPECT_THAT(std::string(turns.MayStart(broken, {"a"}).message()), HasSubstr("no longer answers"));
}

// A card "m" that can be cut into 1g.10gb and 3g.40gb, and a pod that is to have one of it.
Look LookAtMig(std::vector<BoundPod> pods, std::vector<KubeletPod> kubelet) {
  Look look = LookOf(std::move(pods), std::move(kubelet));
  Card& card = look.cards.emplace_back();
  card.uuid = GpuUuid("m");
  card.mig = true;
  card.offers = {{"1g.10gb", 9984, 1, {0, 1, 2, 3, 4, 5, 6}}, {"3g.40gb", 40448, 4, {0, 4}}};
  return look;
}

BoundPod MigPod(const std::string& name, const std::string& id) {
  BoundPod pod = Pod(name, {"m"});
  pod.record->containers[0].devices[0].mig = Id(id).place;
  return pod;
}

TEST(TurnsTest, GivesTheInstanceThatTheRecordNames) {
  Turns turns("1g.10gb");
  Look look = LookAtMig({MigPod("p", "m/1g.10gb@3+1")}, {Known("p")});
  const auto ids = turns.Open(look, {{"m/1g.10gb@0+1", "m/1g.10gb@3+1"}, {}, 1});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, Ids{"m/1g.10gb@3+1"});
  const auto grant = turns.Close(*ids);
  ASSERT_TRUE(grant && grant->ok());
  EXPECT_EQ((*grant)->devices, std::vector<DeviceId>{Id("m/1g.10gb@3+1")});
  look.kubelet = {Known("p", {{"main", *ids}})};
  EXPECT_TRUE(turns.MayStart(look, *ids).ok());
  EXPECT_FALSE(turns.MayStart(look, {"m/1g.10gb@0+1"}).ok());
}

TEST(TurnsTest, PlacesThatOverlapAreNotGivenTwice) {
  struct Row {
    const char* what;
    std::function<void(Look&)> change;
    const char* error;
  };
  const Row table[] = {
      {"another record", [](Look& look) { look.pods->push_back(MigPod("other", "m/3g.40gb@0+4")); },
       "the record of pod team/other names it too"},
      {"a whole card of another record",
       [](Look& look) { look.pods->push_back(Pod("other", {"m"})); }, "names it too"},
      {"another pod that holds one of another resource",
       [](Look& look) {
         look.kubelet.push_back({{"team", "old"}, {}, {{"main", {"m/3g.40gb@0+4"}}}});
       },
       "container main of pod team/old holds it"},
      {"a place that is closed",
       [](Look& look) {
         look.cards.back().closed = {{{"3g.40gb", 0, 4}, "in use by a stranger"}};
       },
       "in use by a stranger"},
      {"no such place", [](Look& look) { look.cards.back().offers[0].starts = {0}; },
       "the driver knows no such place"},
      {"no MIG mode", [](Look& look) { look.cards.back().mig = false; }, "makes no MIG instances"},
      {"beside it", [](Look& look) { look.pods->push_back(MigPod("other", "m/3g.40gb@4+4")); }, ""},
  };
  for (const Row& row : table) {
    Look look = LookAtMig({MigPod("p", "m/1g.10gb@3+1")}, {Known("p")});
    row.change(look);
    Turns turns("1g.10gb");
    const auto ids = turns.Open(look, {{"m/1g.10gb@3+1"}, {}, 1});
    EXPECT_EQ(ids.ok(), std::string_view(row.error).empty()) << row.what;
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr(row.error)) << row.what;
  }
  Turns turns;
  const auto whole = turns.Open(LookAtMig({Pod("p", {"m"})}, {Known("p")}), {{"m"}, {}, 1});
  EXPECT_THAT(std::string(whole.status().message()), HasSubstr("its MIG mode is on"));
}

TEST(TurnsTest, TellsOfEachResourceWhatThereIsOfIt) {
  Look look = LookAtMig({}, {});
  look.cards.back().closed = {{{"1g.10gb", 5, 1}, "stuck"}};
  const auto text = [&](const std::string& profile) {
    Ids all;
    for (const TellableDevice& one : DevicesOf(look.cards, profile)) {
      all.push_back((one.healthy ? "" : "!") + one.id.str());
    }
    return all;
  };
  EXPECT_EQ(text(""), (Ids{"a", "b", "c", "d"}));
  EXPECT_EQ(text("3g.40gb"), (Ids{"m/3g.40gb@0+4", "!m/3g.40gb@4+4"}));
  look.cards.back().problem = "it fell off the bus";
  EXPECT_EQ(text("3g.40gb"), (Ids{"!m/3g.40gb@0+4", "!m/3g.40gb@4+4"}));
  EXPECT_EQ(text("2g.20gb"), Ids{});
}

// Containers that crash are started again while the API server is away.
TEST(TurnsTest, WhatWasFoundRightStartsAgainWithoutTheApiServer) {
  Turns turns;
  Look look = LookOf({Pod("p", {"a"})}, {Known("p", {{"main", {"a"}}})});
  Look away = look;
  away.pods.reset();
  EXPECT_EQ(turns.MayStart(away, {"a"}).code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(turns.MayStart(look, {"a"}).ok());
  EXPECT_TRUE(turns.MayStart(away, {"a"}).ok());
  away.kubelet = {Known("q", {{"main", {"a"}}})};
  EXPECT_FALSE(turns.MayStart(away, {"a"}).ok());
}

}  // namespace THIS_FILE
}  // namespace tranche::agent
