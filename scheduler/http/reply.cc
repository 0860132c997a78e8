#include "scheduler/http/reply.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/serializer.hpp>
#include <string_view>

namespace tranche::http {
namespace {

using boost::system::error_code;
using Answer = boost::beast::http::response<boost::beast::http::empty_body>;

bool SafeName(std::string_view name) {
  const auto safe = [](char c) { return c > 0x20 && c < 0x7f && c != ':'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), safe);
}

bool SafeValue(std::string_view value) {
  const auto safe = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  };
  return std::all_of(value.begin(), value.end(), safe);
}

// Beast stores lengths of names and values in 16 bits and throws on longer ones.
constexpr std::size_t kMostFieldBytes = 65'000;

void Set(Answer& answer, std::string_view name, std::string_view value) {
  if (!SafeName(name) || !SafeValue(value) || name.size() + value.size() > kMostFieldBytes) return;
  answer.set(boost::beast::string_view(name), boost::beast::string_view(value));
}

// RFC 9110 section 5.6.7. Answers come many to a second, whose text each thread makes once.
const std::string& Date(std::chrono::system_clock::time_point now) {
  thread_local std::time_t second = -1;
  thread_local std::string text;
  if (const std::time_t current = std::chrono::system_clock::to_time_t(now); current != second) {
    second = current;
    text = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(second));
  }
  return text;
}

}  // namespace

bool CarriesBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string EncodeHead(const Response& response, bool keep_alive,
                       std::chrono::system_clock::time_point now) {
  namespace http = boost::beast::http;
  Answer answer;
  answer.version(11);
  answer.result(static_cast<unsigned>(response.status));
  answer.set(http::field::date, Date(now));
  if (CarriesBody(response.status)) {
    if (!response.content_type.empty()) Set(answer, "Content-Type", response.content_type);
    answer.content_length(response.text().size());
  }
  answer.keep_alive(keep_alive);
  for (const auto& [name, value] : response.headers) Set(answer, name, value);
  http::response_serializer<http::empty_body> serializer(answer);
  std::string out;
  out.reserve(256);
  error_code error;
  serializer.next(error, [&out](error_code&, const auto& buffers) {
    for (const boost::asio::const_buffer piece : boost::beast::buffers_range_ref(buffers)) {
      out.append(static_cast<const char*>(piece.data()), piece.size());
    }
  });
  return out;
}

}  // namespace tranche::http
