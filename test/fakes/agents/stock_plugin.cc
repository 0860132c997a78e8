#include "test/fakes/agents/stock_plugin.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace tranche::fakes {
namespace {

constexpr const char* kResource = "nvidia.com/gpu";
constexpr const char* kVisible = "NVIDIA_VISIBLE_DEVICES";
constexpr int64_t kAllCores = 100;

// What the container's environment says; nullopt: nothing.
std::optional<std::string> Sees(const FakePod& pod, const FakeContainer& container) {
  const auto from = container.env_from.find(kVisible);
  if (from == container.env_from.end()) return std::nullopt;
  return pod.Note(from->second);
}

}  // namespace

StockPlugin::StockPlugin(FakePods& pods, uint64_t seed) : pods_(pods), random_(seed) {
  pods_.Watch([this](const FakePod& pod, bool gone) {
    if (!gone || pod.told.empty()) return;
    for (const FakePod& other : pods_.PodsOn(pod.node)) {
      if (other.ended() || other.deleting) continue;
      early_ends_ += std::any_of(
          other.containers.begin(), other.containers.end(),
          [&](const FakeContainer& container) { return Sees(other, container) == pod.told; });
    }
  });
}

const std::map<std::string, int>& StockPlugin::CardsOf(const FakeNode& node) {
  std::map<std::string, int>& cards = cards_[node.name];
  if (!cards.empty()) return cards;
  std::vector<int> order(node.cards.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  for (std::size_t i = 0; i < order.size(); ++i) {
    cards[node.name + "/" + kResource + "/" + std::to_string(i)] = order[i];
  }
  return cards;
}

Service StockPlugin::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  Service service;
  std::string visible;
  for (const std::string& id : call.ids) {
    const auto card = CardsOf(*node).find(id);
    if (card == CardsOf(*node).end()) return ServiceError("no device " + id);
    const FakeCard& given = node->cards[static_cast<std::size_t>(card->second)];
    service.grants.push_back({card->second, given.memory_mib, kAllCores});
    visible += (visible.empty() ? "" : ",") + given.uuid;
  }
  service.env[kVisible] = visible;
  return service;
}

Service StockPlugin::Hook(const std::string& node, const ContainerId& owner) {
  const std::optional<FakeNode> here = pods_.Node(node);
  const std::optional<FakePod> pod = pods_.Pod(owner.uid);
  if (!here || !pod) return ServiceError("no pod " + owner.uid);
  const auto container =
      std::find_if(pod->containers.begin(), pod->containers.end(),
                   [&](const FakeContainer& one) { return one.name == owner.container; });
  if (container == pod->containers.end()) return ServiceError("no container " + owner.container);
  const std::optional<std::string> seen = Sees(*pod, *container);
  if (!seen) return {};
  const int card = here->CardOf(*seen);
  if (card < 0)
    return ServiceError(pod->name + " sees '" + *seen + "', which is no card of " + node);
  const std::vector<FakePod> others = pods_.PodsOn(node);
  const bool held = std::any_of(others.begin(), others.end(), [&](const FakePod& other) {
    return other.told == *seen && !other.ended() && !other.deleting;
  });
  if (!held) return ServiceError(pod->name + " sees " + *seen + ", which nobody holds for it");
  const int64_t milli =
      std::lround(std::strtod(pod->Note("tranche.dev/gpu-fraction").c_str(), nullptr) * 1000);
  const FakeCard& given = here->cards[static_cast<std::size_t>(card)];
  Service service;
  service.believed = owner;
  service.grants.push_back({card, given.memory_mib * milli / 1000, milli / 10});
  return service;
}

}  // namespace tranche::fakes
