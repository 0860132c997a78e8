#include "scheduler/http/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <boost/asio/ssl/verify_mode.hpp>
#include <utility>

namespace tranche::http {
namespace {

namespace asio = boost::asio;
using Context = asio::ssl::context;
using boost::system::error_code;

// Device, inode, size and time of change: a file replaced by another differs in one of them.
void AppendVersion(const std::string& path, std::string& out) {
  struct stat found {};
  if (path.empty() || ::stat(path.c_str(), &found) != 0) {
    out += "none;";
    return;
  }
  out += fmt::format("{}.{}.{}.{}.{};", found.st_dev, found.st_ino, found.st_size,
                     found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

absl::Status Bad(const char* setting, const char* expected, const std::string& path,
                 const error_code& error) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {} at {}", setting, expected, error.message(), path));
}

}  // namespace

std::string TlsMaterial::Fingerprint() const {
  std::string version;
  for (const std::string* path :
       {&options_.certificate_file, &options_.key_file, &options_.client_ca_file}) {
    AppendVersion(*path, version);
  }
  return version;
}

absl::Status TlsMaterial::Refresh() {
  std::string version = Fingerprint();
  const std::lock_guard lock(mutex_);
  if (version == seen_) return absl::OkStatus();
  seen_ = std::move(version);
  auto made = std::make_shared<Context>(Context::tls_server);
  SSL_CTX* const native = made->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Connections live long: resuming a session would save nothing.
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(native, 0);
  // An idle connection keeps no buffers.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  error_code error;
  // No password is asked for at a terminal.
  made->set_password_callback(
      [](std::size_t, asio::ssl::context_base::password_purpose) { return std::string(); }, error);
  made->use_certificate_chain_file(options_.certificate_file, error);
  if (error) {
    return Bad("tls.certFile", "a PEM certificate chain", options_.certificate_file, error);
  }
  made->use_private_key_file(options_.key_file, Context::pem, error);
  if (error) {
    return Bad("tls.keyFile", "the PEM private key of the certificate", options_.key_file, error);
  }
  if (!options_.client_ca_file.empty()) {
    made->load_verify_file(options_.client_ca_file, error);
    if (error) {
      return Bad("tls.clientCaFile", "PEM certificates", options_.client_ca_file, error);
    }
    made->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  }
  context_ = std::move(made);
  return absl::OkStatus();
}

std::shared_ptr<Context> TlsMaterial::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

}  // namespace tranche::http
