#include "policy/field.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "simdjson.h"

namespace tranche {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kQuoted = 64;  // bytes of a value or key in an error
constexpr size_t kMaxName = 253;
constexpr size_t kMostErrors = 10;

// The first bytes of a text, no character cut in two.
std::string_view Beginning(std::string_view text) {
  size_t end = std::min(text.size(), kQuoted);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end);
}

}  // namespace

struct Field::Value {
  simdjson::dom::element element;
};

struct Field::Errors {
  std::vector<std::string> first;  // at most kMostErrors
  size_t further = 0;

  void Add(std::string error) {
    if (first.size() < kMostErrors) {
      first.push_back(std::move(error));
    } else {
      ++further;
    }
  }
};

Field::Field(std::string path, std::shared_ptr<const Value> value, Errors* errors)
    : path_(std::move(path)), value_(std::move(value)), errors_(errors) {}

std::optional<std::string_view> Field::Text() const {
  std::string_view text;
  if (value_->element.get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

std::optional<int64_t> Field::Integer() const {
  int64_t number = 0;
  if (value_->element.get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

std::optional<bool> Field::Bool() const {
  bool value = false;
  if (value_->element.get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

void Field::Fail(std::string_view rule) const {
  const std::string found = simdjson::minify(value_->element);
  errors_->Add(fmt::format("{}: expected {}, found {}{}", path_, rule, Beginning(found),
                           found.size() > kQuoted ? " (cut)" : ""));
}

std::string Field::PathOf(std::string_view member) const {
  // Any text can be a key; on a terminal it must not be more than text.
  std::string step(Beginning(member));
  std::replace_if(
      step.begin(), step.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return path_.empty() ? step : fmt::format("{}.{}", path_, step);
}

std::optional<std::map<std::string, Field>> Field::FindMembers() const {
  simdjson::dom::object object;
  if (value_->element.get(object) != simdjson::SUCCESS) {
    Fail("an object");
    return std::nullopt;
  }
  std::map<std::string, Field> members;
  for (const auto& member : object) {
    members.erase(std::string(member.key));
    if (member.value.is_null()) continue;
    auto value = std::make_shared<const Value>(Value{member.value});
    members.emplace(member.key, Field(PathOf(member.key), std::move(value), errors_));
  }
  return members;
}

std::map<std::string, Field> Field::Members() const {
  return FindMembers().value_or(std::map<std::string, Field>());
}

void Field::Read(const std::map<std::string, Field>& members,
                 std::initializer_list<Member> known) const {
  for (const Member& member : known) {
    const auto found = members.find(std::string(member.name));
    if (found != members.end()) {
      member.read(found->second);
    } else if (!member.required.empty()) {
      errors_->Add(
          fmt::format("{}: expected {}, found nothing", PathOf(member.name), member.required));
    }
  }
}

bool Field::ReadMembers(std::initializer_list<Member> known) const {
  const auto members = FindMembers();
  if (!members) return false;
  Read(*members, known);
  std::vector<std::string_view> names;
  for (const Member& member : known) names.push_back(member.name);
  for (const auto& [name, field] : *members) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    errors_->Add(fmt::format("{}: expected one of {}, found an unknown field", field.path_,
                             fmt::join(names, ", ")));
  }
  return true;
}

bool Field::ReadSomeMembers(std::initializer_list<Member> known) const {
  const auto members = FindMembers();
  if (members) Read(*members, known);
  return members.has_value();
}

std::vector<Field> Field::Items(size_t least, size_t most) const {
  std::vector<Field> items;
  simdjson::dom::array elements;
  if (value_->element.get(elements) != simdjson::SUCCESS) {
    Fail("a list");
  } else if (elements.size() < least || elements.size() > most) {
    Fail(fmt::format("{}..{} items", least, most));
  } else {
    for (const simdjson::dom::element element : elements) {
      items.push_back(Field(fmt::format("{}[{}]", path_, items.size()),
                            std::make_shared<const Value>(Value{element}), errors_));
    }
  }
  return items;
}

absl::Status ReadJson(std::string_view what, std::string_view json, const Field::Reader& read) {
  // The parser keeps the depth only while the room it has suffices.
  constexpr size_t kLeastCapacity = 1024;
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json);
  simdjson::error_code error = parser.allocate(std::max(json.size(), kLeastCapacity), kMaxDepth);
  simdjson::dom::element root;
  if (error == simdjson::SUCCESS) error = parser.parse(padded).get(root);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected JSON, found: {}", what, simdjson::error_message(error)));
  }
  Field::Errors errors;
  const auto value = std::make_shared<const Field::Value>(Field::Value{root});
  if (root.is_object()) {
    read(Field("", value, &errors));
  } else {
    Field(std::string(what), value, &errors).Fail("an object");
  }
  if (errors.first.empty()) return absl::OkStatus();
  std::string message = fmt::format("{}", fmt::join(errors.first, "; "));
  if (errors.further > 0) message += fmt::format("; and {} more", errors.further);
  return absl::InvalidArgumentError(message);
}

std::optional<int64_t> IntegerWithin(const Field& field, int64_t least, int64_t most) {
  const std::optional<int64_t> number = field.Integer();
  if (number && *number >= least && *number <= most) return number;
  field.Fail(fmt::format("{}..{}", least, most));
  return std::nullopt;
}

void ReadBool(const Field& field, std::optional<bool>& target) {
  if (const std::optional<bool> value = field.Bool()) {
    target = value;
  } else {
    field.Fail("true or false");
  }
}

bool IsWord(std::string_view text, size_t most, Letters letters, std::string_view inner) {
  const auto is_alphanumeric = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (letters == Letters::kAny && c >= 'A' && c <= 'Z');
  };
  return !text.empty() && text.size() <= most && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alphanumeric(c) || inner.find(c) != std::string_view::npos;
         });
}

bool IsName(std::string_view text) { return IsWord(text, kMaxName, Letters::kLower, "-."); }

void ReadName(const Field& field, std::string& target) {
  const std::optional<std::string_view> text = field.Text();
  if (text && IsName(*text)) {
    target = *text;
  } else {
    field.Fail("a name of a-z, 0-9, - and .");
  }
}

void FailChoice(const Field& field, const std::vector<std::string_view>& texts) {
  field.Fail(fmt::format("one of {}", fmt::join(texts, ", ")));
}

}  // namespace tranche
