// A CSV file whose first line names the columns. Fields hold no commas and no quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tranche::bench::fill {

// The first error is kept and ends the reading; it names file, line, what was expected and found.
class Csv {
 public:
  explicit Csv(const std::string& path);

  // The column's position. An absent one is an error if `required`, else kAbsent.
  std::size_t Column(std::string_view name, bool required);
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  // The next line; empty ones are passed over. False at the end, and after an error.
  bool Next();
  // Of the line; empty for kAbsent.
  std::string_view Text(std::size_t column) const;
  // `least` after an error.
  int64_t Number(std::size_t column, int64_t least, int64_t most);
  // A price in millionths; 1 after an error.
  int64_t Micros(std::size_t column);
  void Fail(std::string_view expected, std::string_view found);

  const absl::Status& status() const { return status_; }

 private:
  bool ReadLine();

  std::string path_;
  std::ifstream in_;
  std::vector<std::string> columns_;
  std::vector<std::string> fields_;
  int64_t number_ = 0;
  absl::Status status_;
};

}  // namespace tranche::bench::fill
