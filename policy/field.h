// One value of a JSON text and where it stands, so that every refusal can name the place.
//
// Reading does not stop at a mistake: what is wrong is gathered, and ReadJson refuses the text with
// all of it ("spec.weight: expected 0..1000000, found -1; spec.mode: ..."). Of equal keys the last
// counts, for that is what every other reader of the same text keeps; null counts as absent.
// Fields live no longer than the call of ReadJson they came from.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tranche {

class Field {
 public:
  using Reader = std::function<void(const Field&)>;
  struct Member {
    std::string_view name;
    Reader read;
    std::string_view required = {};  // what is expected where the member is absent; empty: nothing
  };

  // The value, nullopt when it is of another type.
  std::optional<std::string_view> Text() const;
  std::optional<int64_t> Integer() const;
  std::optional<bool> Bool() const;

  // Refuses: "PATH: expected RULE, found VALUE", long values cut.
  void Fail(std::string_view rule) const;

  // Members of an object whose keys are free, ascending.
  std::map<std::string, Field> Members() const;
  // Reads an object in the order of `known`; a member that is not known is refused. False when it
  // is no object.
  bool ReadMembers(std::initializer_list<Member> known) const;
  // Reads an object's `known` members and passes over all others.
  bool ReadSomeMembers(std::initializer_list<Member> known) const;
  // The elements of a list of least..most; empty when there are more or fewer.
  std::vector<Field> Items(size_t least, size_t most) const;

 private:
  friend absl::Status ReadJson(std::string_view what, std::string_view json, const Reader& read);
  struct Value;
  struct Errors;

  Field(std::string path, std::shared_ptr<const Value> value, Errors* errors);
  std::string PathOf(std::string_view member) const;
  std::optional<std::map<std::string, Field>> FindMembers() const;
  void Read(const std::map<std::string, Field>& members, std::initializer_list<Member> known) const;

  std::string path_;
  std::shared_ptr<const Value> value_;
  Errors* errors_;
};

// Parses `json` and lets `read` take what it wants of the root, which must be an object.
// Errors: InvalidArgument with everything that was refused, or "WHAT: expected JSON, found: ...".
absl::Status ReadJson(std::string_view what, std::string_view json, const Field::Reader& read);

// Whole JSON numbers; `target` is an integer type that holds least..most.
std::optional<int64_t> IntegerWithin(const Field& field, int64_t least, int64_t most);

template <typename T>
void ReadInteger(const Field& field, int64_t least, int64_t most, T& target) {
  if (const auto number = IntegerWithin(field, least, most)) target = static_cast<T>(*number);
}

void ReadBool(const Field& field, std::optional<bool>& target);

// 1..most characters: letters and digits, between them also those of `inner`.
enum class Letters { kLower, kAny };
bool IsWord(std::string_view text, size_t most, Letters letters, std::string_view inner);

// A name of an object of the cluster: a DNS subdomain.
bool IsName(std::string_view text);
void ReadName(const Field& field, std::string& target);

// Adds an item of a list that holds everything once.
template <typename T>
void AddOnce(const Field& item, const T& value, std::vector<T>& values) {
  if (std::find(values.begin(), values.end(), value) != values.end()) {
    item.Fail("every item once");
  }
  values.push_back(value);
}

// One of a few words.
template <typename T>
struct Choice {
  std::string_view text;
  T value;
};

void FailChoice(const Field& field, const std::vector<std::string_view>& texts);

template <typename T, size_t N>
bool ReadChoice(const Field& field, const std::array<Choice<T>, N>& choices, T& target) {
  const std::optional<std::string_view> text = field.Text();
  std::vector<std::string_view> texts;
  for (const Choice<T>& choice : choices) {
    if (text == choice.text) {
      target = choice.value;
      return true;
    }
    texts.push_back(choice.text);
  }
  FailChoice(field, texts);
  return false;
}

}  // namespace tranche
