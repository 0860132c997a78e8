// The certificate a server shows, taken up anew when its files change.
//
// TLS 1.2 and newer with forward secrecy and authenticated encryption, no renegotiation, no
// compression. Certificates are rotated by replacing files
// (Kubernetes swaps a symlink of a Secret's mount): connections that are open keep what they began
// with, later ones get the new certificate. Files that cannot be used, or do not belong together
// because only one is written yet, change nothing until they can.
//
// Thread rule: any thread.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/server.h"

struct ssl_st;

namespace tranche::http {

// What Request::client_names says of a connection; null: it showed no certificate.
std::shared_ptr<const std::vector<std::string>> ClientNames(ssl_st* connection);

// Until when the first certificate of a PEM text is good; nullopt: there is none that can be read.
std::optional<std::chrono::system_clock::time_point> CertificateEnd(const std::string& pem);

class TlsMaterial {
 public:
  explicit TlsMaterial(TlsOptions options) : options_(std::move(options)) {}

  // Reads the files if they are not those read last. Errors: InvalidArgument naming file and
  // setting, what was expected and what OpenSSL said; the certificate in use stays. Cost: three
  // stat calls where nothing has changed, else a millisecond.
  absl::Status Refresh();
  // Null before the first Refresh that went well.
  std::shared_ptr<boost::asio::ssl::context> context() const;
  // Until when the certificate in use is good; nullopt: none is in use.
  std::optional<std::chrono::system_clock::time_point> end() const;

 private:
  // What tells one version of the files from another.
  std::string Fingerprint() const;

  const TlsOptions options_;
  mutable absl::Mutex mutex_;
  std::string seen_ ABSL_GUARDED_BY(mutex_);  // the version tried last
  std::shared_ptr<boost::asio::ssl::context> context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche::http
