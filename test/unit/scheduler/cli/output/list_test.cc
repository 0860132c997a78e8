#include "scheduler/cli/output/list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

Rows PodRows(const Json& pod, const Json& /*answer*/) {
  return {{Text(pod, "namespace"), Text(pod, "name"), Text(pod, "gpus"), Text(pod, "node")}};
}

const ListShape kPods = {
    "pods",
    "pod",
    "no pods",
    {{"NAMESPACE"}, {"NAME"}, {"FREE GIB"}, {"NODE", true}},
    PodRows,
    [](const Json& pod) { return Text(pod, "namespace") + "/" + Text(pod, "name"); },
    /*of_namespaces=*/true};

const char* const kAnswer = R"({"pods": [
  {"namespace": "a", "name": "ten", "gpus": 10, "node": "n1"},
  {"namespace": "b", "name": "nine", "gpus": 9, "node": null},
  {"namespace": "a", "name": "none", "gpus": null, "node": "true"}]})";

std::string Shown(const std::string& output, const std::string& sort_by, const std::string& ns,
                  const std::vector<std::string>& names) {
  const absl::StatusOr<OutputFormat> format = ParseOutputFormat(output, kListFormats);
  if (!format.ok()) return std::string(format.status().message());
  const ListWish wish = {*format, sort_by, ns, names};
  for (const absl::Status& checked :
       {CheckSortKey(kPods, sort_by), CheckNames(kPods, wish, Json::parse(kAnswer))}) {
    if (!checked.ok()) return std::string(checked.message());
  }
  return WriteList(kPods, wish, Chosen(kPods, wish, Json::parse(kAnswer)), {});
}

TEST(ListTest, FormsOrdersAndChoices) {
  struct Row {
    const char* output;
    const char* sort_by;
    const char* ns;
    std::vector<std::string> names;
    const char* wanted;
  };
  const Row table[] = {
      {"table",
       "free-gib",
       "",
       {},
       "NAMESPACE  NAME  FREE GIB\n"
       "b          nine         9\n"
       "a          ten         10\n"
       "a          none         -\n"},
      {"wide",
       "-FREE GIB",
       "a",
       {},
       "NAMESPACE  NAME  FREE GIB  NODE\n"
       "a          none         -  true\n"
       "a          ten         10  n1\n"},
      {"name", "", "", {}, "a/ten\nb/nine\na/none\n"},
      {"name", ".name", "", {}, "b/nine\na/none\na/ten\n"},
      {"name", "{.node}", "", {}, "a/ten\na/none\nb/nine\n"},
      {"name", "", "", {"ten", "b/nine"}, "a/ten\nb/nine\n"},
      {"name", "", "b", {"nine"}, "b/nine\n"},
      {"name", "", "b", {"ten"}, "no pod \"ten\" in namespace b is known"},
      {"name", "", "", {"nin"}, "no pod \"nin\" is known; did you mean nine?"},
      {"table", "", "c", {}, "no pods\n"},
      {"json",
       "",
       "b",
       {},
       R"({"pods":[{"namespace":"b","name":"nine","gpus":9,"node":null}]})"
       "\n"},
      {"yaml",
       "",
       "a",
       {"none"},
       "pods:\n  - namespace: a\n    name: none\n    gpus: null\n    node: \"true\"\n"},
      {"jsonpath={.pods[*].name}", "", "", {}, "ten nine none"},
      {"custom-columns=WHO:.name,AT:{.node},BIG:.x[?(@.a,1)]",
       "",
       "",
       {},
       "-o custom-columns: expected one of . .. [ at letter 9 of \".x[?(@.a,1)]\", found "
       "\",1)]\""},
      {"custom-columns=WHO:.name,AT:{.node}",
       "",
       "a",
       {},
       "WHO   AT\n"
       "ten   n1\n"
       "none  true\n"},
      {"custom-columns=WHO",
       "",
       "",
       {},
       "-o custom-columns: expected TITLE:PATH,... such as NAME:.name, found \"WHO\""},
      {"tabel",
       "",
       "",
       {},
       "-o: expected one of table wide json yaml name jsonpath= custom-columns=, found \"tabel\"; "
       "did you mean table?"},
      {"table",
       "freegb",
       "",
       {},
       "--sort-by: expected a path such as .name or one of NAMESPACE, NAME, FREE GIB, NODE, found "
       "\"freegb\"; did you mean FREE GIB?"},
      {"table",
       ".a[",
       "",
       {},
       "--sort-by: expected a number, *, a quoted name or ?( at letter 4 of \".a[\", found its "
       "end"},
  };
  for (const Row& row : table) {
    EXPECT_EQ(Shown(row.output, row.sort_by, row.ns, row.names), row.wanted)
        << row.output << ' ' << row.sort_by;
  }
}

TEST(ListTest, YamlQuotesWhatItWouldReadOtherwise) {
  const Json json = {{"on", "no"},
                     {"number", "12"},
                     {"date", "2026-11-24"},
                     {"plain", "gpu-1"},
                     {"text", "a: b"},
                     {"empty", Json::array()},
                     {"escape", "\u001b[31m"},
                     {"list", Json::array({1.5, true, nullptr})}};
  EXPECT_EQ(ToYaml(json),
            "\"on\": \"no\"\nnumber: \"12\"\ndate: \"2026-11-24\"\nplain: gpu-1\ntext: \"a: b\"\n"
            "empty: []\nescape: \"\\x1b[31m\"\nlist:\n  - 1.5\n  - true\n  - null\n");
}

TEST(ListTest, ChangesAreToldOnce) {
  const auto answer = [](const char* pods) {
    return Json::parse(std::string(R"({"pods": )") + pods + "}");
  };
  const Json first = answer(R"([{"namespace":"a","name":"x","gpus":1},
                                {"namespace":"a","name":"y","gpus":1}])");
  const Json second = answer(R"([{"namespace":"a","name":"x","gpus":2,"node":"n"},
                                 {"namespace":"a","name":"z","gpus":1}])");
  const auto look = [&](const char* output) {
    ListChanges changes(kPods, {*ParseOutputFormat(output, kListFormats), "", "", {}});
    const std::string all = changes.Look(first, {});
    EXPECT_EQ(changes.Look(first, {}), "") << output;
    return std::pair(all, changes.Look(second, {}));
  };
  EXPECT_EQ(look("table").first,
            "EVENT  NAMESPACE  NAME  FREE GIB\n"
            "ADDED  a          x            1\n"
            "ADDED  a          y            1\n");
  EXPECT_EQ(look("table").second,
            "EVENT     NAMESPACE  NAME  FREE GIB\n"
            "MODIFIED  a          x            2\n"
            "ADDED     a          z            1\n"
            "DELETED   a          y            1\n");
  EXPECT_EQ(look("name").second, "a/x\na/z\n");
  EXPECT_EQ(look("jsonpath={.pods[0].gpus};").second, "2;1;");
  EXPECT_EQ(look("json").second.substr(0, 29), R"({"type":"MODIFIED","object":{)");
  EXPECT_EQ(look("yaml").second.substr(0, 18), "---\ntype: MODIFIED");
}

}  // namespace THIS_FILE
}  // namespace tranche
