#include "scheduler/wire/json/lenient_parser.h"

#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

std::string Nested(std::size_t depth, const std::string& inside) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += R"({"f":)";
  text += inside;
  text.append(depth, '}');
  return text;
}

struct LenientRow {
  std::string text;
  std::string minified;  // as it is read; "": refused
};

TEST(LenientParser, ReadsWhatAnApiServerMaySend) {
  const std::string deep = R"({"a":{"managedFields":)" + Nested(70, "1") + R"(},"b":2})";
  const std::string cut = R"({"a":{"managedFields":)" + Nested(62, "null") + R"(},"b":2})";
  const std::vector<LenientRow> rows = {
      {R"({"a":1,"b":[true,null,-2.5e3]})", R"({"a":1,"b":[true,null,-2500.0]})"},
      {R"({"a":123456789012345678901234567890,"b":1})",
       R"({"a":"123456789012345678901234567890","b":1})"},
      {R"([-99999999999999999999,18446744073709551615,1e400])",
       R"(["-99999999999999999999",18446744073709551615,"1e400"])"},
      {R"({"s":"[{123456789012345678901234567890 \" ","a":1e999})",
       R"({"s":"[{123456789012345678901234567890 \" ","a":"1e999"})"},
      {deep, cut},
      {R"({"a":{"managedFields":)" + Nested(10'000, "[\"}\"]") + R"(},"b":2})", cut},
      {R"({"a":1.2.3})", ""},
      {R"({"a":12345678901234567890123x})", ""},
      {R"({"a":tru})", ""},
      {R"({"a":1)", ""},
      {Nested(100, "1").substr(0, 300), ""},
      {"", ""},
  };
  LenientParser parser;
  for (const LenientRow& row : rows) {
    const auto document = parser.Parse(row.text);
    ASSERT_EQ(document.ok(), !row.minified.empty()) << row.text;
    if (!document.ok()) continue;
    EXPECT_EQ(simdjson::minify(*document), row.minified) << row.text;
  }
}

TEST(LenientParser, SaysOfARefusedTextWhatIsWrongWithTheTextItself) {
  LenientParser parser;
  EXPECT_EQ(parser.Parse(R"({"a":99999999999999999999,"b":tru})").status().message(),
            Parser().Parse(R"({"a":99999999999999999999,"b":tru})").status().message());
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
