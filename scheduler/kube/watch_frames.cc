#include "scheduler/kube/watch_frames.h"

#include <fmt/format.h>

namespace tranche::kube {
namespace {

// A buffer grown by one huge object is given back; ordinary ones stay below.
constexpr std::size_t kKeptCapacity = 1024 * 1024;

bool IsSpace(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

}  // namespace

std::size_t WatchFrames::FindEnd(std::string_view bytes, std::size_t start) {
  for (std::size_t i = start; i < bytes.size(); ++i) {
    const char byte = bytes[i];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (byte == '\\') {
        escaped_ = true;
      } else if (byte == '"') {
        in_string_ = false;
      }
      continue;
    }
    switch (byte) {
      case '"':
        in_string_ = true;
        break;
      case '{':
      case '[':
        ++depth_;
        break;
      case '}':
      case ']':
        if (--depth_ == 0) return i + 1;
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

absl::Status WatchFrames::Finish(std::string_view piece,
                                 const std::function<absl::Status(std::string_view)>& frame) {
  if (partial_.empty()) return frame(piece);
  partial_.append(piece);
  absl::Status status = frame(partial_);
  partial_.clear();
  if (partial_.capacity() > kKeptCapacity) partial_ = std::string();
  return status;
}

absl::Status WatchFrames::Feed(std::string_view bytes,
                               const std::function<absl::Status(std::string_view)>& frame) {
  std::size_t at = 0;
  while (broken_.ok() && at < bytes.size()) {
    if (depth_ == 0 && IsSpace(bytes[at])) {
      ++at;
      continue;
    }
    if (depth_ == 0 && bytes[at] != '{') {
      broken_ = absl::InvalidArgumentError(
          fmt::format("expected a JSON object, found byte 0x{:02x} between watch events",
                      static_cast<unsigned>(static_cast<unsigned char>(bytes[at]))));
      break;
    }
    const std::size_t end = FindEnd(bytes, at);
    const bool complete = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(at, complete ? end - at : end);
    if (partial_.size() + piece.size() > kMaxFrameBytes) {
      broken_ = absl::ResourceExhaustedError(fmt::format(
          "expected a watch event of at most {} bytes, found a larger one", kMaxFrameBytes));
    } else if (complete) {
      broken_ = Finish(piece, frame);
      at = end;
    } else {
      partial_.append(piece);
      at = bytes.size();
    }
  }
  return broken_;
}

}  // namespace tranche::kube
