#include "scheduler/cli/cli_validate.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

class CliValidateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  int Run(const std::vector<std::string>& files, bool json = false) {
    out_.str("");
    err_.str("");
    return ValidateFiles(files, json, out_, err_);
  }
  // What was printed, with the folder left out.
  std::string Out() {
    std::string text = out_.str();
    const std::string prefix = folder_.string() + "/";
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }
  bool Says(std::string_view text) { return Out().find(text) != std::string::npos; }

  std::filesystem::path folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

constexpr std::string_view kTeam = R"(
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: team-a}
spec: {parent: research, lines: [{model: h200, nominal: {gpus: 8}}]}
)";
constexpr std::string_view kResearch = R"(
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: research}
spec: {}
)";

TEST_F(CliValidateTest, GoodObjectsAreValid) {
  const std::string file = Write("a.yaml", std::string(kTeam) + "---" + std::string(kResearch) +
                                               "---\nkind: Pod\napiVersion: v1\n---\n");
  EXPECT_EQ(Run({file}), 0);
  EXPECT_TRUE(Says("OBJECT             VERDICT\n")) << Out();
  EXPECT_TRUE(Says("GPUQuota/team-a    valid\n")) << Out();
  EXPECT_TRUE(Says("GPUQuota/research  valid\n")) << Out();
  EXPECT_TRUE(Says("\n1 objects of other kinds were not checked\n")) << Out();
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CliValidateTest, AParentOutsideTheFilesIsANote) {
  EXPECT_EQ(Run({Write("a.yaml", kTeam)}), 0);
  EXPECT_TRUE(
      Says("\na.yaml: GPUQuota/team-a: note: refers to GPUQuota research, which is not "
           "among the files\n"))
      << Out();
  EXPECT_EQ(Run({Write("a.yaml", kTeam), Write("b.yaml", kResearch)}), 0);
  EXPECT_FALSE(Says("note")) << Out();
}

TEST_F(CliValidateTest, EveryMistakeIsNamed) {
  const std::string file = Write("a.yaml", R"(
apiVersion: tranche.dev/v1alpha1
kind: GPUQuota
metadata: {name: team-a}
spec: {weight: -1, lines: [{model: h200, nominl: {gpus: "8,5"}}]}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUBudget
metadata: {name: monthly}
spec: {quotaRef: team-a, gpuHours: 5}
)");
  EXPECT_EQ(Run({file}), 1);
  EXPECT_TRUE(Says("GPUQuota/team-a    invalid\n")) << Out();
  EXPECT_TRUE(Says("GPUBudget/monthly  valid\n")) << "the quota's mistakes are its own: " << Out();
  EXPECT_TRUE(Says("a.yaml: GPUQuota/team-a: spec.lines[0].nominal: expected one of ")) << Out();
  EXPECT_TRUE(Says("spec.lines[0].nominl: expected one of ")) << Out();
  EXPECT_TRUE(Says("spec.weight: expected 0..1000000, found -1\n")) << Out();
  EXPECT_FALSE(Says("note")) << Out();
}

TEST_F(CliValidateTest, ObjectsAreCheckedTogether) {
  const std::string file = Write("a.json", R"({"kind":"List","apiVersion":"v1","items":[
    {"apiVersion":"tranche.dev/v1alpha1","kind":"GPUQuota","metadata":{"name":"a"},
     "spec":{"parent":"b"}},
    {"apiVersion":"tranche.dev/v1alpha1","kind":"GPUQuota","metadata":{"name":"b"},
     "spec":{"parent":"a"}},
    {"apiVersion":"tranche.dev/v1alpha1","kind":"GPUQuota","metadata":{"name":"c"},
     "spec":{"namespaceSelector":{}}},
    {"apiVersion":"tranche.dev/v1alpha1","kind":"GPUQuota","metadata":{"name":"d"},
     "spec":{"namespaceSelector":{"matchLabels":{"team":"d"}}}},
    {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"team":"d"}}}]})");
  EXPECT_EQ(Run({file}), 1);
  EXPECT_TRUE(Says("GPUQuota/a: spec.parent: expected a quota that is not below this one"))
      << Out();
  EXPECT_TRUE(Says("GPUQuota/c  valid\n")) << Out();
  EXPECT_TRUE(Says("GPUQuota/c: note: spec.namespaceSelector: other quotas match these, too: n\n"))
      << Out();
}

TEST_F(CliValidateTest, WhatIsWellWrittenAndWithoutEffectIsANote) {
  const std::string file = Write("a.yaml", R"(
apiVersion: tranche.dev/v1alpha1
kind: GPUPrice
metadata: {name: a}
spec: {pool: nowhere, currency: EUR, perGpuHour: "2.10"}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUClass
metadata: {name: b}
spec: {priorityClassNames: [x]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: y}
)");
  EXPECT_EQ(Run({file}), 0);
  EXPECT_TRUE(Says("GPUPrice/a: note: spec.pool: expected the name of a GPUPool")) << Out();
  EXPECT_TRUE(Says("GPUClass/b: note: spec.priorityClassNames: expected names of PriorityClasses"))
      << Out();
}

TEST_F(CliValidateTest, APriorityClassOfTwoClassesIsAMistake) {
  const std::string file = Write("a.yaml", R"(
apiVersion: tranche.dev/v1alpha1
kind: GPUClass
metadata: {name: a}
spec: {priorityClassNames: [x]}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUClass
metadata: {name: b}
spec: {priorityClassNames: [x]}
)");
  EXPECT_EQ(Run({file}), 1);
  EXPECT_TRUE(Says("GPUClass/a  valid\n")) << Out();
  EXPECT_TRUE(Says("GPUClass/b: spec.priorityClassNames: expected names no other GPUClass has"))
      << Out();
}

TEST_F(CliValidateTest, ItemsOfATypedListNeedNoType) {
  const std::string file = Write("a.json", R"({"kind":"GPUClassList",
    "apiVersion":"tranche.dev/v1alpha1","items":[{"metadata":{"name":"a"},"spec":{"rank":-1}}]})");
  EXPECT_EQ(Run({file}), 1);
  EXPECT_TRUE(Says("GPUClass/a: spec.rank: expected 0..1000, found -1\n")) << Out();
}

TEST_F(CliValidateTest, TypeAndNameMustBeThere) {
  const std::string file = Write("a.yaml", R"(
apiVersion: tranche.dev/v1alpha1
kind: GPUQuoata
metadata: {name: a}
---
kind: GPUQuota
metadata: {name: b}
spec: {}
---
apiVersion: tranche.dev/v1
kind: GPUQuota
metadata: {name: c}
spec: {}
---
apiVersion: tranche.dev/v1alpha1
kind: GPUPolicy
spec: {}
---
metadata: {name: e}
---
just text
)");
  EXPECT_EQ(Run({file}), 1);
  EXPECT_TRUE(Says("GPUQuoata/a: kind: expected one of GPUBudget, GPUClass, ")) << Out();
  EXPECT_TRUE(Says("GPUQuota/b: apiVersion: expected \"tranche.dev/v1alpha1\", found nothing\n"))
      << Out();
  EXPECT_TRUE(Says("GPUQuota/c: apiVersion: expected \"tranche.dev/v1alpha1\", found ")) << Out();
  EXPECT_TRUE(Says("GPUPolicy/-: metadata.name: expected a name")) << Out();
  EXPECT_TRUE(Says("-/e: kind: expected one of ")) << Out();
  EXPECT_TRUE(Says("-/-: expected a Kubernetes object, found another value\n")) << Out();
}

TEST_F(CliValidateTest, AnObjectGivenTwiceIsNoted) {
  const std::string first = Write("a.yaml", kResearch);
  EXPECT_EQ(Run({first, Write("b.yaml", kResearch)}), 0);
  EXPECT_TRUE(
      Says("a.yaml: GPUQuota/research: note: stands in b.yaml again, and the last one "
           "counts\n"))
      << Out();
}

TEST_F(CliValidateTest, AFileThatCannotBeReadIsAnErrorOfItsOwn) {
  const std::string broken = Write("broken.yaml", "a: [1\n");
  const std::string good = Write("good.yaml", kResearch);
  const std::string absent = (folder_ / "absent.yaml").string();
  EXPECT_EQ(Run({absent, good, broken}), 2);
  EXPECT_TRUE(Says("GPUQuota/research  valid\n")) << Out();
  EXPECT_NE(err_.str().find("tranche: "), std::string::npos);
  EXPECT_NE(err_.str().find("absent.yaml"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("broken.yaml: "), std::string::npos) << err_.str();
}

TEST_F(CliValidateTest, JsonSaysTheSame) {
  EXPECT_EQ(Run({Write("a.yaml", kTeam)}, true), 0);
  const auto root = nlohmann::json::parse(out_.str());
  ASSERT_EQ(root.at("objects").size(), 1U);
  const auto& object = root.at("objects")[0];
  EXPECT_EQ(object.at("kind"), "GPUQuota");
  EXPECT_EQ(object.at("name"), "team-a");
  EXPECT_EQ(object.at("valid"), true);
  EXPECT_TRUE(object.at("errors").empty());
  EXPECT_EQ(object.at("notes").size(), 1U);
  EXPECT_EQ(root.at("others"), 0);
}

TEST_F(CliValidateTest, NothingPrintedSteersATerminal) {
  const std::string file = Write("a.json", R"({"apiVersion":"tranche.dev/v1alpha1",
    "kind":"GPUClass","metadata":{"name":"a\u001b[2J"},"spec":{"b\u001b[2J":"\u001b[2J"}})");
  EXPECT_EQ(Run({file}), 1);
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos) << Out();
}

}  // namespace THIS_FILE
}  // namespace tranche
