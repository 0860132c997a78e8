#include "scheduler/kube/watch/json_cut.h"

#include <gtest/gtest.h>

#include <vector>

namespace tranche::kube {
namespace THIS_FILE {

struct Outcome {
  std::vector<std::string> items;
  std::string rest;
  absl::Status status;
  bool whole = true;
};

Outcome FeedInPieces(const std::vector<std::string>& pieces) {
  Outcome out;
  ListItems list;
  for (const std::string& piece : pieces) {
    out.status = list.Feed(piece, [&out](const JsonPiece& item) {
      out.items.emplace_back(item.text);
      out.whole = out.whole && item.whole;
      return absl::OkStatus();
    });
  }
  out.rest = list.rest();
  return out;
}

TEST(ListItems, AreTheSameWhereverTheBytesAreCut) {
  const std::string text =
      "{ \"kind\":\"PodList\", \"odd\":{\"items\":[1]}, \"items\" : [\n{\"a\":\"}]\\\" {\"},"
      " {\"b\":[{}]} ],\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"a b\"}}\n";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    const Outcome out = FeedInPieces({text.substr(0, first), text.substr(first)});
    ASSERT_TRUE(out.status.ok()) << first;
    ASSERT_EQ(out.items, (std::vector<std::string>{R"({"a":"}]\" {"})", R"({"b":[{}]})"})) << first;
    ASSERT_EQ(out.rest, R"({"kind":"PodList","odd":{"items":[1]},"items":[],)"
                        R"("metadata":{"resourceVersion":"5","continue":"a b"}})")
        << first;
  }
}

TEST(ListItems, LeaveABodyThatIsNoListAsItIs) {
  for (const char* text : {R"({"kind":"Status","code":410})", R"({"items":null})",
                           R"({"items":{}})", R"({"a":"items","b":[{"c":1}]})", R"({"items":[)"}) {
    const Outcome out = FeedInPieces({text});
    EXPECT_TRUE(out.status.ok()) << text;
    EXPECT_EQ(out.rest, text);
    EXPECT_TRUE(out.items.empty()) << text;
  }
}

TEST(ListItems, RefuseWhatIsNoObjectAndStayBroken) {
  for (const char* text : {"<html>", "[1]", R"({"items":[1)", R"({"items":["a")"}) {
    const Outcome out = FeedInPieces({text, "{}"});
    EXPECT_EQ(out.status.code(), absl::StatusCode::kInvalidArgument) << text;
  }
  const std::string much(ListItems::kMaxRestBytes, 'x');
  EXPECT_EQ(FeedInPieces({R"({"a":")" + much}).status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(ListItems, GiveOfAHugeItemOnlyItsBeginningAndReadTheNext) {
  std::vector<std::string> pieces = {R"({"items":[{"metadata":{"name":"a"},"x":")"};
  for (std::size_t fed = 0; fed <= ObjectCut::kMaxBytes; fed += 1024 * 1024) {
    pieces.emplace_back(1024 * 1024, 'x');
  }
  pieces.push_back(R"("},{"b":1}]})");
  const Outcome out = FeedInPieces(pieces);
  ASSERT_EQ(out.items.size(), 2u);
  EXPECT_FALSE(out.whole);
  EXPECT_EQ(out.items[0].size(), ObjectCut::kKeptBytes);
  EXPECT_EQ(out.items[1], R"({"b":1})");
}

TEST(Outline, SaysWhoAnObjectIsAndWhereItRuns) {
  const std::string empty = R"({"metadata":{},"spec":{},"status":{}})";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"({"x":tru,"metadata":{"name":"a","labels":{"name":"b"},"namespace":"n", "uid" : "u",)"
       R"("resourceVersion":"5","deletionTimestamp":"2026-01-02T03:04:05Z"},)"
       R"("spec":{"nodeName":"n1","y":1e},"status":{"phase":"Failed"}})",
       R"({"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5",)"
       R"("deletionTimestamp":"2026-01-02T03:04:05Z"},"spec":{"nodeName":"n1"},)"
       R"("status":{"phase":"Failed"}})"},
      {R"({"metadata":{"name":"a\"","uid":7,"uid":null},"spec":[{"nodeName":"n1"}]})",
       R"({"metadata":{"name":"a\""},"spec":{},"status":{}})"},
      {R"({"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{"nodeName":"n1","co)",
       R"({"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{"nodeName":"n1"},)"
       R"("status":{}})"},
      {R"({"metadata":{"name":"a","uid":"cut off)",
       R"({"metadata":{"name":"a"},"spec":{},"status":{}})"},
      {"", empty},
      {"[1]", empty},
      {"{", empty},
      {R"({"metadata")", empty},
  };
  for (const auto& [object, outline] : rows) EXPECT_EQ(OutlineOf(object), outline) << object;
  EXPECT_EQ(OutlineOfEvent(R"({"type":"MODIFIED","object":{"metadata":{"uid":"u"},"x":tru}})"),
            R"({"type":"MODIFIED","object":{"metadata":{"uid":"u"},"spec":{},"status":{}}})");
}

TEST(ObjectReader, OutlinesWhatIsTooLargeToParse) {
  const std::string large = R"({"metadata":{"name":"a"},"x":")" +
                            std::string(ObjectReader::kMaxParsedBytes, 'x') +
                            R"(","spec":{"nodeName":"n1"}})";
  ObjectReader reader;
  const auto read = reader.Read({large}, OutlineOf);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->problem, "expected an object of at most 16777216 bytes, found a larger one");
  EXPECT_EQ(simdjson::minify(read->object),
            R"({"metadata":{"name":"a"},"spec":{"nodeName":"n1"},"status":{}})");
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
