#include "test/fakes/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "topology/base/check.h"

namespace tranche::fakes {
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Bio = std::unique_ptr<BIO, Free>;

constexpr long kHourSeconds = 3600;

std::string TextOf(BIO* bio) {
  std::string text(static_cast<std::size_t>(BIO_pending(bio)), '\0');
  TRANCHE_CHECK(BIO_read(bio, text.data(), static_cast<int>(text.size())) ==
                static_cast<int>(text.size()));
  return text;
}

KeyPair ToPem(X509* certificate, EVP_PKEY* key) {
  const Bio first(BIO_new(BIO_s_mem()));
  const Bio second(BIO_new(BIO_s_mem()));
  TRANCHE_CHECK(PEM_write_bio_X509(first.get(), certificate) == 1);
  TRANCHE_CHECK(
      PEM_write_bio_PrivateKey(second.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return {TextOf(first.get()), TextOf(second.get())};
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  TRANCHE_CHECK(extension != nullptr);
  TRANCHE_CHECK(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

Certificate Blank(EVP_PKEY* key, const std::string& common_name) {
  static long serial = 1;
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kHourSeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kHourSeconds);
  const std::basic_string<unsigned char> text(common_name.begin(), common_name.end());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             text.data(), static_cast<int>(text.size()), -1, 0);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

}  // namespace

KeyPair MakeCa(const std::string& name) {
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const Certificate certificate = Blank(key.get(), name);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
  AddExtension(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  TRANCHE_CHECK(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  return ToPem(certificate.get(), key.get());
}

KeyPair MakeCertificate(const KeyPair& ca, const std::string& names, Validity valid) {
  const Bio ca_text(
      BIO_new_mem_buf(ca.certificate_pem.data(), static_cast<int>(ca.certificate_pem.size())));
  const Bio ca_key_text(BIO_new_mem_buf(ca.key_pem.data(), static_cast<int>(ca.key_pem.size())));
  const Certificate issuer(PEM_read_bio_X509(ca_text.get(), nullptr, nullptr, nullptr));
  const Key issuer_key(PEM_read_bio_PrivateKey(ca_key_text.get(), nullptr, nullptr, nullptr));
  TRANCHE_CHECK(issuer != nullptr && issuer_key != nullptr);
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const Certificate certificate = Blank(key.get(), "localhost");
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), valid.from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid.until);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get()));
  if (!names.empty()) {
    AddExtension(certificate.get(), issuer.get(), NID_subject_alt_name, names);
  }
  TRANCHE_CHECK(X509_sign(certificate.get(), issuer_key.get(), EVP_sha256()) > 0);
  return ToPem(certificate.get(), key.get());
}

}  // namespace tranche::fakes
