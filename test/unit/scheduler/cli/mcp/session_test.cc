#include "scheduler/cli/mcp/session.h"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tranche::mcp {
namespace THIS_FILE {

Session MakeSession() {
  Tool echo = {"echo",
               "Says it again.",
               {{"text", false, {}, true, "what to say"},
                {"form", false, {"plain", "loud"}, false, "how"},
                {"twice", true, {}, false, "two times"}},
               [](const Json& arguments) {
                 const std::string text = TextOf(arguments, "text");
                 return ToolAnswer{text == "fail", FlagOf(arguments, "twice") ? text + text : text};
               }};
  return {{"tranche", "1.2.3", "Ask echo."}, {std::move(echo)}};
}

// The answer to a request with this method and these parameters.
Json Asked(const std::string& method, const std::string& parameters) {
  const auto answer = MakeSession().Answer(R"({"jsonrpc":"2.0","id":7,"method":")" + method +
                                           R"(","params":)" + parameters + "}");
  return answer ? Json::parse(*answer) : Json();
}

TEST(McpSession, SaysHelloInTheRevisionOfTheClientWhereItIsKnown) {
  const std::pair<const char*, const char*> table[] = {
      {"2024-11-05", "2024-11-05"}, {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
      {"1999-01-01", "2025-11-25"}, {"2027-01-01", "2025-11-25"},
  };
  for (const auto& [asked, answered] : table) {
    const Json hello = Asked("initialize", Json{{"protocolVersion", asked}}.dump());
    EXPECT_EQ(hello["result"]["protocolVersion"], answered) << asked;
    EXPECT_EQ(hello["id"], 7);
    EXPECT_EQ(hello["result"]["serverInfo"], (Json{{"name", "tranche"}, {"version", "1.2.3"}}));
    EXPECT_EQ(hello["result"]["capabilities"], (Json{{"tools", Json::object()}}));
    EXPECT_EQ(hello["result"]["instructions"], "Ask echo.");
  }
  EXPECT_EQ(Asked("initialize", R"({"protocolVersion":3})")["result"]["protocolVersion"],
            "2025-11-25");
}

TEST(McpSession, ToolsAreListedWithTheirSchema) {
  const Json tools = Asked("tools/list", "null")["result"]["tools"];
  ASSERT_EQ(tools.size(), 1U);
  EXPECT_EQ(tools[0]["name"], "echo");
  EXPECT_EQ(tools[0]["annotations"]["readOnlyHint"], true);
  EXPECT_EQ(tools[0]["inputSchema"], Json::parse(R"({
    "type": "object",
    "properties": {
      "text": {"type": "string", "description": "what to say"},
      "form": {"type": "string", "description": "how", "enum": ["plain", "loud"]},
      "twice": {"type": "boolean", "description": "two times"}},
    "required": ["text"], "additionalProperties": false})"));
}

TEST(McpSession, WhatAToolSaysComesAsItsTextAndSoDoWrongArguments) {
  struct Row {
    const char* arguments;
    bool failed;
    const char* text;
  };
  const Row table[] = {
      {R"({"text":"hi"})", false, "hi"},
      {R"({"text":"hi","twice":true,"form":"loud"})", false, "hihi"},
      {R"({"text":"fail"})", true, "fail"},
      {R"({})", true, "arguments: expected text, found none"},
      {"null", true, "arguments: expected text, found none"},
      {R"([1])", true, "arguments: expected an object, found array"},
      {R"({"text":1})", true, "text: expected a text, found number"},
      {R"({"text":"hi","twice":"yes"})", true, "twice: expected true or false, found string"},
      {R"({"text":"hi","form":"soft"})", true, "form: expected one of plain, loud, found \"soft\""},
      {R"({"txt":"hi"})", true,
       "arguments: expected text, form, twice alone, found \"txt\"; did you mean text?"},
  };
  for (const Row& row : table) {
    const Json result = Asked("tools/call", std::string(R"({"name":"echo","arguments":)") +
                                                row.arguments + "}")["result"];
    EXPECT_EQ(result["isError"], row.failed) << row.arguments;
    EXPECT_EQ(result["content"], Json::array({{{"type", "text"}, {"text", row.text}}}))
        << row.arguments;
  }
}

TEST(McpSession, WhatIsNoRequestIsAnsweredAsJsonRpcSays) {
  struct Row {
    std::string line;
    int code;  // 0: no answer
    const char* id;
  };
  const Row table[] = {
      {"{", -32700, "null"},
      {"\xff", -32700, "null"},
      {"[]", -32600, "null"},  // batches are gone since 2025-06-18
      {"3", -32600, "null"},
      {"{}", -32600, "null"},
      {R"({"id":1,"method":5})", -32600, "null"},
      {R"({"id":null,"method":"ping"})", -32600, "null"},
      {R"({"id":1.5,"method":"ping"})", -32600, "null"},
      {R"({"id":"a","method":"resources/list"})", -32601, "\"a\""},
      {R"({"id":2,"method":"ping","params":[]})", -32602, "2"},
      {R"({"id":2,"method":"tools/call","params":{"name":"drop"}})", -32602, "2"},
      {R"({"id":2,"method":"tools/call"})", -32602, "2"},
      {R"({"method":"notifications/initialized"})", 0, ""},
      {R"({"method":"tools/call","params":{"name":"drop"}})", 0, ""},
      {R"({"id":1,"result":{}})", 0, ""},
      {"  \r", 0, ""},
      {"", 0, ""},
  };
  for (const Row& row : table) {
    const auto answer = MakeSession().Answer(row.line);
    ASSERT_EQ(answer.has_value(), row.code != 0) << row.line;
    if (!answer) continue;
    const Json json = Json::parse(*answer);
    EXPECT_EQ(json["error"]["code"], row.code) << row.line;
    EXPECT_EQ(json["id"], Json::parse(row.id)) << row.line;
    EXPECT_EQ(answer->find('\n'), std::string::npos);
  }
  EXPECT_EQ(Asked("ping", "{}"), (Json{{"jsonrpc", "2.0"}, {"id", 7}, {"result", Json::object()}}));
}

TEST(McpSession, DeepMessagesEndWithAnErrorNotTheProcess) {
  const std::string deep(200'000, '[');
  for (const std::string& line :
       {deep + std::string(deep.size(), ']'),
        R"({"id":1,"method":"ping","params":)" + deep + std::string(deep.size(), ']') + "}",
        R"({"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":)" + deep +
            std::string(deep.size(), ']') + "}}}"}) {
    const auto answer = MakeSession().Answer(line);
    ASSERT_TRUE(answer);
    EXPECT_LT(answer->size(), 1000U);
  }
}

TEST(McpSession, TextsThatAreNoUtf8AreReplaced) {
  const Session session({"tranche", "1", ""}, {{"bad", "", {}, [](const Json&) {
                                                  return ToolAnswer{false, "node \xff\xfe"};
                                                }}});
  const auto answer = session.Answer(R"({"id":1,"method":"tools/call","params":{"name":"bad"}})");
  EXPECT_EQ(Json::parse(*answer)["result"]["content"][0]["text"], "node \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(McpSession, AToolThatThrowsIsAnAnswer) {
  const Session session(
      {"tranche", "1", ""},
      {{"bad", "", {}, [](const Json&) -> ToolAnswer { throw std::runtime_error("no memory"); }}});
  const auto answer = session.Answer(R"({"id":1,"method":"tools/call","params":{"name":"bad"}})");
  const Json result = Json::parse(*answer)["result"];
  EXPECT_EQ(result["isError"], true);
  EXPECT_EQ(result["content"][0]["text"], "unexpected failure: no memory");
}

TEST(McpConverse, LinesAreAnsweredInOrderAndLongOnesPassedOver) {
  std::istringstream in(R"({"id":1,"method":"ping"})"
                        "\n" +
                        std::string(3 * kMostMessage, 'x') + "\n\n" +
                        R"({"method":"notifications/cancelled"})" + "\n" +
                        R"({"id":2,"method":"ping"})");
  std::ostringstream out;
  Converse(MakeSession(), in, out);
  std::istringstream lines(out.str());
  std::vector<Json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(Json::parse(line));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0]["id"], 1);
  EXPECT_EQ(answers[1]["error"]["code"], -32600);
  EXPECT_EQ(answers[2]["id"], 2);
}

TEST(McpShortened, WholeLinesAreKeptAndTheRestIsCounted) {
  EXPECT_EQ(Shortened("short\n"), "short\n");
  std::string text;
  for (int i = 0; i < 2'000; ++i) text += std::string(99, 'x') + "\n";
  const std::string shortened = Shortened(text);
  EXPECT_EQ(shortened.substr(kMostAnswer),
            "(1000 more lines: ask for a namespace, a name or labels)\n");
  EXPECT_EQ(
      Shortened(std::string(2 * kMostAnswer, 'x')).size(),
      kMostAnswer + std::string("(1 more lines: ask for a namespace, a name or labels)\n").size());
}

}  // namespace THIS_FILE
}  // namespace tranche::mcp
