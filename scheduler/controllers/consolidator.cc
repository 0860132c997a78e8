#include "scheduler/controllers/consolidator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace tranche {
namespace {

using metrics::EmptyingOutcome;

constexpr const char* kHeld = "it is being emptied (GPUPolicy consolidate)";

int64_t Minutes(Millis time) {
  return std::chrono::duration_cast<std::chrono::minutes>(time).count();
}

const AdviceNode* Find(const AdviceCase& fleet, const NodeName& name) {
  const auto found = std::ranges::find(fleet.nodes, name, &AdviceNode::name);
  return found == fleet.nodes.end() ? nullptr : &*found;
}

std::string MovesText(const EmptiedNode& node) {
  constexpr std::size_t kNamed = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(node.moves.size(), kNamed); ++i) {
    const DefragMove& move = node.moves[i];
    text += fmt::format("{}{} to {}", i == 0 ? "" : ", ", move.pod.str(), move.to.str());
  }
  if (node.moves.size() > kNamed) text += fmt::format(" and {} more", node.moves.size() - kNamed);
  return text;
}

}  // namespace

Consolidator::Consolidator(ObjectWrites& objects, metrics::Metrics& metrics, Hooks hooks)
    : objects_(objects), metrics_(metrics), hooks_(std::move(hooks)) {}

void Consolidator::Tick(Instant now) {
  if (looked_ && now - *looked_ < kLookEvery) return;
  if (!hooks_.fresh()) return;
  looked_ = now;
  if (change_) return Watch(now);
  if (hooks_.wanted()) Choose(now);
}

void Consolidator::Choose(Instant now) {
  std::erase_if(let_go_, [now](const auto& entry) { return now - entry.second >= kNotAgain; });
  const AdviceCase fleet = hooks_.look();
  std::set<NodeName> apart;
  for (const auto& [node, when] : let_go_) apart.insert(node);
  for (const EmptiedNode& entry : PlanConsolidation(fleet, {}, apart)) {
    if (WaiterFor(fleet, *Find(fleet, entry.node), Millis(0)) != nullptr) continue;
    if (Begin(entry, now)) return;
  }
}

// False: a budget protects its work now.
bool Consolidator::Begin(const EmptiedNode& chosen, Instant now) {
  hooks_.hold(chosen.node, kHeld);
  if (!hooks_.empty(chosen.node)) {
    hooks_.hold(chosen.node, "");
    let_go_[chosen.node] = now;
    return false;
  }
  change_ = Change{chosen.node, now, std::nullopt};
  pending_ = 1;
  const std::string what = fmt::format(
      "it is emptied, as other nodes have room for its {} pod{}: {}; no new GPU pods "
      "come",
      chosen.moves.size(), chosen.moves.size() == 1 ? "" : "s", MovesText(chosen));
  spdlog::info("node {}: {}", chosen.node.str(), what);
  Tell(chosen.node, what, now);
  return true;
}

void Consolidator::Watch(Instant now) {
  const AdviceCase fleet = hooks_.look();
  const AdviceNode* const node = Find(fleet, change_->node);
  if (node == nullptr) return Settle(EmptyingOutcome::kGone, "the node is gone", now);
  if (!hooks_.wanted()) {
    return Settle(EmptyingOutcome::kGivenUp, "consolidate of the GPUPolicy is Off", now);
  }
  if (const AdviceWaiter* const waiter = WaiterFor(fleet, *node, kPatience)) {
    return Settle(EmptyingOutcome::kNeeded, waiter->name.str() + " waits for its GPUs", now);
  }
  GoOn(fleet, *node, now);
}

void Consolidator::GoOn(const AdviceCase& fleet, const AdviceNode& node, Instant now) {
  if (change_->empty) {
    if (now - *change_->empty < kKeptEmpty) return;
    return Settle(EmptyingOutcome::kKept, "it was empty for a while and nobody took it away", now);
  }
  if (NobodyHolds(fleet, node)) {
    change_->empty = now;
    hooks_.spare(node.name);
    const std::string what =
        fmt::format("it is empty, and kept so for {} minutes", Minutes(kKeptEmpty));
    spdlog::info("node {}: {}", node.name.str(), what);
    return Tell(node.name, what, now);
  }
  if (now - change_->begun >= kMostEmptying) {
    return Settle(EmptyingOutcome::kGivenUp,
                  fmt::format("it is not empty after {} minutes", Minutes(kMostEmptying)), now);
  }
  if (!PlanEmptying(fleet, node.name, EmptyFor::kConsolidation, {})) {
    return Settle(EmptyingOutcome::kGivenUp,
                  "not all of its work may be moved and has room elsewhere any more", now);
  }
  // What is borrowed, or has a checkpoint, may be other work by now.
  hooks_.empty(node.name);
}

void Consolidator::Settle(EmptyingOutcome outcome, const std::string& why, Instant now) {
  const NodeName node = change_->node;
  hooks_.spare(node);
  hooks_.hold(node, "");
  change_.reset();
  pending_ = 0;
  let_go_[node] = now;
  metrics_.CountEmptying(outcome);
  spdlog::info("node {}: no longer emptied: {}", node.str(), why);
  if (outcome != EmptyingOutcome::kGone) Tell(node, "it takes GPU pods again: " + why, now);
}

void Consolidator::Tell(const NodeName& node, const std::string& note, Instant now) {
  EventWrite event;
  event.kind = "Node";
  event.name = node.str();
  event.uid = node.str();  // by which kubectl describe finds events of a node
  event.reason = "Consolidation";
  event.action = "Emptying";
  event.note = note;
  event.when = now;
  objects_.Emit(std::move(event), [](const WriteResult& result) {
    if (result.kind == WriteResult::Kind::kDone) return;
    spdlog::debug("an event about a node could not be written: code {}: {}", result.http_code,
                  result.message);
  });
}

}  // namespace tranche
