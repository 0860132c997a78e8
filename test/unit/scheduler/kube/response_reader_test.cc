#include "scheduler/kube/transport/response_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche::kube {
namespace THIS_FILE {

struct Reading {
  absl::Status status;
  std::string body;
  bool done = false;
  int code = 0;
};

Reading Read(const std::string& text, std::size_t piece, bool closed) {
  ResponseReader reader;
  Reading out;
  for (std::size_t at = 0; at < text.size() && out.status.ok(); at += piece) {
    out.status = reader.Feed(text.substr(at, piece));
    out.body += reader.TakeBody();
  }
  if (closed && out.status.ok() && !reader.done()) out.status = reader.FeedEnd();
  out.done = reader.done();
  if (reader.head_done()) out.code = reader.head().status;
  return out;
}

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n"
    "0\r\n\r\n";

TEST(ResponseReader, ReadsAChunkedBodyInPiecesOfEverySize) {
  for (std::size_t piece = 1; piece <= kChunked.size(); ++piece) {
    const Reading out = Read(kChunked, piece, false);
    ASSERT_TRUE(out.status.ok()) << piece << " " << out.status;
    ASSERT_EQ(out.body, "hello, world") << piece;
    ASSERT_TRUE(out.done) << piece;
  }
}

TEST(ResponseReader, CallsABodyCutShortAnErrorAtEveryByte) {
  const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
  for (const std::string& whole : {kChunked, sized}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Reading out = Read(whole.substr(0, length), 7, true);
      ASSERT_FALSE(out.status.ok()) << length;
      ASSERT_FALSE(out.done) << length;
    }
  }
}

TEST(ResponseReader, ReadsAnAnswerWithoutLengthUntilTheEnd) {
  const Reading out = Read("HTTP/1.1 502 Bad\r\n\r\n<html>no</html>", 4, true);
  EXPECT_TRUE(out.done);
  EXPECT_EQ(out.code, 502);
  EXPECT_EQ(out.body, "<html>no</html>");
}

TEST(ResponseReader, ReadsBodiesLargerThanItsOwnBuffers) {
  const std::string body(1'000'000, 'b');
  EXPECT_EQ(Read("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + body, 100'000, false).body,
            body);
}

TEST(ResponseReader, RefusesWhatIsNoResponseAndHeadersWithoutEnd) {
  EXPECT_FALSE(Read("GET / HTTP/1.1\r\n\r\n", 100, false).status.ok());
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'a'), 1000, false).status.ok());
  EXPECT_FALSE(
      Read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(200'000, 'a'),
           1000, false)
          .status.ok());
}

TEST(ResponseReader, ReadsRetryAfterOnlyAsWholeSeconds) {
  const auto seconds = [](const std::string& value) {
    ResponseReader reader;
    EXPECT_TRUE(reader.Feed("HTTP/1.1 429 x\r\nRetry-After: " + value + "\r\n\r\n").ok());
    return reader.head().retry_after_seconds;
  };
  EXPECT_EQ(seconds("7"), 7);
  EXPECT_EQ(seconds("999999"), 3600);
  EXPECT_EQ(seconds("-1"), std::nullopt);
  EXPECT_EQ(seconds("Wed, 21 Oct 2026 07:28:00 GMT"), std::nullopt);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
