#include "scheduler/cli/cli_login.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tranche {
namespace THIS_FILE {

constexpr Instant kNow{Millis(1'800'000'000'000)};  // 2027-01-15T08:00:00Z

class LoginTest : public testing::Test {
 protected:
  LoginTest()
      : folder_(testing::TempDir() + "tranche-login-" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~LoginTest() override { std::filesystem::remove_all(folder_); }

  // A program that counts its runs and prints `answer`, $KUBERNETES_EXEC_INFO beside it.
  std::string Program(const std::string& answer, const std::string& first = "") {
    const std::string path = folder_ + "/plugin";
    std::ofstream(path) << "#!/bin/sh\n"
                        << first << "\necho run >>" << folder_ << "/runs\n"
                        << "printf '%s %s %s' \"$KUBERNETES_EXEC_INFO\" \"$1\" \"$REGION\" >"
                        << folder_ << "/asked\ncat <<'END'\n"
                        << answer << "\nEND\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  static kube::ExecPlugin Plugin(const std::string& command) {
    kube::ExecPlugin plugin;
    plugin.api_version = "client.authentication.k8s.io/v1";
    plugin.command = command;
    plugin.arguments = {"get-token"};
    plugin.environment = {"REGION=north"};
    plugin.interactive = kube::ExecPlugin::Interactive::kNever;
    return plugin;
  }
  static std::string Answer(const std::string& status) {
    return R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
               "status": {)" +
           status + "}}";
  }

  const std::string folder_;
};

TEST_F(LoginTest, RunsTheProgramOnceUntilItsAnswerEnds) {
  kube::ExecPlugin plugin = Plugin(
      Program(Answer(R"("token": "secret-1", "expirationTimestamp": "2027-01-15T08:01:00Z")")));
  plugin.wants_cluster = true;
  PluginLogin login(plugin);
  kube::Credentials credentials;
  credentials.host = "api.example";
  credentials.ca_pem = "PEM";
  ASSERT_TRUE(login.Fill(kNow, credentials).ok());
  EXPECT_EQ(credentials.token, "secret-1");
  ASSERT_TRUE(login.Fill(kNow + Millis(49'000), credentials).ok());
  EXPECT_EQ(Read("runs"), "run\n");
  ASSERT_TRUE(login.Fill(kNow + Millis(50'000), credentials).ok());
  EXPECT_EQ(Read("runs"), "run\nrun\n");
  login.Forget();
  ASSERT_TRUE(login.Fill(kNow, credentials).ok());
  EXPECT_EQ(Read("runs"), "run\nrun\nrun\n");
  EXPECT_EQ(Read("asked"),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":)"
            R"({"interactive":false,"cluster":{"server":"https://api.example",)"
            R"("certificate-authority-data":"UEVN"}}} get-token north)");
}

TEST_F(LoginTest, TakesCertificates) {
  PluginLogin login(
      Plugin(Program(Answer(R"("clientCertificateData": "CERT", "clientKeyData": "KEY")"))));
  kube::Credentials credentials;
  credentials.client_cert_file = "/old";
  ASSERT_TRUE(login.Fill(kNow, credentials).ok());
  EXPECT_EQ(credentials.client_cert_pem, "CERT");
  EXPECT_EQ(credentials.client_key_pem, "KEY");
  EXPECT_EQ(credentials.client_cert_file, "");
}

TEST_F(LoginTest, BadAnswersAreErrorsWithoutTheSecret) {
  const std::pair<std::string, const char*> table[] = {
      {"secret", "an ExecCredential in JSON"},
      {"[]", "an ExecCredential in JSON"},
      {R"({"kind": "Status", "token": "secret"})", "an ExecCredential in JSON"},
      {R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1",
           "status": {"token": "secret"}})",
       "expected apiVersion client.authentication.k8s.io/v1, found"},
      {R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"})",
       "expected a status, found none"},
      {Answer(""), "expected a token or a client certificate in its status, found neither"},
      {Answer(R"("token": 7)"), "found neither"},
      {Answer(R"("clientCertificateData": "secret")"), "together, found one of them"},
      {Answer(R"("token": "secret\r\nX: y")"), "a token of printable ASCII"},
      {Answer(R"("token": "secret", "expirationTimestamp": "soon")"),
       "expirationTimestamp in RFC 3339, found \"soon\""},
      {std::string(2 * 1024 * 1024, 'x'), "at most 1048576 bytes of output"},
  };
  for (const auto& [answer, named] : table) {
    PluginLogin login(Plugin(Program(answer)));
    kube::Credentials credentials;
    const absl::Status filled = login.Fill(kNow, credentials);
    ASSERT_FALSE(filled.ok()) << named;
    const std::string text(filled.message());
    EXPECT_NE(text.find(named), std::string::npos) << text;
    EXPECT_EQ(text.find("secret"), std::string::npos) << text;
    EXPECT_EQ(credentials.token, "");
  }
}

TEST_F(LoginTest, ProgramsThatFailAreNamed) {
  kube::ExecPlugin missing = Plugin("no-such-program-of-tranche");
  missing.install_hint = "apt install it";
  kube::Credentials credentials;
  const std::string none(PluginLogin(missing).Fill(kNow, credentials).message());
  EXPECT_NE(none.find("no-such-program-of-tranche"), std::string::npos) << none;
  EXPECT_NE(none.find("(apt install it)"), std::string::npos) << none;
  const std::string failed(
      PluginLogin(Plugin(Program("", "exit 3"))).Fill(kNow, credentials).message());
  EXPECT_NE(failed.find("expected exit code 0, found 3"), std::string::npos) << failed;
}

TEST_F(LoginTest, KubeconfigsSayHowToSignIn) {
  const auto load = [this](const std::string& exec, const std::string& server) {
    const std::string path = folder_ + "/config";
    std::ofstream(path)
        << "current-context: c\ncontexts:\n- name: c\n  context: {cluster: k, user: "
           "u, namespace: team-a}\nclusters:\n- name: k\n  cluster: {server: "
        << server
        << ", insecure-skip-tls-verify: true}\nusers:\n- name: u\n  user:\n    "
           "exec: "
        << exec << '\n';
    return path;
  };
  const std::string whole =
      "{apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [a, b], env: [{name: "
      "K, value: v}], installHint: hint, provideClusterInfo: true, interactiveMode: Never}";
  const auto login = kube::LoadUserKubeconfig(load(whole, "https://a"), "");
  ASSERT_TRUE(login.ok()) << login.status();
  ASSERT_TRUE(login->plugin.has_value());
  EXPECT_EQ(login->plugin->command, folder_ + "/./login");
  EXPECT_EQ(login->plugin->arguments, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(login->plugin->environment, (std::vector<std::string>{"K=v"}));
  EXPECT_TRUE(login->plugin->wants_cluster);
  EXPECT_EQ(login->credentials.context_namespace, "team-a");
  // Servers run no programs of others.
  EXPECT_TRUE(absl::IsUnimplemented(kube::LoadKubeconfig(folder_ + "/config").status()));
  const std::string v1 = "apiVersion: client.authentication.k8s.io/v1";
  const std::pair<std::string, const char*> table[] = {
      {"{command: a}", "exec.apiVersion"},
      {"{apiVersion: client.authentication.k8s.io/v1alpha1, command: a}", "exec.apiVersion"},
      {"{" + v1 + "}", "exec.command"},
      {"{" + v1 + ", command: a}", "exec.interactiveMode"},
      {"{" + v1 + ", command: a, interactiveMode: Often}", "found Often"},
      {"{" + v1 + ", command: a, args: b, interactiveMode: Never}", "exec.args"},
      {"{" + v1 + ", command: a, env: [{value: b}], interactiveMode: Never}", "exec.env"},
      {"[]", "expected a map"},
  };
  for (const auto& [exec, named] : table) {
    const absl::Status read = kube::LoadUserKubeconfig(load(exec, "https://a"), "").status();
    EXPECT_NE(std::string(read.message()).find(named), std::string::npos) << exec << ": " << read;
  }
  const absl::Status clear = kube::LoadUserKubeconfig(load(whole, "http://a"), "").status();
  EXPECT_NE(std::string(clear.message()).find("an https server"), std::string::npos) << clear;
}

}  // namespace THIS_FILE
}  // namespace tranche
