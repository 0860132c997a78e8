// The policy "tranche-protocol": a `tranche serve` of its own with the embedded cluster, asked over
// HTTP by a stub of kube-scheduler.
//
// As kube-scheduler does, the stub posts the nodes that have CPU and memory to filter, the answer
// to prioritize, adds the ranks times the extender's weight to the scores of the tree, which are
// equal here, takes a node at random among equal totals, and posts bind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "bench/fill/placer.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

// `books` of an empty cluster; `server`: the tranche program; `percent` of nodes the stub looks at
// (see node_sample.h). Keeps the variant's reference.
absl::StatusOr<std::unique_ptr<Placer>> MakeProtocolPlacer(const Variant& variant,
                                                           const Books& books,
                                                           const std::string& server, uint64_t seed,
                                                           int percent);

}  // namespace tranche::bench::fill
