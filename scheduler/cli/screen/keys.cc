#include "scheduler/cli/screen/keys.h"

#include <optional>
#include <utility>

namespace tranche {
namespace {

using Kind = Key::Kind;

constexpr char kEscapeByte = '\x1b';

// Behind the escape: "[A" and "OA" are one key.
std::optional<Kind> KindOf(std::string_view parameters, char last) {
  switch (last) {
    case 'A':
      return Kind::kUp;
    case 'B':
      return Kind::kDown;
    case 'H':
      return Kind::kHome;
    case 'F':
      return Kind::kEnd;
    case '~':
      break;
    default:
      return std::nullopt;
  }
  constexpr std::pair<std::string_view, Kind> kNumbered[] = {
      {"5", Kind::kPageUp}, {"6", Kind::kPageDown}, {"1", Kind::kHome},
      {"7", Kind::kHome},   {"4", Kind::kEnd},      {"8", Kind::kEnd}};
  for (const auto& [number, kind] : kNumbered) {
    if (parameters == number) return kind;
  }
  return std::nullopt;
}

std::optional<Key> PlainKey(char byte) {
  switch (byte) {
    case '\x03':
      return Key{Kind::kInterrupt};
    case '\r':
    case '\n':
      return Key{Kind::kEnter};
    case '\b':
    case '\x7f':
      return Key{Kind::kBackspace};
    default:
      break;
  }
  // Names in a cluster are of ASCII.
  if (byte < ' ' || byte > '~') return std::nullopt;
  return Key{Kind::kText, byte};
}

}  // namespace

std::vector<Key> ReadKeys(std::string_view bytes, std::string& rest) {
  std::vector<Key> keys;
  rest.clear();
  while (!bytes.empty()) {
    if (bytes[0] != kEscapeByte) {
      if (const auto key = PlainKey(bytes[0])) keys.push_back(*key);
      bytes.remove_prefix(1);
      continue;
    }
    if (bytes.size() == 1) {
      rest = bytes;
      return keys;
    }
    const bool sequence = bytes[1] == '[' || bytes[1] == 'O';
    if (!sequence) {
      keys.push_back({Kind::kEscape});
      bytes.remove_prefix(1);
      continue;
    }
    // Parameters, then one byte that ends it (ECMA-48, 5.4).
    std::size_t end = 2;
    while (end < bytes.size() && bytes[end] < '@') ++end;
    if (end == bytes.size()) {
      rest = bytes;
      return keys;
    }
    if (const auto kind = KindOf(bytes.substr(2, end - 2), bytes[end])) keys.push_back({*kind});
    bytes.remove_prefix(end + 1);
  }
  return keys;
}

}  // namespace tranche
