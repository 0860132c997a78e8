// How API servers merge the conditions of a strategic merge patch: by their type.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tranche::fakes {

inline void MergeConditions(nlohmann::json& present, const nlohmann::json& conditions) {
  if (!present.is_array()) present = nlohmann::json::array();
  for (const nlohmann::json& condition : conditions) {
    const auto same = std::find_if(present.begin(), present.end(), [&](const nlohmann::json& one) {
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
