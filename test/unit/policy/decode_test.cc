#include "policy/decode.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

std::string WithSpec(std::string_view spec) {
  constexpr std::string_view kHead =
      R"({"apiVersion":"tranche.dev/v1alpha1","kind":"GPUPolicy","metadata":{"name":"p"},"spec":)";
  return std::string(kHead) + std::string(spec) + "}";
}

TEST(DecodeGpuPolicyTest, ReadsEveryField) {
  const auto policy = DecodeGpuPolicy(R"({
    "apiVersion": "tranche.dev/v1alpha1", "kind": "GPUPolicy",
    "metadata": {"name": "cluster", "labels": {"a": "b"}, "generation": 7},
    "spec": {
      "selector": {"namespaces": {"matchExpressions": [
        {"key": "team", "operator": "In", "values": ["a", "b"]},
        {"key": "retired", "operator": "DoesNotExist"}]}},
      "placement": {"strategy": "BestFit", "filterWidth": 3, "plainPods": "Rank"},
      "topology": {"default": "Preferred"},
      "sharing": {"unenforced": "Allow", "requestsGreaterThanOne": "Refuse", "limits": [
        {"model": "T4", "maxPodsPerGpu": 4, "contextMemory": "400Mi"},
        {"model": "any", "maxPodsPerGpu": 10}, {"model": "l4", "contextMemory": "1Gi"}]},
      "dialects": ["native", "hami"],
      "unassigned": "Refuse",
      "preemption": {"actor": "Scheduler", "waitForNodes": "90s"},
      "mig": "Advise",
      "agents": {"hamiVersion": "2.6.1"}
    },
    "status": {"anything": [1, 2]}})",
                                      GpuPolicy{});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->name, "cluster");
  EXPECT_EQ(policy->strategy, Strategy::kBestFit);
  EXPECT_EQ(policy->filter_width, 3);
  EXPECT_EQ(policy->plain_pods, PlainPods::kRank);
  EXPECT_EQ(policy->mig, MigMode::kAdvise);
  EXPECT_EQ(policy->unenforced_sharing, Permission::kAllow);
  EXPECT_EQ(policy->several_replicas, Permission::kRefuse);
  ASSERT_EQ(policy->sharing_limits.size(), 3U);
  EXPECT_EQ(policy->sharing_limits[0].model, "t4");
  EXPECT_EQ(policy->sharing_limits[0].max_pods_per_gpu, 4);
  EXPECT_EQ(policy->sharing_limits[1].model, "any");
  EXPECT_EQ(policy->sharing_limits[1].max_pods_per_gpu, 10);
  EXPECT_EQ(policy->sharing_limits[0].context_memory, Mebibytes::Of(400));
  EXPECT_EQ(policy->sharing_limits[1].context_memory, Mebibytes::Zero());
  EXPECT_EQ(policy->sharing_limits[2], (SharingLimit{"l4", 0, Mebibytes::Of(1024)}));
  EXPECT_EQ(policy->dialects, (std::vector<std::string>{"native", "hami"}));
  EXPECT_EQ(policy->actor, PreemptionActor::kScheduler);
  EXPECT_EQ(policy->wait_for_nodes, std::chrono::seconds(90));
  EXPECT_EQ(policy->hami_minor, 6);
  EXPECT_EQ(policy->unassigned, Permission::kRefuse);
  EXPECT_EQ(policy->nodes, std::nullopt);
  EXPECT_EQ(policy->own, NodeRules()) << "of pods, not of nodes";
  using Operator = SelectorTerm::Operator;
  EXPECT_EQ(
      policy->namespaces,
      (LabelSelector{
          {}, {{"team", Operator::kIn, {"a", "b"}}, {"retired", Operator::kDoesNotExist, {}}}}));
}

TEST(DecodeGpuPolicyTest, APolicyForNodesSaysWhatIsSoOnThem) {
  GpuPolicy defaults;
  defaults.unenforced_sharing = Permission::kAllow;
  const auto rules_of = [&defaults](std::string_view rest) {
    const std::string spec =
        R"({"selector":{"nodes":{"matchLabels":{"pool":"a"}}})" + std::string(rest) + "}";
    const auto policy = DecodeGpuPolicy(WithSpec(spec), defaults);
    EXPECT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(policy->nodes, (LabelSelector{{{"pool", "a"}}, {}}));
    return policy->own;
  };
  EXPECT_EQ(rules_of(""), NodeRules()) << "what it leaves out the pods' policies say";
  NodeRules refuses;
  refuses.unenforced_sharing = Permission::kRefuse;
  EXPECT_EQ(rules_of(R"(,"sharing":{"unenforced":"Refuse"})"), refuses);
  NodeRules drains;
  drains.sharing_limits.emplace();
  drains.on_unhealthy = OnUnhealthy::kDrain;
  drains.on_interruption = OnInterruption::kKeep;
  EXPECT_EQ(rules_of(R"(,"sharing":{"limits":[]},"onUnhealthy":"Drain","onInterruption":"Keep")"),
            drains);
  for (const char* of_pods :
       {R"("placement":{})", R"("topology":{})", R"("dialects":[])", R"("unassigned":"Allow")",
        R"("preemption":{})", R"("onIdle":"Keep")", R"("evictingEdits":"Refuse")", R"("mig":"Off")",
        R"("consolidate":"On")", R"("deletionCost":"On")", R"("provisioning":"Off")",
        R"("agents":{})"}) {
    const auto policy =
        DecodeGpuPolicy(WithSpec(R"({"selector":{"nodes":{}},)" + std::string(of_pods) + "}"), {});
    EXPECT_THAT(policy.status().message(),
                testing::HasSubstr("expected to be absent beside spec.selector.nodes"))
        << of_pods;
  }
  const auto both = DecodeGpuPolicy(WithSpec(R"({"selector":{"nodes":{},"namespaces":{}}})"), {});
  EXPECT_THAT(both.status().message(),
              testing::HasSubstr("spec.selector.namespaces: expected no namespaces beside nodes"));
}

TEST(DecodeGpuPolicyTest, AbsentAndNullFieldsKeepTheDefaults) {
  GpuPolicy defaults;
  defaults.name = "kept";
  defaults.strategy = Strategy::kSpread;
  defaults.filter_width = 5;
  defaults.unenforced_sharing = Permission::kAllow;
  defaults.sharing_limits = {{"t4", 2}};
  defaults.dialects = {"tranche"};
  defaults.actor = PreemptionActor::kOff;
  defaults.hami_minor = 8;
  defaults.plain_pods = PlainPods::kRank;
  defaults.mig = MigMode::kApply;
  for (const std::string_view json :
       {R"({})", R"({"spec":null})", R"({"metadata":{},"spec":{}})",
        R"({"spec":{"placement":{},"sharing":{},"preemption":{},"agents":{}}})",
        R"({"spec":{"placement":{"strategy":null,"filterWidth":null,"plainPods":null}}})",
        R"({"spec":{"dialects":null,"mig":null}})",
        R"({"metadata":{"managedFields":[{}]},"status":{"a":1}})"}) {
    const auto policy = DecodeGpuPolicy(json, defaults);
    ASSERT_TRUE(policy.ok()) << json << ": " << policy.status();
    EXPECT_EQ(policy->name, "kept");
    EXPECT_EQ(policy->strategy, Strategy::kSpread);
    EXPECT_EQ(policy->filter_width, 5);
    EXPECT_EQ(policy->unenforced_sharing, Permission::kAllow);
    EXPECT_EQ(policy->sharing_limits.size(), 1U);
    EXPECT_EQ(policy->dialects, defaults.dialects);
    EXPECT_EQ(policy->actor, PreemptionActor::kOff);
    EXPECT_EQ(policy->hami_minor, 8);
    EXPECT_EQ(policy->plain_pods, PlainPods::kRank);
    EXPECT_EQ(policy->mig, MigMode::kApply);
  }
}

TEST(DecodeGpuPolicyTest, ListsReplaceThoseOfTheDefaults) {
  GpuPolicy defaults;
  defaults.sharing_limits = {{"t4", 2}};
  defaults.dialects = {"tranche"};
  const auto policy =
      DecodeGpuPolicy(WithSpec(R"({"sharing":{"limits":[]},"dialects":[]})"), defaults);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_TRUE(policy->sharing_limits.empty());
  EXPECT_TRUE(policy->dialects.empty());
}

TEST(DecodeGpuPolicyTest, OfDuplicateKeysTheLastWins) {
  const auto policy = DecodeGpuPolicy(
      WithSpec(R"({"placement":{"filterWidth":0,"filterWidth":7},"mig":"Maybe","mig":"Off"})"),
      GpuPolicy{});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->filter_width, 7);
  EXPECT_EQ(policy->mig, MigMode::kOff);
}

TEST(DecodeGpuPolicyTest, ReadsEveryChoice) {
  const struct {
    std::string_view strategy;
    Strategy expected;
  } kStrategies[] = {{"Fragmentation", Strategy::kFragmentation},
                     {"BestFit", Strategy::kBestFit},
                     {"Spread", Strategy::kSpread}};
  for (const auto& c : kStrategies) {
    const std::string spec = R"({"placement":{"strategy":")" + std::string(c.strategy) + "\"}}";
    EXPECT_EQ(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{})->strategy, c.expected) << c.strategy;
  }
  const struct {
    std::string_view actor;
    PreemptionActor expected;
  } kActors[] = {{"Planner", PreemptionActor::kPlanner},
                 {"Scheduler", PreemptionActor::kScheduler},
                 {"Off", PreemptionActor::kOff}};
  for (const auto& c : kActors) {
    const std::string spec = R"({"preemption":{"actor":")" + std::string(c.actor) + "\"}}";
    EXPECT_EQ(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{})->actor, c.expected) << c.actor;
  }
  const struct {
    std::string_view mode;
    MigMode expected;
  } kModes[] = {{"Off", MigMode::kOff}, {"Advise", MigMode::kAdvise}, {"Apply", MigMode::kApply}};
  for (const auto& c : kModes) {
    const std::string spec = R"({"mig":")" + std::string(c.mode) + "\"}";
    EXPECT_EQ(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{})->mig, c.expected) << c.mode;
  }
  for (const auto& [text, expected] :
       {std::pair{"Ignore", PlainPods::kIgnore}, std::pair{"Rank", PlainPods::kRank}}) {
    const std::string spec = R"({"placement":{"plainPods":")" + std::string(text) + "\"}}";
    EXPECT_EQ(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{})->plain_pods, expected) << text;
  }
  for (const auto& [text, expected] :
       {std::pair{"Auto", Nominate::kAuto}, std::pair{"On", Nominate::kOn},
        std::pair{"Off", Nominate::kOff}}) {
    const std::string spec = R"({"placement":{"nominate":")" + std::string(text) + "\"}}";
    EXPECT_EQ(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{})->nominate, expected) << text;
  }
  const struct {
    std::string_view version;
    int minor;
  } kVersions[] = {{"2.9", 9}, {"2.5.0", 5}, {"2.10.3", 10}, {"2.99", 99}};
  for (const auto& c : kVersions) {
    const std::string spec = R"({"agents":{"hamiVersion":")" + std::string(c.version) + "\"}}";
    EXPECT_EQ(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{})->hami_minor, c.minor) << c.version;
  }
}

TEST(DecodeGpuPolicyTest, MoneyIsAWordOrARate) {
  GpuPolicy configured;
  configured.money_rate = 7;
  const struct {
    std::string_view money;
    std::optional<int> rate;
  } kCases[] = {{"\"Auto\"", std::nullopt}, {"\"Off\"", 0},     {"0", 0}, {"250", 250},
                {"\"250\"", 250},           {"100000", 100'000}};
  for (const auto& c : kCases) {
    const std::string spec = R"({"placement":{"money":)" + std::string(c.money) + "}}";
    const auto found = DecodeGpuPolicy(WithSpec(spec), configured);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->money_rate, c.rate) << c.money;
  }
  EXPECT_EQ(DecodeGpuPolicy(WithSpec("{}"), configured)->money_rate, 7) << "as configured";
}

TEST(DecodeGpuPolicyTest, RefusalsNameTheFieldTheRuleAndTheValue) {
  const struct {
    std::string_view spec;
    std::string_view message;
  } kCases[] = {
      {R"([])", "spec: expected an object, found []"},
      {R"({"placement":{"filterWidth":0}})", "spec.placement.filterWidth: expected 1..64, found 0"},
      {R"({"placement":{"filterWidth":65}})",
       "spec.placement.filterWidth: expected 1..64, found 65"},
      {R"({"placement":{"filterWidth":"3"}})",
       "spec.placement.filterWidth: expected 1..64, found \"3\""},
      {R"({"placement":{"filterWidth":1.5}})",
       "spec.placement.filterWidth: expected 1..64, found 1.5"},
      {R"({"placement":{"filterWidth":18446744073709551615}})",
       "spec.placement.filterWidth: expected 1..64, found 18446744073709551615"},
      {R"({"placement":{"strategy":"bestfit"}})",
       "spec.placement.strategy: expected one of Fragmentation, BestFit, Spread, found "
       "\"bestfit\""},
      {R"({"placement":{"plainPods":"Refuse"}})",
       "spec.placement.plainPods: expected one of Ignore, Rank, found \"Refuse\""},
      {R"({"placement":{"nominate":false}})",
       "spec.placement.nominate: expected one of Auto, On, Off, found false"},
      {R"({"placement":{"money":false}})",
       "spec.placement.money: expected \"Auto\", \"Off\" or a whole number of 0..100000, found "
       "false"},
      {R"({"placement":{"money":100001}})",
       "spec.placement.money: expected \"Auto\", \"Off\" or a whole number of 0..100000, found "
       "100001"},
      {R"({"placement":{"money":"cheap"}})",
       "spec.placement.money: expected \"Auto\", \"Off\" or a whole number of 0..100000, found "
       "\"cheap\""},
      {R"({"placement":"BestFit"})", "spec.placement: expected an object, found \"BestFit\""},
      {R"({"sharing":{"unenforced":true}})",
       "spec.sharing.unenforced: expected one of Allow, Refuse, found true"},
      {R"({"sharing":{"limits":{}}})", "spec.sharing.limits: expected a list, found {}"},
      {R"({"sharing":{"limits":[{"model":"t4","maxPodsPerGpu":0}]}})",
       "spec.sharing.limits[0].maxPodsPerGpu: expected 1..1000, found 0"},
      {R"({"sharing":{"limits":[{"model":"t4"}]}})",
       "spec.sharing.limits[0]: expected maxPodsPerGpu or contextMemory, found "
       "{\"model\":\"t4\"}"},
      {R"({"sharing":{"limits":[{"model":"t4","contextMemory":"17Gi"}]}})",
       "spec.sharing.limits[0].contextMemory: expected an amount of memory of at most 16Gi, found "
       "\"17Gi\""},
      {R"({"sharing":{"limits":[{"model":"t4","contextMemory":"400"}]}})",
       "spec.sharing.limits[0].contextMemory: expected a quantity of bytes, 1Mi..256Pi, such as "
       "\"160Gi\", found \"400\""},
      {R"({"sharing":{"requestsGreaterThanOne":true}})",
       "spec.sharing.requestsGreaterThanOne: expected one of Allow, Refuse, found true"},
      {R"({"sharing":{"limits":[{"maxPodsPerGpu":1}]}})",
       "spec.sharing.limits[0].model: expected a GPU model name or \"any\", found nothing"},
      {R"({"sharing":{"limits":[{"model":"","maxPodsPerGpu":1}]}})",
       "spec.sharing.limits[0].model: expected a GPU model name or \"any\", found \"\""},
      {R"({"sharing":{"limits":[{"model":"t4","maxPodsPerGpu":1},
                               {"model":"T4","maxPodsPerGpu":2}]}})",
       "spec.sharing.limits[1].model: expected every model once, found \"T4\""},
      {R"({"dialects":"native"})", "spec.dialects: expected a list, found \"native\""},
      {R"({"dialects":["native","none"]})",
       "spec.dialects[1]: expected one of native, tranche, hami, volcano, volcano-gpushare, "
       "gpushare, tkestack, elastic-gpu, vgpu-manager, kai, koordinator, open-gpu-share, hived, "
       "found \"none\""},
      {R"({"preemption":{"actor":"Nobody"}})",
       "spec.preemption.actor: expected one of Planner, Scheduler, Off, found \"Nobody\""},
      {R"({"preemption":[]})", "spec.preemption: expected an object, found []"},
      {R"({"agents":1})", "spec.agents: expected an object, found 1"},
      {R"({"agents":{"hamiVersion":2.9}})",
       "spec.agents.hamiVersion: expected text \"2.x\" or \"2.x.y\" with x in 1..99, found 2.9"},
      {R"({"selector":[]})", "spec.selector: expected an object, found []"},
      {R"({"selector":{"nodes":"a"}})", "spec.selector.nodes: expected an object, found \"a\""},
      {R"({"selector":{"namespaces":3}})", "spec.selector.namespaces: expected an object, found 3"},
      {R"({"topology":{"default":"Best"}})",
       "spec.topology.default: expected one of Required, Preferred, None, found \"Best\""},
      {R"({"unassigned":"Perhaps"})",
       "spec.unassigned: expected one of Allow, Refuse, found \"Perhaps\""},
      {R"({"mig":"On"})", "spec.mig: expected one of Off, Advise, Apply, found \"On\""},
      {R"({"mig":{"mode":"On"}})",
       "spec.mig.mode: expected one of Off, Advise, Apply, found \"On\""},
      {R"({"mig":{"window":{"from":"22:00","to":"04:00"}}})",
       "spec.mig.mode: expected \"Off\", \"Advise\" or \"Apply\", found nothing"},
      {R"({"mig":{"mode":"Apply","window":{"from":"22:00","to":"22:00"}}})",
       "spec.mig.window: expected to to be another time than from, found "
       "{\"from\":\"22:00\",\"to\":\"22:00\"}"},
      {R"({"mig":{"mode":"Apply","window":{"from":"24:00","to":"2:00","timeZone":"Mars"}}})",
       "spec.mig.window.from: expected a time of the day, \"00:00\" to \"23:59\", found "
       "\"24:00\"; spec.mig.window.to: expected a time of the day, \"00:00\" to \"24:00\", found "
       "\"2:00\"; spec.mig.window.timeZone: expected a time zone this machine knows, such as "
       "\"Europe/Paris\", found \"Mars\""},
      {R"({"consolidate":"Yes"})", "spec.consolidate: expected one of Off, On, found \"Yes\""},
      {R"({"provisioning":"On"})",
       "spec.provisioning: expected one of Off, CheckCapacity, AtomicScaleUp, found \"On\""},
      {R"({"deletionCost":1})", "spec.deletionCost: expected one of Off, On, found 1"},
      {R"({"dialects":["hami","hami"]})",
       "spec.dialects[1]: expected every item once, found \"hami\""},
      {R"({"preemption":{"aktor":"Off"}})",
       "spec.preemption.aktor: expected one of actor, waitForNodes, found an unknown field"},
      {R"({"migg":"Off","mig":"On","unassigned":1})",
       "spec.unassigned: expected one of Allow, Refuse, found 1; "
       "spec.mig: expected one of Off, Advise, Apply, found \"On\"; "
       "spec.migg: expected one of selector, placement, topology, sharing, dialects, unassigned, "
       "preemption, onUnhealthy, onInterruption, onIdle, evictingEdits, mig, consolidate, "
       "deletionCost, provisioning, agents, "
       "found an unknown field"},
      {R"({"onIdle":"Drain"})", "spec.onIdle: expected one of Evict, Keep, found \"Drain\""},
      {R"({"evictingEdits":"No"})",
       "spec.evictingEdits: expected one of Warn, Refuse, found \"No\""},
  };
  for (const auto& c : kCases) {
    const auto policy = DecodeGpuPolicy(WithSpec(c.spec), GpuPolicy{});
    ASSERT_FALSE(policy.ok()) << c.spec;
    EXPECT_EQ(std::string(policy.status().message()), c.message);
    EXPECT_TRUE(absl::IsInvalidArgument(policy.status()));
  }
}

TEST(DecodeGpuPolicyTest, MigIsAWordOrSaysWhenNodesMayBeEmptied) {
  const auto policy = DecodeGpuPolicy(
      WithSpec(R"({"mig":{"mode":"Apply","window":{"days":["Sat","Sun"],"from":"22:00",
                   "to":"04:30","timeZone":"Europe/Paris"}},"consolidate":"On","deletionCost":"On",
                   "provisioning":"AtomicScaleUp"})"),
      {});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->mig, MigMode::kApply);
  EXPECT_EQ(policy->consolidate, Consolidate::kOn);
  EXPECT_EQ(policy->deletion_cost, DeletionCost::kOn);
  EXPECT_EQ(policy->provisioning, Provisioning::kAtomicScaleUp);
  ASSERT_TRUE(policy->mig_window.has_value());
  EXPECT_EQ(policy->mig_window->hours, (WeekHours{0x60, 22 * 60, 4 * 60 + 30}));
  EXPECT_EQ(policy->mig_window->zone.name(), "Europe/Paris");
  const struct {
    const char* at;
    bool open;
  } table[] = {{"2026-11-28T20:59:59Z", false},   // Saturday 21:59:59 in Paris
               {"2026-11-28T21:00:00Z", true},    // 22:00
               {"2026-11-30T03:29:59Z", true},    // Monday 04:29:59, begun on Sunday
               {"2026-11-30T03:30:00Z", false},   // 04:30
               {"2026-11-28T02:00:00Z", false}};  // Saturday morning: Friday is none of its days
  for (const auto& row : table) {
    EXPECT_EQ(policy->mig_window->hours.HoldAt(policy->mig_window->zone, *ParseInstant(row.at)),
              row.open)
        << row.at;
  }
  const auto word = DecodeGpuPolicy(WithSpec(R"({"mig":"Apply"})"), *policy);
  ASSERT_TRUE(word.ok()) << word.status();
  EXPECT_EQ(word->mig, MigMode::kApply);
  EXPECT_FALSE(word->mig_window.has_value()) << "whoever writes the word means never";
}

TEST(DecodeGpuPolicyTest, RefusesEveryOtherFormOfHamiVersion) {
  for (const std::string_view version :
       {"", "2", "2.", "2.x", "2.0", "2.05", "2.100", "2.9.", "2.9.1.0", "2.9.1-rc1", "v2.9", "1.9",
        "3.1", "22.1", " 2.9", "2.-1"}) {
    const std::string spec = R"({"agents":{"hamiVersion":")" + std::string(version) + "\"}}";
    EXPECT_FALSE(DecodeGpuPolicy(WithSpec(spec), GpuPolicy{}).ok()) << version;
  }
}

TEST(DecodeGpuPolicyTest, RefusesWhatIsNoGpuPolicy) {
  const struct {
    std::string_view json;
    std::string_view message;
  } kCases[] = {
      {R"([])", "GPUPolicy: expected an object, found []"},
      {R"("x")", "GPUPolicy: expected an object, found \"x\""},
      {R"({"kind":"GPUQuota"})", "kind: expected \"GPUPolicy\", found \"GPUQuota\""},
      {R"({"apiVersion":"v1","kind":"GPUPolicy"})",
       "apiVersion: expected \"tranche.dev/v1alpha1\", found \"v1\""},
      {R"({"metadata":{"name":""}})",
       "metadata.name: expected a name of a-z, 0-9, - and ., found \"\""},
      {R"({"metadata":{"name":5}})",
       "metadata.name: expected a name of a-z, 0-9, - and ., found 5"},
  };
  for (const auto& c : kCases) {
    const auto policy = DecodeGpuPolicy(c.json, GpuPolicy{});
    ASSERT_FALSE(policy.ok()) << c.json;
    EXPECT_EQ(std::string(policy.status().message()), c.message);
  }
}

TEST(DecodeGpuPolicyTest, RefusesMalformedJsonAnywhere) {
  std::string deep = WithSpec("{\"mig\":" + std::string(80, '[') + std::string(80, ']') + "}");
  for (const std::string& json :
       {std::string(), std::string("{"), WithSpec("{} x"), WithSpec("{\"a\":01}"),
        WithSpec("{\"a\":\"\xFF\"}"), WithSpec("{\"a\":1,}"), deep}) {
    const auto policy = DecodeGpuPolicy(json, GpuPolicy{});
    ASSERT_FALSE(policy.ok()) << json;
    EXPECT_EQ(policy.status().message().find("GPUPolicy: expected JSON, found: "), 0U)
        << policy.status();
  }
}

TEST(DecodeGpuPolicyTest, ALongValueIsQuotedInPart) {
  const auto policy =
      DecodeGpuPolicy(WithSpec("{\"mig\":\"" + std::string(5000, 'a') + "\"}"), GpuPolicy{});
  ASSERT_FALSE(policy.ok());
  EXPECT_LT(policy.status().message().size(), 200U);
}

TEST(DecodeGpuPolicyTest, NoCharacterIsCutInTwo) {
  for (size_t before = 0; before < 4; ++before) {
    std::string text(before, 'a');
    for (int i = 0; i < 40; ++i) text += "\xE2\x82\xAC";
    const auto policy = DecodeGpuPolicy(WithSpec("{\"mig\":\"" + text + "\"}"), GpuPolicy{});
    const std::string message(policy.status().message());
    const size_t cut = message.find(" (cut)");
    ASSERT_NE(cut, std::string::npos) << message;
    const std::string last = message.substr(cut - 3, 3);
    EXPECT_TRUE(last == "\xE2\x82\xAC") << message;
  }
}

TEST(DecodeGpuPolicyTest, ManyMistakesAreCountedAfterTheTenth) {
  std::string items;
  for (int i = 0; i < 40; ++i) items += (i == 0 ? "" : ",") + std::to_string(i);
  const auto policy =
      DecodeGpuPolicy(WithSpec("{\"sharing\":{\"limits\":[" + items + "]}}"), GpuPolicy{});
  const std::string message(policy.status().message());
  EXPECT_NE(message.find("limits[9]: expected an object, found 9; and 30 more"), std::string::npos)
      << message;
}

TEST(DecodeGpuPolicyTest, AKeyIsShownAsTextOnly) {
  const auto policy = DecodeGpuPolicy(WithSpec(R"({"a\u001b[2Jb\n":1})"), GpuPolicy{});
  EXPECT_EQ(policy.status().message().find("spec.a?[2Jb?: expected one of "), 0U)
      << policy.status();
}

}  // namespace THIS_FILE
}  // namespace tranche
