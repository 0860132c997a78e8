// The effective request of a pod. Source: kube-client-protocol section 18, KEP-753, hazards rows
// 28 and 30.
#include "scheduler/wire/pods/pod_requests.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

// "i2 s1 a3 o1": init containers, sidecars, app containers in order, and overhead of
// nvidia.com/gpu.
std::string SpecOf(std::string_view word) {
  std::string init;
  std::string app;
  std::string overhead = "0";
  for (std::size_t at = 0; at < word.size(); at = word.find(' ', at) + 1) {
    const char role = word[at];
    const std::string count(word.substr(at + 1, word.find(' ', at) - at - 1));
    if (role == 'o') {
      overhead = count;
    } else {
      std::string& list = role == 'a' ? app : init;
      if (!list.empty()) list += ',';
      list += fmt::format(R"({{"name":"c{}"{},"resources":{{"limits":{{"nvidia.com/gpu":{}}}}}}})",
                          at, role == 's' ? R"(,"restartPolicy":"Always")" : "", count);
    }
    if (word.find(' ', at) == std::string_view::npos) break;
  }
  return fmt::format(
      R"("initContainers":[{}],"containers":[{}],"overhead":{{"nvidia.com/gpu":"{}"}})", init, app,
      overhead);
}

TEST(EffectiveRequest, FollowsKubernetesFormula) {
  struct Row {
    std::string_view containers;
    int64_t need;
  };
  for (const Row& row : {
           Row{"a1", 1},
           Row{"a1 a2", 3},
           Row{"i4 a1 a2", 4},
           Row{"i2 i3 a1", 3},
           Row{"i2 a3", 3},
           Row{"s1 a2", 3},
           Row{"s1 i4 a2", 5},  // the sidecar already runs
           Row{"i4 s1 a2", 4},  // it does not run yet
           Row{"s1 i2 s3 i1 a1", 5},
           Row{"s1 i3 s1 i3 a1", 5},
           Row{"s2 s2", 4},
           Row{"i5", 5},
           Row{"a1 o1", 2},
           Row{"i4 a1 o2", 6},
       }) {
    const PodRequest request = RequestOf("", SpecOf(row.containers));
    ASSERT_EQ(request.pool_needs.size(), 1u) << row.containers;
    EXPECT_EQ(request.pool_needs[0].count, row.need) << row.containers;
  }
}

TEST(EffectiveRequest, KeepsKeysApartAndInOrder) {
  const PodRequest request = RequestOf(
      "",
      R"("initContainers":[{"name":"i","resources":{"limits":{"nvidia.com/mig-1g.5gb":4}}}],)"
      R"("containers":[{"name":"a","resources":{"limits":{"nvidia.com/mig-3g.20gb":1,)"
      R"("nvidia.com/mig-1g.5gb":1}}},{"name":"b","resources":{"limits":{"nvidia.com/gpu":1}}}])");
  EXPECT_EQ(PoolText(request),
            "nvidia.com/gpu 1; nvidia.com/mig-1g.5gb 4; nvidia.com/mig-3g.20gb 1");
}

TEST(EffectiveRequest, LeavesOutKeysNoNodeAdvertises) {
  const PodRequest request =
      RequestOf("", OneContainer(R"("nvidia.com/gpu":1,"nvidia.com/gpumem":3000,"cpu":"2")"));
  EXPECT_EQ(PoolText(request), "nvidia.com/gpu 1");
}

TEST(EffectiveRequest, PodLevelResourcesNameNoGpus) {
  const PodRequest request = RequestOf(
      "", R"("resources":{"limits":{"nvidia.com/gpu":"8"}},"containers":[{"name":"main"}])");
  EXPECT_EQ(RequestText(request), "nothing");
  EXPECT_EQ(PoolText(request), "");
}

TEST(EffectiveRequest, RefusedPodsStillCountWhatTheySay) {
  const PodRequest request = RequestOf("", OneContainer(R"("nvidia.com/gpu":2,"amd.com/gpu":1)"));
  EXPECT_EQ(RequestText(request), "refused MixedDialects");
  EXPECT_EQ(PoolText(request), "nvidia.com/gpu 2");
}

TEST(EffectiveRequest, ManyDistinctKeysCostNoMoreThanSorting) {
  std::string limits;
  for (int i = 1; i <= 20'000; ++i) {
    limits += fmt::format(R"({}"nvidia.com/mig-1g.{}gb":1)", i == 1 ? "" : ",", i);
  }
  const PodRequest request = RequestOf("", OneContainer(limits));
  EXPECT_EQ(request.pool_needs.size(), 20'000u);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
