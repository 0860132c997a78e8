// Electors against a server over real sockets, with seconds shrunk to tenths.
#include "scheduler/kube/leadership/elector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using std::chrono::milliseconds;

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/leases";
constexpr const char* kLeasesOfNs = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
constexpr const char* kLeasePath = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/tranche";
// The lease is written in whole seconds.
constexpr LeaseTimes kQuick{milliseconds(1'000), milliseconds(600), milliseconds(100)};

// One process that takes part.
struct Candidate {
  Candidate(uint16_t port, std::string identity, int64_t least_epoch = 0,
            const LeaseTimes& times = kQuick) {
    ElectorOptions options{PlainOptions(port), "ns", "tranche", std::move(identity), times};
    Elector::Hooks hooks;
    hooks.least_epoch = [least_epoch](int64_t) { return least_epoch; };
    hooks.gained = [this](int64_t number) {
      held_when_gained = grant.holds();
      epoch = number;
    };
    hooks.lost = [this](const std::string&) {
      held_when_lost = grant.holds();
      lost = true;
    };
    elector = std::make_unique<Elector>(std::move(options), grant, std::move(hooks));
    elector->Start();
  }
  bool leads() const { return grant.holds(); }

  Grant grant;
  std::atomic<int64_t> epoch = 0;
  std::atomic<bool> lost = false;
  std::atomic<bool> held_when_gained = false;
  std::atomic<bool> held_when_lost = true;
  std::unique_ptr<Elector> elector;
};

Json StoredLease(const ApiServer& server) { return server.Object(kLeases, "ns/tranche"); }

TEST(ElectorTest, TheFirstLeadsAndGivesBackAndTheNextTakesOver) {
  ApiServer server;
  Candidate first(server.port(), "first");
  ASSERT_TRUE(Eventually([&] { return first.leads(); }));
  EXPECT_TRUE(Eventually([&] { return first.epoch == 1; }));
  EXPECT_TRUE(first.held_when_gained);
  Candidate second(server.port(), "second");
  ASSERT_TRUE(Eventually([&] { return second.elector->status().holder == "first"; }));
  std::this_thread::sleep_for(milliseconds(1'500));  // renewals keep the lease alive
  EXPECT_TRUE(first.leads());
  EXPECT_FALSE(second.leads());

  first.elector->Stop(Elector::Lease::kRelease);
  EXPECT_FALSE(first.leads());
  EXPECT_FALSE(first.lost);
  ASSERT_TRUE(Eventually([&] { return second.leads(); }));
  EXPECT_TRUE(Eventually([&] { return second.epoch == 2; }));
  EXPECT_EQ(StoredLease(server)["spec"]["leaseTransitions"], 1);
  EXPECT_EQ(second.elector->status().transitions, 1);
}

TEST(ElectorTest, ALeaderThatIsGoneIsReplacedAfterItsLease) {
  ApiServer server;
  auto first = std::make_unique<Candidate>(server.port(), "first");
  ASSERT_TRUE(Eventually([&] { return first->leads(); }));
  Candidate second(server.port(), "second");
  ASSERT_TRUE(Eventually([&] { return second.elector->status().holder == "first"; }));
  first->elector->Stop(Elector::Lease::kKeep);
  const auto gone = std::chrono::steady_clock::now();
  ASSERT_TRUE(Eventually([&] { return second.leads(); }));
  EXPECT_GT(std::chrono::steady_clock::now() - gone, milliseconds(700)) << "not before its lease";
  EXPECT_TRUE(Eventually([&] { return second.epoch == 2; }));
}

TEST(ElectorTest, ALeaderThatCannotRenewEndsBeforeItsLeaseDoes) {
  ApiServer server;
  Candidate leader(server.port(), "first");
  ASSERT_TRUE(Eventually([&] { return leader.epoch == 1; }));
  for (int i = 0; i < 20; ++i) {
    server.OnNext("PUT", kLeasePath, [](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(503, fakes::StatusBody(503, "ServiceUnavailable").dump());
    });
  }
  ASSERT_TRUE(Eventually([&] { return leader.lost.load(); }));
  EXPECT_FALSE(leader.held_when_lost);
  EXPECT_FALSE(leader.leads());
  EXPECT_EQ(StoredLease(server)["spec"]["holderIdentity"], "first") << "nothing was given back";
}

TEST(ElectorTest, ALeaseTakenByAnotherEndsTheLeaderAtOnce) {
  ApiServer server;
  Candidate leader(server.port(), "first");
  ASSERT_TRUE(Eventually([&] { return leader.epoch == 1; }));
  Json taken = StoredLease(server);
  taken["spec"]["holderIdentity"] = "thief";
  server.Put(kLeases, taken);
  ASSERT_TRUE(Eventually([&] { return leader.lost.load(); }));
  EXPECT_FALSE(leader.leads());
  leader.elector->Stop(Elector::Lease::kRelease);
  EXPECT_EQ(StoredLease(server)["spec"]["holderIdentity"], "thief");
}

// Another may hold the lease by then.
TEST(ElectorTest, ALeaderWhoseGrantHasEndedGivesNothingBack) {
  ApiServer server;
  constexpr LeaseTimes kUnrenewed{milliseconds(90'000), milliseconds(80'000), milliseconds(60'000)};
  Candidate leader(server.port(), "first", 0, kUnrenewed);
  ASSERT_TRUE(Eventually([&] { return leader.epoch == 1; }));
  leader.grant.End();
  leader.elector->Stop(Elector::Lease::kRelease);
  EXPECT_EQ(StoredLease(server)["spec"]["holderIdentity"], "first");
}

TEST(ElectorTest, ALeaderThatStopsGivesBackALeaseThatChangedMeanwhile) {
  const struct {
    const char* what;
    std::string holder;  // in the lease as it was changed
    std::string left;    // after the stop
  } cases[] = {{"its own renewal crossed", "first", ""}, {"another took it", "thief", "thief"}};
  for (const auto& [what, holder, left] : cases) {
    ApiServer server;
    Candidate leader(server.port(), "first");
    ASSERT_TRUE(Eventually([&] { return leader.epoch == 1; }));
    std::atomic<int> crossed = 0;
    std::atomic<bool> stopping = false;
    for (int i = 0; i < 40; ++i) {
      server.OnNext("PUT", kLeasePath,
                    [&, holder = holder](const ApiRequest& request, Exchange& exchange) {
                      if (!stopping || crossed++ > 0) return server.Serve(request, exchange);
                      Json changed = StoredLease(server);
                      changed["spec"]["holderIdentity"] = holder;
                      changed["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z";
                      server.Put(kLeases, changed);
                      exchange.Answer(409, fakes::StatusBody(409, "Conflict").dump());
                    });
    }
    stopping = true;
    leader.elector->Stop(Elector::Lease::kRelease);
    EXPECT_GE(crossed, 1) << what;
    EXPECT_EQ(StoredLease(server)["spec"]["holderIdentity"], left) << what;
  }
}

TEST(ElectorTest, AWriteWhoseAnswerWasLostIsOursAfterAll) {
  ApiServer server;
  server.OnNext("POST", kLeasesOfNs, [&server](const ApiRequest& request, Exchange& exchange) {
    Json made = Json::parse(request.body);
    server.Put(kLeases, made);
    exchange.Drop();
  });
  Candidate leader(server.port(), "first");
  ASSERT_TRUE(Eventually([&] { return leader.leads(); }));
  EXPECT_TRUE(Eventually([&] { return leader.epoch == 1; }));
  EXPECT_EQ(StoredLease(server)["spec"]["leaseTransitions"], 0);
}

TEST(ElectorTest, ALeaseThatIsMadeAnewGoesOnCountingWhereThePodsAre) {
  ApiServer server;
  Candidate leader(server.port(), "first", /*least_epoch=*/12);
  ASSERT_TRUE(Eventually([&] { return leader.epoch == 12; }));
  EXPECT_EQ(StoredLease(server)["spec"]["leaseTransitions"], 11);
}

TEST(ElectorTest, OfManyOneLeads) {
  ApiServer server;
  std::list<Candidate> all;
  for (int i = 0; i < 6; ++i) all.emplace_back(server.port(), "candidate-" + std::to_string(i));
  const auto leaders = [&all] {
    return std::count_if(all.begin(), all.end(), [](const Candidate& one) { return one.leads(); });
  };
  ASSERT_TRUE(Eventually([&] { return leaders() == 1; }));
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(leaders(), 1);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST(ElectorTest, IdentitiesNeverRepeat) { EXPECT_NE(NewIdentity(), NewIdentity()); }

}  // namespace THIS_FILE
}  // namespace tranche::kube
