// The admission webhook, review by review: what is patched, what is refused and why.
#include "scheduler/api/admission_api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/wire/protocol/admission_review.h"
#include "scheduler/wire/records/placeholder_pod.h"
#include "test/unit/scheduler/api/admission_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

using testing::HasSubstr;

TEST_F(AdmissionApiTest, GpuPodsGetTheSchedulerUnlessTheyNameOne) {
  const struct {
    Json limits, annotations;
    const char* named;
    const char* becomes;
  } cases[] = {
      {{{"nvidia.com/gpu", "1"}}, nullptr, "", "gpu-scheduler"},
      {{{"nvidia.com/gpu", "1"}}, nullptr, "default-scheduler", "gpu-scheduler"},
      {{{"nvidia.com/gpu", "1"}}, nullptr, "volcano", "volcano"},
      {{{"nvidia.com/gpu", "1"}}, nullptr, "gpu-scheduler", "gpu-scheduler"},
      {{{"nvidia.com/mig-1g.10gb", "1"}}, nullptr, "", "gpu-scheduler"},
      {nullptr, {{"tranche.dev/gpu-fraction", "0.5"}}, "", "gpu-scheduler"},
      {{{"cpu", "4"}}, nullptr, "default-scheduler", "default-scheduler"},
  };
  for (const auto& [limits, annotations, named, becomes] : cases) {
    Json pod = Pod(limits, annotations);
    if (*named != 0) pod["spec"]["schedulerName"] = named;
    EXPECT_EQ(Mutated(pod)["spec"].value("schedulerName", ""), becomes) << pod;
  }
  options.scheduler_name = "default-scheduler";
  Start();
  EXPECT_EQ(Mutated(Pod({{"nvidia.com/gpu", "1"}}))["spec"]["schedulerName"], "default-scheduler");
}

TEST_F(AdmissionApiTest, PodsOfOtherSchedulersAreTakenOverOrWarnedAbout) {
  const Json gpu = {{"nvidia.com/gpu", "1"}};
  const std::string long_name(300, 'x');
  const struct {
    std::vector<std::string> take_over;
    Json limits;
    std::string named, node, becomes, warning;  // warning: a part of it; empty: none
  } cases[] = {
      {{}, gpu, "volcano", "", "volcano", "is \"volcano\": the pod waits for that scheduler"},
      {{"kai-scheduler"}, gpu, "volcano", "", "volcano", "gpu-scheduler does not place it"},
      {{"kai-scheduler", "volcano"},
       gpu,
       "volcano",
       "",
       "gpu-scheduler",
       "was \"volcano\": gpu-scheduler places the pod instead"},
      {{"volcano"}, {{"cpu", "4"}}, "volcano", "", "volcano", ""},
      {{"volcano"}, gpu, "", "", "gpu-scheduler", ""},
      {{"volcano"}, gpu, "gpu-scheduler", "", "gpu-scheduler", ""},
      // One with a node is placed already, by whomever.
      {{"volcano"}, gpu, "volcano", "n1", "volcano", ""},
      {{}, gpu, long_name, "", long_name, "xxx"},
  };
  for (const auto& [take_over, limits, named, node, becomes, warning] : cases) {
    options.take_over = take_over;
    Start();
    Json pod = Pod(limits);
    if (!named.empty()) pod["spec"]["schedulerName"] = named;
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    EXPECT_EQ(Mutated(pod)["spec"].value("schedulerName", ""), becomes) << pod;
    const Json warnings = last.value("warnings", Json::array());
    ASSERT_EQ(warnings.size(), warning.empty() ? 0U : 1U) << last;
    if (warning.empty()) continue;
    EXPECT_THAT(warnings[0].get<std::string>(), HasSubstr(warning));
    EXPECT_LE(warnings[0].get<std::string>().size(), 200U) << "API servers cut long warnings";
  }
}

TEST_F(AdmissionApiTest, FractionsOfAGpuBecomeAnnotations) {
  // As people write them and as the API server sends them on.
  const struct {
    Json amount;
    const char* fraction;
  } cases[] = {{"0.5", "0.5"},     {0.5, "0.5"},      {"500m", "0.5"}, {"5e-1", "0.5"},
               {"0.125", "0.125"}, {"125m", "0.125"}, {".25", "0.25"}, {"1m", "0.001"},
               {"0.50", "0.5"},    {"999m", "0.999"}};
  for (const auto& [amount, fraction] : cases) {
    Json pod = Pod({{"nvidia.com/gpu", amount}, {"cpu", "2"}});
    pod["spec"]["containers"][0]["resources"]["requests"] = {{"nvidia.com/gpu", amount}};
    const Json made = Mutated(pod);
    ASSERT_FALSE(made.is_null()) << last;
    EXPECT_EQ(made["metadata"]["annotations"], Json({{"tranche.dev/gpu-fraction", fraction}}));
    EXPECT_EQ(made["spec"]["containers"][0]["resources"],
              Json({{"limits", {{"cpu", "2"}}}, {"requests", Json::object()}}));
    EXPECT_EQ(made["spec"]["schedulerName"], "gpu-scheduler");
    // What comes out is taken by the check that follows, and by a second round.
    EXPECT_EQ(Refusal(Review(made)), "");
    EXPECT_EQ(Mutated(made), made);
  }
  EXPECT_EQ(Mutated(Pod({{"nvidia.com/gpu", "2"}}))["spec"]["containers"],
            Pod({{"nvidia.com/gpu", "2"}})["spec"]["containers"]);
}

TEST_F(AdmissionApiTest, AFractionBesidesTheFirstContainerNamesItsOwn) {
  const Json share = {{"limits", {{"nvidia.com/gpu", "0.5"}}}};
  Json sidecar = Pod(nullptr, {{"team", "a"}});
  sidecar["spec"]["containers"].push_back({{"name", "server"}, {"resources", share}});
  EXPECT_EQ(Mutated(sidecar)["metadata"]["annotations"],
            Json({{"team", "a"},
                  {"tranche.dev/gpu-fraction", "0.5"},
                  {"tranche.dev/container", "server"}}));
  Json init = Pod(nullptr);
  init["spec"]["initContainers"] = Json::array({{{"name", "warm"}, {"resources", share}}});
  EXPECT_EQ(Mutated(init)["metadata"]["annotations"]["tranche.dev/container"], "warm");
}

TEST_F(AdmissionApiTest, ImpossibleFractionsAreRefusedWithTheValueQuoted) {
  Json two = Pod({{"nvidia.com/gpu", "0.5"}});
  two["spec"]["containers"].push_back(
      {{"name", "b"}, {"resources", {{"limits", {{"nvidia.com/gpu", "0.25"}}}}}});
  Json unequal = Pod({{"nvidia.com/gpu", "0.5"}});
  unequal["spec"]["containers"][0]["resources"]["requests"] = {{"nvidia.com/gpu", "0.25"}};
  const struct {
    Json pod;
    const char* says;
  } cases[] = {
      {Pod({{"nvidia.com/gpu", "1.5"}}), "found \"1.5\""},
      {Pod({{"nvidia.com/gpu", "1500m"}}), "found \"1500m\" (1.5)"},
      {Pod({{"nvidia.com/gpu", 2.5}}), "found \"2.5\""},
      {Pod({{"nvidia.com/gpu", "0.0005"}}), "found \"0.0005\""},
      {Pod({{"nvidia.com/gpu", "500u"}}), "at most 3 places, found \"500u\""},
      {Pod({{"nvidia.com/gpu", "-0.5"}}), "found \"-0.5\""},
      {Pod({{"nvidia.com/gpu", "half"}}),
       "found \"half\", in nvidia.com/gpu of container \"main\""},
      {two, "found \"0.5\" in container \"main\" and \"0.25\" in container \"b\""},
      {unequal, "expected equal limits and requests, found \"0.5\" and \"0.25\""},
      {Pod({{"nvidia.com/gpu", "0.5"}}, {{"tranche.dev/gpu-fraction", "0.25"}}),
       "found \"0.5\" in nvidia.com/gpu of container \"main\" and \"0.25\" in annotation "
       "tranche.dev/gpu-fraction"},
      {Pod({{"nvidia.com/gpu", "0.5"}}, {{"tranche.dev/gpu-memory", "4096"}}),
       "\"4096\" in annotation tranche.dev/gpu-memory"},
      {Pod({{"nvidia.com/gpu", "0.5"}}, {{"tranche.dev/container", "other"}}),
       "\"other\" in annotation tranche.dev/container"},
  };
  for (const auto& [pod, says] : cases) {
    EXPECT_THAT(Refusal(Review(pod), "/admission/mutate"), HasSubstr(says)) << pod;
    EXPECT_EQ(last["status"]["code"], 422);
  }
}

TEST_F(AdmissionApiTest, ForgedResultsAreTakenAwayWithAWarning) {
  const Json forged = {{"tranche.dev/allocation", "{}"},
                       {"hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,1,1:;"},
                       {"team", "a"}};
  const Json made = Mutated(Pod({{"nvidia.com/gpu", "1"}}, forged));
  EXPECT_EQ(made["metadata"]["annotations"], Json({{"team", "a"}}));
  ASSERT_EQ(last["warnings"].size(), 2U);
  EXPECT_THAT(last["warnings"][1].get<std::string>(), HasSubstr("tranche.dev/allocation"));
  // Pods without GPUs hold nothing, and a forged record on them misleads people all the same.
  EXPECT_EQ(Mutated(Pod(nullptr, forged))["metadata"]["annotations"].size(), 1U);
  // An agent may make pods that have devices.
  const Json review = Review(Pod(nullptr, forged), "CREATE", nullptr,
                             "system:serviceaccount:tranche-system:tranche");
  EXPECT_FALSE(Ask("/admission/mutate", review).contains("patch"));
}

TEST_F(AdmissionApiTest, SharesAreShownTheCardThatABindingNamesWhereThatIsOn) {
  const Json ours = wire::VisibleDevicesEnv();
  const Json kai = Pod(nullptr, {{"gpu-fraction", "0.5"}});
  EXPECT_FALSE(Mutated(kai)["spec"]["containers"][0].contains("env"));
  options.show_devices = true;
  Start();
  EXPECT_EQ(Mutated(kai)["spec"]["containers"][0]["env"], Json({ours}));
  const Json counted = Mutated(Pod({{"nvidia.com/gpu", "0.5"}}, nullptr));
  EXPECT_EQ(counted["spec"]["containers"][0]["env"], Json({ours}));
  // HAMi's plugin says it itself, and so does the plugin where it is asked for a whole GPU.
  const Json hami = Mutated(Pod({{"nvidia.com/gpu", "0.5"}}, nullptr), "/admission/mutate/hami");
  EXPECT_FALSE(hami["spec"]["containers"][0].contains("env"));
  const Json whole = Mutated(Pod({{"nvidia.com/gpu", "1"}}, nullptr));
  EXPECT_FALSE(whole["spec"]["containers"][0].contains("env"));
  // What the user says stays.
  Json said = kai;
  said["spec"]["containers"][0]["env"] = {{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "all"}}};
  EXPECT_EQ(Mutated(said)["spec"]["containers"][0]["env"], said["spec"]["containers"][0]["env"]);
  said["spec"]["containers"][0]["env"] = {{{"name", "A"}, {"value", "b"}}};
  EXPECT_EQ(Mutated(said)["spec"]["containers"][0]["env"].size(), 2U);
}

TEST_F(AdmissionApiTest, GatesAreAddedOnlyWhereTheyAreOn) {
  gates = {true, true};
  const Json plain = Pod({{"nvidia.com/gpu", "1"}});
  EXPECT_FALSE(Mutated(plain)["spec"].contains("schedulingGates"));
  EXPECT_FALSE(asked);
  options.gates = true;
  Start();
  const Json both = Json::array({{{"name", "tranche.dev/quota"}}, {{"name", "tranche.dev/gang"}}});
  EXPECT_EQ(Mutated(plain)["spec"]["schedulingGates"], both);
  // Asked again, as API servers do where another webhook changed the pod since.
  EXPECT_EQ(Mutated(Mutated(plain))["spec"]["schedulingGates"], both);
  Json other = plain;
  other["spec"]["schedulingGates"] = Json::array({{{"name", "example.com/wait"}}});
  EXPECT_EQ(Mutated(other)["spec"]["schedulingGates"].size(), 3U);
  // Pods of other schedulers, pods with a node and pods that ask for no GPU stay as they are.
  Json foreign = plain;
  foreign["spec"]["schedulerName"] = "volcano";
  Json placed = plain;
  placed["spec"]["nodeName"] = "n1";
  for (const Json& pod : {foreign, placed, Pod({{"cpu", "1"}})}) EXPECT_EQ(Mutated(pod), pod);
}

TEST_F(AdmissionApiTest, AutoscalersAreToldWhatToLeaveAlone) {
  const char* const kDisrupt = "karpenter.sh/do-not-disrupt";
  const char* const kEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  const Json said = {{kDisrupt, "true"}, {kEvict, "false"}};
  const Json gang = {{"tranche.dev/gang", "g"}, {"tranche.dev/gang-size", "4"}};
  const struct {
    const char* sentence;
    Spare spare;
    Json annotations;
    Json added;
  } kCases[] = {
      {"it is off by default", Spare::kNone, gang, Json::object()},
      {"a member of a gang", Spare::kGangs, gang, said},
      {"a gang of one is no gang",
       Spare::kGangs,
       {{"tranche.dev/gang", "g"}, {"tranche.dev/gang-size", "1"}},
       Json::object()},
      {"a pod by itself", Spare::kGangs, {{"tranche.dev/expected-runtime", "8h"}}, Json::object()},
      {"work that runs long", Spare::kLong, {{"tranche.dev/expected-runtime", "1h"}}, said},
      {"work that does not",
       Spare::kLong,
       {{"tranche.dev/expected-runtime", "59m"}},
       Json::object()},
      {"also of those that run long, gangs", Spare::kLong, gang, said},
      {"what the pod says stands",
       Spare::kGangs,
       {{"tranche.dev/gang", "g"}, {kDisrupt, "false"}},
       {{kEvict, "false"}}},
  };
  for (const auto& c : kCases) {
    options.spare = c.spare;
    Start();
    Json pod = Pod({{"nvidia.com/gpu", "1"}});
    pod["metadata"]["annotations"] = c.annotations;
    Json expected = c.annotations;
    expected.update(c.added);
    EXPECT_EQ(Mutated(pod)["metadata"]["annotations"], expected) << c.sentence;
  }
  // Where a pod has no annotations at all, and where another scheduler places it.
  options.spare = Spare::kGangs;
  Start();
  Json named = Pod({{"nvidia.com/gpu", "1"}});
  named["metadata"]["labels"] = {{"scheduling.x-k8s.io/pod-group", "g"}};
  EXPECT_EQ(Mutated(named)["metadata"]["annotations"], said);
  named["spec"]["schedulerName"] = "volcano";
  EXPECT_FALSE(Mutated(named)["metadata"].contains("annotations"));
}

TEST_F(AdmissionApiTest, TheEngineIsAskedForWhatThePodWillAskFor) {
  options.gates = true;
  Start();
  Json pod = Pod({{"nvidia.com/gpu", "0.5"}});
  pod["metadata"].erase("name");
  pod["metadata"].erase("namespace");
  pod["metadata"]["generateName"] = "job-";
  ASSERT_FALSE(Mutated(pod).is_null());
  ASSERT_TRUE(asked);
  EXPECT_FALSE(asked->refusal);
  EXPECT_EQ(asked->name.ns, "team-a");
  ASSERT_EQ(asked->asks.size(), 1U);
  EXPECT_EQ(asked->asks[0].compute, MilliGpu::Of(500));
}

TEST_F(AdmissionApiTest, RequestsThatCanNeverBeMetAreRefusedAtCreation) {
  Json foreign = Pod({{"nvidia.com/gpu", "65"}});
  foreign["spec"]["schedulerName"] = "volcano";
  const struct {
    Json pod;
    const char* says;  // empty: allowed
  } cases[] = {
      {Pod({{"nvidia.com/gpu", "8"}}), ""},
      {Pod({{"nvidia.com/gpu", "64"}}), ""},
      {Pod({{"nvidia.com/gpu", "65"}}),
       "expected at most 64 GPUs, which is what a machine has, "
       "found \"65\", in container \"main\""},
      {Pod({{"nvidia.com/gpu", "x"}}), "found \"x\""},
      {Pod({{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1000"}},
           {{"tranche.dev/gpu-fraction", "0.5"}}),
       "expected keys of one request style, found"},
      {Pod({{"nvidia.com/mig-9g.99gb", "1"}}, {{"tranche.dev/gpu-fraction", "0.5"}}),
       "expected keys of one request style"},
      {Pod(nullptr, {{"tranche.dev/gpu-fraction", "1.5"}}), "found \"1.5\""},
      {Pod({{"cpu", "1"}}), ""},
      {foreign, ""},
  };
  for (const auto& [pod, says] : cases) {
    const std::string refusal = Refusal(Review(pod));
    if (*says == 0) {
      EXPECT_EQ(refusal, "") << pod;
    } else {
      EXPECT_THAT(refusal, HasSubstr(says)) << pod;
      EXPECT_EQ(last["status"]["code"], 422);
    }
  }
  // Claims are judged where they are known.
  Json claim = Pod(nullptr);
  claim["spec"]["resourceClaims"] = Json::array({{{"name", "gpu"}, {"resourceClaimName", "c"}}});
  EXPECT_EQ(Refusal(Review(claim)), "");
}

TEST_F(AdmissionApiTest, OnlyTrustedUsersChangeResults) {
  const Json limits = {{"nvidia.com/gpu", "1"}};
  const Json bare = Pod(limits);
  const Json placed = Pod(limits, {{"tranche.dev/allocation", "{}"}, {"team", "a"}});
  const Json moved = Pod(limits, {{"tranche.dev/allocation", "{\"v\":1}"}, {"team", "a"}});
  const Json renamed = Pod(limits, {{"tranche.dev/allocation", "{}"}, {"team", "b"}});
  const struct {
    const char* what;
    Json before, after;
    bool allowed;
  } cases[] = {
      {"added", bare, placed, false},      {"changed", placed, moved, false},
      {"taken away", placed, bare, false}, {"kept", placed, renamed, true},
      {"none", bare, bare, true},
  };
  for (const auto& [what, before, after, allowed] : cases) {
    for (const std::string user : {"alice", "system:serviceaccount:tranche-system:tranche"}) {
      const std::string refusal = Refusal(Review(after, "UPDATE", before, user));
      EXPECT_EQ(refusal.empty(), allowed || user != "alice") << what << " by " << user;
      if (refusal.empty()) continue;
      EXPECT_THAT(refusal, HasSubstr("annotation tranche.dev/allocation"));
      EXPECT_EQ(last["status"]["code"], 403);
    }
  }
  // At creation too, where no mutation took it away; groups count.
  EXPECT_THAT(Refusal(Review(placed)), HasSubstr("set by a user"));
  Json by_node = Review(placed, "CREATE", nullptr, "system:node:n1");
  by_node["request"]["userInfo"]["groups"] = {"system:nodes"};
  EXPECT_EQ(Refusal(by_node), "");
  options.trusted_users = {"alice"};
  Start();
  EXPECT_EQ(Refusal(Review(moved, "UPDATE", placed)), "");
}

TEST_F(AdmissionApiTest, APodThatExistsIsNotJudgedAnew) {
  // Else nobody could take a finalizer from it any more.
  const Json bad = Pod({{"nvidia.com/gpu", "65"}});
  EXPECT_EQ(Refusal(Review(bad, "UPDATE", bad)), "");
  EXPECT_EQ(Refusal(Review(bad, "DELETE")), "");
}

TEST_F(AdmissionApiTest, OtherKindsAndDryRunsChangeNothing) {
  Json scale = Review(nullptr);
  scale["request"]["kind"] = {{"group", "apps"}, {"version", "v1"}, {"kind", "Deployment"}};
  Json binding = Review({{"kind", "Binding"}});
  binding["request"]["kind"]["kind"] = "Binding";
  for (const std::string path : {"/admission/mutate", "/admission/validate"}) {
    for (const Json& review : {scale, binding}) {
      const Json answer = Ask(path, review);
      EXPECT_EQ(answer, Json({{"uid", "review-1"}, {"allowed", true}}));
    }
  }
  Json dry = Review(Pod({{"nvidia.com/gpu", "0.5"}}));
  const Json wet = Ask("/admission/mutate", dry);
  dry["request"]["dryRun"] = true;
  EXPECT_EQ(Ask("/admission/mutate", dry), wet);
}

TEST_F(AdmissionApiTest, WhatIsNoReviewIsA400WithTheReason) {
  const auto without = [](const std::function<void(Json&)>& change) {
    Json review = Review(Pod({{"nvidia.com/gpu", "1"}}));
    change(review);
    return review.dump();
  };
  const struct {
    std::string body;
    const char* says;
  } cases[] = {
      {"", ""},
      {"{", ""},
      {"[]", "expected object"},
      {"{}", "expected admission.k8s.io/v1 AdmissionReview, found"},
      {without([](Json& r) { r["apiVersion"] = "admission.k8s.io/v1beta1"; }), "v1beta1"},
      {without([](Json& r) { r.erase("request"); }), "review.request"},
      {without([](Json& r) { r["request"].erase("uid"); }), "request.uid"},
      {without([](Json& r) { r["request"].erase("kind"); }), "request.kind"},
      {without([](Json& r) { r["request"].erase("object"); }), "request.object"},
      {without([](Json& r) { r["request"]["object"] = 3; }), "request.object"},
      {without([](Json& r) { r["request"]["operation"] = "UPDATE"; }), "request.oldObject"},
      {without([](Json& r) { r["request"]["userInfo"]["groups"] = {1}; }), "groups"},
      {without([](Json& r) { r["request"]["object"].erase("metadata"); }), "pod.metadata"},
      {without([](Json& r) { r["request"]["object"]["spec"]["containers"] = 1; }), "containers"},
  };
  for (const auto& [body, says] : cases) {
    for (const std::string path :
         {"/admission/mutate", "/admission/mutate/hami", "/admission/validate"}) {
      const http::Response response = Call(path, body);
      EXPECT_EQ(response.status, 400) << path << body;
      EXPECT_THAT(response.body, HasSubstr(says)) << path;
    }
  }
}

TEST_F(AdmissionApiTest, EveryReviewIsCountedByWhatBecameOfIt) {
  const std::string whole = Review(Pod({{"nvidia.com/gpu", "1"}})).dump();
  const struct {
    const char *path, *outcome, *reason, *webhook;
    std::string body;
  } cases[] = {
      {"mutate", "changed", "None", "mutate", whole},
      {"mutate/hami", "allowed", "None", "mutate", Review(Pod(nullptr)).dump()},
      {"mutate", "refused", "BadAmount", "mutate", Review(Pod({{"nvidia.com/gpu", "2.5"}})).dump()},
      {"mutate", "error", "MalformedReview", "mutate", "{}"},
      {"validate", "allowed", "None", "validate", whole},
      {"validate", "refused", "ForgedResult", "validate",
       Review(Pod(nullptr, {{"tranche.dev/allocation", "{}"}})).dump()},
      {"validate", "refused", "TooManyPerNode", "validate",
       Review(Pod({{"nvidia.com/gpu", "65"}})).dump()},
      {"validate", "error", "MalformedReview", "validate", "["},
  };
  for (const auto& [path, outcome, reason, webhook, body] : cases) {
    Call(std::string("/admission/") + path, body);
    EXPECT_THAT(metrics.Render({}),
                HasSubstr(fmt::format("\ntranche_admission_reviews_total{{outcome=\"{}\",reason="
                                      "\"{}\",webhook=\"{}\"}} 1\n",
                                      outcome, reason, webhook)));
  }
}

TEST_F(AdmissionApiTest, AnOrdinaryPodTakesWellUnderAMillisecond) {
  Json pod = Pod({{"nvidia.com/gpu", "1"}, {"cpu", "8"}});
  for (int i = 0; i < 30; ++i) {
    pod["spec"]["containers"][0]["env"].push_back({{"name", "V"}, {"value", std::string(80, 'v')}});
  }
  const std::string body = Review(pod).dump();
  std::vector<std::chrono::nanoseconds> times;
  for (int i = 0; i < 2'000; ++i) {
    const auto began = std::chrono::steady_clock::now();
    ASSERT_EQ(Call("/admission/mutate", body).status, 200);
    ASSERT_EQ(Call("/admission/validate", body).status, 200);
    times.push_back((std::chrono::steady_clock::now() - began) / 2);
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], std::chrono::milliseconds(1));
}

}  // namespace THIS_FILE
}  // namespace tranche
