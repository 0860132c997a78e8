// Which headers can be tokens, and what a token says of its own time.
#include "scheduler/server/viewers/shown_token.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "test/unit/scheduler/server/viewers/tokens.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::seconds;
using std::chrono::sys_seconds;

TEST(ShownToken, WhatCanBeOne) {
  const struct {
    std::string header;
    std::string token;  // "": none
  } rows[] = {
      {"", ""},
      {"Bearer", ""},
      {"Bearer ", ""},
      {"Basic YTpi", ""},
      {"Bearer abcdef.0123456789abcdef", "abcdef.0123456789abcdef"},  // of bootstrapping
      {"bEARER sha256~AbC-_x", "sha256~AbC-_x"},                      // of OpenShift
      {"Bearer k8s-aws-v1.aHR0cHM6", "k8s-aws-v1.aHR0cHM6"},          // of EKS
      {"Bearer a b", ""},
      {"Bearer  a", ""},
      {"Bearer a\tb", ""},
      {"Bearer \xff\xfe", ""},
      {"Bearer a,Bearer b", ""},
      {"Bearer " + std::string(kMostTokenBytes, 'x'), std::string(kMostTokenBytes, 'x')},
      {"Bearer " + std::string(100'000, 'x'), ""},
      {"Bearer " + Jwt(R"({"exp":5})"), Jwt(R"({"exp":5})")},
      {"Bearer eyJ", ""},
      {"Bearer eyJhbGciOiJSUzI1NiJ9.e30", ""},      // two parts
      {"Bearer eyJhbGciOiJSUzI1NiJ9.e30.", ""},     // nobody has signed it
      {"Bearer eyJhbGciOiJSUzI1NiJ9.e30.x.y", ""},  // four parts
      {"Bearer eyJhbGciOiJSUzI1NiJ9.e!0.sig", ""},  // no base64
      {"Bearer " + Jwt("[1]"), ""},                 // claims are an object
      {"Bearer " + Jwt("{\"exp\":"), ""},
      {"Bearer " + Jwt("{}", R"({"alg":"none"})"), ""},
      {"Bearer " + Jwt("{}", R"({"typ":"JWT"})"), ""},
      {"Bearer " + Jwt(std::string(5'000, '[')), ""},  // deep
  };
  for (const auto& row : rows) {
    const auto found = ReadShownToken(row.header);
    ASSERT_EQ(found.has_value(), !row.token.empty()) << row.header.substr(0, 80);
    EXPECT_EQ(found ? found->text : "", row.token);
  }
}

TEST(ShownToken, ItsTime) {
  const auto read = [](const std::string& claims) {
    return *ReadShownToken("Bearer " + Jwt(claims));
  };
  const ShownToken both = read(R"({"exp":200,"nbf":100})");
  EXPECT_FALSE(both.GoodAt(sys_seconds(seconds(99))));
  EXPECT_TRUE(both.GoodAt(sys_seconds(seconds(100))));
  EXPECT_TRUE(both.GoodAt(sys_seconds(seconds(199))));
  EXPECT_FALSE(both.GoodAt(sys_seconds(seconds(200))));
  EXPECT_TRUE(read("{}").GoodAt(sys_seconds(seconds(0))));
  EXPECT_TRUE(ReadShownToken("Bearer opaque")->GoodAt(sys_seconds(seconds(0))));
  // Of any size that JSON has.
  EXPECT_FALSE(read(R"({"exp":-9223372036854775808})").GoodAt(sys_seconds(seconds(1))));
  EXPECT_TRUE(read(R"({"exp":9223372036854775807})").GoodAt(sys_seconds(seconds(1))));
}

TEST(ShownToken, Digest) {
  // FIPS 180-2, appendix B.1.
  const TokenDigest abc = DigestOf("abc");
  EXPECT_EQ(abc[0], 0xba);
  EXPECT_EQ(abc[1], 0x78);
  EXPECT_EQ(abc[31], 0xad);
  EXPECT_NE(DigestOf("abd"), abc);
}

}  // namespace THIS_FILE
}  // namespace tranche
