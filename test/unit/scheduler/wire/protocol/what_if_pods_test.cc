// The pods that a what-if question is about: those named, and those other objects stand for.
#include "scheduler/wire/protocol/what_if_pods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kTemplate =
    R"({"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"main","resources":)"
    R"({"limits":{"nvidia.com/gpu":2}}}]}})";

// "a/run-0 2 gang of 4 rank 0", one line a pod, or the error.
std::string Asked(const std::string& objects, std::size_t most = 20) {
  std::string body = fmt::format(R"({{"pods":[{}]}})", objects);
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  const auto found = ReadWhatIfPods(body, most, " here");
  if (!found.ok()) return std::string(found.status().message());
  std::string text;
  for (const PodRequest& pod : *found) {
    text += fmt::format("{} {} {} of {} rank {}; ", pod.name.str(),
                        pod.asks.empty() ? 0 : pod.asks.front().count, pod.gang, pod.gang_size,
                        pod.gang_rank);
  }
  return text;
}
std::string Made(std::string_view kind, std::string_view spec, std::string_view version = "v1") {
  return fmt::format(
      R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"run","namespace":"a"}},"spec":{}}})",
      version, kind, spec);
}
std::string With(std::string_view before, std::string_view after) {
  return fmt::format("{}{}{}", before, kTemplate, after);
}
std::string GroupPod(std::string_view name) {
  return fmt::format(R"({{"metadata":{{"name":"{}","namespace":"a"}},"spec":{{"schedulingGroup":)"
                     R"({{"podGroupName":"run"}},"containers":[{{"name":"m","resources":)"
                     R"({{"limits":{{"nvidia.com/gpu":1}}}}}}]}}}})",
                     name);
}

TEST(WhatIfPods, ObjectsAreAsManyPodsAsTheirControllersMake) {
  struct Row {
    std::string objects, found;
  };
  const std::string group = Made("PodGroup", R"({"schedulingPolicy":{"gang":{"minCount":2}}})",
                                 "scheduling.k8s.io/v1beta1");
  for (const Row& row : {
           Row{R"({"metadata":{"name":"p"},"spec":{}})", "default/p 0  of 0 rank -1; "},
           Row{Made("Job", With(R"({"parallelism":2,"template":)", "}")),
               "a/run-0 2  of 0 rank 0; a/run-1 2  of 0 rank 1; "},
           Row{Made("Deployment", With(R"({"replicas":0,"template":)", "}")), ""},
           Row{Made("JobSet", With(R"({"replicatedJobs":[{"name":"w","replicas":2,"template":)"
                                   R"({"spec":{"template":)",
                                   "}}}]}")),
               "a/run-w-0 2 jobset/run of 2 rank 0; a/run-w-1 2 jobset/run of 2 rank 1; "},
           Row{Made("PyTorchJob", With(R"({"pytorchReplicaSpecs":{"Master":{"template":)",
                                       R"(},"Worker":{"template":{"spec":{}}}}})")),
               "a/run-master-0 2 training/run of 2 rank 0; "
               "a/run-worker-0 0 training/run of 2 rank 1; "},
           Row{Made("RayJob", With(R"({"rayClusterSpec":{"headGroupSpec":{"template":)", "}}}")),
               "a/run-head-0 2 ray/run of 1 rank 0; "},
           Row{group + "," + GroupPod("x") + "," + GroupPod("y") + "," + GroupPod("z"),
               "a/x 1 group/run of 2 rank -1; a/y 1 group/run of 2 rank -1; "
               "a/z 1 group/run of 2 rank -1; "},
           Row{GroupPod("x") + "," + GroupPod("y"),
               "a/x 1 group/run of 2 rank -1; a/y 1 group/run of 2 rank -1; "},
       }) {
    EXPECT_EQ(Asked(row.objects), row.found) << row.objects;
  }
}

TEST(WhatIfPods, ErrorsNameWhatWasExpectedAndWhere) {
  EXPECT_EQ(Asked(Made("CronJob", "{}")),
            "pods[0]: expected Pod, PodGroup, Job, Deployment, ReplicaSet, StatefulSet, JobSet, "
            "PyTorchJob, MPIJob, RayCluster, RayJob, found \"CronJob\", in kind");
  EXPECT_EQ(Asked(GroupPod("x") + "," + Made("Job", "{}")),
            "pods[1]: expected a pod template, found none, in Job run");
  EXPECT_EQ(Asked(Made("Job", R"({"parallelism":"two"})")),
            "pods[0]: expected whole number from 0 to 10000, found text \"two\", in "
            "spec.parallelism");
  EXPECT_EQ(Asked(Made("PodGroup", "{}", "example.com/v1")),
            "pods[0]: expected API group scheduling.k8s.io, scheduling.volcano.sh or "
            "scheduling.x-k8s.io, found \"example.com\", in apiVersion");
  EXPECT_EQ(Asked(Made("PodGroup", "{}", "scheduling.k8s.io/v1beta1")),
            "expected pods of group/run beside its PodGroup, found none, in pods");
  EXPECT_EQ(Asked("1"), "pods[0]: expected object, found number 1, in pod");
  EXPECT_EQ(Asked(Made("Job", With(R"({"parallelism":21,"template":)", "}"))),
            "pods: expected at most 20 here, found more");
}

// The API server's plugin ExtendedResourceToleration would have given it these.
TEST(WhatIfPods, ToleratesTheTaintsOfWhatItAsksFor) {
  const auto found = ReadWhatIfPods(
      R"({"pods":[{"metadata":{"name":"whole"},"spec":{"containers":[{"name":"m","resources":)"
      R"({"limits":{"nvidia.com/gpu":1}}}]}},{"metadata":{"name":"part","annotations":)"
      R"({"tranche.dev/gpu-fraction":"0.5"}},"spec":{"containers":[{"name":"m"}]}},)"
      R"({"metadata":{"name":"none"},"spec":{"containers":[{"name":"m"}]}}]})",
      8, " here");
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<Taint> taints = {{"nvidia.com/gpu", "present", "NoSchedule"}};
  EXPECT_TRUE(Tolerates((*found)[0].constraints->tolerations, taints));
  EXPECT_TRUE(Tolerates((*found)[1].constraints->tolerations, taints));
  EXPECT_EQ((*found)[2].constraints, nullptr);
  const std::vector<Taint> others = {{"dedicated", "", "NoSchedule"}};
  EXPECT_FALSE(Tolerates((*found)[0].constraints->tolerations, others));
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
