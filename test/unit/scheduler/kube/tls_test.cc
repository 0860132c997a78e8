// TLS and tokens against a server over real sockets, with certificates made here.
#include "scheduler/kube/transport/tls.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiServer;
using fakes::KeyPair;
using fakes::MakeCa;
using fakes::MakeCertificate;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  ~TlsTest() override {
    cluster_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  void StartServer(const std::string& names) {
    server_ = std::make_unique<ApiServer>(MakeCertificate(ca_, names));
    options_ = PlainOptions(server_->port());
    options_.credentials.tls = true;
    options_.credentials.ca_pem = ca_.certificate_pem;
  }
  void StartClient() {
    cluster_ = std::make_unique<Cluster>(options_, events_);
    cluster_->Start();
  }
  bool Refused() {
    return Eventually([this] { return cluster_->status().at("namespaces").failures >= 2; }) &&
           !cluster_->status().at("namespaces").synced && server_->Requests(kNamespaces).empty();
  }

  const KeyPair ca_ = MakeCa("right");
  std::filesystem::path folder_;
  std::unique_ptr<ApiServer> server_;
  Options options_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(TlsTest, AcceptsTheAddressInTheCertificateFromTheConfiguredCa) {
  StartServer("IP:127.0.0.1");
  StartClient();
  EXPECT_TRUE(events_.Saw("synced"));
  server_->Put(kPods, Pod("a", "u1"));
  EXPECT_TRUE(events_.Saw("pod team/a u1"));
  BindingWrite write;
  write.pod = {"team", "a"};
  write.uid = PodUid("u1");
  write.node = NodeName("n1");
  EXPECT_EQ(BindAndWait(*cluster_, write).kind, WriteResult::Kind::kDone);
}

TEST_F(TlsTest, AcceptsTheConfiguredServerName) {
  StartServer("DNS:kubernetes.default.svc");
  options_.credentials.tls_server_name = "kubernetes.default.svc";
  StartClient();
  EXPECT_TRUE(events_.Saw("synced"));
}

TEST_F(TlsTest, LooksUpNamesAndChecksThem) {
  StartServer("DNS:localhost");
  options_.credentials.host = "localhost";
  StartClient();
  EXPECT_TRUE(events_.Saw("synced"));
}

TEST_F(TlsTest, RefusesAnotherCa) {
  StartServer("IP:127.0.0.1");
  options_.credentials.ca_pem = MakeCa("wrong").certificate_pem;
  StartClient();
  EXPECT_TRUE(Refused());
}

TEST_F(TlsTest, RefusesACertificateForAnotherHost) {
  StartServer("IP:127.0.0.2,DNS:other");
  StartClient();
  EXPECT_TRUE(Refused());
}

TEST_F(TlsTest, RefusesACertificateThatCarriesTheNameOnlyAsSubject) {
  StartServer("IP:127.0.0.2");  // its subject is CN=localhost
  options_.credentials.tls_server_name = "localhost";
  StartClient();
  EXPECT_TRUE(Refused());
}

TEST_F(TlsTest, SaysThatABindWasNotSentWhenTheServerIsNotTrusted) {
  StartServer("IP:127.0.0.2");
  StartClient();
  BindingWrite write;
  write.pod = {"team", "a"};
  write.uid = PodUid("u1");
  write.node = NodeName("n1");
  EXPECT_EQ(BindAndWait(*cluster_, write).kind, WriteResult::Kind::kNotSent);
}

TEST_F(TlsTest, SkipsVerificationOnlyWhenTold) {
  StartServer("IP:127.0.0.2");
  options_.credentials.ca_pem.clear();
  options_.credentials.insecure_skip_verify = true;
  StartClient();
  EXPECT_TRUE(events_.Saw("synced"));
}

TEST_F(TlsTest, TakesUpAReplacedCaFile) {
  StartServer("IP:127.0.0.1");
  options_.credentials.ca_pem.clear();
  options_.credentials.ca_file = Write("ca.crt", MakeCa("wrong").certificate_pem);
  StartClient();
  EXPECT_TRUE(Refused());
  Write("ca.crt", ca_.certificate_pem);
  EXPECT_TRUE(events_.Saw("synced"));
}

TEST_F(TlsTest, TakesUpARotatedTokenAfterA401) {
  StartServer("IP:127.0.0.1");
  options_.credentials.token_file = Write("token", "first\n");
  server_->set_token("first");
  StartClient();
  ASSERT_TRUE(events_.Saw("synced"));
  Write("token", "second\n");
  server_->set_token("second");
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid()).kind, PodLookup::Kind::kMissing);
  server_->Compact();
  EXPECT_TRUE(Eventually([this] { return cluster_->status().at("pods").relists == 1; }));
}

TEST_F(TlsTest, ReadsTheTokenAgainInTime) {
  StartServer("IP:127.0.0.1");
  options_.credentials.token_file = Write("token", "first");
  options_.timing.token_reread = std::chrono::milliseconds(1);
  StartClient();
  ASSERT_TRUE(events_.Saw("synced"));
  Write("token", "second");
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  GetAndWait(*cluster_, {"team", "a"}, PodUid());
  EXPECT_EQ(server_->Requests("/api/v1/namespaces/team/pods/a").at(0).headers.at("authorization"),
            "Bearer second");
}

TEST(PlainHttp, NeverCarriesAToken) {
  ApiServer server;
  RecordingEvents events;
  Options options = PlainOptions(server.port());
  options.credentials.token = "secret";
  Cluster cluster(options, events);
  cluster.Start();
  ASSERT_TRUE(events.Saw("synced"));
  EXPECT_FALSE(server.Requests(kPods).at(0).headers.contains("authorization"));
}

TEST_F(TlsTest, KeepsTheLastGoodFilesWhenNewOnesCannotBeUsed) {
  Credentials credentials;
  credentials.ca_file = Write("ca.crt", ca_.certificate_pem);
  TlsContexts contexts(credentials);
  const auto first = contexts.Get();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(contexts.Get().value(), *first);
  Write("ca.crt", "half a file");
  EXPECT_EQ(contexts.Get().value(), *first);
  std::filesystem::remove(folder_ / "ca.crt");
  EXPECT_EQ(contexts.Get().value(), *first);
  Write("ca.crt", MakeCa("new").certificate_pem);
  EXPECT_NE(contexts.Get().value(), *first);
}

TEST_F(TlsTest, NamesWhatItCannotUse) {
  Credentials credentials;
  credentials.ca_pem = "no certificate";
  EXPECT_EQ(TlsContexts(credentials).Get().status().code(), absl::StatusCode::kFailedPrecondition);
  const KeyPair one = MakeCertificate(ca_, "DNS:a");
  const KeyPair other = MakeCertificate(ca_, "DNS:b");
  credentials.ca_pem = ca_.certificate_pem;
  credentials.client_cert_pem = one.certificate_pem;
  credentials.client_key_pem = other.key_pem;
  EXPECT_FALSE(TlsContexts(credentials).Get().ok());
  credentials.client_key_pem = one.key_pem;
  EXPECT_TRUE(TlsContexts(credentials).Get().ok());
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
