// The simple part of regular expressions, for CEL's matches(): literals, '.', classes, '*', '+',
// '?', the anchors '^' and '$' at the ends, and '|' between whole alternatives.
//
// Groups, counted repetition, flags and everything beyond ASCII are left out: Compile answers
// nullopt and the caller says "unknown". Matching never backtracks: cost O(text x items).
// Source: RE2 syntax, which CEL uses.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tranche::dra {

class Pattern {
 public:
  static std::optional<Pattern> Compile(std::string_view text);
  // Somewhere in the text, unless anchored. nullopt: text beyond ASCII.
  std::optional<bool> Matches(std::string_view text) const;

 private:
  static constexpr std::size_t kAscii = 128;
  static constexpr std::size_t kMostItems = 63;  // states are the bits of one word
  using CharSet = std::bitset<kAscii>;
  struct Item {
    CharSet chars;
    bool optional = false;
    bool repeats = false;
  };
  struct Alternative {
    std::vector<Item> items;
    bool from_start = false;
    bool to_end = false;
  };

  static std::optional<CharSet> TakeEscape(std::string_view& text);
  static std::optional<CharSet> TakeClass(std::string_view& text);
  static std::optional<CharSet> TakeChars(std::string_view& text);
  static bool TakeRepetition(std::string_view& text, std::vector<Item>& items);
  static std::optional<Alternative> TakeAlternative(std::string_view& text);
  static uint64_t Skip(const Alternative& alternative, uint64_t states);
  static bool Finds(const Alternative& alternative, std::string_view text);

  std::vector<Alternative> alternatives_;
};

}  // namespace tranche::dra
