// Where the pods of a gang go: all of them, close together, or none.
//
// A pure function of values. Nodes lie in domains of four levels (clique, rack, block, zone); a
// gang is put into the narrowest single domain that holds it, from the clique outwards; where none
// of a level does, it spans as few domains of that level as possible inside one of the next. Among
// domains the one that is filled most exactly, so that large free domains stay whole. Members of
// neighbouring rank share a node, then a rack, then a block.
// Source: gpu-topology section 8, benchmarks D3.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policy/spec.h"

namespace tranche {

inline constexpr int kNoDomain = -1;

struct GangNode {
  // The domain of each level it lies in (GangLevel as index), numbered by the caller; kNoDomain:
  // none is known. Domains of a level need not be nested in those of the next (cloud labels are not
  // always); a node counts where its labels put it.
  std::array<int, kGangLevels> domain = {kNoDomain, kNoDomain, kNoDomain, kNoDomain};
  int64_t cost = 0;  // of placing one member there, lower is better; compared last but the position
};

struct GangMember {
  int kind = 0;   // members of one kind ask for the same; kinds are numbered from 0
  int rank = -1;  // its place in the gang; -1: not said, after all others
};

// What the nodes have room for; the caller keeps the count of what a trial has taken.
class GangRoom {
 public:
  virtual ~GangRoom() = default;
  // How many further members of the kind the node takes, at most `most`, after what was taken of it
  // since the last Reset. 0: none. It is asked for up to 16 also where the gang is smaller: what
  // would be left tells how exactly a domain is filled. An answer that stops earlier is right too.
  virtual int Seats(std::size_t node, int kind, int most) = 0;
  // Takes room for that many. Requires: Seats said so.
  virtual void Take(std::size_t node, int kind, int count) = 0;
  virtual void Reset() = 0;
};

struct GangQuestion {
  std::vector<GangNode> nodes;  // ties go to the earlier one
  std::vector<GangMember> members;
  int kinds = 1;
  // All members in one domain of this level or a narrower one; nodes without such a domain are out.
  // nullopt: anywhere.
  std::optional<GangLevel> within;
  // Domains members of the gang run in already (pods that came earlier): with `within` set only
  // these count, else they come first. By level; kNoDomain: none, or several: with a wider level
  // known they are taken to run in several.
  std::array<int, kGangLevels> settled = {kNoDomain, kNoDomain, kNoDomain, kNoDomain};
};

struct GangPlan {
  std::vector<std::size_t> node_of;  // by member
  // The narrowest level with one domain for all, settled members included; nullopt: none.
  std::optional<GangLevel> level;
  // How many domains of each level it touches; a node of which none is known counts by its domain
  // of the next narrower level, or by itself.
  std::array<int, kGangLevels> spans{};
};

// nullopt: no place was found. That is exact for members of one kind, and for kinds that are
// multiples of each other; else the kind with the fewest seats goes first, and a place that exists
// may be missed. `room` is reset at the start, and holds the plan at the end.
// Cost: O(nodes x kinds) questions to `room` and a few sorts, 1 to 2 ms for 5,000 nodes; of several
// kinds, one more question for each node taken of in each domain that is tried.
std::optional<GangPlan> PlanGang(const GangQuestion& question, GangRoom& room);

}  // namespace tranche
