// Gangs in the words of every controller, links a pod asks for, and CPUs the kubelet would pin.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

PodRequest Decode(std::string_view labels, std::string_view annotations,
                  std::string_view spec = R"("containers":[{"name":"main","resources":{"limits":)"
                                          R"({"nvidia.com/gpu":1}}}])") {
  return TryPod(fmt::format(R"({{"metadata":{{"name":"p","uid":"u1","labels":{{{}}},)"
                            R"("annotations":{{{}}}}},"spec":{{{}}}}})",
                            labels, annotations, spec))
      .value()
      .request;
}

std::string GangText(const PodRequest& request) {
  if (request.refusal) return "refused";
  return fmt::format("{} of {} rank {}", request.gang, request.gang_size, request.gang_rank);
}

TEST(PodGang, EveryControllersGroups) {
  struct Row {
    std::string_view labels, annotations, gang;
  };
  for (const Row& row : {
           Row{"", "", " of 0 rank -1"},
           Row{"", R"("tranche.dev/gang":"run","tranche.dev/gang-size":"4")", "run of 4 rank -1"},
           Row{R"("batch.kubernetes.io/job-completion-index":"3")",
               R"("tranche.dev/gang":"run","tranche.dev/gang-size":"4")", "run of 4 rank 3"},
           Row{"", R"("tranche.dev/gang":"run","tranche.dev/gang-rank":"7")", "run of 0 rank 7"},
           Row{R"("kueue.x-k8s.io/pod-group-name":"g","kueue.x-k8s.io/pod-group-pod-index":"2")",
               R"("kueue.x-k8s.io/pod-group-total-count":"8")", "kueue/g of 8 rank 2"},
           Row{"", R"("scheduling.k8s.io/group-name":"pg")", "volcano/pg of 0 rank -1"},
           Row{"",
               R"("scheduling.volcano.sh/group-name":"pg",)"
               R"("scheduling.volcano.sh/group-min-member":"3")",
               "volcano/pg of 3 rank -1"},
           Row{R"("scheduling.x-k8s.io/pod-group":"pg")", "", "podgroup/pg of 0 rank -1"},
           Row{R"("pod-group.scheduling.sigs.k8s.io/name":"pg",)"
               R"("pod-group.scheduling.sigs.k8s.io/min-available":"5")",
               "", "podgroup/pg of 5 rank -1"},
           Row{"",
               R"("gang.scheduling.koordinator.sh/name":"g",)"
               R"("gang.scheduling.koordinator.sh/min-available":"2")",
               "koordinator/g of 2 rank -1"},
           Row{R"("leaderworkerset.sigs.k8s.io/name":"serve",)"
               R"("leaderworkerset.sigs.k8s.io/group-index":"1",)"
               R"("leaderworkerset.sigs.k8s.io/worker-index":"3")",
               R"("leaderworkerset.sigs.k8s.io/size":"4")", "lws/serve-1 of 4 rank 3"},
           Row{R"("jobset.sigs.k8s.io/jobset-name":"js","jobset.sigs.k8s.io/job-global-index":"6")",
               "", "jobset/js of 0 rank 6"},
           Row{R"("jobset.sigs.k8s.io/jobset-name":"js")", R"("tranche.dev/gang-size":"16")",
               "jobset/js of 16 rank -1"},
           Row{R"("training.kubeflow.org/job-name":"t","training.kubeflow.org/replica-index":"0")",
               "", "training/t of 0 rank 0"},
           Row{R"("ray.io/cluster":"r","ray.io/node-type":"worker")", "", "ray/r of 0 rank -1"},
           Row{R"("kueue.x-k8s.io/pod-group-name":"g")",
               R"("tranche.dev/gang":"mine","tranche.dev/gang-size":"2")", "mine of 2 rank -1"},
           // What others wrote and cannot be read was not said; our own words must be right.
           Row{R"("kueue.x-k8s.io/pod-group-name":"g")",
               R"("kueue.x-k8s.io/pod-group-total-count":"many")", "kueue/g of 0 rank -1"},
           Row{R"("kueue.x-k8s.io/pod-group-name":"")", "", " of 0 rank -1"},
           Row{"", R"("tranche.dev/gang":"run","tranche.dev/gang-size":"0")", "refused"},
           Row{"", R"("tranche.dev/gang":"run","tranche.dev/gang-rank":"-1")", "refused"},
       }) {
    EXPECT_EQ(GangText(Decode(row.labels, row.annotations)), row.gang)
        << row.labels << " " << row.annotations;
  }
}

TEST(PodGang, GroupsOfKubeScheduler) {
  const std::string main = R"("containers":[{"name":"main","resources":{"limits":)"
                           R"({"nvidia.com/gpu":1}}}],)";
  const auto text = [&](std::string_view spec, std::string_view annotations = "") {
    return GangText(Decode(R"("jobset.sigs.k8s.io/jobset-name":"js",)"
                           R"("batch.kubernetes.io/job-completion-index":"2")",
                           annotations, main + std::string(spec)));
  };
  EXPECT_EQ(text(R"("schedulingGroup":{"podGroupName":"pg"})"), "group/pg of -1 rank 2");
  EXPECT_EQ(text(R"("schedulingGroup":{})"), "jobset/js of 0 rank 2");
  EXPECT_EQ(text(R"("workloadRef":{"name":"w","podGroup":"g"})"), "workload/w/g of -1 rank 2");
  EXPECT_EQ(text(R"("workloadRef":{"name":"w","podGroup":"g","podGroupReplicaKey":"3"})"),
            "workload/w/g/3 of -1 rank 2");
  EXPECT_EQ(text(R"("schedulingGroup":{"podGroupName":"pg"})", R"("tranche.dev/gang":"mine")"),
            "mine of 0 rank 2");
}

TEST(PodGang, APodWithoutGpusIsCountedToo) {
  const PodRequest launcher = Decode("", R"("tranche.dev/gang":"run","tranche.dev/gang-size":"4")",
                                     R"("containers":[{"name":"main"}])");
  EXPECT_FALSE(launcher.asks_gpu());
  EXPECT_EQ(GangText(launcher), "run of 4 rank -1");
}

TEST(PodGang, OneDomainForAll) {
  EXPECT_EQ(Decode("", R"("tranche.dev/gang-within":"rack")").gang_within, GangLevel::kRack);
  EXPECT_EQ(Decode("", R"("tranche.dev/gang-within":"room")").refusal->detail,
            "expected clique, rack, block or zone, found \"room\", in annotation "
            "tranche.dev/gang-within");
}

TEST(PodLinks, WhatMayBeAskedOfLinks) {
  const PodRequest request =
      Decode("", R"("tranche.dev/topology":"required","tranche.dev/min-link":"nv4",)"
                 R"("tranche.dev/nic":"pxb","tranche.dev/numa":"single")");
  EXPECT_EQ(request.topology, TopologyWish::kRequired);
  EXPECT_EQ(request.link_floor, (LinkFloor{PathClass::kSys, 4}));
  EXPECT_EQ(request.nic_floor, PathClass::kPxb);
  EXPECT_TRUE(request.one_numa_node);
  EXPECT_FALSE(Decode("", "").topology.has_value());
  for (const std::string_view wrong :
       {R"("tranche.dev/topology":"Required")", R"("tranche.dev/min-link":"nv19")",
        R"("tranche.dev/min-link":"fast")", R"("tranche.dev/nic":"sys")",
        R"("tranche.dev/numa":"0")"}) {
    EXPECT_EQ(GangText(Decode("", wrong)), "refused") << wrong;
  }
}

TEST(PodLinks, HamisTopologyAwareChoiceIsAPreference) {
  EXPECT_EQ(Decode("", R"("hami.io/gpu-scheduler-policy":"topology-aware")").topology,
            TopologyWish::kPreferred);
  EXPECT_EQ(Decode("", R"("hami.io/gpu-scheduler-policy":"topology-aware",)"
                       R"("tranche.dev/topology":"required")")
                .topology,
            TopologyWish::kRequired);
}

TEST(PodPinned, WholeCpusOfGuaranteedPodsOnly) {
  struct Row {
    std::string_view limits, requests;
    int64_t pinned;
  };
  for (const Row& row : {
           Row{R"("cpu":"8","memory":"64Gi","nvidia.com/gpu":1)", "", 8'000},
           Row{R"("cpu":8,"memory":"64Gi","nvidia.com/gpu":1)",
               R"("cpu":"8000m","memory":"65536Mi")", 8'000},
           Row{R"("cpu":"1500m","memory":"1Gi","nvidia.com/gpu":1)", "", 0},
           Row{R"("cpu":"8","memory":"64Gi","nvidia.com/gpu":1)", R"("cpu":"4")", 0},
           Row{R"("cpu":"8","nvidia.com/gpu":1)", "", 0},
           Row{R"("nvidia.com/gpu":1)", R"("cpu":"8","memory":"1Gi")", 0},
       }) {
    const std::string spec =
        fmt::format(R"("containers":[{{"name":"main","resources":{{"limits":{{{}}},)"
                    R"("requests":{{{}}}}}}}])",
                    row.limits, row.requests);
    EXPECT_EQ(Decode("", "", spec).containers[0].pinned_cpu.count(), row.pinned) << spec;
  }
  const PodRequest beside =
      Decode("", "",
             R"("containers":[{"name":"main","resources":{"limits":{"cpu":"2","memory":"1Gi",)"
             R"("nvidia.com/gpu":1}}},{"name":"log"}])");
  EXPECT_EQ(beside.containers[0].pinned_cpu, MilliCpu::Zero()) << "one container without limits";
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
