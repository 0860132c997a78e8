// The pieces of an answer to an API server; whole reviews are in app/admission_api_test.cc.
#include "scheduler/wire/admission_review.h"

#include <gtest/gtest.h>

#include <utility>

namespace tranche::wire {
namespace {

TEST(AdmissionReviewText, Base64HasPadding) {
  // RFC 4648 section 10.
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(Base64(bytes), text);
}

}  // namespace
}  // namespace tranche::wire
