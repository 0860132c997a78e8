#include "scheduler/app/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <iterator>

#include "scheduler/wire/json.h"

namespace tranche::app {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

absl::Status Unreachable(const ServerUrl& server, std::string_view found) {
  return absl::UnavailableError(
      fmt::format("expected a tranche server at {}:{}, found {}", server.host, server.port, found));
}

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view url) {
  const auto bad = [&url] {
    return absl::InvalidArgumentError(
        fmt::format("server: expected http://HOST:PORT, found {}", wire::Quoted(url)));
  };
  constexpr std::string_view kScheme = "http://";
  if (url.substr(0, kScheme.size()) != kScheme) return bad();
  std::string_view rest = url.substr(kScheme.size());
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  if (rest.empty() || rest.find_first_of("/?#@ ") != std::string_view::npos) return bad();
  ServerUrl server;
  server.port = "80";
  const std::size_t bracket = rest.find(']');
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string_view host = rest.substr(0, colon);
  if (colon != std::string_view::npos) server.port = rest.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  server.host = host;
  if (server.host.empty() || !IsPort(server.port)) return bad();
  return server;
}

absl::StatusOr<HttpReply> CallServer(const ServerUrl& server, std::string_view method,
                                     std::string_view target, std::string_view body,
                                     std::chrono::seconds timeout) {
  asio::ip::tcp::iostream stream;
  stream.expires_after(timeout);
  stream.connect(server.host, server.port);
  if (!stream) return Unreachable(server, stream.error().message());
  stream << fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", method, target,
                        server.host, server.port);
  if (method == "POST") {
    stream << fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  stream << "\r\n" << body << std::flush;
  const std::string answer{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
  if (answer.empty()) {
    return Unreachable(server, stream.error() ? stream.error().message() : "an empty answer");
  }
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(boost::none);
  boost::system::error_code error;
  parser.put(asio::buffer(answer), error);
  if (!error && !parser.is_done()) parser.put_eof(error);
  if (error) return Unreachable(server, fmt::format("a broken answer ({})", error.message()));
  HttpReply reply;
  reply.status = static_cast<int>(parser.get().result_int());
  reply.body = std::move(parser.get().body());
  return reply;
}

}  // namespace tranche::app
