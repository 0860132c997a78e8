// Node locks and scheduling gates of the embedded cluster.
#include <gtest/gtest.h>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

using Lock = NodeLockResult::Kind;
using Kind = WriteResult::Kind;

constexpr const char* kKey = "hami.io/mutex.lock";
constexpr const char* kOurs = "2026-03-01T00:00:00Z,default,train";

class EmbeddedLocks : public EmbeddedCluster {
 protected:
  void ApplyNode(const std::string& annotations) {
    Applied(fmt::format(R"({{"apiVersion":"v1","kind":"Node",)"
                        R"("metadata":{{"name":"n1","annotations":{{{}}}}}}})",
                        annotations));
  }
  static std::string LockText(const std::string& value) {
    return fmt::format(R"("{}":"{}")", kKey, value);
  }
  Json Annotations() {
    return Json::parse(cluster_.Get("Node", "", "n1").value_or("{}"))["metadata"]["annotations"];
  }
  static Json Both() {
    Json both;
    both["other"] = "stays";
    both[kKey] = kOurs;
    return both;
  }
  static NodeLockWrite Write(const std::string& node) {
    return {NodeName(node), kKey, kOurs, std::chrono::minutes(5), kStart};
  }
  NodeLockResult LockNode(const std::string& node = "n1") {
    std::optional<NodeLockResult> out;
    cluster_.LockNode(Write(node), [&](NodeLockResult result) {
      recorder_.Note("lock done");
      out = std::move(result);
    });
    return out.value_or(NodeLockResult{});
  }
  NodeLockResult UnlockNode() {
    std::optional<NodeLockResult> out;
    cluster_.UnlockNode(Write("n1"), [&](NodeLockResult result) { out = std::move(result); });
    return out.value_or(NodeLockResult{});
  }
  WriteResult RemoveGate(const std::string& uid) {
    return Written([&](auto done) {
      cluster_.RemoveGate({{"default", "train"}, PodUid(uid), "tranche.dev/gang"}, std::move(done));
    });
  }
};

TEST_F(EmbeddedLocks, TellTheEngineOfTheNodeFirst) {
  ApplyNode(R"("other":"stays")");
  const NodeLockResult result = LockNode();
  EXPECT_EQ(result.kind, Lock::kDone) << result.message;
  EXPECT_EQ(Annotations(), Both());
  const Lines lines = recorder_.Take();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "lock done");
  EXPECT_EQ(UnlockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations(), Json::parse(R"({"other":"stays"})"));
}

TEST_F(EmbeddedLocks, OfOthersStayUntilTheyAreStale) {
  const std::string young = "2026-02-28T23:56:00Z,default,serve";
  ApplyNode(LockText(young));
  const NodeLockResult held = LockNode();
  EXPECT_EQ(held.kind, Lock::kHeld);
  EXPECT_EQ(held.value, young);
  EXPECT_EQ(UnlockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations()[kKey], young) << "only ours is taken away";
  ApplyNode(LockText("2026-02-28T23:54:00Z,default,serve"));
  EXPECT_EQ(LockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations()[kKey], kOurs);
}

TEST_F(EmbeddedLocks, FailWithoutTheNode) {
  const NodeLockResult result = LockNode("n2");
  EXPECT_EQ(result.kind, Lock::kFailed);
  EXPECT_EQ(result.message, "Node n2 not found");
}

TEST_F(EmbeddedLocks, GatesAreTakenOffAndTheEngineHearsOfIt) {
  Applied(Pod("train", R"(,"uid":"u1")",
              R"(,"schedulingGates":[{"name":"a"},{"name":"tranche.dev/gang"},{"name":"b"}])"));
  EXPECT_EQ(RemoveGate("u1").kind, Kind::kDone);
  EXPECT_EQ(Stored("Pod", "train")["spec"]["schedulingGates"],
            Json::parse(R"([{"name":"a"},{"name":"b"}])"));
  EXPECT_EQ(recorder_.Take().size(), 1u) << "the pod";
  EXPECT_EQ(RemoveGate("u1").kind, Kind::kDone) << "gone already";
  EXPECT_EQ(recorder_.Take(), Lines{});
  EXPECT_EQ(RemoveGate("u2").http_code, 409);
}

TEST_F(EmbeddedLocks, APodWithoutItsLastGateTakesANode) {
  Applied(Pod("train", R"(,"uid":"u1")", R"(,"schedulingGates":[{"name":"tranche.dev/gang"}])"));
  EXPECT_EQ(Bound("train", "u1", "n1").http_code, 409);
  EXPECT_EQ(RemoveGate("u1").kind, Kind::kDone);
  EXPECT_EQ(Bound("train", "u1", "n1").http_code, 201);
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
