#include "scheduler/cli/output/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "topology/base/check.h"

namespace tranche {
namespace {

constexpr std::size_t kGap = 2;         // between columns; 1 where nothing else helps
constexpr std::size_t kNarrowest = 12;  // no column is broken to less

constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kYellow = "\033[33m";
constexpr std::string_view kPlain = "\033[0m";

struct News {
  std::string_view word;
  std::string_view colour;
};
// Whole cells; states of nodes, pods, quotas, budgets, reclaims and verdicts.
constexpr News kNews[] = {
    {"ready", kGreen},     {"yes", kGreen},      {"valid", kGreen},    {"OK", kGreen},
    {"Done", kGreen},      {"not ready", kRed},  {"no", kRed},         {"invalid", kRed},
    {"Exhausted", kRed},   {"Aborted", kYellow}, {"Warning", kYellow}, {"evicting", kYellow},
    {"Evicting", kYellow}, {"leaving", kYellow}, {"Observe", kYellow}, {"Off", kYellow},
};

std::string_view ColourOf(const std::string& cell) {
  for (const News& news : kNews) {
    if (news.word == cell) return news.colour;
  }
  return {};
}

bool IsNumber(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '%';
  });
}

std::size_t LongestWord(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    longest = std::max(longest, WidthOf(text.substr(start, end - start)));
    start = end + 1;
  }
  return longest;
}

std::vector<std::string> LinesOf(const std::string& cell, std::size_t width) {
  const std::string text = Wrapped(cell, 0, width);
  std::vector<std::string> lines;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace

Table::Table(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }

void Table::Add(std::vector<std::string> cells) {
  TRANCHE_CHECK_EQ(cells.size(), rows_.front().size());
  for (std::string& cell : cells) cell = Harmless(cell);
  rows_.push_back(std::move(cells));
}

std::vector<Table::Column> Table::Measure() const {
  std::vector<Column> columns(rows_.front().size());
  for (std::size_t at = 0; at < columns.size(); ++at) {
    Column& column = columns[at];
    bool some = false;
    column.numbers = true;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const std::string& cell = rows_[row][at];
      column.width = std::max(column.width, WidthOf(cell));
      column.fewest = std::max(column.fewest, LongestWord(cell));
      if (row == 0) continue;
      some = some || !cell.empty();
      column.numbers = column.numbers && IsNumber(cell);
    }
    column.numbers = column.numbers && some;
    column.fewest = std::max(column.fewest, std::min(column.width, kNarrowest));
  }
  return columns;
}

std::string Table::Text(const Terminal& terminal) const {
  std::vector<Column> columns = Measure();
  std::size_t total = kGap * (columns.size() - 1);
  for (const Column& column : columns) total += column.width;
  for (; terminal.columns > 0 && total > terminal.columns; --total) {
    Column* widest = nullptr;
    for (Column& column : columns) {
      const bool can = !column.numbers && column.width > column.fewest;
      if (can && (widest == nullptr || column.width > widest->width)) widest = &column;
    }
    if (widest == nullptr) break;
    --widest->width;
  }
  const std::size_t gap = terminal.columns > 0 && total > terminal.columns ? 1 : kGap;
  std::string out;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t at = 0; at < columns.size(); ++at) {
      cells.push_back(LinesOf(rows_[row][at], columns[at].width));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t line = 0; line < lines; ++line) {
      std::string text;
      std::size_t pending = 0;  // spaces, written once something follows
      for (std::size_t at = 0; at < columns.size(); ++at) {
        const std::string cell = line < cells[at].size() ? cells[at][line] : "";
        const std::size_t padding = columns[at].width - std::min(columns[at].width, WidthOf(cell));
        if (columns[at].numbers) pending += padding;
        if (!cell.empty()) {
          const std::string_view colour = !terminal.colour ? std::string_view()
                                          : row == 0       ? kBold
                                                           : ColourOf(rows_[row][at]);
          text.append(pending, ' ').append(colour).append(cell);
          if (!colour.empty()) text += kPlain;
          pending = 0;
        }
        if (!columns[at].numbers) pending += padding;
        pending += gap;
      }
      out += text + '\n';
    }
  }
  return out;
}

}  // namespace tranche
