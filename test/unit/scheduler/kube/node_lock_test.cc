// Node locks and scheduling gates, written to a server over real sockets.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using Lock = NodeLockResult::Kind;
using Kind = WriteResult::Kind;

constexpr const char* kKey = "hami.io/mutex.lock";
constexpr const char* kOurs = "2026-03-01T12:00:00Z,team,train";
constexpr const char* kTheirs = "2026-03-01T11:59:00Z,team,serve";
constexpr const char* kStale = "2026-03-01T11:54:00Z,team,serve";
constexpr const char* kNode = "/api/v1/nodes/n1";
constexpr const char* kPodPath = "/api/v1/namespaces/team/pods/train";
const Instant kNow =
    std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);

class NodeLockTest : public ::testing::Test {
 protected:
  NodeLockTest() {
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
  }
  // A node whose lock is `text`; nullptr: none. Another annotation is there beside it.
  Json Locked(const char* text) {
    Json node = Node("n1");
    node["metadata"]["annotations"]["other"] = "stays";
    if (text != nullptr) node["metadata"]["annotations"][kKey] = text;
    return node;
  }
  void PutNode(const char* text) { server_.Put(kNodes, Locked(text)); }
  Json Annotations() { return server_.Object(kNodes, "n1")["metadata"]["annotations"]; }

  // The annotations of a node that we have locked.
  static Json Both() {
    Json both;
    both["other"] = "stays";
    both[kKey] = kOurs;
    return both;
  }

  NodeLockWrite Write() const {
    return {NodeName("n1"), kKey, kOurs, std::chrono::minutes(5), kNow};
  }
  template <typename Call>
  NodeLockResult Answered(Call call) {
    auto answered = std::make_shared<std::promise<NodeLockResult>>();
    call([answered](NodeLockResult result) { answered->set_value(std::move(result)); });
    return answered->get_future().get();
  }
  NodeLockResult LockNode() {
    return Answered([this](auto done) { cluster_->LockNode(Write(), std::move(done)); });
  }
  NodeLockResult UnlockNode() {
    return Answered([this](auto done) { cluster_->UnlockNode(Write(), std::move(done)); });
  }
  WriteResult RemoveGate(const char* uid = "u1") {
    return Written([&](auto done) {
      cluster_->RemoveGate({{"team", "train"}, PodUid(uid), "tranche.dev/quota"}, std::move(done));
    });
  }
  // Runs before the next patch takes effect, as if somebody else were quicker.
  void Overtaken(const char* path, std::function<void()> effect) {
    server_.OnNext(
        "PATCH", path,
        [this, effect = std::move(effect)](const ApiRequest& request, Exchange& exchange) {
          effect();
          server_.Serve(request, exchange);
        });
  }
  std::size_t Sent(const char* path) { return server_.Requests(path).size(); }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(NodeLockTest, IsWrittenWithTheVersionThatWasRead) {
  PutNode(nullptr);
  const std::string version = server_.Object(kNodes, "n1")["metadata"]["resourceVersion"];
  const NodeLockResult result = LockNode();
  EXPECT_EQ(result.kind, Lock::kDone) << result.message;
  EXPECT_EQ(result.value, kOurs);
  EXPECT_EQ(Annotations(), Both());
  const ApiRequest sent = server_.Requests(kNode).back();
  EXPECT_EQ(sent.headers.at("content-type"), "application/merge-patch+json");
  Json expected;
  expected["metadata"]["resourceVersion"] = version;
  expected["metadata"]["annotations"][kKey] = kOurs;
  EXPECT_EQ(Json::parse(sent.body), expected);
}

TEST_F(NodeLockTest, IsNotWrittenTwice) {
  PutNode(kOurs);
  EXPECT_EQ(LockNode().kind, Lock::kDone);
  EXPECT_EQ(Sent(kNode), 1u) << "reading was enough";
}

TEST_F(NodeLockTest, OfAnotherPodIsHeldUntilItIsStale) {
  PutNode(kTheirs);
  const NodeLockResult held = LockNode();
  EXPECT_EQ(held.kind, Lock::kHeld);
  EXPECT_EQ(held.value, kTheirs);
  EXPECT_EQ(Sent(kNode), 1u);
  PutNode(kStale);
  EXPECT_EQ(LockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations()[kKey], kOurs);
}

TEST_F(NodeLockTest, IsTriedAgainWhenTheNodeChangedBetween) {
  PutNode(nullptr);
  Overtaken(kNode, [this] { PutNode(nullptr); });  // a kubelet's status, say
  EXPECT_EQ(LockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations()[kKey], kOurs);
  EXPECT_EQ(Sent(kNode), 4u);
}

TEST_F(NodeLockTest, IsHeldBySomebodyQuicker) {
  PutNode(nullptr);
  Overtaken(kNode, [this] { PutNode(kTheirs); });
  const NodeLockResult result = LockNode();
  EXPECT_EQ(result.kind, Lock::kHeld);
  EXPECT_EQ(result.value, kTheirs);
  EXPECT_EQ(Annotations()[kKey], kTheirs);
}

TEST_F(NodeLockTest, GivesWayAfterASecondConflict) {
  PutNode(nullptr);
  for (int i = 0; i < 2; ++i) Overtaken(kNode, [this] { PutNode(nullptr); });
  EXPECT_EQ(LockNode().kind, Lock::kHeld);
  EXPECT_FALSE(Annotations().contains(kKey));
  EXPECT_EQ(Sent(kNode), 4u);
}

TEST_F(NodeLockTest, IsReadAgainWhenTheAnswerIsLost) {
  PutNode(nullptr);
  server_.OnNext("PATCH", kNode, [this](const ApiRequest&, Exchange& exchange) {
    PutNode(kOurs);
    exchange.Drop();
  });
  EXPECT_EQ(LockNode().kind, Lock::kDone);
  EXPECT_EQ(Sent(kNode), 3u) << "read, written, read";
}

TEST_F(NodeLockTest, FailsWithTheServersWords) {
  const NodeLockResult missing = LockNode();
  EXPECT_EQ(missing.kind, Lock::kFailed);
  EXPECT_EQ(missing.message, "node n1 could not be read: 404 NotFound");
  PutNode(nullptr);
  server_.OnNext("PATCH", kNode, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(403, fakes::StatusBody(403, "Forbidden", "cannot patch nodes").dump());
  });
  const NodeLockResult forbidden = LockNode();
  EXPECT_EQ(forbidden.kind, Lock::kFailed);
  EXPECT_EQ(forbidden.message,
            "annotation hami.io/mutex.lock of node n1 could not be written: 403 cannot patch nodes "
            "(the ClusterRole tranche-node-lock allows it)");
}

TEST_F(NodeLockTest, IsTakenAwayByItsOwnerAlone) {
  PutNode(kOurs);
  EXPECT_EQ(UnlockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations(), Json::parse(R"({"other":"stays"})"));
  EXPECT_EQ(UnlockNode().kind, Lock::kDone) << "gone already";
  PutNode(kTheirs);
  EXPECT_EQ(UnlockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations()[kKey], kTheirs);
  EXPECT_EQ(Sent(kNode), 4u) << "one write among three reads";
}

TEST_F(NodeLockTest, StaysWithTheNextOwnerWhenUnlockingIsLate) {
  PutNode(kOurs);
  Overtaken(kNode, [this] { PutNode(kTheirs); });
  EXPECT_EQ(UnlockNode().kind, Lock::kDone);
  EXPECT_EQ(Annotations()[kKey], kTheirs);
}

TEST_F(NodeLockTest, IsNotTakenByAStoppedClient) {
  cluster_->Stop();
  EXPECT_EQ(LockNode().kind, Lock::kFailed);
  EXPECT_EQ(RemoveGate().kind, Kind::kNotSent);
}

class SchedulingGateTest : public NodeLockTest {
 protected:
  void PutPod(const std::vector<std::string>& gates, const char* uid = "u1") {
    Json pod = Pod("train", uid);
    pod["spec"]["schedulingGates"] = Json::array();
    for (const std::string& gate : gates)
      pod["spec"]["schedulingGates"].push_back({{"name", gate}});
    server_.Put(kPods, pod);
  }
  Json Gates() { return server_.Object(kPods, "team/train")["spec"]["schedulingGates"]; }
};

TEST_F(SchedulingGateTest, IsTakenOffAndOthersStay) {
  PutPod({"example.com/review", "tranche.dev/quota", "example.com/later"});
  const WriteResult result = RemoveGate();
  EXPECT_EQ(result.kind, Kind::kDone) << result.message;
  EXPECT_EQ(Gates(),
            Json::parse(R"([{"name":"example.com/review"},{"name":"example.com/later"}])"));
  const ApiRequest sent = server_.Requests(kPodPath).back();
  EXPECT_EQ(sent.headers.at("content-type"), "application/json-patch+json");
  EXPECT_EQ(Json::parse(sent.body), Json::parse(R"([
      {"op":"test","path":"/metadata/uid","value":"u1"},
      {"op":"test","path":"/spec/schedulingGates/1/name","value":"tranche.dev/quota"},
      {"op":"remove","path":"/spec/schedulingGates/1"}])"));
}

TEST_F(SchedulingGateTest, ThatIsGoneIsDone) {
  PutPod({"example.com/review"});
  EXPECT_EQ(RemoveGate().kind, Kind::kDone);
  server_.Put(kPods, Pod("train", "u1"));
  EXPECT_EQ(RemoveGate().kind, Kind::kDone);
  EXPECT_EQ(Sent(kPodPath), 2u) << "nothing was written";
}

TEST_F(SchedulingGateTest, IsFoundAgainWhenAnotherWasTakenOffBetween) {
  PutPod({"example.com/review", "tranche.dev/quota"});
  Overtaken(kPodPath, [this] { PutPod({"tranche.dev/quota"}); });
  EXPECT_EQ(RemoveGate().kind, Kind::kDone);
  EXPECT_EQ(Gates(), Json::array());
  EXPECT_EQ(Sent(kPodPath), 4u);
}

TEST_F(SchedulingGateTest, OfANamesakeStays) {
  PutPod({"tranche.dev/quota"}, "u2");
  const WriteResult result = RemoveGate("u1");
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_EQ(result.message, "expected pod team/train with uid u1, found uid u2");
  EXPECT_EQ(Gates().size(), 1u);
}

TEST_F(SchedulingGateTest, OfAPodMadeAnewBetweenStays) {
  PutPod({"tranche.dev/quota"});
  Overtaken(kPodPath, [this] { PutPod({"tranche.dev/quota"}, "u2"); });
  EXPECT_EQ(RemoveGate("u1").kind, Kind::kRejected);
  EXPECT_EQ(Gates().size(), 1u);
}

TEST_F(SchedulingGateTest, OfAMissingPodIsRejected) {
  const WriteResult result = RemoveGate();
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_EQ(result.http_code, 404);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
