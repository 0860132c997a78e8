#include "scheduler/engine/teams/namespace_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tranche {
namespace {

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

bool NamespaceUse::CapsAllowLeast(const PodRequest& request) const {
  return !caps.Limits(request.name.ns) ||
         caps.Allows(request.uid, request.name.ns, LeastOf(request));
}

bool NamespaceUse::CapsRefuse(const RequestContext& context, NodeId id) const {
  if (!context.capped) return false;
  const PodRequest& request = *context.request;
  return !caps.Allows(request.uid, request.name.ns,
                      MostOn(state_.nodes[id]->state.inventory(), request));
}

std::string NamespaceUse::DescribeCaps(const PodRequest& request, NodeId id) const {
  const CapAmount amount =
      id == kNoNode ? LeastOf(request) : MostOn(state_.nodes[id]->state.inventory(), request);
  return caps.Describe(request.uid, request.name.ns, amount);
}

void NamespaceUse::NoteCapUse(NodeId id) {
  if (!state_.options.namespace_caps || state_.nodes[id] == nullptr) return;
  for (const Holding& holding : state_.nodes[id]->state.holdings()) {
    if (Counts(holding)) caps.Use(holding.uid, holding.request->name.ns, Held(holding));
  }
}

void NamespaceUse::AuditCaps(std::vector<std::string>& faults) const {
  if (!state_.options.namespace_caps) return;
  std::map<std::string, CapAmount> used;
  for (const auto& entry : state_.nodes) {
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

}  // namespace tranche
