// What the admission webhook makes of shares in HAMi's style.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/api/admission_api.h"
#include "test/unit/scheduler/api/admission_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

// What stands in the pod's resources and in the annotation afterwards.
TEST_F(AdmissionApiTest, AmountsOfHamiAreMovedWhereThatIsWanted) {
  const Json all = {{"nvidia.com/gpu", "1"},
                    {"nvidia.com/gpumem", "8000"},
                    {"nvidia.com/gpucores", "30"},
                    {"cpu", "2"}};
  const Json left = {{"nvidia.com/gpu", "1"}, {"cpu", "2"}};
  const std::string moved = R"({"main":{"nvidia.com/gpucores":"30","nvidia.com/gpumem":"8000"}})";
  const std::string plain = "/admission/mutate", hami = "/admission/mutate/hami";
  const Json uncounted = {{"nvidia.com/gpumem-percentage", 50}};
  const struct {
    const char* what;
    HamiLimits option;
    std::string path, scheduler;
    Json limits, becomes;
    std::string annotation;
  } cases[] = {
      {"it is off by default", HamiLimits::kResources, plain, "", all, all, ""},
      {"of pods that are ours", HamiLimits::kAnnotation, plain, "", all, left, moved},
      {"of others nothing", HamiLimits::kAnnotation, plain, "volcano", all, all, ""},
      {"without a count nobody calls the agent", HamiLimits::kAnnotation, plain, "", uncounted,
       uncounted, ""},
      {"one that is given counts",
       HamiLimits::kAnnotation,
       hami,
       "",
       uncounted,
       {{"nvidia.com/gpu", "1"}},
       R"({"main":{"nvidia.com/gpumem-percentage":"50"}})"},
      {"whole cards have none", HamiLimits::kAnnotation, plain, "", left, left, ""},
      {"a count of zero",
       HamiLimits::kAnnotation,
       plain,
       "",
       {{"nvidia.com/gpu", "0"}, {"nvidia.com/gpumem", "5"}},
       {{"nvidia.com/gpu", "0"}, {"nvidia.com/gpumem", "5"}},
       ""},
      {"what cannot be read stays to be refused",
       HamiLimits::kAnnotation,
       plain,
       "",
       {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1.5"}},
       {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1.5"}},
       ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    options.hami_limits = c.option;
    options.gates = true;
    Start();
    Json pod = Pod(c.limits);
    if (!c.scheduler.empty()) pod["spec"]["schedulerName"] = c.scheduler;
    const Json made = Mutated(pod, c.path);
    EXPECT_EQ(made["spec"]["containers"][0]["resources"]["limits"], c.becomes);
    EXPECT_EQ(
        made["metadata"].value("annotations", Json::object()).value("tranche.dev/hami-limits", ""),
        c.annotation);
    if (c.annotation.empty()) continue;
    // Taken by the check that follows, unchanged by a second round, and the same wish.
    EXPECT_EQ(Refusal(Review(made)), "");
    EXPECT_EQ(Mutated(made, c.path), made);
    EXPECT_EQ(asked->style, RequestStyle::kHami) << "gates are of the same wish";
  }
}

TEST_F(AdmissionApiTest, AmountsOfHamiAreMovedForEachContainerOrNone) {
  options.hami_limits = HamiLimits::kAnnotation;
  Start();
  const Json share = {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "10"}};
  Json pod = Pod(share);
  pod["spec"]["containers"][0]["resources"]["requests"] = share;
  pod["spec"]["initContainers"] =
      Json::array({{{"name", "warm"}, {"resources", {{"requests", share}}}}});
  const Json made = Mutated(pod);
  const Json one = {{"nvidia.com/gpu", "1"}};
  EXPECT_EQ(made["spec"]["containers"][0]["resources"], Json({{"limits", one}, {"requests", one}}));
  EXPECT_EQ(made["spec"]["initContainers"][0]["resources"], Json({{"requests", one}}));
  EXPECT_EQ(made["metadata"]["annotations"]["tranche.dev/hami-limits"],
            R"({"warm":{"nvidia.com/gpumem":"10"},"main":{"nvidia.com/gpumem":"10"}})");

  Json unequal = pod;
  unequal["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpumem"] = "11";
  EXPECT_EQ(Mutated(unequal)["spec"]["initContainers"], unequal["spec"]["initContainers"]);
  Json written = pod;
  written["metadata"]["annotations"] = {{"tranche.dev/hami-limits", "{}"}};
  EXPECT_EQ(Mutated(written)["spec"]["containers"], written["spec"]["containers"]);
}

TEST_F(AdmissionApiTest, SharesInHamisStyleAreCountedWhereANamespaceAsksForIt) {
  const Json share = {{"nvidia.com/gpumem", "4000"}};
  const std::string hami = "/admission/mutate/hami";
  EXPECT_EQ(Mutated(Pod(share), hami)["spec"]["containers"][0]["resources"]["limits"],
            Json({{"nvidia.com/gpumem", "4000"}, {"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(Mutated(Pod(share))["spec"]["containers"][0]["resources"]["limits"], share);
  for (const Json& kept : {Json({{"nvidia.com/gpucores", "50"}, {"nvidia.com/gpu", "2"}}),
                           Json({{"nvidia.com/gpumem", "0"}}), Json({{"cpu", "1"}})}) {
    EXPECT_EQ(Mutated(Pod(kept), hami)["spec"]["containers"][0]["resources"]["limits"], kept);
  }
  Json requests = Pod(nullptr);
  requests["spec"]["containers"][0]["resources"]["requests"] = share;
  EXPECT_EQ(Mutated(requests, hami)["spec"]["containers"][0]["resources"]["limits"],
            Json({{"nvidia.com/gpu", "1"}}));
  // A part of a GPU is one too: the kubelet calls HAMi's plugin for the count.
  const Json half = Mutated(Pod({{"nvidia.com/gpu", "0.5"}}), hami);
  EXPECT_EQ(half["spec"]["containers"][0]["resources"]["limits"], Json({{"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(half["metadata"]["annotations"], Json({{"tranche.dev/gpu-fraction", "0.5"}}));
  options.count_hami_shares = true;
  Start();
  EXPECT_EQ(Mutated(Pod(share))["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"],
            "1");
}

}  // namespace THIS_FILE
}  // namespace tranche
