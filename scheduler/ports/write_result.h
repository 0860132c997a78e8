// What became of one write to the cluster.
//
// A plain value.
#pragma once

#include <string>

namespace tranche {

struct WriteResult {
  enum class Kind {
    kDone,      // the server said yes
    kRejected,  // the server said no, and nothing was written: 400, 403, 404, 409, 422
    kNotSent,   // nothing reached the server (connection refused)
    kUnknown,   // sent, and the answer was lost or a 5xx: read the object to find out
  };
  Kind kind = Kind::kUnknown;
  int http_code = 0;    // 0: no answer
  std::string message;  // the server's, cut at 2 KiB
};

}  // namespace tranche
