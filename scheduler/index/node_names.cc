#include "scheduler/index/node_names.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "topology/base/check.h"
#include "topology/base/inline.h"
#include "topology/base/text_hash.h"

namespace tranche {
namespace {

// Names too long for the number are told apart by their text.
uint16_t SizeOf(std::string_view name) {
  return static_cast<uint16_t>(
      std::min(name.size(), std::size_t{std::numeric_limits<uint16_t>::max()}));
}

// As memcmp, without its call: the texts are a few words long.
TRANCHE_INLINE bool EqualBytes(const char* left, const char* right, std::size_t size) {
  if (size < kWordBytes) {
    for (std::size_t i = 0; i < size; ++i) {
      if (left[i] != right[i]) return false;
    }
    return true;
  }
  for (std::size_t at = 0; at + kWordBytes < size; at += kWordBytes) {
    if (LoadWord(left + at) != LoadWord(right + at)) return false;
  }
  const std::size_t last = size - kWordBytes;
  return LoadWord(left + last) == LoadWord(right + last);
}

}  // namespace

// Asked for every name of a list, as the three below are.
TRANCHE_INLINE uint32_t NodeNames::HashOf(std::string_view name) const {
  return static_cast<uint32_t>(HashText(name, seed_));
}

TRANCHE_INLINE std::size_t NodeNames::NextOf(uint32_t hash, std::size_t at) const {
  at &= mask_;
  while (slots_[at].id != kNoNode && slots_[at].hash != hash) at = (at + 1) & mask_;
  return at;
}

TRANCHE_INLINE bool NodeNames::IsNameOf(NodeId id, std::string_view name) const {
  const Line& line = lines_[id];
  if (line.size != SizeOf(name)) return false;
  if (!EqualBytes(line.start.data(), name.data(), std::min(name.size(), kInlineBytes)))
    return false;
  return name.size() <= kInlineBytes || names_[id].str() == name;
}

TRANCHE_INLINE NodeId NodeNames::FindFrom(std::size_t at, uint32_t hash,
                                          std::string_view name) const {
  for (at = NextOf(hash, at); slots_[at].id != kNoNode; at = NextOf(hash, at + 1)) {
    if (IsNameOf(slots_[at].id, name)) return slots_[at].id;
  }
  return kNoNode;
}

// The id with this hash in the first places it could be in, else any. Without a branch, for one
// that is foretold wrongly costs more than the look.
TRANCHE_INLINE NodeId NodeNames::GuessOf(uint32_t hash) const {
  const Slot& first = slots_[hash & mask_];
  const Slot& second = slots_[(hash + 1) & mask_];
  const Slot& third = slots_[(hash + 2) & mask_];
  NodeId id = third.id;
  id = second.hash == hash ? second.id : id;
  id = first.hash == hash ? first.id : id;
  return id == kNoNode ? NodeId{0} : id;
}

NodeId NodeNames::Find(std::string_view name) const {
  const uint32_t hash = HashOf(name);
  return FindFrom(hash, hash, name);
}

void NodeNames::FindAll(std::span<const std::string_view> names, std::vector<NodeId>& out) {
  BeginList();
  out.resize(names.size());
  std::array<uint32_t, kBlock> hashes;
  std::array<NodeId, kBlock> guesses;
  for (std::size_t begin = 0; begin < names.size(); begin += kBlock) {
    const auto block = names.subspan(begin, std::min(kBlock, names.size() - begin));
    for (std::size_t i = 0; i < block.size(); ++i) {
      hashes[i] = HashOf(block[i]);
      __builtin_prefetch(&slots_[hashes[i] & mask_]);
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      guesses[i] = GuessOf(hashes[i]);
      __builtin_prefetch(&lines_.data()[guesses[i]], /*write=*/1);
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      const bool guessed = guesses[i] < lines_.size() && IsNameOf(guesses[i], block[i]);
      NodeId id = guessed ? guesses[i] : FindFrom(hashes[i], hashes[i], block[i]);
      if (id != kNoNode && std::exchange(lines_[id].list, list_) == list_) id = kNamedBefore;
      out[begin + i] = id;
    }
  }
}

void NodeNames::BeginList() {
  if (++list_ != 0) return;
  for (Line& line : lines_) line.list = 0;
  list_ = 1;
}

NodeId NodeNames::Intern(const NodeName& name) {
  const std::string_view text = name.str();
  const uint32_t hash = HashOf(text);
  NodeId id = FindFrom(hash, hash, text);
  if (id != kNoNode) return id;
  if (free_.empty()) {
    id = NodeId{names_.size()};
    TRANCHE_CHECK(IsNode(id));
    names_.emplace_back();
    lines_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  names_[id] = name;
  Line& line = lines_[id];
  line.size = SizeOf(text);
  std::copy_n(text.begin(), std::min(text.size(), kInlineBytes), line.start.begin());
  if (2 * (names_.size() - free_.size()) > slots_.size()) Grow();
  Put({hash, id});
  ranks_stale_ = true;
  return id;
}

void NodeNames::Put(Slot slot) {
  std::size_t at = slot.hash & mask_;
  while (slots_[at].id != kNoNode) at = (at + 1) & mask_;
  slots_[at] = slot;
}

void NodeNames::Grow() {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.id != kNoNode) Put(slot);
  }
}

void NodeNames::Forget(NodeId id) {
  std::size_t hole = HashOf(names_[id].str()) & mask_;
  while (slots_[hole].id != id) hole = (hole + 1) & mask_;
  // Searches end at a free place, so what was put behind this one for want of it moves up.
  for (std::size_t at = (hole + 1) & mask_; slots_[at].id != kNoNode; at = (at + 1) & mask_) {
    const std::size_t moved = (at - slots_[at].hash) & mask_;
    if (moved < ((at - hole) & mask_)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = Slot();
  names_[id] = NodeName();
  lines_[id] = Line();
  free_.push_back(id);
  ranks_stale_ = true;
}

void NodeNames::RankAll() {
  order_.resize(names_.size());
  std::iota(order_.begin(), order_.end(), NodeId{0});
  std::ranges::sort(order_, [this](NodeId left, NodeId right) {
    return std::tie(names_[left], left) < std::tie(names_[right], right);
  });
  ranks_.resize(names_.size());
  for (uint32_t i = 0; i < order_.size(); ++i) ranks_[order_[i]] = i;
  ranks_stale_ = false;
}

}  // namespace tranche
