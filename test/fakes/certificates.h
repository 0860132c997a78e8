// Certificates made at test time, so that none lies in the repository and none can run out.
#pragma once

#include <string>

namespace tranche::fakes {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

// A self-signed CA, valid for an hour.
KeyPair MakeCa(const std::string& name);
// From when to when, in seconds from now.
struct Validity {
  long from = -3600;
  long until = 3600;
};
// A certificate from that CA; `names` are SAN entries in OpenSSL's form ("DNS:localhost",
// "IP:127.0.0.1"), empty: none. Its common name is "localhost".
KeyPair MakeCertificate(const KeyPair& ca, const std::string& names, Validity valid = {});

}  // namespace tranche::fakes
