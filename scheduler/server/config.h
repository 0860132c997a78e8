// How a server is to run: defaults, then the configuration file, then flags.
//
// The file is strict: an unknown key, a value of another type or out of its range, and a key given
// twice are errors that name file, line and key. Source of keys and ranges: config.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "policy/spec.h"
#include "scheduler/api/admission_api.h"
#include "scheduler/http/server.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/worker.h"

namespace tranche {

enum class ClusterKind : uint8_t { kEmbedded, kKubernetes };

inline constexpr int kMostPastDays = 400;

// What becomes of quota when the ledger cannot be trusted.
enum class LedgerFailure : uint8_t {
  kClosed,  // what quota or a budget would count waits
  kOpen,    // it goes on, unmetered
};

// What metrics, API and page ask their callers for.
enum class PageAuth : uint8_t {
  kNone,        // nothing
  kToken,       // the one token of a file
  kKubernetes,  // a token of a user of the cluster, who sees what they may
};

// One leader among several processes, by a Lease.
struct ElectionOptions {
  std::string ns;
  std::string name;
  std::chrono::milliseconds lease{15'000};  // a leader that is gone is replaced after this
  std::chrono::milliseconds renew{10'000};  // a leader that cannot renew stops writing after this
  std::chrono::milliseconds retry{2'000};   // between two looks at the lease
};

// The server that is asked how much GPUs are used.
struct UseOptions {
  std::string prometheus;  // URL of its API; empty: nobody
  std::string query;       // PromQL; empty: what dcgm-exporter measures
  std::string token_file;
  std::string ca_file;  // empty: those the machine trusts
  int every_seconds = 60;
  int idle_percent = 1;  // a GPU that is in use for so much of the time, or less, does nothing
};

struct ServeConfig {
  std::string address = "127.0.0.1";
  uint16_t port = 8080;
  int threads = 2;
  http::Limits limits;
  // The same answers over TLS, on an address of its own. nullopt: none.
  std::optional<http::TlsOptions> tls;
  std::string tls_address = "0.0.0.0";
  uint16_t tls_port = 8443;
  // The extender verbs are answered over TLS alone, and to a client certificate alone.
  bool verbs_need_tls = false;
  // Names of client certificates that may use the verbs over TLS; empty: all the CA has signed.
  std::vector<std::string> allowed_clients;
  // Metrics, API and page on an address of their own. nullopt: with the rest.
  std::optional<std::string> pages_address;
  uint16_t pages_port = 0;
  // They are served over TLS there. nullopt: in plain text.
  std::optional<http::TlsOptions> pages_tls;
  // Health on an address of its own. nullopt: with the rest alone.
  std::optional<std::string> probes_address;
  uint16_t probes_port = 0;
  // Bytes of bodies being read and of answers being sent at one time, over all connections: so much
  // for the verbs, for admission and for the pages each. Together they stay well under the 2 GiB of
  // the chart; 64 MiB are two of the largest reviews, 128 MiB ten views of 20,000 pods.
  std::size_t reading_bytes = std::size_t{64} << 20;
  std::size_t sending_bytes = std::size_t{128} << 20;
  // Unset: kToken with a file, else kNone.
  std::optional<PageAuth> pages_auth;
  std::string pages_token_file;  // of kToken
  // What tokens must be for, of kKubernetes; empty: the API server.
  std::vector<std::string> pages_audiences;
  int page_reviews_per_second = 2;    // asked of the API server about callers, of kKubernetes
  int page_requests_per_second = 50;  // of one address that is not this machine's; 0: any number
  AdmissionOptions admission;
  ElectionOptions election;
  bool elects = false;  // leaderElection.lease is set

  ClusterKind cluster = ClusterKind::kEmbedded;
  std::vector<std::string> objects;               // embedded only
  std::string kubeconfig;                         // kubernetes only; empty: in-cluster
  bool manual_clock = false;                      // embedded only
  std::chrono::milliseconds cache_limit{60'000};  // kubernetes only

  std::string ledger;  // file; empty: nothing is kept over a restart
  LedgerFailure ledger_failure = LedgerFailure::kClosed;
  std::chrono::milliseconds ledger_patience{30'000};  // with opening it, before going on without
  std::chrono::milliseconds ledger_check{std::chrono::hours(24)};  // between checks of all of it
  std::chrono::milliseconds ledger_look{1'000};  // between looks at what is wrong with it
  ledger::CommitTimes ledger_times;
  int past_days = 35;  // what happened in the cluster is kept so long; 0: it is not recorded
  std::vector<std::string> bill_labels;  // of pods, kept in the ledger to bill by
  bool ledger_accept_rollback = false;
  ledger::NetworkFiles ledger_network = ledger::NetworkFiles::kRefuse;

  UseOptions use;

  // ConfigMap that mig-manager's file of layouts is mounted from, for GPUPolicy.mig Apply.
  std::string mig_config_ns = "tranche-system";
  std::string mig_config_name = "tranche-mig-parted-config";

  std::chrono::milliseconds tentative_lifetime{10'000};
  GpuPolicy policy;  // what GPUPolicy objects overlay
  // Unset: Allow with the embedded cluster, where nothing can be harmed, Refuse with a real one.
  std::optional<Permission> unenforced_sharing;
  // Pods of ours hold cards of nodes that have the stock device plugin alone, for pods that share
  // them; made of this image, which has /tranche.
  bool reservation = false;
  std::string reservation_image;
  std::string log_level = "info";
  // For people who come from HAMi: its reason words and metric names beside ours, and
  // ResourceQuotas of GPU memory and cores kept as it keeps them.
  bool hami = false;
  // A series for each GPU a pod holds (tranche_gpu_share_info).
  bool share_metrics = true;
};

// Overlays `config` with the YAML text; `name` stands for the file in errors.
// Errors: InvalidArgument naming file, line, key, what was expected and what was found.
absl::Status ApplyConfigText(std::string_view yaml, std::string_view name, ServeConfig& config);
// The same for a file. Errors also NotFound.
absl::Status ApplyConfigFile(const std::string& path, ServeConfig& config);

// "127.0.0.1:8080", ":8080" (every address), "[::1]:8080" into address and port.
// Errors: InvalidArgument with the text.
absl::Status ReadListen(std::string_view text, ServeConfig& config);

// The same into the address that is served over TLS.
absl::Status ReadTlsListen(std::string_view text, ServeConfig& config);

// The same into the address of metrics, API and page.
absl::Status ReadPagesListen(std::string_view text, ServeConfig& config);

// The same into the address of health.
absl::Status ReadProbesListen(std::string_view text, ServeConfig& config);

// The name the admission webhook gives. Errors: InvalidArgument with the text.
absl::Status ReadSchedulerName(std::string_view text, ServeConfig& config);

// Settings that do not go together. Errors: InvalidArgument naming both.
absl::Status CheckConfig(const ServeConfig& config);

// What pages ask for, with the unset choice made.
PageAuth PageAuthOf(const ServeConfig& config);

// The policy with every unset choice made.
GpuPolicy PolicyDefaults(const ServeConfig& config);

// "trace", "debug", "info", "warn", "error", "off".
bool IsLogLevel(std::string_view text);

}  // namespace tranche
