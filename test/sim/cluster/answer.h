// What the API server says to a request: an object, or a Status.
//
// Source: kube-client-protocol section 3.
//
// Plain values.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "test/sim/cluster/store.h"

namespace tranche::sim {

inline Json StatusBody(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", Json::object()},
          {"status", code < 300 ? "Success" : "Failure"},
          {"reason", reason},
          {"message", message},
          {"code", code}};
}

struct Answer {
  int code = 0;                // 0: none came
  StoredPtr object = nullptr;  // null: `status` is the body
  Json status = nullptr;
  std::optional<int> retry_after = std::nullopt;  // seconds

  bool done() const { return code >= 200 && code < 300; }
};

inline Answer Refuse(int code, const std::string& reason, const std::string& message) {
  return {code, nullptr, StatusBody(code, reason, message)};
}
inline Answer NotFound(std::string_view what, const std::string& key) {
  return Refuse(404, "NotFound", std::string(what) + " \"" + key + "\" not found");
}
inline Answer Conflict(const std::string& message) { return Refuse(409, "Conflict", message); }
inline Answer Invalid(const std::string& message) { return Refuse(422, "Invalid", message); }
inline Answer Success(int code) { return {code, nullptr, StatusBody(code, "", "")}; }

}  // namespace tranche::sim
