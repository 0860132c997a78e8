#include "scheduler/engine/placeholders/placeholder_books.h"

#include <algorithm>

namespace tranche {
namespace {

void Soonest(std::optional<Instant>& due, Instant when) { due = due ? std::min(*due, when) : when; }

}  // namespace

void PlaceholderBooks::Ordered(const PodName& name, const NodeName& node, int card, Instant now) {
  Placeholder& pod = nodes_[node].placeholders[name.name];
  pod.card = card;
  pod.since = now;
  ordered_.emplace(name.name, node);
}

void PlaceholderBooks::NotMade(const PodName& name, Instant now) {
  const auto found = ordered_.find(name.name);
  if (found == ordered_.end()) return;  // it is there after all
  Place& place = nodes_.at(found->second);
  place.placeholders.erase(name.name);
  Pause(place, now);
  ordered_.erase(found);
}

void PlaceholderBooks::See(const PlaceholderSighting& sighting, Instant now) {
  Place& place = nodes_[sighting.node];
  const auto [at, fresh] = place.placeholders.try_emplace(sighting.name.name);
  Placeholder& pod = at->second;
  if (fresh) pod.since = now;
  ordered_.erase(sighting.name.name);
  names_[sighting.uid] = {sighting.node, sighting.name.name};
  const bool failed = sighting.ended && !pod.ended && !pod.leaving;
  pod.uid = sighting.uid;
  pod.card = sighting.card;
  pod.told = sighting.told;
  pod.leaving |= sighting.leaving;
  pod.ended |= sighting.ended;
  if (failed && complete_) Pause(place, now);
}

std::optional<NodeName> PlaceholderBooks::Gone(const PodUid& uid) {
  const auto found = names_.find(uid);
  if (found == names_.end()) return std::nullopt;
  const auto [node, name] = found->second;
  names_.erase(found);
  nodes_.at(node).placeholders.erase(name);
  return node;
}

void PlaceholderBooks::Complete(Instant now) {
  complete_ = true;
  for (auto& [node, place] : nodes_) {
    for (auto& [name, pod] : place.placeholders) pod.stays = now + times_.linger;
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

void PlaceholderBooks::End(const std::string& name, Placeholder& pod, Instant now) {
  pod.leaving = true;
  pod.asked = now;
  ends_.push_back({{kPlaceholderNamespace, name}, pod.uid});
}

// Those that may be followed, one a card: the one that has told its card, else the oldest.
// `blocked`: cards whose placeholder is on its way out and still holds what it was given.
std::map<int, std::string> PlaceholderBooks::LiveOf(Place& place, std::set<int>& blocked,
                                                    Instant now) {
  std::map<int, std::string> live;
  for (auto& [name, pod] : place.placeholders) {
    if (pod.ended || pod.leaving) {
      if (!pod.ended) blocked.insert(pod.card);
      if (!pod.asked || now - *pod.asked >= times_.again) End(name, pod, now);
      continue;
    }
    const auto [at, first] = live.try_emplace(pod.card, name);
    if (first && pod.card >= 0) continue;
    Placeholder& other = place.placeholders.at(at->second);
    if (pod.card < 0 || !other.told.empty() || pod.told.empty()) {
      End(name, pod, now);
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
    for (const auto& [name, pod] : nodes_.at(node).placeholders) {
      if (!pod.ended) answer.roles.emplace_back(pod.uid, PlaceholderRole::kLingering);
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
    Placeholder* pod = found == live.end() ? nullptr : &place.placeholders.at(found->second);
    const bool held =
        pod != nullptr && !pod->told.empty() && (card.uuid.empty() || card.uuid == pod->told);
    if (!card.uuid.empty() && !held) answer.unkept = card;
    if (held) {
      answer.told.emplace_back(card.card, pod->told);
      place.failures = 0;
    } else if (pod == nullptr) {
      // A new one would be given another card while the old one is not gone.
      const bool now_possible = !blocked.contains(card.card) && !place.paused_until;
      (now_possible ? answer.orders : answer.refused).push_back(card.card);
    } else if (!pod->told.empty() || now - pod->since >= times_.patience) {
      End(found->second, *pod, now);
      Pause(place, now);
      answer.refused.push_back(card.card);
    } else {
      Soonest(answer.due, pod->since + times_.patience);
    }
    if (found != live.end()) live.erase(found);
  }
  for (const auto& [card, name] : live) {
    Placeholder& pod = place.placeholders.at(name);
    if (!certain || (pod.stays && now < *pod.stays)) {
      lingering.insert(pod.uid);
      if (certain) Soonest(answer.due, *pod.stays);
    } else {
      End(name, pod, now);
    }
  }
  for (auto at = place.placeholders.begin(); at != place.placeholders.end();) {
    Placeholder& pod = at->second;
    if (pod.leaving && pod.uid.empty()) {
      // Should it have been made and be seen later, it is one that nobody follows.
      ordered_.erase(at->first);
      at = place.placeholders.erase(at);
      continue;
    }
    if (pod.asked) Soonest(answer.due, *pod.asked + times_.again);
    if (!pod.ended && !pod.uid.empty()) {
      const PlaceholderRole role = pod.leaving                   ? PlaceholderRole::kLeaving
                                   : lingering.contains(pod.uid) ? PlaceholderRole::kLingering
                                                                 : PlaceholderRole::kOpen;
      answer.roles.emplace_back(pod.uid, role);
    }
    ++at;
  }
  answer.paused = place.paused_until.has_value();
  if (answer.paused) Soonest(answer.due, *place.paused_until);
  const bool idle = place.placeholders.empty() && !place.paused_until && place.failures == 0;
  if (idle) nodes_.erase(node);
  return answer;
}

}  // namespace tranche
