#include "bench/gang/policies.h"

#include <memory>
#include <utility>

#include "bench/fill/draws.h"

namespace tranche::bench {
namespace {

using Nodes = std::vector<std::size_t>;

// `choose` gets the nodes that have room for one member, in order; there is one.
GangPolicy MemberByMember(
    std::function<std::size_t(const GangCluster& cluster, const Nodes& fitting)> choose) {
  return [choose = std::move(choose)](GangCluster& cluster, int members) -> std::optional<Nodes> {
    cluster.Reset();
    Nodes chosen;
    Nodes fitting;
    for (int member = 0; member < members; ++member) {
      fitting.clear();
      for (std::size_t node = 0; node < cluster.size(); ++node) {
        if (cluster.left(node) >= cluster.gpus()) fitting.push_back(node);
      }
      if (fitting.empty()) return std::nullopt;
      chosen.push_back(choose(cluster, fitting));
      cluster.Take(chosen.back(), 0, 1);
    }
    return chosen;
  };
}

std::size_t Fullest(const GangCluster& cluster, const Nodes& fitting) {
  std::size_t fullest = fitting.front();
  for (const std::size_t node : fitting) {
    if (cluster.left(node) < cluster.left(fullest)) fullest = node;
  }
  return fullest;
}

std::optional<Nodes> Planned(GangCluster& cluster, int members) {
  GangQuestion question;
  question.nodes = cluster.nodes();
  for (int rank = 0; rank < members; ++rank) question.members.push_back({.kind = 0, .rank = rank});
  std::optional<GangPlan> plan = PlanGang(question, cluster);
  if (!plan) return std::nullopt;
  return std::move(plan->node_of);
}

}  // namespace

std::optional<GangPolicy> MakeGangPolicy(const std::string& name, uint64_t seed) {
  if (name == "first-fit") {
    return MemberByMember([](const GangCluster&, const Nodes& fitting) { return fitting.front(); });
  }
  if (name == "random") {
    return MemberByMember(
        [draws = std::make_shared<fill::Draws>(seed)](const GangCluster&, const Nodes& fitting) {
          return fitting[draws->Index(fitting.size())];
        });
  }
  if (name == "binpack") return MemberByMember(Fullest);
  if (name == "tranche") return Planned;
  return std::nullopt;
}

}  // namespace tranche::bench
