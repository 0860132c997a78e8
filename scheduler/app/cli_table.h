// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

namespace tranche::app {

class Table {
 public:
  // Column titles.
  explicit Table(std::vector<std::string> titles);
  // As many cells as titles. Control characters are shown as '?': text from the cluster must not
  // steer a terminal.
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Lines end in a newline; columns of numbers are set to the right.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace tranche::app
