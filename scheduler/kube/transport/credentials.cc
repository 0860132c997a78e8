#include "scheduler/kube/transport/credentials.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>

#include "scheduler/kube/transport/exec_plugin.h"
#include "scheduler/kube/transport/files.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/transport/token.h"
#include "topology/base/status.h"

namespace tranche::kube {
namespace {

absl::Status Invalid(const std::string& field, const std::string& expected,
                     const std::string& found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", field, expected, found));
}

// The text of a scalar member, "" when absent. Errors: InvalidArgument for another kind of node.
absl::StatusOr<std::string> Text(const YAML::Node& map, const std::string& key,
                                 const std::string& where) {
  const YAML::Node value = map[key];
  if (!value || value.IsNull()) return std::string();
  if (!value.IsScalar()) return Invalid(where + "." + key, "text", "a list or map");
  return value.Scalar();
}

absl::StatusOr<bool> Flag(const YAML::Node& map, const std::string& key, const std::string& where) {
  TRANCHE_ASSIGN_OR_RETURN(auto text, Text(map, key, where));
  if (text == "true") return true;
  if (text.empty() || text == "false") return false;
  return Invalid(where + "." + key, "true or false", text);
}

// The map under `field` of the entry of `list` that is called `name`.
absl::StatusOr<YAML::Node> Named(const YAML::Node& root, const std::string& list,
                                 const std::string& name, const std::string& field) {
  const YAML::Node entries = root[list];
  if (entries && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap() || !entry["name"] || !entry["name"].IsScalar()) continue;
      if (entry["name"].Scalar() != name) continue;
      const YAML::Node value = entry[field];
      if (value && value.IsMap()) return value;
      return Invalid(fmt::format("{}[{}].{}", list, name, field), "a map", "something else");
    }
  }
  return Invalid(list, fmt::format("an entry called \"{}\"", name), "none");
}

// Standard base64 with padding; white space inside is skipped. The value is a secret: errors
// name the field only.
absl::StatusOr<std::string> DecodeBase64(const std::string& text, const std::string& field) {
  std::string packed;
  for (const char byte : text) {
    if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') packed.push_back(byte);
  }
  const std::size_t padding = packed.ends_with("==") ? 2 : packed.ends_with("=") ? 1 : 0;
  const absl::Status bad = Invalid(field, "base64", "other text");
  if (packed.size() % 4 != 0 || packed.size() > std::size_t{1} << 24) return bad;
  std::basic_string<unsigned char> bytes(packed.size() / 4 * 3, 0);
  const std::basic_string<unsigned char> input(packed.begin(), packed.end());
  const int length = EVP_DecodeBlock(bytes.data(), input.data(), static_cast<int>(input.size()));
  if (length < 0) return bad;
  return std::string(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(padding));
}

// A value that may be given inline (KEY-data, base64, wins) or as a path.
absl::Status InlineOrFile(const YAML::Node& map, const std::string& key, const std::string& where,
                          const std::filesystem::path& folder, std::string& pem,
                          std::string& file) {
  TRANCHE_ASSIGN_OR_RETURN(auto data, Text(map, key + "-data", where));
  if (!data.empty()) {
    TRANCHE_ASSIGN_OR_RETURN(pem, DecodeBase64(data, where + "." + key + "-data"));
    return absl::OkStatus();
  }
  TRANCHE_ASSIGN_OR_RETURN(auto path, Text(map, key, where));
  if (path.empty()) return absl::OkStatus();
  file = (folder / path).string();
  auto readable = ReadSmallFile(file);
  if (!readable.ok()) return Invalid(where + "." + key, "a readable file", file);
  return absl::OkStatus();
}

absl::Status RefuseUnsupported(const YAML::Node& map, std::initializer_list<const char*> keys,
                               const std::string& where) {
  for (const char* key : keys) {
    const YAML::Node value = map[key];
    if (!value || value.IsNull() || (value.IsScalar() && value.Scalar().empty())) continue;
    return absl::UnimplementedError(
        fmt::format("{}.{}: expected it to be absent, found it set: not supported", where, key));
  }
  return absl::OkStatus();
}

absl::Status ReadClusterEntry(const YAML::Node& map, const std::string& where,
                              const std::filesystem::path& folder, Credentials& out) {
  TRANCHE_RETURN_IF_ERROR(RefuseUnsupported(map, {"proxy-url"}, where));
  TRANCHE_ASSIGN_OR_RETURN(auto server, Text(map, "server", where));
  auto url = ParseServerUrl(server);
  if (!url.ok()) return Invalid(where + ".server", "http(s)://host[:port][/path]", server);
  out.host = url->host;
  out.port = url->port;
  out.path_prefix = url->path_prefix;
  out.tls = url->tls;
  TRANCHE_ASSIGN_OR_RETURN(out.tls_server_name, Text(map, "tls-server-name", where));
  TRANCHE_ASSIGN_OR_RETURN(auto insecure, Flag(map, "insecure-skip-tls-verify", where));
  out.insecure_skip_verify = insecure;
  TRANCHE_RETURN_IF_ERROR(
      InlineOrFile(map, "certificate-authority", where, folder, out.ca_pem, out.ca_file));
  const bool has_ca = !out.ca_pem.empty() || !out.ca_file.empty();
  if (out.insecure_skip_verify && has_ca) {
    return Invalid(where, "certificate-authority or insecure-skip-tls-verify", "both");
  }
  if (out.tls && !out.insecure_skip_verify && !has_ca) {
    return Invalid(where, "certificate-authority or certificate-authority-data", "neither");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Texts(const YAML::Node& list, const std::string& where) {
  std::vector<std::string> texts;
  if (!list || list.IsNull()) return texts;
  if (!list.IsSequence()) return Invalid(where, "a list", "something else");
  for (const YAML::Node& item : list) {
    if (!item.IsScalar()) return Invalid(where, "texts", "a list or map");
    texts.push_back(item.Scalar());
  }
  return texts;
}

// [{name: A, value: b}] as "A=b".
absl::StatusOr<std::vector<std::string>> Variables(const YAML::Node& list,
                                                   const std::string& where) {
  std::vector<std::string> variables;
  if (!list || list.IsNull()) return variables;
  if (!list.IsSequence()) return Invalid(where, "a list", "something else");
  for (const YAML::Node& item : list) {
    if (!item.IsMap()) return Invalid(where, "maps of name and value", "something else");
    TRANCHE_ASSIGN_OR_RETURN(auto name, Text(item, "name", where));
    TRANCHE_ASSIGN_OR_RETURN(auto value, Text(item, "value", where));
    if (name.empty() || name.find('=') != std::string::npos) {
      return Invalid(where, "the name of a variable", name);
    }
    variables.push_back(name + "=" + value);
  }
  return variables;
}

absl::StatusOr<ExecPlugin::Interactive> ReadInteractive(const YAML::Node& map, bool required,
                                                        const std::string& where) {
  TRANCHE_ASSIGN_OR_RETURN(auto mode, Text(map, "interactiveMode", where));
  if (mode == "Never") return ExecPlugin::Interactive::kNever;
  if (mode == "Always") return ExecPlugin::Interactive::kAlways;
  if (mode == "IfAvailable" || (mode.empty() && !required)) {
    return ExecPlugin::Interactive::kIfAvailable;
  }
  return Invalid(where + ".interactiveMode", "Never, IfAvailable or Always",
                 mode.empty() ? "nothing" : mode);
}

absl::StatusOr<ExecPlugin> ReadExecPlugin(const YAML::Node& map, const std::string& where,
                                          const std::filesystem::path& folder) {
  constexpr const char* kVersion1 = "client.authentication.k8s.io/v1";
  if (!map.IsMap()) return Invalid(where, "a map", "something else");
  ExecPlugin plugin;
  TRANCHE_ASSIGN_OR_RETURN(plugin.api_version, Text(map, "apiVersion", where));
  const bool version_1 = plugin.api_version == kVersion1;
  if (!version_1 && plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Invalid(where + ".apiVersion", fmt::format("{} or v1beta1", kVersion1),
                   plugin.api_version);
  }
  TRANCHE_ASSIGN_OR_RETURN(plugin.command, Text(map, "command", where));
  if (plugin.command.empty()) return Invalid(where + ".command", "a program", "nothing");
  // As kubectl has it: one with a slash is beside the kubeconfig.
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = (folder / plugin.command).string();
  }
  TRANCHE_ASSIGN_OR_RETURN(plugin.arguments, Texts(map["args"], where + ".args"));
  TRANCHE_ASSIGN_OR_RETURN(plugin.environment, Variables(map["env"], where + ".env"));
  TRANCHE_ASSIGN_OR_RETURN(plugin.install_hint, Text(map, "installHint", where));
  TRANCHE_ASSIGN_OR_RETURN(plugin.wants_cluster, Flag(map, "provideClusterInfo", where));
  TRANCHE_ASSIGN_OR_RETURN(plugin.interactive, ReadInteractive(map, version_1, where));
  return plugin;
}

// `plugin`: where `exec` goes; null: it is refused.
absl::Status ReadUserEntry(const YAML::Node& map, const std::string& where,
                           const std::filesystem::path& folder, Credentials& out,
                           std::optional<ExecPlugin>* plugin) {
  const YAML::Node exec = map["exec"];
  if (plugin == nullptr) {
    TRANCHE_RETURN_IF_ERROR(RefuseUnsupported(map, {"exec"}, where));
  } else if (exec && !exec.IsNull()) {
    TRANCHE_ASSIGN_OR_RETURN(*plugin, ReadExecPlugin(exec, where + ".exec", folder));
    if (!out.tls) return Invalid(where + ".exec", "an https server", "an http server");
  }
  absl::Status status = RefuseUnsupported(
      map, {"auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"},
      where);
  if (!status.ok()) return status;
  status = InlineOrFile(map, "client-certificate", where, folder, out.client_cert_pem,
                        out.client_cert_file);
  if (!status.ok()) return status;
  status = InlineOrFile(map, "client-key", where, folder, out.client_key_pem, out.client_key_file);
  if (!status.ok()) return status;
  const bool has_cert = !out.client_cert_pem.empty() || !out.client_cert_file.empty();
  const bool has_key = !out.client_key_pem.empty() || !out.client_key_file.empty();
  if (has_cert != has_key) {
    return Invalid(where, "client-certificate and client-key together", "one of them");
  }
  TRANCHE_ASSIGN_OR_RETURN(auto token, Text(map, "token", where));
  TRANCHE_ASSIGN_OR_RETURN(auto file, Text(map, "tokenFile", where));
  out.token = Trimmed(token);
  if (!out.token.empty() && !CheckToken(out.token, where + ".token").ok()) {
    return Invalid(where + ".token", "printable ASCII", "other bytes");
  }
  if (!file.empty()) out.token_file = (folder / file).string();
  if (!out.tls && (!out.token.empty() || !out.token_file.empty())) {
    return Invalid(where + (out.token_file.empty() ? ".token" : ".tokenFile"),
                   "an https server, since a token is never sent over plain http",
                   "an http server");
  }
  return absl::OkStatus();
}

absl::StatusOr<Credentials> ReadKubeconfig(const YAML::Node& root,
                                           const std::filesystem::path& folder, std::string chosen,
                                           std::optional<ExecPlugin>* plugin) {
  if (!root.IsMap()) return Invalid("kubeconfig", "a map", "something else");
  if (chosen.empty()) {
    TRANCHE_ASSIGN_OR_RETURN(auto current, Text(root, "current-context", "kubeconfig"));
    if (current.empty()) return Invalid("current-context", "a name", "nothing");
    chosen = std::move(current);
  }
  TRANCHE_ASSIGN_OR_RETURN(auto context, Named(root, "contexts", chosen, "context"));
  const std::string context_name = fmt::format("contexts[{}].context", chosen);
  TRANCHE_ASSIGN_OR_RETURN(auto cluster_name, Text(context, "cluster", context_name));
  TRANCHE_ASSIGN_OR_RETURN(auto user_name, Text(context, "user", context_name));
  TRANCHE_ASSIGN_OR_RETURN(auto ns, Text(context, "namespace", context_name));

  Credentials credentials;
  credentials.context_namespace = ns.empty() ? "default" : ns;
  TRANCHE_ASSIGN_OR_RETURN(auto cluster, Named(root, "clusters", cluster_name, "cluster"));
  TRANCHE_RETURN_IF_ERROR(ReadClusterEntry(
      cluster, fmt::format("clusters[{}].cluster", cluster_name), folder, credentials));
  if (user_name.empty()) return credentials;
  TRANCHE_ASSIGN_OR_RETURN(auto user, Named(root, "users", user_name, "user"));
  TRANCHE_RETURN_IF_ERROR(
      ReadUserEntry(user, fmt::format("users[{}].user", user_name), folder, credentials, plugin));
  return credentials;
}

absl::StatusOr<Credentials> LoadFile(const std::string& path, const std::string& context,
                                     std::optional<ExecPlugin>* plugin) {
  auto text = ReadSmallFile(path);
  if (!text.ok()) return absl::NotFoundError(std::string(text.status().message()));
  absl::StatusOr<Credentials> credentials = absl::UnknownError("");
  try {
    credentials = ReadKubeconfig(YAML::Load(*text), std::filesystem::absolute(path).parent_path(),
                                 context, plugin);
  } catch (const YAML::Exception& error) {
    // The mark only: the text around it may hold a key.
    return absl::InvalidArgumentError(
        fmt::format("{}: expected YAML, found an error in line {}", path, error.mark.line + 1));
  } catch (const std::filesystem::filesystem_error&) {
    return absl::NotFoundError(fmt::format("{}: expected a path, found none", path));
  }
  if (credentials.ok()) return credentials;
  return absl::Status(credentials.status().code(),
                      fmt::format("{}: {}", path, std::string(credentials.status().message())));
}

}  // namespace

absl::StatusOr<Credentials> InClusterCredentials(const std::string& root) {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || *host == '\0' || port == nullptr) {
    return absl::FailedPreconditionError(
        "expected KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, found them unset: not in a "
        "pod");
  }
  Credentials credentials;
  credentials.host = host;
  auto number = ParsePort(port);
  if (!number.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("KUBERNETES_SERVICE_PORT: expected 1..65535, found \"{}\"", port));
  }
  credentials.port = *number;
  credentials.ca_file = root + "/ca.crt";
  credentials.token_file = root + "/token";
  TRANCHE_ASSIGN_OR_RETURN(auto ca, ReadSmallFile(credentials.ca_file));
  TRANCHE_ASSIGN_OR_RETURN(auto token, ReadSmallFile(credentials.token_file));
  TRANCHE_RETURN_IF_ERROR(CheckToken(Trimmed(token), credentials.token_file));
  return credentials;
}

absl::StatusOr<Credentials> LoadKubeconfig(const std::string& path, const std::string& context) {
  return LoadFile(path, context, nullptr);
}

absl::StatusOr<UserLogin> LoadUserKubeconfig(const std::string& path, const std::string& context) {
  UserLogin login;
  TRANCHE_ASSIGN_OR_RETURN(login.credentials, LoadFile(path, context, &login.plugin));
  return login;
}

}  // namespace tranche::kube
