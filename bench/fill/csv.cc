#include "bench/fill/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tranche::bench::fill {

Csv::Csv(const std::string& path) : path_(path), in_(path) {
  if (!in_) {
    status_ = absl::NotFoundError(fmt::format("expected a file {}, could not read it", path));
  } else if (ReadLine()) {
    columns_ = fields_;
  } else {
    number_ = 1;
    Fail("a line of column names", "an empty file");
  }
}

bool Csv::ReadLine() {
  std::string line;
  if (!std::getline(in_, line)) return false;
  ++number_;
  if (line.ends_with('\r')) line.pop_back();
  fields_.clear();
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t comma = std::min(line.find(',', from), line.size());
    fields_.push_back(line.substr(from, comma - from));
    from = comma + 1;
  }
  return true;
}

std::size_t Csv::Column(std::string_view name, bool required) {
  const auto found = std::ranges::find(columns_, name);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  if (required) Fail(fmt::format("a column {}", name), fmt::format("{}", fmt::join(columns_, ",")));
  return kAbsent;
}

bool Csv::Next() {
  do {
    if (!status_.ok() || !ReadLine()) return false;
  } while (fields_.size() == 1 && fields_.front().empty());
  if (fields_.size() == columns_.size()) return true;
  Fail(fmt::format("{} columns", columns_.size()), fmt::format("{}", fmt::join(fields_, ",")));
  return false;
}

std::string_view Csv::Text(std::size_t column) const {
  return column == kAbsent ? std::string_view() : std::string_view(fields_[column]);
}

int64_t Csv::Number(std::size_t column, int64_t least, int64_t most) {
  const std::string_view text = Text(column);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc() && end == text.data() + text.size();
  if (good && value >= least && value <= most) return value;
  const std::string name = column == kAbsent ? "" : columns_[column] + " ";
  Fail(fmt::format("{}from {} to {}", name, least, most), text);
  return least;
}

int64_t Csv::Micros(std::size_t column) {
  constexpr std::size_t kPlaces = 6;
  const std::string_view text = Text(column);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  const std::string_view places = text.substr(std::min(point + 1, text.size()));
  digits += places;
  int64_t micros = 0;
  if (places.size() <= kPlaces) {
    digits.append(kPlaces - places.size(), '0');
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), micros);
    if (error == std::errc() && end == digits.data() + digits.size() && micros > 0) return micros;
  }
  Fail("a price above 0 with at most six places", text);
  return 1;
}

void Csv::Fail(std::string_view expected, std::string_view found) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      fmt::format("{}:{}: expected {}, found \"{}\"", path_, number_, expected, found));
}

}  // namespace tranche::bench::fill
