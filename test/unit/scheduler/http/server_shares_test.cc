// What peers may take from each other: places, bytes and time; and who is asked before bytes are
// taken.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "scheduler/http/byte_budget.h"
#include "test/unit/scheduler/http/server_fixture.h"

namespace tranche::http {
namespace THIS_FILE {

using Clients = std::vector<std::unique_ptr<RawClient>>;

// ---- before the body --------------------------------------------------------------------------

TEST(HttpShares, WhoIsAnsweredIsDecidedBeforeTheBodyIsRead) {
  Limits limits;
  limits.body_bytes = 100;
  TestServer server(limits, 2, [](const Request& head) {
    EXPECT_EQ(head.body, "");
    Terms terms;
    if (head.path == "/closed") terms.refusal = Response{401, "text/plain", "not you", {}};
    if (head.path == "/size") terms.body_bytes = 1'000;
    return terms;
  });
  const struct {
    std::string request;
    int status;
  } cases[] = {
      // No byte of the body is sent, so that none can have been read.
      {"POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n", 401},
      {"POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 401},
      {"POST /closed HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
       401},
      {Post("/size", std::string(1'000, 'x')), 200},
      {"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
      {Post("/echo", std::string(100, 'x')), 200},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413},
  };
  for (const auto& [request, status] : cases) {
    RawClient client(server.port());
    EXPECT_EQ(client.Ask(request).status, status) << request.substr(0, 90);
  }
  EXPECT_EQ(server.handled(), 2);
  // Without a body the connection goes on.
  RawClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/closed")).status, 401);
  EXPECT_EQ(client.Ask(Get("/size")).status, 200);
}

// ---- bytes ------------------------------------------------------------------------------------

TEST(HttpShares, ABudgetIsTakenWholeAndGivenBack) {
  ByteBudget budget(100);
  EXPECT_TRUE(budget.Take(60));
  EXPECT_FALSE(budget.Take(41));
  EXPECT_TRUE(budget.Take(40));
  EXPECT_FALSE(budget.Take(1));
  budget.Give(100);
  // Larger than all of it: alone, or never.
  EXPECT_TRUE(budget.Take(500));
  EXPECT_FALSE(budget.Take(1));
  budget.Give(500);
  const auto text = std::make_shared<const std::string>(80, 'x');
  EXPECT_TRUE(budget.TakeText(text));
  EXPECT_TRUE(budget.TakeText(text));
  EXPECT_EQ(budget.used(), 80U);
  budget.GiveText(text.get(), text->size());
  EXPECT_EQ(budget.used(), 80U);
  budget.GiveText(text.get(), text->size());
  EXPECT_EQ(budget.used(), 0U);
}

TEST(HttpShares, BodiesOfOneKindLeaveRoomForThoseOfAnother) {
  ByteBudget pages(300'000);
  ByteBudget verbs(300'000);
  TestServer server({}, 2, [&](const Request& head) {
    Terms terms;
    terms.bodies = head.path == "/echo" ? &pages : &verbs;
    return terms;
  });
  const std::string half = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n";
  RawClient slow(server.port());
  slow.Send(half);
  ASSERT_TRUE(Eventually([&] { return pages.used() == 200'000; }));
  RawClient second(server.port());
  const RawReply refused = second.Ask(half);
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.head.find("Retry-After: "), std::string::npos);
  EXPECT_EQ(RawClient(server.port()).Ask(Post("/size", std::string(200'000, 'v'))).body, "200000");
  EXPECT_EQ(slow.Ask(std::string(200'000, 'x')).body.size(), 200'000U);
  EXPECT_EQ(RawClient(server.port()).Ask(Post("/echo", std::string(200'000, 'x'))).status, 200);
  EXPECT_TRUE(Eventually([&] { return pages.used() == 0 && verbs.used() == 0; }));
  {
    RawClient leaves(server.port());
    leaves.Send(half);
    EXPECT_TRUE(Eventually([&] { return pages.used() == 200'000; }));
  }
  EXPECT_TRUE(Eventually([&] { return pages.used() == 0; })) << "a peer that left holds nothing";
}

TEST(HttpShares, AnswersThatNobodyReadsAreBoundedAndOneTextCountsOnce) {
  ByteBudget answers(std::size_t{40} << 20);
  TestServer server({}, 2, [&](const Request&) {
    Terms terms;
    terms.answers = &answers;
    return terms;
  });
  Clients deaf;
  const auto ask = [&](std::string_view path) {
    deaf.push_back(std::make_unique<RawClient>(server.port(), 4'096));
    deaf.back()->Send(Get(path));
  };
  for (int i = 0; i < 5; ++i) ask("/shared");
  ASSERT_TRUE(Eventually([&] { return server.handled() == 5; }));
  EXPECT_TRUE(Eventually([&] { return answers.used() == std::size_t{32} << 20; }));
  RawClient another(server.port());
  EXPECT_EQ(another.Ask(Get("/large")).status, 503) << "32 MiB more";
  EXPECT_EQ(RawClient(server.port()).Ask(Get("/size")).status, 200) << "small ones always";
  deaf.clear();
  EXPECT_TRUE(Eventually([&] { return answers.used() == 0; }));
  EXPECT_EQ(RawClient(server.port()).Ask(Get("/large")).body.size(), std::size_t{32} << 20);
}

// ---- places -----------------------------------------------------------------------------------

TEST(HttpShares, OneAddressDoesNotKeepOthersOut) {
  Limits limits;
  limits.connections = 8;
  TestServer server(limits);
  Clients crowd;
  const auto come = [&] {
    crowd.push_back(std::make_unique<RawClient>(server.port(), 0, 2));
    crowd.back()->Send("G");
  };
  for (int i = 0; i < 8; ++i) come();
  ASSERT_TRUE(Eventually([&] { return server->statistics().connections_open == 8; }));
  RawClient other(server.port(), 0, 3);
  EXPECT_EQ(other.Ask(Get("/size")).status, 200) << "one of the many gives way";
  EXPECT_EQ(server->statistics().connections_evicted, 1);
  // Idle now, and still not theirs.
  for (int i = 0; i < 20; ++i) come();
  EXPECT_EQ(crowd.back()->Ask("ET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 503);
  EXPECT_EQ(other.Ask(Get("/size")).status, 200);
}

TEST(HttpShares, AnAddressThatSharesFairlyKeepsItsConnections) {
  Limits limits;
  limits.connections = 4;
  TestServer server(limits);
  Clients first;
  for (int i = 0; i < 2; ++i) {
    first.push_back(std::make_unique<RawClient>(server.port(), 0, 2));
    first.back()->Send("G");
  }
  Clients second;
  for (int i = 0; i < 2; ++i) {
    second.push_back(std::make_unique<RawClient>(server.port(), 0, 3));
    second.back()->Send("G");
  }
  ASSERT_TRUE(Eventually([&] { return server->statistics().connections_open == 4; }));
  RawClient third(server.port(), 0, 3);
  EXPECT_EQ(third.Ask(Get("/size")).status, 503);
  for (const auto& client : first) {
    EXPECT_EQ(client->Ask("ET /size HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
  }
}

TEST(HttpShares, ProbesAreAnsweredWhereAllPlacesAreTaken) {
  Limits limits;
  limits.connections = 1;
  TestServer server(limits);
  RawClient busy(server.port());
  busy.Send(Get("/hold"));
  const Responder respond = server.TakeHeld();
  for (const char* path : {"/healthz", "/livez", "/readyz"}) {
    EXPECT_EQ(RawClient(server.port()).Ask(Get(path)).status, 200) << path;
  }
}

// ---- time and failures ------------------------------------------------------------------------

TEST(HttpShares, APeerThatReadsAByteNowAndThenIsDropped) {
  Limits limits;
  limits.reply_time = milliseconds(150);
  limits.slowest_reader = std::size_t{64} << 20;  // so that half a second is too long
  TestServer server(limits);
  RawClient client(server.port(), 4'096);
  client.Send(Get("/large"));
  const auto begin = steady_clock::now();
  while (server->statistics().connections_open > 0 || server.handled() == 0) {
    client.ReadSome(64 * 1024);
    ASSERT_LT(steady_clock::now() - begin, milliseconds(4'000));
    std::this_thread::sleep_for(milliseconds(20));
  }
}

TEST(HttpShares, AHandlerThatThrowsCostsItsRequestAlone) {
  TestServer server;
  RawClient client(server.port());
  EXPECT_EQ(client.Ask(Get("/throw")).status, 500);
  EXPECT_EQ(client.Ask(Get("/size")).status, 200);
  EXPECT_EQ(server->statistics().refusals_by_status.at(500), 1);
}

}  // namespace THIS_FILE
}  // namespace tranche::http
