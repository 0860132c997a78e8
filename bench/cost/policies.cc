#include "bench/cost/policies.h"

#include <optional>
#include <tuple>
#include <utility>

namespace tranche::bench::cost {
namespace {

// By keys, the least of which wins; the first of equals.
class Listed final : public Policy {
 public:
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  using NodeKey = Key (*)(const Fleet&, const Node&);
  using OfferKey = Key (*)(const Pod&, const Offer&);

  Listed(NodeKey of_node, OfferKey of_offer) : of_node_(of_node), of_offer_(of_offer) {}

  absl::StatusOr<std::optional<Seat>> Place(const Fleet& fleet, const Pod& pod,
                                            int64_t /*now*/) override {
    std::optional<std::pair<Key, int>> best;
    for (const int id : fleet.open) {
      if (!fleet.Fits(pod, id)) continue;
      const Key key = of_node_(fleet, fleet.node(id));
      if (!best || key < best->first) best.emplace(key, id);
    }
    if (!best) return std::nullopt;
    return fleet.SeatOn(pod, best->second);
  }

  absl::StatusOr<std::optional<int>> Rent(const Fleet& fleet, const Pod& pod,
                                          int64_t /*now*/) override {
    std::optional<std::pair<Key, int>> best;
    for (int i = 0; i < static_cast<int>(fleet.offers->size()); ++i) {
      const Offer& offer = (*fleet.offers)[static_cast<std::size_t>(i)];
      if (!fleet.FitsEmpty(pod, offer)) continue;
      const Key key = of_offer_(pod, offer);
      if (!best || key < best->first) best.emplace(key, i);
    }
    return best ? std::optional(best->second) : std::nullopt;
  }

 private:
  NodeKey of_node_;
  OfferKey of_offer_;
};

Listed::Key CheapestNode(const Fleet& fleet, const Node& node) {
  return {fleet.offer(node).micros_per_gpu(), 0, 0};
}
Listed::Key CheapestGpu(const Pod&, const Offer& offer) {
  return {offer.micros_per_gpu(), offer.micros, 0};
}
Listed::Key CheapestMachine(const Pod&, const Offer& offer) {
  return {offer.micros, offer.micros_per_gpu(), 0};
}
Listed::Key FullestNode(const Fleet& fleet, const Node& node) {
  return {fleet.idle_milli(node), node.cpu, 0};
}
Listed::Key LeastWaste(const Pod& pod, const Offer& offer) {
  return {offer.gpus * kWholeMilli - pod.gpus * pod.milli, offer.cpu - pod.cpu, offer.micros};
}

}  // namespace

const std::vector<std::string_view>& PolicyNames() {
  static const std::vector<std::string_view> kNames = {"cheapest-first", "cheapest-machine",
                                                       "best-fit",       "tranche-no-money",
                                                       "tranche",        "tranche-declared"};
  return kNames;
}

std::unique_ptr<Policy> MakePolicy(std::string_view name, const std::vector<Task>& tasks,
                                   const std::vector<Offer>& offers, Told told) {
  if (name == "cheapest-first") return std::make_unique<Listed>(&CheapestNode, &CheapestGpu);
  if (name == "cheapest-machine") return std::make_unique<Listed>(&CheapestNode, &CheapestMachine);
  if (name == "best-fit") return std::make_unique<Listed>(&FullestNode, &LeastWaste);
  if (name == "tranche-no-money") {
    told.money_rate = 0;
  } else if (name == "tranche-declared") {
    told.runtimes = true;
  } else if (name != "tranche") {
    return nullptr;
  }
  return MakeEnginePolicy(told, tasks, offers);
}

}  // namespace tranche::bench::cost
