// An Authorization header: what is taken for a token is one that could stand in a header again, and
// that has ended from the moment on that it says.
#include "scheduler/server/viewers/shown_token.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  const auto token = ReadShownToken(fuzz::Padded(data, size));
  if (!token) return 0;
  TRANCHE_CHECK(!token->text.empty() && token->text.size() <= kMostTokenBytes);
  for (const char c : token->text) TRANCHE_CHECK(c > ' ' && c < '\x7f');
  if (token->ends) TRANCHE_CHECK(!token->GoodAt(*token->ends));
  const auto again = ReadShownToken("bearer " + token->text);
  TRANCHE_CHECK(again && again->ends == token->ends && again->begins == token->begins);
  return 0;
}
