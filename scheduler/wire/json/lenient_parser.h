// Reads documents that come from an API server, which takes more from its users than we take from
// ours: any depth (managed fields of other managers, opaque parameters) and numbers of any size.
//
// A text that Parser refuses is tamed and parsed once more: what is nested deeper than kMaxDepth
// becomes null, and a number beyond 64 bits or a double becomes text. No field that is read lies
// that deep, and a reader that expects a number refuses a text. So what stands in a part that
// nobody reads costs nothing, and nothing that is read changes its meaning.
//
// One thread at a time. Cost: that of Parser; a second pass over a text that was refused. Memory:
// about 14 bytes a byte of the largest text while it is used; of one over 1 MiB it is given back
// with the next Parse or Rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

class LenientParser {
 public:
  // As Parser::Parse. Errors: InvalidArgument for what is no JSON however it is read.
  absl::StatusOr<Element> Parse(std::string_view text, Padding padding = Padding::kNone);
  // Gives back what a large document took; its elements die.
  void Rest();

 private:
  Parser kept_;
  std::optional<Parser> large_;
  std::string tamed_;
};

// `text` as a second try reads it (see above). Text that is no JSON stays none.
std::string Tamed(std::string_view text);

}  // namespace tranche::wire
