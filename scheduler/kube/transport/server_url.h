// The URL of an API server and the request targets below it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche::kube {

struct ServerUrl {
  bool tls = true;
  std::string host;         // without brackets
  uint16_t port = 443;      // 443 or 80 when the URL names none
  std::string path_prefix;  // "" or "/a/b", no slash at the end
};

// Errors: InvalidArgument for anything but http(s)://host[:port][/path].
absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view url);
// Errors: InvalidArgument outside 1..65535.
absl::StatusOr<uint16_t> ParsePort(std::string_view text);
// Every byte but RFC 3986's unreserved ones as %XX.
std::string PercentEncoded(std::string_view text);
// host[:port] of a Host header; the port is left out where it is the scheme's own.
std::string HostHeader(std::string_view host, uint16_t port, bool tls);

}  // namespace tranche::kube
