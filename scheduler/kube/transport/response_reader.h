// One HTTP/1.1 response, fed with bytes as they arrive and giving its body in pieces.
//
// Thread rule: one thread at a time. Limits: kMaxHeaderBytes for the header and for any chunk
// header; the body is bounded by the collector of the pieces.
#pragma once

#include <array>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tranche::kube {

struct ResponseHead {
  int status = 0;
  bool keep_alive = false;
  std::optional<int64_t> retry_after_seconds;  // whole seconds, at most an hour
  std::optional<std::chrono::sys_seconds> date;
  std::vector<std::string> warnings;
};

class ResponseReader {
 public:
  static constexpr std::size_t kMaxHeaderBytes = 64 * 1024;

  ResponseReader();

  // Takes more bytes from the connection. Errors: InvalidArgument when they are no HTTP response.
  absl::Status Feed(std::string_view bytes);
  // The peer closed. Errors: DataLoss when the response was not complete.
  absl::Status FeedEnd();

  bool head_done() const { return parser_.is_header_done(); }
  bool done() const { return parser_.is_done(); }
  // Any byte of a response was seen.
  bool got_some() const { return got_some_; }
  // Bytes behind the end of the response are left over: the connection cannot be used again.
  bool has_excess() const { return done() && !unread_.empty(); }

  // Requires: head_done().
  ResponseHead head() const;
  // The body bytes decoded since the last call.
  std::string TakeBody();

 private:
  absl::Status Parse();

  boost::beast::http::response_parser<boost::beast::http::buffer_body> parser_;
  std::string unread_;
  std::string body_;
  std::array<char, 16 * 1024> piece_;
  bool got_some_ = false;
};

}  // namespace tranche::kube
