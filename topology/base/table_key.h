// Texts that serve as keys of tables within one process: every number has eight bytes and every
// text its length before it, so that different lists of values never give equal texts.
//
// The bytes are those of this machine: no such key is stored or sent. Cost: no allocation once
// `key` has room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tranche {

inline void AppendToKey(std::string& key, int64_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void AppendToKey(std::string& key, std::string_view text) {
  AppendToKey(key, static_cast<int64_t>(text.size()));
  key += text;
}

}  // namespace tranche
