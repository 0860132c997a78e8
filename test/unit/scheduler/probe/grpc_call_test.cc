#include "scheduler/probe/grpc_call.h"

#include <gmock/gmock.h>

#include "scheduler/probe/pod_resources.h"
#include "test/unit/scheduler/probe/fake_node.h"
#include "test/unit/scheduler/probe/grpc_server.h"
#include "test/unit/scheduler/probe/proto_text.h"

namespace tranche::probe {
namespace THIS_FILE {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

UnaryCall CallTo(const std::string& socket) {
  UnaryCall call;
  call.socket = socket;
  call.method = "/test.Service/Method";
  call.message = "question";
  call.answer_limit = 200'000;
  call.timeout = milliseconds(20'000);
  return call;
}

// What a client makes of that answer.
absl::StatusOr<std::string> Ask(GrpcAnswer answer, milliseconds timeout = milliseconds(20'000)) {
  const TempFolder folder;
  const GrpcServer server(folder / "socket", std::move(answer));
  UnaryCall call = CallTo(folder / "socket");
  call.timeout = timeout;
  return CallUnary(call);
}

TEST(GrpcCallTest, AsksOnceAndGivesTheAnswer) {
  const TempFolder folder;
  GrpcAnswer answer;
  answer.body = Framed("answer");
  GrpcServer server(folder / "socket", answer);
  EXPECT_EQ(CallUnary(CallTo(folder / "socket")).value(), "answer");
  server.Join();
  EXPECT_EQ(server.body(), Framed("question"));
  EXPECT_EQ(server.headers().at(":path"), "/test.Service/Method");
  EXPECT_EQ(server.headers().at(":method"), "POST");
  EXPECT_EQ(server.headers().at("content-type"), "application/grpc");
  EXPECT_EQ(server.headers().at("te"), "trailers");
}

TEST(GrpcCallTest, TakesAnswersUpToTheLimit) {
  GrpcAnswer answer;
  answer.body = Framed("");
  EXPECT_EQ(Ask(answer).value(), "");
  answer.body = Framed(std::string(200'000, 'x'));  // beyond the first flow control window
  EXPECT_EQ(Ask(answer).value().size(), 200'000);
  answer.body = Framed(std::string(200'001, 'x'));
  EXPECT_EQ(Ask(answer).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GrpcCallTest, SaysWhereThereIsNoSocket) {
  const TempFolder folder;
  const auto missing = CallUnary(CallTo(folder / "socket"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("/socket: /test.Service/Method: connecting: No such file"));
  const std::string file = folder.Write("file", "");
  EXPECT_EQ(CallUnary(CallTo(file)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CallUnary(CallTo(folder / std::string(200, 'a'))).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(GrpcCallTest, DoesNotWaitForSilence) {
  GrpcAnswer silent;
  silent.silent = true;
  EXPECT_EQ(Ask(silent, milliseconds(50)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(GrpcCallTest, RefusesWhatIsNoAnswer) {
  const auto answer = [](auto change) {
    GrpcAnswer made;
    made.body = Framed("answer");
    change(made);
    return made;
  };
  using A = GrpcAnswer;
  const std::pair<GrpcAnswer, std::string> table[] = {
      {answer([](A& a) {
         a.trailers = {{"grpc-status", "12"}, {"grpc-message", "no\tsuch"}};
       }),
       R"(expected gRPC status 0, found "12": no?such)"},
      {answer([](A& a) { a.trailers.clear(); }), R"(expected gRPC status 0, found "")"},
      {answer([](A& a) { a.head[0].second = "503"; }), R"(expected HTTP status 200, found "503")"},
      {answer([](A& a) { a.body = ""; }), "found 0 bytes that are none"},
      {answer([](A& a) { a.body[0] = '\x01'; }), "without compression"},
      {answer([](A& a) { a.body.pop_back(); }), "found 10 bytes that are none"},
      {answer([](A& a) { a.body += "x"; }), "found 12 bytes that are none"},
      {answer([](A& a) { a.raw = "HTTP/1.1 400 Bad Request\r\n\r\n"; }), "expected"},
      {answer([](A& a) { a.raw = std::string(100, '\xff'); }), "expected"},
  };
  for (const auto& [made, error] : table) {
    const auto got = Ask(made);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kUnavailable) << error;
    EXPECT_THAT(std::string(got.status().message()), HasSubstr(error));
  }
}

TEST(GrpcCallTest, TheKubeletIsAskedForItsPods) {
  const TempFolder folder;
  GrpcAnswer answer;
  answer.body =
      Framed(Bytes(1, Bytes(1, "train") + Bytes(2, "team") +
                          Bytes(3, Bytes(1, "main") +
                                       Bytes(2, Bytes(1, "nvidia.com/gpu") + Bytes(2, "GPU-a")))));
  GrpcServer server(folder / "socket", answer);
  const auto pods = ListPodResources(folder / "socket", milliseconds(20'000));
  server.Join();
  ASSERT_TRUE(pods.ok()) << pods.status();
  const std::vector<ContainerDevices> expected = {
      {"team", "train", "main", "nvidia.com/gpu", {"GPU-a"}}};
  EXPECT_EQ(*pods, expected);
  EXPECT_EQ(server.headers().at(":path"), "/v1.PodResourcesLister/List");
  EXPECT_EQ(server.body(), Framed(""));
}

TEST(GrpcCallTest, AnAnswerThatIsNoPodListNamesTheSocket) {
  const TempFolder folder;
  GrpcAnswer answer;
  answer.body = Framed("?");
  const GrpcServer server(folder / "socket", answer);
  const auto pods = ListPodResources(folder / "socket", milliseconds(20'000));
  EXPECT_EQ(pods.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pods.status().message()), HasSubstr("/socket"));
}

}  // namespace THIS_FILE
}  // namespace tranche::probe
