#include "scheduler/cli/output/json_path.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche {
namespace THIS_FILE {

const char* const kNodes = R"({"nodes": [
  {"name": "a", "gpus": [{"free": 3, "pods": [{"name": "p"}]}, {"free": 5, "pods": []}],
   "labels": {"nvidia.com/gpu": "8"}},
  {"name": "b", "gpus": [], "ready": true},
  {"name": "c\u001b[31m", "gpus": [{"free": 0.5, "pods": null}]}]})";

TEST(JsonPathTest, TemplatesReadAsKubectls) {
  const Json root = Json::parse(kNodes);
  const std::pair<const char*, const char*> table[] = {
      {"{.nodes[0].name}", "a"},
      {"{$.nodes[0]['name']}", "a"},
      {"{.nodes[*].name}", "a b c?[31m"},
      {"{.nodes[-1:].gpus[0].free}", "0.5"},
      {"{.nodes[0:2].name}", "a b"},
      {"{.nodes[1:-1].name}", "b"},
      {"{.nodes[7].name}|{.nothing.at.all}", "|"},
      {"{.nodes[0].gpus[*].free}", "3 5"},
      {"{.nodes[0].labels.nvidia\\.com/gpu}", "8"},
      {"{.nodes[0].labels['nvidia.com/gpu']}", "8"},
      {"{..free}", "3 5 0.5"},
      {"{.nodes[?(@.name==\"b\")].ready}", "true"},
      {"{.nodes[?(@.ready)].name}", "b"},
      {"{.nodes[?(@.name != 'a')].name}", "b c?[31m"},
      {"{.nodes[*].gpus[?(@.free>=3)].free}", "3 5"},
      {"{.nodes[*].gpus[?(@.free<3)].free}", "0.5"},
      {"{.nodes[?(@.name>3)].name}", ""},
      {"{range .nodes[*]}{.name}: {.gpus[0].free}{\"\\n\"}{end}done",
       "a: 3\nb: \nc?[31m: 0.5\ndone"},
      {"{range .nodes[*]}{range .gpus[*]}{.free};{end}{end}", "3;5;0.5;"},
      {"{'}{'}", "}{"},
      {"{.nodes[0].gpus[1]}", R"({"free":5,"pods":[]})"},
      {"", ""},
  };
  for (const auto& [text, wanted] : table) {
    const absl::StatusOr<JsonTemplate> made = JsonTemplate::Parse(text);
    ASSERT_TRUE(made.ok()) << text << ": " << made.status();
    EXPECT_EQ(made->Write(root), wanted) << text;
  }
}

TEST(JsonPathTest, MistakesSayWhatWasExpectedAndWhere) {
  const std::pair<const char*, const char*> table[] = {
      {"{.nodes", "expected } behind"},
      {"{}", "expected a path"},
      {"{.nodes[}", "expected a number, *, a quoted name or ?( at letter 8"},
      {"{.nodes[0}", "expected ] at letter 9"},
      {"{.nodes['a]}", "expected } behind"},
      {"{.nodes[?(.a)]}", "expected @"},
      {"{.nodes[?(@.a==b)]}", "a quoted text"},
      {"{.nodes[?(@.a[?(@.b)])]}", "no filter inside a filter"},
      {"{.nodes[?(@.a==1]}", "found"},
      {"{.a b}", "one of . .. ["},
      {"{range .a}x", "expected {end}"},
      {"x{end}", "expected {range"},
      {"{..}", "expected a name"},
  };
  for (const auto& [text, named] : table) {
    const absl::StatusOr<JsonTemplate> made = JsonTemplate::Parse(text);
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_NE(std::string(made.status().message()).find(named), std::string::npos)
        << text << ": " << made.status();
  }
}

TEST(JsonPathTest, DeepAnswersEndTheSearchNotTheProcess) {
  Json deep = Json::object();
  for (int i = 0; i < 2000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_EQ(JsonTemplate::Parse("{..name}")->Write(deep), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
