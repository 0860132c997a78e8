// Annotations that choose nodes and cards. Source: request-dialects section 4.1, DESIGN section 9.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

using Texts = std::vector<std::string>;

PodRequest WholeGpuWith(std::string_view annotations) {
  return RequestOf(annotations, OneContainer(R"("nvidia.com/gpu":1)"));
}

TEST(PodSelection, ReadsListsOfModelsAndUuids) {
  const PodRequest request = WholeGpuWith(
      R"("nvidia.com/use-gputype":"A100, H100,,","nvidia.com/nouse-gputype":"T4",)"
      R"("nvidia.com/use-gpuuuid":"GPU-Aa, GPU-b","nvidia.com/nouse-gpuuuid":"GPU-c")");
  EXPECT_EQ(request.models_any, (Texts{"*a100*", "*h100*"})) << "any part of the name, as in HAMi";
  EXPECT_EQ(request.models_none, Texts{"*t4*"});
  EXPECT_EQ(request.uuids_any, (Texts{"GPU-Aa", "GPU-b"}));
  EXPECT_EQ(request.uuids_none, Texts{"GPU-c"});
}

TEST(PodSelection, ReadsTranchesModelsAndLeastMemory) {
  const PodRequest request =
      WholeGpuWith(R"("tranche.dev/model":"H100 , h200","tranche.dev/min-gpu-memory":"40000")");
  EXPECT_EQ(request.models_any, (Texts{"h100", "h200"}));
  EXPECT_EQ(request.min_gpu_memory, Mebibytes::Of(40000));
}

TEST(PodSelection, ReadsHowCardsAreWeighed) {
  const auto with = [](const std::string& text, const char* policy = "") {
    return WholeGpuWith(
        fmt::format(R"("hami.io/device-scoring-weights":"{}","hami.io/gpu-scheduler-policy":"{}")",
                    text, policy));
  };
  const PodRequest spread = with(" memory=3 ,slot=1,core=0");
  EXPECT_EQ(spread.card_weights, (CardWeights{1, 0, 3}));
  EXPECT_EQ(spread.card_choice, CardChoice::kLoosest) << "as HAMi does where nothing is named";
  EXPECT_EQ(with("slot=1,core=1,memory=3", "binpack").card_choice, CardChoice::kTightest);
  EXPECT_EQ(WholeGpuWith(R"("x":"y")").card_weights, std::nullopt);
  for (const char* wrong :
       {"", "slot=1,core=1", "slot=1,core=1,memory=1,memory=1", "slot=0,core=0,memory=0",
        "slot=-1,core=1,memory=1", "slot=1.5,core=1,memory=1", "slot=1,core=1,disk=1",
        "slot=1,core,memory=1", "slot=1000001,core=1,memory=1"}) {
    EXPECT_EQ(
        FullText(with(wrong)),
        fmt::format("expected slot=N,core=N,memory=N with whole numbers up to 1000000, one of "
                    "them above 0, found \"{}\", in annotation "
                    "hami.io/device-scoring-weights",
                    wrong));
  }
}

TEST(PodSelection, ReadsRuntimeAndGang) {
  const PodRequest plain = WholeGpuWith(R"("x":"y")");
  EXPECT_FALSE(plain.expected_runtime.has_value());
  EXPECT_EQ(plain.gang, "");
  const PodRequest request =
      WholeGpuWith(R"("tranche.dev/expected-runtime":"1h30m","tranche.dev/gang":"run-7")");
  EXPECT_EQ(request.expected_runtime, std::chrono::minutes(90));
  EXPECT_EQ(request.gang, "run-7");
  EXPECT_EQ(WholeGpuWith(R"("tranche.dev/expected-runtime":"8784h")").expected_runtime,
            std::chrono::hours(8784));
}

TEST(PodSelection, RefusesARuntimeThatMeansNothing) {
  for (const std::string_view text : {"", "0s", "0.1us", "8784h1ms", "7d", "90", "-1h", "soon"}) {
    const PodRequest request =
        WholeGpuWith(fmt::format(R"("tranche.dev/expected-runtime":"{}")", text));
    EXPECT_EQ(RequestText(request), "refused BadAmount") << text;
    EXPECT_NE(request.refusal->detail.find(fmt::format("found \"{}\"", text)), std::string::npos)
        << request.refusal->detail;
  }
}

TEST(PodSelection, ReadsPolicies) {
  struct Row {
    std::string_view annotations;
    std::optional<Strategy> strategy;
    CardChoice choice;
  };
  for (const Row& row : {
           Row{R"("x":"y")", std::nullopt, CardChoice::kStrategy},
           Row{R"("hami.io/node-scheduler-policy":"binpack")", Strategy::kBestFit,
               CardChoice::kStrategy},
           Row{R"("hami.io/node-scheduler-policy":"spread")", Strategy::kSpread,
               CardChoice::kStrategy},
           Row{R"("hami.io/gpu-scheduler-policy":"binpack")", std::nullopt, CardChoice::kTightest},
           Row{R"("hami.io/gpu-scheduler-policy":"spread")", std::nullopt, CardChoice::kLoosest},
           Row{R"("hami.io/gpu-scheduler-policy":"mutex")", std::nullopt, CardChoice::kIdleOnly},
           Row{R"("hami.io/gpu-scheduler-policy":"topology-aware")", std::nullopt,
               CardChoice::kStrategy},
           Row{R"("hami.io/gpu-scheduler-policy":"binpack,numa")", std::nullopt,
               CardChoice::kTightest},
           Row{R"("hami.io/gpu-scheduler-policy":"numa, spread, binpack")", std::nullopt,
               CardChoice::kLoosest},
           Row{R"("hami.io/gpu-scheduler-policy":"binpack,mutex")", std::nullopt,
               CardChoice::kIdleOnly},
       }) {
    const PodRequest request = WholeGpuWith(row.annotations);
    EXPECT_EQ(request.strategy, row.strategy) << row.annotations;
    EXPECT_EQ(request.card_choice, row.choice) << row.annotations;
    EXPECT_EQ(RequestText(request), "main: 1 gpu");
  }
}

TEST(PodSelection, ReadsNumaAndMode) {
  EXPECT_TRUE(WholeGpuWith(R"("nvidia.com/numa-bind":"true")").one_numa_node);
  EXPECT_FALSE(WholeGpuWith(R"("nvidia.com/numa-bind":"false")").one_numa_node);
  EXPECT_EQ(WholeGpuWith(R"("nvidia.com/vgpu-mode":"mig")").vgpu_mode, "mig");
  EXPECT_EQ(WholeGpuWith(R"("nvidia.com/vgpu-mode":"")").vgpu_mode, "");
}

TEST(PodSelection, RefusesUnknownValuesAndQuotesThem) {
  struct Row {
    std::string_view key;
    std::string_view value;
  };
  for (const Row& row : {
           Row{"nvidia.com/numa-bind", "maybe"},
           Row{"nvidia.com/vgpu-mode", "passthrough"},
           Row{"hami.io/node-scheduler-policy", "random"},
           Row{"hami.io/gpu-scheduler-policy", "binpack,,numa"},
           Row{"hami.io/gpu-scheduler-policy", "Binpack"},
           Row{"tranche.dev/model", ""},
           Row{"tranche.dev/model", "h100,,h200"},
           Row{"tranche.dev/min-gpu-memory", "0"},
           Row{"tranche.dev/min-gpu-memory", "40Gi"},
           Row{"tranche.dev/min-gpu-memory", "-1"},
       }) {
    const PodRequest request = WholeGpuWith(fmt::format(R"("{}":"{}")", row.key, row.value));
    ASSERT_EQ(RequestText(request), "refused BadAmount") << row.key << " " << row.value;
    EXPECT_NE(request.refusal->detail.find(fmt::format("\"{}\"", row.value)), std::string::npos);
    EXPECT_NE(request.refusal->detail.find(row.key), std::string::npos);
  }
}

TEST(PodSelection, HoldsForEveryStyle) {
  for (const std::string_view limits :
       {R"("nvidia.com/gpu":1)", R"("nvidia.com/gpumem":1)", R"("nvidia.com/mig-1g.5gb":1)"}) {
    const PodRequest request =
        RequestOf(R"("nvidia.com/use-gpuuuid":"GPU-a")", OneContainer(limits));
    EXPECT_EQ(request.uuids_any, Texts{"GPU-a"}) << limits;
  }
  const PodRequest fraction =
      RequestOf(R"("tranche.dev/gpu-fraction":"0.5","hami.io/gpu-scheduler-policy":"mutex")",
                R"("containers":[{"name":"main"}])");
  EXPECT_EQ(fraction.card_choice, CardChoice::kIdleOnly);
}

TEST(PodSelection, MeansNothingToAPodWithoutGpus) {
  const PodRequest request = RequestOf(R"("tranche.dev/model":",","nvidia.com/numa-bind":"x")",
                                       R"("containers":[{"name":"main"}])");
  EXPECT_EQ(RequestText(request), "nothing");
}

TEST(PodSelection, TwoListsOfAlternativesAreAMix) {
  EXPECT_EQ(
      RequestText(WholeGpuWith(R"("tranche.dev/model":"h100","nvidia.com/use-gputype":"A100")")),
      "refused MixedDialects");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
