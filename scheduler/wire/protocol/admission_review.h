// AdmissionReview (admission.k8s.io/v1): what an API server asks before it writes an object, and
// our answer.
//
// Pure functions over one document. Reviews come from API servers and are to be read as those write
// them (json/lenient_parser.h): one that is refused for its shape is a pod that nobody judges.
// Source: the Kubernetes API types of admission.k8s.io/v1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche::wire {

enum class AdmissionVerb : uint8_t { kCreate, kUpdate, kOther };

// Views and elements point into the parser's document.
struct AdmissionAsk {
  std::string_view uid;  // of the request, repeated in the answer
  AdmissionVerb verb = AdmissionVerb::kOther;
  bool about_pod = false;  // v1 Pod, or its status
  bool dry_run = false;    // nothing will be written: no side effects
  std::string_view ns;
  std::string_view user;
  std::vector<std::string_view> groups;
  std::optional<Element> object;  // about_pod with kCreate and kUpdate: always there
  std::optional<Element> before;  // about_pod with kUpdate: always there
};

// Errors: InvalidArgument naming the member, what was expected and what was found.
absl::StatusOr<AdmissionAsk> ReadAdmissionReview(Element document);

struct AdmissionAnswer {
  int code = 0;             // 0: allowed; else the HTTP status the user gets: 403, 422
  std::string message;      // why not
  std::string_view reason;  // why not, in a word that lives for ever; not part of the answer
  std::vector<std::string> warnings;
  std::string patch;  // JSON Patch (RFC 6902); empty: the object stays as it is

  bool allowed() const { return code == 0; }
};

std::string EncodeAdmissionReview(std::string_view uid, const AdmissionAnswer& answer);

// A JSON Patch that is written from left to right.
class JsonPatch {
 public:
  // `path` is a JSON pointer (see AppendPointer).
  void Add(std::string_view path, const Json& value);
  void Remove(std::string_view path);

  bool empty() const { return text_.empty(); }
  // Empty where nothing was added.
  std::string text() const { return text_.empty() ? "" : "[" + text_ + "]"; }

 private:
  void AddOperation(const Json& operation);
  std::string text_;
};

// "/" and the member's name, with '~' and '/' escaped (RFC 6901).
void AppendPointer(std::string& path, std::string_view member);

}  // namespace tranche::wire
