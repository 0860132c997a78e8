#include "scheduler/cli/cli_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

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
  out.ca_file = flags.ca_file;
  out.system_roots = flags.ca_file.empty();
  out.client_cert_file = flags.cert_file;
  out.client_key_file = flags.key_file;
  return absl::OkStatus();
}

absl::Status ReadToken(const ServerFlags& flags, kube::Credentials& out) {
  if (flags.token_file.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = kube::ReadSmallFile(flags.token_file);
  absl::Status usable = text.status();
  if (usable.ok()) usable = kube::CheckToken(kube::Trimmed(*text), flags.token_file);
  if (!usable.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--token-file: {}", std::string(usable.message())));
  }
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

absl::StatusOr<Server> ByUrl(ServerFlags flags) {
  const std::string typed = std::exchange(flags.server, WithScheme(flags.server));
  const absl::StatusOr<kube::ServerUrl> url = kube::ParseServerUrl(flags.server);
  if (!url.ok()) return Invalid("--server", "[http(s)://]HOST[:PORT]", wire::Quoted(typed));
  Server server;
  server.credentials.host = url->host;
  server.credentials.port = url->port;
  server.credentials.path_prefix = url->path_prefix;
  server.credentials.tls = url->tls;
  if (const absl::Status read = ReadTls(flags, server.credentials); !read.ok()) return read;
  if (const absl::Status read = ReadToken(flags, server.credentials); !read.ok()) return read;
  server.shown = flags.server;
  if (flags.kubeconfig.empty() && flags.context.empty()) return server;
  if (!flags.token_file.empty()) {
    return Invalid("--token-file", "it or --context (--kubeconfig), whose user has a token",
                   "both");
  }
  const absl::StatusOr<std::string> file = KubeconfigOf(flags);
  if (!file.ok()) return file.status();
  absl::StatusOr<kube::UserLogin> login = kube::LoadUserKubeconfig(*file, flags.context);
  if (!login.ok()) return absl::InvalidArgumentError(std::string(login.status().message()));
  server.ns = login->credentials.context_namespace;
  server.user = std::make_shared<UserToken>(*std::move(login));
  return server;
}

// What an API server takes as a name: safe in a path as it is.
bool IsServiceName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

absl::StatusOr<Server> ByApiServer(const ServerFlags& flags) {
  for (const auto& [flag, file] :
       {std::pair("--ca-file", &flags.ca_file), std::pair("--cert-file", &flags.cert_file),
        std::pair("--key-file", &flags.key_file)}) {
    if (!file->empty())
      return Invalid(flag, "--server beside it", "none: the kubeconfig has its own");
  }
  if (!flags.token_file.empty()) {
    return Invalid("--token-file", "--server beside it",
                   "none: API servers do not pass such a token on; kubectl port-forward "
                   "-n tranche-system service/tranche 9090, then --server http://127.0.0.1:9090");
  }
  const std::string service = flags.service.empty() ? kDefaultService : flags.service;
  const std::size_t slash = std::min(service.find('/'), service.size());
  const std::size_t colon = std::min(service.find(':', slash), service.size());
  const std::string ns = service.substr(0, slash);
  const std::string name =
      slash < service.size() ? service.substr(slash + 1, colon - slash - 1) : "";
  const std::string port = colon < service.size() ? service.substr(colon + 1) : "pages";
  if (!IsServiceName(ns) || !IsServiceName(name) || !IsServiceName(port)) {
    return Invalid("--service", "NAMESPACE/NAME[:PORT]", wire::Quoted(service));
  }
  const absl::StatusOr<std::string> file = KubeconfigOf(flags);
  if (!file.ok()) return file.status();
  absl::StatusOr<kube::UserLogin> login = kube::LoadUserKubeconfig(*file, flags.context);
  if (absl::IsUnimplemented(login.status())) {
    return absl::InvalidArgumentError(
        fmt::format("{}; kubectl proxy can do it, then --server "
                    "http://127.0.0.1:8001/api/v1/namespaces/{}/services/{}:{}/proxy",
                    std::string(login.status().message()), ns, name, port));
  }
  if (!login.ok()) return login.status();
  Server server;
  server.credentials = std::move(login->credentials);
  if (login->plugin) server.login = std::make_shared<PluginLogin>(std::move(*login->plugin));
  server.ns = server.credentials.context_namespace;
  server.api_prefix = server.credentials.path_prefix;
  server.credentials.path_prefix +=
      fmt::format("/api/v1/namespaces/{}/services/{}:{}/proxy", ns, name, port);
  server.shown = fmt::format("Service {}/{}:{}", ns, name, port);
  server.through_api_server = true;
  return server;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What helps against a connection that came to nothing; "" where nothing is known.
std::string HintFor(const Server& server, std::string_view found) {
  const kube::Credentials& used = server.credentials;
  if (server.through_api_server) return "";
  if (Has(found, "onnection refused")) {
    return " (is it running? `tranche serve` starts one; kubectl port-forward reaches another)";
  }
  if (!used.tls) return "";
  if (Has(found, "wrong version number") || Has(found, "http request")) {
    return " (it does not speak TLS: http:// instead of https://)";
  }
  if (Has(found, "mismatch")) {
    return " (a server's certificate must carry the name or address it is called by)";
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

// What an answer other than 200 says, and what helps. `of_tranche`: Tranche itself has given it.
std::string RefusalText(const Server& server, const kube::SingleAnswer& answer,
                        const nlohmann::json& json, bool of_tranche) {
  const std::string said = of_tranche ? Member(json, "error") : Member(json, "message");
  const bool proxied = server.through_api_server && !of_tranche;
  std::string text = fmt::format("the {}server answered {}: {}", proxied ? "API " : "",
                                 answer.status, said.empty() ? "an answer without reason" : said);
  if (answer.status == 401 && of_tranche) {
    const std::string& file = server.credentials.token_file;
    if (server.through_api_server) {
      text +=
          " (API servers do not pass one on: kubectl port-forward -n tranche-system "
          "service/tranche 9090, then --server http://127.0.0.1:9090 with --token-file FILE, or "
          "with "
          "--context NAME for the token of a kubeconfig's user)";
    } else if (server.user) {
      text += " (that of the kubeconfig's user)";
    } else if (file.empty()) {
      text +=
          " (--token-file FILE, or TRANCHE_TOKEN_FILE, names the file that holds it; --context "
          "NAME "
          "shows the token of a kubeconfig's user)";
    } else {
      text += fmt::format(" (the one in {} is another)", file);
    }
  } else if (answer.status == 404 && proxied) {
    text += fmt::format(" ({} is asked; --service names another)", server.shown);
  } else if (answer.status == 403 && proxied) {
    text += " (who asks needs get and create on services/proxy there)";
  }
  return text;
}

absl::StatusOr<kube::SingleAnswer> SignedCall(const Server& server,
                                              const kube::SingleRequest& request) {
  kube::Credentials credentials = server.credentials;
  // The program is told of the API server, not of the way through it.
  credentials.path_prefix = server.api_prefix;
  const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  TRANCHE_RETURN_IF_ERROR(server.login->Fill(now, credentials));
  credentials.path_prefix = server.credentials.path_prefix;
  return kube::CallOnce(credentials, request);
}

// With the token of the kubeconfig's user from the moment that the server asks for one.
absl::StatusOr<kube::SingleAnswer> CallAsUser(const Server& server,
                                              const kube::SingleRequest& request) {
  UserToken& user = *server.user;
  constexpr int kTries = 3;  // without one, with it, and with another
  for (int tried = 1;; ++tried) {
    kube::Credentials credentials = server.credentials;
    if (user.wanted()) {
      if (!credentials.tls && !IsLoopback(credentials.host)) {
        return Invalid("--context",
                       "an https server, or one on this machine (kubectl port-forward), since a "
                       "token is never sent in clear",
                       server.shown);
      }
      const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
      TRANCHE_ASSIGN_OR_RETURN(credentials.token, user.Get(now));
      credentials.token_in_clear = !credentials.tls;
    }
    absl::StatusOr<kube::SingleAnswer> answer = kube::CallOnce(credentials, request);
    if (!answer.ok() || answer->status != 401 || tried == kTries) return answer;
    if (user.wanted() && !user.Forget()) return answer;
    user.Want();
  }
}

// A sign-in that the API server no longer takes is made anew, once.
absl::StatusOr<kube::SingleAnswer> Call(const Server& server, const kube::SingleRequest& request) {
  if (server.user) return CallAsUser(server, request);
  if (!server.login) return kube::CallOnce(server.credentials, request);
  absl::StatusOr<kube::SingleAnswer> answer = SignedCall(server, request);
  if (!answer.ok() || answer->status != 401) return answer;
  server.login->Forget();
  return SignedCall(server, request);
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
  const nlohmann::json json =
      nlohmann::json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  const bool of_tranche = json.is_object() && json.contains("error");
  std::string text =
      RefusalText(server, *answer, json.is_object() ? json : nlohmann::json::object(), of_tranche);
  if (answer->status == 404 && of_tranche) return absl::NotFoundError(std::move(text));
  return absl::UnavailableError(std::move(text));
}

}  // namespace tranche
