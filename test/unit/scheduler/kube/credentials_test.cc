#include "scheduler/kube/transport/credentials.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/transport/token.h"

namespace tranche::kube {
namespace THIS_FILE {

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("credentials_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    Write("ca.crt", "CA");
    Write("client.crt", "CERT");
    Write("client.key", "KEY");
    Write("token", " file-token\n");
  }
  ~CredentialsTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  // A kubeconfig whose cluster and user maps hold these members (flow style).
  absl::StatusOr<Credentials> Load(const std::string& cluster, const std::string& user) {
    return LoadKubeconfig(Write("config", fmt::format(R"(
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: other
  context: {{cluster: nowhere, user: nobody}}
- name: here
  context: {{cluster: c, user: u, namespace: ignored}}
clusters:
- name: c
  cluster: {{{}}}
users:
- name: u
  user: {{{}}}
)",
                                                      cluster, user)));
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

constexpr const char* kServer =
    "server: 'https://api.example:6443/k8s/', certificate-authority: ca.crt";

TEST_F(CredentialsTest, ResolvesRelativePathsAgainstTheFolderOfTheKubeconfig) {
  const auto out =
      Load(kServer, "client-certificate: client.crt, client-key: client.key, tokenFile: token");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->host, "api.example");
  EXPECT_EQ(out->port, 6443);
  EXPECT_EQ(out->path_prefix, "/k8s");
  EXPECT_TRUE(out->tls);
  EXPECT_EQ(out->ca_file, Path("ca.crt"));
  EXPECT_EQ(out->client_cert_file, Path("client.crt"));
  EXPECT_EQ(out->client_key_file, Path("client.key"));
  EXPECT_EQ(out->token_file, Path("token"));
}

TEST_F(CredentialsTest, PrefersInlineDataToPaths) {
  const auto out = Load(
      "server: 'https://h', certificate-authority: missing, "
      "certificate-authority-data: Q0EgZGF0YQ==",
      "client-certificate-data: QUI=, client-key-data: QUJD, token: t");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->ca_pem, "CA data");
  EXPECT_EQ(out->ca_file, "");
  EXPECT_EQ(out->client_cert_pem, "AB");
  EXPECT_EQ(out->client_key_pem, "ABC");
  EXPECT_EQ(out->token, "t");
  EXPECT_EQ(out->port, 443);
}

TEST_F(CredentialsTest, ReadsServerNameAndSkippedVerification) {
  const auto out =
      Load("server: 'https://[::1]:1', tls-server-name: name, insecure-skip-tls-verify: true", "");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->host, "::1");
  EXPECT_EQ(out->tls_server_name, "name");
  EXPECT_TRUE(out->insecure_skip_verify);
}

struct Refused {
  const char* cluster;
  const char* user;
  absl::StatusCode code;
  const char* field;
};

TEST_F(CredentialsTest, RefusesWhatItDoesNotSupportAndNamesTheField) {
  constexpr auto kUnsupported = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const Refused rows[] = {
      {kServer, "exec: {command: aws}", kUnsupported, "users[u].user.exec"},
      {kServer, "auth-provider: {name: gcp}", kUnsupported, "users[u].user.auth-provider"},
      {kServer, "username: admin, password: x", kUnsupported, "users[u].user.username"},
      {kServer, "as: someone", kUnsupported, "users[u].user.as"},
      {"server: 'https://h', insecure-skip-tls-verify: true, proxy-url: 'http://p'", "",
       kUnsupported, "clusters[c].cluster.proxy-url"},
      {"server: 'https://h'", "", kInvalid, "certificate-authority"},
      {"server: 'https://h', certificate-authority: missing.crt", "", kInvalid, "missing.crt"},
      {"server: 'https://h', certificate-authority-data: '***'", "", kInvalid,
       "certificate-authority-data"},
      {"server: 'ftp://h'", "", kInvalid, "clusters[c].cluster.server"},
      {"server: 'https://h:99999'", "", kInvalid, "clusters[c].cluster.server"},
      {"server: 'https://user@h'", "", kInvalid, "clusters[c].cluster.server"},
      {"certificate-authority: ca.crt", "", kInvalid, "clusters[c].cluster.server"},
      {"server: 'https://h', insecure-skip-tls-verify: maybe", "", kInvalid,
       "insecure-skip-tls-verify"},
      {kServer, "client-certificate: client.crt", kInvalid, "client-key"},
      {kServer, "token: 'two words'", kInvalid, "users[u].user.token"},
      {"server: 'http://h'", "token: t", kInvalid, "users[u].user.token"},
      {"server: 'http://h'", "tokenFile: token", kInvalid, "users[u].user.tokenFile"},
  };
  for (const Refused& row : rows) {
    const auto out = Load(row.cluster, row.user);
    EXPECT_EQ(out.status().code(), row.code) << row.cluster << " " << row.user;
    EXPECT_NE(std::string(out.status().message()).find(row.field), std::string::npos)
        << out.status();
  }
}

TEST_F(CredentialsTest, ErrorsNeverQuoteSecrets) {
  const auto token = Load(kServer, "token: 'xyz zy'");
  EXPECT_EQ(token.status().ToString().find("zy"), std::string::npos) << token.status();
  const auto key = Load(kServer, "client-certificate: client.crt, client-key-data: 'xyz*zy'");
  EXPECT_EQ(key.status().ToString().find("zy"), std::string::npos) << key.status();
  const auto yaml = LoadKubeconfig(Write("broken", "token: \"xyzzy\nusers: ["));
  EXPECT_EQ(yaml.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(yaml.status().ToString().find("zy"), std::string::npos) << yaml.status();
}

TEST_F(CredentialsTest, SaysWhichFileOrNameIsMissing) {
  EXPECT_EQ(LoadKubeconfig(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadKubeconfig(Write("list", "[1]")).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto no_context = LoadKubeconfig(Write("bare", "current-context: x\ncontexts: []\n"));
  EXPECT_NE(no_context.status().ToString().find("an entry called \"x\""), std::string::npos);
}

TEST_F(CredentialsTest, ReadsTheServiceAccountOfAPod) {
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
  EXPECT_EQ(InClusterCredentials(folder_.string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ::setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  const auto out = InClusterCredentials(folder_.string());
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->host, "10.0.0.1");
  EXPECT_EQ(out->port, 6443);
  EXPECT_EQ(out->ca_file, folder_.string() + "/ca.crt");
  EXPECT_EQ(out->token_file, folder_.string() + "/token");
  std::filesystem::remove(folder_ / "ca.crt");
  EXPECT_EQ(InClusterCredentials(folder_.string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  Write("ca.crt", "CA");
  Write("token", " \n");
  EXPECT_EQ(InClusterCredentials(folder_.string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ::setenv("KUBERNETES_SERVICE_PORT", "none", 1);
  EXPECT_FALSE(InClusterCredentials(folder_.string()).ok());
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::unsetenv("KUBERNETES_SERVICE_PORT");
}

class TokenTest : public CredentialsTest {
 protected:
  std::chrono::steady_clock::time_point At(int seconds) const {
    return std::chrono::steady_clock::time_point() + std::chrono::seconds(seconds);
  }
};

TEST_F(TokenTest, IsReadAgainAfterFiftySecondsOrOnceExpired) {
  Credentials credentials;
  credentials.token_file = Write("token", " one \n");
  TokenSource token(credentials, std::chrono::seconds(50));
  EXPECT_EQ(token.Get(At(100)).value(), "one");
  Write("token", "two");
  EXPECT_EQ(token.Get(At(149)).value(), "one");
  EXPECT_EQ(token.Get(At(150)).value(), "two");
  Write("token", "three");
  EXPECT_EQ(token.Get(At(151)).value(), "two");
  EXPECT_TRUE(token.Expire());
  EXPECT_EQ(token.Get(At(152)).value(), "three");
}

TEST_F(TokenTest, StaysTheLastGoodOneWhileTheFileIsBad) {
  Credentials credentials;
  credentials.token_file = Write("token", "good");
  TokenSource token(credentials, std::chrono::seconds(1));
  EXPECT_EQ(token.Get(At(0)).value(), "good");
  for (const char* bad : {"", " \n", "a\r\nHost: evil", "\xff"}) {
    Write("token", bad);
    EXPECT_TRUE(token.Expire());
    EXPECT_EQ(token.Get(At(0)).value(), "good") << bad;
  }
  std::filesystem::remove(folder_ / "token");
  EXPECT_TRUE(token.Expire());
  EXPECT_EQ(token.Get(At(0)).value(), "good");
}

TEST_F(TokenTest, IsTheInlineOneUntilTheFileCanBeRead) {
  Credentials credentials;
  credentials.token = "inline";
  credentials.token_file = Path("later");
  TokenSource token(credentials, std::chrono::seconds(1));
  EXPECT_EQ(token.Get(At(0)).value(), "inline");
  Write("later", "file");
  EXPECT_EQ(token.Get(At(2)).value(), "file");
}

TEST_F(TokenTest, IsAnErrorWhenThereNeverWasAGoodOne) {
  Credentials credentials;
  credentials.token_file = Path("none");
  TokenSource token(credentials, std::chrono::seconds(50));
  EXPECT_EQ(token.Get(At(0)).status().code(), absl::StatusCode::kFailedPrecondition);
  Write("none", "now");
  EXPECT_EQ(token.Get(At(1)).value(), "now");
  EXPECT_FALSE(TokenSource(Credentials(), std::chrono::seconds(1)).Expire());
}

TEST(ServerUrl, EncodesEverythingButUnreservedBytes) {
  EXPECT_EQ(PercentEncoded("aZ9-._~"), "aZ9-._~");
  EXPECT_EQ(PercentEncoded("a/b c+=&\xff"), "a%2Fb%20c%2B%3D%26%FF");
}

TEST(ServerUrl, WritesHostHeadersWithBracketsAndOnlyUnusualPorts) {
  EXPECT_EQ(HostHeader("h", 443, true), "h");
  EXPECT_EQ(HostHeader("h", 443, false), "h:443");
  EXPECT_EQ(HostHeader("::1", 6443, true), "[::1]:6443");
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
