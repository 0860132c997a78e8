#include "scheduler/kube/watch_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche::kube {
namespace {

struct Outcome {
  std::vector<std::string> frames;
  absl::Status status;
};

Outcome FeedInPieces(const std::vector<std::string>& pieces) {
  Outcome out;
  WatchFrames frames;
  for (const std::string& piece : pieces) {
    out.status = frames.Feed(piece, [&out](std::string_view frame) {
      out.frames.emplace_back(frame);
      return absl::OkStatus();
    });
  }
  return out;
}

const std::string kTwoEvents = R"({"a":"} \" { \\","b":[{"c":"é"}]})"
                               "\n"
                               R"({"type":"BOOKMARK"})"
                               "\r\n \t";
const std::vector<std::string> kTheirFrames = {R"({"a":"} \" { \\","b":[{"c":"é"}]})",
                                               R"({"type":"BOOKMARK"})"};

TEST(WatchFrames, GivesTheSameFramesWhereverTheBytesAreCut) {
  for (std::size_t first = 0; first <= kTwoEvents.size(); ++first) {
    for (std::size_t second = first; second <= kTwoEvents.size(); ++second) {
      const Outcome out =
          FeedInPieces({kTwoEvents.substr(0, first), kTwoEvents.substr(first, second - first),
                        kTwoEvents.substr(second)});
      ASSERT_TRUE(out.status.ok()) << first << " " << second;
      ASSERT_EQ(out.frames, kTheirFrames) << first << " " << second;
    }
  }
}

TEST(WatchFrames, GivesSeveralFramesOfOnePieceInOrder) {
  EXPECT_EQ(FeedInPieces({"{}{\"b\":1}  {\"c\":2}"}).frames,
            (std::vector<std::string>{"{}", "{\"b\":1}", "{\"c\":2}"}));
}

TEST(WatchFrames, RefusesBytesThatAreNoObjectAndStaysBroken) {
  for (const char* text : {"<html>", "[1]", "null", "\"{}\"", "}", "{} x"}) {
    EXPECT_EQ(FeedInPieces({text}).status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(FeedInPieces({text, "{}"}).status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(WatchFrames, HoldsAFrameUpToTheLimitAndRefusesOneByteMore) {
  const std::string wrap = R"({"a":""})";
  const std::string largest(WatchFrames::kMaxFrameBytes - wrap.size(), 'x');
  EXPECT_EQ(FeedInPieces({R"({"a":")", largest, R"("})"}).frames.size(), 1u);
  EXPECT_EQ(FeedInPieces({R"({"a":")", largest, "x", R"("})"}).status.code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(WatchFrames, PassesOnTheErrorOfItsReader) {
  WatchFrames frames;
  int seen = 0;
  const absl::Status status = frames.Feed("{}{}", [&seen](std::string_view) {
    ++seen;
    return absl::AbortedError("enough");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace tranche::kube
