#include "scheduler/kube/transport/server_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tranche::kube {
namespace {

// RFC 3986 section 2.3.
bool IsUnreserved(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

bool IsHostByte(char byte) { return IsUnreserved(byte) || byte == ':'; }
bool IsPathByte(char byte) {
  return IsUnreserved(byte) || byte == '/' || byte == '%' || byte == ':';
}

absl::Status Refused(std::string_view url) {
  return absl::InvalidArgumentError(
      fmt::format("expected http(s)://host[:port][/path], found \"{}\"", url.substr(0, 200)));
}

}  // namespace

absl::StatusOr<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    return absl::InvalidArgumentError(
        fmt::format("expected a port of 1..65535, found \"{}\"", text.substr(0, 20)));
  }
  return port;
}

absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view url) {
  ServerUrl out;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    out.tls = false;
    out.port = 80;
  } else {
    return Refused(url);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  out.path_prefix = path;
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return Refused(url);
    out.host = authority.substr(1, bracket - 1);
    authority.remove_prefix(bracket + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    out.host = authority.substr(0, colon);
    authority.remove_prefix(colon);
  }
  if (out.host.empty() || !std::all_of(out.host.begin(), out.host.end(), IsHostByte) ||
      !std::all_of(path.begin(), path.end(), IsPathByte)) {
    return Refused(url);
  }
  if (authority.empty()) return out;
  if (!authority.starts_with(':')) return Refused(url);
  auto port = ParsePort(authority.substr(1));
  if (!port.ok()) return Refused(url);
  out.port = *port;
  return out;
}

std::string PercentEncoded(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (IsUnreserved(byte)) {
      out.push_back(byte);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    }
  }
  return out;
}

std::string HostHeader(std::string_view host, uint16_t port, bool tls) {
  const bool bracketed = host.find(':') != std::string_view::npos;
  std::string out = bracketed ? fmt::format("[{}]", host) : std::string(host);
  if (port != (tls ? 443 : 80)) out += fmt::format(":{}", port);
  return out;
}

}  // namespace tranche::kube
