#include "scheduler/wire/agents/node_lock.h"

#include "scheduler/wire/json/json.h"

namespace tranche::wire {
namespace {

// The text before the next comma; `rest` begins behind it. nullopt: no comma.
std::optional<std::string_view> TakePart(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const std::string_view part = rest.substr(0, comma);
  rest.remove_prefix(comma + 1);
  return part;
}

bool SamePod(const std::optional<NodeLock>& one, const std::optional<NodeLock>& other) {
  return one && other && one->names_a_pod() && one->ns == other->ns && one->pod == other->pod;
}

}  // namespace

std::optional<NodeLock> ParseNodeLock(std::string_view text) {
  std::string_view rest = text;
  NodeLock lock;
  std::string_view time = text;
  if (const std::optional<std::string_view> first = TakePart(rest)) {
    const std::optional<std::string_view> second = TakePart(rest);
    const bool complete = second && !second->empty() && !rest.empty();
    if (!complete || rest.find(',') != std::string_view::npos) return std::nullopt;
    time = *first;
    lock.ns = *second;
    lock.pod = rest;
  }
  const auto taken = ParseTime(time);
  if (!taken) return std::nullopt;
  lock.taken = *taken;
  return lock;
}

LockVerdict JudgeLock(std::optional<std::string_view> current, std::string_view wanted,
                      std::optional<Millis> stale_after, Instant now) {
  if (!current || current->empty()) return LockVerdict::kFree;
  if (*current == wanted) return LockVerdict::kOurs;
  const std::optional<NodeLock> lock = ParseNodeLock(*current);
  if (SamePod(lock, ParseNodeLock(wanted))) return LockVerdict::kFree;
  // A limit of nothing is met whatever the clocks say: its holder needs it no more.
  const bool stale =
      lock && stale_after && (*stale_after == Millis(0) || now - lock->taken > *stale_after);
  return stale ? LockVerdict::kFree : LockVerdict::kHeld;
}

}  // namespace tranche::wire
