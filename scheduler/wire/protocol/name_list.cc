#include "scheduler/wire/protocol/name_list.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "scheduler/wire/json/plain_text.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kKey = R"(,"NodeNames":[)";

constexpr std::string_view kSpace = " \n\t\r";

// `}` and nothing else but space.
bool EndsObject(std::string_view rest) {
  return rest.starts_with('}') && rest.find_first_not_of(kSpace, 1) == std::string_view::npos;
}

// A comma behind it would have nothing to part.
bool EndsInBrace(std::string_view head) {
  const std::size_t last = head.find_last_not_of(kSpace);
  return last == std::string_view::npos || head[last] == '{';
}

constexpr std::size_t kBlock = 64;

// Strings and commas from `at` to the bracket that ends them; behind it. Null: there is more to it.
// Goes from quote to quote, each of which is known before the text in front of it has been looked
// at: to find one from the other would be a chain of waits.
const char* ReadPlainStrings(const char* at, const char* end,
                             std::vector<std::string_view>& strings) {
  if (*at == ']') return at + 1;
  const char* opening = at;      // where the next string must start
  const char* string = nullptr;  // the one being read
  for (; at < end; at += kBlock) {
    const TextBlock block = LookAt(at);
    for (uint64_t quotes = block.quotes; quotes != 0; quotes &= quotes - 1) {
      const int place = std::countr_zero(quotes);
      const char* const quote = at + place;
      if (string == nullptr) {
        if (quote != opening) return nullptr;
        string = quote + 1;
        continue;
      }
      strings.emplace_back(string, static_cast<std::size_t>(quote - string));
      string = nullptr;
      if (quote[1] == ']') {
        const uint64_t read = (uint64_t{1} << place) - 1;
        return (block.special & read) == 0 ? quote + 2 : nullptr;
      }
      if (quote[1] != ',') return nullptr;
      opening = quote + 2;
    }
    if (block.special != 0) return nullptr;
  }
  return nullptr;
}

}  // namespace

// Why the first such key will do: if what comes before it is an object without its brace, it is no
// part of a string, and belongs to the outermost object. Then no key comes behind it, as the list
// and the object end together, so it is the last of its name, which wins over those before.
std::optional<std::string_view> ReadTrailingNames(std::string_view body,
                                                  std::vector<std::string_view>& names) {
  names.clear();
  const std::size_t key = body.find(kKey);
  if (key == std::string_view::npos) return std::nullopt;
  const char* const end = body.data() + body.size();
  const char* const behind = ReadPlainStrings(body.data() + key + kKey.size(), end, names);
  if (behind == nullptr || behind > end) return std::nullopt;
  if (!EndsObject(body.substr(static_cast<std::size_t>(behind - body.data())))) return std::nullopt;
  const std::string_view head = body.substr(0, key);
  return EndsInBrace(head) ? std::nullopt : std::optional(head);
}

}  // namespace tranche::wire
