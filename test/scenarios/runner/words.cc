#include "test/scenarios/runner/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>

namespace tranche::scenario {
namespace {

struct SpanUnit {
  std::string_view name;
  int64_t millis;
};
constexpr std::array<SpanUnit, 5> kSpanUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

// Nine digits are more than any scenario needs, and no sum of a few of them leaves 64 bits.
constexpr std::size_t kMostDigits = 9;

std::optional<int64_t> ParseDigits(std::string_view text) {
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

bool IsDigit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

}  // namespace

std::string Join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find(at, from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::optional<int64_t> ParseThousandths(const std::string& text) {
  const std::size_t point = text.find('.');
  const std::optional<int64_t> whole = ParseDigits(text.substr(0, point));
  if (!whole) return std::nullopt;
  if (point == std::string::npos) return *whole * 1000;
  std::string decimals = text.substr(point + 1);
  if (decimals.empty() || decimals.size() > 3) return std::nullopt;
  decimals.resize(3, '0');
  const std::optional<int64_t> part = ParseDigits(decimals);
  if (!part) return std::nullopt;
  return *whole * 1000 + *part;
}

std::string FormatThousandths(int64_t thousandths) {
  const std::string sign = thousandths < 0 ? "-" : "";
  const int64_t amount = std::abs(thousandths);
  std::string text = sign + std::to_string(amount / 1000);
  if (amount % 1000 == 0) return text;
  std::string decimals = std::to_string(1000 + amount % 1000).substr(1);
  while (decimals.back() == '0') decimals.pop_back();
  return text + "." + decimals;
}

std::optional<Millis> ParseSpan(const std::string& text) {
  Millis span{0};
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t digits = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    const std::optional<int64_t> count = ParseDigits(text.substr(digits, at - digits));
    const std::size_t letters = at;
    while (at < text.size() && !IsDigit(text[at])) ++at;
    const std::string name = text.substr(letters, at - letters);
    const auto* const unit = std::ranges::find(kSpanUnits, name, &SpanUnit::name);
    if (!count || unit == kSpanUnits.end()) return std::nullopt;
    span += Millis(*count * unit->millis);
  }
  return text.empty() ? std::nullopt : std::optional(span);
}

std::string FormatSpan(Millis span) {
  std::string text = span.count() < 0 ? "-" : "";
  int64_t left = std::abs(span.count());
  for (const SpanUnit& unit : kSpanUnits) {
    if (left < unit.millis) continue;
    text += std::to_string(left / unit.millis) + std::string(unit.name);
    left %= unit.millis;
  }
  return text.empty() ? "0s" : text;
}

Options::Options(const Statement& statement) {
  for (const auto& [key, value] : statement.options) {
    if (!values_.emplace(key, value).second && !problem_) {
      problem_ = Problem{"each option once", "two of " + key};
    }
  }
}

const std::string* Options::Find(const std::string& key) {
  if (std::ranges::find(asked_, key) == asked_.end()) asked_.push_back(key);
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void Options::Fail(const std::string& key, const std::string& expected, const std::string& found) {
  if (!problem_) problem_ = Problem{key + "=" + expected, key + "=" + found};
}

std::string Options::Text(const std::string& key, const std::string& otherwise) {
  const std::string* const text = Find(key);
  return text == nullptr ? otherwise : *text;
}

std::vector<std::string> Options::List(const std::string& key) {
  const std::string* const text = Find(key);
  return text == nullptr ? std::vector<std::string>() : Split(*text, ',');
}

int64_t Options::Integer(const std::string& key, int64_t otherwise) {
  const std::string* const text = Find(key);
  if (text == nullptr) return otherwise;
  const std::optional<int64_t> value = ParseDigits(*text);
  if (!value) Fail(key, "a whole number", *text);
  return value.value_or(otherwise);
}

int64_t Options::Thousandths(const std::string& key, int64_t otherwise) {
  const std::string* const text = Find(key);
  if (text == nullptr) return otherwise;
  const std::optional<int64_t> value = ParseThousandths(*text);
  if (!value) Fail(key, "a number with at most three decimals", *text);
  return value.value_or(otherwise);
}

std::optional<Millis> Options::Span(const std::string& key) {
  const std::string* const text = Find(key);
  if (text == nullptr) return std::nullopt;
  const std::optional<Millis> span = ParseSpan(*text);
  if (!span) Fail(key, "a time as 90s, 30m or 1h30m", *text);
  return span;
}

bool Options::Yes(const std::string& key, bool otherwise) {
  return Choice<bool>(key, {{"yes", true}, {"no", false}}, otherwise);
}

std::vector<std::pair<std::string, std::string>> Options::Pairs(const std::string& key) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& part : List(key)) {
    const std::vector<std::string> two = Split(part, ':');
    if (two.size() != 2 || !ParseThousandths(two[1])) {
      Fail(key, "NAME:NUMBER,...", Text(key));
      return {};
    }
    pairs.emplace_back(two[0], two[1]);
  }
  return pairs;
}

Result Options::Done() const {
  if (problem_) return problem_;
  for (const auto& [key, value] : values_) {
    if (std::ranges::find(asked_, key) != asked_.end()) continue;
    return Problem{asked_.empty() ? "no option here" : "one of the options " + Join(asked_, ", "),
                   key + "=" + value};
  }
  return std::nullopt;
}

}  // namespace tranche::scenario
