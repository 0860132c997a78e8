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

#include "policy/selector_text.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/ledger/bill/workload_text.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr std::array<std::string_view, 6> kLogLevels = {"trace", "debug", "info",
                                                        "warn",  "error", "off"};

// What a setter says about a value it cannot take: what it expected. nullopt: taken.
using Complaint = std::optional<std::string>;
using Setter = std::function<Complaint(const YAML::Node&)>;
// By dotted key; each writes to the configuration it was made for.
using Setters = std::map<std::string, Setter>;

std::optional<int64_t> Integer(const YAML::Node& node) {
  if (!node.IsScalar() || node.Tag() == "!") return std::nullopt;  // "!": quoted, a text
  const std::string& text = node.Scalar();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Number>
Setter Whole(int64_t low, int64_t high, Number& field) {
  return [low, high, &field](const YAML::Node& node) -> Complaint {
    const std::optional<int64_t> value = Integer(node);
    if (!value || *value < low || *value > high) {
      return fmt::format("a whole number in {}..{}", low, high);
    }
    field = static_cast<Number>(*value);
    return std::nullopt;
  };
}

// A time of at least `low` seconds, a day at most.
Setter Seconds(int64_t low, std::chrono::milliseconds& field) {
  return [low, &field](const YAML::Node& node) {
    constexpr int64_t kDay = 24 * 3600;
    int64_t seconds = 0;
    Complaint complaint = Whole(low, kDay, seconds)(node);
    if (!complaint) field = std::chrono::seconds(seconds);
    return complaint;
  };
}

// A text that `take` takes; it returns false where it does not.
Setter Text(std::string expected, std::function<bool(const std::string&)> take) {
  return [expected = std::move(expected),
          take = std::move(take)](const YAML::Node& node) -> Complaint {
    if (!node.IsScalar() || !take(node.Scalar())) return expected;
    return std::nullopt;
  };
}

// Any text but the empty one.
Setter SomeText(const char* expected, std::string& field) {
  return Text(expected, [&field](const std::string& text) {
    field = text;
    return !text.empty();
  });
}

template <typename Value>
using Choices = std::vector<std::pair<std::string_view, Value>>;

template <typename Value, typename Field>
Setter OneOf(Choices<Value> choices, Field& field) {
  std::string expected = "one of";
  for (const auto& [name, value] : choices) expected += fmt::format(" {}", name);
  return Text(std::move(expected), [choices = std::move(choices), &field](const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name != text) continue;
      field = value;
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

bool SplitObjectName(const std::string& text, std::string& ns, std::string& name) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return false;
  ns = text.substr(0, slash);
  name = text.substr(slash + 1);
  return IsObjectName(ns) && IsObjectName(name);
}

bool IsSomeText(std::string_view text) { return !text.empty(); }

// A list of texts that are `good`.
Setter List(const char* expected, std::vector<std::string>& field,
            bool (*good)(std::string_view) = IsSomeText) {
  return [expected, &field, good](const YAML::Node& node) -> Complaint {
    if (!node.IsSequence()) return expected;
    field.clear();
    for (const YAML::Node& item : node) {
      if (!item.IsScalar() || !good(item.Scalar())) return expected;
      field.push_back(item.Scalar());
    }
    return std::nullopt;
  };
}

// A label more is a text more with all that is held.
Setter BillLabels(std::vector<std::string>& field) {
  static const std::string kExpected =
      fmt::format("a list of at most {} keys of labels, each once", ledger::kMostBillLabels);
  return [&field](const YAML::Node& node) -> Complaint {
    if (List(kExpected.c_str(), field, IsLabelKey)(node)) return kExpected;
    const std::set<std::string> keys(field.begin(), field.end());
    if (keys.size() < field.size() || keys.size() > ledger::kMostBillLabels) return kExpected;
    return std::nullopt;
  };
}

// `settings`: the group of keys that the files belong to.
Setter TlsFile(const char* settings, std::optional<http::TlsOptions>& tls,
               std::string http::TlsOptions::*field) {
  return Text("a file name", [settings, &tls, field](const std::string& text) {
    if (!tls) tls.emplace();
    tls->settings = settings;
    *tls.*field = text;
    return !text.empty();
  });
}

// An address, a name: what the command line takes too.
Setter AsFlag(const char* expected, absl::Status (*read)(std::string_view, ServeConfig&),
              ServeConfig& config) {
  return Text(expected,
              [read, &config](const std::string& text) { return read(text, config).ok(); });
}

void AddAdmissionKeys(ServeConfig& config, Setters& keys) {
  keys["tls.listen"] = AsFlag("HOST:PORT", ReadTlsListen, config);
  keys["tls.certFile"] = TlsFile("tls", config.tls, &http::TlsOptions::certificate_file);
  keys["tls.keyFile"] = TlsFile("tls", config.tls, &http::TlsOptions::key_file);
  keys["tls.clientCaFile"] = TlsFile("tls", config.tls, &http::TlsOptions::client_ca_file);
  keys["tls.verbs"] =
      OneOf(Choices<bool>{{"Required", true}, {"Optional", false}}, config.verbs_need_tls);
  keys["tls.allowedClients"] = List("a list of names", config.allowed_clients);
  keys["pages.listen"] = AsFlag("HOST:PORT", ReadPagesListen, config);
  keys["pages.certFile"] = TlsFile("pages", config.pages_tls, &http::TlsOptions::certificate_file);
  keys["pages.keyFile"] = TlsFile("pages", config.pages_tls, &http::TlsOptions::key_file);
  keys["probes.listen"] = AsFlag("HOST:PORT", ReadProbesListen, config);
  keys["pages.auth"] = OneOf(Choices<PageAuth>{{"None", PageAuth::kNone},
                                               {"Token", PageAuth::kToken},
                                               {"Kubernetes", PageAuth::kKubernetes}},
                             config.pages_auth);
  keys["pages.audiences"] = List("a list of texts", config.pages_audiences);
  keys["pages.reviewsPerSecond"] = Whole(1, 1'000, config.page_reviews_per_second);
  keys["pages.tokenFile"] = SomeText("a file name", config.pages_token_file);
  keys["pages.requestsPerSecond"] = Whole(0, 100'000, config.page_requests_per_second);
  keys["admission.schedulerName"] = AsFlag("the name of a scheduler", ReadSchedulerName, config);
  keys["admission.gates"] =
      OneOf(Choices<bool>{{"true", true}, {"false", false}}, config.admission.gates);
  keys["admission.spare"] = OneOf(
      Choices<Spare>{{"None", Spare::kNone}, {"Gangs", Spare::kGangs}, {"Long", Spare::kLong}},
      config.admission.spare);
  keys["admission.hamiLimits"] = OneOf(Choices<HamiLimits>{{"Resources", HamiLimits::kResources},
                                                           {"Annotation", HamiLimits::kAnnotation}},
                                       config.admission.hami_limits);
  keys["admission.takeOver"] =
      List("a list of names of schedulers", config.admission.take_over, IsObjectName);
  keys["admission.trustedUsers"] =
      List("a list of users and groups", config.admission.trusted_users);
}

void AddServerKeys(ServeConfig& config, Setters& keys) {
  constexpr int64_t kKiB = 1024;
  constexpr int64_t kMiB = 1024 * kKiB;
  http::Limits& limits = config.limits;
  keys["listen"] = AsFlag("HOST:PORT", ReadListen, config);
  keys["threads"] = Whole(1, 64, config.threads);
  keys["http.headerBytes"] = Whole(kKiB, kMiB, limits.header_bytes);
  keys["http.bodyBytes"] = Whole(kKiB, 256 * kMiB, limits.body_bytes);
  keys["http.headerSeconds"] = Seconds(1, limits.header_time);
  keys["http.requestSeconds"] = Seconds(1, limits.request_time);
  // kube-scheduler re-uses connections that were idle for up to 90 s.
  keys["http.idleSeconds"] = Seconds(95, limits.idle_time);
  keys["http.replySeconds"] = Seconds(1, limits.reply_time);
  keys["http.readingBytes"] = Whole(kMiB, 4096 * kMiB, config.reading_bytes);
  keys["http.sendingBytes"] = Whole(kMiB, 4096 * kMiB, config.sending_bytes);
  keys["http.connections"] = Whole(2, 65'536, limits.connections);
  keys["logLevel"] = Text(fmt::format("one of {}", fmt::join(kLogLevels, " ")),
                          [&config](const std::string& text) {
                            if (IsLogLevel(text)) config.log_level = text;
                            return IsLogLevel(text);
                          });
}

void AddClusterKeys(ServeConfig& config, Setters& keys) {
  keys["cluster"] = OneOf(Choices<ClusterKind>{{"embedded", ClusterKind::kEmbedded},
                                               {"kubernetes", ClusterKind::kKubernetes}},
                          config.cluster);
  keys["objects"] = List("a list of file names", config.objects);
  keys["kubeconfig"] = SomeText("a file name", config.kubeconfig);
  keys["clock"] = OneOf(Choices<bool>{{"system", false}, {"manual", true}}, config.manual_clock);
  keys["cacheAgeSeconds"] = Seconds(5, config.cache_limit);
  keys["claimSeconds"] = Seconds(1, config.tentative_lifetime);
  keys["ledger.file"] = SomeText("a file name", config.ledger);
  keys["ledger.onFailure"] = OneOf(
      Choices<LedgerFailure>{{"Closed", LedgerFailure::kClosed}, {"Open", LedgerFailure::kOpen}},
      config.ledger_failure);
  keys["ledger.openSeconds"] = Seconds(1, config.ledger_patience);
  keys["ledger.checkSeconds"] = Seconds(60, config.ledger_check);
  keys["ledger.pastDays"] = Whole(0, kMostPastDays, config.past_days);
  keys["ledger.billLabels"] = BillLabels(config.bill_labels);
  keys["ledger.olderFile"] =
      OneOf(Choices<bool>{{"Refuse", false}, {"Accept", true}}, config.ledger_accept_rollback);
  keys["ledger.networkFiles"] =
      OneOf(Choices<ledger::NetworkFiles>{{"Refuse", ledger::NetworkFiles::kRefuse},
                                          {"Accept", ledger::NetworkFiles::kAccept}},
            config.ledger_network);
  keys["mig.configMap"] = Text("NAMESPACE/NAME", [&config](const std::string& text) {
    return SplitObjectName(text, config.mig_config_ns, config.mig_config_name);
  });
  keys["metrics.shares"] = OneOf(Choices<bool>{{"On", true}, {"Off", false}}, config.share_metrics);
  keys["compatibility"] = OneOf(Choices<bool>{{"none", false}, {"hami", true}}, config.hami);
}

void AddElectionKeys(ServeConfig& config, Setters& keys) {
  keys["leaderElection.lease"] = Text("NAMESPACE/NAME", [&config](const std::string& text) {
    config.elects = true;
    return SplitObjectName(text, config.election.ns, config.election.name);
  });
  keys["leaderElection.leaseSeconds"] = Seconds(3, config.election.lease);
  keys["leaderElection.renewSeconds"] = Seconds(2, config.election.renew);
  keys["leaderElection.retrySeconds"] = Seconds(1, config.election.retry);
}

void AddUseKeys(UseOptions& use, Setters& keys) {
  keys["use.prometheus"] = Text("an http or https URL", [&use](const std::string& text) {
    use.prometheus = text;
    return kube::ParseServerUrl(text).ok();
  });
  keys["use.query"] = SomeText("a PromQL query", use.query);
  keys["use.tokenFile"] = SomeText("a file name", use.token_file);
  keys["use.caFile"] = SomeText("a file name", use.ca_file);
  keys["use.everySeconds"] = Whole(5, 120, use.every_seconds);
  keys["use.idlePercent"] = Whole(0, 50, use.idle_percent);
}

void AddPolicyKeys(ServeConfig& config, Setters& keys) {
  keys["strategy"] = OneOf(Choices<Strategy>{{"Fragmentation", Strategy::kFragmentation},
                                             {"BestFit", Strategy::kBestFit},
                                             {"Spread", Strategy::kSpread}},
                           config.policy.strategy);
  keys["filterWidth"] = Whole(1, kMaxFilterWidth, config.policy.filter_width);
  keys["sharing.unenforced"] =
      OneOf(Choices<Permission>{{"Allow", Permission::kAllow}, {"Refuse", Permission::kRefuse}},
            config.unenforced_sharing);
  keys["sharing.reservation"] =
      OneOf(Choices<bool>{{"On", true}, {"Off", false}}, config.reservation);
  keys["sharing.reservationImage"] = SomeText("the name of an image", config.reservation_image);
  keys["preemption.actor"] =
      OneOf(Choices<PreemptionActor>{{"Planner", PreemptionActor::kPlanner},
                                     {"Scheduler", PreemptionActor::kScheduler},
                                     {"Off", PreemptionActor::kOff}},
            config.policy.actor);
}

Setters SettersOf(ServeConfig& config) {
  Setters all;
  AddServerKeys(config, all);
  AddAdmissionKeys(config, all);
  AddClusterKeys(config, all);
  AddElectionKeys(config, all);
  AddUseKeys(config.use, all);
  AddPolicyKeys(config, all);
  return all;
}

// A value as it was written, for errors.
std::string Shown(const YAML::Node& node) {
  if (node.IsScalar()) return wire::Quoted(node.Scalar());
  return node.IsMap() ? "a map" : node.IsSequence() ? "a list" : "nothing";
}

class Reader {
 public:
  Reader(std::string_view name, ServeConfig& config) : name_(name), setters_(SettersOf(config)) {}

  absl::Status ReadMap(const YAML::Node& map, const std::string& prefix) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) return Bad(entry.first, "a key that is text", "something else");
      const std::string key = prefix + entry.first.Scalar();
      if (!seen.insert(key).second) return Bad(entry.first, key + " once", "it again");
      TRANCHE_RETURN_IF_ERROR(ReadEntry(entry.first, entry.second, key));
    }
    return absl::OkStatus();
  }

  absl::Status Bad(const YAML::Node& where, std::string_view expected, std::string_view found) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: expected {}, found {}", name_, where.Mark().line + 1, expected, found));
  }

 private:
  absl::Status ReadEntry(const YAML::Node& where, const YAML::Node& value, const std::string& key) {
    if (const auto setter = setters_.find(key); setter != setters_.end()) {
      const Complaint complaint = setter->second(value);
      if (!complaint) return absl::OkStatus();
      return Bad(where, fmt::format("{}: {}", key, *complaint), Shown(value));
    }
    if (!IsGroup(key)) return Bad(where, "a known key", wire::Quoted(key));
    if (!value.IsMap()) return Bad(where, fmt::format("{}: a map", key), Shown(value));
    return ReadMap(value, key + ".");
  }

  // Whether settings stand below it.
  bool IsGroup(const std::string& key) const {
    const auto next = setters_.lower_bound(key + ".");
    return next != setters_.end() && next->first.starts_with(key + ".");
  }

  std::string_view name_;
  const Setters setters_;
};

}  // namespace

bool IsLogLevel(std::string_view text) {
  return std::find(kLogLevels.begin(), kLogLevels.end(), text) != kLogLevels.end();
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

// One file is of no use without the other.
absl::Status CheckTls(const std::optional<http::TlsOptions>& tls) {
  if (!tls || (!tls->certificate_file.empty() && !tls->key_file.empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: expected certFile and keyFile, found {} and {}", tls->settings,
                  wire::Quoted(tls->certificate_file), wire::Quoted(tls->key_file)));
}

// A setting that would be without effect is taken for a mistake: somebody relies on it.
absl::Status CheckPages(const ServeConfig& config) {
  const PageAuth auth = PageAuthOf(config);
  const auto bad = [](const char* text) { return absl::InvalidArgumentError(text); };
  if (auth == PageAuth::kKubernetes && config.cluster == ClusterKind::kEmbedded) {
    return bad(
        "pages.auth Kubernetes: expected only with cluster kubernetes, whose API server says who a "
        "caller is, found cluster embedded");
  }
  if (config.pages_tls && !config.pages_address) {
    return bad("pages.certFile: expected pages.listen beside it, found none");
  }
  if (auth == PageAuth::kToken && config.pages_token_file.empty()) {
    return bad("pages.auth Token: expected pages.tokenFile beside it, found none");
  }
  if (auth != PageAuth::kToken && !config.pages_token_file.empty()) {
    return bad("pages.tokenFile: expected only with pages.auth Token, found another");
  }
  if (auth != PageAuth::kKubernetes && !config.pages_audiences.empty()) {
    return bad("pages.audiences: expected only with pages.auth Kubernetes, found another");
  }
  return absl::OkStatus();
}

absl::Status CheckUse(const UseOptions& use) {
  const bool asks = !use.prometheus.empty();
  for (const auto& [text, key] : {std::pair(&use.query, "query"), std::pair(&use.ca_file, "caFile"),
                                  std::pair(&use.token_file, "tokenFile")}) {
    if (asks || text->empty()) continue;
    return absl::InvalidArgumentError(
        fmt::format("use.{}: expected use.prometheus beside it, found none", key));
  }
  if (use.token_file.empty() || use.prometheus.starts_with("https://")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "use.tokenFile: expected an https URL in use.prometheus, since a token is not sent in clear, "
      "found another");
}

}  // namespace

PageAuth PageAuthOf(const ServeConfig& config) {
  const PageAuth unset = config.pages_token_file.empty() ? PageAuth::kNone : PageAuth::kToken;
  return config.pages_auth.value_or(unset);
}

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
  for (const std::optional<http::TlsOptions>* const tls : {&config.tls, &config.pages_tls}) {
    if (absl::Status paired = CheckTls(*tls); !paired.ok()) return paired;
  }
  const bool knows_clients = config.tls && !config.tls->client_ca_file.empty();
  for (const auto& [set, setting] :
       {std::pair(config.verbs_need_tls, "tls.verbs Required"),
        std::pair(!config.allowed_clients.empty(), "tls.allowedClients")}) {
    if (!set || knows_clients) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: expected only with tls.clientCaFile, found none", setting));
  }
  if (absl::Status status = CheckPages(config); !status.ok()) return status;
  if (absl::Status status = CheckUse(config.use); !status.ok()) return status;
  return CheckElection(config);
}

GpuPolicy PolicyDefaults(const ServeConfig& config) {
  GpuPolicy policy = config.policy;
  policy.unenforced_sharing = config.unenforced_sharing.value_or(
      config.cluster == ClusterKind::kEmbedded ? Permission::kAllow : Permission::kRefuse);
  return policy;
}

}  // namespace tranche
