#include "scheduler/scoring/span_table.h"

#include <algorithm>

namespace tranche {
namespace {

constexpr std::size_t kFirstSlots = 1024;

uint32_t HashOf(std::span<const uint16_t> words) {
  uint64_t hash = 0x9e3779b97f4a7c15ULL + words.size();
  for (const uint16_t word : words) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace

SpanTable::SpanTable() { Clear(); }

void SpanTable::Clear() {
  slots_.assign(kFirstSlots, kFree);
  hashes_.clear();
  begins_.assign(1, 0);
  words_.clear();
}

std::span<const uint16_t> SpanTable::operator[](uint32_t number) const {
  return std::span(words_).subspan(begins_[number], begins_[number + 1] - begins_[number]);
}

std::pair<uint32_t, bool> SpanTable::Intern(std::span<const uint16_t> words) {
  const uint32_t hash = HashOf(words);
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1)) {
    const uint32_t number = slots_[at];
    if (hashes_[number] == hash && std::ranges::equal((*this)[number], words)) {
      return {number, false};
    }
  }
  const auto number = static_cast<uint32_t>(size());
  slots_[at] = number;
  hashes_.push_back(hash);
  words_.insert(words_.end(), words.begin(), words.end());
  begins_.push_back(static_cast<uint32_t>(words_.size()));
  if (2 * size() > slots_.size()) Grow();
  return {number, true};
}

void SpanTable::Grow() {
  slots_.assign(2 * slots_.size(), kFree);
  for (uint32_t number = 0; number < size(); ++number) {
    std::size_t at = hashes_[number] & (slots_.size() - 1);
    while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = number;
  }
}

}  // namespace tranche
