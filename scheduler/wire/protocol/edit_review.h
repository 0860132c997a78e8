// AdmissionReview of an object of ours: an edit that somebody is about to make.
//
// Pure function over one document. Source: the Kubernetes API types of admission.k8s.io/v1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

inline constexpr const char* kAcceptEvictionsKey = "tranche.dev/accept-evictions";

struct EditAsk {
  std::string uid;  // of the request, repeated in the answer
  std::string kind;
  std::string name;
  std::string json;     // the object as it would be; empty: it goes
  bool changes = true;  // false: its spec, or what is there beside it, stays as it is
  // How many evictions whoever edits has agreed to, by kAcceptEvictionsKey of the object, or of the
  // one that goes.
  int64_t accepted = 0;
  std::string user = {};  // who edits
  bool dry_run = false;   // nothing will be written
  std::string spec = {};  // as it would be; empty: it goes, or has none
};

// nullopt: neither a creation, a change nor a deletion of one named object, or of a part of it (its
// status). Errors: InvalidArgument naming the member, what was expected and what was found.
absl::StatusOr<std::optional<EditAsk>> ReadEditReview(Element document);

}  // namespace tranche::wire
