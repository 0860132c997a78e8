// What the engine keeps about gangs: pods placed all or none. Part of its books (impl.h), nobody
// else includes this.
//
//   gathering  fewer pods than its size are there; its members are refused
//   waiting    all are there, no room for all of them; refused
//   seated     devices are kept for every member (an earmark each) until it binds; when none has
//              for a while, all are given back and members that did bind are evicted
//   started    all had their places at one time; from then on members come one by one
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "policy/spec.h"
#include "scheduler/facts/reason.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct Gang {
  std::set<PodUid> members;  // live ones that ask for GPUs
  std::set<PodUid> plain;    // live ones that ask for none; counted, not placed by us
  bool started = false;
  bool seated = false;
  bool ours = false;                    // we have bound a member since it last had none
  Instant progress_at;                  // seats were given, or a member came to its own
  std::map<NodeName, Instant> avoided;  // members did not come for their seats there; until then
  int lapses = 0;                       // times its seats were given back
  // The last plan that failed: of which books, and why.
  uint64_t tried = 0;
  Instant tried_at;
  Instant not_before;
  int misses = 0;
  Reason reason = Reason::kNone;
  std::string detail;
};

// Nodes kept for a gang that waits until work there has ended, as it declared. Others may use them
// if they have ended before.
struct GangHold {
  std::string gang;  // key; empty: nobody holds
  Instant start;     // when it is expected to start
  std::set<NodeName> nodes;
  Instant looked_at;  // when this was worked out
};

struct GangBooks {
  std::map<std::string, Gang> all;  // by namespace/gang
  // Those whose size is told and that have not started: the ones anything is to be done for.
  std::set<std::string> open;
  GangHold hold;
  std::map<std::string, int> declared;               // sizes other controllers' objects tell
  std::unordered_map<PodUid, std::string> of_plain;  // looked up, never iterated
};

// Where the members of a gang are: its domains by level.
struct Neighbours {
  const DomainLabels* labels = nullptr;
  std::array<std::string, kGangLevels> domain;  // empty: none is known
  // A member may be nowhere else than in that domain; kGangLevels: anywhere.
  int within = kGangLevels;
};

// What a member is told when kube-scheduler asks for it.
struct GangTurn {
  Reason reason = Reason::kNone;  // kNone: it may be placed
  NodeName only;                  // there, and nowhere else; empty: anywhere
};

}  // namespace tranche
