#include "test/fakes/agents/tkestack_agent.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

constexpr const char* kCore = "tencent.com/vcuda-core";
constexpr const char* kMemory = "tencent.com/vcuda-memory";
constexpr const char* kAssigned = "tencent.com/gpu-assigned";
constexpr const char* kTime = "tencent.com/predicate-time";
constexpr const char* kIndex = "tencent.com/predicate-gpu-idx-";
constexpr int64_t kWholeCard = 100;
constexpr int64_t kBlockMib = 256;
constexpr int kCardsOfASwitch = 2;

uint64_t TimeOf(const FakePod& pod) {
  return ReadNumber(pod.Note(kTime)).value_or(std::numeric_limits<uint64_t>::max());
}

bool Waits(const FakePod& pod) {
  return pod.phase == FakePhase::kPending && pod.Note(kAssigned) == "false";
}

}  // namespace

Service TkestackAgent::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  std::erase_if(records_, [this](const Record& record) {
    const std::optional<FakePod> pod = pods_.Pod(record.owner.uid);
    return !pod || pod->ended();
  });
  std::vector<FakePod> waiting = pods_.PodsOn(call.node);
  std::erase_if(waiting, [](const FakePod& pod) { return !Waits(pod); });
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const FakePod& a, const FakePod& b) { return TimeOf(a) < TimeOf(b); });
  const auto amount = static_cast<int64_t>(call.ids.size());
  for (const FakePod& pod : waiting) {
    int index = 0;
    for (const FakeContainer& container : pod.containers) {
      if (container.init) continue;
      const ContainerId owner{pod.uid, container.name};
      const bool served =
          std::any_of(records_.begin(), records_.end(),
                      [&owner](const Record& record) { return record.owner == owner; });
      if (!served && container.Limit(kCore) == amount) return Serve(pod, *node, container, index);
      ++index;
    }
  }
  return ServiceError("no pod waits for " + std::to_string(amount) + " of vcuda-core");
}

Service TkestackAgent::PreStart(const DeviceCall& call, const ContainerId& owner) {
  static_cast<void>(call);
  pods_.PatchAnnotations(owner.uid, {{kAssigned, "true"}});
  return {};
}

std::vector<TkestackAgent::CardState> TkestackAgent::Cards(const FakeNode& node) const {
  std::vector<CardState> cards;
  for (const FakeCard& card : node.cards) {
    cards.push_back({static_cast<int>(cards.size()), kWholeCard, card.memory_mib, 0});
  }
  for (const Record& record : records_) {
    if (record.node != node.name) continue;
    CardState& card = cards[static_cast<std::size_t>(record.grant.card)];
    card.free_cores -= record.grant.cores;
    card.free_memory -= record.grant.memory_mib;
    ++card.processes;
  }
  return cards;
}

int TkestackAgent::PickPart(const FakeNode& node, int64_t cores, int64_t memory_mib) const {
  std::vector<CardState> cards = Cards(node);
  std::sort(cards.begin(), cards.end(), [](const CardState& a, const CardState& b) {
    return std::tie(a.free_cores, a.free_memory, a.processes, a.minor) <
           std::tie(b.free_cores, b.free_memory, b.processes, b.minor);
  });
  for (const CardState& card : cards) {
    if (card.free_cores >= cores && card.free_memory >= memory_mib) return card.minor;
  }
  return -1;
}

std::vector<int> TkestackAgent::PickWhole(const FakeNode& node, std::size_t count) const {
  // Idle cards by the switch they are behind.
  std::vector<std::vector<int>> switches;
  for (const CardState& card : Cards(node)) {
    const auto place = static_cast<std::size_t>(card.minor / kCardsOfASwitch);
    if (place >= switches.size()) switches.resize(place + 1);
    if (card.processes == 0) switches[place].push_back(card.minor);
  }
  const auto fewer = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  // One card: where the fewest are idle. Several: close to each other.
  std::stable_sort(switches.begin(), switches.end(), fewer);
  if (count > 1) std::reverse(switches.begin(), switches.end());
  std::vector<int> picked;
  for (const std::vector<int>& idle : switches) {
    for (const int card : idle) {
      if (picked.size() < count) picked.push_back(card);
    }
  }
  if (picked.size() < count) picked.clear();
  std::sort(picked.begin(), picked.end());
  return picked;
}

Service TkestackAgent::Serve(const FakePod& pod, const FakeNode& node,
                             const FakeContainer& container, int index) {
  const std::string key = kIndex + std::to_string(index);
  const int64_t cores = container.Limit(kCore);
  const ContainerId owner{pod.uid, container.name};
  Service service;
  service.believed = owner;
  if (cores < kWholeCard) {
    const int64_t memory = container.Limit(kMemory) * kBlockMib;
    const int card = PickPart(node, cores, memory);
    if (card < 0) return ServiceError(pod.name + ": no card has room");
    if (pod.Note(key) != std::to_string(card)) {
      return ServiceError(pod.name + ": foretold card " + pod.Note(key) + ", chose " +
                          std::to_string(card));
    }
    service.grants = {{card, memory, cores}};
  } else {
    const std::vector<int> cards = PickWhole(node, static_cast<std::size_t>(cores / kWholeCard));
    if (cards.empty()) return ServiceError(pod.name + ": too few idle cards");
    std::string text;
    for (const int card : cards) {
      text += (text.empty() ? "" : ",") + std::to_string(card);
      service.grants.push_back(
          {card, node.cards[static_cast<std::size_t>(card)].memory_mib, kWholeCard});
    }
    if (pod.Note(key) != text) pods_.PatchAnnotations(pod.uid, {{key, text}});
  }
  for (const Grant& grant : service.grants) records_.push_back({owner, node.name, grant});
  return service;
}

}  // namespace tranche::fakes
