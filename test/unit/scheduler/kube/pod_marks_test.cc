// Annotations of pods that are written on condition of what they were, over real sockets.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using Kind = WriteResult::Kind;

constexpr const char* kCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr const char* kOurs = "tranche.dev/deletion-cost";
constexpr const char* kPodPath = "/api/v1/namespaces/team/pods/web";
constexpr const char* kStatusPath = "/api/v1/namespaces/team/pods/web/status";

class PodMarksTest : public ::testing::Test {
 protected:
  PodMarksTest() {
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
  }
  void PutPod(const Json& annotations, const char* uid = "u1") {
    Json pod = Pod("web", uid, "n1");
    if (!annotations.is_null()) pod["metadata"]["annotations"] = annotations;
    server_.Put(kPods, pod);
  }
  Json Annotations() {
    return server_.Object(kPods, "team/web")["metadata"].value("annotations", Json::object());
  }
  WriteResult Mark(std::optional<std::string> before, std::optional<std::string> after) {
    PodMarkWrite write{{"team", "web"},
                       PodUid("u1"),
                       {{kCost, before, after}, {kOurs, before, after, /*ours_alone=*/true}}};
    return Written([&](auto done) { cluster_->MarkPod(std::move(write), std::move(done)); });
  }
  void Overtaken(std::function<void()> effect) {
    server_.OnNext(
        "PATCH", kStatusPath,
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

TEST_F(PodMarksTest, AreWrittenThroughTheStatusWithTheVersionThatWasRead) {
  PutPod({{"other", "stays"}});
  const std::string version = server_.Object(kPods, "team/web")["metadata"]["resourceVersion"];
  const WriteResult result = Mark(std::nullopt, "-310");
  EXPECT_EQ(result.kind, Kind::kDone) << result.message;
  EXPECT_EQ(Annotations(), (Json{{"other", "stays"}, {kCost, "-310"}, {kOurs, "-310"}}));
  const ApiRequest sent = server_.Requests(kStatusPath).back();
  EXPECT_EQ(sent.headers.at("content-type"), "application/merge-patch+json");
  Json expected;
  expected["metadata"]["uid"] = "u1";
  expected["metadata"]["resourceVersion"] = version;
  expected["metadata"]["annotations"] = {{kCost, "-310"}, {kOurs, "-310"}};
  EXPECT_EQ(Json::parse(sent.body), expected);
}

TEST_F(PodMarksTest, AreTakenBack) {
  PutPod({{"other", "stays"}, {kCost, "-310"}, {kOurs, "-310"}});
  EXPECT_EQ(Mark("-310", std::nullopt).kind, Kind::kDone);
  EXPECT_EQ(Annotations(), (Json{{"other", "stays"}}));
  EXPECT_EQ(Mark("-310", std::nullopt).kind, Kind::kDone) << "gone already";
  EXPECT_EQ(Sent(kStatusPath), 1U);
}

TEST_F(PodMarksTest, NobodysWordIsWrittenOver) {
  PutPod({{kCost, "100"}});
  const WriteResult theirs = Mark(std::nullopt, "-310");
  EXPECT_EQ(theirs.kind, Kind::kRejected);
  EXPECT_EQ(theirs.http_code, 409);
  PutPod({{kCost, "100"}, {kOurs, "-310"}});
  EXPECT_EQ(Mark("-310", std::nullopt).kind, Kind::kRejected);
  EXPECT_EQ(Annotations()[kCost], "100");
  EXPECT_EQ(Sent(kStatusPath), 0U);
}

TEST_F(PodMarksTest, NorOfSomebodyWhoIsQuicker) {
  PutPod(nullptr);
  Overtaken([this] { PutPod({{kCost, "100"}}); });
  EXPECT_EQ(Mark(std::nullopt, "-310").kind, Kind::kRejected);
  EXPECT_EQ(Annotations(), (Json{{kCost, "100"}}));
}

TEST_F(PodMarksTest, AreTriedAgainWhenThePodChangedBetween) {
  PutPod(nullptr);
  Overtaken([this] { PutPod({{"other", "came"}}); });
  EXPECT_EQ(Mark(std::nullopt, "-310").kind, Kind::kDone);
  EXPECT_EQ(Annotations(), (Json{{"other", "came"}, {kCost, "-310"}, {kOurs, "-310"}}));
  PutPod(nullptr);
  for (int i = 0; i < 2; ++i) Overtaken([this] { PutPod({{"other", "again"}}); });
  EXPECT_EQ(Mark(std::nullopt, "-310").http_code, 409) << "the next look tries again";
}

TEST_F(PodMarksTest, AMarkOfOursThatWasLeftBehindIsNoHindrance) {
  PutPod({{kOurs, "-310"}});
  EXPECT_EQ(Mark(std::nullopt, "-210").kind, Kind::kDone);
  EXPECT_EQ(Annotations(), (Json{{kCost, "-210"}, {kOurs, "-210"}}));
}

TEST_F(PodMarksTest, ANamesakeAndNobodyAreLeftAlone) {
  EXPECT_EQ(Mark(std::nullopt, "-310").http_code, 404);
  PutPod(nullptr, "u2");
  EXPECT_EQ(Mark(std::nullopt, "-310").http_code, 409);
  EXPECT_EQ(Annotations(), Json::object());
  cluster_->Stop();
  EXPECT_EQ(Mark(std::nullopt, "-310").kind, Kind::kNotSent);
  EXPECT_EQ(Sent(kPodPath), 2U);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
