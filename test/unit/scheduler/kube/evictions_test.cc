// Evictions at a server over real sockets: what is sent, and what each answer proves.
#include <gtest/gtest.h>

#include "scheduler/kube/writes/write_requests.h"
#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {

namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using fakes::StatusBody;
using std::chrono::seconds;
using Kind = WriteResult::Kind;

constexpr const char* kEviction = "/api/v1/namespaces/team/pods/a/eviction";

EvictionWrite EvictionOf(const std::string& uid, std::optional<Millis> grace = std::nullopt) {
  return {{"team", "a"}, PodUid(uid), grace};
}

Json Labelled(Json pod, const std::string& app) {
  pod["metadata"]["labels"] = {{"app", app}};
  return pod;
}

TEST(EvictionRequest, NamesThePodByUidAndTheGraceOnlyWhereOneIsGiven) {
  struct Case {
    std::optional<Millis> grace;
    Json expected;
  };
  const Json uid = {{"preconditions", {{"uid", "u1"}}}};
  const std::vector<Case> cases = {
      {std::nullopt, uid},
      {Millis(0), {{"preconditions", {{"uid", "u1"}}}, {"gracePeriodSeconds", 0}}},
      {Millis(1), {{"preconditions", {{"uid", "u1"}}}, {"gracePeriodSeconds", 1}}},
      {seconds(120), {{"preconditions", {{"uid", "u1"}}}, {"gracePeriodSeconds", 120}}},
      {Millis(120'001), {{"preconditions", {{"uid", "u1"}}}, {"gracePeriodSeconds", 121}}},
  };
  for (const Case& c : cases) {
    const tranche::kube::ApiRequest request = EvictionRequest(EvictionOf("u1", c.grace));
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, kEviction);
    EXPECT_EQ(Json::parse(request.body), (Json{{"apiVersion", "policy/v1"},
                                               {"kind", "Eviction"},
                                               {"metadata", {{"name", "a"}, {"namespace", "team"}}},
                                               {"deleteOptions", c.expected}}));
  }
}

class EvictionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
  }
  EvictionResult Evict(const EvictionWrite& write = EvictionOf("u1")) {
    std::promise<EvictionResult> answered;
    cluster_->Evict(write, [&](EvictionResult result) { answered.set_value(std::move(result)); });
    return answered.get_future().get();
  }
  void Answer(int code, const std::string& body,
              const std::map<std::string, std::string>& headers = {}) {
    server_.OnNext("POST", kEviction, [=](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(code, body, headers);
    });
  }
  std::size_t Posts() const { return server_.Requests(kEviction).size(); }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

std::string BudgetRefusal(int retry_after) {
  Json status = StatusBody(429, "TooManyRequests", "disruption budget");
  status["details"]["causes"] =
      Json::array({{{"reason", "Other"}}, {{"reason", "DisruptionBudget"}}});
  if (retry_after > 0) status["details"]["retryAfterSeconds"] = retry_after;
  return status.dump();
}

struct EvictionVerdict {
  const char* name;
  int code;
  std::string body;
  Kind kind;
  int http_code;
  std::optional<Millis> retry_after = std::nullopt;
};
class EvictionVerdictTest : public EvictionTest,
                            public ::testing::WithParamInterface<EvictionVerdict> {};

TEST_P(EvictionVerdictTest, IsWhatTheAnswerProvesAndNothingIsSentAgain) {
  Answer(GetParam().code, GetParam().body);
  const EvictionResult result = Evict();
  EXPECT_EQ(result.write.kind, GetParam().kind) << result.write.message;
  EXPECT_EQ(result.write.http_code, GetParam().http_code);
  EXPECT_EQ(result.retry_after, GetParam().retry_after);
  EXPECT_EQ(Posts(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Answers, EvictionVerdictTest,
    ::testing::Values(
        EvictionVerdict{"Created", 201, StatusBody(201, "").dump(), Kind::kDone, 201},
        EvictionVerdict{"Budget", 429, BudgetRefusal(0), Kind::kRejected, 429},
        EvictionVerdict{"BudgetStillCounting", 429, BudgetRefusal(10), Kind::kRejected, 429,
                        seconds(10)},
        EvictionVerdict{"SeveralBudgets", 500, StatusBody(500, "", "more than one").dump(),
                        Kind::kRejected, 500},
        EvictionVerdict{"SeveralBudgetsUnder201", 201, StatusBody(500, "", "more than one").dump(),
                        Kind::kRejected, 500},
        EvictionVerdict{"InternalError", 500, StatusBody(500, "InternalError").dump(),
                        Kind::kUnknown, 500},
        EvictionVerdict{"ProxyPage", 500, "<html>oops</html>", Kind::kUnknown, 500},
        EvictionVerdict{"Timeout", 504, StatusBody(504, "Timeout").dump(), Kind::kUnknown, 504},
        EvictionVerdict{"Forbidden", 403, StatusBody(403, "Forbidden").dump(), Kind::kRejected,
                        403},
        EvictionVerdict{"NotFound", 404, StatusBody(404, "NotFound").dump(), Kind::kRejected, 404},
        EvictionVerdict{"Conflict", 409, StatusBody(409, "Conflict").dump(), Kind::kRejected, 409}),
    [](const ::testing::TestParamInfo<EvictionVerdict>& row) { return row.param.name; });

TEST_F(EvictionTest, WaitsWhenTheServerIsBusyAndEvictsOnce) {
  server_.Put(kPods, Pod("a", "u1", "n1"));
  Answer(429, StatusBody(429, "TooManyRequests").dump());
  Answer(429, "");
  EXPECT_EQ(Evict().write.kind, Kind::kDone);
  EXPECT_EQ(Posts(), 3u);
}

TEST_F(EvictionTest, SaysForHowLongTheServerIsBusyWhenThatIsLongerThanItHas) {
  Answer(429, "", {{"Retry-After", "30"}});
  const EvictionResult result = Evict();
  EXPECT_EQ(result.write.kind, Kind::kNotSent);
  EXPECT_EQ(result.write.http_code, 429);
  EXPECT_EQ(result.retry_after, seconds(30));
  EXPECT_EQ(Posts(), 1u);
}

TEST_F(EvictionTest, DoesNotKnowWhenTheAnswerIsLost) {
  server_.OnNext("POST", kEviction, [](const ApiRequest&, Exchange& exchange) { exchange.Drop(); });
  const EvictionResult result = Evict();
  EXPECT_EQ(result.write.kind, Kind::kUnknown);
  EXPECT_EQ(result.write.http_code, 0);
  EXPECT_EQ(Posts(), 1u);
}

TEST_F(EvictionTest, EndsAPodAsFarAsItsBudgetGoes) {
  server_.Put(kDisruptionBudgets, DisruptionBudget("web", "web", 1));
  server_.Put(kPods, Labelled(Pod("a", "u1", "n1"), "web"));
  ASSERT_EQ(Evict(EvictionOf("u1", seconds(5))).write.kind, Kind::kDone);
  const Json pod = server_.Object(kPods, "team/a");
  EXPECT_TRUE(pod["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(pod["metadata"]["deletionGracePeriodSeconds"], 5);
  EXPECT_EQ(pod["status"]["conditions"][0]["type"], "DisruptionTarget");
  server_.Delete(kPods, "team/a");
  server_.Put(kPods, Labelled(Pod("a", "u2", "n1"), "web"));
  EXPECT_EQ(Evict(EvictionOf("u1")).write.http_code, 409) << "a namesake";
  const EvictionResult refused = Evict(EvictionOf("u2"));
  EXPECT_EQ(refused.write.kind, Kind::kRejected);
  EXPECT_EQ(refused.write.http_code, 429);
  EXPECT_FALSE(server_.Object(kPods, "team/a")["metadata"].contains("deletionTimestamp"));
  server_.Put(kDisruptionBudgets, DisruptionBudget("web", "web", 1));
  server_.Put(kDisruptionBudgets, DisruptionBudget("web-2", "web", 1));
  EXPECT_EQ(Evict(EvictionOf("u2")).write.http_code, 500);
}

TEST_F(EvictionTest, IsNotSentWhenStopped) {
  cluster_->Stop();
  EXPECT_EQ(Evict().write.kind, Kind::kNotSent);
  EXPECT_EQ(Posts(), 0u);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
