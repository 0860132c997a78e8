// HiveD's annotation. Source: request-dialects section 13.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kEnable = R"("hivedscheduler.microsoft.com/pod-scheduling-enable":1)";

PodRequest RequestOfSpec(std::string_view yaml) {
  std::string annotation = R"("hivedscheduler.microsoft.com/pod-scheduling-spec":)";
  AppendQuoted(annotation, yaml);
  return RequestOf(annotation, Containers({R"("cpu":1)", kEnable}));
}

TEST(PodHived, ReadsWholeGpusTypeAndGroup) {
  const PodRequest request = RequestOfSpec(R"(# as OpenPAI writes it
virtualCluster: default
priority: -1
pinnedCellId: null
leafCellType: "K80"   # any case
leafCellNumber: 2
gangReleaseEnable: false
lazyPreemptionEnable: true
ignoreK8sSuggestedNodes: true
affinityGroup:
  name: 'team~job'
  members:
  - podNumber: 3
    leafCellNumber: 2

  - leafCellNumber: 8
    podNumber: 1
)");
  EXPECT_EQ(FullText(request), "b: 2 gpu");
  EXPECT_EQ(request.style, RequestStyle::kHived);
  EXPECT_EQ(request.models_any, (std::vector<std::string>{"k80"}));
  EXPECT_EQ(request.gang, "hived/team~job");
  EXPECT_EQ(request.gang_size, 4);
  EXPECT_EQ(request.containers.at(1).plugin_count, 0);
  EXPECT_EQ(PoolText(request), "");
}

TEST(PodHived, ReadsOtherWaysToWriteTheSame) {
  for (const std::string_view yaml : {
           "leafCellNumber: 1\naffinityGroup:\n    members:\n      - leafCellNumber: 1\n"
           "        podNumber: 2\n    name: g\n",
           "  affinityGroup:\r\n    name: g\r\n    members:\r\n    -   podNumber: '2'\r\n"
           "        leafCellNumber: 1\r\n  leafCellNumber: 1",
       }) {
    const PodRequest request = RequestOfSpec(yaml);
    EXPECT_EQ(FullText(request), "b: 1 gpu") << yaml;
    EXPECT_EQ(request.gang, "hived/g") << yaml;
    EXPECT_EQ(request.gang_size, 2) << yaml;
  }
  for (const std::string_view group :
       {"", "affinityGroup: null", "affinityGroup: ~", "affinityGroup:"}) {
    const PodRequest request = RequestOfSpec(fmt::format("leafCellNumber: 1\n{}", group));
    EXPECT_EQ(FullText(request), "b: 1 gpu") << group;
    EXPECT_EQ(request.gang, "") << group;
  }
}

TEST(PodHived, RefusesEverythingElseWithTheLine) {
  constexpr std::string_view kYaml = "a YAML line such as \"leafCellNumber: 1\"";
  constexpr std::string_view kMap = "lines of one map at one indentation";
  constexpr std::string_view kField = "a field of HiveD's pod scheduling spec with its value";
  constexpr std::string_view kNumber = "whole number above 0";
  constexpr std::string_view kMember = "podNumber and leafCellNumber of a member";
  struct Row {
    std::string_view yaml;
    std::string_view expected;
    std::string_view line;
  };
  for (const Row& row : {
           Row{"", "leafCellNumber", ""},
           Row{"priority: 1", "leafCellNumber", "priority: 1"},
           Row{"leafCellNumber: 0", kNumber, "leafCellNumber: 0"},
           Row{"leafCellNumber: 1.5", kNumber, "leafCellNumber: 1.5"},
           Row{"leafCellNumber: one", kNumber, "leafCellNumber: one"},
           Row{"leafCellNumber:", kNumber, "leafCellNumber:"},
           Row{"leafCellNumber: 1\nleafCellNumber: 2", "every key once", "leafCellNumber: 2"},
           Row{"leafCellNumber: 1\n  priority: 1", kMap, "priority: 1"},
           Row{"leafCellNumber: 1\nspeed: 3", kField, "speed: 3"},
           Row{"priority:\n", kField, "priority:"},
           Row{"{leafCellNumber: 1}", kYaml, "{leafCellNumber: 1}"},
           Row{"leafCellNumber: &a 1", kYaml, "leafCellNumber: &a 1"},
           Row{"leafCellNumber: *a", kYaml, "leafCellNumber: *a"},
           Row{"leafCellNumber: !!int 1", kYaml, "leafCellNumber: !!int 1"},
           Row{"leafCellType: |", kYaml, "leafCellType: |"},
           Row{"leafCellType: a: b", kYaml, "leafCellType: a: b"},
           Row{"leafCellType: \"a", kYaml, "leafCellType: \"a"},
           Row{"leafCellType: 'a''b'", kYaml, "leafCellType: 'a''b'"},
           Row{"leafCellNumber:1", kYaml, "leafCellNumber:1"},
           Row{"---\nleafCellNumber: 1", kYaml, "---"},
           Row{"\tleafCellNumber: 1", kYaml, "leafCellNumber: 1"},
           Row{"? a", kYaml, "? a"},
           Row{"- leafCellNumber: 1", kMap, "- leafCellNumber: 1"},
           Row{"affinityGroup: x", "a map under affinityGroup", "affinityGroup: x"},
           Row{"affinityGroup:\n  nom: x", "name or members of affinityGroup", "nom: x"},
           Row{"affinityGroup:\n  name: x\n   members:", kMap, "members:"},
           Row{"affinityGroup:\n  members:\n  - podNumber: 1", kMember, "- podNumber: 1"},
           Row{"affinityGroup:\n  members:\n  - size: 1", kMember, "- size: 1"},
           Row{"affinityGroup:\n  members:\n  - podNumber: 0", kNumber, "- podNumber: 0"},
           Row{"affinityGroup:\n  members:\n  -\n", kYaml, "-"},
           Row{"affinityGroup:\n  members:\n  - podNumber: 1\n    leafCellNumber: 1\n   - "
               "podNumber: 1",
               kMap, "- podNumber: 1"},
           Row{"leafCellNumber: 2\naffinityGroup:\n  name: g\n  members:\n  - podNumber: 1\n"
               "    leafCellNumber: 1",
               "a member of affinityGroup with the pod's leafCellNumber", "2"},
           Row{"leafCellNumber: 1\naffinityGroup:\n  name: g\n  members:\n  - podNumber: 10001\n"
               "    leafCellNumber: 1",
               "at most 10000 pods in affinityGroup", "10001"},
       }) {
    const PodRequest request = RequestOfSpec(row.yaml);
    EXPECT_EQ(RequestText(request), "refused BadAmount") << row.yaml;
    EXPECT_EQ(FullText(request), fmt::format("expected {}, found {}, in annotation "
                                             "hivedscheduler.microsoft.com/pod-scheduling-spec",
                                             row.expected, Quoted(row.line)))
        << row.yaml;
  }
  const std::string long_spec = "leafCellNumber: 1\n#" + std::string(16 * 1024, 'x');
  EXPECT_NE(FullText(RequestOfSpec(long_spec)).find("expected at most 16384 bytes"),
            std::string::npos);
}

TEST(PodHived, NeedsLimitAndAnnotationBoth) {
  EXPECT_EQ(RequestText(RequestOf("", OneContainer(kEnable))), "refused BadAmount");
  const PodRequest request =
      RequestOf(R"("hivedscheduler.microsoft.com/pod-scheduling-spec":"leafCellNumber: 1")",
                OneContainer(""));
  EXPECT_EQ(FullText(request),
            "expected the annotation together with the limit "
            "hivedscheduler.microsoft.com/pod-scheduling-enable of a container, found \"no "
            "limit\", in annotation hivedscheduler.microsoft.com/pod-scheduling-spec");
}

TEST(PodHived, SurvivesEveryOneByteChangeAndCut) {
  const std::string yaml =
      "leafCellNumber: 1\naffinityGroup:\n  name: \"g\" # c\n  members:\n  - podNumber: 2\n"
      "    leafCellNumber: 1\npriority: -1\n";
  int read = 0;
  for (std::size_t at = 0; at < yaml.size(); ++at) {
    static_cast<void>(RequestOfSpec(std::string_view(yaml).substr(0, at)));
    for (const char byte : {'\0', ' ', '\n', '-', ':', '#', '"', '\'', '\\', 'z', '\t'}) {
      std::string changed = yaml;
      changed[at] = byte;
      read += RequestOfSpec(changed).refusal ? 0 : 1;
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
