#include "test/fakes/agents/elastic_agent.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

constexpr int64_t kWholeCard = 100;

// The name of the ids, whatever their order.
std::string HashOf(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  std::string all;
  for (const std::string& id : ids) all += id + ":";
  return std::to_string(std::hash<std::string>()(all));
}

}  // namespace

Service ElasticAgent::Allocate(const DeviceCall& call) {
  Service service;
  service.env["GPU"] = HashOf(call.ids);
  return service;
}

Service ElasticAgent::PreStart(const DeviceCall& call, const ContainerId& owner) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  const std::optional<FakePod> pod = pods_.Pod(owner.uid);
  if (!node || !pod) return ServiceError("nobody owns " + HashOf(call.ids));
  const std::string key = "elasticgpu.io/container-" + owner.container;
  if (pod->Note("elasticgpu.io/assumed") != "true") {
    return ServiceError(pod->name + ": was not assumed");
  }
  const auto cards = ReadCards(pod->Note(key), *node);
  if (!cards) return ServiceError(pod->name + ": no cards in " + key);
  const auto amount = static_cast<int64_t>(call.ids.size());
  const bool whole = call.resource == "elasticgpu.io/gpu-core" && amount >= kWholeCard;
  if (cards->size() != (whole ? static_cast<std::size_t>(amount / kWholeCard) : 1)) {
    return ServiceError(pod->name + ": another number of cards than asked for");
  }
  Service service;
  service.believed = owner;
  for (const int card : *cards) {
    const FakeCard& hardware = node->cards[static_cast<std::size_t>(card)];
    if (whole) {
      service.grants.push_back({card, hardware.memory_mib, kWholeCard});
    } else if (call.resource == "elasticgpu.io/gpu-core") {
      service.grants.push_back({card, 0, amount});
    } else {
      service.grants.push_back({card, amount, 0});
    }
  }
  return service;
}

}  // namespace tranche::fakes
