#include "scheduler/server/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

std::string ErrorOf(const std::string& yaml) {
  ServeConfig config;
  const absl::Status status = ApplyConfigText(yaml, "c.yaml", config);
  return status.ok() ? "ok" : std::string(status.message());
}

TEST(ConfigTest, EveryKeyIsTaken) {
  ServeConfig config;
  const absl::Status status = ApplyConfigText(R"(
listen: "[::1]:9090"
threads: 4
cluster: kubernetes
kubeconfig: /etc/kube.conf
objects: [a.yaml, b.json]
clock: manual
cacheAgeSeconds: 30
claimSeconds: 20
logLevel: debug
compatibility: hami
filterWidth: 3
strategy: Spread
sharing:
  unenforced: Allow
  reservation: On
  reservationImage: registry/tranche:1
preemption: {actor: Scheduler}
mig: {configMap: gpu-operator/mig-parted}
ledger: {file: l.db, onFailure: Open, openSeconds: 7, pastDays: 9, olderFile: Accept,
         billLabels: [project, example.com/stage], networkFiles: Accept}
leaderElection: {lease: tranche-system/tranche, leaseSeconds: 9, renewSeconds: 6, retrySeconds: 1}
tls:
  listen: ":9443"
  certFile: tls.crt
  keyFile: tls.key
  clientCaFile: ca.crt
  verbs: Required
  allowedClients: [kube-scheduler, "spiffe://a/b"]
pages:
  listen: "127.0.0.1:9091"
  certFile: pages.crt
  keyFile: pages.key
  auth: Token
  tokenFile: token
  audiences: [tranche]
  reviewsPerSecond: 9
  requestsPerSecond: 7
probes: {listen: ":9092"}
use: {prometheus: "https://prometheus:9090/prom", query: up, tokenFile: t, caFile: ca.crt,
      everySeconds: 30, idlePercent: 3}
http:
  readingBytes: 2097152
  sendingBytes: 4194304
  headerBytes: 32768
  bodyBytes: 1048576
  headerSeconds: 5
  requestSeconds: 15
  idleSeconds: 100
  replySeconds: 20
  connections: 64
)",
                                              "c.yaml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.address, "::1");
  EXPECT_EQ(config.port, 9090);
  EXPECT_EQ(config.threads, 4);
  EXPECT_EQ(config.page_requests_per_second, 7);
  EXPECT_EQ(config.cluster, ClusterKind::kKubernetes);
  EXPECT_EQ(config.kubeconfig, "/etc/kube.conf");
  EXPECT_EQ(config.objects, (std::vector<std::string>{"a.yaml", "b.json"}));
  EXPECT_TRUE(config.manual_clock);
  EXPECT_EQ(config.cache_limit, 30s);
  EXPECT_EQ(config.tentative_lifetime, 20s);
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_TRUE(config.hami);
  EXPECT_EQ(config.policy.filter_width, 3);
  EXPECT_EQ(config.policy.strategy, Strategy::kSpread);
  EXPECT_EQ(config.unenforced_sharing, Permission::kAllow);
  EXPECT_TRUE(config.reservation);
  EXPECT_EQ(config.reservation_image, "registry/tranche:1");
  EXPECT_EQ(config.policy.actor, PreemptionActor::kScheduler);
  EXPECT_EQ(config.ledger, "l.db");
  EXPECT_EQ(config.ledger_failure, LedgerFailure::kOpen);
  EXPECT_EQ(config.ledger_patience, 7s);
  EXPECT_EQ(config.past_days, 9);
  EXPECT_EQ(config.bill_labels, (std::vector<std::string>{"project", "example.com/stage"}));
  EXPECT_TRUE(config.ledger_accept_rollback);
  EXPECT_EQ(config.ledger_network, ledger::NetworkFiles::kAccept);
  EXPECT_EQ(config.mig_config_ns, "gpu-operator");
  EXPECT_EQ(config.mig_config_name, "mig-parted");
  EXPECT_TRUE(config.elects);
  EXPECT_EQ(config.election.ns, "tranche-system");
  EXPECT_EQ(config.election.name, "tranche");
  EXPECT_EQ(config.election.lease, 9s);
  EXPECT_EQ(config.election.renew, 6s);
  EXPECT_EQ(config.election.retry, 1s);
  EXPECT_EQ(config.tls->client_ca_file, "ca.crt");
  EXPECT_TRUE(config.verbs_need_tls);
  EXPECT_EQ(config.allowed_clients, (std::vector<std::string>{"kube-scheduler", "spiffe://a/b"}));
  EXPECT_EQ(config.pages_address, "127.0.0.1");
  EXPECT_EQ(config.pages_port, 9091);
  EXPECT_EQ(config.pages_tls->certificate_file, "pages.crt");
  EXPECT_EQ(config.pages_tls->key_file, "pages.key");
  EXPECT_EQ(config.pages_tls->settings, "pages");
  EXPECT_EQ(config.tls->settings, "tls");
  EXPECT_EQ(config.pages_token_file, "token");
  EXPECT_EQ(config.pages_auth, PageAuth::kToken);
  EXPECT_EQ(config.pages_audiences, std::vector<std::string>{"tranche"});
  EXPECT_EQ(config.page_reviews_per_second, 9);
  EXPECT_EQ(config.probes_address, "0.0.0.0");
  EXPECT_EQ(config.probes_port, 9092);
  EXPECT_EQ(config.use.prometheus, "https://prometheus:9090/prom");
  EXPECT_EQ(config.use.query, "up");
  EXPECT_EQ(config.use.token_file, "t");
  EXPECT_EQ(config.use.ca_file, "ca.crt");
  EXPECT_EQ(config.use.every_seconds, 30);
  EXPECT_EQ(config.use.idle_percent, 3);
  EXPECT_EQ(config.reading_bytes, 2097152U);
  EXPECT_EQ(config.sending_bytes, 4194304U);
  EXPECT_EQ(config.limits.header_bytes, 32768U);
  EXPECT_EQ(config.limits.body_bytes, 1048576U);
  EXPECT_EQ(config.limits.header_time, 5s);
  EXPECT_EQ(config.limits.request_time, 15s);
  EXPECT_EQ(config.limits.idle_time, 100s);
  EXPECT_EQ(config.limits.reply_time, 20s);
  EXPECT_EQ(config.limits.connections, 64);
}

TEST(ConfigTest, MistakesNameLineKeyExpectedAndFound) {
  struct Row {
    const char* yaml;
    const char* error;
  };
  const std::vector<Row> table = {
      {"", "ok"},
      {"# nothing\n", "ok"},
      {"ledger: {billLabels: [a b]}\n",
       "c.yaml:1: expected ledger.billLabels: a list of at most 8 keys of labels, each once, found "
       "a list"},
      {"ledger: {billLabels: [a, a]}\n",
       "c.yaml:1: expected ledger.billLabels: a list of at most 8 keys of labels, each once, found "
       "a list"},
      {"ledger: {billLabels: [a, b, c, d, e, f, g, h, i]}\n",
       "c.yaml:1: expected ledger.billLabels: a list of at most 8 keys of labels, each once, found "
       "a list"},
      {"threads: 2\nthreds: 4\n", "c.yaml:2: expected a known key, found \"threds\""},
      {"http:\n  idle: 4\n", "c.yaml:2: expected a known key, found \"http.idle\""},
      {"threads: 0\n", "c.yaml:1: expected threads: a whole number in 1..64, found \"0\""},
      {"threads: \"2\"\n", "c.yaml:1: expected threads: a whole number in 1..64, found \"2\""},
      {"threads: 2.5\n", "c.yaml:1: expected threads: a whole number in 1..64, found \"2.5\""},
      {"threads: [2]\n", "c.yaml:1: expected threads: a whole number in 1..64, found a list"},
      {"pages: {auth: kubernetes}\n",
       "c.yaml:1: expected pages.auth: one of None Token Kubernetes, found \"kubernetes\""},
      {"threads:\n", "c.yaml:1: expected threads: a whole number in 1..64, found nothing"},
      {"filterWidth: 65\n",
       "c.yaml:1: expected filterWidth: a whole number in 1..64, found \"65\""},
      {"strategy: Best\n",
       "c.yaml:1: expected strategy: one of Fragmentation BestFit Spread, found \"Best\""},
      {"mig: {configMap: mig-parted}\n",
       "c.yaml:1: expected mig.configMap: NAMESPACE/NAME, found \"mig-parted\""},
      {"mig: {configMap: a/b/c}\n",
       "c.yaml:1: expected mig.configMap: NAMESPACE/NAME, found \"a/b/c\""},
      {"leaderElection: {lease: tranche}\n",
       "c.yaml:1: expected leaderElection.lease: NAMESPACE/NAME, found \"tranche\""},
      {"leaderElection: {leaseSeconds: 2}\n",
       "c.yaml:1: expected leaderElection.leaseSeconds: a whole number in 3..86400, found \"2\""},
      {"tls: {verbs: yes}\n",
       "c.yaml:1: expected tls.verbs: one of Required Optional, found \"yes\""},
      {"tls: {allowedClients: [\"\"]}\n",
       "c.yaml:1: expected tls.allowedClients: a list of names, found a list"},
      {"pages: {listen: 9090}\n", "c.yaml:1: expected pages.listen: HOST:PORT, found \"9090\""},
      {"use: {prometheus: \"prometheus:9090\"}\n",
       "c.yaml:1: expected use.prometheus: an http or https URL, found \"prometheus:9090\""},
      {"use: {everySeconds: 200}\n",
       "c.yaml:1: expected use.everySeconds: a whole number in 5..120, found \"200\""},
      {"http: 4\n", "c.yaml:1: expected http: a map, found \"4\""},
      {"http:\n  idleSeconds: 60\n",
       "c.yaml:2: expected http.idleSeconds: a whole number in 95..86400, found \"60\""},
      {"threads: 2\nthreads: 3\n", "c.yaml:2: expected threads once, found it again"},
      {"listen: 8080\n", "c.yaml:1: expected listen: HOST:PORT, found \"8080\""},
      {"objects: a.yaml\n", "c.yaml:1: expected objects: a list of file names, found \"a.yaml\""},
      {"- a\n", "c.yaml:1: expected a map of settings, found a list"},
  };
  for (const Row& row : table) EXPECT_EQ(ErrorOf(row.yaml), row.error) << row.yaml;
}

TEST(ConfigTest, SettingsThatDoNotGoTogetherAreNamed) {
  const struct {
    const char* yaml;
    const char* error;
  } table[] = {
      {"cluster: kubernetes\nleaderElection: {lease: a/b}\n", "ok"},
      {"leaderElection: {lease: a/b}\n",
       "leaderElection.lease: expected only with cluster kubernetes, found cluster embedded"},
      {"cluster: kubernetes\nleaderElection: {lease: a/b, leaseSeconds: 10}\n",
       "leaderElection: expected leaseSeconds > renewSeconds > 1.2 x retrySeconds, found 10, 10 "
       "and "
       "2"},
      {"cluster: kubernetes\nleaderElection: {lease: a/b, renewSeconds: 6, retrySeconds: 5}\n",
       "leaderElection: expected leaseSeconds > renewSeconds > 1.2 x retrySeconds, found 15, 6 and "
       "5"},
      {"tls: {certFile: a, keyFile: b, verbs: Required}\n",
       "tls.verbs Required: expected only with tls.clientCaFile, found none"},
      {"tls: {certFile: a, keyFile: b, allowedClients: [c]}\n",
       "tls.allowedClients: expected only with tls.clientCaFile, found none"},
      {"tls: {certFile: a, keyFile: b, clientCaFile: d, verbs: Required, allowedClients: [c]}\n",
       "ok"},
      {"cluster: kubernetes\npages: {auth: Kubernetes, audiences: [tranche]}\n", "ok"},
      {"pages: {auth: None}\n", "ok"},
      {"use: {prometheus: \"http://p:9090\", query: up}\n", "ok"},
      {"use: {prometheus: \"https://p\", tokenFile: t}\n", "ok"},
      {"use: {prometheus: \"http://p\", tokenFile: t}\n",
       "use.tokenFile: expected an https URL in use.prometheus, since a token is not sent in "
       "clear, found another"},
      {"use: {query: up}\n", "use.query: expected use.prometheus beside it, found none"},
      {"use: {caFile: f}\n", "use.caFile: expected use.prometheus beside it, found none"},
      {"pages: {listen: \":9090\", certFile: a, keyFile: b}\n", "ok"},
      {"pages: {listen: \":9090\", certFile: a}\n",
       "pages: expected certFile and keyFile, found \"a\" and \"\""},
      {"pages: {certFile: a, keyFile: b}\n",
       "pages.certFile: expected pages.listen beside it, found none"},
      {"pages: {auth: Token, tokenFile: t}\n", "ok"},
      {"pages: {auth: Kubernetes}\n",
       "pages.auth Kubernetes: expected only with cluster kubernetes, whose API server says who a "
       "caller is, found cluster embedded"},
      {"pages: {auth: Token}\n",
       "pages.auth Token: expected pages.tokenFile beside it, found none"},
      {"pages: {auth: None, tokenFile: t}\n",
       "pages.tokenFile: expected only with pages.auth Token, found another"},
      {"cluster: kubernetes\npages: {auth: Kubernetes, tokenFile: t}\n",
       "pages.tokenFile: expected only with pages.auth Token, found another"},
      {"pages: {audiences: [a]}\n",
       "pages.audiences: expected only with pages.auth Kubernetes, found another"},
  };
  for (const auto& [yaml, error] : table) {
    ServeConfig config;
    ASSERT_TRUE(ApplyConfigText(yaml, "c.yaml", config).ok()) << yaml;
    const absl::Status checked = CheckConfig(config);
    EXPECT_EQ(checked.ok() ? "ok" : std::string(checked.message()), error) << yaml;
  }
}

TEST(ConfigTest, BrokenYamlNamesItsLine) {
  EXPECT_EQ(ErrorOf("a: 1\nb: [\n").rfind("c.yaml:", 0), 0U) << ErrorOf("a: 1\nb: [\n");
}

TEST(ConfigTest, ListenIsReadOrRefused) {
  struct Row {
    const char* text;
    const char* address;  // "": refused
    int port;
  };
  const std::vector<Row> table = {
      {"127.0.0.1:8080", "127.0.0.1", 8080},
      {":80", "0.0.0.0", 80},
      {"[::]:0", "::", 0},
      {"localhost:1", "127.0.0.1", 1},
      {"host", "", 0},
      {"::1:80", "", 0},
      {"a:65536", "", 0},
      {"a:-1", "", 0},
      {"a:", "", 0},
      {"a:8x", "", 0},
  };
  for (const Row& row : table) {
    ServeConfig config;
    const bool ok = ReadListen(row.text, config).ok();
    EXPECT_EQ(ok, *row.address != '\0') << row.text;
    if (!ok) continue;
    EXPECT_EQ(config.address, row.address) << row.text;
    EXPECT_EQ(config.port, row.port) << row.text;
  }
}

TEST(ConfigTest, PodsThatHoldCardsNeedAnImageOnARealCluster) {
  ServeConfig config;
  config.reservation = true;
  EXPECT_TRUE(CheckConfig(config).ok());
  config.cluster = ClusterKind::kKubernetes;
  EXPECT_EQ(std::string(CheckConfig(config).message()),
            "sharing.reservation: expected sharing.reservationImage beside it, found none");
  config.reservation_image = "registry/tranche:1";
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(ConfigTest, UnenforcedSharingDependsOnTheClusterUnlessSaid) {
  ServeConfig config;
  EXPECT_EQ(PolicyDefaults(config).unenforced_sharing, Permission::kAllow);
  config.cluster = ClusterKind::kKubernetes;
  EXPECT_EQ(PolicyDefaults(config).unenforced_sharing, Permission::kRefuse);
  config.unenforced_sharing = Permission::kAllow;
  EXPECT_EQ(PolicyDefaults(config).unenforced_sharing, Permission::kAllow);
}

TEST(ConfigTest, MissingFileIsNotFound) {
  ServeConfig config;
  EXPECT_TRUE(absl::IsNotFound(ApplyConfigFile("/nonexistent/c.yaml", config)));
}

}  // namespace THIS_FILE
}  // namespace tranche
