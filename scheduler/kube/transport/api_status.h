// What an answer of the API server means: the Status object, or the text of a proxy.
//
// Thread rule: pure functions.
// Source: kube-client-protocol section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/wire/json/lenient_parser.h"

namespace tranche::kube {

inline constexpr std::size_t kMaxMessageBytes = 2048;

// One answer, complete or not.
struct ApiAnswer {
  enum class Transport : uint8_t {
    kAnswered,  // status and body are complete
    kNotSent,   // no server can have acted on the request
    kLost,      // it may have
  };
  Transport transport = Transport::kNotSent;
  int status = 0;
  std::string body;
  std::optional<int64_t> retry_after_seconds;
  std::string error;  // why there is no answer

  bool succeeded() const {
    return transport == Transport::kAnswered && status >= 200 && status <= 206;
  }
};

// The fields of a Status object that are acted on.
struct ApiStatus {
  bool stated = false;  // by a Status object; else taken from the HTTP code and a text
  bool success = false;
  int code = 0;
  std::string reason;
  std::string message;
  std::optional<int64_t> retry_after_seconds;
  bool names_disruption_budget = false;  // among details.causes
};

// `object` as a Status; nullopt when its kind is another.
std::optional<ApiStatus> DecodeStatus(wire::Element object);

// The Status in a body; for one that holds none, one made of the HTTP code. Its message may be the
// start of a proxy's text, but never of an object: what cannot be read under 2xx, and JSON of
// another kind, is not repeated. A body of another kind under 2xx is a success.
ApiStatus ReadStatus(wire::LenientParser& parser, const ApiAnswer& answer);

// `text` cut at kMaxMessageBytes, control characters as spaces: fit for a log line.
std::string CutMessage(std::string_view text);

}  // namespace tranche::kube
