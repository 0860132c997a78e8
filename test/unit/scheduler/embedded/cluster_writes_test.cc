// What Tranche writes to the embedded cluster.
#include <gtest/gtest.h>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

using Kind = WriteResult::Kind;

class EmbeddedWrites : public EmbeddedCluster {
 protected:
  WriteResult Write(const ObjectWrite& write) {
    return Written([&](auto done) { cluster_.Write(write, std::move(done)); });
  }
  WriteResult SetWaiting(const WaitingWrite& write) {
    return Written([&](auto done) { cluster_.SetWaiting(write, std::move(done)); });
  }
  WriteResult Emit(const EventWrite& event) {
    return Written([&](auto done) { cluster_.Emit(event, std::move(done)); });
  }
};

TEST_F(EmbeddedWrites, ReplaceMembersOfAnObjectAndTellNobody) {
  Applied(Quota("q", "org"));
  const Json before = Stored("GPUQuota", "q");
  EXPECT_EQ(Write({"GPUQuota", "", "q", true, R"("status":{"used":"1","old":true})"}).kind,
            Kind::kDone);
  EXPECT_EQ(Write({"GPUQuota", "", "q", true, R"("status":{"used":"2"})"}).kind, Kind::kDone);
  const Json after = Stored("GPUQuota", "q");
  EXPECT_EQ(after["status"], Json::parse(R"({"used":"2"})"));
  EXPECT_EQ(after["spec"], before["spec"]);
  EXPECT_EQ(after["metadata"]["uid"], before["metadata"]["uid"]);
  EXPECT_EQ(after["metadata"]["generation"], 1);
  EXPECT_NE(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
  EXPECT_EQ(recorder_.Take(), Lines{});
}

TEST_F(EmbeddedWrites, CreateAndDeleteAView) {
  EXPECT_EQ(Write({"GPUQuotaView", "team", "view", true, R"("status":{})"}).http_code, 404);
  EXPECT_EQ(Write({"GPUQuota", "", "q", false, R"("spec":{})"}).http_code, 404);
  EXPECT_EQ(Write({"GPUQuotaView", "team", "view", false, ""}).http_code, 201);
  EXPECT_EQ(Write({"GPUQuotaView", "team", "view", true, R"("status":{"leaf":"a"})"}).http_code,
            200);
  const auto view = cluster_.Get("GPUQuotaView", "team", "view");
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(Json::parse(*view)["status"]["leaf"], "a");
  EXPECT_EQ(Json::parse(*view)["metadata"]["namespace"], "team");
  EXPECT_FALSE(Json::parse(*view)["metadata"]["uid"].get<std::string>().empty());
  for (int i = 0; i < 2; ++i) {  // the second time it is gone already
    EXPECT_EQ(Written([&](auto done) {
                cluster_.DeleteView({"team", "view"}, std::move(done));
              }).kind,
              Kind::kDone);
  }
  EXPECT_FALSE(cluster_.Get("GPUQuotaView", "team", "view").has_value());
  EXPECT_EQ(recorder_.Take(), Lines{});
}

TEST_F(EmbeddedWrites, KeepARecordOfAReclaim) {
  EXPECT_EQ(Write({"GPUReclaim", "", "r", true, R"("status":{})"}).http_code, 404);
  EXPECT_EQ(Write({"GPUReclaim", "", "r", false, R"("spec":{"rule":"R1"})"}).http_code, 201);
  EXPECT_EQ(Write({"GPUReclaim", "", "r", true, R"("status":{"phase":"Evicting"})"}).http_code,
            200);
  const Json reclaim = Stored("GPUReclaim", "r");
  EXPECT_EQ(reclaim["spec"]["rule"], "R1");
  EXPECT_EQ(reclaim["status"]["phase"], "Evicting");
  EXPECT_FALSE(reclaim["metadata"].contains("namespace"));
  EXPECT_EQ(recorder_.Take(), Lines{}) << "what we wrote ourselves does not come back";
  for (int i = 0; i < 2; ++i) {  // the second time it is gone already
    EXPECT_EQ(Written([&](auto done) { cluster_.DeleteReclaim("r", std::move(done)); }).kind,
              Kind::kDone);
  }
  EXPECT_EQ(Stored("GPUReclaim", "r"), Json());
}

TEST_F(EmbeddedWrites, RefuseFieldsThatAreNoJson) {
  Applied(Quota("q"));
  const auto before = cluster_.Get("GPUQuota", "", "q");
  const WriteResult result = Write({"GPUQuota", "", "q", true, R"("status":)"});
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_EQ(result.http_code, 400);
  EXPECT_EQ(cluster_.Get("GPUQuota", "", "q"), before);
}

TEST_F(EmbeddedWrites, SetTheConditionOfAWaitingPodAndTellNobody) {
  Applied(Pod("a", R"(,"uid":"u")", "", R"("conditions":[{"type":"X"}])"));
  const PodName name{"default", "a"};
  EXPECT_EQ(SetWaiting({name, PodUid("u"), true, "WaitingForQuota", "short by 2", kStart}).kind,
            Kind::kDone);
  EXPECT_EQ(SetWaiting({name, PodUid("u"), false, "Placed", "", kStart + seconds(1)}).kind,
            Kind::kDone);
  EXPECT_EQ(Stored("Pod", "a")["status"]["conditions"],
            Json::parse(R"([{"type":"X"},{"type":"tranche.dev/Waiting","status":"False",
              "reason":"Placed","lastTransitionTime":"2026-03-01T00:00:01Z"}])"));
  EXPECT_EQ(SetWaiting({name, PodUid("v"), true, "R", "m", kStart}).http_code, 409);
  EXPECT_EQ(SetWaiting({{"default", "b"}, PodUid("u"), true, "R", "m", kStart}).http_code, 404);
  EXPECT_EQ(recorder_.Take(), Lines{});
}

TEST_F(EmbeddedWrites, LabelANodeAndTellTheEngine) {
  Applied(R"({"kind":"Node","metadata":{"name":"n1","uid":"u1","labels":{"zone":"a"}}})");
  const auto label = [&](const char* node, const char* value) {
    return Written([&](auto done) {
      cluster_.LabelNode({NodeName(node), "nvidia.com/mig.config.state", value}, std::move(done));
    });
  };
  EXPECT_EQ(label("n1", "pending").kind, Kind::kDone);
  EXPECT_EQ(recorder_.Take(), Lines{"node n1"});
  EXPECT_EQ(recorder_.node("n1").operator_busy, "nvidia.com/mig.config.state=pending");
  EXPECT_EQ(recorder_.node("n1").uid.str(), "u1");
  EXPECT_EQ(recorder_.node("n1").labels.Find("zone"), "a");
  EXPECT_EQ(label("n1", "").kind, Kind::kDone);
  EXPECT_EQ(Json::parse(*cluster_.Get("Node", "", "n1"))["metadata"]["labels"],
            Json::parse(R"({"zone":"a"})"));
  recorder_.Take();
  EXPECT_EQ(label("n2", "pending").http_code, 404);
  EXPECT_EQ(recorder_.Take(), Lines{});
}

TEST_F(EmbeddedWrites, KeepAConfigMapAndRefuseToWriteOverAnotherVersion) {
  const auto read = [&] {
    ConfigMapLookup found;
    cluster_.ReadConfigMap({"ops", "mig"}, "config.yaml",
                           [&](ConfigMapLookup lookup) { found = std::move(lookup); });
    return found;
  };
  const auto put = [&](const std::string& key, const std::string& version) {
    return Written([&](auto done) {
      cluster_.PutConfigMap({"ops", "mig", key, "text", version}, std::move(done));
    });
  };
  EXPECT_EQ(read().kind, ConfigMapLookup::Kind::kMissing);
  EXPECT_EQ(put("other", "").http_code, 201);
  EXPECT_EQ(read().kind, ConfigMapLookup::Kind::kFound);
  EXPECT_EQ(read().text, "");
  EXPECT_EQ(put("config.yaml", "").http_code, 409);
  EXPECT_EQ(put("config.yaml", read().version).http_code, 200);
  EXPECT_EQ(read().text, "text");
  EXPECT_EQ(Json::parse(*cluster_.Get("configmaps", "ops", "mig"))["data"]["other"], "text");
  EXPECT_EQ(recorder_.Take(), Lines{});
}

TEST_F(EmbeddedWrites, KeepTheNewestThousandEvents) {
  EventWrite event = {"Pod", "team", "a", "u", true, "R", "A", "", kStart};
  for (int i = 0; i < 1003; ++i) {
    event.note = fmt::format("note {}", i);
    ASSERT_EQ(Emit(event).kind, Kind::kDone);
  }
  event.kind = "GPUQuota";
  event.ns = "";
  EXPECT_EQ(Emit(event).kind, Kind::kDone);
  const Json in_team = Json::parse(cluster_.List("Event", "team"))["items"];
  std::set<std::string> notes;
  for (const Json& one : in_team) notes.insert(one["note"].get<std::string>());
  EXPECT_EQ(notes.size(), 999u);
  EXPECT_FALSE(notes.contains("note 3"));
  EXPECT_TRUE(notes.contains("note 4"));
  const Json rest = Json::parse(cluster_.List("events", "default"))["items"];
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0]["regarding"]["kind"], "GPUQuota");
  EXPECT_EQ(rest[0]["metadata"]["creationTimestamp"], "2026-03-01T00:00:00Z");
  EXPECT_EQ(cluster_.Apply(R"({"kind":"Event","metadata":{"name":"x"}})")->ignored,
            (std::map<std::string, int>{{"Event", 1}}));
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
