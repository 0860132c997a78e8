// Interned node states: nodes of equal signature share one small number.
//
// A fleet of thousands of nodes is in a few hundred different states, so verdicts are kept by
// state and not by node (ADR 0001). A state nobody is in any more stays known for a while, because
// clusters go back to states they were in; when more than `spare` are idle the longest idle slot
// is used again under a new generation.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/base/ids.h"

namespace tranche {

using StateId = Index<struct StateIdTag>;
inline constexpr StateId kNoState{UINT32_MAX};

class StateTable {
 public:
  explicit StateTable(std::size_t spare = 16'384) : spare_(spare) {}

  // The id of the state with this signature; counts one user. Cost: one hash of the signature.
  StateId Acquire(const std::string& signature) {
    const auto found = ids_.find(signature);
    if (found != ids_.end()) {
      Slot& slot = slots_[found->second];
      if (slot.users++ == 0) --idle_;
      return found->second;
    }
    const StateId id = TakeSlot();
    Slot& slot = slots_[id];
    slot.users = 1;
    slot.signature = &ids_.emplace(signature, id).first->first;
    return id;
  }

  void Release(StateId id) {
    if (id == kNoState) return;
    Slot& slot = slots_[id];
    if (--slot.users > 0) return;
    ++idle_;
    idle_order_.emplace_back(id, generations_[id]);
    if (idle_order_.size() > kMostOrders * (slots_.size() + kMostOrders)) ForgetOvertaken();
  }

  // Changes whenever the id comes to mean another state; never 0.
  uint32_t generation(StateId id) const { return generations_[id]; }
  std::size_t size() const { return slots_.size(); }
  // Places in the order of idleness, overtaken ones included.
  std::size_t orders() const { return idle_order_.size(); }

 private:
  struct Slot {
    uint32_t users = 0;
    const std::string* signature = nullptr;  // owned by ids_
  };

  StateId TakeSlot() {
    while (idle_ > spare_ && !idle_order_.empty()) {
      const auto [id, generation] = idle_order_.front();
      idle_order_.pop_front();
      Slot& slot = slots_[id];
      // A slot that was used again since is in the queue once more, further back.
      if (slot.users > 0 || generations_[id] != generation) continue;
      ids_.erase(*slot.signature);
      ++generations_[id];
      --idle_;
      return id;
    }
    slots_.push_back({});
    generations_.push_back(1);
    return StateId{slots_.size() - 1};
  }

  // Keeps the newest place of each slot that is idle. Amortised: a step a Release.
  void ForgetOvertaken() {
    std::vector<bool> kept(slots_.size());
    std::deque<std::pair<StateId, uint32_t>> order;
    for (auto at = idle_order_.rbegin(); at != idle_order_.rend(); ++at) {
      const auto [id, generation] = *at;
      if (slots_[id].users > 0 || generations_[id] != generation || kept[id]) continue;
      kept[id] = true;
      order.push_front(*at);
    }
    idle_order_ = std::move(order);
  }

  static constexpr std::size_t kMostOrders = 4;  // for each slot, on average

  std::size_t spare_;
  std::size_t idle_ = 0;
  std::vector<Slot> slots_;
  // By slot; on their own, for they are read for every candidate.
  std::vector<uint32_t> generations_;
  std::unordered_map<std::string, StateId> ids_;  // looked up, never iterated
  std::deque<std::pair<StateId, uint32_t>> idle_order_;
};

}  // namespace tranche
