// When a pod was bound, began and ended, as its status tells.
#pragma once

#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// Fills bound_at, started_at, running_at and finished_at of a pod whose node and phase are known.
// Times that cannot be read, and those at or before 1970 that stand for "never", are left out.
void ReadPodTimes(Object status, FieldReader& reader, PodFacts& pod);

// Has kube-scheduler tried the pod and found no node (condition PodScheduled)?
bool ReadUnschedulable(Object status, FieldReader& reader);

}  // namespace tranche::wire
