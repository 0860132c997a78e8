// Gangs that wait for room and lack nothing else: what an autoscaler could be asked for, for all of
// their pods at once.
//
// A gang is one where its last try failed for want of nodes, of none of its pods anything else is
// known (quota, budget, class, policy, pods that are missing), none is held by a scheduling gate,
// and all ask in resources that nodes advertise, so that an autoscaler can tell which node would
// do. Pure, deterministic. Cost: O(waiting pods log waiting pods).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/advice/case.h"

namespace tranche {

// Pods of one kind come from one controller and ask for the same.
struct RoomKind {
  std::size_t example = 0;  // index into RoomWish::members
  int64_t count = 0;
};

struct RoomWish {
  struct Member {
    PodName pod;
    PodUid uid;
    std::string provisioning;  // as of PodFacts
  };
  std::string ns;
  std::string gang;             // as of PodRequest
  Instant since;                // the last of them began to wait
  std::vector<Member> members;  // ascending uid
  std::vector<RoomKind> kinds;  // by their first member
};

// Of more kinds than that nothing is wished.
inline constexpr std::size_t kMostRoomKinds = 64;

// Ascending namespace and gang.
std::vector<RoomWish> GangsWithoutRoom(const AdviceCase& fleet);

// True: another node, or one more of the kind, could be what a pod refused so lacks.
bool NodesWouldHelp(Reason reason);

}  // namespace tranche
