// Numbers sequences of 16-bit words in the order they are first met. Looking one up allocates
// nothing; the caller bounds the size by clearing.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tranche {

class SpanTable {
 public:
  SpanTable();
  // The number of `words`, and whether it is new: the numbers are 0, 1, 2, ...
  std::pair<uint32_t, bool> Intern(std::span<const uint16_t> words);
  std::span<const uint16_t> operator[](uint32_t number) const;
  std::size_t size() const { return begins_.size() - 1; }
  void Clear();

 private:
  void Grow();

  static constexpr uint32_t kFree = UINT32_MAX;
  std::vector<uint32_t> slots_;  // by hash, linear probing; at most half in use
  std::vector<uint32_t> hashes_;
  std::vector<uint32_t> begins_;  // into words_; one more than there are sequences
  std::vector<uint16_t> words_;
};

}  // namespace tranche
