#include "scheduler/kube/transport/response_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>

#include "scheduler/kube/transport/server_clock.h"

namespace tranche::kube {
namespace {

namespace http = boost::beast::http;

constexpr int64_t kLongestRetryAfterSeconds = 3600;

absl::Status Malformed(const boost::system::error_code& error) {
  return absl::InvalidArgumentError(
      fmt::format("expected an HTTP response, found: {}", error.message()));
}

// Only whole seconds are read; the API server sends nothing else.
std::optional<int64_t> ParseSeconds(std::string_view text) {
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::min(seconds, kLongestRetryAfterSeconds);
}

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

ResponseReader::ResponseReader() {
  parser_.header_limit(kMaxHeaderBytes);
  parser_.body_limit(boost::none);
}

absl::Status ResponseReader::Feed(std::string_view bytes) {
  got_some_ = got_some_ || !bytes.empty();
  unread_.append(bytes);
  return Parse();
}

absl::Status ResponseReader::Parse() {
  std::size_t used = 0;
  while (!parser_.is_done() && used < unread_.size()) {
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    parser_.get().body().more = true;
    boost::system::error_code error;
    const std::size_t step =
        parser_.put(boost::asio::buffer(unread_.data() + used, unread_.size() - used), error);
    used += step;
    body_.append(piece_.data(), piece_.size() - parser_.get().body().size);
    if (error == http::error::need_more) {
      if (unread_.size() - used > kMaxHeaderBytes) return Malformed(error);
      break;
    }
    if (error && error != http::error::need_buffer) return Malformed(error);
  }
  unread_.erase(0, used);
  return absl::OkStatus();
}

absl::Status ResponseReader::FeedEnd() {
  boost::system::error_code error;
  if (parser_.got_some()) parser_.put_eof(error);
  if (!error && parser_.is_done()) return absl::OkStatus();
  return absl::DataLossError(got_some_ ? "expected a complete response, found it cut short"
                                       : "expected a response, found the connection closed");
}

ResponseHead ResponseReader::head() const {
  const auto& message = parser_.get();
  ResponseHead out;
  out.status = static_cast<int>(message.result_int());
  out.keep_alive = parser_.keep_alive();
  out.retry_after_seconds = ParseSeconds(View(message[http::field::retry_after]));
  out.date = ParseDate(View(message[http::field::date]));
  const auto [first, last] = message.equal_range(http::field::warning);
  std::for_each(first, last,
                [&out](const auto& field) { out.warnings.emplace_back(View(field.value())); });
  return out;
}

std::string ResponseReader::TakeBody() { return std::exchange(body_, std::string()); }

}  // namespace tranche::kube
