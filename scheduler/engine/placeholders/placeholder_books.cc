#include "scheduler/engine/placeholders/placeholder_books.h"

#include <algorithm>

namespace tranche {
namespace {

void Soonest(std::optional<Instant>& due, Instant when) { due = due ? std::min(*due, when) : when; }

}  // namespace

void PlaceholderBooks::Ordered(const PodName& name, const NodeName& node, int card, Instant now) {
  Keeper& keeper = nodes_[node].keepers[name.name];
  keeper.card = card;
  keeper.since = now;
  ordered_.emplace(name.name, node);
}

void PlaceholderBooks::NotMade(const PodName& name, Instant now) {
  const auto found = ordered_.find(name.name);
  if (found == ordered_.end()) return;  // it is there after all
  Place& place = nodes_.at(found->second);
  place.keepers.erase(name.name);
  Pause(place, now);
  ordered_.erase(found);
}

void PlaceholderBooks::See(const PlaceholderSighting& sighting, Instant now) {
  Place& place = nodes_[sighting.node];
  const auto [at, fresh] = place.keepers.try_emplace(sighting.name.name);
  Keeper& keeper = at->second;
  if (fresh) keeper.since = now;
  ordered_.erase(sighting.name.name);
  names_[sighting.uid] = {sighting.node, sighting.name.name};
  const bool failed = sighting.ended && !keeper.ended && !keeper.leaving;
  keeper.uid = sighting.uid;
  keeper.card = sighting.card;
  keeper.told = sighting.told;
  keeper.leaving |= sighting.leaving;
  keeper.ended |= sighting.ended;
  if (failed && complete_) Pause(place, now);
}

std::optional<NodeName> PlaceholderBooks::Gone(const PodUid& uid) {
  const auto found = names_.find(uid);
  if (found == names_.end()) return std::nullopt;
  const auto [node, name] = found->second;
  names_.erase(found);
  nodes_.at(node).keepers.erase(name);
  return node;
}

void PlaceholderBooks::Complete(Instant now) {
  complete_ = true;
  for (auto& [node, place] : nodes_) {
    for (auto& [name, keeper] : place.keepers) keeper.stays = now + times_.linger;
  }
}

std::vector<NodeName> PlaceholderBooks::Nodes() const {
  std::vector<NodeName> nodes;
  for (const auto& [node, place] : nodes_) nodes.push_back(node);
  return nodes;
}

void PlaceholderBooks::Pause(Place& place, Instant now) {
  constexpr int kMostDoublings = 10;
  const int doublings = std::min(place.failures++, kMostDoublings);
  place.paused_until =
      now + std::min(times_.pause_first * (int64_t{1} << doublings), times_.pause_most);
}

void PlaceholderBooks::End(const std::string& name, Keeper& keeper, Instant now) {
  keeper.leaving = true;
  keeper.asked = now;
  ends_.push_back({{kKeeperNamespace, name}, keeper.uid});
}

// Those that may be followed, one a card: the one that has told its card, else the oldest.
// `blocked`: cards whose keeper is on its way out and still holds what it was given.
std::map<int, std::string> PlaceholderBooks::LiveOf(Place& place, std::set<int>& blocked,
                                                    Instant now) {
  std::map<int, std::string> live;
  for (auto& [name, keeper] : place.keepers) {
    if (keeper.ended || keeper.leaving) {
      if (!keeper.ended) blocked.insert(keeper.card);
      if (!keeper.asked || now - *keeper.asked >= times_.again) End(name, keeper, now);
      continue;
    }
    const auto [at, first] = live.try_emplace(keeper.card, name);
    if (first && keeper.card >= 0) continue;
    Keeper& other = place.keepers.at(at->second);
    if (keeper.card < 0 || !other.told.empty() || keeper.told.empty()) {
      End(name, keeper, now);
    } else {
      End(at->second, other, now);
      at->second = name;
    }
  }
  live.erase(-1);
  return live;
}

PlaceholderAnswer PlaceholderBooks::Tend(const NodeName& node, const FollowedCards& followed,
                                         bool certain, Instant now) {
  PlaceholderAnswer answer;
  if (!complete_) {
    // Their sharing pods may not have been seen yet.
    if (!On(node)) return answer;
    for (const auto& [name, keeper] : nodes_.at(node).keepers) {
      if (!keeper.ended) answer.roles.emplace_back(keeper.uid, KeeperRole::kLingering);
    }
    return answer;
  }
  Place& place = nodes_[node];
  if (place.paused_until && *place.paused_until <= now) place.paused_until.reset();
  std::set<int> blocked;
  std::map<int, std::string> live = LiveOf(place, blocked, now);
  std::set<PodUid> lingering;
  for (const FollowedCard& card : followed) {
    const auto found = live.find(card.card);
    Keeper* keeper = found == live.end() ? nullptr : &place.keepers.at(found->second);
    const bool held = keeper != nullptr && !keeper->told.empty() &&
                      (card.uuid.empty() || card.uuid == keeper->told);
    if (!card.uuid.empty() && !held) answer.unkept = card;
    if (held) {
      answer.told.emplace_back(card.card, keeper->told);
      place.failures = 0;
    } else if (keeper == nullptr) {
      // A new one would be given another card while the old one is not gone.
      const bool now_possible = !blocked.contains(card.card) && !place.paused_until;
      (now_possible ? answer.orders : answer.refused).push_back(card.card);
    } else if (!keeper->told.empty() || now - keeper->since >= times_.patience) {
      End(found->second, *keeper, now);
      Pause(place, now);
      answer.refused.push_back(card.card);
    } else {
      Soonest(answer.due, keeper->since + times_.patience);
    }
    if (found != live.end()) live.erase(found);
  }
  for (const auto& [card, name] : live) {
    Keeper& keeper = place.keepers.at(name);
    if (!certain || (keeper.stays && now < *keeper.stays)) {
      lingering.insert(keeper.uid);
      if (certain) Soonest(answer.due, *keeper.stays);
    } else {
      End(name, keeper, now);
    }
  }
  for (auto at = place.keepers.begin(); at != place.keepers.end();) {
    Keeper& keeper = at->second;
    if (keeper.leaving && keeper.uid.empty()) {
      // Should it have been made and be seen later, it is one that nobody follows.
      ordered_.erase(at->first);
      at = place.keepers.erase(at);
      continue;
    }
    if (keeper.asked) Soonest(answer.due, *keeper.asked + times_.again);
    if (!keeper.ended && !keeper.uid.empty()) {
      const KeeperRole role = keeper.leaving                   ? KeeperRole::kLeaving
                              : lingering.contains(keeper.uid) ? KeeperRole::kLingering
                                                               : KeeperRole::kOpen;
      answer.roles.emplace_back(keeper.uid, role);
    }
    ++at;
  }
  answer.paused = place.paused_until.has_value();
  if (answer.paused) Soonest(answer.due, *place.paused_until);
  const bool idle = place.keepers.empty() && !place.paused_until && place.failures == 0;
  if (idle) nodes_.erase(node);
  return answer;
}

}  // namespace tranche
