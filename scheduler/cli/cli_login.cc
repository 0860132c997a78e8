#include "scheduler/cli/cli_login.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/core/detail/base64.hpp>
#include <chrono>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/kube/transport/files.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/transport/single_call.h"
#include "scheduler/kube/transport/token.h"
#include "scheduler/probe/program.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

extern char** environ;

namespace tranche {
namespace {

constexpr std::size_t kMostOutput = 1024 * 1024;
constexpr std::chrono::milliseconds kAlone{60'000};
constexpr std::chrono::milliseconds kWithSomebody{600'000};  // who looks for a second factor
// A request takes its time, and clocks differ.
constexpr Millis kMargin{10'000};
// No API server makes tokens for less.
constexpr std::chrono::seconds kAccountTokenLives{600};

std::string Base64(const std::string& bytes) {
  namespace base64 = boost::beast::detail::base64;
  std::string text(base64::encoded_size(bytes.size()), '\0');
  text.resize(base64::encode(text.data(), bytes.data(), bytes.size()));
  return text;
}

absl::StatusOr<Json> ClusterJson(const kube::Credentials& cluster) {
  std::string ca = cluster.ca_pem;
  if (ca.empty() && !cluster.ca_file.empty()) {
    TRANCHE_ASSIGN_OR_RETURN(ca, kube::ReadSmallFile(cluster.ca_file));
  }
  Json json = {{"server", fmt::format("https://{}{}",
                                      kube::HostHeader(cluster.host, cluster.port, /*tls=*/true),
                                      cluster.path_prefix)}};
  if (!cluster.tls_server_name.empty()) json["tls-server-name"] = cluster.tls_server_name;
  if (cluster.insecure_skip_verify) json["insecure-skip-tls-verify"] = true;
  if (!ca.empty()) json["certificate-authority-data"] = Base64(ca);
  return json;
}

// This process' environment without the names that `own` sets, and those.
std::vector<std::string> Environment(const std::vector<std::string>& own) {
  std::vector<std::string> all = own;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, std::min(text.find('='), text.size() - 1) + 1);
    const bool replaced = std::any_of(own.begin(), own.end(), [name](const std::string& set) {
      return std::string_view(set).starts_with(name);
    });
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

}  // namespace

absl::Status PluginLogin::Bad(const std::string& expected, const std::string& found) const {
  return absl::InvalidArgumentError(fmt::format("the sign-in program {}: expected {}, found {}",
                                                plugin_.command, expected, found));
}

absl::Status PluginLogin::Fill(Instant now, kube::Credentials& credentials) {
  if (held_ && held_->expires && *held_->expires <= now + kMargin) held_.reset();
  if (!held_) {
    TRANCHE_ASSIGN_OR_RETURN(Held asked, Ask(credentials));
    held_ = std::move(asked);
  }
  if (!held_->token.empty()) {
    credentials.token = held_->token;
    credentials.token_file.clear();
  }
  if (!held_->certificate.empty()) {
    credentials.client_cert_pem = held_->certificate;
    credentials.client_key_pem = held_->key;
    credentials.client_cert_file.clear();
    credentials.client_key_file.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<PluginLogin::Held> PluginLogin::Ask(const kube::Credentials& cluster) const {
  using Interactive = kube::ExecPlugin::Interactive;
  const bool somebody = isatty(STDIN_FILENO) == 1;
  if (plugin_.interactive == Interactive::kAlways && !somebody) {
    return Bad("a terminal, since its interactiveMode is Always", "none");
  }
  const bool interactive = somebody && plugin_.interactive != Interactive::kNever;
  Json info = {{"apiVersion", plugin_.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", interactive}}}};
  if (plugin_.wants_cluster) {
    TRANCHE_ASSIGN_OR_RETURN(info["spec"]["cluster"], ClusterJson(cluster));
  }
  std::vector<std::string> own = plugin_.environment;
  own.push_back("KUBERNETES_EXEC_INFO=" + info.dump());
  probe::Program program;
  program.path = plugin_.command;
  program.arguments = plugin_.arguments;
  program.timeout = interactive ? kWithSomebody : kAlone;
  program.output_limit = kMostOutput;
  probe::Surroundings around;
  around.environment = Environment(own);
  around.shows_errors = true;
  around.interactive = interactive;
  const absl::StatusOr<std::string> text = probe::OutputOf(program, around);
  if (text.ok()) return Read(*text);
  const std::string hint = plugin_.install_hint.empty() || !absl::IsNotFound(text.status())
                               ? ""
                               : fmt::format(" ({})", plugin_.install_hint);
  return absl::InvalidArgumentError(
      fmt::format("the kubeconfig's sign-in: {}{}", std::string(text.status().message()), hint));
}

absl::StatusOr<PluginLogin::Held> PluginLogin::Read(const std::string& text) const {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || Text(json, "kind") != "ExecCredential") {
    return Bad("an ExecCredential in JSON", "something else");
  }
  if (Text(json, "apiVersion") != plugin_.api_version) {
    return Bad("apiVersion " + plugin_.api_version, wire::Quoted(Text(json, "apiVersion")));
  }
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object()) return Bad("a status", "none");
  const auto member = [&status](const char* key) {
    const auto found = status->find(key);
    return found != status->end() && found->is_string() ? found->get<std::string>() : "";
  };
  Held held = {member("token"), member("clientCertificateData"), member("clientKeyData"), {}};
  if (held.certificate.empty() != held.key.empty()) {
    return Bad("clientCertificateData and clientKeyData together", "one of them");
  }
  if (held.token.empty() && held.certificate.empty()) {
    return Bad("a token or a client certificate in its status", "neither");
  }
  if (!held.token.empty() && !kube::CheckToken(held.token, "token").ok()) {
    return Bad("a token of printable ASCII", "other bytes");
  }
  if (const std::string expires = member("expirationTimestamp"); !expires.empty()) {
    held.expires = wire::ParseTime(expires);
    if (!held.expires) return Bad("expirationTimestamp in RFC 3339", wire::Quoted(expires));
  }
  return held;
}

UserToken::UserToken(kube::Credentials api, std::shared_ptr<PluginLogin> login, TokenOrigin origin)
    : api_(std::move(api)), login_(std::move(login)), origin_(std::move(origin)) {}

absl::StatusOr<std::string> UserToken::Get(Instant now) {
  if (!origin_.file.empty()) {
    TRANCHE_ASSIGN_OR_RETURN(const std::string text, kube::ReadSmallFile(origin_.file));
    return kube::Trimmed(text);
  }
  if (login_) TRANCHE_RETURN_IF_ERROR(login_->Fill(now, api_));
  if (origin_.account.empty()) return OfUser();
  if (!made_ || made_->ends <= now + kMargin) {
    TRANCHE_ASSIGN_OR_RETURN(made_, MakeForAccount(now));
  }
  return made_->token;
}

absl::StatusOr<std::string> UserToken::OfUser() const {
  std::string token = api_.token;
  if (!api_.token_file.empty()) {
    TRANCHE_ASSIGN_OR_RETURN(const std::string text, kube::ReadSmallFile(api_.token_file));
    token = kube::Trimmed(text);
  }
  if (!token.empty()) {
    const absl::Status usable = kube::CheckToken(token, "the kubeconfig");
    if (!usable.ok()) return absl::InvalidArgumentError(std::string(usable.message()));
    return token;
  }
  const bool certificate = !api_.client_cert_pem.empty() || !api_.client_cert_file.empty();
  return absl::InvalidArgumentError(fmt::format(
      "the server asks for a token of the cluster: expected a kubeconfig's user who has one, found "
      "{}; --token-from NAMESPACE/ACCOUNT shows one of a service account, made for ten minutes, if "
      "you may create serviceaccounts/token there",
      certificate ? "one with a client certificate, which only API servers can judge"
                  : "one without"));
}

// authentication.k8s.io/v1 TokenRequest.
absl::StatusOr<UserToken::Made> UserToken::MakeForAccount(Instant now) const {
  Json asked = {{"apiVersion", "authentication.k8s.io/v1"},
                {"kind", "TokenRequest"},
                {"spec", {{"expirationSeconds", kAccountTokenLives.count()}}}};
  if (!origin_.audience.empty()) asked["spec"]["audiences"] = Json::array({origin_.audience});
  kube::SingleRequest request;
  request.method = "POST";
  request.target = fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}/token", origin_.account_ns,
                               origin_.account);
  request.body = asked.dump();
  const absl::StatusOr<kube::SingleAnswer> answer = kube::CallOnce(api_, request);
  const auto bad = [this](const std::string& found) {
    return absl::InvalidArgumentError(
        fmt::format("--token-from: expected the API server to make a token of service account "
                    "{}/{}, found {}",
                    origin_.account_ns, origin_.account, found));
  };
  if (!answer.ok()) return bad(std::string(answer.status().message()));
  const Json json = Json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (answer->status != 201) {
    return bad(fmt::format("{}: {}", answer->status,
                           json.is_object() ? Text(json, "message") : "no reason"));
  }
  const Json status = json.is_object() ? json.value("status", Json()) : Json();
  const auto text = [&status](const char* key) {
    return status.is_object() ? Text(status, key) : "-";
  };
  Made made = {text("token"), now};
  if (!kube::CheckToken(made.token, "token").ok() || made.token == "-") {
    return bad("an answer without one");
  }
  const std::optional<Instant> ends = wire::ParseTime(text("expirationTimestamp"));
  made.ends = ends.value_or(now + kAccountTokenLives);
  return made;
}

bool UserToken::Forget() {
  if (!origin_.file.empty() || !origin_.account.empty() || !login_) return false;
  login_->Forget();
  return true;
}

std::string UserToken::Whose() const {
  if (!origin_.file.empty()) return fmt::format("the one in {} is another", origin_.file);
  if (origin_.account.empty()) return "that of the kubeconfig's user";
  return fmt::format("that of service account {}/{}{}", origin_.account_ns, origin_.account,
                     origin_.audience.empty()
                         ? "; --token-audience where the server's pages.audiences has others than "
                           "the API server's"
                         : "");
}

}  // namespace tranche
