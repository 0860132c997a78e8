// The addresses of a configuration: HOST:PORT.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "scheduler/server/config.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

absl::Status ReadAddress(std::string_view setting, std::string_view text, std::string& address,
                         uint16_t& into) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected HOST:PORT, found {}", setting, wire::Quoted(text)));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  uint16_t port = 0;
  const char* const end = port_text.data() + port_text.size();
  const auto [stop, error] = std::from_chars(port_text.data(), end, port);
  if (error != std::errc() || stop != end) return bad();
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad();  // an IPv6 address needs its brackets
  }
  address = host.empty() ? "0.0.0.0" : host == "localhost" ? "127.0.0.1" : std::string(host);
  into = port;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadListen(std::string_view text, ServeConfig& config) {
  return ReadAddress("listen", text, config.address, config.port);
}

absl::Status ReadTlsListen(std::string_view text, ServeConfig& config) {
  if (!config.tls) config.tls.emplace();
  return ReadAddress("tls.listen", text, config.tls_address, config.tls_port);
}

absl::Status ReadPagesListen(std::string_view text, ServeConfig& config) {
  std::string address;
  const absl::Status read = ReadAddress("pages.listen", text, address, config.pages_port);
  if (read.ok()) config.pages_address = std::move(address);
  return read;
}

absl::Status ReadProbesListen(std::string_view text, ServeConfig& config) {
  std::string address;
  const absl::Status read = ReadAddress("probes.listen", text, address, config.probes_port);
  if (read.ok()) config.probes_address = std::move(address);
  return read;
}

}  // namespace tranche
