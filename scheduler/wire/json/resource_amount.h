// The keys of advertised GPU resources, and reading one amount of them from JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"
#include "topology/mig.h"

namespace tranche::wire {

inline constexpr std::string_view kMigKeyPrefix = "nvidia.com/mig-";

// Larger amounts are nonsense and refused; sums of smaller ones over one document fit int64.
inline constexpr int64_t kMaxAmount = int64_t{1} << 31;

// The API takes quantities as text or as bare numbers; null stands for absent.
bool IsQuantityType(Element value);

// The whole number a quantity stands for; nullopt when it is none or lies outside 0..kMaxAmount.
std::optional<int64_t> WholeAmount(Element value);

// A quantity of bytes in MiB, rounded up; nullopt when it is none or lies outside 0..kMaxAmount
// MiB.
std::optional<int64_t> MebibyteAmount(Element value);

// A quantity of CPU; nullopt where it is null or none, below zero or above kMaxAmount thousandths.
std::optional<MilliCpu> CpuAmount(Element value);

// The quantity as it was written, near enough to quote it.
std::string AmountText(Element value);

}  // namespace tranche::wire
