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

// ---- time -------------------------------------------------------------------------------------

TEST(HttpServer, GivesUpOnSlowHeadersAndSlowBodies) {
  Limits limits;
  limits.header_time = milliseconds(150);
  limits.request_time = milliseconds(300);
  TestServer server(limits);
  const struct {
    std::string start;
    int patience;
  } cases[] = {{"GET / HTTP/1.1\r\nX: ", 150},
               {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", 300}};
  for (const auto& [start, patience] : cases) {
    RawClient client(server.port());
    const auto begin = steady_clock::now();
    client.Send(start);
    RawReply reply;
    while (reply.status == 0 && steady_clock::now() - begin < milliseconds(3'000)) {
      client.Send("y");  // a byte now and then buys no time
      reply = client.Read(true, milliseconds(20));
    }
    EXPECT_EQ(reply.status, 408) << start;
    EXPECT_GE(steady_clock::now() - begin, milliseconds(patience));
    EXPECT_TRUE(client.Ended());
  }
}

TEST(HttpServer, ClosesIdleConnectionsWithoutAWord) {
  Limits limits;
  limits.idle_time = milliseconds(500);
  TestServer server(limits);
  RawClient silent(server.port());
  RawClient used(server.port());
  EXPECT_EQ(used.Ask(Get("/size")).status, 200);
  EXPECT_TRUE(silent.Ended());
  EXPECT_TRUE(used.Ended());
  EXPECT_TRUE(server->statistics().refusals_by_status.empty());
}

TEST(HttpServer, DropsAPeerThatDoesNotReadItsReply) {
  Limits limits;
  limits.reply_time = milliseconds(150);
  TestServer server(limits);
  RawClient client(server.port(), 4'096);
  client.Send(Get("/large"));
  EXPECT_TRUE(Eventually([&] { return server->statistics().connections_open == 1; }));
  EXPECT_TRUE(Eventually([&] { return server->statistics().connections_open == 0; }));
}

TEST(HttpServer, WaitsForAPeerThatPausesBeforeItReads) {
  Limits limits;
  limits.reply_time = milliseconds(3'000);
  TestServer server(limits);
  RawClient client(server.port());
  client.Send(Get("/large"));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(client.Read().body.size(), std::size_t{32} << 20);
}

// ---- the cap ----------------------------------------------------------------------------------

TEST(HttpServer, LetsTheLongestIdleConnectionGiveWayAtTheCap) {
  Limits limits;
  limits.connections = 3;
  TestServer server(limits);
  RawClient busy(server.port());
  busy.Send(Get("/hold"));
  const Responder respond = server.TakeHeld();
  RawClient older(server.port());
  EXPECT_EQ(older.Ask(Get("/size")).status, 200);
  // A connection is idle once the server has noticed that its reply went out.
  std::this_thread::sleep_for(milliseconds(300));
  RawClient newer(server.port());
  EXPECT_EQ(newer.Ask(Get("/size")).status, 200);
  std::this_thread::sleep_for(milliseconds(300));
  RawClient extra(server.port());
  EXPECT_EQ(extra.Ask(Get("/size")).status, 200);
  EXPECT_TRUE(older.Ended());
  EXPECT_EQ(newer.Ask(Get("/size")).status, 200);
  respond(Text("still here"));
  EXPECT_EQ(busy.Read().body, "still here");
  EXPECT_EQ(server->statistics().connections_evicted, 1);
  EXPECT_EQ(server->statistics().connections_open, 3);
}

TEST(HttpServer, RefusesAtTheCapWhenAllAreActiveButAnswersHealthz) {
  Limits limits;
  limits.connections = 2;
  TestServer server(limits);
  RawClient first(server.port());
  RawClient second(server.port());
  first.Send(Get("/hold"));
  second.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
  const Responder respond = server.TakeHeld();
  EXPECT_TRUE(Eventually([&] { return server->statistics().connections_open == 2; }));
  std::this_thread::sleep_for(milliseconds(50));
  const struct {
    std::string request;
    int status;
  } cases[] = {{Get("/size"), 503},
               {Get("/healthz"), 200},
               {Post("/healthz", "x"), 503},
               {Get("/healthz/"), 503},
               {"nonsense\r\n\r\n", 400}};
  for (const auto& [request, status] : cases) {
    RawClient extra(server.port());
    EXPECT_EQ(extra.Ask(request).status, status) << request;
    EXPECT_TRUE(extra.Ended());
  }
  std::vector<std::unique_ptr<RawClient>> crowd;  // silent extras must not keep the probe out
  for (int i = 0; i < 40; ++i) crowd.push_back(std::make_unique<RawClient>(server.port()));
  RawClient probe(server.port());
  EXPECT_EQ(probe.Ask(Get("/healthz")).status, 200);
  EXPECT_EQ(second.Ask("123456789").body, "123456789");
}

TEST(HttpServer, TellsASilentExtraConnectionWhyItCloses) {
  Limits limits;
  limits.connections = 1;
  limits.header_time = milliseconds(100);
  TestServer server(limits);
  RawClient busy(server.port());
  busy.Send(Get("/hold"));
  const Responder respond = server.TakeHeld();
  RawClient silent(server.port());
  EXPECT_EQ(silent.Read().status, 503);
  EXPECT_TRUE(silent.Ended());
}

// ---- memory -----------------------------------------------------------------------------------

int64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    int64_t kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

TEST(HttpServer, TakesNoMemoryForBytesThatWereOnlyClaimed) {
  Limits limits;
  limits.body_bytes = std::size_t{1} << 30;
  TestServer server(limits);
  const int64_t before = ResidentKib();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->Send("POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\nabc");
  }
  EXPECT_TRUE(Eventually([&] { return server->statistics().connections_open == 20; }));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LT(ResidentKib() - before, 40 * 1024);
}

TEST(HttpServer, TakesBodiesOfEverySizeAroundItsSteps) {
  Limits limits;
  limits.body_bytes = std::size_t{8} << 20;
  TestServer server(limits);
  RawClient client(server.port());
  for (const std::size_t size :
       {0, 1, 65'000, 65'536, 80'000, 262'143, 262'144, 262'145, 524'288, 524'289, 8'388'608}) {
    std::string body(size, 'a');
    if (size > 0) body.back() = 'z';
    std::thread sender([&] { client.Send(Post("/echo", body)); });
    EXPECT_EQ(client.Read().body, body) << size;
    sender.join();
  }
}

TEST(HttpServer, KeepsNoLargeBuffersOnIdleConnections) {
  TestServer server;
  const std::string body(std::size_t{8} << 20, 'x');
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto send_all = [&] {
    for (int i = 0; i < 24; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.port()));
      clients.back()->Send(Post("/size", body));
      EXPECT_EQ(clients.back()->Read().body, "8388608");
    }
  };
  send_all();
  const int64_t before = ResidentKib();
  send_all();
  // 24 more idle connections: their read buffers, not the 192 MiB that went through them. Beside it
  // the thread sanitizer's shadow of what was touched stays resident.
#ifdef __SANITIZE_THREAD__
  constexpr int64_t kMostMib = 96;
#else
  constexpr int64_t kMostMib = 48;
#endif
  EXPECT_LT(ResidentKib() - before, kMostMib * 1024);
}

// ---- start and stop ---------------------------------------------------------------------------

TEST(HttpServer, SaysWhereItCannotListen) {
  TestServer server;
  for (const auto& [address, port] : {std::pair<std::string, uint16_t>{"127.0.0.1", server.port()},
                                      {"no-address", 1},
                                      {"203.0.113.1", 1}}) {
    Server other(Options{address, port, 1, {}}, [](const Request&, const Responder&) {});
    const absl::Status status = other.Start();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(std::string(status.message()).find(address + " port " + std::to_string(port)),
              std::string::npos);
  }
}

TEST(HttpServer, FinishesWhatIsUnderWayWhenItStops) {
  TestServer server;
  RawClient idle(server.port());
  EXPECT_EQ(idle.Ask(Get("/size")).status, 200);
  RawClient half(server.port());
  half.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n");
  RawClient held(server.port());
  held.Send(Get("/hold"));
  const Responder respond = server.TakeHeld();
  // Nothing tells when the server has read the head of `half`; threads that answer connections made
  // later have looked at it before.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(RawClient(server.port()).Ask(Get("/size")).status, 200);
  std::thread stopper([&] { server->Stop(milliseconds(5'000)); });
  EXPECT_TRUE(idle.Ended());
  EXPECT_FALSE(RawClient(server.port()).connected());
  const RawReply reply = half.Ask("ab");
  EXPECT_EQ(reply.body, "ab");
  EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);
  respond(Text("done"));
  EXPECT_EQ(held.Read().body, "done");
  half.Close();
  held.Close();
  stopper.join();
  server->Stop(milliseconds(0));
  EXPECT_EQ(server->statistics().connections_open, 0);
}

TEST(HttpServer, CutsWhatOutlastsTheGraceAndToleratesLateAnswers) {
  Responder late;
  {
    TestServer server;
    RawClient client(server.port());
    client.Send(Get("/hold"));
    late = server.TakeHeld();
    const auto begin = steady_clock::now();
    server->Stop(milliseconds(50));
    EXPECT_LT(steady_clock::now() - begin, milliseconds(2'000));
    EXPECT_TRUE(client.Ended());
    late(Text("nobody listens"));
  }
  late(Text("nobody is there"));
}

TEST(HttpServer, ToleratesAnswersForPeersThatLeft) {
  TestServer server;
  auto client = std::make_unique<RawClient>(server.port());
  client->Send(Get("/hold"));
  const Responder respond = server.TakeHeld();
  client.reset();
  respond(Text(std::string(1 << 20, 'x')));
  EXPECT_TRUE(Eventually([&] { return server->statistics().connections_open == 0; }));
}

TEST(HttpServer, ServesManyPeersWhileConnectionsComeGoAndItStops) {
  Limits limits;
  limits.connections = 6;
  limits.idle_time = milliseconds(50);
  auto server = std::make_unique<TestServer>(limits, 3);
  const uint16_t port = server->port();
  std::atomic<bool> stop{false};
  std::atomic<int> answers{0};
  std::thread answerer([&] {
    while (!stop) {
      if (const Responder held = server->TakeHeld(milliseconds(10))) held(Text("held"));
    }
  });
  std::vector<std::thread> peers;
  for (int i = 0; i < 8; ++i) {
    peers.emplace_back([&, i] {
      const std::string body(static_cast<std::size_t>(1 + i * 30'000), 'x');
      while (!stop) {
        RawClient client(port);
        for (int k = 0; k < 20 && !stop; ++k) {
          if (!client.Send(k % 5 == 4 ? Get("/hold") : Post("/echo", body))) break;
          if (client.Read(true, milliseconds(500)).status != 200) break;
          ++answers;
        }
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return answers > 500; }));
  stop = true;
  for (std::thread& peer : peers) peer.join();
  answerer.join();
  (*server)->Stop(milliseconds(200));
  server.reset();
}

}  // namespace THIS_FILE
}  // namespace tranche::http
