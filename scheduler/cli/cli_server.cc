#include "scheduler/cli/cli_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/http/server.h"
#include "scheduler/kube/transport/files.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/transport/token.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

absl::Status Invalid(const char* flag, std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", flag, expected, found));
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

// A file that is there, so that its error comes before anything is asked.
absl::Status CheckFile(const char* flag, const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const absl::Status read = kube::ReadSmallFile(file).status();
  if (read.ok()) return read;
  return absl::InvalidArgumentError(fmt::format("{}: {}", flag, std::string(read.message())));
}

absl::Status ReadTls(const ServerFlags& flags, kube::Credentials& out) {
  for (const auto& [flag, file] :
       {std::pair("--ca-file", &flags.ca_file), std::pair("--cert-file", &flags.cert_file),
        std::pair("--key-file", &flags.key_file)}) {
    if (!file->empty() && !out.tls) return Invalid(flag, "an https server", flags.server);
    if (const absl::Status read = CheckFile(flag, *file); !read.ok()) return read;
  }
  if (flags.cert_file.empty() != flags.key_file.empty()) {
    return Invalid("--cert-file", "it together with --key-file", "one of them");
  }
  if (!flags.tls_server_name.empty() && !out.tls) {
    return Invalid("--tls-server-name", "an https server", flags.server);
  }
  out.tls_server_name = flags.tls_server_name;
  out.ca_file = flags.ca_file;
  out.system_roots = flags.ca_file.empty();
  out.client_cert_file = flags.cert_file;
  out.client_key_file = flags.key_file;
  return absl::OkStatus();
}

// Whether the file that is named, if any, holds a token.
absl::Status CheckTokenFile(const ServerFlags& flags) {
  if (flags.token_file.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = kube::ReadSmallFile(flags.token_file);
  absl::Status usable = text.status();
  if (usable.ok()) usable = kube::CheckToken(kube::Trimmed(*text), flags.token_file);
  if (usable.ok()) return usable;
  return absl::InvalidArgumentError(fmt::format("--token-file: {}", std::string(usable.message())));
}

absl::Status ReadToken(const ServerFlags& flags, kube::Credentials& out) {
  if (flags.token_file.empty()) return absl::OkStatus();
  TRANCHE_RETURN_IF_ERROR(CheckTokenFile(flags));
  if (!out.tls && !IsLoopback(out.host)) {
    return Invalid("--token-file",
                   "an https server, or one on this machine (kubectl port-forward), since a token "
                   "is never sent in clear",
                   flags.server);
  }
  out.token_in_clear = !out.tls;
  out.token_file = flags.token_file;
  return absl::OkStatus();
}

// As typed without a scheme: clear text where nobody can listen, TLS elsewhere.
std::string WithScheme(const std::string& server) {
  if (server.find("://") != std::string::npos) return server;
  const absl::StatusOr<kube::ServerUrl> url = kube::ParseServerUrl("http://" + server);
  return (url.ok() && IsLoopback(url->host) ? "http://" : "https://") + server;
}

absl::StatusOr<std::string> KubeconfigOf(const ServerFlags& flags) {
  if (!flags.kubeconfig.empty()) return flags.kubeconfig;
  if (const char* const named = std::getenv("KUBECONFIG"); named != nullptr && *named != '\0') {
    const std::string path = named;
    if (path.find(':') == std::string::npos) return path;
    return Invalid("KUBECONFIG", "one file (--kubeconfig names it)", wire::Quoted(path));
  }
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::string(home) + "/.kube/config";
  return Invalid("--kubeconfig", "a file, KUBECONFIG or HOME", "none of them");
}

// What an API server takes as a name: safe in a path as it is.
bool IsPathName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  }) && text.front() != '.';
}

absl::StatusOr<TokenOrigin> ReadOrigin(const ServerFlags& flags) {
  TokenOrigin origin;
  if (flags.token_from.empty()) {
    if (flags.token_audience.empty()) return origin;
    return Invalid("--token-audience", "--token-from beside it", "none");
  }
  if (!flags.token_file.empty()) {
    return Invalid("--token-from", "it or --token-file", "both");
  }
  const std::size_t slash = std::min(flags.token_from.find('/'), flags.token_from.size());
  origin.account_ns = flags.token_from.substr(0, slash);
  if (slash < flags.token_from.size()) origin.account = flags.token_from.substr(slash + 1);
  if (!IsPathName(origin.account_ns) || !IsPathName(origin.account)) {
    return Invalid("--token-from", "NAMESPACE/ACCOUNT", wire::Quoted(flags.token_from));
  }
  origin.audience = flags.token_audience;
  return origin;
}

std::shared_ptr<PluginLogin> LoginOf(kube::UserLogin& login) {
  return login.plugin ? std::make_shared<PluginLogin>(std::move(*login.plugin)) : nullptr;
}

absl::StatusOr<Server> ByUrl(ServerFlags flags) {
  const std::string typed = std::exchange(flags.server, WithScheme(flags.server));
  const absl::StatusOr<kube::ServerUrl> url = kube::ParseServerUrl(flags.server);
  if (!url.ok()) return Invalid("--server", "[http(s)://]HOST[:PORT]", wire::Quoted(typed));
  Server server;
  server.credentials.host = url->host;
  server.credentials.port = url->port;
  server.credentials.path_prefix = url->path_prefix;
  server.credentials.tls = url->tls;
  TRANCHE_RETURN_IF_ERROR(ReadTls(flags, server.credentials));
  TRANCHE_RETURN_IF_ERROR(ReadToken(flags, server.credentials));
  TRANCHE_ASSIGN_OR_RETURN(TokenOrigin origin, ReadOrigin(flags));
  server.shown = flags.server;
  if (flags.kubeconfig.empty() && flags.context.empty() && origin.account.empty()) return server;
  if (!flags.token_file.empty()) {
    return Invalid("--token-file", "it or --context (--kubeconfig), whose user has a token",
                   "both");
  }
  TRANCHE_ASSIGN_OR_RETURN(const std::string file, KubeconfigOf(flags));
  absl::StatusOr<kube::UserLogin> login = kube::LoadUserKubeconfig(file, flags.context);
  if (!login.ok()) return absl::InvalidArgumentError(std::string(login.status().message()));
  server.ns = login->credentials.context_namespace;
  std::shared_ptr<PluginLogin> plugin = LoginOf(*login);
  server.user = std::make_shared<UserToken>(std::move(login->credentials), std::move(plugin),
                                            std::move(origin));
  return server;
}

struct ServiceName {
  std::string ns;
  std::string name;
  std::string port;
};

absl::StatusOr<ServiceName> ReadService(const ServerFlags& flags) {
  const std::string service = flags.service.empty() ? kDefaultService : flags.service;
  const std::size_t slash = std::min(service.find('/'), service.size());
  const std::size_t colon = std::min(service.find(':', slash), service.size());
  ServiceName read = {service.substr(0, slash), "", "pages"};
  if (slash < service.size()) read.name = service.substr(slash + 1, colon - slash - 1);
  if (colon < service.size()) read.port = service.substr(colon + 1);
  if (IsPathName(read.ns) && IsPathName(read.name) && IsPathName(read.port)) return read;
  return Invalid("--service", "NAMESPACE/NAME[:PORT]", wire::Quoted(service));
}

absl::StatusOr<Server> ByApiServer(const ServerFlags& flags) {
  for (const auto& [flag, file] :
       {std::pair("--ca-file", &flags.ca_file), std::pair("--cert-file", &flags.cert_file),
        std::pair("--key-file", &flags.key_file),
        std::pair("--tls-server-name", &flags.tls_server_name)}) {
    if (!file->empty())
      return Invalid(flag, "--server beside it", "none: the kubeconfig has its own");
  }
  TRANCHE_ASSIGN_OR_RETURN(const ServiceName service, ReadService(flags));
  TRANCHE_ASSIGN_OR_RETURN(TokenOrigin origin, ReadOrigin(flags));
  TRANCHE_RETURN_IF_ERROR(CheckTokenFile(flags));
  origin.file = flags.token_file;
  TRANCHE_ASSIGN_OR_RETURN(const std::string file, KubeconfigOf(flags));
  absl::StatusOr<kube::UserLogin> login = kube::LoadUserKubeconfig(file, flags.context);
  const std::string below = fmt::format("/api/v1/namespaces/{}/services/", service.ns);
  const std::string proxy = fmt::format("{}:{}/proxy", service.name, service.port);
  if (absl::IsUnimplemented(login.status())) {
    return absl::InvalidArgumentError(
        fmt::format("{}; kubectl proxy can do it, then --server http://127.0.0.1:8001{}https:{}",
                    std::string(login.status().message()), below, proxy));
  }
  if (!login.ok()) return login.status();
  Server server;
  server.ns = login->credentials.context_namespace;
  server.way = std::make_shared<ServiceWay>(
      ServiceWay{.tls_path = below + "https:" + proxy, .plain_path = below + proxy});
  server.shown = fmt::format("Service {}/{}:{}", service.ns, service.name, service.port);
  server.login = LoginOf(*login);
  server.user = std::make_shared<UserToken>(login->credentials, server.login, std::move(origin));
  server.credentials = std::move(login->credentials);
  return server;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What helps against a connection that came to nothing; "" where nothing is known.
std::string HintFor(const Server& server, std::string_view found) {
  const kube::Credentials& used = server.credentials;
  if (server.way) return "";
  if (Has(found, "onnection refused")) {
    return " (is it running? `tranche serve` starts one; kubectl port-forward reaches another)";
  }
  if (!used.tls) return "";
  if (Has(found, "wrong version number") || Has(found, "http request")) {
    return " (it does not speak TLS: http:// instead of https://)";
  }
  if (Has(found, "mismatch")) {
    return " (a server's certificate must carry the name or address it is called by, or that of "
           "--tls-server-name)";
  }
  if (Has(found, "certificate for")) {
    return used.ca_file.empty() ? " (--ca-file names another CA than those this machine trusts)"
                                : fmt::format(" (CA: {})", used.ca_file);
  }
  const bool alert = Has(found, "alert") || Has(found, "handshake failure");
  if (used.client_cert_file.empty()) {
    if (alert || Has(found, "reset") || Has(found, "Broken pipe") ||
        Has(found, "stream truncated")) {
      return " (the server wants a client certificate: --cert-file and --key-file)";
    }
  } else if (alert) {
    return fmt::format(" (the server does not take the client certificate {})",
                       used.client_cert_file);
  }
  return "";
}

std::string Member(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

nlohmann::json ObjectIn(const kube::SingleAnswer& answer) {
  nlohmann::json json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json::object();
}

// Tranche itself has given it, not an API server in between.
bool IsOfTranche(const kube::SingleAnswer& answer) {
  return answer.status == 200 || ObjectIn(answer).contains("error");
}

// What helps against an answer of Tranche that a token is missing, or is not the right one.
std::string TokenHint(const Server& server) {
  if (server.user) return fmt::format(" ({})", server.user->Whose());
  const std::string& file = server.credentials.token_file;
  if (!file.empty()) return fmt::format(" (the one in {} is another)", file);
  return " (--token-file FILE, or TRANCHE_TOKEN_FILE, names the file that holds it; --context NAME "
         "shows the token of a kubeconfig's user, --token-from NAMESPACE/ACCOUNT one of a service "
         "account)";
}

// What an answer other than 200 says, and what helps.
std::string RefusalText(const Server& server, const kube::SingleAnswer& answer) {
  const bool of_tranche = IsOfTranche(answer);
  const std::string said = Member(ObjectIn(answer), of_tranche ? "error" : "message");
  const bool proxied = server.way && !of_tranche;
  std::string text = fmt::format("the {}server answered {}: {}", proxied ? "API " : "",
                                 answer.status, said.empty() ? "an answer without reason" : said);
  if (answer.status == 401 && of_tranche) {
    text += TokenHint(server);
  } else if (answer.status == 404 && proxied) {
    text += fmt::format(" ({} is asked; --service names another)", server.shown);
  } else if (answer.status == 403 && proxied) {
    text += " (who asks needs get and create on services/proxy there)";
  }
  return text;
}

Instant Now() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

// To the API server that the credentials name, at that path below its address.
absl::StatusOr<kube::SingleAnswer> SignedCall(const Server& server, const std::string& path,
                                              const kube::SingleRequest& request) {
  kube::Credentials credentials = server.credentials;
  // A sign-in program is told of the API server, not of the way through it.
  if (server.login) TRANCHE_RETURN_IF_ERROR(server.login->Fill(Now(), credentials));
  credentials.path_prefix += path;
  return kube::CallOnce(credentials, request);
}

// A sign-in that the API server no longer takes is made anew, once.
absl::StatusOr<kube::SingleAnswer> CallProxy(const Server& server, const std::string& path,
                                             const kube::SingleRequest& request) {
  absl::StatusOr<kube::SingleAnswer> answer = SignedCall(server, path, request);
  const bool refused = answer.ok() && answer->status == 401 && !IsOfTranche(*answer);
  if (!refused || !server.login) return answer;
  server.login->Forget();
  return SignedCall(server, path, request);
}

// Whether the way on over TLS came to nothing that a plain one could not come further by: nobody
// speaks TLS there, or the caller's role names the plain one alone.
bool MayBePlain(const kube::SingleAnswer& answer) {
  if (IsOfTranche(answer)) return false;
  // Go's words for an answer that is no TLS: of its HTTP client, and of its handshake.
  return answer.status == 403 || Has(answer.body, "HTTP response to HTTPS client") ||
         Has(answer.body, "first record does not look like a TLS handshake");
}

// Over TLS all the way where the Service speaks it. What has a header of its own, a token, goes no
// other way.
absl::StatusOr<kube::SingleAnswer> CallService(const Server& server,
                                               const kube::SingleRequest& request) {
  ServiceWay& way = *server.way;
  if (way.plain) return CallProxy(server, way.plain_path, request);
  absl::StatusOr<kube::SingleAnswer> answer = CallProxy(server, way.tls_path, request);
  if (!answer.ok() || !request.headers.empty() || !MayBePlain(*answer)) return answer;
  absl::StatusOr<kube::SingleAnswer> plain = CallProxy(server, way.plain_path, request);
  if (plain.ok() && answer->status == 403 && !IsOfTranche(*plain)) return answer;
  way.plain = true;
  return plain;
}

// The request as its user asks it: with the token of theirs, in the header that comes through.
absl::StatusOr<kube::SingleAnswer> CallWithToken(const Server& server,
                                                 const kube::SingleRequest& request) {
  const bool clear = server.way ? server.way->plain
                                : !server.credentials.tls && !IsLoopback(server.credentials.host);
  if (clear) {
    return absl::InvalidArgumentError(
        fmt::format("the server asks for a token: expected TLS at {}{}, or an address of this "
                    "machine (kubectl port-forward), since a token is never sent in clear",
                    server.shown, server.way ? " (pages.tls of the chart)" : ""));
  }
  TRANCHE_ASSIGN_OR_RETURN(const std::string token, server.user->Get(Now()));
  if (server.way) {
    kube::SingleRequest shown = request;
    shown.headers.emplace_back(http::kOwnAuthorization, "Bearer " + token);
    return CallService(server, shown);
  }
  kube::Credentials credentials = server.credentials;
  credentials.token = token;
  credentials.token_in_clear = !credentials.tls;
  return kube::CallOnce(credentials, request);
}

// With a token from the moment that Tranche asks for one.
absl::StatusOr<kube::SingleAnswer> Call(const Server& server, const kube::SingleRequest& request) {
  if (!server.user) return kube::CallOnce(server.credentials, request);
  constexpr int kTries = 3;  // without one, with it, and with another
  for (int tried = 1;; ++tried) {
    const bool shows = server.user->wanted();
    absl::StatusOr<kube::SingleAnswer> answer = shows ? CallWithToken(server, request)
                                                : server.way
                                                    ? CallService(server, request)
                                                    : kube::CallOnce(server.credentials, request);
    if (!answer.ok() || answer->status != 401 || tried == kTries) return answer;
    if (server.way && !IsOfTranche(*answer)) return answer;
    if (shows && !server.user->Forget()) return answer;
    server.user->Want();
  }
}

}  // namespace

absl::StatusOr<Server> ReadServerFlags(const ServerFlags& flags) {
  const bool names_cluster =
      !flags.kubeconfig.empty() || !flags.context.empty() || !flags.service.empty();
  if (!flags.server.empty()) {
    if (flags.service.empty()) return ByUrl(flags);
    return Invalid("--server", "no --service beside it (or beside TRANCHE_SERVER)", "one");
  }
  if (names_cluster || flags.by_kubectl) return ByApiServer(flags);
  ServerFlags local = flags;
  local.server = kDefaultServer;
  return ByUrl(local);
}

absl::StatusOr<std::string> AskServer(const Server& server, std::string_view method,
                                      std::string_view target, std::string_view body) {
  kube::SingleRequest request;
  request.method = method;
  request.target = target;
  request.body = body;
  absl::StatusOr<kube::SingleAnswer> answer = Call(server, request);
  if (absl::IsInvalidArgument(answer.status())) return answer.status();
  if (!answer.ok()) {
    const std::string found(answer.status().message());
    return absl::UnavailableError(fmt::format("expected a tranche server at {}, found: {}{}",
                                              server.shown, found, HintFor(server, found)));
  }
  if (answer->status == 200) return std::move(answer->body);
  std::string text = RefusalText(server, *answer);
  if (answer->status == 404 && IsOfTranche(*answer)) return absl::NotFoundError(std::move(text));
  return absl::UnavailableError(std::move(text));
}

}  // namespace tranche
