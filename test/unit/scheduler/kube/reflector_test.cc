// The reading side against a server over real sockets. Each test scripts only what goes wrong.
#include <gtest/gtest.h>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using fakes::StatusBody;

class ReflectorTest : public ::testing::Test {
 protected:
  void StartClient(Timing timing = QuickTiming()) {
    Options options = PlainOptions(server_->port());
    options.timing = timing;
    cluster_ = std::make_unique<Cluster>(options, events_);
    cluster_->Start();
  }
  void StartSynced(Timing timing = QuickTiming()) {
    StartClient(timing);
    ASSERT_TRUE(events_.Saw("synced"));
    ASSERT_TRUE(Eventually([this] { return WatchesOf(kPods).size() == 1; }));
  }
  std::vector<ApiRequest> WatchesOf(const std::string& path) const {
    std::vector<ApiRequest> out = server_->Requests(path);
    std::erase_if(out, [](const ApiRequest& one) { return !one.query.contains("watch"); });
    return out;
  }
  std::vector<ApiRequest> ListsOf(const std::string& path) const {
    std::vector<ApiRequest> out = server_->Requests(path);
    std::erase_if(out, [](const ApiRequest& one) { return one.query.contains("watch"); });
    return out;
  }
  ResourceStatus PodStatus() const { return cluster_->status().at("pods"); }

  std::unique_ptr<ApiServer> server_ = std::make_unique<ApiServer>();
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ReflectorTest, HandsNodesOverBeforePodsAndThenSaysSyncedOnce) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  server_->Put(kNodes, Node("n1"));
  StartSynced();
  EXPECT_EQ(events_.Lines(),
            (std::vector<std::string>{"node n1", "pod team/a u1 on n1", "synced"}));
  server_->Compact();
  ASSERT_TRUE(Eventually([this] { return PodStatus().relists == 1; }));
  EXPECT_EQ(events_.Count("synced"), 1);
}

TEST_F(ReflectorTest, FollowsAddedModifiedAndDeleted) {
  StartSynced();
  server_->Put(kPods, Pod("a", "u1"));
  EXPECT_TRUE(events_.Saw("pod team/a u1"));
  server_->Put(kPods, Pod("a", "u1", "n1"));
  EXPECT_TRUE(events_.Saw("pod team/a u1 on n1"));
  server_->Delete(kPods, "team/a");
  EXPECT_TRUE(events_.Saw("pod gone u1"));
  server_->Put(kNodes, Node("n1"));
  EXPECT_TRUE(events_.Saw("node n1"));
  server_->Delete(kNodes, "n1");
  EXPECT_TRUE(events_.Saw("node gone n1"));
}

TEST_F(ReflectorTest, AsksForTheNewestStateAndForPlainJson) {
  StartSynced();
  const ApiRequest list = ListsOf(kPods).at(0);
  EXPECT_FALSE(list.query.contains("resourceVersion"));
  EXPECT_EQ(list.query.at("limit"), "500");
  EXPECT_EQ(list.headers.at("accept"), "application/json");
  EXPECT_EQ(list.headers.at("accept-encoding"), "identity");
  const ApiRequest watch = WatchesOf(kPods).at(0);
  EXPECT_EQ(watch.query.at("resourceVersion"), server_->version());
  EXPECT_EQ(watch.query.at("allowWatchBookmarks"), "true");
  EXPECT_GE(std::stoi(watch.query.at("timeoutSeconds")), 300);
  EXPECT_LE(std::stoi(watch.query.at("timeoutSeconds")), 600);
}

TEST_F(ReflectorTest, ReadsEveryPageAndWatchesFromTheVersionOfTheFirst) {
  server_->set_page_size(2);
  for (const char* name : {"a", "b", "c", "d", "e"}) server_->Put(kPods, Pod(name, name));
  StartSynced();
  EXPECT_EQ(ListsOf(kPods).size(), 3u);
  EXPECT_EQ(ListsOf(kPods).at(1).query.at("limit"), "500");
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    EXPECT_EQ(events_.Count(fmt::format("pod team/{0} {0}", name)), 1);
  }
  EXPECT_EQ(WatchesOf(kPods).at(0).query.at("resourceVersion"), server_->version());
}

TEST_F(ReflectorTest, ThrowsPagesAwayAndListsInOnePieceWhenTheThirdPageHasExpired) {
  server_->set_page_size(2);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    server_->Put(kPods, Pod(name, name));
  }
  const auto serve = [this](const ApiRequest& request, Exchange& exchange) {
    server_->Serve(request, exchange);
  };
  server_->OnNext("GET", kPods, serve);
  server_->OnNext("GET", kPods, [&](const ApiRequest& request, Exchange& exchange) {
    server_->DeleteSilently(kPods, "team/a");
    server_->Serve(request, exchange);
  });
  server_->OnNext("GET", kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(410, StatusBody(410, "Expired").dump());
  });
  StartSynced();
  const std::vector<ApiRequest> lists = ListsOf(kPods);
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_FALSE(lists[3].query.contains("limit"));
  EXPECT_FALSE(lists[3].query.contains("continue"));
  EXPECT_EQ(events_.Count("pod team/a a"), 0);
  EXPECT_EQ(events_.Count("pod team/e e"), 1);
}

TEST_F(ReflectorTest, ListsAgainAfter410AsCodeAndDerivesWhatItMissed) {
  server_->Put(kPods, Pod("gone", "u1", "n1"));
  server_->Put(kPods, Pod("reborn", "u2", "n1"));
  server_->Put(kPods, Pod("same", "u3", "n1"));
  StartSynced();
  server_->DeleteSilently(kPods, "team/gone");
  server_->PutSilently(kPods, Pod("reborn", "u4", "n2"));
  server_->PutSilently(kPods, Pod("new", "u5", "n1"));
  server_->Compact();
  ASSERT_TRUE(events_.Saw("pod gone u1"));
  EXPECT_LT(events_.Position("pod gone u2"), events_.Position("pod team/reborn u4 on n2"));
  EXPECT_LT(events_.Position("pod team/new u5 on n1"), events_.Position("pod gone u1"));
  EXPECT_EQ(events_.Count("pod team/same u3 on n1"), 1);
  EXPECT_EQ(events_.Count("pod gone u3"), 0);
}

TEST_F(ReflectorTest, An410AfterAnOutageIsNotMadeToWaitForTheOutage) {
  Timing timing = QuickTiming();
  timing.backoff_cap = std::chrono::milliseconds(60'000);
  StartSynced(timing);
  // Eight refusals bring the outage's backoff from 5 ms past a second; the history is gone after.
  for (int i = 0; i < 8; ++i) {
    server_->OnNextWatch(kPods, [](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(503, StatusBody(503, "ServiceUnavailable").dump());
    });
  }
  server_->OnNextWatch(kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(410, StatusBody(410, "Expired").dump());
  });
  server_->EndWatches();
  const auto asked = [this] { return WatchesOf(kPods).size(); };
  ASSERT_TRUE(Eventually([&] { return asked() >= 10; }));
  const auto gone = std::chrono::steady_clock::now();
  ASSERT_TRUE(Eventually([this] { return PodStatus().relists == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - gone, std::chrono::milliseconds(1'000));
}

TEST_F(ReflectorTest, ListsAgainAfter410AsEvent) {
  server_->OnNextWatch(kPods, [this](const ApiRequest&, Exchange& exchange) {
    exchange.StartChunks();
    server_->PutSilently(kPods, Pod("a", "u1"));
    exchange.Chunk(Json({{"type", "ERROR"}, {"object", StatusBody(410, "Expired")}}).dump());
    exchange.WaitUntilStopped();
  });
  StartClient();
  EXPECT_TRUE(events_.Saw("pod team/a u1"));
  EXPECT_TRUE(Eventually([this] { return PodStatus().relists == 1; }));
}

TEST_F(ReflectorTest, KeepsItsVersionAfterAnErrorEventThatIsNoExpiry) {
  server_->OnNextWatch(kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.StartChunks();
    exchange.Chunk(Json({{"type", "ERROR"}, {"object", StatusBody(500, "InternalError")}}).dump());
    exchange.WaitUntilStopped();
  });
  StartClient();
  ASSERT_TRUE(Eventually([this] { return WatchesOf(kPods).size() == 2; }));
  EXPECT_EQ(WatchesOf(kPods).at(1).query.at("resourceVersion"),
            WatchesOf(kPods).at(0).query.at("resourceVersion"));
  EXPECT_EQ(ListsOf(kPods).size(), 1u);
}

TEST_F(ReflectorTest, TakesARecreatedNamesakeAsAnotherPod) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  StartSynced();
  server_->Put(kPods, Pod("a", "u2"));
  ASSERT_TRUE(events_.Saw("pod team/a u2"));
  EXPECT_LT(events_.Position("pod gone u1"), events_.Position("pod team/a u2"));
}

TEST_F(ReflectorTest, ReactsToStatesWhenOnlyEveryThirdEventComes) {
  StartSynced();
  server_->PutSilently(kPods, Pod("a", "u1"));
  server_->PutSilently(kPods, Pod("a", "u1", "n1"));
  server_->Put(kPods, Pod("a", "u1", "n2"));
  EXPECT_TRUE(events_.Saw("pod team/a u1 on n2"));
  server_->PutSilently(kPods, Pod("b", "u2", "n1"));
  server_->Delete(kPods, "team/b");
  server_->Delete(kPods, "team/a");
  EXPECT_TRUE(events_.Saw("pod gone u1"));
  EXPECT_EQ(events_.Count("pod gone u2"), 0);
}

TEST_F(ReflectorTest, ReconnectsFromABookmarkWithoutAnotherList) {
  server_->Put(kPods, Pod("a", "u1"));
  StartSynced();
  server_->Bookmark(kPods);
  const std::string marked = server_->version();
  server_->EndWatches();
  ASSERT_TRUE(Eventually([this] { return WatchesOf(kPods).size() == 2; }));
  EXPECT_EQ(WatchesOf(kPods).at(1).query.at("resourceVersion"), marked);
  EXPECT_EQ(ListsOf(kPods).size(), 1u);
  EXPECT_EQ(events_.Count("pod team/a u1"), 1);
}

TEST_F(ReflectorTest, ReconnectsASilentWatchFromTheSameVersion) {
  server_->OnNextWatch(kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.StartChunks();
    exchange.WaitUntilStopped();
  });
  Timing timing = QuickTiming();
  timing.watch_silence = std::chrono::milliseconds(100);
  StartClient(timing);
  ASSERT_TRUE(Eventually([this] { return WatchesOf(kPods).size() >= 2; }));
  EXPECT_EQ(WatchesOf(kPods).at(1).query.at("resourceVersion"),
            WatchesOf(kPods).at(0).query.at("resourceVersion"));
  EXPECT_EQ(ListsOf(kPods).size(), 1u);
  EXPECT_EQ(PodStatus().failures, 0);
}

TEST_F(ReflectorTest, AskingTheServerKeepsASilentWatchFresh) {
  Timing timing = QuickTiming();
  timing.probe_period = std::chrono::milliseconds(20);
  StartSynced(timing);
  const auto heard = PodStatus().heard;
  EXPECT_TRUE(Eventually([&] { return PodStatus().heard > heard + timing.probe_period; }));
  EXPECT_EQ(WatchesOf(kPods).size(), 1u) << "the watch itself goes on";
  EXPECT_EQ(events_.Count("synced"), 1);
}

TEST_F(ReflectorTest, AWatchThatStaysSilentIsOpenedAnewFromItsVersion) {
  for (int i = 0; i < 2; ++i) {
    server_->OnNextWatch(kPods, [](const ApiRequest&, Exchange& exchange) {
      exchange.StartChunks();
      exchange.WaitUntilStopped();
    });
  }
  Timing timing = QuickTiming();
  timing.probe_period = std::chrono::milliseconds(20);
  StartClient(timing);
  ASSERT_TRUE(Eventually([this] { return WatchesOf(kPods).size() >= 3; }));
  EXPECT_EQ(WatchesOf(kPods).at(2).query.at("resourceVersion"),
            WatchesOf(kPods).at(0).query.at("resourceVersion"));
  // One probe a watch is taken for a sign of life, the second opens the next one.
  std::vector<ApiRequest> probes = ListsOf(kPods);
  std::erase_if(probes, [](const ApiRequest& one) {
    return !one.query.contains("limit") || one.query.at("limit") != "1";
  });
  EXPECT_GE(probes.size(), 4u);
  EXPECT_EQ(PodStatus().failures, 0);
  EXPECT_EQ(PodStatus().relists, 0);
}

TEST_F(ReflectorTest, EndsAWatchTheServerForgotToEnd) {
  Timing timing = QuickTiming();
  timing.watch_min = timing.watch_max = std::chrono::seconds(0);
  timing.watch_guard = std::chrono::milliseconds(100);
  StartClient(timing);
  EXPECT_TRUE(Eventually([this] { return WatchesOf(kPods).size() >= 3; }));
  EXPECT_EQ(ListsOf(kPods).size(), 1u);
}

TEST_F(ReflectorTest, ListsAgainOnAnEventTypeItDoesNotKnow) {
  server_->OnNextWatch(kPods, [](const ApiRequest&, Exchange& exchange) {
    Json pod = Pod("a", "u1");
    pod["metadata"]["resourceVersion"] = "500";
    exchange.StartChunks();
    exchange.Chunk(Json({{"type", "MOVED"}, {"object", pod}}).dump());
    exchange.WaitUntilStopped();
  });
  StartClient();
  EXPECT_TRUE(Eventually([this] { return ListsOf(kPods).size() == 2; }));
}

TEST_F(ReflectorTest, GoesOnFromTheLastGoodEventWhenTheStreamTurnsToGarbage) {
  std::string good;
  server_->OnNextWatch(kPods, [&](const ApiRequest&, Exchange& exchange) {
    server_->Put(kPods, Pod("a", "u1"));
    good = server_->version();
    exchange.StartChunks();
    exchange.Chunk(Json({{"type", "ADDED"}, {"object", server_->Object(kPods, "team/a")}}).dump());
    exchange.Chunk("<html>");
    exchange.WaitUntilStopped();
  });
  StartClient();
  ASSERT_TRUE(Eventually([this] { return WatchesOf(kPods).size() == 2; }));
  EXPECT_EQ(WatchesOf(kPods).at(1).query.at("resourceVersion"), good);
  EXPECT_EQ(events_.Count("pod team/a u1"), 1);
}

TEST_F(ReflectorTest, ReadsAFrameWhoseBytesComeOneByOne) {
  server_->OnNextWatch(kPods, [this](const ApiRequest&, Exchange& exchange) {
    server_->PutSilently(kPods, Pod("a", "u1"));
    const std::string frame =
        Json({{"type", "ADDED"}, {"object", server_->Object(kPods, "team/a")}}).dump();
    exchange.StartChunks();
    for (const char byte : frame) exchange.Chunk(std::string_view(&byte, 1));
    exchange.WaitUntilStopped();
  });
  StartClient();
  EXPECT_TRUE(events_.Saw("pod team/a u1"));
}

TEST_F(ReflectorTest, ReadsAnEventOfFifteenMebibytes) {
  StartSynced();
  Json pod = Pod("big", "u1");
  pod["metadata"]["annotations"]["blob"] = std::string(15 * 1024 * 1024, 'x');
  server_->Put(kPods, pod);
  EXPECT_TRUE(events_.Saw("pod team/big u1"));
}

TEST_F(ReflectorTest, StartsAgainFromTheLastEventWhenAConnectionBreaksInAFrame) {
  server_->OnNextWatch(kPods, [this](const ApiRequest&, Exchange& exchange) {
    server_->Put(kPods, Pod("a", "u1"));
    exchange.StartChunks();
    exchange.Chunk(R"({"type":"ADDED","object":{"metadata":{"name":"a")");
    exchange.Drop();
  });
  StartClient();
  EXPECT_TRUE(events_.Saw("pod team/a u1"));
  EXPECT_EQ(ListsOf(kPods).size(), 1u);
}

// Answers to a list that are no list. None may be taken for an empty one.
struct BadList {
  const char* name;
  int code;
  std::string body;
};
class BadListTest : public ReflectorTest, public ::testing::WithParamInterface<BadList> {};

TEST_P(BadListTest, IsRetriedAndClearsNothing) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  StartSynced();
  server_->OnNext("GET", kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(GetParam().code, GetParam().body);
  });
  server_->Compact();
  ASSERT_TRUE(Eventually([this] { return PodStatus().relists == 1; }));
  EXPECT_EQ(events_.Count("pod gone u1"), 0);
  EXPECT_GE(ListsOf(kPods).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(
    Answers, BadListTest,
    ::testing::Values(BadList{"StatusUnder200", 200, StatusBody(500, "InternalError").dump()},
                      BadList{"HtmlPage", 502, "<html>Bad Gateway</html>"},
                      BadList{"HtmlPageUnder200", 200, "<html>log in</html>"},
                      BadList{"EmptyObject", 200, "{}"},
                      BadList{"NotFound", 404, StatusBody(404, "NotFound").dump()},
                      BadList{"Forbidden", 403, StatusBody(403, "Forbidden").dump()},
                      BadList{"CutShort", 200,
                              R"({"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[)"},
                      BadList{"NoVersion", 200, R"({"kind":"PodList","metadata":{},"items":[]})"},
                      BadList{"TooLargeVersion", 504, StatusBody(504, "Timeout").dump()}),
    [](const ::testing::TestParamInfo<BadList>& row) { return row.param.name; });

TEST_F(ReflectorTest, DoesNotTakeAListCutOffInTheBodyForAShortOne) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  server_->OnNext("GET", kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.StartChunks();
    exchange.Chunk(R"({"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]})");
    exchange.Drop();
  });
  StartSynced();
  EXPECT_EQ(ListsOf(kPods).size(), 2u);
  EXPECT_EQ(events_.Count("pod team/a u1 on n1"), 1);
}

TEST_F(ReflectorTest, WaitsAsLongAsRetryAfterSays) {
  server_->OnNext("GET", kPods, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(429, StatusBody(429, "TooManyRequests").dump(), {{"Retry-After", "1"}});
  });
  const auto start = std::chrono::steady_clock::now();
  StartSynced();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(ReflectorTest, KeepsAPodItCannotReadAndNamesItsNode) {
  StartSynced();
  Json odd = Pod("odd", "u1", "n1");
  odd["spec"]["containers"] = "none";
  server_->Put(kPods, odd);
  EXPECT_TRUE(events_.Saw("pod team/odd u1 on n1 unreadable"));
  server_->Put(kPods, Pod("fine", "u2", "n1"));
  ASSERT_TRUE(events_.Saw("pod team/fine u2 on n1"));
  Json fine = Pod("fine", "u2", "n1");
  fine["spec"]["containers"] = 7;
  server_->Put(kPods, fine);
  server_->Compact();
  ASSERT_TRUE(Eventually([this] { return PodStatus().relists == 1; }));
  EXPECT_EQ(events_.Count("pod gone u1") + events_.Count("pod gone u2"), 0);
  EXPECT_EQ(events_.Count("pod team/fine u2 on n1 unreadable"), 1);
  EXPECT_TRUE(Eventually([this] { return PodStatus().undecodable >= 2; }));
}

TEST_F(ReflectorTest, FindsAndRepairsALostDeletion) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  Timing timing = QuickTiming();
  timing.drift_period = std::chrono::milliseconds(50);
  timing.drift_grace = std::chrono::milliseconds(30);
  StartSynced(timing);
  server_->DeleteSilently(kPods, "team/a");
  EXPECT_TRUE(events_.Saw("pod gone u1"));
  EXPECT_TRUE(Eventually([this] { return PodStatus().relists == 1; }));
  EXPECT_EQ(PodStatus().drifted, 1);
}

TEST_F(ReflectorTest, SeesNoDriftWhileEventsFlow) {
  Timing timing = QuickTiming();
  timing.drift_period = std::chrono::milliseconds(5);
  timing.drift_grace = std::chrono::milliseconds(200);
  StartSynced(timing);
  for (int round = 0; round < 300; ++round) {
    server_->Put(kPods, Pod(fmt::format("p{}", round % 7), fmt::format("u{}", round % 11), "n1"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(ListsOf(kPods).size(), 2u);
  EXPECT_EQ(PodStatus().drifted, 0);
}

TEST_F(ReflectorTest, ComesBackAfterTheServerWasAway) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  StartSynced();
  const uint16_t port = server_->port();
  server_.reset();
  ASSERT_TRUE(Eventually([this] { return PodStatus().failures >= 3; }));
  server_ = std::make_unique<ApiServer>(std::nullopt, port);
  server_->Put(kPods, Pod("b", "u2", "n1"));
  server_->Compact();
  EXPECT_TRUE(events_.Saw("pod team/b u2 on n1"));
  EXPECT_TRUE(events_.Saw("pod gone u1"));
}

// Each resource waits longer with every failure. One that finds the server again ends the wait of
// all: quotas must not be older than pods by a minute.
TEST_F(ReflectorTest, AllResourcesComeBackWithTheFirst) {
  Timing timing = QuickTiming();
  timing.backoff_first = std::chrono::milliseconds(60'000);
  StartSynced(timing);
  const uint16_t port = server_->port();
  server_.reset();
  const auto failed = [this](const char* resource) {
    return cluster_->status().at(resource).failures >= 1;
  };
  ASSERT_TRUE(Eventually([&] { return failed("pods") && failed("nodes") && failed("gpuquotas"); }));
  server_ = std::make_unique<ApiServer>(std::nullopt, port);
  server_->Install(kQuotas, "GPUQuotaList");
  server_->Put(kQuotas, {{"kind", "GPUQuota"}, {"metadata", {{"name", "team"}, {"uid", "u1"}}}});
  server_->Put(kNodes, Node("late"));
  cluster_->Refresh([] {});  // lists pods at once
  EXPECT_TRUE(events_.Saw("node late"));
  EXPECT_TRUE(Eventually([this] {
    const ResourceStatus quotas = cluster_->status().at("gpuquotas");
    return quotas.synced && !quotas.absent;
  }));
}

TEST_F(ReflectorTest, StopsAtOnceWhateverItWaitsFor) {
  server_->OnNext("GET", kNodes,
                  [](const ApiRequest&, Exchange& exchange) { exchange.WaitUntilStopped(); });
  StartClient();
  ASSERT_TRUE(Eventually([this] { return ListsOf(kNodes).size() == 1; }));
  const auto start = std::chrono::steady_clock::now();
  cluster_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
