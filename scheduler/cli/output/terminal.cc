#include "scheduler/cli/output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ios>
#include <ostream>
#include <vector>

namespace tranche {
namespace {

// Narrower than this nothing can be laid out: the terminal breaks lines where it likes.
constexpr std::size_t kFewestColumns = 40;

int Slot() {
  static const int slot = std::ios_base::xalloc();
  return slot;
}

std::vector<std::string_view> WordsIn(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    if (end > start) words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

}  // namespace

Terminal StandardOutput() {
  if (isatty(STDOUT_FILENO) != 1) return {};
  Terminal terminal;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kFewestColumns) {
    terminal.columns = size.ws_col;
  }
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  terminal.colour = (no_colour == nullptr || *no_colour == '\0') &&
                    (term == nullptr || std::string_view(term) != "dumb");
  return terminal;
}

void SetTerminal(std::ostream& out, Terminal terminal) {
  out.iword(Slot()) = static_cast<long>(terminal.columns * 2) + (terminal.colour ? 1 : 0);
}

Terminal TerminalOf(std::ostream& out) {
  const long stored = out.iword(Slot());
  return {static_cast<std::size_t>(stored / 2), stored % 2 == 1};
}

std::string Harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    // U+0080 to U+009F, which terminals take for escape sequences of one character.
    const bool wide = byte == 0xC2U && next >= 0x80U && next < 0xA0U;
    if (wide) ++i;
    out += wide || byte < ' ' || byte == 0x7FU ? '?' : static_cast<char>(byte);
  }
  return out;
}

std::string Wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  if (columns == 0 || indent + WidthOf(text) <= columns) return std::string(text);
  std::string out;
  std::size_t at = indent;
  for (const std::string_view word : WordsIn(text)) {
    const std::size_t width = WidthOf(word);
    if (at > indent && at + 1 + width > columns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      out += ' ';
      ++at;
    }
    out += word;
    at += width;
  }
  return out;
}

std::string WrappedLines(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    // The spaces of the first part stay as they are.
    const std::size_t head = std::min(indent, line.size());
    const bool fits = columns <= indent || WidthOf(line) <= columns;
    out += fits ? std::string(line)
                : std::string(line.substr(0, head)) + Wrapped(line.substr(head), indent, columns);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

void PrintLabelled(std::string_view label, std::string_view text, std::ostream& out) {
  constexpr std::size_t kTextAt = 9;
  std::string head(label);
  head.resize(std::max(kTextAt, head.size() + 1), ' ');
  out << head << Wrapped(Harmless(text), head.size(), TerminalOf(out).columns) << '\n';
}

std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace tranche
