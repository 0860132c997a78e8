// The client commands against a server that wants TLS, a token or a client certificate.
#include "scheduler/cli/cli_server.h"

#include <sys/stat.h>

#include <cstdlib>

#include "test/fakes/api_server.h"
#include "test/unit/scheduler/cli/cli_server_fixture.h"

namespace tranche {
namespace THIS_FILE {

using fakes::Exchange;
using fakes::KeyPair;
using fakes::MakeCa;
using fakes::MakeCertificate;
using Words = std::vector<std::string>;

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
      {"by the certificate's name",
       {"--server", at("https", misnamed->tls_port()), "--ca-file", ca, "--token-file", token,
        "--tls-server-name", "elsewhere.example"},
       nullptr},
      {"a name without TLS",
       {"--server", at("http", open->port()), "--tls-server-name", "elsewhere.example"},
       "--tls-server-name: expected an https server"},
      {"an account and a file",
       {"--server", https, "--token-file", token, "--token-from", "team-a/me"},
       "--token-from: expected it or --token-file"},
      {"no account",
       {"--server", https, "--token-from", "team-a"},
       "--token-from: expected NAMESPACE/ACCOUNT"},
      {"an audience of no token",
       {"--server", https, "--token-audience", "tranche"},
       "--token-audience: expected --token-from"},
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
       "found one with a client certificate, which only API servers can judge; --token-from "
       "NAMESPACE/ACCOUNT"},
      {"nothing", "{}", "found one without; --token-from NAMESPACE/ACCOUNT"},
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

}  // namespace THIS_FILE
}  // namespace tranche
