#include "scheduler/http/head.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tranche::http {
namespace THIS_FILE {

using Outcome = HeadScanner::Outcome;

struct ScanCase {
  std::string bytes;
  std::size_t limit;
  Outcome outcome;
};

std::vector<ScanCase> ScanCases() {
  const std::string plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  return {
      {plain, 100, Outcome::kComplete},
      {plain, plain.size(), Outcome::kComplete},
      {plain, plain.size() - 1, Outcome::kTooLarge},
      {"\r\n\r\n" + plain, 100, Outcome::kComplete},
      {"\r\n\r\n" + plain, plain.size() + 3, Outcome::kTooLarge},
      {"GET / HTTP/1.1\r\nHost: a\r\n", 100, Outcome::kMore},
      {"", 100, Outcome::kMore},
      {"\r\n\r\n\r\n", 100, Outcome::kMore},
      {"GET / HTTP/1.1\nHost: a\n\n", 100, Outcome::kMalformed},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", 100, Outcome::kMalformed},
      {"GET / HTTP/1.1\r\n\nHost: a\r\n\r\n", 100, Outcome::kMalformed},
      {"\n", 100, Outcome::kMalformed},
      {std::string("\x16\x03\x01", 3), 100, Outcome::kMalformed},
      {std::string("\0", 1), 100, Outcome::kMalformed},
      {"GET / HTTP/1.1\r\nX: a\nb", 18, Outcome::kTooLarge},
  };
}

TEST(HeadScanner, EndsTheSameForEveryCutOfTheBytes) {
  for (const ScanCase& scan : ScanCases()) {
    HeadScanner whole(scan.limit);
    EXPECT_EQ(whole.Scan(scan.bytes), scan.outcome) << scan.bytes;
    for (std::size_t step = 1; step <= 3; ++step) {
      HeadScanner pieces(scan.limit);
      Outcome outcome = Outcome::kMore;
      for (std::size_t size = step; outcome == Outcome::kMore; size += step) {
        outcome = pieces.Scan(std::string_view(scan.bytes).substr(0, size));
        if (size >= scan.bytes.size()) break;
      }
      EXPECT_EQ(outcome, scan.outcome) << scan.bytes << " in steps of " << step;
      if (outcome == Outcome::kComplete) {
        EXPECT_EQ(pieces.begin(), whole.begin());
        EXPECT_EQ(pieces.end(), whole.end());
      }
    }
  }
}

TEST(HeadScanner, EndsAtTheFirstEmptyLineBehindTheRequestLine) {
  const std::string bytes = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nPOST";
  HeadScanner scanner(100);
  ASSERT_EQ(scanner.Scan(bytes), Outcome::kComplete);
  EXPECT_EQ(bytes.substr(scanner.begin(), scanner.end() - scanner.begin()),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
}

int StatusOf(std::string_view text) {
  Head head;
  const std::optional<Refusal> refusal = ReadHead(text, head);
  return refusal ? refusal->status : 200;
}

std::string GetWith(std::string_view fields) {
  return "GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n";
}
std::string PostWith(std::string_view fields) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

TEST(ReadHead, RefusesWhatTwoServersCouldReadInTwoWays) {
  const std::string with_nul = std::string("X: a\0b\r\n", 8);
  const struct {
    std::string text;
    int status;
  } cases[] = {
      {GetWith("Host: a\r\n"), 200},
      {GetWith("host:a:80\r\n"), 200},
      {GetWith("Host: [::1]:80\r\n"), 200},
      {GetWith("Host: a\r\nX-Empty:\r\n"), 200},
      {GetWith(""), 400},
      {GetWith("Host: a\r\nHost: a\r\n"), 400},
      {GetWith("Host: a b\r\n"), 400},
      {GetWith("Host: a,b\r\n"), 400},
      {GetWith("Host: a/b\r\n"), 400},
      {GetWith("Host : a\r\n"), 400},
      {GetWith("Host\t: a\r\n"), 400},
      {GetWith(" Host: a\r\n"), 400},
      {GetWith("Host: a\r\nX: b\r\n folded\r\n"), 400},
      {GetWith("Host: a\r\nX: b\r\n\tfolded\r\n"), 400},
      {GetWith("Host:\r\n folded\r\n"), 400},
      {GetWith("Host: a\r\nConnection: close;x\r\n"), 400},
      {GetWith("Host: a\r\nX: b\rc\r\n"), 400},
      {GetWith("Host: a\r\nnocolon\r\n"), 400},
      {GetWith("Host: a\r\n: empty name\r\n"), 400},
      {GetWith("Host: a\r\nX\x01: b\r\n"), 400},
      {GetWith("Host: a\r\nX: b\x7f\r\n"), 400},
      {GetWith("Host: a\r\n" + with_nul), 400},
      {GetWith("Host: a\r\nAuthorization: x\r\nAuthorization: y\r\n"), 400},
      {GetWith("Host: a\r\nTranche-Authorization: x\r\n"), 200},
      {GetWith("Host: a\r\nTranche-Authorization: x\r\ntranche-authorization: x\r\n"), 400},
      {GetWith("Host: a\r\nAuthorization: x\r\nTranche-Authorization: x\r\n"), 200},
      {GetWith("Host: a\r\nAuthorization: x\r\nTranche-Authorization: y\r\n"), 400},
      {GetWith("Host: a\r\nTranche-Authorization: y\r\nAuthorization:\r\n"), 400},
      {GetWith("Host: a\r\nExpect: cake\r\n"), 417},
      {PostWith("Content-Length: 0\r\n"), 200},
      {PostWith("Content-Length:   12  \r\n"), 200},
      {PostWith(""), 411},
      {PostWith("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
      {PostWith("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
      {PostWith("Content-Length: 5, 5\r\n"), 400},
      {PostWith("Content-Length: 5,\r\n"), 400},
      {PostWith("Content-Length: +5\r\n"), 400},
      {PostWith("Content-Length: -5\r\n"), 400},
      {PostWith("Content-Length: 0x5\r\n"), 400},
      {PostWith("Content-Length: 5 5\r\n"), 400},
      {PostWith("Content-Length:\r\n"), 400},
      {PostWith("Content-Length: 18446744073709551616\r\n"), 400},
      {PostWith("Transfer-Encoding: chunked\r\n"), 411},
      {PostWith("Transfer-Encoding: CHUNKED\r\n"), 411},
      {PostWith("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400},
      {PostWith("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n"), 400},
      {PostWith("Transfer-Encoding: gzip\r\n"), 400},
      {PostWith("Transfer-Encoding: gzip, chunked\r\n"), 400},
      {PostWith("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {PostWith("Transfer-Encoding:\x0b"
                "chunked\r\n"),
       400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.0\r\n\r\n", 200},
      {"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"GET / b HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/2.0 \r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/11\r\nHost: a\r\n\r\n", 400},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /\r\nHost: a\r\n\r\n", 400},
      {"GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /#f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET nodes HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET http:///nodes HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 200},
      {"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /?a=%0 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
  };
  for (const auto& [text, status] : cases) EXPECT_EQ(StatusOf(text), status) << text;
}

TEST(ReadHead, DecodesPathAndQuery) {
  Head head;
  ASSERT_FALSE(
      ReadHead("GET /api/v1/explain/a%2Fb+c?limit=5&after=x%26y+z&flag&&k=1&k=2 "
               "HTTP/1.1\r\nHost: a\r\nauthorization:  Bearer t \r\n"
               "If-None-Match: \"a\"\r\nif-none-match: \"b\"\r\n"
               "Accept-Encoding: br\r\naccept-encoding: gzip;q=0\r\n\r\n",
               head));
  EXPECT_EQ(head.request.method, "GET");
  EXPECT_EQ(head.request.path, "/api/v1/explain/a/b+c");
  EXPECT_EQ(head.request.query, (std::map<std::string, std::string>{
                                    {"limit", "5"}, {"after", "x&y z"}, {"flag", ""}, {"k", "2"}}));
  EXPECT_EQ(head.request.authorization, "Bearer t");
  EXPECT_EQ(head.request.if_none_match, "\"a\",\"b\"");
  EXPECT_EQ(head.request.accept_encoding, "br,gzip;q=0");
}

TEST(ReadHead, TakesAnAuthorizationThatAProxyLeavesAlone) {
  Head head;
  ASSERT_FALSE(ReadHead(GetWith("Host: a\r\ntranche-Authorization:  Bearer t \r\n"), head));
  EXPECT_EQ(head.request.authorization, "Bearer t");
}

TEST(ReadHead, TakesTheAbsoluteFormThatProxiesSend) {
  for (const auto& [target, path] :
       {std::pair{"http://host:1/a/b?c=d", "/a/b"}, std::pair{"HTTP://host", "/"},
        std::pair{"https://h?c=d", "/"}}) {
    Head head;
    ASSERT_FALSE(ReadHead("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n", head));
    EXPECT_EQ(head.request.path, path) << target;
  }
}

TEST(ReadHead, KeepsTheConnectionAsVersionAndConnectionFieldSay) {
  const struct {
    std::string_view text;
    bool keep_alive;
  } cases[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, CLOSE\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
  };
  for (const auto& [text, keep_alive] : cases) {
    Head head;
    ASSERT_FALSE(ReadHead(text, head));
    EXPECT_EQ(head.keep_alive, keep_alive) << text;
  }
}

TEST(ReadHead, TellsRequestsOfOtherSitesPages) {
  const struct {
    const char* fields;
    bool cross_site;
  } rows[] = {
      {"Host: a:80\r\n", false},
      {"Host: a:80\r\nOrigin: http://a:80\r\n", false},
      {"Host: a:80\r\nOrigin: http://A:80\r\n", false},
      {"Host: a:80\r\nOrigin: http://a\r\n", true},
      {"Host: a:80\r\nOrigin: http://evil.example\r\n", true},
      {"Origin: null\r\nHost: a:80\r\n", true},
      {"Host: a:80\r\nSec-Fetch-Site: same-origin\r\nOrigin: https://outside\r\n", false},
      {"Host: a:80\r\nsec-fetch-site: none\r\n", false},
      {"Host: a:80\r\nSec-Fetch-Site: cross-site\r\n", true},
      {"Host: a:80\r\nSec-Fetch-Site: same-site\r\nOrigin: http://a:80\r\n", true},
  };
  for (const auto& [fields, cross_site] : rows) {
    Head head;
    EXPECT_FALSE(ReadHead("GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n", head)) << fields;
    EXPECT_EQ(head.request.cross_site, cross_site) << fields;
    EXPECT_EQ(head.request.host, "a:80") << fields;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::http
