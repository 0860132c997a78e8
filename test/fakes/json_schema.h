// Does a JSON value fit a schema of an OpenAPI 3.1 document? As much of JSON Schema as our document
// uses; a word of it that is not known here is a fault, so that nothing is promised unchecked.
//
// Stricter than the standard: a member that `properties` does not name is a fault, too, since then
// the description lacks it. Where neither `properties` nor `additionalProperties` is said, any are.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tranche::test {

class SchemaCheck {
 public:
  // `document`: whole, for its references.
  explicit SchemaCheck(const nlohmann::json& document) : document_(document) {}

  // What does not fit, "path: expected, found" each; empty: all of it does.
  std::vector<std::string> Faults(const nlohmann::json& schema, const nlohmann::json& value);

 private:
  const nlohmann::json& Resolved(const nlohmann::json& schema);
  void Check(const nlohmann::json& schema, const nlohmann::json& value, const std::string& path);
  void CheckType(const nlohmann::json& type, const nlohmann::json& value, const std::string& path);
  void CheckObject(const std::vector<const nlohmann::json*>& parts, const nlohmann::json& value,
                   const std::string& path);

  const nlohmann::json& document_;
  std::vector<std::string> faults_;
};

}  // namespace tranche::test
