#include "scheduler/engine/state/agent_queues.h"

#include <algorithm>

#include "topology/base/mark.h"
#include "topology/base/plant.h"

namespace tranche {

void AgentQueues::Serve(const Key& key, Line& line, const PodUid& uid, Instant since) {
  line.serving.emplace(uid, since);
  of_pod_.emplace(uid, key);
  ends_.emplace(since + patience_, uid);
}

void AgentQueues::Next(const Key& key, Instant now) {
  const auto found = lines_.find(key);
  Line& line = found->second;
  if (line.serving.empty() && !line.waiting.empty()) {
    const PodUid uid = line.waiting.front();
    line.waiting.pop_front();
    --waiting_;
    of_pod_.erase(uid);
    Serve(key, line, uid, now);
    turns_.push_back({uid, true});
  }
  if (line.serving.empty() && line.waiting.empty()) lines_.erase(found);
}

bool AgentQueues::Enter(const NodeName& node, int64_t slot, const PodUid& uid, Instant now) {
  const Key key{node, slot};
  if (const auto known = of_pod_.find(uid); known != of_pod_.end()) {
    if (known->second == key) return lines_.at(key).serving.contains(uid);
    Leave(uid, now);
  }
  Line& line = lines_[key];
  if (line.serving.empty() || TRANCHE_PLANTED(agents_serve_two_at_once)) {
    Serve(key, line, uid, now);
    return true;
  }
  line.waiting.push_back(uid);
  of_pod_.emplace(uid, key);
  ++waiting_;
  return false;
}

void AgentQueues::NoteServing(const NodeName& node, int64_t slot, const PodUid& uid, Instant since,
                              Instant now) {
  const Key key{node, slot};
  if (const auto known = of_pod_.find(uid); known != of_pod_.end()) {
    if (known->second == key && lines_.at(key).serving.contains(uid)) return;
    Leave(uid, now);
  }
  if (since + patience_ <= now) return;
  Serve(key, lines_[key], uid, since);
}

void AgentQueues::Leave(const PodUid& uid, Instant now) {
  const auto known = of_pod_.find(uid);
  if (known == of_pod_.end()) return;
  const Key key = known->second;
  of_pod_.erase(known);
  Line& line = lines_.at(key);
  if (const auto served = line.serving.find(uid); served != line.serving.end()) {
    ends_.erase({served->second + patience_, uid});
    line.serving.erase(served);
  } else {
    line.waiting.erase(std::find(line.waiting.begin(), line.waiting.end(), uid));
    --waiting_;
    turns_.push_back({uid, false});
  }
  Next(key, now);
}

void AgentQueues::Close(const NodeName& node) {
  for (auto at = lines_.lower_bound({node, INT64_MIN});
       at != lines_.end() && at->first.first == node;) {
    Line& line = at->second;
    if (!line.waiting.empty()) TRANCHE_MARK(agent_line_sent_away);
    for (const PodUid& uid : line.waiting) {
      of_pod_.erase(uid);
      turns_.push_back({uid, false});
    }
    waiting_ -= static_cast<int64_t>(line.waiting.size());
    line.waiting.clear();
    at = line.serving.empty() ? lines_.erase(at) : std::next(at);
  }
}

void AgentQueues::Advance(Instant now) {
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const PodUid uid = ends_.begin()->second;
    TRANCHE_MARK(agent_passed_over);
    ++passed_over_;
    Leave(uid, now);
  }
}

std::optional<Instant> AgentQueues::Due() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

std::optional<int64_t> AgentQueues::Ahead(const PodUid& uid) const {
  const auto known = of_pod_.find(uid);
  if (known == of_pod_.end()) return std::nullopt;
  const Line& line = lines_.at(known->second);
  const auto at = std::find(line.waiting.begin(), line.waiting.end(), uid);
  if (at == line.waiting.end()) return std::nullopt;
  return static_cast<int64_t>(line.serving.size()) + (at - line.waiting.begin());
}

std::vector<PodUid> AgentQueues::Known() const {
  std::vector<PodUid> known;
  for (const auto& [uid, key] : of_pod_) known.push_back(uid);
  return known;
}

}  // namespace tranche
