// Objects that stand for several pods: how many of which template, how many start together.
#include "scheduler/wire/workloads/workload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/wire/workloads/gang_sizes.h"

namespace tranche::wire {
namespace THIS_FILE {

// "jobset/run together 5: driver*1 worker*4", or the error; a question mark: without a template.
std::string Text(std::string_view kind, const std::string& spec) {
  Parser parser;
  const std::string json =
      fmt::format(R"({{"metadata":{{"name":"run","namespace":"a"}},"spec":{}}})", spec);
  const absl::StatusOr<Workload> found = ReadWorkload(parser.Parse(json).value(), kind);
  if (!found.ok()) return std::string(found.status().message());
  std::string text = fmt::format("{} together {}:", found->gang, found->together);
  for (const PodSet& set : found->sets) {
    text += fmt::format(" {}*{}{}", set.name, set.count, set.pod ? "" : "?");
  }
  return text;
}

TEST(Workloads, HowManyPodsOfWhichTemplate) {
  struct Row {
    std::string_view kind, spec, found;
  };
  for (const Row& row : {
           Row{"Job", R"({"template":{}})", " together 0: *1"},
           Row{"Job", R"({"parallelism":4,"completions":3,"template":{}})", " together 0: *3"},
           Row{"Job", R"({"parallelism":4,"completions":9,"template":{}})", " together 0: *4"},
           Row{"Deployment", R"({"replicas":3,"template":{}})", " together 0: *3"},
           Row{"StatefulSet", R"({"template":{}})", " together 0: *1"},
           Row{"JobSet",
               R"({"replicatedJobs":[{"name":"driver","template":{"spec":{"template":{}}}},)"
               R"({"name":"worker","replicas":2,"template":{"spec":{"parallelism":4,)"
               R"("template":{}}}}]})",
               "jobset/run together 9: driver*1 worker*8"},
           // Some of its pods are made when others run, or have run.
           Row{"JobSet",
               R"({"startupPolicy":{"startupPolicyOrder":"InOrder"},"replicatedJobs":[)"
               R"({"name":"w","template":{"spec":{"template":{}}}}]})",
               "jobset/run together 0: w*1"},
           Row{"JobSet",
               R"({"replicatedJobs":[{"name":"data","template":{"spec":{"template":{}}}},)"
               R"({"name":"node","dependsOn":[{"name":"data","status":"Complete"}],)"
               R"("template":{"spec":{"template":{}}}}]})",
               "jobset/run together 0: data*1 node*1"},
           Row{"PyTorchJob",
               R"({"pytorchReplicaSpecs":{"Worker":{"replicas":3,"template":{}},)"
               R"("Master":{"template":{}}}})",
               "training/run together 4: master*1 worker*3"},
           Row{"PyTorchJob",
               R"({"elasticPolicy":{"minReplicas":2,"maxReplicas":8},)"
               R"("pytorchReplicaSpecs":{"Worker":{"replicas":6,"template":{}}}})",
               "training/run together 2: worker*6"},
           Row{"PyTorchJob",
               R"({"runPolicy":{"schedulingPolicy":{"minAvailable":3}},)"
               R"("pytorchReplicaSpecs":{"Worker":{"replicas":6,"template":{}}}})",
               "training/run together 3: worker*6"},
           Row{"MPIJob",
               R"({"mpiReplicaSpecs":{"Launcher":{"template":{}},)"
               R"("Worker":{"replicas":4,"template":{}}}})",
               "training/run together 5: launcher*1 worker*4"},
           Row{"MPIJob",
               R"({"launcherCreationPolicy":"WaitForWorkersReady","mpiReplicaSpecs":)"
               R"({"Launcher":{"template":{}},"Worker":{"replicas":4,"template":{}}}})",
               "training/run together 4: launcher*1 worker*4"},
           Row{"RayCluster",
               R"({"headGroupSpec":{"template":{}},"workerGroupSpecs":[)"
               R"({"groupName":"gpu","replicas":2,"numOfHosts":2,"template":{}},)"
               R"({"groupName":"off","replicas":2,"suspend":true,"template":{}}]})",
               "ray/run together 5: head*1 gpu*4"},
           Row{"RayCluster",
               R"({"enableInTreeAutoscaling":true,"headGroupSpec":{"template":{}},)"
               R"("workerGroupSpecs":[{"groupName":"gpu","minReplicas":1,"maxReplicas":9,)"
               R"("replicas":3,"template":{}}]})",
               "ray/run together 2: head*1 gpu*3"},
           Row{"RayJob",
               R"({"rayClusterSpec":{"headGroupSpec":{"template":{}},"workerGroupSpecs":[)"
               R"({"groupName":"gpu","minReplicas":2,"template":{}}]}})",
               "ray/run together 3: head*1 gpu*2"},
           Row{"Job", R"({"parallelism":2})", " together 0: *2?"},
           // What is out of reach is told by name and place.
           Row{"Job", R"({"parallelism":-1})",
               "expected whole number from 0 to 10000, found number -1, in spec.parallelism"},
           Row{"Deployment", R"({"replicas":"3"})",
               "expected whole number from 0 to 10000, found text \"3\", in spec.replicas"},
           Row{"JobSet",
               R"({"replicatedJobs":[{"name":"w","replicas":200,"template":{"spec":)"
               R"({"parallelism":100,"template":{}}}}]})",
               "expected at most 10000 pods, found 20000, in spec"},
           Row{"RayCluster", R"({"workerGroupSpecs":{}})",
               "expected array, found object, in spec.workerGroupSpecs"},
       }) {
    EXPECT_EQ(Text(row.kind, std::string(row.spec)), row.found) << row.kind << " " << row.spec;
  }
}

TEST(Workloads, NamesOfKindsAndGangs) {
  EXPECT_EQ(WorkloadKinds(),
            "Job, Deployment, ReplicaSet, StatefulSet, JobSet, PyTorchJob, MPIJob, RayCluster, "
            "RayJob");
  EXPECT_FALSE(IsWorkload("Pod"));
  EXPECT_EQ(GangOfOwner("Deployment", "web"), "");
  EXPECT_EQ(GangOfOwner("RayCluster", "r"), "ray/r");
  EXPECT_EQ(Text("Job", "{}"), " together 0: *1?");
}

absl::StatusOr<GangSize> PodGroup(const std::string& json, std::string_view group) {
  Parser parser;
  return DecodePodGroup(parser.Parse(json).value(), group);
}

TEST(PodGroups, SayHowManyStartTogether) {
  const std::string json =
      R"({"metadata":{"name":"train","namespace":"team"},"spec":{"minMember":4,"queue":"q"}})";
  EXPECT_EQ(*PodGroup(json, kVolcanoGroup), (GangSize{"team", "volcano/train", 4}));
  EXPECT_EQ(*PodGroup(json, kPluginsGroup), (GangSize{"team", "podgroup/train", 4}));
  EXPECT_EQ(PodGroup(R"({"metadata":{"name":"a","namespace":"b"}})", kVolcanoGroup)->size, 0);
  const auto native = [](const std::string& policy) {
    return *PodGroup(R"({"metadata":{"name":"train","namespace":"team"},"spec":{)" + policy + "}}",
                     kNativeGroup);
  };
  EXPECT_EQ(native(R"("schedulingPolicy":{"gang":{"minCount":8}})"),
            (GangSize{"team", "group/train", 8}));
  EXPECT_EQ(native(R"("schedulingPolicy":{"basic":{}})").size, 1) << "one by one";
  EXPECT_EQ(native("").size, 0);
}

TEST(PodGroups, NameWhatTheyCannotRead) {
  const auto error = [](const std::string& json, std::string_view group) {
    return std::string(PodGroup(json, group).status().message());
  };
  EXPECT_EQ(error("{}", kVolcanoGroup), "expected a name, found none, in metadata.name");
  EXPECT_EQ(error(R"({"metadata":{"name":"a"},"spec":{"minMember":10001}})", kVolcanoGroup),
            "expected whole number from 0 to 10000, found number 10001, in spec.minMember");
  EXPECT_EQ(
      error(R"({"metadata":{"name":"a"},"spec":{"schedulingPolicy":{"gang":{"minCount":-2}}}})",
            kNativeGroup),
      "expected whole number from 0 to 10000, found number -2, in "
      "spec.schedulingPolicy.gang.minCount");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
