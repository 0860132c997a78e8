#include "scheduler/controllers/status_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/scheduler/controllers/bind_bench.h"
#include "test/unit/scheduler/controllers/quiet_objects.h"

namespace tranche {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the conditions tranche.dev/Waiting as they are written.
class Conditions : public QuietObjects {
 public:
  void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) override {
    told.push_back(write.pod.name + (write.waiting ? " waits" : " " + write.reason));
    QuietObjects::SetWaiting(std::move(write), std::move(done));
  }

  std::vector<std::string> told;
};

class StatusWriterTest : public BindBench {
 protected:
  // What is written by one round.
  std::vector<std::string> Round() {
    clock.AdvanceBy(Millis(60'000));
    writer_.Tick(clock.Now());
    return std::exchange(objects_.told, {});
  }
  // A filter call that finds no room.
  void Refuse() {
    host.engine.With([this](Engine& engine, Instant now) {
      const std::vector<std::string_view> candidates = {"no-such-node"};
      FilterAnswer answer;
      engine.Filter(Stored().request, candidates, now, answer);
      EXPECT_THAT(answer.chosen, IsEmpty());
    });
  }
  // The watch tells of the Binding.
  void SeeBound() {
    Stored().node = NodeName("gpu-1");
    host.cluster.Receive(PodChanged{Stored()});
  }

  Conditions objects_;
  Checkpointer checkpointer_{host, nullptr, ""};
  StatusWriter writer_{host, objects_, checkpointer_, {}};
};

TEST_F(StatusWriterTest, APodThatWaitedIsToldToBePlaced) {
  EXPECT_THAT(Round(), IsEmpty()) << "nobody has asked for it yet";
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  EXPECT_THAT(Round(), IsEmpty()) << "told once";
  Bind("gpu-1");
  SeeBound();
  EXPECT_THAT(Round(), ElementsAre("train Placed"));
  EXPECT_THAT(Round(), IsEmpty());
}

// A round between the reservation and the Binding must not forget that the condition is there: it
// would stay on the pod for as long as it runs.
TEST_F(StatusWriterTest, ARoundWhileTheBindIsUnderWayForgetsNoCondition) {
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  api.writes = {Outcome::kHeld};
  Bind("gpu-1");
  ASSERT_EQ(Reservations(), 1);
  EXPECT_THAT(Round(), IsEmpty()) << "how that ends is still to come";
  EXPECT_THAT(Round(), IsEmpty());
  SeeBound();
  EXPECT_THAT(Round(), ElementsAre("train Placed"));
}

TEST_F(StatusWriterTest, APodWhoseBindFailedKeepsItsCondition) {
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  api.writes = {Outcome::kHeld};
  Bind("gpu-1");
  EXPECT_THAT(Round(), IsEmpty());
  api.held.at(0)({WriteResult::Kind::kRejected, 403, "denied"});
  ASSERT_EQ(Reservations(), 0);
  EXPECT_THAT(Round(), IsEmpty()) << "it waits as before";
  Bind("gpu-1");
  SeeBound();
  EXPECT_THAT(Round(), ElementsAre("train Placed"));
}

TEST_F(StatusWriterTest, APodThatIsGoneIsToldNothing) {
  Refuse();
  EXPECT_THAT(Round(), ElementsAre("train waits"));
  host.cluster.Receive(PodGone{PodUid("u1")});
  EXPECT_THAT(Round(), IsEmpty());
}

// Keeps what is written of objects.
class Statuses : public QuietObjects {
 public:
  void Write(ObjectWrite write, std::function<void(WriteResult)> done) override {
    const std::string key = write.kind + "/" + write.ns + write.name;
    ++writes;
    if (failing.contains(key)) return done({WriteResult::Kind::kRejected, failing.at(key), "no"});
    if (write.status) {
      shown[key] = write.fields;
    } else {
      ++made;
    }
    QuietObjects::Write(std::move(write), std::move(done));
  }

  std::map<std::string, std::string> shown;  // kind/name -> status
  std::map<std::string, int> failing;        // the code
  int writes = 0;
  int made = 0;  // objects, without their statuses
};

// A quota with a budget, a class and a policy, and the team's view.
class StatusRounds : public BindBench {
 protected:
  StatusRounds() {
    Put("Namespace", "team-a", "");
    Put("GPUQuota", "research", R"("spec":{"lines":[{"model":"any","nominal":{"gpus":4}}]})");
    Put("GPUQuota", "team", Team(2));
    Put("GPUBudget", "hours",
        R"("spec":{"quotaRef":"team","gpuHours":"100","window":{"type":"Month"}})");
    Put("GPUClass", "training", R"("spec":{"rank":10,"priorityClassNames":["train"]})");
    Put("GPUPolicy", "rules", R"("spec":{})");
  }
  // The team's quota of so many GPUs.
  static std::string Team(int gpus) {
    return R"("spec":{"parent":"research","lines":[{"model":"any","nominal":{"gpus":)" +
           std::to_string(gpus) +
           R"(}}],"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"team-a"}}})";
  }
  void Put(const std::string& kind, const std::string& name, const std::string& members) {
    Put(kind, name, members, ++generation_, name + "-uid");
  }
  void Put(const std::string& kind, const std::string& name, const std::string& members,
           int64_t generation, const std::string& uid) {
    const std::string object = fmt::format(
        R"({{"apiVersion":"tranche.dev/v1alpha1","kind":"{}","metadata":{{"name":"{}","uid":"{}",)"
        R"("generation":{}}}{}{}}})",
        kind, name, uid, generation, members.empty() ? "" : ",", members);
    host.cluster.Receive(PolicyObject{kind, "", name, uid, generation, object});
    host.cluster.Receive(PolicyObjectsSettled());
  }
  // Rounds as the product makes them, four a second.
  void Rounds(int count, Millis apart = Millis(250)) {
    for (int round = 0; round < count; ++round) {
      clock.AdvanceBy(apart);
      writer_.Tick(clock.Now());
    }
  }
  // How many they make.
  int64_t Renderings(int rounds, Millis apart = Millis(250)) {
    const int64_t before = writer_.renderings();
    Rounds(rounds, apart);
    return writer_.renderings() - before;
  }
  // What a writer that begins now shows of the objects; those of this one have to be there.
  std::map<std::string, std::string> Afresh() {
    Statuses objects;
    StatusWriter writer(host, objects, checkpointer_, {});
    for (int round = 0; round < 2; ++round) writer.Tick(clock.Now() + Millis(2'000 * round));
    return objects.shown;
  }

  Statuses objects_;
  Checkpointer checkpointer_{host, nullptr, ""};
  StatusWriter writer_{host, objects_, checkpointer_, {}};

 private:
  int64_t generation_ = 0;
};

// Members that may be half a minute late, and since when a condition is what it is.
std::map<std::string, nlohmann::json> Prompt(const std::map<std::string, std::string>& statuses) {
  std::map<std::string, nlohmann::json> prompt;
  for (const auto& [key, fields] : statuses) {
    nlohmann::json& status = prompt[key] = nlohmann::json::parse("{" + fields + "}")["status"];
    for (const char* const drifts :
         {"fairShare", "decayedUsage", "checkpoint", "committed", "percent", "resets", "exhaustsAt",
          "hoursLeft", "rightSizes", "expectedStarts"}) {
      status.erase(drifts);
    }
    if (key.starts_with("GPUBudget")) status.erase("used");
    if (status.contains("summary")) status["summary"].erase("budget");
    if (!status.contains("conditions")) continue;
    for (nlohmann::json& condition : status["conditions"]) condition.erase("lastTransitionTime");
  }
  return prompt;
}

TEST_F(StatusRounds, NothingIsRenderedWhileNothingChanges) {
  Rounds(20);
  EXPECT_EQ(objects_.shown.size(), 6U) << "two quotas, a budget, a class, a policy, a view";
  const int writes = objects_.writes;
  // Five seconds, of which none drifts.
  EXPECT_EQ(Renderings(20), 0);
  EXPECT_EQ(objects_.writes, writes);
}

TEST_F(StatusRounds, ATeamIsToldWhatItsPodsWouldDoWith) {
  auto found = std::make_shared<std::vector<RightSize>>(2);
  found->at(0).pod = {"team-b", "other"};
  found->at(1).pod = {"team-a", "web"};
  found->at(1).would_do = {SmallerAsk::Form::kGpus, 1, "", {}};
  Statuses objects;
  StatusWriter writer(host, objects, checkpointer_, {[&found] { return found; }, nullptr});
  const auto shown = [&] {
    clock.AdvanceBy(Millis(31'000));
    writer.Tick(clock.Now());
    return nlohmann::json::parse("{" + objects.shown.at("GPUQuotaView/team-aview") + "}")
        .at("status")
        .at("rightSizes");
  };
  writer.Tick(clock.Now());
  const nlohmann::json sizes = shown();
  ASSERT_EQ(sizes.size(), 1) << "of its own namespace alone";
  EXPECT_EQ(sizes[0].at("pod"), "web");
  EXPECT_EQ(sizes[0].at("ask"), "nvidia.com/gpu: 1");
  found = nullptr;
  EXPECT_TRUE(shown().empty()) << "nobody looks any more";
}

TEST_F(StatusRounds, ATeamIsToldWhenItsPodsAreExpected) {
  auto forecasts = std::make_shared<Forecasts>();
  const auto expect = [&](const std::string& ns, const std::string& pod, std::optional<Millis> in) {
    Forecast& forecast = forecasts->pods[{ns, pod}];
    if (in) forecast.p10 = forecast.p50 = forecast.p90 = clock.Now() + *in;
  };
  for (int i = 0; i < 12; ++i) expect("team-a", "p" + std::to_string(i), Millis(3'600'000 - i));
  expect("team-a", "nobody-knows", std::nullopt);
  expect("team-b", "other", Millis(60'000));
  Statuses objects;
  StatusWriter writer(host, objects, checkpointer_, {nullptr, [&forecasts] { return forecasts; }});
  for (int round = 0; round < 2; ++round) {
    writer.Tick(clock.Now());
    clock.AdvanceBy(Millis(31'000));
  }
  const auto starts = nlohmann::json::parse("{" + objects.shown.at("GPUQuotaView/team-aview") + "}")
                          .at("status")
                          .at("expectedStarts");
  ASSERT_EQ(starts.size(), 10) << "of its own namespace alone, the next ten";
  EXPECT_EQ(starts[0].at("pod"), "p11");
  EXPECT_EQ(starts[9].at("pod"), "p2");
}

TEST_F(StatusRounds, ATeamIsToldWhatItCanCountOn) {
  Rounds(20);
  const auto status =
      nlohmann::json::parse("{" + objects_.shown.at("GPUQuota/team") + "}")["status"];
  std::vector<std::string> told;
  for (const nlohmann::json& condition : status["conditions"]) {
    if (condition["type"] != "NominalReachable") continue;
    told.push_back(fmt::format("{} {}: {}", condition["status"].get<std::string>(),
                               condition["reason"].get<std::string>(),
                               condition["message"].get<std::string>()));
  }
  EXPECT_THAT(told, ElementsAre("True Reachable: a pod of up to 2 GPUs of some model starts at "
                                "once"));
  EXPECT_EQ(objects_.shown.at("GPUQuota/research").find("NominalReachable"), std::string::npos)
      << "nobody runs under it directly";
}

TEST_F(StatusRounds, TheEngineIsAskedLessWhileNothingIsToBeWritten) {
  const auto rounds = [this](int turns) {
    const int64_t before = writer_.rounds();
    for (int turn = 0; turn < turns; ++turn) {
      clock.AdvanceBy(Millis(250));
      writer_.Turn(clock.Now());
    }
    return writer_.rounds() - before;
  };
  rounds(40);  // objects and views are made
  EXPECT_EQ(rounds(40), 10);
  Put("GPUQuota", "team", Team(3));
  const int writes = objects_.writes;
  for (int turn = 0; turn < 4 && objects_.writes == writes; ++turn) rounds(1);
  EXPECT_GT(objects_.writes, writes) << "within a second";
  EXPECT_EQ(rounds(4), 4) << "what was just written may change again";
  rounds(8);
  EXPECT_EQ(rounds(40), 10);
}

TEST_F(StatusRounds, WhatChangesIsRenderedAndWrittenOnce) {
  Rounds(20);
  const int writes = objects_.writes;
  Bind("gpu-1");
  // Of the pod's quota, of that above it and of the team's view, each once as a whole.
  EXPECT_EQ(Renderings(20), 3 * 2);
  EXPECT_EQ(objects_.writes - writes, 3);
}

TEST_F(StatusRounds, WhatOnlyDriftsIsRenderedWhenItHasDrifted) {
  Rounds(20);
  // Three idle days: how many are left of the month is shown by budget, quota and view.
  EXPECT_EQ(Renderings(3 * 24 * 60, Millis(60'000)), 3 * 3);
  const int writes = objects_.writes;
  EXPECT_EQ(Renderings(60, Millis(60'000)), 0) << "an hour that ends no day";
  EXPECT_EQ(objects_.writes, writes);
}

TEST_F(StatusRounds, AStatusThatCouldNotBeWrittenIsWrittenAgain) {
  Rounds(20);
  objects_.failing["GPUQuota/team"] = 500;
  objects_.shown.erase("GPUQuota/team");
  Bind("gpu-1");
  Rounds(4 * 5);
  EXPECT_FALSE(objects_.shown.contains("GPUQuota/team"));
  EXPECT_GE(writer_.failures(), 4) << "about once a second";
  EXPECT_LE(writer_.failures(), 6);
  objects_.failing.clear();
  Rounds(5);
  EXPECT_EQ(Prompt(objects_.shown), Prompt(Afresh()));
}

TEST_F(StatusRounds, AnObjectThatIsMadeAnewGetsItsStatus) {
  for (const std::string kind : {"GPUClass", "GPUPolicy"}) {
    Put(kind, "twice", R"("spec":{})", 1, "uid");
    Rounds(5);
    ASSERT_TRUE(objects_.shown.contains(kind + "/twice"));
    objects_.shown.clear();
    host.cluster.Receive(PolicyObjectGone{kind, {"", "twice"}});
    // Between two rounds; it says the same as before, and its uid is another one.
    Put(kind, "twice", R"("spec":{})", 1, "another-uid");
    Rounds(5);
    EXPECT_TRUE(objects_.shown.contains(kind + "/twice")) << kind;
  }
}

TEST_F(StatusRounds, AViewThatSomebodyDeletedIsMadeAgain) {
  Rounds(20);
  ASSERT_EQ(objects_.made, 1);
  // The next write finds that it is gone.
  objects_.failing["GPUQuotaView/team-aview"] = 404;
  Bind("gpu-1");
  Rounds(4);
  objects_.failing.clear();
  objects_.shown.clear();
  Rounds(12);
  EXPECT_EQ(objects_.made, 2);
  EXPECT_TRUE(objects_.shown.contains("GPUQuotaView/team-aview"));
}

// Whatever happens: a second later the cluster shows what somebody would write who looks for the
// first time.
TEST_F(StatusRounds, NothingThatChangesIsMissed) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    std::mt19937 draws(seed);
    int pods = 0;
    for (int step = 0; step < 40; ++step) {
      const std::string pod = "p" + std::to_string(seed) + "-" + std::to_string(pods);
      switch (draws() % 8) {
        case 0:
        case 1:  // one that runs
          ++pods;
          Create(GpuPod(pod, pod, 1 + static_cast<int>(draws() % 2)));
          Bind(draws() % 2 == 0 ? "gpu-1" : "gpu-2", pod, pod);
          break;
        case 2:  // one that waits
          ++pods;
          Create(GpuPod(pod, pod, 2));
          break;
        case 3:
        case 4:
        case 5: {  // one ends
          const auto ended = api.pods.begin();
          if (ended == api.pods.end()) break;
          host.cluster.Receive(PodGone{ended->second.request.uid});
          api.pods.erase(ended);
          break;
        }
        case 6:
          Put("GPUQuota", "team", Team(static_cast<int>(draws() % 4)));
          break;
        default:
          Put("GPUBudget", "hours",
              R"("spec":{"quotaRef":"team","window":{"type":"Month"},"gpuHours":")" +
                  std::to_string(1 + draws() % 3) + "\"}");
      }
      clock.AdvanceBy(Millis(static_cast<int64_t>(draws() % 7'200'000)));
      Rounds(5);
      ASSERT_EQ(Prompt(objects_.shown), Prompt(Afresh())) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
