// The pieces of an answer to an API server; whole reviews are in api/admission_api_test.cc.
#include "scheduler/wire/protocol/admission_review.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tranche::wire {
namespace THIS_FILE {

TEST(AdmissionReviewText, AnAnswerHasItsPatchInBase64) {
  AdmissionAnswer answer;
  answer.warnings = {"a \"word\""};
  JsonPatch patch;
  patch.Add("/spec/a~1b", "x");
  patch.Remove("/spec/c");
  EXPECT_EQ(patch.text(),
            R"([{"op":"add","path":"/spec/a~1b","value":"x"},{"op":"remove","path":"/spec/c"}])");
  answer.patch = "foob";
  EXPECT_EQ(EncodeAdmissionReview("u1", answer),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{)"
            R"("uid":"u1","allowed":true,"warnings":["a \"word\""],)"
            R"("patchType":"JSONPatch","patch":"Zm9vYg=="}})");
  answer.code = 403;
  answer.message = "no";
  answer.warnings.clear();
  EXPECT_EQ(EncodeAdmissionReview("u1", answer),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{)"
            R"("uid":"u1","allowed":false,"status":{"code":403,"message":"no"}}})");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
