// What all objects of tranche.dev/v1alpha1 have in common: type, name, uid, spec.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "policy/field.h"

namespace tranche {

struct ObjectHead {
  std::string name;  // a name given beforehand stands where the object states none
  std::string uid;
};

enum class SpecPresence { kRequired, kOptional };

// Reads `head`, then hands the spec to `read_spec` where there is one.
// apiVersion and kind may be absent, as in items of a List; wrong ones are a mistake. Fields beside
// these belong to the API server or are status, and are not looked at.
absl::Status ReadDeclared(std::string_view kind, std::string_view json, SpecPresence spec,
                          ObjectHead& head, const Field::Reader& read_spec);

}  // namespace tranche
