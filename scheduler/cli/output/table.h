// Aligned columns for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler/cli/output/terminal.h"

namespace tranche {

class Table {
 public:
  // Column titles.
  explicit Table(std::vector<std::string> titles);
  // As many cells as titles. Control characters are shown as '?': text from the cluster must not
  // steer a terminal.
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Lines end in a newline; columns of numbers are set to the right. Where the terminal is too
  // narrow the widest columns of words are broken into lines; where it takes colours titles are
  // bold and cells that are one word of good or bad news are green, yellow or red.
  std::string Text(const Terminal& terminal = {}) const;

 private:
  struct Column {
    std::size_t width = 0;
    std::size_t fewest = 0;  // its longest word
    bool numbers = false;
  };
  std::vector<Column> Measure() const;

  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace tranche
