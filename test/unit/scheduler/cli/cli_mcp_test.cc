// `tranche mcp` against a running server: what a language model is told.
#include "scheduler/cli/cli_mcp.h"

#include <sstream>
#include <string>
#include <vector>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

class CliMcp : public LiveServer {
 protected:
  // The results of calls of tools, in one conversation.
  std::vector<Json> Results(const std::vector<Json>& calls, const std::string& at) {
    std::string lines;
    for (const Json& call : calls) {
      lines +=
          Json{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/call"}, {"params", call}}.dump() +
          "\n";
    }
    std::istringstream in(lines);
    std::ostringstream out, err;
    ClientOptions options;
    options.server.server = at;
    EXPECT_EQ(AnswerModel(options, in, out, err), 0);
    std::istringstream answers(out.str());
    std::vector<Json> results;
    for (std::string line; std::getline(answers, line);) {
      results.push_back(Json::parse(line)["result"]);
    }
    EXPECT_EQ(results.size(), calls.size());
    return results;
  }
  Json Result(const std::string& tool, const Json& arguments) {
    return Results({{{"name", tool}, {"arguments", arguments}}}, url())[0];
  }
};

constexpr const char* kJob = R"(
kind: Pod
metadata: {name: third, namespace: team-a}
spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "1"}}}]}
)";

TEST_F(CliMcp, EachToolAnswersAsItsCommandDoes) {
  Apply(MakeNode("gpu-1", 1));
  const Json first = MakePod("first", {{"nvidia.com/gpu", "1"}});
  Apply(first);
  ASSERT_EQ(Schedule(first, {"gpu-1"}), "gpu-1");
  const Json second = MakePod("second", {{"nvidia.com/gpu", "1"}});
  Apply(second);
  ASSERT_EQ(Schedule(second, {"gpu-1"}), "");
  struct Row {
    const char* tool;
    Json arguments;
    bool failed;
    const char* has;
  };
  const Row table[] = {
      {"explain", {{"pod", "team-a/second"}}, false, "enough free GPU capacity"},
      {"explain", {{"pod", "team-a/second"}, {"detail", "rank"}}, false, "Position 1 of 1"},
      {"explain", {{"pod", "team-a/second"}, {"detail", "each-node"}}, false, "gpu-1"},
      {"explain", {{"pod", "team-a/second"}, {"json", true}}, false, R"("name":"second")"},
      {"explain", {{"pod", "team-a/nobody"}}, true, "nobody"},
      {"explain", {{"pod", "../../x"}}, true, "expected NAMESPACE/POD"},
      {"queue", Json::object(), false, "second"},
      {"queue", {{"namespace", "team-b"}}, false, "no pod waits"},
      {"pods", {{"name", "first"}}, false, "gpu-1"},
      {"pods", {{"labels", "a in ("}}, true, "expected"},
      {"gangs", Json::object(), false, "gang"},
      {"events", Json::object(), false, "first"},
      {"nodes", Json::object(), false, "gpu-1"},
      {"quota", Json::object(), false, "no GPUQuota"},
      {"reclaims", Json::object(), false, "no reclaim"},
      {"top", Json::object(), false, "1 bound"},
      {"top", {{"advise", true}}, false, "1 bound"},
      {"whatif", {{"manifest", kJob}}, false, "team-a/third"},
      {"whatif", {{"manifest", "kind: [Pod"}}, true, "manifest: "},
      {"plan", {{"manifest", "delete: [{kind: Node, name: gpu-1}]"}}, false, ""},
      {"plan", {{"manifest", "delete: 3"}}, true, "manifest: expected a list in delete"},
      {"audit", Json::object(), false, ""},
      {"bill", {{"by", "moon"}}, true, "by: expected team, namespace"},
  };
  for (const Row& row : table) {
    const Json result = Result(row.tool, row.arguments);
    const std::string text = result["content"][0]["text"].get<std::string>();
    EXPECT_EQ(result["isError"], row.failed) << row.tool << row.arguments << '\n' << text;
    EXPECT_NE(text.find(row.has), std::string::npos)
        << row.tool << row.arguments << ": expected " << row.has << ", found\n"
        << text;
    EXPECT_FALSE(text.empty()) << row.tool;
  }
  EXPECT_EQ(Call("GET", "/embedded/v1/objects?kind=Pod&namespace=team-a&name=third").status, 404)
      << "asking changes nothing";
}

TEST_F(CliMcp, AServerThatIsGoneIsAnAnswerAndTheConversationGoesOn) {
  const std::vector<Json> results =
      Results({{{"name", "nodes"}}, {{"name", "queue"}, {"arguments", Json::object()}}},
              "http://127.0.0.1:1");
  for (const Json& result : results) {
    EXPECT_EQ(result["isError"], true);
    EXPECT_NE(result["content"][0]["text"].get<std::string>().find("127.0.0.1:1"),
              std::string::npos);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
