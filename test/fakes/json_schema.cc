#include "test/fakes/json_schema.h"

#include <algorithm>
#include <regex>
#include <set>

namespace tranche::test {
namespace {

using Json = nlohmann::json;

bool IsOfType(const std::string& type, const Json& value) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return false;
}

bool IsTime(const std::string& text) {
  static const std::regex form(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  return std::regex_match(text, form);
}

}  // namespace

std::vector<std::string> SchemaCheck::Faults(const Json& schema, const Json& value) {
  faults_.clear();
  Check(schema, value, "");
  return std::move(faults_);
}

const Json& SchemaCheck::Resolved(const Json& schema) {
  const Json* at = &schema;
  while (at->contains("$ref")) {
    at = &document_.at(Json::json_pointer(at->at("$ref").get<std::string>().substr(1)));
  }
  return *at;
}

void SchemaCheck::CheckType(const Json& type, const Json& value, const std::string& path) {
  const Json types = type.is_array() ? type : Json::array({type});
  const bool fits = std::any_of(types.begin(), types.end(), [&value](const Json& one) {
    return IsOfType(one.get<std::string>(), value);
  });
  if (!fits) faults_.push_back(path + ": expected " + types.dump() + ", found " + value.dump());
}

// `parts`: of one allOf, or the schema alone.
void SchemaCheck::CheckObject(const std::vector<const Json*>& parts, const Json& value,
                              const std::string& path) {
  std::set<std::string> described;
  bool open = true;
  for (const Json* part : parts) {
    for (const Json& name : part->value("required", Json::array())) {
      if (value.contains(name.get<std::string>())) continue;
      faults_.push_back(path + ": expected the member " + name.dump() + ", found none");
    }
    if (!part->contains("properties")) continue;
    open = false;
    for (const auto& [name, schema] : part->at("properties").items()) {
      described.insert(name);
      if (value.contains(name)) Check(schema, value.at(name), path + "/" + name);
    }
  }
  for (const auto& [name, member] : value.items()) {
    if (described.contains(name)) continue;
    if (parts.front()->contains("additionalProperties")) {
      Check(parts.front()->at("additionalProperties"), member, path + "/" + name);
    } else if (!open) {
      faults_.push_back(path + ": expected a description of the member \"" + name +
                        "\", found none");
    }
  }
}

void SchemaCheck::Check(const Json& given, const Json& value, const std::string& path) {
  static const std::set<std::string> known = {
      "$ref",    "type",  "required",   "properties", "additionalProperties",
      "items",   "enum",  "pattern",    "format",     "minimum",
      "maximum", "allOf", "description"};
  const Json& schema = Resolved(given);
  for (const auto& [word, unused] : schema.items()) {
    if (!known.contains(word)) faults_.push_back(path + ": no check of " + word + " is known");
  }
  if (schema.contains("allOf")) {
    std::vector<const Json*> parts;
    for (const Json& part : schema.at("allOf")) parts.push_back(&Resolved(part));
    return CheckObject(parts, value, path);
  }
  if (schema.contains("type")) CheckType(schema.at("type"), value, path);
  if (schema.contains("enum")) {
    const Json& words = schema.at("enum");
    if (std::find(words.begin(), words.end(), value) == words.end()) {
      faults_.push_back(path + ": expected one of " + words.dump() + ", found " + value.dump());
    }
  }
  if (value.is_string()) {
    const std::string text = value;
    if (schema.value("format", "") == "date-time" && !IsTime(text)) {
      faults_.push_back(path + ": expected a time in UTC, found " + value.dump());
    }
    if (schema.contains("pattern") &&
        !std::regex_search(text, std::regex(schema.at("pattern").get<std::string>()))) {
      faults_.push_back(path + ": expected " + schema.at("pattern").dump() + ", found " +
                        value.dump());
    }
  }
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (number < schema.value("minimum", number) || number > schema.value("maximum", number)) {
      faults_.push_back(path + ": expected a number within bounds, found " + value.dump());
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      Check(schema.at("items"), value[i], path + "/" + std::to_string(i));
    }
  }
  if (value.is_object()) CheckObject({&schema}, value, path);
}

}  // namespace tranche::test
