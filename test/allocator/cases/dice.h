// Chance, by a seed.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tranche::test {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  int Between(int least, int most) { return least + Below(most - least + 1); }
  bool OneIn(int many) { return Below(many) == 0; }
  bool Percent(int share) { return Below(100) < share; }
  template <typename List>
  const auto& Pick(const List& list) {
    return list[static_cast<std::size_t>(Below(static_cast<int>(std::size(list))))];
  }

 private:
  std::mt19937_64 random_;
};

// "a","b" without the brackets, each quoted as JSON does.
std::string Quoted(const std::string& text);
std::string QuotedList(std::span<const std::string> texts);

}  // namespace tranche::test
