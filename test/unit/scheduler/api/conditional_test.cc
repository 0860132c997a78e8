#include "scheduler/api/conditional.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

TEST(ConditionalTest, TagsAreFoundInTheHeaderAsBrowsersAndProxiesWriteIt) {
  struct Row {
    const char* header;
    bool named;
  };
  for (const Row& row :
       {Row{"\"b\"", true}, Row{"W/\"b\"", true}, Row{"\"a\", \"b\"", true}, Row{"*", true},
        Row{" \"a\" ,\tW/\"b\" ", true}, Row{"", false}, Row{"\"a\"", false}, Row{"b", false},
        Row{"\"b", false}, Row{",,", false}, Row{"W/", false}}) {
    EXPECT_EQ(NamesTag(row.header, "\"b\""), row.named) << row.header;
  }
}

http::Response Answer(const std::string& body) {
  http::Response response;
  response.body = body;
  return response;
}

TEST(ConditionalTest, WhoHasTheBodyAlreadyGets304WithoutIt) {
  http::Request request;
  const http::Response first = Conditional(request, Answer("{}"));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "{}");
  EXPECT_EQ(first.headers.at("Cache-Control"), "no-cache");
  request.if_none_match = first.headers.at("ETag");
  const http::Response again = Conditional(request, Answer("{}"));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(again.headers.at("ETag"), request.if_none_match);
  const http::Response other = Conditional(request, Answer("[]"));
  EXPECT_EQ(other.status, 200);
  EXPECT_EQ(other.body, "[]");
  EXPECT_NE(other.headers.at("ETag"), request.if_none_match);
}

TEST(ConditionalTest, OnlyAnswersThatAreGoodHaveTags) {
  http::Response refusal = Answer("no");
  refusal.status = 404;
  http::Request request;
  request.if_none_match = "*";
  const http::Response passed = Conditional(request, refusal);
  EXPECT_EQ(passed.status, 404);
  EXPECT_EQ(passed.body, "no");
  EXPECT_TRUE(passed.headers.empty());
}

TEST(ConditionalTest, AGivenTagIsKept) {
  http::Response page = Answer("x");
  page.headers["ETag"] = "\"page\"";
  EXPECT_EQ(Conditional({}, page).headers.at("ETag"), "\"page\"");
}

http::Request Taking(const char* accept_encoding, const std::string& if_none_match = "") {
  http::Request request;
  request.accept_encoding = accept_encoding;
  request.if_none_match = if_none_match;
  return request;
}

TEST(ConditionalTest, BytesAreSavedWhereThatIsAskedForAndWorthwhile) {
  const std::string large(5'000, 'x');
  const struct {
    const char* accept;
    std::string body;
    bool compressed;
  } rows[] = {
      {"gzip", large, true},
      {"", large, false},
      {"gzip;q=0", large, false},
      {"br", large, false},
      {"gzip", "{}", false},
      {"gzip", large.substr(0, 1'023), false},
      {"gzip", large.substr(0, 1'024), true},
  };
  for (const auto& [accept, body, compressed] : rows) {
    const http::Response plain = Conditional({}, Answer(body));
    http::Response got = Conditional(Taking(accept), Answer(body));
    EXPECT_EQ(got.headers.contains("Content-Encoding"), compressed) << accept << body.size();
    EXPECT_EQ(got.text() != body, compressed);
    EXPECT_EQ(got.headers["Vary"], "Accept-Encoding");
    // Two forms of a document are two things to a cache; who has either has the document.
    EXPECT_EQ(got.headers["ETag"] != plain.headers.at("ETag"), compressed);
    for (const std::string& tag : {got.headers["ETag"], plain.headers.at("ETag")}) {
      EXPECT_EQ(Conditional(Taking(accept, tag), Answer(body)).status, 304);
    }
  }
}

TEST(ConditionalTest, ReadersOfTheSameAnswerShareItsMemory) {
  SharedText pods;
  const http::Response first = pods.Respond({}, Answer("{\"pods\":[]}"));
  EXPECT_EQ(pods.Respond({}, Answer("{\"pods\":[]}")).shared, first.shared);
  const http::Response other = pods.Respond({}, Answer("{}"));
  EXPECT_NE(other.shared, first.shared);
  EXPECT_EQ(other.text(), "{}");
  EXPECT_EQ(pods.Respond(Taking("", first.headers.at("ETag")), Answer("{\"pods\":[]}")).text(), "");
}

TEST(ConditionalTest, AVersionIsCompressedOnce) {
  SharedText pods;
  const std::string before(5'000, 'x');
  const std::string after(5'000, 'y');
  const http::Response first = pods.Respond(Taking("gzip"), Answer(before));
  const std::string bytes = first.text();
  const http::Response second = pods.Respond(Taking("gzip"), Answer(before));
  EXPECT_EQ(second.shared, first.shared);
  EXPECT_EQ(pods.Respond({}, Answer(before)).text(), before);
  const http::Response changed = pods.Respond(Taking("gzip"), Answer(after));
  EXPECT_NE(changed.text(), bytes);
  EXPECT_NE(changed.headers.at("ETag"), first.headers.at("ETag"));
  EXPECT_EQ(first.text(), bytes) << "an answer that is being sent stays what it was";
}

}  // namespace THIS_FILE
}  // namespace tranche
