// What the embedded cluster changes in the objects it is given, as an API server, a kubelet and
// the binding subresource would. Only patches are built here; JsonPatch writes them out. Times have
// milliseconds, where a server cuts them at seconds: what is metered here is exact.
//
// Source: kube-client-protocol sections 11 and 13 (binding, conditions).
#pragma once

#include "policy/selector.h"
#include "scheduler/embedded/json_patch.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/embedded/object_store.h"
#include "scheduler/ports/pod_writes.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/object_json.h"
#include "topology/base/units.h"

namespace tranche::embedded {

// Drops what is large and never read (managedFields, image lists), and states type and namespace
// where the text left them to its surroundings.
JsonPatch NewcomerPatch(const ManifestObject& object);

void SetVersion(JsonPatch& patch, int64_t version);
// uid, creation time and generation.
void SetIdentity(JsonPatch& patch, const StoredObject& object);
void SetDeletion(JsonPatch& patch, const Deletion& deletion);
// As a kubelet reports a pod it has started at `now`; times that `facts` has already stay. `pod`:
// the object before the change; `facts`: what it says, changed with it.
void SetRunning(JsonPatch& patch, wire::Element pod, PodFacts& facts, Instant now);
// A pod that states no phase is Pending.
void SetPendingIfUnstated(JsonPatch& patch, wire::Element pod);
// nodeName and annotations of a Binding, which ends a nomination.
void SetBinding(JsonPatch& patch, const BindingWrite& write);
// Replaces the conditions of that type.
void SetCondition(JsonPatch& patch, wire::Element pod, const wire::ConditionText& condition);

// metadata.labels, also of a pod that asks for no GPU.
Labels StatedLabels(wire::Element object);
// spec.terminationGracePeriodSeconds, by default 30, within 0 and a year.
int64_t StatedGraceSeconds(wire::Element pod);

}  // namespace tranche::embedded
