#include "scheduler/http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <boost/asio/ssl/verify_mode.hpp>
#include <ctime>
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

constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

absl::Status BadFile(const std::string& setting, const char* expected, const std::string& path,
                     const error_code& error) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {} at {}", setting, expected, error.message(), path));
}

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

// With its length as encoded: a zero byte inside makes it another name.
std::string TextOf(const ASN1_STRING* text) {
  const auto* const bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return {bytes, static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace

std::shared_ptr<const std::vector<std::string>> ClientNames(ssl_st* connection) {
  X509* const shown = SSL_get0_peer_certificate(connection);
  if (shown == nullptr) return nullptr;
  auto names = std::make_shared<std::vector<std::string>>();
  int critical = 0;
  const std::unique_ptr<GENERAL_NAMES, FreeNames> alternative(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(shown, NID_subject_alt_name, &critical, nullptr)));
  if (alternative != nullptr) {
    for (int i = 0; i < sk_GENERAL_NAME_num(alternative.get()); ++i) {
      const GENERAL_NAME* const name = sk_GENERAL_NAME_value(alternative.get(), i);
      if (name->type == GEN_DNS) names->push_back(TextOf(name->d.dNSName));
      if (name->type == GEN_URI) names->push_back(TextOf(name->d.uniformResourceIdentifier));
    }
    return names;
  }
  // -1: there is none; -2: there is one that cannot be read.
  if (critical != -1) return names;
  X509_NAME* const subject = X509_get_subject_name(shown);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    names->push_back(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

namespace {

std::optional<std::chrono::system_clock::time_point> EndOf(const X509* certificate) {
  std::tm time{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) {
    return std::nullopt;
  }
  return std::chrono::system_clock::from_time_t(timegm(&time));
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> CertificateEnd(const std::string& pem) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  return EndOf(certificate.get());
}

std::optional<std::chrono::system_clock::time_point> TlsMaterial::end() const {
  const absl::MutexLock lock(&mutex_);
  if (context_ == nullptr) return std::nullopt;
  return EndOf(SSL_CTX_get0_certificate(context_->native_handle()));
}

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
  const absl::MutexLock lock(&mutex_);
  if (version == seen_) return absl::OkStatus();
  seen_ = std::move(version);
  auto made = std::make_shared<Context>(Context::tls_server);
  SSL_CTX* const native = made->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Of TLS 1.2; all of 1.3 are as good.
  if (SSL_CTX_set_cipher_list(native, kCiphers) != 1) {
    return absl::InternalError("expected OpenSSL to know ciphers with forward secrecy, found none");
  }
  // Connections live long: resuming a session would save nothing.
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(native, 0);
  // An idle connection keeps no buffers.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // The chain is what the file holds; the CA of clients is nobody's business.
  SSL_CTX_set_mode(native, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  error_code error;
  // No password is asked for at a terminal.
  made->set_password_callback(
      [](std::size_t, asio::ssl::context_base::password_purpose) { return std::string(); }, error);
  made->use_certificate_chain_file(options_.certificate_file, error);
  if (error) {
    return BadFile(options_.settings + ".certFile", "a PEM certificate chain",
                   options_.certificate_file, error);
  }
  made->use_private_key_file(options_.key_file, Context::pem, error);
  if (error) {
    return BadFile(options_.settings + ".keyFile", "the PEM private key of the certificate",
                   options_.key_file, error);
  }
  if (!options_.client_ca_file.empty()) {
    made->load_verify_file(options_.client_ca_file, error);
    if (error) {
      return BadFile(options_.settings + ".clientCaFile", "PEM certificates",
                     options_.client_ca_file, error);
    }
    made->set_verify_mode(options_.client_optional
                              ? asio::ssl::verify_peer
                              : asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert,
                          error);
  }
  context_ = std::move(made);
  return absl::OkStatus();
}

std::shared_ptr<Context> TlsMaterial::context() const {
  const absl::MutexLock lock(&mutex_);
  return context_;
}

}  // namespace tranche::http
