// YAML as Kubernetes reads it, turned into JSON text.
//
// Typing follows the YAML 1.2 core schema: quoted and block scalars are text; plain null, true,
// false, integers and floats are typed; everything else plain is text, but for yes, no, on, off, y
// and n, which kubectl takes for true and false (go-yaml v2, resolve.go). Text is written while it
// is read, no tree is built. What JSON cannot say (.inf, keys that are not scalars) and merge keys
// (<<) are refused. Aliases are copied out, 4 MiB of copies at most; 63 levels, 256 MiB of text and
// of JSON. Time and memory are linear in the text.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche::embedded {

// A JSON array with one element per document, null for an empty one.
// Errors: InvalidArgument naming document, line and column.
absl::StatusOr<std::string> YamlToJson(std::string_view yaml);

}  // namespace tranche::embedded
