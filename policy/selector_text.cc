#include "policy/selector_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "policy/field.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using Operator = SelectorTerm::Operator;

constexpr std::string_view kSpaces = " \t\r\n";
// From the longest on, so that "==" is not read as "=".
constexpr std::string_view kSymbols[] = {"==", "!=", "=", "!", ",", "(", ")", "<", ">"};
constexpr std::size_t kMostWord = 63;     // of a value, and of a key behind its prefix
constexpr std::size_t kMostPrefix = 253;  // a DNS name

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A symbol, a word, or the end of the text.
struct Token {
  enum class Kind : uint8_t { kSymbol, kWord, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text = {};
  std::size_t at = 0;

  bool Is(std::string_view symbol) const { return kind == Kind::kSymbol && text == symbol; }
  // A requirement is over here.
  bool Ends() const { return kind == Kind::kEnd || Is(","); }
};

class SelectorReader {
 public:
  explicit SelectorReader(std::string_view text) : text_(text) { Read(); }

  absl::StatusOr<LineSelector> All() {
    if (next_.kind == Token::Kind::kEnd) return selector_;
    for (;;) {
      TRANCHE_RETURN_IF_ERROR(One());
      if (next_.kind == Token::Kind::kEnd) return selector_;
      if (!next_.Is(",")) return Bad("a comma or the end", next_);
      Take();
    }
  }

 private:
  absl::Status Bad(std::string_view expected, const Token& found) const {
    return absl::InvalidArgumentError(fmt::format(
        "expected {} at byte {}, found {}", expected, found.at,
        found.kind == Token::Kind::kEnd ? "the end" : fmt::format("\"{:.64}\"", found.text)));
  }

  void Read() {
    at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size());
    next_ = {Token::Kind::kEnd, {}, at_};
    const std::string_view rest = text_.substr(at_);
    if (rest.empty()) return;
    next_ = {Token::Kind::kWord, rest.substr(0, rest.find_first_of("=!,()<> \t\r\n")), at_};
    for (const std::string_view symbol : kSymbols) {
      if (!rest.starts_with(symbol)) continue;
      next_ = {Token::Kind::kSymbol, symbol, at_};
      break;
    }
    at_ += next_.text.size();
  }

  Token Take() {
    const Token token = next_;
    Read();
    return token;
  }

  absl::Status One() {
    SelectorTerm term;
    const bool absent = next_.Is("!");
    if (absent) Take();
    if (next_.kind != Token::Kind::kWord) return Bad("the key of a label", next_);
    if (!IsLabelKey(next_.text)) return Bad("the key of a label, as example.com/team", next_);
    term.key = Take().text;
    term.op = absent ? Operator::kDoesNotExist : Operator::kExists;
    if (!absent && !next_.Ends()) return ReadValues(Take(), std::move(term));
    Add(std::move(term));
    return absl::OkStatus();
  }

  void Add(SelectorTerm term) { selector_.terms.match_expressions.push_back(std::move(term)); }

  absl::Status ReadValues(const Token& op, SelectorTerm term) {
    const bool word = op.kind == Token::Kind::kWord;
    if (word && (op.text == "in" || op.text == "notin")) {
      term.op = op.text == "in" ? Operator::kIn : Operator::kNotIn;
      return ReadSet(std::move(term));
    }
    const bool greater = op.Is(">");
    const bool compares = greater || op.Is("<");
    if (!compares && !op.Is("=") && !op.Is("==") && !op.Is("!=")) {
      return Bad("one of = == != in notin < >, a comma or the end", op);
    }
    const Token value = next_;
    if (value.kind == Token::Kind::kWord) {
      Take();
    } else if (!value.Ends()) {
      return Bad("the value of a label", value);
    }
    const std::string_view text = value.kind == Token::Kind::kWord ? value.text : "";
    if (compares) {
      const std::optional<int64_t> number = WholeNumber(text);
      if (!number) return Bad("a whole number", value);
      selector_.bounds.push_back({std::move(term.key), *number, greater});
      return absl::OkStatus();
    }
    if (!IsLabelValue(text)) return Bad("the value of a label", value);
    term.op = op.Is("!=") ? Operator::kNotIn : Operator::kIn;
    term.values.emplace_back(text);
    Add(std::move(term));
    return absl::OkStatus();
  }

  // An empty place between commas is the empty value.
  absl::Status ReadSet(SelectorTerm term) {
    if (!next_.Is("(")) return Bad("( behind in and notin", next_);
    Take();
    if (next_.Is(")")) return Bad("at least one value", next_);
    for (;;) {
      std::string_view value;
      if (next_.kind == Token::Kind::kWord) {
        if (!IsLabelValue(next_.text)) return Bad("the value of a label", next_);
        value = Take().text;
      }
      term.values.emplace_back(value);
      if (!next_.Is(",") && !next_.Is(")")) return Bad("a comma or )", next_);
      if (Take().Is(")")) break;
    }
    Add(std::move(term));
    return absl::OkStatus();
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  Token next_;
  LineSelector selector_;
};

}  // namespace

bool IsLabelValue(std::string_view text) {
  return text.empty() || IsWord(text, kMostWord, Letters::kAny, "-._");
}

bool IsLabelKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return !text.empty() && IsLabelValue(text);
  const std::string_view name = text.substr(slash + 1);
  return IsWord(text.substr(0, slash), kMostPrefix, Letters::kLower, "-.") && !name.empty() &&
         IsLabelValue(name);
}

bool LineSelector::Matches(const Labels& labels) const {
  return terms.Matches(labels) && std::ranges::all_of(bounds, [&labels](const Bound& bound) {
           const auto label = labels.find(bound.key);
           if (label == labels.end()) return false;
           const std::optional<int64_t> number = WholeNumber(label->second);
           return number && (bound.greater ? *number > bound.number : *number < bound.number);
         });
}

absl::StatusOr<LineSelector> ParseLabelSelector(std::string_view text) {
  if (text.size() > kMostSelectorBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} bytes, found {}", kMostSelectorBytes, text.size()));
  }
  return SelectorReader(text).All();
}

}  // namespace tranche
