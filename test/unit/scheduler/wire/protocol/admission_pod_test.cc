// The patch for a new pod: counts that agents are called for. The rest is tested through the
// server's paths, in api/admission_api_test.cc.
#include "scheduler/wire/protocol/admission_pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/wire/pods/pod_decode.h"

namespace tranche::wire {
namespace THIS_FILE {

using Json = nlohmann::json;

Json Pod(const Json& resources) {
  return {{"metadata", {{"name", "p"}, {"namespace", "team"}}},
          {"spec", {{"containers", Json::array({{{"name", "main"}, {"resources", resources}}})}}}};
}

// The pod as it would be created.
Json Mutated(const Json& pod, bool count_hami_shares = false) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(pod.dump());
  if (!document.ok()) return document.status().ToString();
  MutationRules rules;
  rules.scheduler_name = "gpu-scheduler";
  rules.count_hami_shares = count_hami_shares;
  const PodMutation mutation(document->get_object().value_unsafe(), rules);
  if (mutation.refusal()) return *mutation.refusal();
  EXPECT_EQ(mutation.changes_request(), !mutation.patch().empty());
  return mutation.patch().empty() ? pod : pod.patch(Json::parse(mutation.patch()));
}

// `count` beside `asks`, in limits and requests alike; "": none is added.
struct CountCase {
  Json asks;
  const char* count;
};

void ExpectCounts(const std::string& key, const std::vector<CountCase>& cases) {
  for (const auto& [asks, count] : cases) {
    for (const bool hami : {false, true}) {
      SCOPED_TRACE(asks.dump() + (hami ? ", HAMi's shares counted too" : ""));
      // As API servers send it on, which fill requests in.
      Json pod = Pod({{"limits", asks}, {"requests", asks}});
      pod["spec"]["initContainers"] = pod["spec"]["containers"];
      Json counted = asks;
      if (*count != 0) counted[key] = count;
      const Json made = Mutated(pod, hami);
      for (const char* list : {"containers", "initContainers"}) {
        EXPECT_EQ(made["spec"][list][0]["resources"],
                  Json({{"limits", counted}, {"requests", counted}}));
      }
      EXPECT_EQ(Mutated(made, hami), made) << "asked again";
    }
  }
}

TEST(PodMutationTest, AVgpuOfVolcanoIsOneWhereNoCountIsNamed) {
  ExpectCounts("volcano.sh/vgpu-number",
               {{{{"volcano.sh/vgpu-memory", "4096"}}, "1"},
                {{{"volcano.sh/vgpu-memory", 4096}, {"cpu", "2"}}, "1"},
                {{{"volcano.sh/vgpu-memory-percentage", "50"}}, "1"},
                {{{"volcano.sh/vgpu-cores", "50"}}, "1"},
                {{{"volcano.sh/vgpu-memory", "20k"}, {"volcano.sh/vgpu-cores", "50"}}, "1"},
                {{{"volcano.sh/vgpu-memory", "4096"}, {"volcano.sh/vgpu-number", "2"}}, ""},
                {{{"volcano.sh/vgpu-memory", "4096"}, {"volcano.sh/vgpu-number", "0"}}, ""},
                {{{"volcano.sh/vgpu-memory", "0"}}, ""},
                {{{"volcano.sh/vgpu-memory", "half"}}, ""},
                {{{"volcano.sh/vgpu-number", "1"}}, ""},
                {{{"volcano.sh/gpu-memory", "4"}}, ""},
                {{{"cpu", "2"}}, ""}});
}

TEST(PodMutationTest, AVgpuOfVgpuManagerIsOneWhereNoCountIsNamed) {
  ExpectCounts("nvidia.com/vgpu-number",
               {{{{"nvidia.com/vgpu-memory", "4096"}}, "1"},
                {{{"nvidia.com/vgpu-cores", "50"}}, "1"},
                {{{"nvidia.com/vgpu-memory", "4096"}, {"nvidia.com/vgpu-cores", "50"}}, "1"},
                {{{"nvidia.com/vgpu-cores", "50"}, {"nvidia.com/vgpu-number", "2"}}, ""},
                {{{"nvidia.com/vgpu-cores", "50"}, {"nvidia.com/vgpu-number", "0"}}, ""},
                {{{"nvidia.com/vgpu-cores", "0"}}, ""},
                {{{"nvidia.com/vgpu-number", "1"}}, ""},
                {{{"cpu", "2"}}, ""}});
}

TEST(PodMutationTest, ACountMakesAPodOfOursOneThatItsAgentServes) {
  for (const std::string prefix : {"volcano.sh/vgpu-", "nvidia.com/vgpu-"}) {
    SCOPED_TRACE(prefix);
    const Json pod = Pod({{"limits", {{prefix + "cores", "50"}}}});
    const Json made = Mutated(pod);
    EXPECT_EQ(made["spec"]["containers"][0]["resources"],
              Json({{"limits", {{prefix + "cores", "50"}, {prefix + "number", "1"}}}}))
        << "requests are the API server's to fill in";
    Parser parser;
    const auto facts = DecodePod(*parser.Parse(made.dump()), PodDetail::kRequest);
    ASSERT_TRUE(facts.ok());
    EXPECT_FALSE(FindImpossible(*facts));
    ASSERT_EQ(facts->request.asks.size(), 1U);
    EXPECT_EQ(facts->request.asks[0].count, 1);
  }
}

TEST(PodMutationTest, PodsThatOthersPlaceOrThatArePlacedStayAsTheyAre) {
  Json foreign = Pod({{"limits", {{"volcano.sh/vgpu-memory", "4096"}}}});
  foreign["spec"]["schedulerName"] = "volcano";
  Json placed = Pod({{"limits", {{"nvidia.com/vgpu-memory", "4096"}}}});
  placed["spec"]["nodeName"] = "n1";
  for (const Json& pod : {foreign, placed}) EXPECT_EQ(Mutated(pod), pod);
}

TEST(PodMutationTest, OnlyContainersThatAskForAShareAreCounted) {
  Json pod = Pod({{"limits", {{"nvidia.com/vgpu-memory", "4096"}}}});
  for (const Json& other : {Json(nullptr), Json::object(), Json({{"limits", {{"cpu", "1"}}}})}) {
    pod["spec"]["containers"].push_back({{"name", "side"}, {"resources", other}});
  }
  const Json made = Mutated(pod);
  for (std::size_t side = 1; side < 4; ++side) {
    EXPECT_EQ(made["spec"]["containers"][side], pod["spec"]["containers"][side]);
  }
  EXPECT_NE(made, pod);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
