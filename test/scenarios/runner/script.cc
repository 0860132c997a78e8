#include "test/scenarios/runner/script.h"

#include <cstddef>

namespace tranche::scenario {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Splits the line into words and options. A word that is quoted from its start is never an option.
Result ReadWords(Statement& statement) {
  const std::string& text = statement.text;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kBlank, at)) != std::string::npos && text[at] != '#') {
    const bool quoted = text[at] == '"';
    std::string word;
    std::size_t equals = std::string::npos;
    bool inside = false;
    for (; at < text.size() && (inside || kBlank.find(text[at]) == std::string_view::npos); ++at) {
      if (text[at] == '"') {
        inside = !inside;
        continue;
      }
      if (text[at] == '=' && !inside && equals == std::string::npos) equals = word.size();
      word += text[at];
    }
    if (inside) return Problem{"a closing quotation mark", text};
    if (statement.verb.empty()) {
      statement.verb = word;
    } else if (quoted || equals == std::string::npos) {
      statement.words.push_back(word);
    } else {
      statement.options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  return std::nullopt;
}

// The rest of a header line, as one text.
std::string Rest(const Statement& statement) {
  return std::string(Trimmed(std::string_view(statement.text).substr(statement.verb.size())));
}

}  // namespace

std::optional<ParseError> ParseScript(std::string_view text, Script& script) {
  Statement statement;
  int line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view trimmed = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (trimmed.empty() || trimmed.front() == '#') continue;
    statement = Statement{line, std::string(trimmed), "", {}, {}};
    const std::string_view verb = trimmed.substr(0, trimmed.find_first_of(kBlank));
    const bool named = !script.name.empty();
    std::string* const header = verb == "scenario" ? &script.name : &script.why;
    if (verb == "scenario" || verb == "why") {
      statement.verb = verb;
      if (!header->empty())
        return ParseError{statement, {"one line `" + statement.verb + "`", "two"}};
      *header = Rest(statement);
      if (header->empty()) return ParseError{statement, {"a text", "none"}};
    } else if (!named) {
      return ParseError{statement, {"`scenario NAME` as the first line", statement.text}};
    } else if (const Result problem = ReadWords(statement)) {
      return ParseError{statement, *problem};
    } else {
      script.statements.push_back(statement);
    }
  }
  if (script.name.empty()) return ParseError{statement, {"`scenario NAME`", "the end of the file"}};
  if (script.why.empty()) return ParseError{statement, {"`why TEXT`", "the end of the file"}};
  return std::nullopt;
}

}  // namespace tranche::scenario
