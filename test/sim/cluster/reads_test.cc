// Lists and watches of the API server: pages, versions, histories that end, servers that lag.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "test/sim/cluster/server_scene.h"

namespace tranche::sim {
namespace THIS_FILE {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> NamesOf(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list.at("items")) out.push_back(item.at("metadata").at("name"));
  return out;
}

std::string Escaped(const std::string& token) {
  std::string out;
  for (const char byte : token) {
    const bool plain = std::isalnum(static_cast<unsigned char>(byte)) != 0;
    out +=
        plain ? std::string(1, byte)
              : "%" + std::string(1, "0123456789ABCDEF"[byte >> 4]) + "0123456789ABCDEF"[byte & 15];
  }
  return out;
}

TEST(ListsTest, PagesShowOneMoment) {
  ServerScene scene;
  for (const char* name : {"a", "b", "c"}) scene.PutPod(name, Json::object());
  const std::string version = std::to_string(scene.api.store().version());
  const Json first = Json::parse(scene.Send("GET", "/api/v1/pods?limit=2").body);
  EXPECT_EQ(NamesOf(first), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(first["metadata"]["resourceVersion"], version);
  scene.PutPod("d", Json::object());
  const std::string token = Escaped(first["metadata"]["continue"]);
  const Json second = Json::parse(scene.Send("GET", "/api/v1/pods?limit=2&continue=" + token).body);
  EXPECT_EQ(NamesOf(second), (std::vector<std::string>{"c"}));
  EXPECT_EQ(second["metadata"]["resourceVersion"], version);
  EXPECT_FALSE(second["metadata"].contains("continue"));
  // Items carry no kind of their own.
  EXPECT_FALSE(second["items"][0].contains("kind"));
  EXPECT_EQ(second["kind"], "PodList");
  EXPECT_EQ(scene.Send("GET", "/api/v1/pods?continue=" + token + "&resourceVersion=5").code, 400);
  scene.api.lists().ForgetSnapshots();
  EXPECT_EQ(scene.Send("GET", "/api/v1/pods?limit=2&continue=" + token).code, 410);
}

TEST(ListsTest, VersionsThatAreAskedFor) {
  ServerScene scene;
  scene.PutPod("a", Json::object());
  const uint64_t now = scene.api.store().version();
  scene.PutPod("b", Json::object());
  const std::string old = std::to_string(now);
  const std::string future = std::to_string(now + 100);
  struct Row {
    std::string query;
    int code;
  };
  for (const Row& row : std::vector<Row>{{"", 200},
                                         {"?resourceVersion=0", 200},
                                         {"?resourceVersion=" + old, 200},
                                         {"?limit=5&resourceVersion=" + old, 410},
                                         {"?resourceVersion=" + future, 504},
                                         {"?resourceVersionMatch=Exact", 400}}) {
    EXPECT_EQ(scene.Send("GET", "/api/v1/pods" + row.query).code, row.code) << row.query;
  }
  EXPECT_NE(scene.Send("GET", "/api/v1/pods?resourceVersion=" + future)
                .body.find("ResourceVersionTooLarge"),
            std::string::npos);
  EXPECT_EQ(scene.Send("GET", "/api/v1/widgets").code, 404);
}

TEST(WatchesTest, TellAllAfterAVersionInOrder) {
  ServerScene scene;
  scene.PutPod("a", Json::object());
  const std::string from = std::to_string(scene.api.store().version());
  scene.PutPod("b", Json::object());
  scene.PutPod("a", {{"x", 1}});
  scene.Put("nodes", {{"metadata", {{"name", "n"}}}});
  Heard heard;
  OpenWatch(scene, "/api/v1/pods?watch=1&resourceVersion=" + from, heard);
  scene.loop.RunUntil(seconds(1), 1'000);
  EXPECT_EQ(heard.frames(), (std::vector<std::string>{"ADDED b", "MODIFIED a"}));
  scene.Send("DELETE", "/api/v1/namespaces/team/pods/b");
  EXPECT_EQ(heard.frames().back(), "DELETED b");
  EXPECT_FALSE(heard.code);
}

TEST(WatchesTest, EndAtTheirTimeAndShowBookmarks) {
  ServerScene scene;
  Heard heard;
  OpenWatch(scene,
            "/api/v1/nodes?watch=1&resourceVersion=100&allowWatchBookmarks=true&timeoutSeconds=90",
            heard);
  scene.loop.RunUntil(seconds(70), 1'000);
  EXPECT_EQ(heard.frames(), (std::vector<std::string>{"BOOKMARK -"}));
  EXPECT_FALSE(heard.code);
  scene.loop.RunUntil(seconds(95), 1'000);
  EXPECT_EQ(heard.code, 200);
}

TEST(WatchesTest, AClosedOneSaysNothingMore) {
  ServerScene scene;
  Heard heard;
  const uint64_t watch = OpenWatch(scene, "/api/v1/pods?watch=1&resourceVersion=101", heard);
  scene.loop.RunUntil(seconds(1), 1'000);
  scene.api.CloseWatch(watch);
  scene.PutPod("a", Json::object());
  scene.loop.RunUntil(seconds(100), 1'000);
  EXPECT_EQ(heard.bytes, "");
  EXPECT_FALSE(heard.code);
}

// 410 comes as the code of the answer or as a frame of a 200.
TEST(WatchesTest, AVersionWhoseHistoryIsGoneIsExpired) {
  ServerScene scene;
  scene.PutPod("a", Json::object());
  scene.api.store().Compact(scene.api.store().version());
  bool as_code = false;
  bool as_frame = false;
  for (int i = 0; i < 20; ++i) {
    Heard heard;
    OpenWatch(scene, "/api/v1/pods?watch=1&resourceVersion=100", heard);
    scene.loop.RunUntil(scene.loop.now() + seconds(1), 1'000);
    ASSERT_TRUE(heard.code);
    as_code = as_code || *heard.code == 410;
    const bool framed = heard.frames() == std::vector<std::string>{"ERROR 410"};
    EXPECT_EQ(framed, *heard.code == 200);
    as_frame = as_frame || framed;
  }
  EXPECT_TRUE(as_code);
  EXPECT_TRUE(as_frame);
}

TEST(WatchesTest, OneThatFallsBehindTheHistoryHearsAnError) {
  ServerScene scene;
  Watches watches(scene.loop, scene.api.store(), scene.script, scene.faults, scene.network, 1);
  watches.set_lag(0, seconds(10));
  Heard heard;
  Watches::Opening opening;
  opening.from = scene.client;
  opening.type = FindResource("pods");
  opening.version = scene.api.store().version();
  opening.lasts = seconds(1'000);
  opening.bytes = [&heard](std::string_view bytes) { heard.bytes += bytes; };
  opening.ended = [&heard](int code, const std::string&) { heard.code = code; };
  watches.Open(std::move(opening));
  scene.PutPod("a", Json::object());
  scene.loop.RunUntil(seconds(5), 1'000);
  EXPECT_EQ(heard.bytes, "");
  scene.api.store().Compact(scene.api.store().version());
  scene.loop.RunUntil(seconds(70), 1'000);
  EXPECT_EQ(heard.frames(), (std::vector<std::string>{"ERROR 410"}));
  EXPECT_EQ(heard.code, 200);
}

TEST(WatchesTest, ADeletionMayBeLostWhereTheNameIsTakenAgain) {
  for (const int rate : {0, 500}) {
    FaultPlan faults;
    faults.rates[static_cast<int>(Fault::kApiServer)] = rate;
    ServerScene scene(faults);
    scene.PutPod("a", Json::object());
    scene.PutPod("b", Json::object());
    Watches watches(scene.loop, scene.api.store(), scene.script, scene.faults, scene.network, 1);
    watches.set_lag(0, seconds(10));
    Heard heard;
    Watches::Opening opening;
    opening.from = scene.client;
    opening.type = FindResource("pods");
    opening.version = scene.api.store().version();
    opening.lasts = seconds(1'000);
    opening.bytes = [&heard](std::string_view bytes) { heard.bytes += bytes; };
    opening.ended = [&heard](int code, const std::string&) { heard.code = code; };
    watches.Open(std::move(opening));
    for (const char* const name : {"a", "b"}) {
      scene.api.store().Remove("pods", std::string("team/") + name, "user");
    }
    scene.PutPod("a", Json::object());
    scene.loop.RunUntil(seconds(12), 1'000);
    std::vector<std::string> told = {"DELETED a", "DELETED b", "ADDED a"};
    if (rate > 0) told.erase(told.begin());
    std::vector<std::string> frames = heard.frames();
    frames.resize(std::min(frames.size(), told.size()));  // the last may come twice
    EXPECT_EQ(frames, told) << rate;
  }
}

TEST(NetworkTest, WhatItsSenderHasGivenUpMayArrive) {
  FaultPlan faults;
  faults.rates[static_cast<int>(Fault::kNetwork)] = 5'000;
  ServerScene scene(faults);
  int late = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string key = "team/c" + std::to_string(i);
    const Reply reply = scene.Send(
        "POST", "/api/v1/namespaces/team/configmaps",
        {{"kind", "ConfigMap"}, {"metadata", {{"name", key.substr(5)}, {"namespace", "team"}}}});
    const bool done = !scene.Object("configmaps", key).is_null();
    scene.loop.RunUntil(scene.loop.now() + seconds(4), 100'000);
    late += !done && !scene.Object("configmaps", key).is_null() ? 1 : 0;
    EXPECT_TRUE(done || reply.code == 0) << key;
  }
  EXPECT_GT(late, 0);
}

TEST(NetworkTest, AnAnswerMayBeLostAfterTheWrite) {
  FaultPlan faults;
  faults.rates[static_cast<int>(Fault::kNetwork)] = 2'000;
  ServerScene scene(faults);
  int lost = 0;
  int lost_and_done = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string name = "c" + std::to_string(i);
    const Reply reply =
        scene.Send("POST", "/api/v1/namespaces/team/configmaps",
                   {{"kind", "ConfigMap"}, {"metadata", {{"name", name}, {"namespace", "team"}}}});
    if (reply.code != 0) continue;
    EXPECT_TRUE(reply.sent);
    ++lost;
    lost_and_done += scene.Object("configmaps", "team/" + name).is_null() ? 0 : 1;
  }
  EXPECT_GT(lost, 5);
  EXPECT_GT(lost_and_done, 0);
  EXPECT_LT(lost_and_done, lost);
  // Quiet ends it.
  scene.network.Quiet();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(scene.Send("GET", "/api/v1/pods").code, 200);
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
