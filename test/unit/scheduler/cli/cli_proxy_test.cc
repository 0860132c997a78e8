// The client commands through an API server's proxy for Services.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>

#include "scheduler/cli/cli_server.h"
#include "test/fakes/api_server.h"
#include "test/unit/scheduler/cli/cli_server_fixture.h"

namespace tranche {
namespace THIS_FILE {

using fakes::Exchange;
using fakes::KeyPair;
using fakes::MakeCertificate;
using Words = std::vector<std::string>;

constexpr const char* kProxy =
    "/api/v1/namespaces/tranche-system/services/https:tranche:pages/proxy";
constexpr const char* kPlainProxy =
    "/api/v1/namespaces/tranche-system/services/tranche:pages/proxy";

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
              const std::string& body, const char* proxy = kProxy) {
    api_.OnNext(method, proxy + target, [=](const fakes::ApiRequest&, Exchange& exchange) {
      exchange.Answer(status, body);
    });
  }
  // As Tranche behind the proxy, which wants that token. What it was shown goes into `shown_`.
  void AnswerToToken(const std::string& token, const char* proxy = kProxy) {
    api_.OnNext("GET", std::string(proxy) + "/api/v1/nodes",
                [this, token](const fakes::ApiRequest& request, Exchange& exchange) {
                  const auto found = request.headers.find("tranche-authorization");
                  shown_.push_back(found == request.headers.end() ? "" : found->second);
                  if (shown_.back() == "Bearer " + token) {
                    return exchange.Answer(200, R"({"nodes":[]})");
                  }
                  exchange.Answer(401, R"({"error":"expected a token"})");
                });
  }
  // As an API server that finds no TLS behind it.
  void AnswerThatItIsPlain() {
    Answer("GET", "/api/v1/nodes", 503,
           fakes::StatusBody(503, "ServiceUnavailable",
                             "error trying to reach service: http: server gave HTTP response to "
                             "HTTPS client")
               .dump());
  }

  fakes::ApiServer api_{MakeCertificate(ca_, "IP:127.0.0.1")};
  std::vector<std::string> shown_;
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

TEST_F(ThroughApiServer, ATokenThatIsAskedForGoesInAHeaderOfItsOwn) {
  const std::string file = Kubeconfig("{token: of-me}");
  const std::string other = Write("other", "of-another\n");
  api_.set_token("of-me");
  const struct {
    Words flags;
    std::string wanted;
    const char* error;  // nullptr: none
  } rows[] = {
      {{}, "of-me", nullptr},
      {{"--token-file", other}, "of-another", nullptr},
      {{}, "of-another", "expected a token (that of the kubeconfig's user)"},
      {{"--token-file", other}, "of-me", "expected a token (the one in "},
  };
  for (const auto& row : rows) {
    shown_.clear();
    for (int i = 0; i < 2; ++i) AnswerToToken(row.wanted);
    Words arguments = {"nodes", "--kubeconfig", file};
    arguments.insert(arguments.end(), row.flags.begin(), row.flags.end());
    const CallOutcome outcome = Call(arguments);
    EXPECT_EQ(outcome.code, row.error == nullptr ? 0 : 2) << outcome.err;
    if (row.error != nullptr) {
      EXPECT_NE(outcome.err.find(row.error), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(outcome.err.find("of-"), std::string::npos) << "a token is never printed";
    ASSERT_EQ(shown_.size(), 2U);
    EXPECT_EQ(shown_[0], "") << "shown to nobody who does not ask";
    EXPECT_NE(shown_[1], "");
  }
}

TEST_F(ThroughApiServer, ATokenGoesOnOverTlsAlone) {
  const std::string file = Kubeconfig("{token: of-me}");
  const std::string forbidden =
      fakes::StatusBody(403, "Forbidden", "services \"https:tranche:pages\" is forbidden").dump();
  // Pages that ask nobody are reached without TLS, too.
  AnswerThatItIsPlain();
  Answer("GET", "/api/v1/nodes", 200, R"({"nodes":[]})", kPlainProxy);
  EXPECT_EQ(Call({"nodes", "--kubeconfig", file}).out, "no nodes are known\n");
  // By a role that names them alone.
  Answer("GET", "/api/v1/nodes", 403, forbidden);
  Answer("GET", "/api/v1/nodes", 200, R"({"nodes":[]})", kPlainProxy);
  EXPECT_EQ(Call({"nodes", "--kubeconfig", file}).out, "no nodes are known\n");
  Answer("GET", "/api/v1/nodes", 403, forbidden);
  Answer("GET", "/api/v1/nodes", 403, forbidden, kPlainProxy);
  const CallOutcome refused = Call({"nodes", "--kubeconfig", file});
  EXPECT_NE(refused.err.find("https:tranche:pages"), std::string::npos) << refused.err;
  // Those that ask for a token get none.
  AnswerThatItIsPlain();
  AnswerToToken("of-me", kPlainProxy);
  const CallOutcome clear = Call({"nodes", "--kubeconfig", file});
  EXPECT_EQ(clear.code, 2);
  EXPECT_NE(clear.err.find("a token is never sent in clear"), std::string::npos) << clear.err;
  EXPECT_EQ(shown_, Words{""});
}

// For users whom the API server knows by a certificate.
TEST_F(ThroughApiServer, AServiceAccountsTokenIsMadeWhereItIsAskedFor) {
  const KeyPair client = MakeCertificate(ca_, "DNS:me");
  const std::string file =
      Kubeconfig("{client-certificate: " + Write("me.pem", client.certificate_pem) +
                 ", client-key: " + Write("me.key", client.key_pem) + "}");
  const CallOutcome bare = [&] {
    AnswerToToken("made");
    return Call({"nodes", "--kubeconfig", file});
  }();
  EXPECT_NE(bare.err.find("--token-from NAMESPACE/ACCOUNT"), std::string::npos) << bare.err;
  constexpr const char* kTokens = "/api/v1/namespaces/team-a/serviceaccounts/me.too/token";
  const struct {
    int status;
    std::string body;
    const char* error;  // nullptr: none
  } rows[] = {
      {201, R"({"status":{"token":"made","expirationTimestamp":"2100-01-01T00:00:00Z"}})", nullptr},
      {201, R"({"status":{}})", "found an answer without one"},
      {403, fakes::StatusBody(403, "Forbidden", "cannot create resource").dump(),
       "--token-from: expected the API server to make a token of service account team-a/me.too, "
       "found 403: cannot create resource"},
  };
  for (const auto& row : rows) {
    for (int i = 0; i < 2; ++i) AnswerToToken("made");
    api_.OnNext("POST", kTokens, [&row](const fakes::ApiRequest&, Exchange& exchange) {
      exchange.Answer(row.status, row.body);
    });
    const CallOutcome outcome = Call({"nodes", "--kubeconfig", file, "--token-from",
                                      "team-a/me.too", "--token-audience", "tranche"});
    EXPECT_EQ(outcome.code, row.error == nullptr ? 0 : 2) << outcome.err;
    if (row.error != nullptr) {
      EXPECT_NE(outcome.err.find(row.error), std::string::npos) << outcome.err;
    }
  }
  const auto asked = api_.Requests(kTokens);
  ASSERT_EQ(asked.size(), 3U);
  const auto spec = nlohmann::json::parse(asked[0].body).at("spec");
  EXPECT_EQ(spec.dump(), R"({"audiences":["tranche"],"expirationSeconds":600})");
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
      {{"--kubeconfig", file, "--token-file", "/nonexistent"}, "--token-file: "},
      {{"--kubeconfig", file, "--token-file", token, "--token-from", "a/b"}, "--token-file, found"},
      {{"--kubeconfig", file, "--tls-server-name", "a"}, "--tls-server-name: expected --server"},
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

}  // namespace THIS_FILE
}  // namespace tranche
