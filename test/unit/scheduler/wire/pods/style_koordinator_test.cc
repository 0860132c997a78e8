// Koordinator's resources. Source: request-dialects sections 12 and 16.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

#define KOORD(key, value) "\"koordinator.sh/" key "\":" value

TEST(PodKoordinator, ReadsTheLegalSetsOfKeys) {
  struct Row {
    std::string_view limits;
    std::string_view text;
  };
  for (const Row& row : {
           Row{KOORD("gpu", "50"), "main: 1 share of 50 % of memory and 500 milli"},
           Row{KOORD("gpu", "100"), "main: 1 gpu"},
           Row{KOORD("gpu", "400"), "main: 4 gpu"},
           Row{KOORD("gpu-memory-ratio", "30"), "main: 1 share of 30 % of memory and 0 milli"},
           Row{KOORD("gpu-memory", "\"8Gi\""), "main: 1 share of 8192 MiB and 0 milli"},
           Row{KOORD("gpu-memory", "\"8G\""), "main: 1 share of 7630 MiB and 0 milli"},
           Row{KOORD("gpu-memory", "1048577"), "main: 1 share of 2 MiB and 0 milli"},
           Row{KOORD("gpu-core", "50") "," KOORD("gpu-memory", "\"8Gi\""),
               "main: 1 share of 8192 MiB and 500 milli"},
           Row{KOORD("gpu-core", "50") "," KOORD("gpu-memory-ratio", "100"),
               "main: 1 share of whole card and 500 milli"},
           Row{KOORD("gpu-core", "100") "," KOORD("gpu-memory-ratio", "100"), "main: 1 gpu"},
           Row{KOORD("gpu-core", "200") "," KOORD("gpu-memory-ratio", "200"), "main: 2 gpu"},
           Row{KOORD("gpu-core", "200") "," KOORD("gpu-memory", "\"16Gi\""),
               "main: 2 share of 8192 MiB and 1000 milli"},
           // The totals are divided evenly over the shared cards.
           Row{KOORD("gpu.shared", "2") "," KOORD("gpu-memory-ratio", "100"),
               "main: 2 share of 50 % of memory and 0 milli"},
           Row{KOORD("gpu.shared", "3") "," KOORD("gpu-memory", "\"10Gi\""),
               "main: 3 share of 3414 MiB and 0 milli"},
           Row{KOORD("gpu.shared", "2") "," KOORD("gpu-core", "60") "," KOORD("gpu-memory-ratio",
                                                                              "40"),
               "main: 2 share of 20 % of memory and 300 milli"},
           Row{KOORD("gpu.shared", "2") "," KOORD("gpu-core", "200") "," KOORD("gpu-memory-ratio",
                                                                               "200"),
               "main: 2 gpu"},
           Row{KOORD("gpu", "50") "," KOORD("gpu-core", "0") "," KOORD("gpu-memory", "0"),
               "main: 1 share of 50 % of memory and 500 milli"},
           Row{KOORD("gpu", "0"), "nothing"},
       }) {
    const PodRequest request = RequestOf("", OneContainer(row.limits));
    EXPECT_EQ(FullText(request), row.text) << row.limits;
    EXPECT_EQ(request.containers.at(0).plugin_count, 0) << row.limits;
    EXPECT_EQ(PoolText(request), "") << row.limits;
  }
}

TEST(PodKoordinator, RefusesOtherSetsAndAmounts) {
  constexpr std::string_view kSets =
      "expected koordinator.sh/gpu alone, or one of gpu-memory and gpu-memory-ratio with gpu-core, "
      "gpu.shared, both or none, found{}, in container \"main\"";
  struct Row {
    std::string_view limits;
    std::string detail;
  };
  for (const Row& row : {
           Row{KOORD("gpu-core", "50"), fmt::format(kSets, " gpu-core")},
           Row{KOORD("gpu.shared", "2"), fmt::format(kSets, " gpu.shared")},
           Row{KOORD("gpu", "50") "," KOORD("gpu-core", "50"), fmt::format(kSets, " gpu gpu-core")},
           Row{KOORD("gpu-memory", "1") "," KOORD("gpu-memory-ratio", "5"),
               fmt::format(kSets, " gpu-memory gpu-memory-ratio")},
           Row{KOORD("gpu", "150"),
               "expected percentage up to 100, or a multiple of 100, found \"150\", in "
               "\"koordinator.sh/gpu\" of container \"main\""},
           Row{KOORD("gpu-core", "50") "," KOORD("gpu-memory-ratio", "200"),
               "expected 200 for 2 whole cards, found \"50\", in \"koordinator.sh/gpu-core\" of "
               "container \"main\""},
           Row{KOORD("gpu-core", "300") "," KOORD("gpu-memory-ratio", "200"),
               "expected 300 for 3 whole cards, found \"200\", in "
               "\"koordinator.sh/gpu-memory-ratio\" of container \"main\""},
           Row{KOORD("gpu.shared", "2") "," KOORD("gpu-memory-ratio", "33"),
               "expected multiple of 2 up to 200, over 2 cards, found \"33\", in "
               "\"koordinator.sh/gpu-memory-ratio\" of container \"main\""},
           Row{KOORD("gpu.shared", "2") "," KOORD("gpu-memory-ratio", "202"),
               "expected multiple of 2 up to 200, over 2 cards, found \"202\", in "
               "\"koordinator.sh/gpu-memory-ratio\" of container \"main\""},
           Row{KOORD("gpu-memory", "\"0.5\""),
               "expected whole number of bytes up to 2147483648 MiB, found \"0.5\", in "
               "\"koordinator.sh/gpu-memory\" of container \"main\""},
           Row{KOORD("gpu-memory", "\"3Pi\""),
               "expected whole number of bytes up to 2147483648 MiB, found \"3Pi\", in "
               "\"koordinator.sh/gpu-memory\" of container \"main\""},
       }) {
    const PodRequest request = RequestOf("", OneContainer(row.limits));
    EXPECT_EQ(FullText(request), row.detail);
    EXPECT_EQ(RequestText(request), "refused BadAmount");
  }
}

TEST(PodKoordinator, NvidiaGpuIsWholeCardsBesideIt) {
  struct Row {
    std::string spec;
    std::string_view text;
  };
  for (const Row& row : {
           Row{Containers({R"("nvidia.com/gpu":2)", KOORD("gpu", "50")}),
               "a: 2 gpu; b: 1 share of 50 % of memory and 500 milli"},
           Row{Containers({KOORD("gpu", "50"), R"("nvidia.com/gpu":2)"}),
               "a: 1 share of 50 % of memory and 500 milli; b: 2 gpu"},
           Row{OneContainer(R"("nvidia.com/gpu":2,)" KOORD("gpu", "200")), "main: 2 gpu"},
           Row{OneContainer(R"("nvidia.com/gpu":1,)" KOORD("gpu-core", "100") "," KOORD(
                   "gpu-memory-ratio", "100")),
               "main: 1 gpu"},
           Row{OneContainer(R"("nvidia.com/gpu":1,)" KOORD("gpu", "50")),
               "expected nvidia.com/gpu equal to the whole cards of \"koordinator.sh/gpu\", found "
               "\"1\", in container \"main\""},
           Row{OneContainer(R"("nvidia.com/gpu":1,)" KOORD("gpu", "200")),
               "expected nvidia.com/gpu equal to the whole cards of \"koordinator.sh/gpu\", found "
               "\"1\", in container \"main\""},
       }) {
    const PodRequest request = RequestOf("", row.spec);
    EXPECT_EQ(FullText(request), row.text) << row.spec;
    EXPECT_EQ(request.style, RequestStyle::kKoordinator);
  }
}

#undef KOORD

}  // namespace THIS_FILE
}  // namespace tranche::wire
