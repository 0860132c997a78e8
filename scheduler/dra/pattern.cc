#include "scheduler/dra/pattern.h"

#include <algorithm>
#include <utility>

namespace tranche::dra {
namespace {

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 128; });
}

std::size_t Index(char c) { return static_cast<unsigned char>(c); }

char TakeFront(std::string_view& text) {
  const char front = text.front();
  text.remove_prefix(1);
  return front;
}

constexpr uint64_t Bit(std::size_t state) { return uint64_t{1} << state; }

}  // namespace

// What follows a backslash.
std::optional<Pattern::CharSet> Pattern::TakeEscape(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const char c = TakeFront(text);
  CharSet set;
  const auto add = [&set](char low, char high) {
    for (char each = low; each <= high; ++each) set.set(Index(each));
  };
  if (c == 'd' || c == 'w') {
    add('0', '9');
    if (c == 'd') return set;
    add('a', 'z');
    add('A', 'Z');
    set.set(Index('_'));
    return set;
  }
  if (c == 's') {
    for (const char blank : {'\t', '\n', '\f', '\r', ' '}) set.set(Index(blank));
    return set;
  }
  const bool is_word =
      (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  if (is_word) return std::nullopt;  // another class, an anchor or a code
  set.set(Index(c));
  return set;
}

// What follows an opening bracket.
std::optional<Pattern::CharSet> Pattern::TakeClass(std::string_view& text) {
  CharSet set;
  const bool negated = text.starts_with('^');
  if (negated) text.remove_prefix(1);
  for (bool first = true; !text.empty(); first = false) {
    const char c = TakeFront(text);
    if (c == ']' && !first) {
      return negated ? ~set : set;
    }
    if (c == '[') return std::nullopt;  // perhaps [:alpha:]
    if (c == '\\') {
      const std::optional<CharSet> escaped = TakeEscape(text);
      // A range may start behind it, which is left out.
      if (!escaped || text.starts_with('-')) return std::nullopt;
      set |= *escaped;
      continue;
    }
    const bool is_range = text.size() >= 2 && text[0] == '-' && text[1] != ']';
    if (!is_range) {
      set.set(Index(c));
      continue;
    }
    text.remove_prefix(1);
    const char high = TakeFront(text);
    if (high == '\\' || high == '[' || high < c) return std::nullopt;
    for (std::size_t each = Index(c); each <= Index(high); ++each) set.set(each);
  }
  return std::nullopt;
}

std::optional<Pattern::CharSet> Pattern::TakeChars(std::string_view& text) {
  CharSet set;
  const char c = TakeFront(text);
  switch (c) {
    case '.':
      set.set();
      set.reset(Index('\n'));
      return set;
    case '[':
      return TakeClass(text);
    case '\\':
      return TakeEscape(text);
    case '(':
    case ')':
    case '{':
    case '}':
    case ']':
    case '*':
    case '+':
    case '?':
    case '^':
    case '$':
      return std::nullopt;
    default:
      set.set(Index(c));
      return set;
  }
}

// One sign at most: "a*?" and the like are left out. x+ is x x*.
bool Pattern::TakeRepetition(std::string_view& text, std::vector<Item>& items) {
  const auto is_sign = [](char c) { return c == '*' || c == '+' || c == '?' || c == '{'; };
  if (text.empty() || !is_sign(text.front())) return true;
  const char sign = TakeFront(text);
  if (sign == '{' || (!text.empty() && is_sign(text.front()))) return false;
  if (sign == '+') items.push_back(items.back());
  items.back().optional = true;
  items.back().repeats = sign != '?';
  return true;
}

std::optional<Pattern::Alternative> Pattern::TakeAlternative(std::string_view& text) {
  Alternative alternative;
  if (text.starts_with('^')) {
    alternative.from_start = true;
    text.remove_prefix(1);
  }
  while (!text.empty() && text.front() != '|') {
    if (text.front() == '$' && (text.size() == 1 || text[1] == '|')) {
      alternative.to_end = true;
      text.remove_prefix(1);
      break;
    }
    const std::optional<CharSet> chars = TakeChars(text);
    if (!chars) return std::nullopt;
    alternative.items.push_back({*chars, false, false});
    if (!TakeRepetition(text, alternative.items)) return std::nullopt;
    if (alternative.items.size() > kMostItems) return std::nullopt;
  }
  return alternative;
}

std::optional<Pattern> Pattern::Compile(std::string_view text) {
  if (!IsAscii(text)) return std::nullopt;
  Pattern pattern;
  for (bool more = true; more;) {
    std::optional<Alternative> alternative = TakeAlternative(text);
    if (!alternative) return std::nullopt;
    pattern.alternatives_.push_back(*std::move(alternative));
    more = !text.empty();
    if (more) text.remove_prefix(1);
  }
  return pattern;
}

// State i: everything before item i has been matched. Optional items may be passed over.
uint64_t Pattern::Skip(const Alternative& alternative, uint64_t states) {
  for (std::size_t i = 0; i < alternative.items.size(); ++i) {
    if ((states & Bit(i)) != 0 && alternative.items[i].optional) states |= Bit(i + 1);
  }
  return states;
}

bool Pattern::Finds(const Alternative& alternative, std::string_view text) {
  const std::size_t end = alternative.items.size();
  uint64_t states = Skip(alternative, Bit(0));
  for (const char c : text) {
    if ((states & Bit(end)) != 0 && !alternative.to_end) return true;
    uint64_t next = alternative.from_start ? 0 : Bit(0);
    for (std::size_t i = 0; i < end; ++i) {
      const Item& item = alternative.items[i];
      if ((states & Bit(i)) == 0 || !item.chars.test(Index(c))) continue;
      next |= item.repeats ? Bit(i) : Bit(i + 1);
    }
    states = Skip(alternative, next);
  }
  return (states & Bit(end)) != 0;
}

std::optional<bool> Pattern::Matches(std::string_view text) const {
  if (!IsAscii(text)) return std::nullopt;
  return std::ranges::any_of(
      alternatives_, [text](const Alternative& alternative) { return Finds(alternative, text); });
}

}  // namespace tranche::dra
