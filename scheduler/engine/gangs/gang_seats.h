// What is kept about gangs, pods placed all or none; gangs.h changes it.
//
//   gathering  fewer pods than its size are there; its members are refused
//   waiting    all are there, no room for all of them; refused
//   seated     devices are kept for every member (an earmark each) until it binds; when none has
//              for a while, all are given back and members that did bind are evicted
//   started    all had their places at one time; from then on members come one by one
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "scheduler/facts/reason.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// A size: all pods of the gang that are there. Of groups that kube-scheduler places in one cycle of
// its own, which it begins when enough of them are there; a size that an object tells goes before.
inline constexpr int kGangOfAll = -1;

// What a member counts as.
enum class MemberStanding : uint8_t {
  kNone,    // it is leaving, or held back by others' gates
  kPlaced,  // it is being bound
  kBound,
  kWaiting,  // could be placed
  kGated,    // could be, but for gates of ours
  kCount
};
struct CountedMember {
  MemberStanding standing = MemberStanding::kNone;
  int size = 0;                  // of the gang, as it says
  std::pair<int, PodUid> place;  // by its rank, the ones without last
  Instant since;                 // it waits
};

struct Gang {
  std::set<PodUid> members;  // live ones that ask for GPUs
  // Kept with every change of a member, so that nothing is counted anew: what each stands for, how
  // many stand so, and how many name which size.
  std::unordered_map<PodUid, CountedMember> counted;
  std::array<int, static_cast<std::size_t>(MemberStanding::kCount)> standing{};
  std::map<int, int> sizes;
  std::set<std::pair<int, PodUid>> by_rank;
  std::multiset<Instant> waits_since;  // of those that could be placed
  std::set<PodUid> plain;              // live ones that ask for none; counted, not placed by us
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

struct GangBooks {
  std::map<std::string, Gang> all;                   // by namespace/gang
  std::map<std::string, int> declared;               // sizes other controllers' objects tell
  std::unordered_map<PodUid, std::string> of_plain;  // looked up, never iterated
};

// What a member is told when kube-scheduler asks for it.
struct GangTurn {
  Reason reason = Reason::kNone;  // kNone: it may be placed
  NodeName only;                  // there, and nowhere else; empty: anywhere
};

}  // namespace tranche
