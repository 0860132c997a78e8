#include "scheduler/wire/json/json.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche::wire {
namespace THIS_FILE {

std::string ErrorOf(std::string_view text) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(text);
  return document.ok() ? "" : std::string(document.status().message());
}

std::string Nested(std::size_t depth) {
  return std::string(depth, '[') + "1" + std::string(depth, ']');
}

TEST(JsonParser, TakesSixtyFourLevelsAndNoMore) {
  EXPECT_EQ(ErrorOf(Nested(64)), "");
  EXPECT_EQ(ErrorOf(Nested(65)), "expected JSON, found more than 64 levels of nesting");
  EXPECT_EQ(ErrorOf(Nested(100'000)), "expected JSON, found more than 64 levels of nesting");
}

TEST(JsonParser, KeepsTheDepthLimitAfterALargeDocument) {
  Parser parser;
  ASSERT_TRUE(parser.Parse("[\"" + std::string(100'000, 'x') + "\"]").ok());
  EXPECT_FALSE(parser.Parse(Nested(65)).ok());
  EXPECT_TRUE(parser.Parse(Nested(64)).ok());
}

TEST(JsonParser, NamesWhatIsMalformed) {
  struct Row {
    std::string_view text;
    std::string_view found;
  };
  for (const Row& row : {
           Row{"", "nothing"},
           Row{"  ", "nothing"},
           Row{"{\"a\":}", "structure"},
           Row{"{} {}", "structure"},
           Row{"{\"a\":1,}", "structure"},
           Row{"[1 2]", "structure"},
           Row{"{\"a\":tru}", "misspelt"},
           Row{"[01]", "number"},
           Row{"[123456789012345678901234567890]", "number"},
           Row{"[\"a]", "closing quote"},
           Row{"[\"\x01\"]", "control character"},
           Row{"[\"\\q\"]", "string"},
           Row{"[\"\xff\"]", "UTF-8"},
       }) {
    EXPECT_NE(ErrorOf(row.text).find(row.found), std::string::npos)
        << row.text << " -> " << ErrorOf(row.text);
  }
}

TEST(JsonFind, TakesTheLastOfEqualKeysAndNoNull) {
  Parser parser;
  Object object;
  ASSERT_EQ(
      parser.Parse(R"({"a":1,"a":2,"n":3,"n":null,"t":"x","b":true,"o":{},"l":[]})")->get(object),
      simdjson::SUCCESS);
  EXPECT_EQ(FindInteger(object, "a"), 2);
  EXPECT_EQ(FindInteger(object, "n"), std::nullopt);
  EXPECT_FALSE(Find(object, "n").has_value());
  EXPECT_FALSE(Find(object, "absent").has_value());
  EXPECT_EQ(FindText(object, "t"), "x");
  EXPECT_EQ(FindText(object, "a"), std::nullopt);
  EXPECT_EQ(FindBool(object, "b"), true);
  EXPECT_TRUE(FindObject(object, "o").has_value());
  EXPECT_TRUE(FindArray(object, "l").has_value());
  EXPECT_FALSE(FindArray(object, "o").has_value());
}

TEST(JsonFind, IgnoresCaseButPrefersTheExactKey) {
  Parser parser;
  Object object;
  ASSERT_EQ(parser.Parse(R"({"Pod":1,"pOD":2,"NODENAMES":3,"nodenames":4})")->get(object),
            simdjson::SUCCESS);
  int64_t value = 0;
  EXPECT_EQ(FindAnyCase(object, "Pod")->get(value), simdjson::SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(FindAnyCase(object, "NodeNames")->get(value), simdjson::SUCCESS);
  EXPECT_EQ(value, 4);
  EXPECT_FALSE(FindAnyCase(object, "Node").has_value());
}

TEST(JsonFind, TakesIntegersWithinSixtyFourBitsOnly) {
  Parser parser;
  Object object;
  ASSERT_EQ(parser
                .Parse(R"({"max":9223372036854775807,"over":9223372036854775808,"real":1.0,)"
                       R"("min":-9223372036854775808,"text":"1"})")
                ->get(object),
            simdjson::SUCCESS);
  EXPECT_EQ(FindInteger(object, "max"), INT64_MAX);
  EXPECT_EQ(FindInteger(object, "min"), INT64_MIN);
  EXPECT_EQ(FindInteger(object, "over"), std::nullopt);
  EXPECT_EQ(FindInteger(object, "real"), std::nullopt);
  EXPECT_EQ(FindInteger(object, "text"), std::nullopt);
}

TEST(Time, ReadsRfc3339InEveryForm) {
  struct Row {
    std::string_view text;
    std::string_view utc;
  };
  for (const Row& row : {
           Row{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
           Row{"2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500Z"},
           Row{"2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123Z"},
           Row{"2026-01-02T03:04:05.123456789012345Z", "2026-01-02T03:04:05.123Z"},
           Row{"2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"},
           Row{"2025-12-31T23:30:00-01:45", "2026-01-01T01:15:00Z"},
           Row{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
           Row{"1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"},
       }) {
    const auto time = ParseTime(row.text);
    ASSERT_TRUE(time.has_value()) << row.text;
    EXPECT_EQ(FormatTime(*time), row.utc);
  }
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const std::string_view text :
       {"", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-1-02T03:04:05Z",
        "2026-13-02T03:04:05Z", "2025-02-29T03:04:05Z", "2026-01-02T24:04:05Z",
        "2026-01-02T03:60:05Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+0200", "2026-01-02T03:04:05+24:00"}) {
    EXPECT_FALSE(ParseTime(text).has_value()) << text;
  }
}

std::string QuotedJson(std::string_view text) {
  std::string out = "x";
  AppendQuoted(out, text);
  return out.substr(1);
}

TEST(AppendQuoted, EscapesWhatJsonDemandsAndNothingElse) {
  using std::string_literals::operator""s;
  EXPECT_EQ(QuotedJson(""), R"("")");
  EXPECT_EQ(QuotedJson("GPU-0"), R"("GPU-0")");
  EXPECT_EQ(QuotedJson("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(QuotedJson("\n\r\t\x01\x1f"s + '\0'), R"("\n\r\t\u0001\u001f\u0000")");
  EXPECT_EQ(QuotedJson("\x7f"), "\"\x7f\"");
  EXPECT_EQ(QuotedJson("é€😀"), "\"é€😀\"");
}

TEST(AppendQuoted, ReplacesInvalidUtf8) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(QuotedJson("a\xff"
                       "b"),
            "\"a" + mark + "b\"");
  EXPECT_EQ(QuotedJson("\xC0\x80"), "\"" + mark + mark + "\"");             // overlong
  EXPECT_EQ(QuotedJson("\xED\xA0\x80"), "\"" + mark + mark + mark + "\"");  // surrogate
  EXPECT_EQ(QuotedJson("\xE2\x82"), "\"" + mark + mark + "\"");             // cut short
  EXPECT_EQ(QuotedJson("\xF4\x90\x80\x80").size(), 2 + 4 * mark.size());    // above U+10FFFF
}

TEST(Quoted, CutsLongTextsBetweenCharacters) {
  EXPECT_EQ(Quoted("1.5"), "\"1.5\"");
  EXPECT_EQ(Quoted(std::string(64, 'a')), "\"" + std::string(64, 'a') + "\"");
  EXPECT_EQ(Quoted(std::string(65, 'a')), "\"" + std::string(64, 'a') + "\"...");
  EXPECT_EQ(Quoted(std::string(63, 'a') + "é"), "\"" + std::string(63, 'a') + "\"...");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
