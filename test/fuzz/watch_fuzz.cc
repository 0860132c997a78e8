// The body of a watch, cut into pieces: the frames must not depend on where it was cut.
#include <vector>

#include "scheduler/kube/watch/json_cut.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 7;
  const std::string text = fuzz::Padded(data + 1, size - 1);
  const auto frames_of = [&](std::size_t step) {
    kube::WatchFrames frames;
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size(); at += step) {
      const auto status = frames.Feed(std::string_view(text).substr(at, step),
                                      [&found](const kube::JsonPiece& frame) {
                                        found.emplace_back(frame.text);
                                        return absl::OkStatus();
                                      });
      if (!status.ok()) break;
    }
    return found;
  };
  TRANCHE_CHECK(frames_of(piece) == frames_of(text.size() + 1));
  return 0;
}
