#include "scheduler/api/conditional.h"

#include <gtest/gtest.h>

namespace tranche {
namespace {

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

TEST(ConditionalTest, ReadersOfTheSameAnswerShareItsMemory) {
  SharedText pods;
  const http::Response first = pods.Respond("{\"pods\":[]}");
  EXPECT_EQ(pods.Respond("{\"pods\":[]}").shared, first.shared);
  const http::Response other = pods.Respond("{}");
  EXPECT_NE(other.shared, first.shared);
  EXPECT_EQ(other.text(), "{}");
  http::Request request;
  const http::Response tagged = Conditional(request, first);
  EXPECT_EQ(tagged.shared, first.shared);
  request.if_none_match = tagged.headers.at("ETag");
  EXPECT_EQ(Conditional(request, first).text(), "");
}

}  // namespace
}  // namespace tranche
