// Node names <-> small numbers, with look-ups made for lists of thousands of names.
//
// Between two lists kube-scheduler does other work, so nothing of the table is in a cache when the
// next one comes: what a look-up costs is how often it waits for memory. A list is therefore looked
// up in blocks, each in three steps that wait for nothing of their own: hash the names and ask for
// their slots, read the slots and ask for the lines they point to, compare. A name of up to
// kInlineBytes lies in its line, so a name costs two lines of memory, both asked for early.
//
// Thread rule: externally synchronised. Ids are dense; one that was forgotten is given out again.
// Cost: 96 bytes a name, besides its text. Hashes change no result.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "topology/base/ids.h"

namespace tranche {

using NodeId = Index<struct NodeIdTag>;
inline constexpr NodeId kNoNode{UINT32_MAX};
// In the place of a name that its list has had before.
inline constexpr NodeId kNamedBefore{UINT32_MAX - 1};
inline bool IsNode(NodeId id) { return id < kNamedBefore; }

class NodeNames {
 public:
  // `seed`: of the hash; see topology/base/text_hash.h.
  explicit NodeNames(uint64_t seed = 0) : seed_(seed) {}

  // The id of the name, new if it was unknown.
  NodeId Intern(const NodeName& name);
  // Requires: the id is of a name.
  void Forget(NodeId id);

  NodeId Find(std::string_view name) const;
  // out[i] is the id of names[i], kNoNode where nobody has that name, or kNamedBefore where a known
  // one comes again. Nothing is allocated but `out`. Cost: about 8 ns a name with cold caches.
  void FindAll(std::span<const std::string_view> names, std::vector<NodeId>& out);

  const NodeName& name(NodeId id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }

  // Position of the name among all names, ascending: the last tie breaker of every order.
  uint32_t rank(NodeId id) {
    if (ranks_stale_) RankAll();
    return ranks_[id];
  }
  // All ids by ascending name, forgotten ones (of empty name) first.
  const std::vector<NodeId>& ascending() {
    if (ranks_stale_) RankAll();
    return order_;
  }

 private:
  static constexpr std::size_t kBlock = 64;  // what the processor can wait for at one time, about
  static constexpr std::size_t kFewestSlots = 16;
  static constexpr std::size_t kInlineBytes = 58;

  // A place of the hash table; open addressing, linear, at most half full.
  struct Slot {
    uint32_t hash = 0;
    NodeId id = kNoNode;  // kNoNode: free
  };
  // What a look-up reads of a name.
  struct alignas(64) Line {
    std::array<char, kInlineBytes> start{};
    uint16_t size = 0;
    uint32_t list = 0;  // that had it last
  };
  static_assert(sizeof(Line) == 64);

  uint32_t HashOf(std::string_view name) const;
  // The first place from `at` on that has this hash, else the free one where the search ends.
  std::size_t NextOf(uint32_t hash, std::size_t at) const;
  NodeId GuessOf(uint32_t hash) const;
  bool IsNameOf(NodeId id, std::string_view name) const;
  NodeId FindFrom(std::size_t at, uint32_t hash, std::string_view name) const;
  void Put(Slot slot);
  void Grow();
  void BeginList();
  void RankAll();

  const uint64_t seed_;
  std::size_t mask_ = kFewestSlots - 1;
  std::vector<Slot> slots_ = std::vector<Slot>(kFewestSlots);
  std::vector<Line> lines_;      // by id
  std::vector<NodeName> names_;  // by id
  std::vector<NodeId> free_;
  uint32_t list_ = UINT32_MAX - 16;  // counts them; goes round soon, so that this is met in tests
  std::vector<NodeId> order_;
  std::vector<uint32_t> ranks_;
  bool ranks_stale_ = true;
};

}  // namespace tranche
