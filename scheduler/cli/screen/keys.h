// Keys as terminals send them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tranche {

struct Key {
  enum class Kind : uint8_t {
    kText,  // one character
    kUp,
    kDown,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kBackspace,
    kEscape,
    kInterrupt,  // Ctrl-C
  };
  Kind kind = Kind::kText;
  char text = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

// What is in the bytes; `rest`: the beginning of a sequence that goes on, or
// nothing. Sequences that are not known are left out.
std::vector<Key> ReadKeys(std::string_view bytes, std::string& rest);

}  // namespace tranche
