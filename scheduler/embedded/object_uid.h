// Uids for objects that come without one.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/embedded/object_store.h"
#include "topology/base/units.h"

namespace tranche::embedded {

// An RFC 9562 version 8 UUID made of the time in milliseconds (48 bits), a hash of the key (30
// bits) and `serial` (32 bits): no two objects of a process share one, those of another run of the
// program differ too, and equal runs make equal uids.
std::string MakeUid(const ObjectKey& key, Instant now, uint64_t serial);

}  // namespace tranche::embedded
