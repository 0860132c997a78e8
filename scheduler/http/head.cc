#include "scheduler/http/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tranche::http {
namespace {

constexpr std::string_view kBlank = " \t";

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsTokenChar(char c) {
  return IsAlphanumeric(c) ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsFieldChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

bool IsHostChar(char c) {
  return IsAlphanumeric(c) ||
         (c != '\0' && std::string_view("-._~!$&'()*+;=:[]%").find(c) != std::string_view::npos);
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualAnyCase(std::string_view left, std::string_view lower_case) {
  return left.size() == lower_case.size() &&
         std::equal(left.begin(), left.end(), lower_case.begin(),
                    [](char a, char b) { return Lower(a) == b; });
}

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

Refusal Bad(std::string why) { return Refusal{400, std::move(why)}; }

// Calls visit(element) for each non-empty element of a comma-separated list.
template <typename Visit>
void ForEachElement(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view element = Trim(list.substr(0, comma));
    if (!element.empty()) visit(element);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = Lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Percent-decodes; false on a broken escape or an encoded NUL.
bool Decode(std::string_view text, bool plus_is_space, std::string& out) {
  out.clear();
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
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
    if (!Decode(pair.substr(0, equals), true, key)) return false;
    if (equals != std::string_view::npos && !Decode(pair.substr(equals + 1), true, value)) {
      return false;
    }
    query.insert_or_assign(std::move(key), std::move(value));
  }
  return true;
}

// The path and query part of a target in origin form or absolute form; empty: neither.
std::string_view OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualAnyCase(target.substr(0, scheme.size()), scheme)) continue;
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
  if (!Decode(path.empty() ? "/" : path, false, request.path)) {
    return Bad("request target: expected %XX escapes of non-zero bytes");
  }
  if (mark != std::string_view::npos && !DecodeQuery(origin.substr(mark + 1), request.query)) {
    return Bad("query: expected %XX escapes of non-zero bytes");
  }
  return std::nullopt;
}

enum class Version : uint8_t { kHttp10, kHttp11 };

std::optional<Refusal> ReadRequestLine(std::string_view line, Request& request, Version& version) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Bad("request line: expected method, target and version");
  }
  const std::string_view protocol = line.substr(last + 1);
  const auto digit = [&](std::size_t at) { return protocol[at] >= '0' && protocol[at] <= '9'; };
  if (protocol.size() != 8 || !protocol.starts_with("HTTP/") || !digit(5) || protocol[6] != '.' ||
      !digit(7)) {
    return Bad("request line: expected HTTP/1.1 at its end");
  }
  if (!IsToken(line.substr(0, first))) return Bad("request line: expected a method token");
  if (protocol != "HTTP/1.1" && protocol != "HTTP/1.0") {
    return Refusal{505, "expected HTTP/1.0 or HTTP/1.1"};
  }
  version = protocol == "HTTP/1.1" ? Version::kHttp11 : Version::kHttp10;
  request.method = std::string(line.substr(0, first));
  return ReadTarget(line.substr(first + 1, last - first - 1), request);
}

// The fields that steer the connection, gathered before they are weighed against each other.
struct Steering {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;
  int authorizations = 0;
  bool host_valid = true;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool expects_other = false;
};

std::optional<Refusal> ReadContentLength(std::string_view value, Head& head) {
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
    return Bad("Content-Length: expected one decimal number within 64 bits");
  }
  head.content_length = length;
  return std::nullopt;
}

std::optional<Refusal> ReadField(std::string_view line, Head& head, Steering& seen) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Bad("header field: expected a name token and a colon directly behind it");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trim(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), IsFieldChar)) {
    return Bad("header field: expected a value without control characters");
  }
  if (EqualAnyCase(name, "host")) {
    ++seen.hosts;
    seen.host_valid = std::all_of(value.begin(), value.end(), IsHostChar);
  } else if (EqualAnyCase(name, "content-length")) {
    ++seen.lengths;
    return ReadContentLength(value, head);
  } else if (EqualAnyCase(name, "transfer-encoding")) {
    ++seen.encodings;
    seen.chunked = EqualAnyCase(value, "chunked");
  } else if (EqualAnyCase(name, "connection")) {
    ForEachElement(value, [&](std::string_view option) {
      if (EqualAnyCase(option, "close")) seen.close = true;
      if (EqualAnyCase(option, "keep-alive")) seen.keep_alive = true;
    });
  } else if (EqualAnyCase(name, "expect")) {
    (EqualAnyCase(value, "100-continue") ? head.expects_continue : seen.expects_other) = true;
  } else if (EqualAnyCase(name, "authorization")) {
    ++seen.authorizations;
    head.request.authorization = std::string(value);
  } else if (EqualAnyCase(name, "if-none-match")) {
    std::string& tags = head.request.if_none_match;
    tags += (tags.empty() ? "" : ",") + std::string(value);
  }
  return std::nullopt;
}

std::optional<Refusal> Weigh(Version version, const Steering& seen, Head& head) {
  const bool http11 = version == Version::kHttp11;
  if (seen.hosts > 1 || (http11 && seen.hosts == 0) || !seen.host_valid) {
    return Bad(fmt::format("expected exactly one valid Host, found {}", seen.hosts));
  }
  if (seen.lengths > 1) return Bad("expected one Content-Length, found several");
  if (seen.authorizations > 1) return Bad("expected one Authorization, found several");
  if (seen.encodings > 0) {
    if (seen.lengths > 0) return Bad("expected no Transfer-Encoding beside Content-Length");
    if (seen.encodings > 1 || !seen.chunked || !http11) {
      return Bad("expected no Transfer-Encoding");
    }
    return Refusal{411, "expected Content-Length, found Transfer-Encoding chunked"};
  }
  if (seen.expects_other) return Refusal{417, "Expect: only 100-continue is known"};
  const std::string& method = head.request.method;
  if (!head.content_length && (method == "POST" || method == "PUT" || method == "PATCH")) {
    return Refusal{411, fmt::format("expected Content-Length on {}", method)};
  }
  head.expects_continue = head.expects_continue && http11;
  head.keep_alive = !seen.close && (http11 || seen.keep_alive);
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
  constexpr std::string_view kLineEnd = "\r\n";
  Version version = Version::kHttp11;
  Steering seen;
  head = Head();
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = text.find(kLineEnd);
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + kLineEnd.size());
    if (!first && line.empty()) break;
    auto refusal =
        first ? ReadRequestLine(line, head.request, version) : ReadField(line, head, seen);
    if (refusal) return refusal;
    first = false;
  }
  return Weigh(version, seen, head);
}

}  // namespace tranche::http
