#include "scheduler/index/namespace_caps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/index/eligibility.h"

namespace tranche {
namespace {

constexpr int64_t kMilliPerPercent = 10;
constexpr int64_t kMostCapUnits = 1'000'000;  // far beyond any node; keeps sums small

int64_t CoresOf(MilliGpu milli) {
  return (milli.count() + kMilliPerPercent - 1) / kMilliPerPercent;
}

void Add(CapAmount& sum, const CapAmount& one, int64_t times) {
  sum.memory = sum.memory + one.memory * times;
  sum.cores += one.cores * times;
}

bool Fits(const NamespaceCap& cap, const CapAmount& used, const CapAmount& more) {
  const bool memory = !cap.memory || used.memory + more.memory <= *cap.memory;
  const bool cores = !cap.cores || used.cores + more.cores <= *cap.cores;
  return memory && cores;
}

// The most one unit of the ask takes of a card of the node.
CapAmount UnitOn(const Inventory& inventory, const PodRequest& request, const Ask& ask) {
  if (const int pool = PoolFor(inventory, ask); pool >= 0) {
    const MigPool& instances = inventory.pools[static_cast<std::size_t>(pool)];
    return {instances.memory, CoresOf(instances.milli)};
  }
  CapAmount most;
  for (const Card& card : inventory.cards) {
    if (!IsRightKind(inventory, ask, card) || !MatchesModels(request, card)) continue;
    const CardNeed need = NeedOn(inventory, ask, card);
    most.memory = std::max(most.memory, need.memory);
    most.cores = std::max(most.cores, CoresOf(need.milli));
  }
  return most;
}

}  // namespace

bool NamespaceCaps::Set(NamespaceCap cap) {
  if (!cap.memory && !cap.cores) return Remove({cap.ns, cap.name});
  auto& of_namespace = caps_[cap.ns];
  const auto [at, fresh] = of_namespace.try_emplace(cap.name, cap);
  if (!fresh && at->second == cap) return false;
  at->second = std::move(cap);
  return true;
}

bool NamespaceCaps::Remove(const NamespacedName& cap) {
  const auto found = caps_.find(cap.ns);
  if (found == caps_.end() || found->second.erase(cap.name) == 0) return false;
  if (found->second.empty()) caps_.erase(found);
  return true;
}

void NamespaceCaps::Use(const PodUid& uid, const std::string& ns, const CapAmount& amount) {
  Release(uid);
  held_[uid] = {ns, amount};
  Add(used_[ns], amount, 1);
}

std::string NamespaceCaps::Release(const PodUid& uid) {
  const auto found = held_.find(uid);
  if (found == held_.end()) return "";
  std::string ns = std::move(found->second.ns);
  CapAmount& used = used_[ns];  // not there: all who are left hold nothing
  Add(used, found->second.amount, -1);
  if (used == CapAmount{}) used_.erase(ns);
  held_.erase(found);
  return ns;
}

CapAmount NamespaceCaps::UsedBy(const std::string& ns) const {
  const auto found = used_.find(ns);
  return found == used_.end() ? CapAmount{} : found->second;
}

CapAmount NamespaceCaps::Others(const PodUid& uid, const std::string& ns) const {
  CapAmount used = UsedBy(ns);
  const auto own = held_.find(uid);
  if (own != held_.end() && own->second.ns == ns) Add(used, own->second.amount, -1);
  return used;
}

bool NamespaceCaps::Allows(const PodUid& uid, const std::string& ns,
                           const CapAmount& amount) const {
  const auto found = caps_.find(ns);
  if (found == caps_.end()) return true;
  const CapAmount used = Others(uid, ns);
  return std::ranges::all_of(found->second,
                             [&](const auto& entry) { return Fits(entry.second, used, amount); });
}

std::string NamespaceCaps::Describe(const PodUid& uid, const std::string& ns,
                                    const CapAmount& amount) const {
  const auto found = caps_.find(ns);
  if (found == caps_.end()) return "";
  const CapAmount used = Others(uid, ns);
  for (const auto& [name, cap] : found->second) {
    if (cap.memory && used.memory + amount.memory > *cap.memory) {
      return fmt::format(
          "ResourceQuota {}/{} allows {} MiB of GPU memory; {} MiB are in use, the pod asks for {} "
          "MiB",
          ns, name, cap.memory->count(), used.memory.count(), amount.memory.count());
    }
    if (cap.cores && used.cores + amount.cores > *cap.cores) {
      return fmt::format(
          "ResourceQuota {}/{} allows {} GPU cores; {} are in use, the pod asks for {}", ns, name,
          *cap.cores, used.cores, amount.cores);
    }
  }
  return "";
}

std::vector<CapRow> NamespaceCaps::Rows() const {
  std::vector<CapRow> rows;
  for (const auto& [ns, of_namespace] : caps_) {
    for (const auto& [name, cap] : of_namespace) rows.push_back({cap, UsedBy(ns)});
  }
  return rows;
}

CapAmount LeastOf(const PodRequest& request) {
  CapAmount least;
  for (const Ask& ask : request.asks) {
    if (ask.resource != Resource::kShare) continue;
    CapAmount unit{Mebibytes::Zero(), CoresOf(ask.compute)};
    if (ask.memory.kind == MemoryNeed::Kind::kMib) unit.memory = Mebibytes::Of(ask.memory.value);
    Add(least, unit, std::min(ask.count, kMostCapUnits));
  }
  return least;
}

CapAmount MostOn(const Inventory& inventory, const PodRequest& request) {
  CapAmount most;
  for (const Ask& ask : request.asks) {
    Add(most, UnitOn(inventory, request, ask), std::min(ask.count, kMostCapUnits));
  }
  return most;
}

CapAmount AmountOf(const Picks& picks) {
  CapAmount sum;
  for (const Pick& pick : picks) Add(sum, {pick.memory, CoresOf(pick.milli)}, 1);
  return sum;
}

}  // namespace tranche
