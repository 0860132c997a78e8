// open-gpu-share's annotations. Source: request-dialects section 13.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodOpenGpuShare, ReadsThousandthsOfSeveralCards) {
  struct Row {
    std::string_view annotations;
    std::string_view text;
  };
  for (const Row& row : {
           Row{R"("alibabacloud.com/gpu-milli":"500")",
               "main: 1 share of 500 milli of memory and 500 milli"},
           Row{R"("alibabacloud.com/gpu-milli":"1","alibabacloud.com/gpu-count":"3")",
               "main: 3 share of 1 milli of memory and 1 milli"},
           Row{R"("alibabacloud.com/gpu-milli":"1000","alibabacloud.com/gpu-count":"8")",
               "main: 8 gpu"},
           Row{R"("alibabacloud.com/gpu-milli":"0")",
               "expected whole number from 1 to 1000, found \"0\", in annotation "
               "alibabacloud.com/gpu-milli"},
           Row{R"("alibabacloud.com/gpu-milli":"1001")",
               "expected whole number from 1 to 1000, found \"1001\", in annotation "
               "alibabacloud.com/gpu-milli"},
           Row{R"("alibabacloud.com/gpu-count":"2")",
               "expected whole number from 1 to 1000, found \"\", in annotation "
               "alibabacloud.com/gpu-milli"},
           Row{R"("alibabacloud.com/gpu-milli":"500","alibabacloud.com/gpu-count":"-1")",
               "expected whole number of GPUs above 0, found \"-1\", in annotation "
               "alibabacloud.com/gpu-count"},
           Row{R"("alibabacloud.com/gpu-milli":"5","alibabacloud.com/gpu-card-model":"T4||A10")",
               "expected model names with | between them, none empty, found \"T4||A10\", in "
               "annotation alibabacloud.com/gpu-card-model"},
           Row{R"("alibabacloud.com/gpu-milli":"5","alibabacloud.com/gpu-card-model":"T4",
                  "tranche.dev/model":"a10")",
               "expected keys of one request style, found \"alibabacloud.com/gpu-card-model\" and "
               "\"tranche.dev/model\", in the pod"},
       }) {
    const PodRequest request = RequestOf(row.annotations, OneContainer(R"("cpu":1)"));
    EXPECT_EQ(FullText(request), row.text) << row.annotations;
    EXPECT_EQ(request.style, RequestStyle::kOpenGpuShare) << row.annotations;
  }
}

TEST(PodOpenGpuShare, ModelsAreAlternatives) {
  const PodRequest request = RequestOf(
      R"("alibabacloud.com/gpu-milli":"5","alibabacloud.com/gpu-card-model":"V100M16|V100M32")",
      OneContainer(""));
  EXPECT_EQ(request.models_any, (std::vector<std::string>{"v100m16", "v100m32"}));
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
