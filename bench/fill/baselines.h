// The published policies the engine is compared with (USENIX ATC'23 and its artifact): Random,
// DotProd (after Tetris), GpuClustering, GpuPacking, BestFit and FGD.
//
// Scores are whole numbers, the highest wins, ties go to the first node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "bench/fill/fragmentation.h"
#include "bench/fill/placer.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

// "random", "dotprod", "clustering", "packing", "bestfit", "fgd".
std::span<const std::string_view> BaselineNames();

// Null: no such baseline. Keeps the references.
std::unique_ptr<Placer> MakeBaseline(std::string_view name, const Variant& variant,
                                     const TargetWorkload& target, uint64_t seed);

}  // namespace tranche::bench::fill
