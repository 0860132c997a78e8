// Bind and GetPod against a server over real sockets: what each answer, and each missing answer,
// is taken to prove.
#include "scheduler/kube/writes/api_calls.h"

#include <gtest/gtest.h>

#include <atomic>

#include "scheduler/kube/transport/http_client.h"
#include "scheduler/kube/writes/write_requests.h"
#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {

namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using fakes::StatusBody;
using Kind = WriteResult::Kind;

constexpr const char* kBinding = "/api/v1/namespaces/team/pods/a/binding";
constexpr const char* kPodA = "/api/v1/namespaces/team/pods/a";

BindingWrite WriteOf(const std::string& uid) {
  BindingWrite write;
  write.pod = {"team", "a"};
  write.uid = PodUid(uid);
  write.node = NodeName("n1");
  write.annotations = {{"tranche.dev/allocation", R"({"v":1,"text":"\"é"})"}, {"k", ""}};
  return write;
}

class ApiCallsTest : public ::testing::Test {
 protected:
  void StartClient() {
    options_ = PlainOptions(server_->port());
    options_.bind_timeout = bind_timeout_;
    options_.timing.absent_retry = std::chrono::minutes(1);
    cluster_ = std::make_unique<Cluster>(options_, events_);
    cluster_->Start();
    // From here on only calls open connections.
    ASSERT_TRUE(Eventually([this] {
      return server_->Requests(kPods).size() >= 2 && server_->Requests(kNodes).size() >= 2 &&
             server_->Requests(kNamespaces).size() >= 2 &&
             server_->Requests(kPriorityClasses).size() >= 2 &&
             server_->Requests(kDisruptionBudgets).size() >= 2;
    }));
  }
  WriteResult Bind(const std::string& uid = "u1") { return BindAndWait(*cluster_, WriteOf(uid)); }
  void AnswerBinding(int code, const std::string& body,
                     const std::map<std::string, std::string>& headers = {}) {
    server_->OnNext("POST", kBinding, [=](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(code, body, headers);
    });
  }
  std::size_t Posts() const { return server_->Requests(kBinding).size(); }

  std::unique_ptr<ApiServer> server_ = std::make_unique<ApiServer>();
  RecordingEvents events_;
  std::chrono::milliseconds bind_timeout_{4'000};
  Options options_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ApiCallsTest, WritesNodeAndAnnotationsInOnePost) {
  server_->Put(kPods, Pod("a", "u1"));
  StartClient();
  const WriteResult result = Bind();
  EXPECT_EQ(result.kind, Kind::kDone) << result.message;
  EXPECT_EQ(result.http_code, 201);
  const Json pod = server_->Object(kPods, "team/a");
  EXPECT_EQ(pod["spec"]["nodeName"], "n1");
  EXPECT_EQ(pod["metadata"]["annotations"]["tranche.dev/allocation"], R"({"v":1,"text":"\"é"})");
  EXPECT_EQ(Posts(), 1u);
}

TEST_F(ApiCallsTest, IsRejectedWhenTheNameBelongsToAnotherUid) {
  server_->Put(kPods, Pod("a", "u2"));
  StartClient();
  const WriteResult result = Bind("u1");
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_EQ(result.http_code, 409);
  EXPECT_FALSE(server_->Object(kPods, "team/a")["spec"].contains("nodeName"));
}

TEST(BindingRequest, IsTheBindingOfTheApi) {
  EXPECT_EQ(Json::parse(BindingRequest(WriteOf("u1")).body),
            Json::parse(R"({"apiVersion":"v1","kind":"Binding",
              "metadata":{"name":"a","namespace":"team","uid":"u1",
                "annotations":{"k":"","tranche.dev/allocation":"{\"v\":1,\"text\":\"\\\"é\"}"}},
              "target":{"apiVersion":"v1","kind":"Node","name":"n1"}})"));
}

struct Verdict {
  const char* name;
  int code;
  std::string body;
  Kind kind;
};
class VerdictTest : public ApiCallsTest, public ::testing::WithParamInterface<Verdict> {};

TEST_P(VerdictTest, IsWhatTheAnswerProves) {
  StartClient();
  AnswerBinding(GetParam().code, GetParam().body);
  const WriteResult result = Bind();
  EXPECT_EQ(result.kind, GetParam().kind);
  EXPECT_EQ(result.http_code, GetParam().code);
  EXPECT_EQ(Posts(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Answers, VerdictTest,
    ::testing::Values(
        Verdict{"Ok", 200, StatusBody(200, "").dump(), Kind::kDone},
        Verdict{"Created", 201, StatusBody(201, "").dump(), Kind::kDone},
        Verdict{"BadRequest", 400, StatusBody(400, "BadRequest").dump(), Kind::kRejected},
        Verdict{"Forbidden", 403, "no", Kind::kRejected},
        Verdict{"NotFound", 404, StatusBody(404, "NotFound").dump(), Kind::kRejected},
        Verdict{"Conflict", 409, StatusBody(409, "Conflict").dump(), Kind::kRejected},
        Verdict{"Invalid", 422, StatusBody(422, "Invalid").dump(), Kind::kRejected},
        Verdict{"Unauthorized", 401, "", Kind::kRejected},
        Verdict{"InternalError", 500, StatusBody(500, "InternalError").dump(), Kind::kUnknown},
        Verdict{"GatewayPage", 502, "<html>Bad Gateway</html>", Kind::kUnknown},
        Verdict{"Timeout", 504, StatusBody(504, "Timeout").dump(), Kind::kUnknown},
        Verdict{"Redirect", 307, "", Kind::kUnknown},
        Verdict{"ConflictUnder200", 200, StatusBody(409, "Conflict").dump(), Kind::kRejected},
        Verdict{"ErrorUnder200", 200, StatusBody(500, "InternalError").dump(), Kind::kUnknown},
        Verdict{"HtmlUnder200", 200, "<html>log in</html>", Kind::kUnknown}),
    [](const ::testing::TestParamInfo<Verdict>& row) { return row.param.name; });

TEST_F(ApiCallsTest, DoesNotKnowWhenTheAnswerIsDroppedBeforeTheWrite) {
  server_->Put(kPods, Pod("a", "u1"));
  StartClient();
  server_->OnNext("POST", kBinding, [](const ApiRequest&, Exchange& exchange) { exchange.Drop(); });
  EXPECT_EQ(Bind().kind, Kind::kUnknown);
  EXPECT_EQ(Posts(), 1u);
  const PodLookup pod = GetAndWait(*cluster_, {"team", "a"}, PodUid("u1"));
  ASSERT_EQ(pod.kind, PodLookup::Kind::kFound);
  EXPECT_TRUE(pod.pod->node.empty());
}

TEST_F(ApiCallsTest, DoesNotKnowWhenTheAnswerIsDroppedAfterTheWrite) {
  server_->Put(kPods, Pod("a", "u1"));
  StartClient();
  server_->OnNext("POST", kBinding, [this](const ApiRequest& request, Exchange& exchange) {
    server_->ApplyBinding(request);
    exchange.Raw("HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{\"kind\":\"Status\"");
    exchange.Drop();
  });
  EXPECT_EQ(Bind().kind, Kind::kUnknown);
  EXPECT_EQ(Posts(), 1u);
  const PodLookup pod = GetAndWait(*cluster_, {"team", "a"}, PodUid("u1"));
  ASSERT_EQ(pod.kind, PodLookup::Kind::kFound);
  EXPECT_EQ(pod.pod->node, NodeName("n1"));
}

TEST_F(ApiCallsTest, DoesNotKnowWhenTheServerSaysNothingInTime) {
  bind_timeout_ = std::chrono::milliseconds(150);
  StartClient();
  server_->OnNext("POST", kBinding,
                  [](const ApiRequest&, Exchange& exchange) { exchange.WaitUntilStopped(); });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Bind().kind, Kind::kUnknown);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST_F(ApiCallsTest, HasSentNothingWhenNobodyListens) {
  StartClient();
  server_.reset();
  const WriteResult result = Bind();
  EXPECT_EQ(result.kind, Kind::kNotSent);
  EXPECT_EQ(result.http_code, 0);
}

TEST_F(ApiCallsTest, WaitsWhenThrottledAndWritesOnce) {
  server_->Put(kPods, Pod("a", "u1"));
  StartClient();
  AnswerBinding(429, StatusBody(429, "TooManyRequests").dump(), {{"Retry-After", "1"}});
  AnswerBinding(429, "");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Bind().kind, Kind::kDone);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(Posts(), 3u);
}

TEST_F(ApiCallsTest, GivesUpWhenThrottledForLongerThanItHas) {
  StartClient();
  AnswerBinding(429, "", {{"Retry-After", "30"}});
  const WriteResult result = Bind();
  EXPECT_EQ(result.kind, Kind::kNotSent);
  EXPECT_EQ(result.http_code, 429);
  EXPECT_EQ(Posts(), 1u);
}

TEST_F(ApiCallsTest, UsesAConnectionAgainAndReplacesOneTheServerClosed) {
  server_->Put(kPods, Pod("a", "u1"));
  StartClient();
  AnswerBinding(500, "");
  EXPECT_EQ(Bind().kind, Kind::kUnknown);
  const int before = server_->connections();
  server_->OnNext("POST", kBinding, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(500, "");
    exchange.Drop();
  });
  EXPECT_EQ(Bind().kind, Kind::kUnknown);
  EXPECT_EQ(server_->connections(), before);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(Bind().kind, Kind::kDone);
  EXPECT_EQ(server_->connections(), before + 1);
}

TEST_F(ApiCallsTest, BindsManyPodsAtOnceOverABoundedNumberOfConnections) {
  constexpr int kMany = 100;
  for (int i = 0; i < kMany; ++i) {
    server_->Put(kPods, Pod(fmt::format("p{}", i), fmt::format("u{}", i)));
  }
  StartClient();
  const int before = server_->connections();
  std::atomic<int> done = 0;
  std::atomic<int> answered = 0;
  for (int i = 0; i < kMany; ++i) {
    BindingWrite write = WriteOf(fmt::format("u{}", i));
    write.pod.name = fmt::format("p{}", i);
    cluster_->Bind(write, [&](const WriteResult& result) {
      done += result.kind == Kind::kDone ? 1 : 0;
      ++answered;
    });
  }
  ASSERT_TRUE(Eventually([&] { return answered == kMany; }));
  EXPECT_EQ(done, kMany);
  EXPECT_LE(server_->connections() - before, static_cast<int>(HttpClient::kMaxConnections));
}

TEST_F(ApiCallsTest, AnswersEveryCallExactlyOnceWhenStopped) {
  StartClient();
  constexpr int kMany = 40;  // more than there are connections
  std::atomic<int> unknown = 0;
  std::atomic<int> not_sent = 0;
  for (int i = 0; i < kMany; ++i) {
    server_->OnNext("POST", kBinding,
                    [](const ApiRequest&, Exchange& exchange) { exchange.WaitUntilStopped(); });
    cluster_->Bind(WriteOf("u1"), [&](const WriteResult& result) {
      unknown += result.kind == Kind::kUnknown ? 1 : 0;
      not_sent += result.kind == Kind::kNotSent ? 1 : 0;
    });
  }
  ASSERT_TRUE(Eventually([this] { return Posts() == HttpClient::kMaxConnections; }));
  cluster_->Stop();
  EXPECT_EQ(unknown, static_cast<int>(HttpClient::kMaxConnections));
  EXPECT_EQ(unknown + not_sent, kMany);
  EXPECT_EQ(Bind().kind, Kind::kNotSent);
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid()).kind, PodLookup::Kind::kFailed);
}

TEST_F(ApiCallsTest, ReadsAPodBackByNameAndUid) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  StartClient();
  using Found = PodLookup::Kind;
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid("u1")).kind, Found::kFound);
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid()).kind, Found::kFound);
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid("u2")).kind, Found::kMissing);
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "b"}, PodUid("u1")).kind, Found::kMissing);
}

TEST_F(ApiCallsTest, DoesNotTakeTheNotFoundOfAProxyForAMissingPod) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  StartClient();
  server_->OnNext("GET", kPodA, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(404, "<html>no such route</html>");
  });
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid("u1")).kind, PodLookup::Kind::kFailed);
}

TEST_F(ApiCallsTest, ReadsAgainAfterAPassingServerError) {
  server_->Put(kPods, Pod("a", "u1", "n1"));
  StartClient();
  server_->OnNext("GET", kPodA,
                  [](const ApiRequest&, Exchange& exchange) { exchange.Answer(503, "busy"); });
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid("u1")).kind, PodLookup::Kind::kFound);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
