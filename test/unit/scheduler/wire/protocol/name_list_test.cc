// Names read from the bytes of a question, against the parser that reads all of it.
#include "scheduler/wire/protocol/name_list.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tranche::wire {
namespace THIS_FILE {

using Names = std::vector<std::string_view>;

constexpr std::size_t kBehind = 64;

// As a body lies in memory: something is behind it.
struct PaddedBody {
  explicit PaddedBody(std::string text) : size(text.size()), bytes(std::move(text)) {
    bytes.append(kBehind, '"');
  }
  std::string_view view() const { return std::string_view(bytes).substr(0, size); }

  std::size_t size;
  std::string bytes;
};

TEST(NameList, ReadsNamesThatStandLastAndPlain) {
  const struct {
    std::string_view text;
    std::optional<std::string_view> head;  // nullopt: left to the parser
    Names names;
  } rows[] = {
      {R"({"Pod":{},"Nodes":null,"NodeNames":["a","b"]})", R"({"Pod":{},"Nodes":null)", {"a", "b"}},
      {R"({"Pod":{},"NodeNames":["gpu-node-of-20-bytes"]})",
       R"({"Pod":{})",
       {"gpu-node-of-20-bytes"}},
      {"{\"Pod\":{},\"NodeNames\":[\"a\"]} \r\n\t", R"({"Pod":{})", {"a"}},
      {R"({"Pod":{},"NodeNames":[]})", R"({"Pod":{})", {}},
      {R"({"Pod":{},"NodeNames":["",""]})", R"({"Pod":{})", {"", ""}},
      {R"({"Pod":{},"NodeNames":["a","b","a"]})", R"({"Pod":{})", {"a", "b", "a"}},
      // Of another form, well-formed or not.
      {R"({"NodeNames":["a"],"Pod":{}})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a"],"Nodes":null})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames": ["a"]})", std::nullopt, {}},
      {R"({"Pod":{},"nodenames":["a"]})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a", "b"]})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["\u0061"]})", std::nullopt, {}},
      {"{\"Pod\":{},\"NodeNames\":[\"n\u00e9\"]}", std::nullopt, {}},
      {"{\"Pod\":{},\"NodeNames\":[\"a\n\"]}", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a",null]})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a",]})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a"})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a"]}})", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a"]}x)", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a"])", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a)", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":["a")", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":[")", std::nullopt, {}},
      {R"({"Pod":{},"NodeNames":[)", std::nullopt, {}},
      {R"({"Pod":{"x":1,"NodeNames":["a"]}})", std::nullopt, {}},
      {R"({ ,"NodeNames":["a"]})", std::nullopt, {}},
      {R"(,"NodeNames":["a"]})", std::nullopt, {}},
      {"", std::nullopt, {}},
  };
  Names names = {"left over"};
  for (const auto& row : rows) {
    const PaddedBody body{std::string(row.text)};
    EXPECT_EQ(ReadTrailingNames(body.view(), names), row.head) << row.text;
    if (row.head) {
      EXPECT_EQ(names, row.names) << row.text;
    }
  }
}

// What the parser says of the whole, where the outermost object and the list are as they should be.
std::optional<std::vector<std::string>> Parsed(simdjson::dom::parser& parser,
                                               const std::string& text) {
  simdjson::dom::object root;
  if (parser.parse(text).get(root) != simdjson::SUCCESS) return std::nullopt;
  std::optional<std::vector<std::string>> names;
  for (const auto field : root) {
    if (field.key != "NodeNames") continue;
    simdjson::dom::array array;
    names.reset();
    if (field.value.get(array) != simdjson::SUCCESS) continue;
    names.emplace();
    for (const auto element : array) {
      std::string_view name;
      if (element.get(name) != simdjson::SUCCESS) return std::nullopt;
      names->emplace_back(name);
    }
  }
  return names;
}

// Bodies with bytes changed, left out and put in at random: whenever a head is found that is an
// object with its brace, the whole is JSON and has just these names.
TEST(NameList, NeverSaysWhatTheParserWouldNot) {
  std::mt19937_64 random(20'261'125);
  const std::string goods[] = {
      R"({"Pod":{"x":",\"NodeNames\":[","y":["]}"]},"NodeNames":["a","gpu-node-0001","b"]})",
      R"({"Pod":{},"NodeNames":["old"],"NodeNames":["a","b"]})",
      R"({"Pod":{"z":{}},"Nodes":null,"NodeNames":["gpu-worker-0002.zone-a.example"]})"};
  constexpr std::string_view kBytes = R"("\,:[]{} aN)";
  simdjson::dom::parser head_parser, parser;
  Names names;
  int found = 0;
  for (int trial = 0; trial < 40'000; ++trial) {
    std::string text = goods[random() % std::size(goods)];
    for (uint64_t change = random() % 4; change > 0; --change) {
      const std::size_t at = random() % text.size();
      const char byte = kBytes[random() % kBytes.size()];
      switch (random() % 4) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.insert(at, R"(,"NodeNames":[)");
          break;
        default:
          text[at] = byte;
      }
    }
    const PaddedBody body(text);
    const auto head = ReadTrailingNames(body.view(), names);
    if (!head) continue;
    simdjson::dom::object object;
    if (head_parser.parse(std::string(*head) + "}").get(object) != simdjson::SUCCESS) continue;
    ++found;
    const auto wanted = Parsed(parser, text);
    ASSERT_TRUE(wanted) << text;
    EXPECT_EQ(std::vector<std::string>(names.begin(), names.end()), *wanted) << text;
  }
  EXPECT_GT(found, 4'000);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
