// A JSON merge patch (RFC 7386) that is written out together with the document it changes.
//
// Copies the unchanged parts straight from the parsed document: no tree of the result is built, so
// thousands of objects can be stored with small changes at about the cost of copying their text.
// Member order stays; new members come last; of duplicate keys on a changed path the last one wins.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/wire/json/json.h"

namespace tranche::embedded {

class JsonPatch {
 public:
  using Path = std::initializer_list<std::string_view>;

  // The member at `path` becomes `json`, a JSON value as text. Objects on the way are made where
  // the document has none. Requires: `path` is not empty, nor below a member that was set.
  void Set(Path path, std::string json);
  void SetText(Path path, std::string_view text);
  // The member at `path` is left out. Makes nothing where the document has no such member.
  void Remove(Path path);

  // Appends `document` with all changes to `out`, minified.
  void Write(wire::Element document, std::string& out) const;

 private:
  struct Member;
  enum class Kind { kNested, kValue, kRemoved };

  JsonPatch& At(Path path);
  bool SetsAnything() const;
  std::size_t IndexOf(std::string_view key) const;
  void WriteValue(std::optional<wire::Element> base, std::string& out) const;
  void WriteMember(std::size_t index, std::optional<wire::Element> base, bool& first,
                   std::string& out) const;

  Kind kind_ = Kind::kNested;
  std::string value_;
  std::vector<Member> members_;
};

struct JsonPatch::Member {
  std::string key;
  JsonPatch patch;
};

}  // namespace tranche::embedded
