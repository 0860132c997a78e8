// Lists and watches that hold objects nobody expects: one bad object costs one object.
#include <gtest/gtest.h>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;

constexpr const char* kClaims = "/apis/resource.k8s.io/v1/resourceclaims";

std::string Nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += R"({"f:a":)";
  return text + "{}" + std::string(depth, '}');
}

// The text of an object, with `more` among its outermost members.
std::string With(const Json& object, const std::string& version, const std::string& more) {
  Json versioned = object;
  versioned["metadata"]["resourceVersion"] = version;
  return "{" + more + "," + versioned.dump().substr(1);
}

std::string ListText(const std::string& kind, const std::vector<std::string>& items) {
  return fmt::format(R"({{"kind":"{}","metadata":{{"resourceVersion":"100"}},"items":[{}]}})", kind,
                     fmt::join(items, ","));
}

class UnreadableTest : public ::testing::Test {
 protected:
  void AnswerList(const std::string& path, const std::string& body) {
    server_.OnNext("GET", path,
                   [body](const ApiRequest&, Exchange& exchange) { exchange.Answer(200, body); });
  }
  void AnswerWatch(const std::string& path, const std::vector<std::string>& frames) {
    server_.OnNextWatch(path, [frames](const ApiRequest&, Exchange& exchange) {
      exchange.StartChunks();
      for (const std::string& frame : frames) exchange.Chunk(frame);
      exchange.WaitUntilStopped();
    });
  }
  void StartSynced() {
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
    ASSERT_TRUE(events_.Saw("synced"));
  }
  ResourceStatus StatusOf(const char* resource) { return cluster_->status().at(resource); }
  std::vector<ApiRequest> ListsOf(const std::string& path) const {
    std::vector<ApiRequest> out = server_.Requests(path);
    std::erase_if(out, [](const ApiRequest& one) { return one.query.contains("watch"); });
    return out;
  }
  std::vector<ApiRequest> FirstPagesOf(const std::string& path) const {
    std::vector<ApiRequest> out = ListsOf(path);
    std::erase_if(out, [](const ApiRequest& one) { return one.query.contains("continue"); });
    return out;
  }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(UnreadableTest, WhatStandsInPartsNobodyReadsCostsNothing) {
  AnswerList(kPods,
             ListText("PodList",
                      {With(Pod("deep", "u1", "n1"), "5", R"("managed":)" + Nested(70)),
                       With(Pod("deeper", "u2", "n1"), "5", R"("managed":)" + Nested(20'000)),
                       With(Pod("long", "u3", "n1"), "5", R"("n":123456789012345678901234567890)"),
                       With(Pod("plain", "u4", "n1"), "5", R"("n":1)")}));
  AnswerWatch(
      kPods,
      {fmt::format(R"({{"type":"ADDED","object":{}}})",
                   With(Pod("later", "u5", "n1"), "101", R"("n":[1e400,)" + Nested(70) + "]"))});
  StartSynced();
  for (const char* line :
       {"pod team/deep u1 on n1", "pod team/deeper u2 on n1", "pod team/long u3 on n1",
        "pod team/plain u4 on n1", "pod team/later u5 on n1"}) {
    EXPECT_TRUE(events_.Saw(line)) << line;
  }
  EXPECT_EQ(StatusOf("pods").failures, 0);
  EXPECT_EQ(StatusOf("pods").unreadable, 0);
}

TEST_F(UnreadableTest, AClaimIsReadWhateverItsOpaqueParametersHold) {
  const auto claim = [](const char* name, const std::string& parameters) {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"team","uid":"{0}","resourceVersion":"5"}},)"
        R"("spec":{{"devices":{{"config":[{{"opaque":{{"driver":"d","parameters":{1}}}}}]}}}}}})",
        name, parameters);
  };
  server_.Install(kClaims, "ResourceClaimList");
  AnswerList(kClaims, ListText("ResourceClaimList",
                               {claim("long", R"({"n":123456789012345678901234567890})"),
                                claim("deep", Nested(70)), claim("plain", "{}")}));
  StartSynced();
  for (const char* line : {"claim team/long", "claim team/deep", "claim team/plain"}) {
    EXPECT_TRUE(events_.Saw(line)) << line;
  }
}

TEST_F(UnreadableTest, AnItemThatIsNoJsonIsKeptAsUnknown) {
  AnswerList(kPods, ListText("PodList", {With(Pod("a", "u1", "n1"), "5", R"("x":1)"),
                                         With(Pod("odd", "u2", "n2"), "6", R"("x":tru)"),
                                         With(Pod("waits", "u3"), "7", R"("x":tru)"),
                                         With(Pod("b", "u4", "n1"), "8", R"("x":1)")}));
  AnswerWatch(kPods, {fmt::format(R"({{"type":"MODIFIED","object":{}}})",
                                  With(Pod("waits", "u3"), "101", R"("x":1)"))});
  StartSynced();
  for (const char* line : {"pod team/a u1 on n1", "pod team/odd u2 on n2 unreadable",
                           "pod team/b u4 on n1", "pod team/waits u3"}) {
    EXPECT_TRUE(events_.Saw(line)) << line;
  }
  EXPECT_TRUE(Eventually([this] { return StatusOf("pods").unreadable == 1; }));
  EXPECT_EQ(StatusOf("pods").undecodable, 2);
}

TEST_F(UnreadableTest, TheEndOfAPodIsSeenInVersionsThatCannotBeRead) {
  server_.Put(kPods, Pod("a", "u1", "n1"));
  Json leaving = Pod("a", "u1", "n1");
  leaving["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  Json ended = Pod("a", "u1", "n1");
  ended["status"]["phase"] = "Failed";
  const auto frame = [](const char* type, const Json& pod, const char* version) {
    return fmt::format(R"({{"type":"{}","object":{}}})", type, With(pod, version, R"("x":tru)"));
  };
  AnswerWatch(kPods, {frame("MODIFIED", leaving, "501"), frame("MODIFIED", ended, "502"),
                      frame("DELETED", ended, "503")});
  StartSynced();
  EXPECT_TRUE(events_.Saw("pod gone u1"));
  EXPECT_EQ(events_.Lines(),
            (std::vector<std::string>{"pod team/a u1 on n1", "synced",
                                      "pod team/a u1 on n1 unreadable leaving",
                                      "pod team/a u1 on n1 unreadable ended", "pod gone u1"}));
  EXPECT_TRUE(Eventually([this] { return StatusOf("pods").unreadable == 0; }));
}

TEST_F(UnreadableTest, ANodeThatCannotBeReadIsToldSoUntilItCan) {
  const Json odd = {{"metadata", {{"name", "n1"}, {"uid", "1"}, {"labels", 5}}}};
  Json node = odd;
  node["metadata"].erase("labels");
  AnswerList(kNodes, ListText("NodeList", {With(odd, "5", R"("x":1)"),
                                           With(Node("n2", "2"), "6", R"("x":1)")}));
  const auto frame = [](const Json& each, const char* version, const char* more) {
    return fmt::format(R"({{"type":"MODIFIED","object":{}}})", With(each, version, more));
  };
  AnswerWatch(kNodes,
              {frame(node, "101", R"("x":1)"), frame(node, "102", R"("x":tru)"),
               fmt::format(R"({{"type":"DELETED","object":{}}})", With(node, "103", R"("x":1)"))});
  StartSynced();
  EXPECT_TRUE(events_.Saw("node gone n1"));
  std::vector<std::string> lines = events_.Lines();
  for (std::string& line : lines) line = line.substr(0, line.find(':'));
  std::erase(lines, "synced");
  EXPECT_EQ(lines, (std::vector<std::string>{"node n1 unreadable", "node n2", "node n1",
                                             "node n1 unreadable", "node gone n1"}));
  EXPECT_TRUE(Eventually([this] { return StatusOf("nodes").undecodable == 2; }));
}

TEST_F(UnreadableTest, NothingIsGoneByAListWithANamelessItem) {
  server_.Put(kPods, Pod("a", "u1", "n1"));
  StartSynced();
  AnswerList(kPods, ListText("PodList", {With(Pod("b", "u2", "n1"), "105", R"("x":1)"),
                                         R"({"metadata":{"name":"a","resourceVersion":"5"}})"}));
  server_.Compact();
  EXPECT_TRUE(events_.Saw("pod team/b u2 on n1"));
  EXPECT_TRUE(Eventually([this] { return StatusOf("pods").unreadable == 1; }));
  EXPECT_EQ(events_.Count("pod gone u1"), 0);
  EXPECT_EQ(StatusOf("pods").relists, 1);
}

TEST_F(UnreadableTest, AListIsReadHoweverLargeItsPagesAre) {
  std::vector<std::string> items;
  for (int i = 0; i < 60; ++i) {
    const std::string name = fmt::format("p{}", i);
    items.push_back(With(Pod(name, name, "n1"), "5",
                         fmt::format(R"("env":"{}")", std::string(1'400'000, 'x'))));
  }
  AnswerList(kPods, ListText("PodList", items));
  StartSynced();
  EXPECT_EQ(events_.Lines().size(), 61u);
  EXPECT_EQ(ListsOf(kPods).size(), 1u);
}

TEST_F(UnreadableTest, APageThatDoesNotArriveWholeIsAskedForInHalves) {
  server_.set_page_size(2);
  for (const char* name : {"a", "b", "c"}) server_.Put(kPods, Pod(name, name, "n1"));
  const auto serve = [this](const ApiRequest& request, Exchange& exchange) {
    server_.Serve(request, exchange);
  };
  const auto cut = [](const ApiRequest&, Exchange& exchange) {
    exchange.StartChunks();
    exchange.Chunk(R"({"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[)");
    exchange.Drop();
  };
  server_.OnNext("GET", kPods, serve);
  for (int i = 0; i < 3; ++i) server_.OnNext("GET", kPods, cut);
  StartSynced();
  const std::vector<ApiRequest> lists = ListsOf(kPods);
  ASSERT_EQ(lists.size(), 5u);
  std::vector<std::string> limits;
  for (const ApiRequest& list : lists) limits.push_back(list.query.at("limit"));
  EXPECT_EQ(limits, (std::vector<std::string>{"500", "500", "250", "125", "62"}));
  for (std::size_t i = 2; i < lists.size(); ++i) {
    EXPECT_EQ(lists[i].query.at("continue"), lists[1].query.at("continue"));
  }
  EXPECT_EQ(events_.Count("pod team/c c on n1"), 1);
  EXPECT_EQ(StatusOf("pods").failures, 0);
  // The next list begins with the size that worked, and the one after it with more.
  for (const auto& [name, limit] : {std::pair("d", "62"), std::pair("e", "124")}) {
    const std::size_t before = FirstPagesOf(kPods).size();
    server_.Put(kPods, Pod(name, name, "n1"));
    server_.Compact();
    EXPECT_TRUE(Eventually([&] { return FirstPagesOf(kPods).size() > before; }));
    EXPECT_TRUE(Eventually([&] { return server_.Requests(kPods).back().query.contains("watch"); }));
    EXPECT_TRUE(events_.Saw(fmt::format("pod team/{0} {0} on n1", name)));
    EXPECT_EQ(FirstPagesOf(kPods)[before].query.at("limit"), limit);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
