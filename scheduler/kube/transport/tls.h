// TLS towards the API server: TLS 1.2 or newer, chain verified against the configured CA alone; the
// command line may have it verified against the CAs this machine trusts.
//
// Thread rule: one thread at a time. Source: kube-client-protocol section 1.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/kube/transport/credentials.h"

namespace tranche::kube {

class TlsContexts {
 public:
  explicit TlsContexts(const Credentials& credentials);

  // The context for a new connection; null without TLS. CA and client certificate files are read
  // each time and a new context is made when they changed; while the new ones cannot be used, the
  // last good context serves. Errors: FailedPrecondition naming the file while there is none yet.
  absl::StatusOr<std::shared_ptr<boost::asio::ssl::context>> Get();

 private:
  struct Material {
    std::string ca, certificate, key;
    bool operator==(const Material&) const = default;
  };
  absl::StatusOr<Material> Read() const;
  absl::StatusOr<std::shared_ptr<boost::asio::ssl::context>> Build(const Material& material) const;

  Credentials credentials_;
  Material current_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

// The client certificate in PEM form, as it is now; "" where there is none or it cannot be read.
std::string ClientCertificate(const Credentials& credentials);

// Sets SNI and the name or address the server's certificate must carry as SAN on one connection.
absl::Status ExpectServerName(SSL* connection, const std::string& name);

// What OpenSSL disliked about the peer's certificate; "" when nothing.
std::string VerifyProblem(SSL* connection);

}  // namespace tranche::kube
