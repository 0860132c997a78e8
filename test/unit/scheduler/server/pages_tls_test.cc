// Pages at an address of their own, over TLS with a certificate of their own.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "test/fakes/certificates.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using fakes::KeyPair;
using fakes::MakeCa;
using fakes::MakeCertificate;

class PagesTls : public LiveServer {
 protected:
  PagesTls()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("pages-tls-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~PagesTls() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    // As volumes of Secrets are replaced: the new file takes the place of the old one at once.
    const std::filesystem::path fresh = folder_ / (name + ".new");
    std::ofstream(fresh) << text;
    std::filesystem::rename(fresh, folder_ / name);
    return folder_ / name;
  }
  void Show(const KeyPair& pair) {
    config_.pages_tls->certificate_file = Write("tls.crt", pair.certificate_pem);
    config_.pages_tls->key_file = Write("tls.key", pair.key_pem);
  }
  // The status that a caller gets who trusts that CA and names the server so; 0: no answer.
  int StatusOf(const KeyPair& ca, const std::string& name, const char* token) const {
    kube::Credentials credentials = LoopbackServer(runtime->pages_port());
    credentials.tls = true;
    credentials.ca_pem = ca.certificate_pem;
    credentials.tls_server_name = name;
    credentials.token = token;
    const auto answer = kube::CallOnce(credentials, {"GET", "/api/v1/nodes", ""});
    return answer.ok() ? answer->status : 0;
  }

  static constexpr const char* kName = "tranche.tranche-system.svc";
  const std::filesystem::path folder_;
  ServeConfig config_;
};

TEST_F(PagesTls, AreServedToWhomTheCertificateConvinces) {
  const KeyPair ca = MakeCa("right");
  config_.pages_address = "127.0.0.1";
  config_.pages_tls.emplace();
  config_.pages_tls->look_every = std::chrono::milliseconds(10);
  config_.pages_token_file = Write("token", "let-me-in\n");
  Show(MakeCertificate(ca, std::string("DNS:") + kName));
  Launch(config_);
  EXPECT_EQ(StatusOf(ca, kName, "let-me-in"), 200);
  EXPECT_EQ(StatusOf(ca, kName, "let-me-out"), 401);
  EXPECT_EQ(StatusOf(ca, "elsewhere.example", "let-me-in"), 0);
  EXPECT_EQ(StatusOf(MakeCa("wrong"), kName, "let-me-in"), 0);
  EXPECT_FALSE(kube::CallOnce(LoopbackServer(runtime->pages_port()), {"GET", "/healthz", ""}).ok())
      << "no clear text at that address";
  // The verbs' address has its own word on TLS.
  EXPECT_EQ(Call("GET", "/healthz").status, 200);

  const KeyPair next = MakeCa("next");
  Show(MakeCertificate(next, std::string("DNS:") + kName));
  for (int i = 0; i < 500 && StatusOf(next, kName, "let-me-in") != 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(StatusOf(next, kName, "let-me-in"), 200);
  EXPECT_EQ(StatusOf(ca, kName, "let-me-in"), 0);
}

TEST_F(PagesTls, FilesThatCannotBeUsedAreNamed) {
  config_.port = 0;
  config_.pages_address = "127.0.0.1";
  config_.pages_tls.emplace();
  ASSERT_TRUE(
      ApplyConfigText("pages: {certFile: /nonexistent/crt, keyFile: k}\n", "c", config_).ok());
  const absl::Status started = Runtime(config_).Start();
  EXPECT_EQ(std::string(started.message()).find("pages.certFile: expected a PEM certificate"), 0U)
      << started;
}

}  // namespace THIS_FILE
}  // namespace tranche
