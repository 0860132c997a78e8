// What is known of where the output goes: a terminal of some width that takes colours, or a file or
// pipe, where lines stay whole and plain.
//
// It travels with the stream, so that whoever prints need not be told.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

namespace tranche {

struct Terminal {
  std::size_t columns = 0;  // 0: lines are not broken
  bool colour = false;
};

// Standard output as it is: colours on a terminal, unless NO_COLOR is not empty or TERM is dumb.
Terminal StandardOutput();

void SetTerminal(std::ostream& out, Terminal terminal);
// As set before, also by copyfmt; else no terminal.
Terminal TerminalOf(std::ostream& out);

// The text with '?' for every control character: text from the cluster must not steer a terminal.
std::string Harmless(std::string_view text);

// `text` in words over as many lines as it takes, the first one beginning at column `indent`, later
// ones indented as far. Without columns as it is.
std::string Wrapped(std::string_view text, std::size_t indent, std::size_t columns);

// A text of several lines with every line that is too long broken before a word; what follows is
// indented by `indent`.
std::string WrappedLines(std::string_view text, std::size_t indent, std::size_t columns);

// "label    text": a line of a list of facts, made harmless and wrapped below where its text
// begins.
void PrintLabelled(std::string_view label, std::string_view text, std::ostream& out);

// Code points of a UTF-8 text: bytes that do not continue one.
std::size_t WidthOf(std::string_view text);

}  // namespace tranche
