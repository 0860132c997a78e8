// Cuts the body of a watch into its JSON objects, however the bytes arrive.
//
// Frames follow JSON values, not chunks or lines: a piece may hold half a value or several, with
// any white space between them. Only where a value ends is found here (brackets and strings); the
// JSON parser judges the inside. Anything but an object at the top level is an error, and after an
// error the stream stays broken: skipping would lose an event without trace.
//
// Thread rule: one thread at a time. Source: kube-client-protocol section 6.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tranche::kube {

class WatchFrames {
 public:
  static constexpr std::size_t kMaxFrameBytes = 16 * 1024 * 1024;

  // Calls `frame` with each object that `bytes` completes, in order; the view dies with the call.
  // Errors: InvalidArgument for bytes between objects, ResourceExhausted for a frame over
  // kMaxFrameBytes, or what `frame` returned; every later call returns the same error.
  // Cost: linear in the bytes; a frame is copied only when it spans calls.
  absl::Status Feed(std::string_view bytes,
                    const std::function<absl::Status(std::string_view)>& frame);

  // False while part of an object has been read.
  bool between_frames() const { return depth_ == 0; }

 private:
  // Where the current object ends in `bytes` (one past its last brace), scanning from `start`;
  // npos when it goes on.
  std::size_t FindEnd(std::string_view bytes, std::size_t start);
  absl::Status Finish(std::string_view piece,
                      const std::function<absl::Status(std::string_view)>& frame);

  absl::Status broken_;
  std::string partial_;  // the frame so far, from earlier calls
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace tranche::kube
