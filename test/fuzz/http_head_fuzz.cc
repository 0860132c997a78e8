// The head of an HTTP request, cut into pieces: the outcome must not depend on where it was cut.
#include "scheduler/http/head.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  using Outcome = http::HeadScanner::Outcome;
  constexpr std::size_t kLimit = 512;
  const std::string text = fuzz::Padded(data, size);
  http::HeadScanner whole(kLimit);
  const Outcome expected = whole.Scan(text);
  http::HeadScanner pieces(kLimit);
  Outcome found = Outcome::kMore;
  for (std::size_t end = 1; end <= text.size() && found == Outcome::kMore; ++end) {
    found = pieces.Scan(std::string_view(text).substr(0, end));
  }
  TRANCHE_CHECK(text.empty() || found == expected);
  if (expected != Outcome::kComplete) return 0;
  TRANCHE_CHECK(whole.end() == pieces.end() && whole.begin() == pieces.begin());
  http::Head head;
  (void)http::ReadHead(std::string_view(text).substr(whole.begin(), whole.end() - whole.begin()),
                       head);
  return 0;
}
