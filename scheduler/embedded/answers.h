// What an API server says to a write.
//
// Pure functions.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_store.h"
#include "scheduler/ports/write_result.h"

namespace tranche::embedded {

inline ObjectKey KeyOf(const PodName& pod) { return {std::string(kPodKind), pod.ns, pod.name}; }

inline WriteResult Done(int code) { return {WriteResult::Kind::kDone, code, ""}; }

inline WriteResult Rejected(int code, std::string message) {
  return {WriteResult::Kind::kRejected, code, std::move(message)};
}

inline WriteResult NotFound(const ObjectKey& key) {
  return Rejected(404, fmt::format("{} not found", key.str()));
}

}  // namespace tranche::embedded
