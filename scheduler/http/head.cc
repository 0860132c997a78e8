#include "scheduler/http/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <limits>
#include <utility>

namespace tranche::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsTokenChar(char c) {
  return IsAlphanumeric(c) ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool IsHostChar(char c) {
  return IsAlphanumeric(c) ||
         (c != '\0' && std::string_view("-._~!$&'()*+;=:[]%").find(c) != std::string_view::npos);
}

// A header that comes several times is one list.
void AddToList(std::string& list, std::string_view value) {
  if (!list.empty()) list += ',';
  list += value;
}

Refusal Bad(std::string why) { return Refusal{400, std::move(why)}; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum class Plus : uint8_t { kLiteral, kSpace };

// Percent-decodes; false on a broken escape or an encoded NUL.
bool Decode(std::string_view text, Plus plus, std::string& out) {
  out.clear();
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(plus == Plus::kSpace && text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    if (text.size() - i < 3) return false;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return false;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

bool DecodeQuery(std::string_view text, std::map<std::string, std::string>& query) {
  while (!text.empty()) {
    const std::size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    std::string key;
    std::string value;
    if (!Decode(pair.substr(0, equals), Plus::kSpace, key)) return false;
    if (equals != std::string_view::npos && !Decode(pair.substr(equals + 1), Plus::kSpace, value)) {
      return false;
    }
    query.insert_or_assign(std::move(key), std::move(value));
  }
  return true;
}

// The path and query part of a target in origin form or absolute form; empty: neither.
std::string_view OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t path = target.find_first_of("/?");
    if (path == 0) return {};
    if (path == std::string_view::npos) return "/";
    return target.substr(path);
  }
  return !target.empty() && target.front() == '/' ? target : std::string_view();
}

std::optional<Refusal> ReadTarget(std::string_view target, Request& request) {
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };
  if (!std::all_of(target.begin(), target.end(), visible)) {
    return Bad("request target: expected visible ASCII without a fragment");
  }
  if (target == "*" && request.method == "OPTIONS") {
    request.path = "*";
    return std::nullopt;
  }
  const std::string_view origin = OriginForm(target);
  if (origin.empty()) return Bad("request target: expected a path that starts with /");
  const std::size_t mark = origin.find('?');
  const std::string_view path = origin.substr(0, mark);
  if (!Decode(path.empty() ? "/" : path, Plus::kLiteral, request.path)) {
    return Bad("request target: expected %XX escapes of non-zero bytes");
  }
  if (mark != std::string_view::npos && !DecodeQuery(origin.substr(mark + 1), request.query)) {
    return Bad("query: expected %XX escapes of non-zero bytes");
  }
  return std::nullopt;
}

// Beast's parser over one whole head: it splits lines and fields, and trims. What they mean is
// decided here. It is told to skip a body, so that no code of Beast's for bodies and chunks runs.
class HeadParser final : public beast::http::basic_parser<true> {
 public:
  explicit HeadParser(Head& head) : head_(head) {
    header_limit(std::numeric_limits<uint32_t>::max());  // HeadScanner has counted already
    skip(/*v=*/true);
  }

  std::optional<Refusal> Read(std::string_view text);

 private:
  void on_request_impl(beast::http::verb verb, beast::string_view method, beast::string_view target,
                       int version, error_code& error) override;
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     error_code& error) override;
  void on_header_impl(error_code&) override {}
  void on_finish_impl(error_code&) override {}
  // The rest is for answers and bodies, which do not come here.
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(uint64_t, beast::string_view, error_code&) override { return 0; }

  std::optional<Refusal> Weigh();
  std::optional<Refusal> WeighAuthorization();
  bool IsCrossSite() const;

  Head& head_;
  std::optional<Refusal> refusal_;  // set where we end the parse ourselves
  bool http11_ = true;
  // The fields that steer the connection, gathered before they are weighed against each other.
  int hosts_ = 0;
  int lengths_ = 0;
  int encodings_ = 0;
  int authorizations_ = 0;
  int own_authorizations_ = 0;
  bool host_valid_ = true;
  bool chunked_ = false;
  bool close_ = false;
  bool keep_alive_ = false;
  bool expects_other_ = false;
  std::string origin_;
  std::string fetch_site_;
  std::string own_authorization_;
};

// Of versions Beast knows 1.0 and 1.1, and calls all else malformed. One that is spelled well is
// told apart here.
bool NamesAnotherVersion(std::string_view text) {
  const std::string_view line = text.substr(0, text.find("\r\n"));
  if (line.size() < 9) return false;
  const std::string_view last = line.substr(line.size() - 9);
  const auto digit = [&](std::size_t at) { return last[at] >= '0' && last[at] <= '9'; };
  return last.starts_with(" HTTP/") && digit(6) && last[7] == '.' && digit(8) &&
         last != " HTTP/1.0" && last != " HTTP/1.1";
}

// The refusal of a head that Beast could not read.
Refusal RefusalOf(beast::http::error error, std::string_view text) {
  switch (error) {
    case beast::http::error::bad_method:
      return Bad("request line: expected a method token");
    case beast::http::error::bad_target:
      return Bad("request target: expected visible ASCII without a fragment");
    case beast::http::error::bad_version:
      if (NamesAnotherVersion(text)) return Refusal{505, "expected HTTP/1.0 or HTTP/1.1"};
      return Bad("request line: expected method, target and HTTP/1.1 at its end");
    case beast::http::error::bad_field:
      return Bad("header field: expected a name token and a colon directly behind it");
    case beast::http::error::bad_content_length:
    case beast::http::error::multiple_content_length:
      return Bad("Content-Length: expected one decimal number within 64 bits, and no chunks");
    case beast::http::error::bad_transfer_encoding:
      return Bad("expected no Transfer-Encoding beside Content-Length or another one");
    default:
      return Bad("header field: expected a value of text, and of tokens in Connection");
  }
}

std::optional<Refusal> HeadParser::Read(std::string_view text) {
  // Beast would join folded lines.
  if (text.find("\r\n ") != std::string_view::npos ||
      text.find("\r\n\t") != std::string_view::npos) {
    return Bad("header field: expected no folded lines");
  }
  error_code error;
  put(boost::asio::buffer(text.data(), text.size()), error);
  if (refusal_) return refusal_;
  if (error) return RefusalOf(static_cast<beast::http::error>(error.value()), text);
  return Weigh();
}

void HeadParser::on_request_impl(beast::http::verb, beast::string_view method,
                                 beast::string_view target, int version, error_code& error) {
  http11_ = version == 11;
  head_.request.method = std::string(method);
  refusal_ = ReadTarget(target, head_.request);
  if (refusal_) error = beast::http::error::bad_target;
}

void HeadParser::on_field_impl(beast::http::field field, beast::string_view name,
                               beast::string_view value, error_code& error) {
  switch (field) {
    case beast::http::field::host:
      ++hosts_;
      host_valid_ = std::all_of(value.begin(), value.end(), IsHostChar);
      head_.request.host = std::string(value);
      return;
    case beast::http::field::content_length:
      ++lengths_;
      // Beast takes lists of equal lengths.
      if (value.find(',') != beast::string_view::npos) {
        error = beast::http::error::bad_content_length;
      }
      return;
    case beast::http::field::transfer_encoding:
      ++encodings_;
      chunked_ = beast::iequals(value, "chunked");
      return;
    case beast::http::field::connection:
      for (const auto& option : beast::http::opt_token_list{value}) {
        close_ = close_ || beast::iequals(option, "close");
        keep_alive_ = keep_alive_ || beast::iequals(option, "keep-alive");
      }
      return;
    case beast::http::field::expect:
      (beast::iequals(value, "100-continue") ? head_.expects_continue : expects_other_) = true;
      return;
    case beast::http::field::authorization:
      ++authorizations_;
      head_.request.authorization = std::string(value);
      return;
    case beast::http::field::origin:
      origin_ = std::string(value);
      return;
    case beast::http::field::if_none_match:
      AddToList(head_.request.if_none_match, std::string_view(value));
      return;
    case beast::http::field::accept_encoding:
      AddToList(head_.request.accept_encoding, std::string_view(value));
      return;
    default:
      if (beast::iequals(name, "Sec-Fetch-Site")) fetch_site_ = std::string(value);
      if (beast::iequals(name, kOwnAuthorization)) {
        ++own_authorizations_;
        own_authorization_ = std::string(value);
      }
      return;
  }
}

// Pages cannot set either header.
bool HeadParser::IsCrossSite() const {
  if (!fetch_site_.empty()) return fetch_site_ != "same-origin" && fetch_site_ != "none";
  if (origin_.empty()) return false;
  const std::size_t authority = origin_.find("://");
  return authority == std::string::npos ||
         !beast::iequals(std::string_view(origin_).substr(authority + 3), head_.request.host);
}

// A proxy between us and a caller may have looked at one of the two alone.
std::optional<Refusal> HeadParser::WeighAuthorization() {
  if (authorizations_ > 1) return Bad("expected one Authorization, found several");
  if (own_authorizations_ > 1) {
    return Bad(fmt::format("expected one {}, found several", kOwnAuthorization));
  }
  if (own_authorizations_ == 0) return std::nullopt;
  if (authorizations_ > 0 && head_.request.authorization != own_authorization_) {
    return Bad(
        fmt::format("expected Authorization and {} to be equal where both are given, found "
                    "different ones",
                    kOwnAuthorization));
  }
  head_.request.authorization = std::move(own_authorization_);
  return std::nullopt;
}

std::optional<Refusal> HeadParser::Weigh() {
  if (hosts_ > 1 || (http11_ && hosts_ == 0) || !host_valid_) {
    return Bad(fmt::format("expected exactly one valid Host, found {}", hosts_));
  }
  if (lengths_ > 1) return Bad("expected one Content-Length, found several");
  if (auto refusal = WeighAuthorization()) return refusal;
  if (encodings_ > 0) {
    if (lengths_ > 0) return Bad("expected no Transfer-Encoding beside Content-Length");
    if (encodings_ > 1 || !chunked_ || !http11_) return Bad("expected no Transfer-Encoding");
    return Refusal{411, "expected Content-Length, found Transfer-Encoding chunked"};
  }
  if (expects_other_) return Refusal{417, "Expect: only 100-continue is known"};
  const std::string& method = head_.request.method;
  if (lengths_ == 0 && (method == "POST" || method == "PUT" || method == "PATCH")) {
    return Refusal{411, fmt::format("expected Content-Length on {}", method)};
  }
  if (lengths_ == 1) head_.content_length = *content_length();
  head_.expects_continue = head_.expects_continue && http11_;
  head_.request.cross_site = IsCrossSite();
  head_.keep_alive = !close_ && (http11_ || keep_alive_);
  return std::nullopt;
}

}  // namespace

HeadScanner::Outcome HeadScanner::Scan(std::string_view bytes) {
  const std::string_view window = bytes.substr(0, limit_);
  while (true) {
    // A first byte that starts no method, say of a TLS handshake, need not wait for a line's end.
    if (line_ == begin_ && line_ < window.size() && window[line_] != '\r' &&
        !IsTokenChar(window[line_])) {
      return Outcome::kMalformed;
    }
    const std::size_t feed = window.find('\n', position_);
    if (feed == std::string_view::npos) {
      position_ = window.size();
      return bytes.size() >= limit_ ? Outcome::kTooLarge : Outcome::kMore;
    }
    if (feed == line_ || window[feed - 1] != '\r') return Outcome::kMalformed;
    const bool empty_line = feed == line_ + 1;
    const bool first_line = line_ == begin_;
    line_ = position_ = feed + 1;
    if (!empty_line) continue;
    if (!first_line) {
      end_ = feed + 1;
      return Outcome::kComplete;
    }
    begin_ = feed + 1;
  }
}

std::optional<Refusal> ReadHead(std::string_view text, Head& head) {
  head = Head();
  return HeadParser(head).Read(text);
}

}  // namespace tranche::http
