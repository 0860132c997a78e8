#include "scheduler/server/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

constexpr std::array<std::string_view, 6> kLogLevels = {"trace", "debug", "info",
                                                        "warn",  "error", "off"};

// What a setter says about a value it cannot take: what it expected. nullopt: taken.
using Complaint = std::optional<std::string>;
using Setter = std::function<Complaint(const YAML::Node&, ServeConfig&)>;

std::optional<int64_t> Integer(const YAML::Node& node) {
  if (!node.IsScalar() || node.Tag() == "!") return std::nullopt;  // "!": quoted, a text
  const std::string& text = node.Scalar();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Store>
Setter Whole(int64_t low, int64_t high, Store store) {
  return [low, high, store](const YAML::Node& node, ServeConfig& config) -> Complaint {
    const std::optional<int64_t> value = Integer(node);
    if (!value || *value < low || *value > high) {
      return fmt::format("a whole number in {}..{}", low, high);
    }
    store(config, *value);
    return std::nullopt;
  };
}

// A time of at least `low` seconds.
Setter Seconds(int64_t low, std::function<std::chrono::milliseconds&(ServeConfig&)> field) {
  constexpr int64_t kDay = 24 * 3600;
  return Whole(low, kDay, [field = std::move(field)](ServeConfig& config, int64_t value) {
    field(config) = std::chrono::seconds(value);
  });
}

// A text that `store` takes; it returns false where it does not.
template <typename Store>
Setter Text(std::string expected, Store store) {
  return [expected = std::move(expected), store](const YAML::Node& node,
                                                 ServeConfig& config) -> Complaint {
    if (!node.IsScalar() || !store(config, node.Scalar())) return expected;
    return std::nullopt;
  };
}

template <typename Value, std::size_t kCount, typename Store>
Setter OneOf(const std::array<std::pair<std::string_view, Value>, kCount>& choices, Store store) {
  std::string expected = "one of";
  for (const auto& [name, value] : choices) expected += fmt::format(" {}", name);
  return Text(std::move(expected), [choices, store](ServeConfig& config, const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name != text) continue;
      store(config, value);
      return true;
    }
    return false;
  });
}

// What Kubernetes takes as a name, roughly: it goes into a path.
bool IsObjectName(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

// A list of texts, none of them empty.
Setter List(const char* expected, std::function<std::vector<std::string>&(ServeConfig&)> field) {
  return [expected, field = std::move(field)](const YAML::Node& node,
                                              ServeConfig& config) -> Complaint {
    if (!node.IsSequence()) return expected;
    std::vector<std::string>& list = field(config);
    list.clear();
    for (const YAML::Node& item : node) {
      if (!item.IsScalar() || item.Scalar().empty()) return expected;
      list.push_back(item.Scalar());
    }
    return std::nullopt;
  };
}

Setter TlsFile(std::string http::TlsOptions::*field) {
  return Text("a file name", [field](ServeConfig& config, const std::string& text) {
    if (!config.tls) config.tls.emplace();
    *config.tls.*field = text;
    return !text.empty();
  });
}

void AddAdmissionKeys(std::map<std::string, Setter>& keys) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> kChoices = {
      {{"true", true}, {"false", false}}};
  keys["tls.listen"] = Text("HOST:PORT", [](ServeConfig& config, const std::string& text) {
    return ReadTlsListen(text, config).ok();
  });
  keys["tls.certFile"] = TlsFile(&http::TlsOptions::certificate_file);
  keys["tls.keyFile"] = TlsFile(&http::TlsOptions::key_file);
  keys["tls.clientCaFile"] = TlsFile(&http::TlsOptions::client_ca_file);
  constexpr std::array<std::pair<std::string_view, bool>, 2> kVerbs = {
      {{"Required", true}, {"Optional", false}}};
  keys["tls.verbs"] =
      OneOf(kVerbs, [](ServeConfig& config, bool required) { config.verbs_need_tls = required; });
  keys["tls.allowedClients"] =
      List("a list of names",
           [](ServeConfig& config) -> std::vector<std::string>& { return config.allowed_clients; });
  keys["pages.listen"] = Text("HOST:PORT", [](ServeConfig& config, const std::string& text) {
    return ReadPagesListen(text, config).ok();
  });
  keys["pages.tokenFile"] = Text("a file name", [](ServeConfig& config, const std::string& text) {
    config.pages_token_file = text;
    return !text.empty();
  });
  keys["admission.schedulerName"] =
      Text("the name of a scheduler", [](ServeConfig& config, const std::string& text) {
        return ReadSchedulerName(text, config).ok();
      });
  keys["admission.gates"] =
      OneOf(kChoices, [](ServeConfig& config, bool gates) { config.admission.gates = gates; });
  keys["admission.trustedUsers"] =
      List("a list of users and groups", [](ServeConfig& config) -> std::vector<std::string>& {
        return config.admission.trusted_users;
      });
}

void AddServerKeys(std::map<std::string, Setter>& keys) {
  constexpr int64_t kKiB = 1024;
  constexpr int64_t kMiB = 1024 * kKiB;
  using Millis = std::chrono::milliseconds;
  keys["listen"] = Text("HOST:PORT", [](ServeConfig& config, const std::string& text) {
    return ReadListen(text, config).ok();
  });
  keys["threads"] =
      Whole(1, 64, [](ServeConfig& c, int64_t value) { c.threads = static_cast<int>(value); });
  keys["http.headerBytes"] = Whole(kKiB, kMiB, [](ServeConfig& c, int64_t value) {
    c.limits.header_bytes = static_cast<std::size_t>(value);
  });
  keys["http.bodyBytes"] = Whole(kKiB, 256 * kMiB, [](ServeConfig& c, int64_t value) {
    c.limits.body_bytes = static_cast<std::size_t>(value);
  });
  keys["http.headerSeconds"] =
      Seconds(1, [](ServeConfig& c) -> Millis& { return c.limits.header_time; });
  keys["http.requestSeconds"] =
      Seconds(1, [](ServeConfig& c) -> Millis& { return c.limits.request_time; });
  // kube-scheduler re-uses connections that were idle for up to 90 s.
  keys["http.idleSeconds"] =
      Seconds(95, [](ServeConfig& c) -> Millis& { return c.limits.idle_time; });
  keys["http.replySeconds"] =
      Seconds(1, [](ServeConfig& c) -> Millis& { return c.limits.reply_time; });
  keys["http.connections"] = Whole(
      2, 65'536, [](ServeConfig& c, int64_t v) { c.limits.connections = static_cast<int>(v); });
  keys["logLevel"] = Text(fmt::format("one of {}", fmt::join(kLogLevels, " ")),
                          [](ServeConfig& config, const std::string& text) {
                            if (!IsLogLevel(text)) return false;
                            config.log_level = text;
                            return true;
                          });
}

void AddClusterKeys(std::map<std::string, Setter>& keys) {
  using Millis = std::chrono::milliseconds;
  constexpr std::array<std::pair<std::string_view, ClusterKind>, 2> kClusters = {
      {{"embedded", ClusterKind::kEmbedded}, {"kubernetes", ClusterKind::kKubernetes}}};
  constexpr std::array<std::pair<std::string_view, bool>, 2> kClocks = {
      {{"system", false}, {"manual", true}}};
  keys["cluster"] = OneOf(kClusters, [](ServeConfig& c, ClusterKind kind) { c.cluster = kind; });
  keys["objects"] =
      List("a list of file names",
           [](ServeConfig& config) -> std::vector<std::string>& { return config.objects; });
  keys["kubeconfig"] = Text("a file name", [](ServeConfig& config, const std::string& text) {
    config.kubeconfig = text;
    return !text.empty();
  });
  keys["clock"] = OneOf(kClocks, [](ServeConfig& c, bool manual) { c.manual_clock = manual; });
  keys["cacheAgeSeconds"] = Seconds(5, [](ServeConfig& c) -> Millis& { return c.cache_limit; });
  keys["claimSeconds"] = Seconds(1, [](ServeConfig& c) -> Millis& { return c.tentative_lifetime; });
}

void AddLedgerKeys(std::map<std::string, Setter>& keys) {
  constexpr std::array<std::pair<std::string_view, LedgerFailure>, 2> kFailures = {
      {{"Closed", LedgerFailure::kClosed}, {"Open", LedgerFailure::kOpen}}};
  keys["ledger.file"] = Text("a file name", [](ServeConfig& config, const std::string& text) {
    config.ledger = text;
    return !text.empty();
  });
  keys["ledger.onFailure"] =
      OneOf(kFailures, [](ServeConfig& c, LedgerFailure value) { c.ledger_failure = value; });
}

void AddElectionKeys(std::map<std::string, Setter>& keys) {
  using Millis = std::chrono::milliseconds;
  keys["leaderElection.lease"] =
      Text("NAMESPACE/NAME", [](ServeConfig& config, const std::string& text) {
        const std::size_t slash = text.find('/');
        if (slash == std::string::npos) return false;
        config.election.ns = text.substr(0, slash);
        config.election.name = text.substr(slash + 1);
        config.elects = true;
        return IsObjectName(config.election.ns) && IsObjectName(config.election.name);
      });
  keys["leaderElection.leaseSeconds"] =
      Seconds(3, [](ServeConfig& c) -> Millis& { return c.election.lease; });
  keys["leaderElection.renewSeconds"] =
      Seconds(2, [](ServeConfig& c) -> Millis& { return c.election.renew; });
  keys["leaderElection.retrySeconds"] =
      Seconds(1, [](ServeConfig& c) -> Millis& { return c.election.retry; });
}

void AddCompatibilityKeys(std::map<std::string, Setter>& keys) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> kOf = {
      {{"none", false}, {"hami", true}}};
  keys["compatibility"] = OneOf(kOf, [](ServeConfig& c, bool hami) { c.hami = hami; });
}

void AddMigKeys(std::map<std::string, Setter>& keys) {
  keys["mig.configMap"] = Text("NAMESPACE/NAME", [](ServeConfig& config, const std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) return false;
    config.mig_config_ns = text.substr(0, slash);
    config.mig_config_name = text.substr(slash + 1);
    return IsObjectName(config.mig_config_ns) && IsObjectName(config.mig_config_name);
  });
}

void AddPolicyKeys(std::map<std::string, Setter>& keys) {
  constexpr std::array<std::pair<std::string_view, Strategy>, 3> kStrategies = {
      {{"Fragmentation", Strategy::kFragmentation},
       {"BestFit", Strategy::kBestFit},
       {"Spread", Strategy::kSpread}}};
  constexpr std::array<std::pair<std::string_view, Permission>, 2> kPermissions = {
      {{"Allow", Permission::kAllow}, {"Refuse", Permission::kRefuse}}};
  constexpr std::array<std::pair<std::string_view, PreemptionActor>, 3> kActors = {
      {{"Planner", PreemptionActor::kPlanner},
       {"Scheduler", PreemptionActor::kScheduler},
       {"Off", PreemptionActor::kOff}}};
  keys["strategy"] =
      OneOf(kStrategies, [](ServeConfig& c, Strategy strategy) { c.policy.strategy = strategy; });
  keys["filterWidth"] = Whole(1, kMaxFilterWidth, [](ServeConfig& c, int64_t value) {
    c.policy.filter_width = static_cast<int>(value);
  });
  keys["sharing.unenforced"] =
      OneOf(kPermissions, [](ServeConfig& c, Permission value) { c.unenforced_sharing = value; });
  constexpr std::array<std::pair<std::string_view, bool>, 2> kOnOff = {
      {{"On", true}, {"Off", false}}};
  keys["sharing.reservation"] = OneOf(kOnOff, [](ServeConfig& c, bool on) { c.reservation = on; });
  keys["sharing.reservationImage"] =
      Text("the name of an image", [](ServeConfig& config, const std::string& text) {
        config.reservation_image = text;
        return !text.empty();
      });
  keys["preemption.actor"] =
      OneOf(kActors, [](ServeConfig& c, PreemptionActor actor) { c.policy.actor = actor; });
}

const std::map<std::string, Setter>& Keys() {
  static const std::map<std::string, Setter> keys = [] {
    std::map<std::string, Setter> all;
    AddServerKeys(all);
    AddAdmissionKeys(all);
    AddClusterKeys(all);
    AddLedgerKeys(all);
    AddMigKeys(all);
    AddElectionKeys(all);
    AddPolicyKeys(all);
    AddCompatibilityKeys(all);
    return all;
  }();
  return keys;
}

bool IsGroup(const std::string& key) {
  const std::string prefix = key + ".";
  const auto next = Keys().lower_bound(prefix);
  return next != Keys().end() && next->first.compare(0, prefix.size(), prefix) == 0;
}

// A value as it was written, for errors.
std::string Shown(const YAML::Node& node) {
  if (node.IsScalar()) return wire::Quoted(node.Scalar());
  return node.IsMap() ? "a map" : node.IsSequence() ? "a list" : "nothing";
}

class Reader {
 public:
  Reader(std::string_view name, ServeConfig& config) : name_(name), config_(config) {}

  absl::Status ReadMap(const YAML::Node& map, const std::string& prefix) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) return Bad(entry.first, "a key that is text", "something else");
      const std::string key = prefix + entry.first.Scalar();
      if (!seen.insert(key).second) return Bad(entry.first, key + " once", "it again");
      if (const absl::Status read = ReadEntry(entry.first, entry.second, key); !read.ok()) {
        return read;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Bad(const YAML::Node& where, std::string_view expected, std::string_view found) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: expected {}, found {}", name_, where.Mark().line + 1, expected, found));
  }

 private:
  absl::Status ReadEntry(const YAML::Node& where, const YAML::Node& value, const std::string& key) {
    if (const auto setter = Keys().find(key); setter != Keys().end()) {
      const Complaint complaint = setter->second(value, config_);
      if (!complaint) return absl::OkStatus();
      return Bad(where, fmt::format("{}: {}", key, *complaint), Shown(value));
    }
    if (!IsGroup(key)) return Bad(where, "a known key", wire::Quoted(key));
    if (!value.IsMap()) return Bad(where, fmt::format("{}: a map", key), Shown(value));
    return ReadMap(value, key + ".");
  }

  std::string_view name_;
  ServeConfig& config_;
};

}  // namespace

bool IsLogLevel(std::string_view text) {
  return std::find(kLogLevels.begin(), kLogLevels.end(), text) != kLogLevels.end();
}

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

absl::Status ReadSchedulerName(std::string_view text, ServeConfig& config) {
  constexpr std::size_t kLongest = 253;
  if (text.size() > kLongest || !IsObjectName(text)) {
    return absl::InvalidArgumentError(fmt::format(
        "admission.schedulerName: expected the name of a scheduler, found {}", wire::Quoted(text)));
  }
  config.admission.scheduler_name = text;
  return absl::OkStatus();
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

absl::Status ApplyConfigText(std::string_view yaml, std::string_view name, ServeConfig& config) {
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    if (root.IsNull()) return absl::OkStatus();
    Reader reader(name, config);
    if (!root.IsMap()) return reader.Bad(root, "a map of settings", Shown(root));
    return reader.ReadMap(root, "");
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: expected YAML, found {}", name, error.mark.line + 1, error.msg));
  }
}

absl::Status ApplyConfigFile(const std::string& path, ServeConfig& config) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(
        fmt::format("config: expected a readable file, found none at {}", wire::Quoted(path)));
  }
  return ApplyConfigText(text.str(), path, config);
}

namespace {

// A leader must stop before another begins, and try more than once before it stops.
absl::Status CheckElection(const ServeConfig& config) {
  if (!config.elects) return absl::OkStatus();
  if (config.cluster == ClusterKind::kEmbedded) {
    return absl::InvalidArgumentError(
        "leaderElection.lease: expected only with cluster kubernetes, found cluster embedded");
  }
  const auto& [ns, name, lease, renew, retry] = config.election;
  if (lease > renew && renew * 10 > retry * 12) return absl::OkStatus();
  const auto seconds = [](std::chrono::milliseconds time) { return time.count() / 1000; };
  return absl::InvalidArgumentError(fmt::format(
      "leaderElection: expected leaseSeconds > renewSeconds > 1.2 x retrySeconds, found "
      "{}, {} and {}",
      seconds(lease), seconds(renew), seconds(retry)));
}

}  // namespace

absl::Status CheckConfig(const ServeConfig& config) {
  const bool embedded = config.cluster == ClusterKind::kEmbedded;
  const auto only = [](std::string_view setting, std::string_view kind, std::string_view found) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected only with cluster {}, found cluster {}", setting, kind, found));
  };
  if (!embedded && !config.objects.empty()) return only("objects", "embedded", "kubernetes");
  if (!embedded && config.manual_clock) return only("clock manual", "embedded", "kubernetes");
  if (embedded && !config.kubeconfig.empty()) return only("kubeconfig", "kubernetes", "embedded");
  if (!embedded && config.reservation && config.reservation_image.empty()) {
    return absl::InvalidArgumentError(
        "sharing.reservation: expected sharing.reservationImage beside it, found none");
  }
  if (config.tls && (config.tls->certificate_file.empty() || config.tls->key_file.empty())) {
    return absl::InvalidArgumentError(fmt::format(
        "tls: expected certFile and keyFile, found {} and {}",
        wire::Quoted(config.tls->certificate_file), wire::Quoted(config.tls->key_file)));
  }
  const bool knows_clients = config.tls && !config.tls->client_ca_file.empty();
  for (const auto& [set, setting] :
       {std::pair(config.verbs_need_tls, "tls.verbs Required"),
        std::pair(!config.allowed_clients.empty(), "tls.allowedClients")}) {
    if (!set || knows_clients) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: expected only with tls.clientCaFile, found none", setting));
  }
  return CheckElection(config);
}

GpuPolicy PolicyDefaults(const ServeConfig& config) {
  GpuPolicy policy = config.policy;
  policy.unenforced_sharing = config.unenforced_sharing.value_or(
      config.cluster == ClusterKind::kEmbedded ? Permission::kAllow : Permission::kRefuse);
  return policy;
}

}  // namespace tranche
