// The head of a request (request line and header fields): finding its end, and reading it. The end
// is found and the bytes are counted here; Boost.Beast splits the fields of a head that is whole.
//
// Strict on purpose: what two servers could read in two ways is refused, so that no proxy in front
// of us and we ever disagree where a request ends. Values, no sockets; one thread at a time.
// Source: RFC 9112 sections 2-6, RFC 9110 sections 7.2, 8.6 and 10.1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/http/server.h"

namespace tranche::http {

// Finds the end of a head in bytes that arrive in pieces. The outcome depends on the bytes alone,
// never on how they were cut. Every byte is looked at once.
class HeadScanner {
 public:
  enum class Outcome : uint8_t { kMore, kComplete, kTooLarge, kMalformed };

  explicit HeadScanner(std::size_t limit) : limit_(limit) {}

  // `bytes` is all that arrived of the request so far. Empty lines before the request line are
  // skipped, but count towards the limit.
  Outcome Scan(std::string_view bytes);
  // After kComplete: where the request line starts, and the offset behind the empty line.
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }

 private:
  std::size_t limit_;
  std::size_t begin_ = 0;
  std::size_t line_ = 0;      // start of the line being scanned
  std::size_t position_ = 0;  // everything before it was looked at
  std::size_t end_ = 0;
};

struct Head {
  Request request;  // all but the body
  bool keep_alive = true;
  bool expects_continue = false;
  std::optional<uint64_t> content_length;
};

// Why the server answers by itself. The connection is closed after it.
struct Refusal {
  int status = 400;
  std::string why;
};

// Reads a head as delimited by HeadScanner. Returns the refusal, if any; `head` is then
// unspecified.
std::optional<Refusal> ReadHead(std::string_view text, Head& head);

}  // namespace tranche::http
