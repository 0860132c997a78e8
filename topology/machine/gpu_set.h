// GPUs of one machine by position, as a 64-bit set. Iterates in ascending order.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "topology/base/check.h"

namespace tranche {

inline constexpr int kMaxMachineGpus = 64;

class GpuSet {
 public:
  constexpr GpuSet() = default;
  static constexpr GpuSet Of(uint64_t bits) { return GpuSet(bits); }
  // {0, ..., count - 1}.
  static constexpr GpuSet FirstOf(int count) {
    TRANCHE_CHECK_GE(count, 0);
    TRANCHE_CHECK_LE(count, kMaxMachineGpus);
    return GpuSet(count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1);
  }

  constexpr void Add(int gpu) { bits_ |= Bit(gpu); }
  constexpr void Remove(int gpu) { bits_ &= ~Bit(gpu); }
  constexpr bool Has(int gpu) const { return (bits_ & Bit(gpu)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  // The lowest. Requires: !empty().
  constexpr int first() const { return std::countr_zero(bits_); }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool Contains(GpuSet other) const { return (other.bits_ & ~bits_) == 0; }

  friend constexpr GpuSet operator|(GpuSet left, GpuSet right) {
    return GpuSet(left.bits_ | right.bits_);
  }
  friend constexpr GpuSet operator&(GpuSet left, GpuSet right) {
    return GpuSet(left.bits_ & right.bits_);
  }
  // Those of `left` that are not in `right`.
  friend constexpr GpuSet operator-(GpuSet left, GpuSet right) {
    return GpuSet(left.bits_ & ~right.bits_);
  }
  friend constexpr bool operator==(GpuSet, GpuSet) = default;

  class Iterator {
   public:
    constexpr explicit Iterator(uint64_t bits) : bits_(bits) {}
    constexpr int operator*() const { return std::countr_zero(bits_); }
    constexpr Iterator& operator++() {
      bits_ &= bits_ - 1;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    uint64_t bits_;
  };
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

 private:
  constexpr explicit GpuSet(uint64_t bits) : bits_(bits) {}
  static constexpr uint64_t Bit(int gpu) {
    TRANCHE_CHECK_GE(gpu, 0);
    TRANCHE_CHECK_LT(gpu, kMaxMachineGpus);
    return uint64_t{1} << gpu;
  }
  uint64_t bits_ = 0;
};

}  // namespace tranche
