// Command lines against servers of a test, and the files they name.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/cli/cli.h"
#include "scheduler/server/runtime.h"
#include "test/fakes/certificates.h"

namespace tranche {

struct CallOutcome {
  int code = 0;
  std::string out;
  std::string err;
};

inline CallOutcome Call(const std::vector<std::string>& arguments,
                        const std::string& name = "tranche") {
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
    const fakes::KeyPair pair = fakes::MakeCertificate(ca_, names);
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

  const fakes::KeyPair ca_ = fakes::MakeCa("right");
  std::filesystem::path folder_;
};

}  // namespace tranche
