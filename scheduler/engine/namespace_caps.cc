// ResourceQuotas of a cluster that comes from HAMi: asked at filter for the most a pod could take
// on a node, at bind for what it does take.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// Waiting pods brought back by one piece of news: the first of them to be bound is an event for
// the others. And how many are looked at for it.
constexpr int kMostPokes = 8;
constexpr int kMostLooks = 64;

bool Counts(const Holding& holding) {
  return holding.kind == HoldingKind::kReservation || holding.kind == HoldingKind::kAllocation;
}

// Never less than what it asks for wherever it runs: its devices may not be known.
CapAmount Held(const Holding& holding) {
  const CapAmount least = LeastOf(*holding.request);
  const CapAmount found = AmountOf(holding.picks);
  return {std::max(least.memory, found.memory), std::max(least.cores, found.cores)};
}

}  // namespace

bool Engine::Impl::CapsAllowLeast(const PodRequest& request) const {
  return !caps.Limits(request.name.ns) ||
         caps.Allows(request.uid, request.name.ns, LeastOf(request));
}

bool Engine::Impl::CapsRefuse(const Question& question, NodeId id) const {
  if (!question.capped) return false;
  const PodRequest& request = *question.request;
  return !caps.Allows(request.uid, request.name.ns, MostOn(nodes[id]->state.inventory(), request));
}

std::string Engine::Impl::DescribeCaps(const PodRequest& request, NodeId id) const {
  const CapAmount amount =
      id == kNoNode ? LeastOf(request) : MostOn(nodes[id]->state.inventory(), request);
  return caps.Describe(request.uid, request.name.ns, amount);
}

void Engine::Impl::NoteCapUse(NodeId id) {
  if (!options.namespace_caps || nodes[id] == nullptr) return;
  for (const Holding& holding : nodes[id]->state.holdings()) {
    if (Counts(holding)) caps.Use(holding.uid, holding.request->name.ns, Held(holding));
  }
}

void Engine::Impl::NoteCapRelease(const PodUid& uid, Instant now) {
  const std::string ns = caps.Release(uid);
  if (!ns.empty() && caps.Limits(ns)) PokeCapped(ns, now);
}

void Engine::Impl::PokeCapped(const std::string& ns, Instant now) {
  std::vector<PodUid> waiting;
  for (auto at = pods_by_name.lower_bound({PodName{ns, ""}, PodUid()});
       at != pods_by_name.end() && at->first.ns == ns; ++at) {
    const PodRecord& record = pods.at(at->second);
    if (!IsPending(record) || record.last_reason != Reason::kNamespaceQuota) continue;
    waiting.push_back(at->second);
    if (waiting.size() == kMostLooks) break;
  }
  int poked = 0;
  for (const PodUid& uid : waiting) {
    poked += PokeIfFits(uid, now);
    if (poked == kMostPokes) return;
  }
}

void Engine::Impl::AuditCaps(std::vector<std::string>& faults) const {
  if (!options.namespace_caps) return;
  std::map<std::string, CapAmount> used;
  for (const auto& entry : nodes) {
    if (entry == nullptr) continue;
    for (const Holding& holding : entry->state.holdings()) {
      if (!Counts(holding)) continue;
      const CapAmount held = Held(holding);
      CapAmount& sum = used[holding.request->name.ns];
      sum.memory += held.memory;
      sum.cores += held.cores;
    }
  }
  for (const CapRow& row : caps.Rows()) used.try_emplace(row.cap.ns);  // of what nobody holds
  for (const auto& [ns, sum] : used) {
    const CapAmount booked = caps.UsedBy(ns);
    if (booked == sum) continue;
    faults.push_back(
        fmt::format("namespace {} holds {} MiB and {} cores, but {} MiB and {} cores count for it",
                    ns, sum.memory.count(), sum.cores, booked.memory.count(), booked.cores));
  }
}

void Engine::SetNamespaceCap(NamespaceCap cap, Instant now) {
  impl_->Advance(now);
  if (!impl_->options.namespace_caps) return;
  const std::string ns = cap.ns;
  if (impl_->caps.Set(std::move(cap))) impl_->PokeCapped(ns, now);
}

void Engine::RemoveNamespaceCap(const std::string& ns, const std::string& name, Instant now) {
  impl_->Advance(now);
  if (impl_->caps.Remove(ns, name)) impl_->PokeCapped(ns, now);
}

std::vector<CapRow> Engine::NamespaceCapRows() const { return impl_->caps.Rows(); }

}  // namespace tranche
