// Which k of the free GPUs of a machine to take: exact to 16 GPUs, remembered per machine.
//
// The key, compared from left to right (gpu-topology section 4, ADR 0018):
//   1 every pair NVLink-connected  2 NVLinks of the best ring  3 sum of NVLinks over all pairs
//   4 weakest hop of an NVLink ring  5 the worst path (pairs without NVLink)
//   6 NUMA nodes spanned  7 NIC locality  8 damage to the GPUs that are not taken  9 lowest GPUs
// For work that does not care how its GPUs are connected the damage comes first; a single GPU has
// no links to care about, so it is always taken where it does least damage.
//
// Damage (KeepValue in set_values.h): how many disjoint NVLink-connected octets, quads, triples and
// pairs can still be made, larger ones first, then their links. For octets and quads the whole
// machine counts, taken GPUs too: a set that lies across two quads spoils both for as long as it
// runs. Then what stays free: so a single GPU is taken where it belongs to nobody. Last the
// nearness of what stays free: where all have NVLink alike, or none, NUMA nodes and NIC groups that
// nobody uses stay whole.
//
// Thread rule: as the engine's (questions fill a memo). Cost: a look-up once a question was asked;
// else under 20 us for 8 GPUs, under 1 ms for 16. Making a table takes some ten microseconds for 8
// GPUs and some ten milliseconds for 16. Beyond 16 GPUs the search is bounded (tens of milliseconds
// for 64) and `exact` says so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"

namespace tranche {

// How good a set is by itself; larger is better in every field but numa_nodes and nic_distance.
// Fields in the order of the key.
struct SetQuality {
  bool connected = false;                    // 1; true for one GPU
  int64_t ring_links = 0;                    // 2; of the ring that has most
  int64_t links = 0;                         // 3
  int ring_weakest = 0;                      // 4; of the ring whose weakest hop is strongest
  PathClass worst_path = PathClass::kBoard;  // 5; kBoard where every pair has NVLink
  int numa_nodes = 1;                        // 6; unknown ones count as one
  int64_t nic_distance = 0;  // 7; sum over its GPUs: the best fabric NIC is PIX (0) .. SYS (4)
  friend bool operator==(const SetQuality&, const SetQuality&) = default;
};
// Better first.
bool IsBetter(const SetQuality& left, const SetQuality& right);

enum class SetGoal : uint8_t {
  kConnected,  // the key above
  kPreserve,   // damage first, then the key
};

struct SetRules {
  SetGoal goal = SetGoal::kConnected;
  bool require_nvlink = false;                        // every pair
  std::optional<LinkFloor> floor = std::nullopt;      // every pair
  std::optional<PathClass> nic_floor = std::nullopt;  // every GPU has a fabric NIC at least so near
  bool one_numa = false;                              // all in one NUMA node, which must be known
};

struct SetChoice {
  GpuSet set;
  SetQuality quality;
  // 0: as good as the best set of this size on the idle machine under the same rules; else how far
  // up the key the first difference is: 1 only NICs, 2 NUMA, 3 path, 4 sum of links or weakest hop,
  // 5 ring, 6 no longer all connected. For kPreserve, and one GPU, always 0: nothing is missed.
  int loss = 0;
  // 0..15, for ties between nodes: how many GPUs stay free but can no longer be in an octet, plus
  // the same for groups of at least four, three and two.
  int damage = 0;
  bool exact = true;
};

// Two GPUs of a set that break a rule; the same one twice: it breaks one by itself (its NIC is too
// far, its NUMA node unknown), and `found` says nothing.
struct MissingLink {
  int left = 0;
  int right = 0;
  Link found;
  friend bool operator==(const MissingLink&, const MissingLink&) = default;
};

class MachineTable {
 public:
  explicit MachineTable(std::shared_ptr<const Machine> machine);
  ~MachineTable();
  MachineTable(const MachineTable&) = delete;
  MachineTable& operator=(const MachineTable&) = delete;

  const Machine& machine() const { return *machine_; }

  // The best `count` of `free`; nullopt: no set obeys the rules, or too few are free.
  std::optional<SetChoice> Best(GpuSet free, int count, const SetRules& rules);
  // The `most` best sets, best first; for people. Beyond 16 GPUs the best alone.
  std::vector<SetChoice> Ranked(GpuSet free, int count, const SetRules& rules, std::size_t most);
  SetQuality QualityOf(GpuSet set);
  // Every set the stock device plugin may hand out (plugin_choice.h), remembered.
  const std::vector<GpuSet>& PluginSets(GpuSet free, int count);
  // Of the set of this size that comes closest to the rules on `free`: the pair in the way, for
  // explain; nullopt: nothing is, or too few are free.
  std::optional<MissingLink> Missing(GpuSet free, int count, const SetRules& rules);

 private:
  struct Memo;

  SetChoice Describe(GpuSet set, GpuSet free, const SetRules& rules);

  std::shared_ptr<const Machine> machine_;
  std::unique_ptr<Memo> memo_;
};

// One table for all nodes whose machines are interchangeable.
class MachineTables {
 public:
  // The machine's own table, or that of one with the same digest met before and still in use.
  std::shared_ptr<MachineTable> Of(const std::shared_ptr<const Machine>& machine);

 private:
  std::map<std::string, std::weak_ptr<MachineTable>> tables_;
};

}  // namespace tranche
