// The pods of a what-if question: those named, and those that other objects stand for.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// Of {"pods":[Object...]}: a Pod is itself, an object that stands for several (workload.h) is as
// many as its controller makes, named NAME-SET-0, NAME-SET-1, ...; those of an owner whose pods are
// a gang are one. A PodGroup says how many of the gang of its name start together. Each gets a uid
// of its own, since the question is about further pods even where objects were copied.
// `body` has padding; more than `most` pods: an error, which says `of_whom`. Errors name the
// position in the list.
absl::StatusOr<std::vector<PodRequest>> ReadWhatIfPods(std::string_view body, std::size_t most,
                                                       std::string_view of_whom);

}  // namespace tranche::wire
