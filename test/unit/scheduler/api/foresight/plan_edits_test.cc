// Edits as a body says them, and what is refused.
#include "scheduler/api/foresight/plan_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

using testing::HasSubstr;

constexpr const char* kTeam = R"({"apiVersion":"tranche.dev/v1alpha1","kind":"GPUQuota",)"
                              R"("metadata":{"name":"team-a"},"spec":{"namespaceSelector":)"
                              R"({"matchLabels":{"team":"a"}}}})";

PlanGround Ground() {
  PlanGround ground{PolicyStore(GpuPolicy()), GpuPolicy(), {}};
  ground.store.Upsert("GPUQuota", "team-a", kTeam);
  ground.store.Commit();
  ground.objects = {{"GPUQuota", "team-a"}};
  return ground;
}

TEST(PlanEditsTest, ObjectsListsAndDeletions) {
  const std::string node = R"({"kind":"Node","metadata":{"name":"n1"}})";
  const struct {
    std::string body;
    bool set;
    std::size_t nodes, gone;
  } rows[] = {
      {R"({"objects":[]})", false, 0, 0},
      {R"({"objects":[)" + std::string(kTeam) + "]}", true, 0, 0},
      {R"({"kind":"List","items":[)" + std::string(kTeam) + "," + node + "]}", true, 1, 0},
      {kTeam, true, 0, 0},
      {node, false, 1, 0},
      {R"({"objects":[)" + node + "," + node + "]}", false, 1, 0},
      {R"({"objects":[{"kind":"List","items":[)" + node + "]}]}", false, 1, 0},
      {R"({"delete":[{"kind":"Node","name":"n1"}]})", false, 0, 1},
      {R"({"delete":[{"kind":"GPUQuota","name":"team-a"}]})", true, 0, 0},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<PlanEdits> edits = ReadPlanEdits(row.body, 10, Ground());
    ASSERT_TRUE(edits.ok()) << row.body << ": " << edits.status();
    EXPECT_EQ(edits->set != nullptr, row.set) << row.body;
    EXPECT_EQ(edits->nodes.size(), row.nodes) << row.body;
    EXPECT_EQ(edits->gone.size(), row.gone) << row.body;
  }
}

TEST(PlanEditsTest, ADeletedQuotaIsNotInTheSet) {
  const absl::StatusOr<PlanEdits> edits =
      ReadPlanEdits(R"({"delete":[{"kind":"GPUQuota","name":"team-a"}]})", 10, Ground());
  ASSERT_TRUE(edits.ok());
  EXPECT_EQ(edits->set->QuotaNamed("team-a"), nullptr);
}

TEST(PlanEditsTest, WhatIsWrongIsNamedWithItsPlace) {
  const struct {
    const char* body;
    const char* error;
  } rows[] = {
      {"[]", "body: expected an object"},
      {"{}", "objects, delete, a List or an object"},
      {"{", "JSON"},
      {R"({"objects":{}})", "objects: expected a list"},
      {R"({"objects":[7]})", "objects[0]: expected an object"},
      {R"({"objects":[{"kind":"Pod","metadata":{"name":"p"}}]})",
       "objects[0].kind: expected GPUQuota"},
      {R"({"objects":[{"kind":"GPUQuota"}]})", "objects[0]: expected metadata.name"},
      {R"({"objects":[{"kind":"Node","metadata":{"name":"n","labels":7}}]})", "objects[0]"},
      {R"({"objects":[{"kind":"GPUQuota","metadata":{"name":"b"},"spec":{"parent":"none"}}]})",
       "GPUQuota b would not be in force: UnknownParent"},
      {R"({"delete":[{"kind":"GPUQuota","name":"gone"}]})", "expected a GPUQuota that is there"},
      {R"({"delete":[{"kind":"Pod","name":"p"}]})", "delete[0].kind: expected GPUQuota"},
      {R"({"delete":[{"kind":"Node"}]})", "delete[0]: expected kind and name"},
      {R"({"delete":[{"kind":"Node","name":"a"},{"kind":"Node","name":"b"},)"
       R"({"kind":"Node","name":"c"}]})",
       "delete[2]: expected at most 2 edits"},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<PlanEdits> edits = ReadPlanEdits(row.body, 2, Ground());
    ASSERT_FALSE(edits.ok()) << row.body;
    EXPECT_EQ(edits.status().code(), absl::StatusCode::kInvalidArgument) << row.body;
    EXPECT_THAT(std::string(edits.status().message()), HasSubstr(row.error)) << row.body;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
