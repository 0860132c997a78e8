// Until when certificates are good.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "scheduler/http/tls.h"
#include "test/fakes/certificates.h"

namespace tranche::http {
namespace THIS_FILE {

TEST(CertificateEndTest, IsThatOfTheCertificateInUse) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "certificate-end";
  std::filesystem::create_directories(folder);
  const auto write = [](const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  };
  const fakes::KeyPair pair =
      fakes::MakeCertificate(fakes::MakeCa("the server's"), "DNS:localhost");
  TlsOptions options;
  options.certificate_file = folder / "tls.crt";
  options.key_file = folder / "tls.key";
  TlsMaterial material(options);
  EXPECT_FALSE(material.end()) << "none is in use yet";
  write(options.certificate_file, pair.certificate_pem);
  write(options.key_file, pair.key_pem);
  ASSERT_TRUE(material.Refresh().ok());
  ASSERT_TRUE(material.end());
  EXPECT_GT(*material.end(), std::chrono::system_clock::now());
  EXPECT_EQ(CertificateEnd(pair.certificate_pem), material.end());
  write(options.certificate_file, "no certificate");
  EXPECT_FALSE(material.Refresh().ok());
  EXPECT_EQ(CertificateEnd(pair.certificate_pem), material.end()) << "the old one is shown on";
  for (const char* none : {"", "no certificate"}) EXPECT_FALSE(CertificateEnd(none)) << none;
  std::filesystem::remove_all(folder);
}

}  // namespace THIS_FILE
}  // namespace tranche::http
