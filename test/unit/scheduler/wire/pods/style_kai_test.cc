// KAI's and Run:ai's annotations. Source: request-dialects section 11.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodKai, ReadsFractionsAndMemory) {
  struct Row {
    std::string_view annotations;
    std::string_view text;
  };
  for (const Row& row : {
           Row{R"("gpu-fraction":"0.5")", "a: 1 share of 500 milli of memory and 500 milli"},
           Row{R"("gpu-fraction":"5e-1")", "a: 1 share of 500 milli of memory and 500 milli"},
           Row{R"("gpu-fraction":"+.25")", "a: 1 share of 250 milli of memory and 250 milli"},
           Row{R"("gpu-fraction":"0.3339")", "a: 1 share of 333 milli of memory and 333 milli"},
           Row{R"("gpu-fraction":"0.9999")", "a: 1 share of 999 milli of memory and 999 milli"},
           Row{R"("gpu-fraction":"0.001")", "a: 1 share of 1 milli of memory and 1 milli"},
           Row{R"("gpu-memory":"4096")", "a: 1 share of 4096 MiB and 0 milli"},
           Row{R"("gpu-fraction":"0.5","gpu-fraction-num-devices":"2")",
               "a: 2 share of 500 milli of memory and 500 milli"},
           Row{R"("gpu-memory":"2000","gpu-fraction-num-devices":"4",
                  "gpu-fraction-container-name":"b")",
               "b: 4 share of 2000 MiB and 0 milli"},
           Row{R"("gpu-fraction":"0.5","mps":"true")",
               "a: 1 share of 500 milli of memory and 500 milli"},
           Row{R"("gpu-memory":"5","mps":"false")", "a: 1 share of 5 MiB and 0 milli"},
       }) {
    const PodRequest request = RequestOf(row.annotations, Containers({"", R"("cpu":1)"}));
    EXPECT_EQ(FullText(request), row.text) << row.annotations;
    EXPECT_EQ(request.style, RequestStyle::kKai);
    EXPECT_EQ(PoolText(request), "");
  }
}

TEST(PodKai, RefusesWhatKaiRefuses) {
  for (const std::string_view fraction :
       {"",     "0",      "0.0",   "1",    "1.0",           "2",     "-0.5",
        "500m", "50%",    "0.5Gi", "0.5E", "5e-7",          "half",  "0.5 ",
        " 0.5", "0x1p-1", "NaN",   "0.5e", "1e99999999999", "0.0009"}) {
    const PodRequest request =
        RequestOf(fmt::format(R"("gpu-fraction":"{}")", fraction), Containers({""}));
    EXPECT_EQ(FullText(request),
              fmt::format("expected decimal number from 0.001 to below 1, found \"{}\", in "
                          "annotation gpu-fraction",
                          fraction));
  }
  struct Row {
    std::string_view annotations;
    std::string_view detail;
  };
  for (const Row& row : {
           Row{R"("gpu-memory":"0")",
               "expected whole number of MiB above 0, found \"0\", in annotation gpu-memory"},
           Row{R"("gpu-memory":"4Gi")",
               "expected whole number of MiB above 0, found \"4Gi\", in annotation gpu-memory"},
           Row{R"("gpu-memory":"1","gpu-fraction":"0.5")",
               "expected only one of gpu-fraction and gpu-memory, found \"1 beside 0.5\", in "
               "annotation gpu-memory"},
           Row{R"("gpu-memory":"1","mps":"true")",
               "expected gpu-fraction beside it, not gpu-memory, found \"true\", in annotation "
               "mps"},
           Row{R"("gpu-fraction-num-devices":"2")",
               "expected gpu-fraction or gpu-memory beside it, found \"2\", in annotation "
               "gpu-fraction-num-devices"},
           Row{R"("gpu-fraction":"0.5","gpu-fraction-num-devices":"0")",
               "expected whole number of GPUs above 0, found \"0\", in annotation "
               "gpu-fraction-num-devices"},
           Row{R"("gpu-fraction":"0.5","gpu-fraction-container-name":"z")",
               "expected name of a container of the pod, found \"z\", in annotation "
               "gpu-fraction-container-name"},
       }) {
    EXPECT_EQ(FullText(RequestOf(row.annotations, Containers({""}))), row.detail);
  }
}

TEST(PodKai, AGpuLimitBesideItIsRefused) {
  const PodRequest request =
      RequestOf(R"("gpu-fraction":"0.5")", OneContainer(R"("nvidia.com/gpu":1)"));
  EXPECT_EQ(RequestText(request), "refused MixedDialects");
  EXPECT_EQ(FullText(request),
            "expected keys of one request style, found \"nvidia.com/gpu\" and \"gpu-fraction\", in "
            "the pod");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
