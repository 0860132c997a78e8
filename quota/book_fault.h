// What a set of books met that does not go together: it was repaired or set aside, and an
// administrator should hear of it. A plain value.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tranche {

enum class BookFaultKind : uint8_t {
  kHeldTwice,        // a charge for work that is charged already: the first one counts
  kKeptTwice,        // room kept for work that has some, or runs: nothing more is counted
  kOpenTwice,        // the ledger has several uses of one pod open: the newest goes on
  kDisputedDevices,  // record, agent's keys and ledger name different devices: all are busy
  kUnreadablePod,    // a pod with a node cannot be read: all GPUs of the node are busy
  kUnownedWork,      // the quota of running work is gone, and no other owns its namespace
};
inline constexpr std::size_t kBookFaultKinds = 6;

struct BookFault {
  BookFaultKind kind = BookFaultKind::kHeldTwice;
  std::string detail;  // which pod, and what was found
};

// "held_twice", ...: the label of metrics.
constexpr std::string_view BookFaultName(BookFaultKind kind) {
  constexpr std::array<std::string_view, kBookFaultKinds> kNames = {
      "held_twice",       "kept_twice",     "open_twice",
      "disputed_devices", "unreadable_pod", "unowned_work"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace tranche
