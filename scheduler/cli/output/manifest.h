// Objects in YAML or JSON that somebody gives, as the body of a question.
//
// Pure but for reading the file.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tranche {

// A text, and what errors call it.
struct Manifest {
  std::string name;
  std::string text;
};
// Of a file; - is standard input. Errors: NotFound where it cannot be read.
absl::StatusOr<Manifest> ReadManifest(const std::string& path);

// {"objects":[...],"delete":[...]}: objects and Lists of them as they are; `objects` and `delete`
// of a document go to those of the question. What is wrong with them is for others to say.
absl::StatusOr<std::string> EditsOf(const Manifest& manifest);
// {"pods":[...]}: pods, and what pods are made from. Errors: InvalidArgument for other kinds.
absl::StatusOr<std::string> PodsOf(const Manifest& manifest);

}  // namespace tranche
