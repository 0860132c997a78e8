// What a language model may call, as the Model Context Protocol describes tools to it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/cli/output/json.h"

namespace tranche::mcp {

// An argument of a tool.
struct Parameter {
  std::string name;
  bool flag = false;               // true or false; else a text
  std::vector<std::string> words;  // the texts there are; none: any
  bool required = false;
  std::string what;
};

struct ToolAnswer {
  bool failed = false;  // `text` says what was expected and found
  std::string text;
};

struct Tool {
  std::string name;
  std::string what;
  std::vector<Parameter> parameters;
  // Called with arguments that CheckArguments took.
  std::function<ToolAnswer(const Json& arguments)> call;
};

// The JSON Schema of what a tool takes: an object with these members and no others.
Json SchemaOf(std::span<const Parameter> parameters);

// Whether `arguments` are of the schema. Errors: InvalidArgument naming the argument, what was
// expected and what was found, for whoever called to mend.
absl::Status CheckArguments(std::span<const Parameter> parameters, const Json& arguments);

// Of checked arguments; "" and false where there is none.
std::string TextOf(const Json& arguments, const char* name);
bool FlagOf(const Json& arguments, const char* name);

}  // namespace tranche::mcp
