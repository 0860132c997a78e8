// Reviews of edits: what is edited, whether it changes anything, and what its editor agrees to.
#include "scheduler/wire/protocol/edit_review.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

using testing::HasSubstr;

std::string Quota(const std::string& spec, const std::string& metadata = R"("name":"team-a")") {
  return fmt::format(R"({{"kind":"GPUQuota","metadata":{{{}}},"spec":{}}})", metadata, spec);
}
std::string Agreeing(const std::string& value) {
  return fmt::format(R"("name":"q","annotations":{{"tranche.dev/accept-evictions":{}}})", value);
}
std::string Review(const std::string& request) {
  return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",)"
         R"("kind":{"group":"tranche.dev","version":"v1alpha1","kind":"GPUQuota"},)" +
         request + "}}";
}
absl::StatusOr<std::optional<EditAsk>> Read(const std::string& text) {
  static Parser parser;
  return ReadEditReview(*parser.Parse(text));
}

TEST(EditReviewTest, SaysWhatIsEdited) {
  const std::string quota = Quota(R"({"a":1})");
  struct Row {
    const char* what;
    std::string request;
    std::optional<EditAsk> ask;
  };
  const Row rows[] = {
      {"comes", R"("operation":"CREATE","object":)" + quota,
       EditAsk{"u", "GPUQuota", "team-a", quota}},
      {"changes", R"("operation":"UPDATE","object":)" + quota + R"(,"oldObject":)" + Quota("{}"),
       EditAsk{"u", "GPUQuota", "team-a", quota}},
      {"changes in nothing that counts",
       R"("operation":"UPDATE","object":)" + quota + R"(,"oldObject":)" +
           Quota(R"({ "a" : 1 })", R"("name":"team-a","labels":{"x":"y"})"),
       EditAsk{"u", "GPUQuota", "team-a", quota, false}},
      {"goes", R"("operation":"DELETE","object":null,"oldObject":)" + quota,
       EditAsk{"u", "GPUQuota", "team-a", ""}},
      {"agrees", R"("operation":"DELETE","oldObject":)" + Quota("{}", Agreeing("\"12\"")),
       EditAsk{"u", "GPUQuota", "q", "", true, 12}},
      {"another verb", R"("operation":"CONNECT")", std::nullopt},
      {"a status", R"("operation":"UPDATE","subResource":"status","object":)" + quota,
       std::nullopt},
      {"no name yet", R"("operation":"CREATE","object":)" + Quota("{}", R"("generateName":"q-")"),
       std::nullopt},
  };
  for (const Row& row : rows) {
    const auto ask = Read(Review(row.request));
    ASSERT_TRUE(ask.ok()) << row.what << ask.status();
    ASSERT_EQ(ask->has_value(), row.ask.has_value()) << row.what;
    if (!row.ask) continue;
    EXPECT_EQ((*ask)->uid, row.ask->uid) << row.what;
    EXPECT_EQ((*ask)->kind, row.ask->kind) << row.what;
    EXPECT_EQ((*ask)->name, row.ask->name) << row.what;
    EXPECT_EQ((*ask)->json, row.ask->json) << row.what;
    EXPECT_EQ((*ask)->changes, row.ask->changes) << row.what;
    EXPECT_EQ((*ask)->accepted, row.ask->accepted) << row.what;
  }
}

TEST(EditReviewTest, SaysWhoEdits) {
  const std::string quota = Quota(R"({"a":1})");
  const std::string alice = R"("userInfo":{"username":"alice"},)";
  struct Row {
    std::string request;
    const char* user;
    const char* spec;
    bool dry_run;
  };
  const Row rows[] = {
      {alice + R"("operation":"CREATE","object":)" + quota, "alice", R"({"a":1})", false},
      {alice + R"("operation":"UPDATE","dryRun":true,"oldObject":)" + Quota("{}") +
           R"(,"object":)" + quota,
       "alice", R"({"a":1})", true},
      {R"("operation":"DELETE","oldObject":)" + quota, "", "", false},
  };
  for (const Row& row : rows) {
    const auto ask = Read(Review(row.request));
    ASSERT_TRUE(ask.ok() && *ask) << row.request << ask.status();
    EXPECT_EQ((*ask)->user, row.user) << row.request;
    EXPECT_EQ((*ask)->spec, row.spec) << row.request;
    EXPECT_EQ((*ask)->dry_run, row.dry_run) << row.request;
  }
}

TEST(EditReviewTest, ANumberThatIsNoneAgreesToNothing) {
  for (const char* value :
       {"\"\"", "\"all\"", "\"-3\"", "\"3 pods\"", "3", "\"99999999999999999999\""}) {
    const auto ask =
        Read(Review(R"("operation":"DELETE","oldObject":)" + Quota("{}", Agreeing(value))));
    ASSERT_TRUE(ask.ok()) << value;
    EXPECT_EQ((*ask)->accepted, 0) << value;
  }
}

TEST(EditReviewTest, WhatIsNoReviewIsNamed) {
  const std::pair<std::string, const char*> rows[] = {
      {"{}", "expected admission.k8s.io/v1 AdmissionReview"},
      {Review(R"("operation":"CREATE")"), "expected object, found nothing, in request.object"},
      {Review(R"("operation":"DELETE","object":{})"),
       "expected object, found nothing, in request.oldObject"},
      {Review(R"("operation":"CREATE","object":{"metadata":{"name":"x"}})"),
       "expected a text, found none, in object.kind"},
      {Review(R"("operation":"CREATE","object":{"kind":"GPUQuota","metadata":3})"), "metadata"},
  };
  for (const auto& [text, error] : rows) {
    const auto ask = Read(text);
    ASSERT_FALSE(ask.ok()) << text;
    EXPECT_THAT(std::string(ask.status().message()), HasSubstr(error)) << text;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
