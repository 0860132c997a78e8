#include "scheduler/kube/transport/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <spdlog/spdlog.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>

#include "scheduler/kube/transport/files.h"
#include "topology/base/status.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using Context = asio::ssl::context;

absl::Status Unusable(const char* what, const boost::system::error_code& error) {
  return absl::FailedPreconditionError(
      fmt::format("expected a usable {} in PEM form, found: {}", what, error.message()));
}

absl::StatusOr<std::string> FromFileOr(const std::string& file, const std::string& pem) {
  if (file.empty()) return pem;
  return ReadSmallFile(file);
}

}  // namespace

TlsContexts::TlsContexts(const Credentials& credentials) : credentials_(credentials) {}

absl::StatusOr<TlsContexts::Material> TlsContexts::Read() const {
  TRANCHE_ASSIGN_OR_RETURN(auto ca, FromFileOr(credentials_.ca_file, credentials_.ca_pem));
  TRANCHE_ASSIGN_OR_RETURN(auto certificate,
                           FromFileOr(credentials_.client_cert_file, credentials_.client_cert_pem));
  TRANCHE_ASSIGN_OR_RETURN(auto key,
                           FromFileOr(credentials_.client_key_file, credentials_.client_key_pem));
  return Material{std::move(ca), std::move(certificate), std::move(key)};
}

absl::StatusOr<std::shared_ptr<Context>> TlsContexts::Build(const Material& material) const {
  auto context = std::make_shared<Context>(Context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  // Without this OpenSSL asks the terminal for the password of an encrypted key.
  context->set_password_callback(
      [](std::size_t, asio::ssl::context_base::password_purpose) { return std::string(); }, error);
  if (!credentials_.insecure_skip_verify) {
    context->set_verify_mode(asio::ssl::verify_peer, error);
    if (credentials_.system_roots && material.ca.empty()) {
      context->set_default_verify_paths(error);
    } else {
      context->add_certificate_authority(asio::buffer(material.ca), error);
    }
    if (error) return Unusable("certificate authority", error);
  }
  if (!material.certificate.empty()) {
    context->use_certificate_chain(asio::buffer(material.certificate), error);
    if (error) return Unusable("client certificate", error);
    context->use_private_key(asio::buffer(material.key), Context::pem, error);
    if (error) return Unusable("client key", error);
    if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
      ERR_clear_error();
      return absl::FailedPreconditionError(
          "expected a client key that belongs to the client certificate, found another");
    }
  }
  return context;
}

absl::StatusOr<std::shared_ptr<Context>> TlsContexts::Get() {
  if (!credentials_.tls) return std::shared_ptr<Context>();
  absl::StatusOr<Material> material = Read();
  absl::Status status = material.status();
  if (status.ok()) {
    if (context_ != nullptr && *material == current_) return context_;
    auto context = Build(*material);
    status = context.status();
    if (status.ok()) {
      context_ = std::move(*context);
      current_ = std::move(*material);
      return context_;
    }
  }
  if (context_ == nullptr) return status;
  spdlog::warn("keeping the last good TLS files: {}", status.ToString());
  return context_;
}

std::string ClientCertificate(const Credentials& credentials) {
  return FromFileOr(credentials.client_cert_file, credentials.client_cert_pem).value_or("");
}

absl::Status ExpectServerName(SSL* connection, const std::string& name) {
  boost::system::error_code not_an_address;
  asio::ip::make_address(name, not_an_address);
  X509_VERIFY_PARAM* const rules = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(
      rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const int expected = not_an_address ? X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size())
                                      : X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str());
  // What SSL_set_tlsext_host_name does, without its C cast.
  const bool announced =
      !not_an_address || SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                  TLSEXT_NAMETYPE_host_name, std::string(name).data()) == 1;
  if (expected == 1 && announced) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError(
      fmt::format("expected a host name or address for TLS, found {}", name));
}

std::string VerifyProblem(SSL* connection) {
  const long result = SSL_get_verify_result(connection);
  return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
}

}  // namespace tranche::kube
