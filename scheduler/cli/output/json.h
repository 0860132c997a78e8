// Reading a server's JSON for the command line. Members that are missing or of another type throw
// Json::exception, which Show (cli_client.cc) turns into an error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace tranche {

using Json = nlohmann::ordered_json;

// The member as text: null, absent and empty are "-".
inline std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "-";
  if (!found->is_string()) return found->dump();
  const auto& text = found->get_ref<const std::string&>();
  return text.empty() ? "-" : text;
}

inline int64_t Whole(const Json& object, const char* key) { return object.at(key).get<int64_t>(); }

}  // namespace tranche
