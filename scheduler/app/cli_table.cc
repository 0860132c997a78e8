#include "scheduler/app/cli_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "topology/base/check.h"

namespace tranche::app {
namespace {

// Code points of a UTF-8 text: bytes that do not continue one.
std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

bool IsNumber(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '%';
  });
}

}  // namespace

Table::Table(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }

void Table::Add(std::vector<std::string> cells) {
  TRANCHE_CHECK(cells.size() == rows_.front().size());
  for (std::string& cell : cells) {
    std::replace_if(
        cell.begin(), cell.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> numbers(columns, !empty());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::string& cell = rows_[row][column];
      widths[column] = std::max(widths[column], Width(cell));
      if (row > 0 && !IsNumber(cell)) numbers[column] = false;
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < columns; ++column) {
      if (column > 0) line += "  ";
      const std::string padding(widths[column] - Width(row[column]), ' ');
      line += numbers[column] ? padding + row[column] : row[column] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace tranche::app
