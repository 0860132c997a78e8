#include "scheduler/embedded/object_uid.h"

#include <fmt/core.h>

#include "topology/base/stable_hash.h"

namespace tranche::embedded {
namespace {

uint64_t Hash(const std::string& text) {
  const uint64_t hash = StableHash(text);
  return hash ^ (hash >> 32U);
}

}  // namespace

std::string MakeUid(const ObjectKey& key, Instant now, uint64_t serial) {
  const auto millis = static_cast<uint64_t>(now.time_since_epoch().count());
  const uint64_t hash = Hash(key.str());
  return fmt::format("{:08x}-{:04x}-8{:03x}-{:04x}-{:04x}{:08x}", (millis >> 16U) & 0xFFFFFFFFU,
                     millis & 0xFFFFU, hash & 0xFFFU, 0x8000U | ((hash >> 12U) & 0x3U),
                     (hash >> 14U) & 0xFFFFU, serial & 0xFFFFFFFFU);
}

}  // namespace tranche::embedded
