// How API servers merge the conditions of a strategic merge patch: by their type.
#pragma once

#include <algorithm>

namespace tranche::fakes {

// Of any kind of nlohmann::basic_json.
template <typename Json>
void MergeConditions(Json& present, const Json& conditions) {
  if (!present.is_array()) present = Json::array();
  for (const Json& condition : conditions) {
    const auto same = std::find_if(present.begin(), present.end(), [&](const Json& one) {
      return one.at("type") == condition.at("type");
    });
    if (same != present.end()) {
      same->update(condition);
    } else {
      present.push_back(condition);
    }
  }
}

}  // namespace tranche::fakes
