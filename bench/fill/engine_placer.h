// The policy "tranche": the engine that answers kube-scheduler, called as the server calls it, with
// the cluster told to it as a watch would.
//
// Nodes with CPU and memory for the task are the candidates, as behind kube-scheduler's own
// filters. The first of filter's answer is taken; pods without GPUs go where prioritize ranks best.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "bench/fill/placer.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

// `books` of an empty cluster. Keeps the variant's reference.
absl::StatusOr<std::unique_ptr<Placer>> MakeEnginePlacer(const Variant& variant,
                                                         const Books& books);

}  // namespace tranche::bench::fill
