#include "scheduler/cli/mcp/tool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scheduler/cli/output/suggestion.h"
#include "scheduler/wire/json/json.h"

namespace tranche::mcp {
namespace {

absl::Status CheckValue(const Parameter& parameter, const Json& value) {
  if (parameter.flag ? !value.is_boolean() : !value.is_string()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected {}, found {}", parameter.name,
                                                  parameter.flag ? "true or false" : "a text",
                                                  value.type_name()));
  }
  if (parameter.words.empty()) return absl::OkStatus();
  const auto text = value.get<std::string>();
  if (std::find(parameter.words.begin(), parameter.words.end(), text) != parameter.words.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("{}: expected one of {}, found {}", parameter.name,
                                                fmt::join(parameter.words, ", "),
                                                wire::Quoted(text)));
}

}  // namespace

Json SchemaOf(std::span<const Parameter> parameters) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Parameter& parameter : parameters) {
    Json& property = properties[parameter.name];
    property = {{"type", parameter.flag ? "boolean" : "string"}, {"description", parameter.what}};
    if (!parameter.words.empty()) property["enum"] = parameter.words;
    if (parameter.required) required.push_back(parameter.name);
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

absl::Status CheckArguments(std::span<const Parameter> parameters, const Json& arguments) {
  if (!arguments.is_object()) {
    return absl::InvalidArgumentError(
        fmt::format("arguments: expected an object, found {}", arguments.type_name()));
  }
  for (const auto& [name, value] : arguments.items()) {
    const auto named = [&name = name](const Parameter& parameter) {
      return parameter.name == name;
    };
    const auto found = std::find_if(parameters.begin(), parameters.end(), named);
    if (found == parameters.end()) {
      std::vector<std::string> names;
      for (const Parameter& parameter : parameters) names.push_back(parameter.name);
      return absl::InvalidArgumentError(
          fmt::format("arguments: expected {}, found {}{}",
                      names.empty() ? "none" : fmt::format("{} alone", fmt::join(names, ", ")),
                      wire::Quoted(name), DidYouMean(name, names)));
    }
    if (const absl::Status checked = CheckValue(*found, value); !checked.ok()) return checked;
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.required && !arguments.contains(parameter.name)) {
      return absl::InvalidArgumentError(
          fmt::format("arguments: expected {}, found none", parameter.name));
    }
  }
  return absl::OkStatus();
}

std::string TextOf(const Json& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? "" : found->get<std::string>();
}

bool FlagOf(const Json& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->get<bool>();
}

}  // namespace tranche::mcp
