// When a pod was bound, began and ended, as its status tells, and whether somebody takes it away.
#pragma once

#include <cstddef>

#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// Fills bound_at, started_at, running_at, finished_at and disrupted of a pod whose node and phase
// are known. Times that cannot be read, and those at or before 1970 that stand for "never", are
// left out.
void ReadPodTimes(Object status, FieldReader& reader, PodFacts& pod);

// Of a message longer than this (bytes) the end is left out: kube-scheduler lists every reason of
// every extender there.
inline constexpr std::size_t kLongestSaying = 480;

// Fills unschedulable and scheduler_says: has kube-scheduler tried the pod and found no node
// (condition PodScheduled)?
void ReadUnschedulable(Object status, FieldReader& reader, PodFacts& pod);

}  // namespace tranche::wire
