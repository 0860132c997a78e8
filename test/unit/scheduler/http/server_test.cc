#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/unit/scheduler/http/server_fixture.h"

namespace tranche::http {
namespace THIS_FILE {

TEST(HttpServer, AnswersInOnePieceWithLengthAndWithoutTrailingNewline) {
  TestServer server;
  RawClient client(server.port());
  const RawReply reply = client.Ask(Post("/echo", "{\"a\":1}"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{\"a\":1}");
  EXPECT_NE(reply.head.find("Content-Length: 7\r\n"), std::string::npos);
  EXPECT_NE(reply.head.find("Content-Type: text/plain\r\n"), std::string::npos);
  EXPECT_EQ(reply.head.find("Connection:"), std::string::npos);
  EXPECT_EQ(client.Ask(Post("/echo", "again")).body, "again");
  EXPECT_EQ(server->statistics().connections_total, 1);
}

TEST(HttpServer, RefusesHostileRequestsAndClosesAfterwards) {
  Limits limits;
  limits.body_bytes = 1'000;
  TestServer server(limits);
  const std::string filler(20'000, 'x');
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},
      {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
      {Get("/", "X: " + filler + "\r\n"), 431},
      {Get("/" + filler), 431},
      {filler, 431},
      {"POST / HTTP/1.1\r\nHost: a\r\n\r\n", 411},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 411},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3x\r\n\r\nabc", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\nabc", 413},
      {Post("/", std::string(1'001, 'x')), 413},
      {Get("/", "Expect: tea\r\n"), 417},
  };
  for (const auto& [bytes, status] : cases) {
    RawClient client(server.port());
    // What follows a refused request is never taken for another one.
    const RawReply reply = client.Ask(bytes + Get("/smuggled"));
    EXPECT_EQ(reply.status, status) << bytes.substr(0, 200);
    EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);
    client.ShutdownSend();
    EXPECT_TRUE(client.Ended()) << bytes.substr(0, 200);
  }
  EXPECT_EQ(server.handled(), 0);
  EXPECT_EQ(server->statistics().refusals_by_status.at(413), 2);
}

TEST(HttpServer, TakesARequestCutAnywhere) {
  TestServer server;
  const std::string request = Post("/echo", "body!", "X: y\r\n");
  RawClient client(server.port());
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    ASSERT_TRUE(client.Send(std::string_view(request).substr(0, cut)));
    std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(client.Ask(std::string_view(request).substr(cut)).body, "body!") << cut;
  }
}

TEST(HttpServer, CountsHeaderBytesTheSameHoweverTheyArrive) {
  Limits limits;
  limits.header_bytes = 200;
  TestServer server(limits);
  const std::string bare = Get("/", "X: \r\n");
  for (const auto& [size, status] : {std::pair{200, 200}, std::pair{201, 431}}) {
    const std::string pad(static_cast<std::size_t>(size) - bare.size(), 'p');
    const std::string request = Get("/", "X: " + pad + "\r\n");
    RawClient whole(server.port());
    EXPECT_EQ(whole.Ask(request).status, status);
    RawClient pieces(server.port());
    for (const char c : request) pieces.Send(std::string_view(&c, 1));
    EXPECT_EQ(pieces.Read().status, status);
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 2'000; ++i) requests += Post("/echo", std::to_string(i));
  std::thread sender([&] { client.Send(requests); });
  for (int i = 0; i < 2'000; ++i) ASSERT_EQ(client.Read().body, std::to_string(i));
  sender.join();
  EXPECT_EQ(server.handled(), 2'000);
}

TEST(HttpServer, ReadsNothingAfterTheRequestThatAskedToClose) {
  TestServer server;
  for (const std::string& first :
       {Get("/echo", "Connection: close\r\n"), std::string("GET /echo HTTP/1.0\r\n\r\n")}) {
    RawClient client(server.port());
    const int before = server.handled();
    const RawReply reply = client.Ask(first + Get("/echo"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(client.Ended());
    EXPECT_EQ(server.handled(), before + 1);
  }
}

TEST(HttpServer, AnswersAPeerThatHasClosedItsSide) {
  TestServer server;
  RawClient client(server.port());
  client.Send(Post("/echo", "last words"));
  client.ShutdownSend();
  EXPECT_EQ(client.Read().body, "last words");
  EXPECT_TRUE(client.Ended());
}

TEST(HttpServer, AnswersHeadWithTheLengthAlone) {
  TestServer server;
  RawClient client(server.port());
  client.Send("HEAD /size HTTP/1.1\r\nHost: a\r\n\r\n");
  const RawReply reply = client.Read(false);
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.head.find("Content-Length: 1\r\n"), std::string::npos);
  EXPECT_EQ(client.Ask(Get("/size")).body, "0");
}

TEST(HttpServer, InvitesABodyThatWaitsForContinue) {
  TestServer server;
  RawClient client(server.port());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.Read(false).head, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.Ask("ab").body, "ab");
  RawClient greedy(server.port());
  EXPECT_EQ(greedy
                .Ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                     "Content-Length: 99999999\r\n\r\n")
                .status,
            413);
}

TEST(HttpServer, GivesItsAnswerToAPeerThatSendsATooLargeBodyFirst) {
  TestServer server;
  RawClient client(server.port());
  client.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n");
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(client.Send(piece)) << i;
  EXPECT_EQ(client.Read().status, 413);
  EXPECT_TRUE(client.Ended());
}

TEST(HttpServer, AnswersFiveHundredForAHandlerThatForgets) {
  TestServer server;
  RawClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/drop")).status, 500);
  EXPECT_EQ(client.Ask(Get("/size")).status, 200);
  EXPECT_EQ(server->statistics().refusals_by_status.at(500), 1);
}

TEST(HttpServer, TakesTheFirstOfSeveralAnswersFromAnyThread) {
  TestServer server;
  RawClient client(server.port());
  client.Send(Get("/hold"));
  const Responder respond = server.TakeHeld();
  std::thread([&] { respond(Text("first")); }).join();
  respond(Text("second"));
  EXPECT_EQ(client.Read().body, "first");
  EXPECT_EQ(client.Ask(Post("/echo", "third")).body, "third");
}

TEST(HttpServer, KeepsExtraHeadersFromBreakingTheFraming) {
  Server server(Options{"127.0.0.1", 0, 1, {}}, [](const Request&, const Responder& respond) {
    respond(Response{200,
                     "text/plain",
                     "x",
                     {{"Good", "yes"},
                      {"Bad", "a\r\nEvil: b"},
                      {"B d", ""},
                      {"Huge", std::string(70'000, 'x')}}});
  });
  ASSERT_TRUE(server.Start().ok());
  RawClient client(server.port());
  const RawReply reply = client.Ask(Get("/"));
  EXPECT_NE(reply.head.find("Good: yes\r\n"), std::string::npos);
  EXPECT_EQ(reply.head.find("Evil"), std::string::npos);
  EXPECT_EQ(reply.head.find("B d"), std::string::npos);
  EXPECT_EQ(reply.head.find("Huge"), std::string::npos);
}

}  // namespace THIS_FILE
}  // namespace tranche::http
