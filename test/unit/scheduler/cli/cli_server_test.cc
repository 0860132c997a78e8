// The client commands against a server that wants TLS, a token or a client certificate, and through
// an API server's proxy.
#include "scheduler/cli/cli_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "scheduler/cli/cli.h"
#include "scheduler/server/runtime.h"
#include "test/fakes/api_server.h"
#include "test/fakes/certificates.h"

namespace tranche {
namespace {

using fakes::Exchange;
using fakes::KeyPair;
using fakes::MakeCa;
using fakes::MakeCertificate;
using Words = std::vector<std::string>;

constexpr const char* kProxy = "/api/v1/namespaces/tranche-system/services/tranche:pages/proxy";

struct CallOutcome {
  int code = 0;
  std::string out;
  std::string err;
};

CallOutcome Call(const Words& arguments, const std::string& name = "tranche") {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCommandLine(arguments, out, err, name);
  return {code, out.str(), err.str()};
}

class CliServerTest : public testing::Test {
 protected:
  CliServerTest() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  ~CliServerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  // A server with a certificate for `names`, that asks for the token.
  std::unique_ptr<Runtime> Start(const std::string& names, bool wants_certificate) {
    const KeyPair pair = MakeCertificate(ca_, names);
    ServeConfig config;
    config.port = 0;
    config.tls.emplace();
    config.tls_address = "127.0.0.1";
    config.tls_port = 0;
    config.tls->certificate_file = Write(names.substr(0, 3) + ".pem", pair.certificate_pem);
    config.tls->key_file = Write(names.substr(0, 3) + ".key", pair.key_pem);
    if (wants_certificate) config.tls->client_ca_file = Write("clients.pem", ca_.certificate_pem);
    config.pages_token_file = Write("token", "let-me-in\n");
    auto runtime = std::make_unique<Runtime>(config);
    const absl::Status started = runtime->Start();
    EXPECT_TRUE(started.ok()) << started;
    return runtime;
  }

  const KeyPair ca_ = MakeCa("right");
  std::filesystem::path folder_;
};

TEST_F(CliServerTest, TlsTokenAndClientCertificate) {
  const auto open = Start("IP:127.0.0.1", false);
  const auto misnamed = Start("DNS:elsewhere.example", false);
  const auto closed = Start("IP:127.0.0.1", true);
  const KeyPair client = MakeCertificate(ca_, "DNS:me");
  const KeyPair stranger = MakeCertificate(MakeCa("other"), "DNS:me");
  const std::string ca = Write("ca.pem", ca_.certificate_pem);
  const std::string other = Write("other.pem", MakeCa("other").certificate_pem);
  const std::string cert = Write("client.pem", client.certificate_pem);
  const std::string key = Write("client.key", client.key_pem);
  const std::string strange_cert = Write("stranger.pem", stranger.certificate_pem);
  const std::string strange_key = Write("stranger.key", stranger.key_pem);
  const std::string token = Write("mine", "let-me-in");
  const std::string wrong = Write("wrong", "let-me-out");
  const std::string empty = Write("empty", "\n");
  const auto at = [](const std::string& scheme, int port) {
    return scheme + "://127.0.0.1:" + std::to_string(port);
  };
  const std::string https = at("https", open->tls_port());
  struct Row {
    const char* what;
    Words flags;
    const char* error;  // part of it; nullptr: none
  };
  const Row rows[] = {
      {"all is right", {"--server", https, "--ca-file", ca, "--token-file", token}, nullptr},
      {"no token",
       {"--server", https, "--ca-file", ca},
       "--token-file FILE, or TRANCHE_TOKEN_FILE"},
      {"wrong token", {"--server", https, "--ca-file", ca, "--token-file", wrong}, wrong.c_str()},
      {"empty token", {"--server", https, "--ca-file", ca, "--token-file", empty}, "found nothing"},
      {"no such token", {"--server", https, "--token-file", "/nonexistent"}, "--token-file: "},
      {"no CA", {"--server", https, "--token-file", token}, "--ca-file names another CA"},
      {"another CA", {"--server", https, "--ca-file", other, "--token-file", token}, other.c_str()},
      {"another name",
       {"--server", at("https", misnamed->tls_port()), "--ca-file", ca, "--token-file", token},
       "must carry the name or address it is called by"},
      {"client certificate missing",
       {"--server", at("https", closed->tls_port()), "--ca-file", ca, "--token-file", token},
       "--cert-file and --key-file"},
      {"client certificate of another CA",
       {"--server", at("https", closed->tls_port()), "--ca-file", ca, "--token-file", token,
        "--cert-file", strange_cert, "--key-file", strange_key},
       "does not take the client certificate"},
      {"client certificate",
       {"--server", at("https", closed->tls_port()), "--ca-file", ca, "--token-file", token,
        "--cert-file", cert, "--key-file", key},
       nullptr},
      {"certificate without key",
       {"--server", https, "--ca-file", ca, "--cert-file", cert},
       "--cert-file: expected it together with --key-file"},
      {"plain on the loopback",
       {"--server", at("http", open->port()), "--token-file", token},
       nullptr},
      {"token in clear",
       {"--server", "http://10.0.0.1:1", "--token-file", token},
       "never sent in clear"},
      {"CA without TLS", {"--server", at("http", open->port()), "--ca-file", ca}, "https server"},
      {"TLS where there is none",
       {"--server", at("https", open->port()), "--ca-file", ca},
       "http:// instead of https://"},
      {"URL and service", {"--server", https, "--service", "a/b"}, "--service"},
      {"two tokens",
       {"--server", https, "--token-file", token, "--context", "prod"},
       "--token-file: expected it or --context"},
      {"no such kubeconfig", {"--server", https, "--kubeconfig", "/nonexistent"}, "/nonexistent"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Words arguments = {"nodes"};
    arguments.insert(arguments.end(), row.flags.begin(), row.flags.end());
    const CallOutcome outcome = Call(arguments);
    EXPECT_EQ(outcome.code, row.error == nullptr ? 0 : 2) << outcome.err;
    if (row.error == nullptr) {
      EXPECT_EQ(outcome.out, "no nodes are known\n");
    } else {
      EXPECT_NE(outcome.err.find(row.error), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(outcome.err.find("let-me"), std::string::npos) << "a token is never printed";
  }
}

TEST_F(CliServerTest, EnvironmentStandsForFlags) {
  const auto server = Start("IP:127.0.0.1", false);
  const std::string url = "https://127.0.0.1:" + std::to_string(server->tls_port());
  const std::string ca = Write("ca.pem", ca_.certificate_pem);
  const std::string token = Write("mine", "let-me-in");
  setenv("TRANCHE_SERVER", url.c_str(), 1);
  setenv("TRANCHE_CA_FILE", ca.c_str(), 1);
  setenv("TRANCHE_TOKEN_FILE", token.c_str(), 1);
  const CallOutcome outcome = Call({"quota"});
  const CallOutcome flag_wins = Call({"quota", "--server", "https://127.0.0.1:1"});
  for (const char* name : {"TRANCHE_SERVER", "TRANCHE_CA_FILE", "TRANCHE_TOKEN_FILE"}) {
    unsetenv(name);
  }
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(flag_wins.err.find("at https://127.0.0.1:1,"), std::string::npos) << flag_wins.err;
}

// A server that asks for tokens of the cluster, and a kubeconfig's user.
TEST_F(CliServerTest, ShowsTheTokenOfTheKubeconfigsUserWhereItIsAskedFor) {
  const auto server = Start("IP:127.0.0.1", false);
  const std::string url = "http://127.0.0.1:" + std::to_string(server->port());
  const auto kubeconfig = [this](const std::string& name, const std::string& user) {
    return Write(name,
                 "current-context: here\ncontexts:\n"
                 "- {name: here, context: {cluster: c, user: u, namespace: team-a}}\n"
                 "clusters:\n- name: c\n  cluster: {server: \"https://127.0.0.1:1\", "
                 "insecure-skip-tls-verify: true}\nusers:\n- {name: u, user: " +
                     user + "}\n");
  };
  const std::string program =
      Write("login",
            "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
            "\"ExecCredential\",\"status\":{\"token\":\"let-me-in\"}}'\n");
  chmod(program.c_str(), 0755);
  const struct {
    const char* name;
    std::string user;
    const char* error;  // nullptr: none
  } rows[] = {
      {"token", "{token: let-me-in}", nullptr},
      {"file", "{tokenFile: " + Write("t", "let-me-in\n") + "}", nullptr},
      {"program",
       "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: " +
           program + "}}",
       nullptr},
      {"wrong", "{token: let-me-out}", "that of the kubeconfig's user"},
      {"certificate", "{client-certificate-data: eA==, client-key-data: eA==}",
       "found one with a client certificate, which only API servers can judge; kubectl create "
       "token"},
      {"nothing", "{}", "found one without; kubectl create token"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const CallOutcome outcome =
        Call({"nodes", "--server", url, "--kubeconfig", kubeconfig(row.name, row.user)});
    EXPECT_EQ(outcome.code, row.error == nullptr ? 0 : 2) << outcome.err;
    if (row.error != nullptr) {
      EXPECT_NE(outcome.err.find(row.error), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(outcome.err.find("let-me"), std::string::npos) << "a token is never printed";
  }
}

TEST_F(CliServerTest, AUsersTokenIsShownToNobodyWhoDoesNotAsk) {
  fakes::ApiServer open;
  open.OnNext("GET", "/api/v1/nodes", [](const fakes::ApiRequest&, Exchange& exchange) {
    exchange.Answer(200, R"({"nodes":[]})");
  });
  const std::string file =
      Write("kubeconfig",
            "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
            "clusters:\n- {name: c, cluster: {server: \"https://a\", "
            "insecure-skip-tls-verify: true}}\nusers:\n- {name: u, user: {token: let-me-in}}\n");
  const std::string url = "http://127.0.0.1:" + std::to_string(open.port());
  EXPECT_EQ(Call({"nodes", "--server", url, "--kubeconfig", file}).code, 0);
  const auto requests = open.Requests("/api/v1/nodes");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_FALSE(requests[0].headers.contains("authorization"));
}

class ThroughApiServer : public CliServerTest {
 protected:
  // A kubeconfig with contexts "here", which is current, and "nowhere".
  std::string Kubeconfig(const std::string& user) {
    std::ostringstream text;
    text << "current-context: here\ncontexts:\n"
         << "- {name: here, context: {cluster: real, user: me}}\n"
         << "- {name: nowhere, context: {cluster: unreal, user: me}}\n"
         << "clusters:\n- name: real\n  cluster:\n    server: https://127.0.0.1:" << api_.port()
         << "\n    certificate-authority: " << Write("ca.pem", ca_.certificate_pem)
         << "\n- name: unreal\n  cluster: {server: \"https://127.0.0.1:1\", "
         << "insecure-skip-tls-verify: true}\nusers:\n- name: me\n  user: " << user << "\n";
    return Write("kubeconfig", text.str());
  }
  void Answer(const std::string& method, const std::string& target, int status,
              const std::string& body) {
    api_.OnNext(method, kProxy + target, [=](const fakes::ApiRequest&, Exchange& exchange) {
      exchange.Answer(status, body);
    });
  }

  fakes::ApiServer api_{MakeCertificate(ca_, "IP:127.0.0.1")};
};

TEST_F(ThroughApiServer, AsksTheServicesProxyAsThisUser) {
  const std::string file = Kubeconfig("{token: of-me}");
  api_.set_token("of-me");
  Answer("GET", "/api/v1/nodes", 200, R"({"nodes":[]})");
  EXPECT_EQ(Call({"nodes", "--kubeconfig", file}).out, "no nodes are known\n");
  // By the name kubectl calls us by no flag is needed.
  setenv("KUBECONFIG", file.c_str(), 1);
  Answer("GET", "/api/v1/nodes", 200, R"({"nodes":[]})");
  const CallOutcome plugin = Call({"nodes"}, kKubectlName);
  Answer("GET", "/api/v1/explain/team-a/train", 404, R"({"error":"no pod team-a/train is known"})");
  const CallOutcome unknown = Call({"explain", "train", "-n", "team-a"}, kKubectlName);
  const CallOutcome elsewhere = Call({"nodes", "--context", "nowhere"}, kKubectlName);
  unsetenv("KUBECONFIG");
  EXPECT_EQ(plugin.out, "no nodes are known\n") << plugin.err;
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("no pod team-a/train is known"), std::string::npos) << unknown.err;
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_NE(elsewhere.err.find("connecting to 127.0.0.1:1"), std::string::npos) << elsewhere.err;
  ASSERT_EQ(api_.Requests(std::string(kProxy) + "/api/v1/nodes").size(), 2U);
}

TEST_F(ThroughApiServer, SignsInByAProgramAndAgainWhenRefused) {
  const std::string program = Write("login", "#!/bin/sh\necho run >>\"$RUNS\"\ncat \"$ANSWER\"\n");
  chmod(program.c_str(), 0755);
  const std::string answer = Write(
      "answer", R"({"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential",)"
                R"("status":{"token":"of-me"}})");
  const std::string runs = Write("runs", "");
  const std::string file = Kubeconfig(
      "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, interactiveMode: Never, "
      "command: " +
      program + ", env: [{name: RUNS, value: " + runs + "}, {name: ANSWER, value: " + answer +
      "}]}}");
  const auto count_runs = [&runs] {
    std::ifstream text(runs);
    return std::count(std::istreambuf_iterator<char>(text), {}, '\n');
  };
  api_.set_token("of-me");
  Answer("GET", "/api/v1/nodes", 200, R"({"nodes":[]})");
  const CallOutcome outcome = Call({"nodes", "--kubeconfig", file});
  EXPECT_EQ(outcome.out, "no nodes are known\n") << outcome.err;
  EXPECT_EQ(count_runs(), 1);
  api_.set_token("of-another");
  const CallOutcome refused = Call({"nodes", "--kubeconfig", file});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("401"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("of-me"), std::string::npos) << refused.err;
  EXPECT_EQ(count_runs(), 3);
}

TEST_F(ThroughApiServer, WhatItRefusesIsExplained) {
  const std::string file = Kubeconfig("{token: of-me}");
  const std::string forbidden = "services \"tranche:pages\" is forbidden";
  struct Row {
    int status;
    std::string body;
    const char* error;
  };
  const Row rows[] = {
      {403, fakes::StatusBody(403, "Forbidden", forbidden).dump(),
       "get and create on services/proxy"},
      {404, fakes::StatusBody(404, "NotFound", "services \"tranche\" not found").dump(),
       "--service names another"},
      {503, fakes::StatusBody(503, "ServiceUnavailable", "no endpoints available").dump(),
       "the API server answered 503: no endpoints available"},
      {401, R"({"error":"expected the bearer token of this server"})", "kubectl port-forward"},
      {502, "bad gateway", "answered 502: an answer without reason"},
  };
  for (const Row& row : rows) {
    Answer("GET", "/api/v1/nodes", row.status, row.body);
    const CallOutcome outcome = Call({"nodes", "--kubeconfig", file});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(row.error), std::string::npos) << outcome.err;
  }
}

TEST_F(ThroughApiServer, WrongFlagsAndKubeconfigsAreNamed) {
  const std::string token = Write("token", "let-me-in");
  const std::string file = Kubeconfig("{token: of-me}");
  const std::string legacy = Write("legacy",
                                   "current-context: a\ncontexts:\n"
                                   "- {name: a, context: {cluster: c, user: u}}\n"
                                   "clusters:\n- name: c\n  cluster: {server: \"https://a\", "
                                   "insecure-skip-tls-verify: true}\n"
                                   "users:\n- {name: u, user: {auth-provider: {name: x}}}\n");
  struct Row {
    Words flags;
    const char* error;
  };
  const Row rows[] = {
      {{"--kubeconfig", "/nonexistent"}, "/nonexistent"},
      {{"--kubeconfig", file, "--context", "absent"}, "\"absent\""},
      {{"--kubeconfig", file, "--service", "tranche"}, "NAMESPACE/NAME[:PORT]"},
      {{"--kubeconfig", file, "--service", "a/b/../c"}, "NAMESPACE/NAME[:PORT]"},
      {{"--kubeconfig", file, "--token-file", token}, "kubectl port-forward"},
      {{"--kubeconfig", file, "--ca-file", token}, "--ca-file: expected --server"},
      {{"--kubeconfig", legacy}, "kubectl proxy can do it"},
  };
  for (const Row& row : rows) {
    Words arguments = {"nodes"};
    arguments.insert(arguments.end(), row.flags.begin(), row.flags.end());
    const CallOutcome outcome = Call(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(row.error), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace tranche
