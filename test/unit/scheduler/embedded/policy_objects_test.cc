// Policy objects, applied to the embedded cluster.
#include <gtest/gtest.h>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

TEST_F(EmbeddedCluster, HandsOverPolicyObjectsAheadOfWhatCameWithThem) {
  EXPECT_EQ(Applied("kind: Node\nmetadata: {name: n1}\n---\n" + Quota("z") +
                    "kind: Namespace\nmetadata: {name: team-a, labels: {team: a}}\n---\n"
                    "kind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n---\n" +
                    Quota("b")),
            (Lines{"GPUQuota z", "Namespace team-a", "PriorityClass high", "GPUQuota b", "settled",
                   "node n1"}));
  EXPECT_EQ(Applied(Pod("a")), Lines{"pod default/a Pending"}) << "nothing to settle";
  EXPECT_EQ(Deleted(R"({"kind":"GPUQuota","name":"z"})"), (Lines{"GPUQuota gone z", "settled"}));
}

TEST_F(EmbeddedCluster, HandsOverDisruptionBudgetsAndReclaimsWithTheirStatus) {
  EXPECT_EQ(Applied(DisruptionBudget("web", "", R"(,"status":{"disruptionsAllowed":2})")),
            (Lines{"PodDisruptionBudget web", "settled"}));
  EXPECT_EQ(recorder_.policy_objects().ns, "default");
  EXPECT_EQ(Json::parse(recorder_.policy_objects().json), Stored("poddisruptionbudgets", "web"));
  EXPECT_EQ(Stored("poddisruptionbudgets", "web")["status"]["disruptionsAllowed"], 2);
  EXPECT_EQ(Applied(R"({"apiVersion":"tranche.dev/v1alpha1","kind":"GPUReclaim",)"
                    R"("metadata":{"name":"r"},"spec":{"rule":"R1","for":{"kind":"Pod",)"
                    R"("namespace":"team","name":"p"}},"status":{"phase":"Evicting"}})"),
            (Lines{"GPUReclaim r", "settled"}));
  EXPECT_EQ(recorder_.policy_objects().ns, "");
  EXPECT_EQ(Json::parse(recorder_.policy_objects().json), Stored("gpureclaims", "r"));
  EXPECT_EQ(Stored("gpureclaims", "r")["status"]["phase"], "Evicting");
  EXPECT_EQ(Deleted(R"({"kind":"GPUReclaim","name":"r"})"),
            (Lines{"GPUReclaim gone r", "settled"}));
}

TEST_F(EmbeddedCluster, HandsOverResourceQuotas) {
  EXPECT_EQ(Applied("kind: ResourceQuota\napiVersion: v1\nmetadata: {name: gpu, namespace: team}\n"
                    "spec: {hard: {limits.nvidia.com/gpumem: 1000}}\n"),
            (Lines{"ResourceQuota gpu", "settled"}));
  EXPECT_EQ(recorder_.policy_objects().ns, "team");
  EXPECT_EQ(Deleted(R"({"kind":"ResourceQuota","namespace":"team","name":"gpu"})"),
            (Lines{"ResourceQuota gone team/gpu", "settled"}));
}

TEST_F(EmbeddedCluster, HandsOverTheStoredObject) {
  Applied(Quota("team-a", "org"));
  const PolicyObject& object = recorder_.policy_objects();
  EXPECT_EQ(object.kind, "GPUQuota");
  EXPECT_EQ(object.ns, "");
  EXPECT_EQ(object.name, "team-a");
  EXPECT_EQ(object.generation, 1);
  EXPECT_EQ(Json::parse(object.json), Stored("GPUQuota", "team-a"));
  EXPECT_EQ(object.uid, Stored("GPUQuota", "team-a")["metadata"]["uid"]);
}

TEST_F(EmbeddedCluster, CountsGenerationsOfASpecAndKeepsAStatusThatIsNotStated) {
  Applied(Quota("q", "org"));
  EXPECT_EQ(Stored("GPUQuota", "q")["metadata"]["generation"], 1);
  Written([&](auto done) {
    cluster_.Write({"GPUQuota", "", "q", true, R"("status":{"used":"1"})"}, std::move(done));
  });
  Applied(Quota("q", "org"));
  EXPECT_EQ(Stored("GPUQuota", "q")["metadata"]["generation"], 1) << "the same spec";
  Applied(Quota("q", "other"));
  EXPECT_EQ(Stored("GPUQuota", "q")["metadata"]["generation"], 2);
  EXPECT_EQ(recorder_.policy_objects().generation, 2);
  EXPECT_EQ(Stored("GPUQuota", "q")["status"]["used"], "1");
  Deleted(R"({"kind":"GPUQuota","name":"q"})");
  Applied(Quota("q", "org"));
  EXPECT_EQ(Stored("GPUQuota", "q")["metadata"]["generation"], 1) << "another object";
  EXPECT_FALSE(Stored("GPUQuota", "q").contains("status"));
}

TEST_F(EmbeddedCluster, RefusesAnInvalidObjectOfOurKinds) {
  const std::string error = ApplyError(Quota("ok") +
                                       "kind: GPUQuota\napiVersion: tranche.dev/v1alpha1\n"
                                       "metadata: {name: bad}\nspec: {lines: 5}\n");
  EXPECT_NE(error.find("document 2, GPUQuota bad: "), std::string::npos) << error;
  EXPECT_NE(error.find("spec.lines"), std::string::npos) << error;
  EXPECT_FALSE(cluster_.Get("GPUQuota", "", "ok").has_value());
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
