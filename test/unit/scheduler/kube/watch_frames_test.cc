#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/kube/watch/json_cut.h"

namespace tranche::kube {
namespace THIS_FILE {

struct Outcome {
  std::vector<std::string> frames;
  absl::Status status;
};

Outcome FeedInPieces(const std::vector<std::string>& pieces) {
  Outcome out;
  WatchFrames frames;
  for (const std::string& piece : pieces) {
    out.status = frames.Feed(piece, [&out](const JsonPiece& frame) {
      out.frames.emplace_back(frame.text);
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

TEST(WatchFrames, PassesOnTheErrorOfItsReader) {
  WatchFrames frames;
  int seen = 0;
  const absl::Status status = frames.Feed("{}{}", [&seen](const JsonPiece&) {
    ++seen;
    return absl::AbortedError("enough");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(seen, 1);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
