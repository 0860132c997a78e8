// What the planner asks of a GPU pod: demands of nodes, owners, labels, times.
#include <gtest/gtest.h>

#include <limits>

#include "scheduler/wire/pods/pod_times.h"
#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

using Operator = NodeTerm::Operator;

constexpr std::string_view kGpu =
    R"("containers":[{"name":"m","resources":{"limits":{"nvidia.com/gpu":"1"}}}])";

// A pod of one GPU with these members of its metadata and spec.
absl::StatusOr<PodFacts> GpuPod(std::string_view metadata, std::string_view spec = "") {
  return TryPod(fmt::format(R"({{"metadata":{{"name":"p","uid":"u1"{}{}}},"spec":{{{}{}{}}}}})",
                            metadata.empty() ? "" : ",", metadata, kGpu, spec.empty() ? "" : ",",
                            spec));
}

std::string Required(std::string_view terms) {
  return fmt::format(
      R"("affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":)"
      R"({{"nodeSelectorTerms":{}}}}}}})",
      terms);
}

TEST(PodPlanning, ReadsWhatASpecDemandsOfNodes) {
  const PodFacts pod =
      GpuPod("", R"("nodeSelector":{"zone":"a","gone":null,"zone":"b"},)" +
                     Required(R"([{"matchExpressions":[{"key":"gen","operator":"Gt",)"
                              R"("values":["6"]},{"key":"old","operator":"DoesNotExist"}]},)"
                              R"({"matchFields":[{"key":"metadata.name","operator":"In",)"
                              R"("values":["n1"]}]}])") +
                     R"(,"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"},)"
                     R"({"key":"team","value":"a"},{"key":"x","operator":"Equal","value":"y",)"
                     R"("tolerationSeconds":300}])")
          .value();
  NodeConstraints expected;
  expected.selector = {{"zone", "b"}};
  expected.has_affinity = true;
  expected.affinity = {
      {{"gen", false, Operator::kGt, {"6"}}, {"old", false, Operator::kDoesNotExist, {}}},
      {{"metadata.name", true, Operator::kIn, {"n1"}}}};
  expected.tolerations = {
      {"gpu", true, "", "NoSchedule"}, {"team", false, "a", ""}, {"x", false, "y", ""}};
  ASSERT_NE(pod.request.constraints, nullptr);
  EXPECT_EQ(*pod.request.constraints, expected);
}

TEST(PodPlanning, APodThatDemandsNothingHasNoConstraints) {
  for (const std::string_view spec :
       {"", R"("nodeSelector":{},"tolerations":[],"affinity":null)",
        R"("affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]}})",
        R"("affinity":{"podAffinity":{}})"}) {
    const absl::StatusOr<PodFacts> pod = GpuPod("", spec);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->request.constraints, nullptr) << spec;
  }
}

TEST(PodPlanning, WhatOnlyKubeSchedulerWeighsIsKnownToBeThere) {
  const struct {
    std::string_view spec;
    bool elsewhere;
  } rows[] = {
      {"", false},
      {R"("nodeSelector":{"a":"b"},"tolerations":[{"operator":"Exists"}])", false},
      {R"("affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]}})",
       false},
      {R"("affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":)"
       R"([{"weight":1,"preference":{}}]}})",
       true},
      {R"("affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}})",
       true},
      {R"("affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{}]}})",
       true},
      {R"("topologySpreadConstraints":[])", false},
      {R"("topologySpreadConstraints":[{"maxSkew":1}])", true},
      {R"("volumes":[{"name":"shm","emptyDir":{"medium":"Memory"}},)"
       R"({"name":"token","projected":{}},{"name":"data","hostPath":{"path":"/data"}}])",
       false},
      {R"("volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}])", true},
      {R"("volumes":[{"name":"data","csi":{"driver":"d"}}])", true},
      {R"("volumes":[{"name":"data","newKind":{}}])", true},
      {R"("initContainers":[{"name":"i","ports":[{"containerPort":80}]}])", false},
      {R"("initContainers":[{"name":"i","ports":[{"containerPort":80,"hostPort":80}]}])", true},
      {R"("resourceClaims":[{"name":"gpu","resourceClaimName":"c"}])", true}};
  for (const auto& row : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod("", row.spec);
    ASSERT_TRUE(pod.ok()) << row.spec << pod.status();
    EXPECT_EQ(pod->request.judged_elsewhere, row.elsewhere) << row.spec;
  }
}

TEST(PodPlanning, WhatCannotBeUnderstoodMatchesNothing) {
  for (const std::string_view terms :
       {"[]", "null", "[{}]", R"([{"matchExpressions":[]}])",
        R"([{"matchExpressions":[{"key":"a","operator":"Near","values":["b"]}]}])",
        R"([{"matchExpressions":[{"key":"a"}]}])"}) {
    const PodFacts pod = GpuPod("", Required(terms)).value();
    ASSERT_NE(pod.request.constraints, nullptr) << terms;
    EXPECT_TRUE(pod.request.constraints->has_affinity);
    EXPECT_TRUE(pod.request.constraints->affinity.empty()) << terms;
  }
  const PodFacts pod =
      GpuPod("", R"("tolerations":[{"key":"a","operator":"Lt","value":"3"}])").value();
  EXPECT_EQ(pod.request.constraints, nullptr);
}

TEST(PodPlanning, ReadsWhoMakesAPodAnewAndWhetherItMayBeEvicted) {
  const struct {
    std::string_view metadata;
    std::string_view owner;
    bool evictable;
  } rows[] = {
      {"", "", true},
      {R"("ownerReferences":[{"kind":"Job","uid":"j","controller":true}])", "j", true},
      {R"("ownerReferences":[{"kind":"Job","uid":"j"}])", "", true},
      {R"("ownerReferences":[{"kind":"Job","uid":"j","controller":false},)"
       R"({"kind":"PyTorchJob","uid":"t","controller":true}])",
       "t", true},
      {R"("ownerReferences":[{"kind":"DaemonSet","uid":"d","controller":true}])", "d", false},
      {R"("ownerReferences":[{"kind":"Node","uid":"n","controller":true}])", "n", false},
      {R"("annotations":{"kubernetes.io/config.mirror":"8e"})", "", false},
  };
  for (const auto& [metadata, owner, evictable] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(metadata);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->owner, owner) << metadata;
    EXPECT_EQ(pod->evictable, evictable) << metadata;
  }
}

TEST(PodPlanning, ReadsWhatMadeAPodAsPeopleKnowIt) {
  const auto made = [](const char* kind, const char* name, const char* labels) {
    return fmt::format(R"("labels":{{{}}},"ownerReferences":[{{"kind":"{}","name":"{}",)"
                       R"("uid":"u","controller":true}}])",
                       labels, kind, name);
  };
  const std::pair<std::string, const char*> rows[] = {
      {"", ""},
      {R"("ownerReferences":[{"kind":"Job","name":"j","uid":"u"}])", ""},
      {R"("ownerReferences":[{"kind":"Job","uid":"u","controller":true}])", ""},
      {made("Job", "train", ""), "Job/train"},
      {made("ReplicaSet", "web-5d9f", R"("pod-template-hash":"5d9f")"), "Deployment/web"},
      {made("ReplicaSet", "web-5d9f", ""), "ReplicaSet/web-5d9f"},
      {made("ReplicaSet", "web-5d9f", R"("pod-template-hash":"other")"), "ReplicaSet/web-5d9f"},
      {made("ReplicaSet", "-5d9f", R"("pod-template-hash":"5d9f")"), "ReplicaSet/-5d9f"},
      {made("Job", "s-workers-0", R"("jobset.sigs.k8s.io/jobset-name":"s")"), "JobSet/s"},
      {made("StatefulSet", "l-0", R"("leaderworkerset.sigs.k8s.io/name":"l")"),
       "LeaderWorkerSet/l"},
      {made("StatefulSet", "db", R"("jobset.sigs.k8s.io/jobset-name":"s")"), "StatefulSet/db"},
  };
  for (const auto& [metadata, controller] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(metadata);
    ASSERT_TRUE(pod.ok()) << metadata << pod.status();
    EXPECT_EQ(pod->controller, controller) << metadata;
  }
}

// 2026-11-28T06:00:00Z is minute 29930760.
TEST(PodPlanning, AJobThatACronJobMadeIsItsOwnersByTheMinuteItWasDue) {
  const struct {
    const char* what;
    const char* kind;
    const char* name;
    const char* created;
    const char* controller;
  } rows[] = {
      {"at once", "Job", "train-29930760", "2026-11-28T06:00:02Z", "CronJob/train"},
      {"a pod that was tried again", "Job", "train-29930760", "2026-12-05T05:59:00Z",
       "CronJob/train"},
      {"after a week", "Job", "train-29930760", "2026-12-05T06:01:00Z", "Job/train-29930760"},
      {"clocks that differ", "Job", "train-29930760", "2026-11-28T05:00:00Z", "CronJob/train"},
      {"due in two hours", "Job", "train-29930760", "2026-11-28T04:00:00Z", "Job/train-29930760"},
      {"a name with dashes", "Job", "a-b-29930760", "2026-11-28T06:00:02Z", "CronJob/a-b"},
      {"a date", "Job", "train-20261128", "2026-11-28T06:00:02Z", "Job/train-20261128"},
      {"seven digits", "Job", "train-2993076", "2026-11-28T06:00:02Z", "Job/train-2993076"},
      {"nine digits", "Job", "train-129930760", "2026-11-28T06:00:02Z", "Job/train-129930760"},
      {"no dash", "Job", "train29930760", "2026-11-28T06:00:02Z", "Job/train29930760"},
      {"a sign", "Job", "train--2993076", "2026-11-28T06:00:02Z", "Job/train--2993076"},
      {"no name before it", "Job", "-29930760", "2026-11-28T06:00:02Z", "Job/-29930760"},
      {"no Job", "StatefulSet", "train-29930760", "2026-11-28T06:00:02Z",
       "StatefulSet/train-29930760"},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(
        fmt::format(R"("creationTimestamp":"{}","ownerReferences":[{{"kind":"{}","name":"{}",)"
                    R"("uid":"u","controller":true}}])",
                    row.created, row.kind, row.name));
    ASSERT_TRUE(pod.ok()) << row.what << pod.status();
    EXPECT_EQ(pod->controller, row.controller) << row.what;
  }
  const absl::StatusOr<PodFacts> of_jobset = GpuPod(
      R"("creationTimestamp":"2026-11-28T06:00:02Z",)"
      R"("labels":{"jobset.sigs.k8s.io/jobset-name":"s"},)"
      R"("ownerReferences":[{"kind":"Job","name":"s-29930760","uid":"u","controller":true}])");
  EXPECT_EQ(of_jobset.value().controller, "JobSet/s") << "a label says it";
}

TEST(PodPlanning, ReadsWhomAutoscalersAreToLeaveAlone) {
  const std::pair<const char*, bool> rows[] = {
      {"", false},
      {R"("annotations":{"karpenter.sh/do-not-disrupt":"true"})", true},
      {R"("annotations":{"karpenter.sh/do-not-disrupt":"4h"})", true},
      {R"("annotations":{"karpenter.sh/do-not-disrupt":"false"})", false},
      {R"("annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"false"})", true},
      {R"("annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"})", false}};
  for (const auto& [metadata, left_alone] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(metadata);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->left_alone, left_alone) << metadata;
  }
}

TEST(PodPlanning, ReadsWhoseDeletionCostItIs) {
  using By = DeletionCostMark::By;
  const auto annotated = [](std::string_view cost, std::string_view ours) {
    return fmt::format(R"("annotations":{{"controller.kubernetes.io/pod-deletion-cost":{},)"
                       R"("tranche.dev/deletion-cost":{}}})",
                       cost, ours);
  };
  const std::pair<std::string, DeletionCostMark> rows[] = {
      {"", {}},
      {annotated(R"("-210")", R"("-210")"), {By::kUs, -210}},
      {annotated(R"("0")", R"("0")"), {By::kUs, 0}},
      {annotated("null", R"("-210")"), {}},
      {annotated(R"("-210")", "null"), {By::kOthers, 0}},
      {annotated(R"("-210")", R"("-200")"), {By::kOthers, 0}},
      // What Kubernetes does not read we never wrote.
      {annotated(R"("-0210")", R"("-0210")"), {By::kOthers, 0}},
      {annotated(R"("+5")", R"("+5")"), {By::kOthers, 0}},
      {annotated(R"("2147483648")", R"("2147483648")"), {By::kOthers, 0}},
      {annotated(R"("5 ")", R"("5 ")"), {By::kOthers, 0}},
      {annotated(R"("")", R"("")"), {By::kOthers, 0}}};
  for (const auto& [metadata, mark] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(metadata);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(static_cast<int>(pod->deletion_cost.by), static_cast<int>(mark.by)) << metadata;
    EXPECT_TRUE(mark.by != By::kUs || pod->deletion_cost.cost == mark.cost) << metadata;
  }
}

TEST(PodPlanning, ReadsWhetherAReplicaSetMadeThePod) {
  const auto owned = [](std::string_view version, std::string_view kind, bool controls) {
    return fmt::format(R"("ownerReferences":[{{"apiVersion":"{}","kind":"{}","name":"o",)"
                       R"("uid":"u-o","controller":{}}}])",
                       version, kind, controls);
  };
  const std::pair<std::string, bool> rows[] = {
      {"", false},
      {owned("apps/v1", "ReplicaSet", true), true},
      {owned("apps/v1", "ReplicaSet", false), false},
      {owned("apps/v1", "StatefulSet", true), false},
      {owned("example.com/v1", "ReplicaSet", true), false}};
  for (const auto& [metadata, of_replica_set] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(metadata);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->of_replica_set, of_replica_set) << metadata;
  }
}

TEST(PodPlanning, ReadsHowLongAPodMayTakeToLeave) {
  const struct {
    std::string_view spec;
    int64_t seconds;
  } rows[] = {{"", 30},
              {R"("terminationGracePeriodSeconds":0)", 0},
              {R"("terminationGracePeriodSeconds":600)", 600},
              {R"("terminationGracePeriodSeconds":"soon")", 30},
              {R"("terminationGracePeriodSeconds":-5)", 0},
              {R"("terminationGracePeriodSeconds":9223372036854775807)", 365 * 24 * 3600}};
  for (const auto& [spec, seconds] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod("", spec);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->grace, std::chrono::seconds(seconds)) << spec;
  }
}

TEST(PodPlanning, ReadsLabels) {
  EXPECT_EQ(GpuPod("")->labels, nullptr);
  EXPECT_EQ(GpuPod(R"("labels":{})")->labels, nullptr);
  const PodFacts pod = GpuPod(R"("labels":{"app":"x","tier":null,"team":""})").value();
  ASSERT_NE(pod.labels, nullptr);
  EXPECT_EQ(*pod.labels, (Labels{{"app", "x"}, {"team", ""}}));
}

TEST(PodPlanning, ReadsTheLastCheckpointAndForgivesWhatIsNoTime) {
  const struct {
    std::string_view text;
    std::string_view expected;  // empty: none
  } rows[] = {
      {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
      {"2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05.678Z"},
      {"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"},
      {"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
      {"yesterday", ""},
      {"", ""},
      {"2026-01-02", ""},
      {"1767323045", ""},
      {"2026-13-02T03:04:05Z", ""},
  };
  for (const auto& [text, expected] : rows) {
    const absl::StatusOr<PodFacts> pod =
        GpuPod(fmt::format(R"("annotations":{{"tranche.dev/checkpointed-at":"{}"}})", text));
    ASSERT_TRUE(pod.ok()) << text;
    EXPECT_EQ(RequestText(pod->request), "m: 1 gpu");
    EXPECT_EQ(pod->checkpointed_at ? FormatTime(*pod->checkpointed_at) : "", expected) << text;
  }
}

TEST(PodPlanning, KnowsWhichPodsKubeSchedulerGaveUpOn) {
  const auto unschedulable = [](std::string_view conditions) {
    return TryPod(fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{{}}},)"
                              R"("status":{{"conditions":{}}}}})",
                              kGpu, conditions))
        ->unschedulable;
  };
  EXPECT_TRUE(
      unschedulable(R"([{"type":"tranche.dev/Waiting","status":"True"},)"
                    R"({"type":"PodScheduled","status":"False","reason":"Unschedulable"}])"));
  EXPECT_FALSE(unschedulable(R"([{"type":"PodScheduled","status":"False",)"
                             R"("reason":"SchedulingGated"}])"));
  EXPECT_FALSE(unschedulable(R"([{"type":"PodScheduled","status":"True"}])"));
  EXPECT_FALSE(unschedulable(R"([{"type":"Ready","status":"False","reason":"Unschedulable"}])"));
  EXPECT_FALSE(unschedulable("null"));
}

TEST(PodPlanning, KeepsTheBeginningOfWhatKubeSchedulerSays) {
  const auto says = [](std::string_view message) {
    return TryPod(
               fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{{}}},"status":{{"conditions":)"
                           R"([{{"type":"PodScheduled","status":"False",)"
                           R"("reason":"Unschedulable","message":"{}"}}]}}}})",
                           kGpu, message))
        ->scheduler_says;
  };
  EXPECT_EQ(says("0/3 nodes are available"), "0/3 nodes are available");
  EXPECT_EQ(says(std::string(1'000'000, 'x')), std::string(kLongestSaying, 'x'));
  EXPECT_EQ(says(std::string(kLongestSaying - 1, 'x') + "\u00e4"),
            std::string(kLongestSaying - 1, 'x'))
      << "no character is cut in two";
}

TEST(PodPlanning, ReadsPriorityAndGangSize) {
  EXPECT_EQ(GpuPod("")->request.priority, 0);
  EXPECT_EQ(GpuPod("", R"("priority":-5)")->request.priority, -5);
  EXPECT_EQ(GpuPod("", R"("priority":2147483647)")->request.priority,
            std::numeric_limits<int32_t>::max());
  EXPECT_FALSE(GpuPod("", R"("priority":2147483648)").ok());
  const auto sized = [](std::string_view size) {
    return GpuPod(fmt::format(
                      R"("annotations":{{"tranche.dev/gang":"g","tranche.dev/gang-size":"{}"}})",
                      size))
        ->request;
  };
  EXPECT_EQ(GpuPod("")->request.gang_size, 0);
  EXPECT_EQ(sized("1").gang_size, 1);
  EXPECT_EQ(sized("10000").gang_size, 10'000);
  for (const std::string_view size :
       {"", "0", "-1", "10001", "4.0", "four", " 4", "+4", "99999999999999999999"}) {
    const PodRequest request = sized(size);
    ASSERT_EQ(RequestText(request), "refused BadAmount") << size;
    EXPECT_EQ(request.refusal->detail,
              fmt::format("expected whole number of pods from 1 to 10000, found \"{}\", in "
                          "annotation tranche.dev/gang-size",
                          size));
    EXPECT_EQ(request.gang_size, 0);
  }
}

TEST(PodPlanning, RefusesGangNamesNoObjectCouldHold) {
  const auto named = [](std::size_t bytes) {
    return GpuPod(
               fmt::format(R"("annotations":{{"tranche.dev/gang":"{}"}})", std::string(bytes, 'g')))
        ->request;
  };
  EXPECT_EQ(named(253).gang, std::string(253, 'g'));
  EXPECT_EQ(RequestText(named(254)), "refused BadAmount");
}

TEST(PodPlanning, AVerbsQuestionIsReadWithoutHowThePodMayBeTakenAway) {
  Parser parser;
  const Element document =
      parser
          .Parse(fmt::format(R"({{"metadata":{{"name":"p","labels":{{"a":"b"}},)"
                             R"("ownerReferences":[{{"uid":"j","controller":true}}]}},)"
                             R"("spec":{{{},"nodeSelector":{{"zone":"a"}}}}}})",
                             kGpu))
          .value();
  const PodFacts all = DecodePod(document).value();
  EXPECT_EQ(all.owner, "j");
  EXPECT_NE(all.labels, nullptr);
  const PodFacts request = DecodePod(document, PodDetail::kRequest).value();
  EXPECT_EQ(request.owner, "");
  EXPECT_EQ(request.labels, nullptr);
  ASSERT_NE(request.request.constraints, nullptr);
  EXPECT_EQ(*request.request.constraints, *all.request.constraints);
}

TEST(PodPlanning, APodWithoutGpusIsNotLookedAt) {
  const absl::StatusOr<PodFacts> pod =
      TryPod(R"({"metadata":{"name":"p","labels":{"a":"b"},"annotations":{)"
             R"("tranche.dev/gang-size":"x","kubernetes.io/config.mirror":"m"},)"
             R"("ownerReferences":[{"kind":"Node","uid":"n","controller":true}]},)"
             R"("spec":{"nodeSelector":{"zone":"a"},"tolerations":[{"operator":"Exists"}]},)"
             R"("status":{"conditions":[{"type":"PodScheduled","status":"False",)"
             R"("reason":"Unschedulable"}]}})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->request.constraints, nullptr);
  EXPECT_EQ(pod->labels, nullptr);
  EXPECT_EQ(pod->owner, "");
  EXPECT_TRUE(pod->evictable);
  EXPECT_FALSE(pod->unschedulable);
}

TEST(PodPlanning, RefusesFieldsOfAnotherJsonType) {
  const struct {
    std::string_view metadata, spec, message;
  } rows[] = {
      {"", R"("nodeSelector":[])", "expected object, found array, in spec.nodeSelector"},
      {"", R"("nodeSelector":{"a":1})", "expected text, found number 1, in spec.nodeSelector"},
      {"", R"("priority":"high")",
       "expected whole number from -2147483648 to 2147483647, found text \"high\", in "
       "spec.priority"},
      {"", R"("tolerations":{})", "expected array, found object, in spec.tolerations"},
      {"", R"("tolerations":[7])", "expected object, found number 7, in spec.tolerations"},
      {"", R"("affinity":{"nodeAffinity":7})",
       "expected object, found number 7, in spec.affinity.nodeAffinity"},
      {R"("labels":{"a":[]})", "", "expected text, found array, in metadata.labels"},
      {R"("ownerReferences":{})", "", "expected array, found object, in metadata.ownerReferences"},
      {R"("ownerReferences":[{"controller":"yes"}])", "",
       "expected true or false, found text \"yes\", in metadata.ownerReferences.controller"},
  };
  for (const auto& [metadata, spec, message] : rows) {
    const absl::StatusOr<PodFacts> pod = GpuPod(metadata, spec);
    ASSERT_FALSE(pod.ok()) << metadata << spec;
    EXPECT_EQ(pod.status().message(), std::string(message));
  }
  EXPECT_FALSE(GpuPod("", Required(R"([{"matchExpressions":[{"key":"a","operator":"In",)"
                                   R"("values":[1]}]}])"))
                   .ok());
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
