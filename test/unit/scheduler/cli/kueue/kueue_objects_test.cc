// What quotas and pools are in Kueue's words, and what cannot be said in them.
#include "scheduler/cli/kueue/kueue_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "scheduler/cli/kueue/kueue_export.h"

namespace tranche::kueue {
namespace THIS_FILE {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string QuotaText(const std::string& name, const std::string& spec) {
  return "{apiVersion: tranche.dev/v1alpha1, kind: GPUQuota, metadata: {name: " + name +
         "}, spec: {" + spec + "}}\n---\n";
}
std::string PoolText(const std::string& name, const std::string& selector) {
  return "{apiVersion: tranche.dev/v1alpha1, kind: GPUPool, metadata: {name: " + name +
         "}, spec: {nodes: " + selector + "}}\n---\n";
}
std::string NodeText(const std::string& name, const std::string& product) {
  return "{kind: Node, metadata: {name: " + name + ", labels: {nvidia.com/gpu.product: " + product +
         "}}}\n---\n";
}
std::string NamespaceText(const std::string& name, const std::string& team) {
  return "{kind: Namespace, metadata: {name: " + name + ", labels: {team: " + team + "}}}\n---\n";
}
Exported Of(const std::string& text) {
  Declared declared;
  const absl::Status read = Read({"a.yaml", text}, declared);
  EXPECT_TRUE(read.ok()) << read;
  return Export(declared);
}
// The spec of the object of that kind and name; null: there is none.
Json SpecOf(const Exported& exported, const std::string& kind, const std::string& name) {
  for (const Json& object : exported.objects) {
    if (object["kind"] == kind && object["metadata"]["name"] == name) return object["spec"];
  }
  return {};
}
// "h100: 8 borrow 4 lend 2" of each flavor of a ClusterQueue or Cohort.
std::vector<std::string> Lines(const Json& spec) {
  std::vector<std::string> lines;
  if (!spec.contains("resourceGroups")) return lines;
  for (const Json& flavor : spec["resourceGroups"][0]["flavors"]) {
    const Json& resource = flavor["resources"][0];
    std::string line = Text(flavor, "name") + ": " + Text(resource, "nominalQuota");
    if (resource.contains("borrowingLimit")) line += " borrow " + Text(resource, "borrowingLimit");
    if (resource.contains("lendingLimit")) line += " lend " + Text(resource, "lendingLimit");
    lines.push_back(line);
  }
  return lines;
}

TEST(KueueObjectsTest, ATreeOfQuotasIsATreeOfCohortsWithQueuesAtItsLeaves) {
  const Exported exported =
      Of(QuotaText("org", "lines: [{model: h100, nominal: {gpus: 2}, lendLimit: {gpus: 1}}]") +
         QuotaText("lab",
                   "parent: org, weight: 3, lines: [{model: h100, nominal: {gpus: 0}, "
                   "borrowLimit: {gpus: 6}}]") +
         QuotaText("a",
                   "parent: lab, weight: 2, namespaceSelector: {matchLabels: {team: a}}, "
                   "lines: [{model: h100, nominal: {gpus: 8}, borrowLimit: {gpus: 4}, "
                   "lendLimit: {gpus: 2}}]") +
         NodeText("n", "NVIDIA-H100-80GB-HBM3") + NamespaceText("a-1", "a") +
         NamespaceText("a-2", "a") + NamespaceText("b-1", "b"));
  const Json org = SpecOf(exported, "Cohort", "org");
  EXPECT_FALSE(org.contains("parentName"));
  EXPECT_THAT(Lines(org), ElementsAre("h100: 2")) << "a root has nobody to lend to";
  const Json lab = SpecOf(exported, "Cohort", "lab");
  EXPECT_EQ(lab["parentName"], "org");
  EXPECT_EQ(lab["fairSharing"]["weight"], "3");
  EXPECT_THAT(Lines(lab), ElementsAre("h100: 0 borrow 6"));
  const Json queue = SpecOf(exported, "ClusterQueue", "a");
  EXPECT_EQ(queue["cohortName"], "lab");
  EXPECT_EQ(queue["namespaceSelector"], Json::parse(R"({"matchLabels":{"team":"a"}})"));
  EXPECT_THAT(Lines(queue), ElementsAre("h100: 8 borrow 4 lend 2"));
  EXPECT_EQ(SpecOf(exported, "ResourceFlavor", "h100")["nodeLabels"],
            Json::parse(R"({"nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3"})"));
  std::vector<std::string> local;
  for (const Json& object : exported.objects) {
    if (object["kind"] != "LocalQueue") continue;
    EXPECT_EQ(object["spec"]["clusterQueue"], "a");
    local.push_back(Text(object["metadata"], "namespace"));
  }
  EXPECT_THAT(local, ElementsAre("a-1", "a-2"));
  EXPECT_EQ(exported.notes.size(), 1) << "nothing was left out";
  EXPECT_THAT(exported.notes[0], HasSubstr("Set spec.mode to Observe in a, or both refuse"));
}

TEST(KueueObjectsTest, LinesOfPoolsAreFlavorsOfTheirNodes) {
  const Exported exported =
      Of(QuotaText("a",
                   "namespaceSelector: {}, mode: Observe, lines: ["
                   "{model: h100, nominal: {gpus: 1}}, "
                   "{model: any, pool: spot, nominal: {gpus: 2}}, "
                   "{model: h100, pool: eu-west, nominal: {gpus: 3}}]") +
         PoolText("spot", "{matchLabels: {tier: spot}}") +
         PoolText("eu-west", "{matchExpressions: [{key: region, operator: In, values: [eu]}]}") +
         NodeText("n", "NVIDIA-H100-80GB-HBM3") + NamespaceText("x", "x"));
  EXPECT_THAT(Lines(SpecOf(exported, "ClusterQueue", "a")),
              testing::UnorderedElementsAre("h100: 1", "spot: 2", "h100-eu-west: 3"));
  EXPECT_EQ(SpecOf(exported, "ResourceFlavor", "spot")["nodeLabels"],
            Json::parse(R"({"tier":"spot"})"));
  EXPECT_EQ(SpecOf(exported, "ResourceFlavor", "h100-eu-west")["nodeLabels"],
            Json::parse(R"({"region":"eu","nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3"})"));
  EXPECT_THAT(exported.notes,
              ElementsAre(AllOf(HasSubstr("Kueue admits"), Not(HasSubstr("Observe"))),
                          HasSubstr("flavors h100-eu-west and h100 have nodes in common"),
                          HasSubstr("flavors spot and h100 have nodes in common")));
}

TEST(KueueObjectsTest, WhatKueueCannotSayIsNoted) {
  struct Case {
    const char* what;
    std::string text;
    const char* note;
  };
  const std::string leaf = "namespaceSelector: {matchLabels: {team: a}}, lines: ";
  const Case kCases[] = {
      {"parts of a GPU", QuotaText("a", leaf + "[{model: t4, nominal: {gpus: \"7.5\"}}]"),
       "GPUQuota a, line t4, nominal: 500 thousandths of a GPU are left out"},
      {"instances", QuotaText("a", leaf + "[{model: h100, nominal: {slices: {1g.10gb: 7}}}]"),
       "GPUQuota a, line h100, nominal: slices and memory are not exported"},
      {"a limit of all models",
       QuotaText("a", leaf + "[{model: t4, nominal: {gpus: 1}}, {model: any, nominal: {gpus: 2}}]"),
       "GPUQuota a, line any: Kueue has no limit over several flavors"},
      {"no lines", QuotaText("a", leaf + "[]"), "GPUQuota a: without lines Kueue admits nobody"},
      {"nodes of several products",
       QuotaText("a", leaf + "[{model: h100, nominal: {gpus: 1}}]") +
           NodeText("n", "NVIDIA-H100-80GB-HBM3") + NodeText("m", "NVIDIA-H100-PCIe"),
       "flavor h100: its nodes have the labels nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3, "
       "NVIDIA-H100-PCIe"},
      {"no nodes", QuotaText("a", leaf + "[{model: h100, nominal: {gpus: 1}}]"),
       "flavor h100: no Node with a GPU of that model was given"},
      {"a pool that was not given",
       QuotaText("a", leaf + "[{model: any, pool: spot, nominal: {gpus: 1}}]"),
       "flavor spot: GPUPool spot was not given"},
      {"a pool of more than labels",
       QuotaText("a", leaf + "[{model: any, pool: spot, nominal: {gpus: 1}}]") +
           PoolText("spot", "{matchExpressions: [{key: x, operator: Exists}]}"),
       "flavor spot: GPUPool spot demands more than labels of its nodes"},
      {"no namespaces", QuotaText("a", leaf + "[{model: any, nominal: {gpus: 1}}]"),
       "GPUQuota a: no Namespace of it was given; each needs a LocalQueue default"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(Of(c.text).notes, Contains(HasSubstr(c.note))) << c.what;
  }
}

TEST(KueueObjectsTest, ALineOfAllModelsAloneIsAFlavorOfAllNodes) {
  const Exported exported =
      Of(QuotaText("a",
                   "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: lab}}, "
                   "lines: [{model: any, nominal: {gpus: 2}}]"));
  EXPECT_THAT(Lines(SpecOf(exported, "ClusterQueue", "a")), ElementsAre("any-gpu: 2"));
  EXPECT_EQ(SpecOf(exported, "ResourceFlavor", "any-gpu"), Json::object());
  EXPECT_EQ(exported.objects.back()["metadata"]["namespace"], "lab")
      << "the selector names its namespace itself";
}

TEST(KueueObjectsTest, WhatIsWrongIsNamed) {
  struct Case {
    const char* text;
    const char* error;
  };
  const Case kCases[] = {
      {"{kind: GPUQuota, metadata: {name: a}, spec: {lines: [{model: t4, nominal: {gpus: -1}}]}}",
       "a.yaml: GPUQuota \"a\": spec.lines[0].nominal.gpus: expected"},
      {"{kind: GPUPool, metadata: {name: p}, spec: {}}", "a.yaml: GPUPool \"p\": spec.nodes"},
      {"{kind: GPUQuotaList, items: [{kind: GPUQuota, metadata: {name: b}, spec: {weight: x}}]}",
       "a.yaml: GPUQuota \"b\": spec.weight: expected"},
      {"a: [", "a.yaml"},
  };
  for (const Case& c : kCases) {
    Declared declared;
    const absl::Status read = Read({"a.yaml", c.text}, declared);
    EXPECT_FALSE(read.ok()) << c.text;
    EXPECT_THAT(std::string(read.message()), HasSubstr(c.error));
  }
}

TEST(KueueExportTest, AnErrorIsAllThatIsPrinted) {
  const std::string file = testing::TempDir() + "/kueue-quotas.yaml";
  const auto run = [&file](const std::string& text) {
    std::ofstream(file) << text;
    std::ostringstream out, err;
    const int code = ExportKueue({file}, out, err);
    return std::tuple(code, out.str(), err.str());
  };
  const auto [done, yaml, nothing] =
      run(QuotaText("a", "namespaceSelector: {}, lines: [{model: any, nominal: {gpus: 2}}]"));
  EXPECT_EQ(done, 0);
  EXPECT_THAT(yaml,
              AllOf(testing::StartsWith("# Made of GPUQuotas and GPUPools by tranche export "
                                        "kueue.\n# - Kueue admits"),
                    HasSubstr("---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\n")));
  EXPECT_THAT(nothing, IsEmpty());
  const auto [none, printed, error] = run("{kind: Pod, metadata: {name: p}}");
  EXPECT_EQ(none, 1);
  EXPECT_THAT(printed, IsEmpty());
  EXPECT_EQ(error, "tranche: expected a GPUQuota in the files, found none\n");
  std::ostringstream out, err;
  EXPECT_EQ(ExportKueue({file + ".absent"}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("kueue-quotas.yaml.absent"));
}

}  // namespace THIS_FILE
}  // namespace tranche::kueue
