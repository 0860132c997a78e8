#include "test/sim/check/quotas.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

namespace tranche::sim::check {
namespace {

// Rounding of shares' memory.
constexpr int64_t kRounding = kQuantaPerMilli;

bool LimitsLending(const QuotaModel::Objects& quotas) {
  return std::ranges::any_of(quotas, [](const auto& quota) {
    const Json& lines = At(quota.second, {"spec", "lines"});
    return lines.is_array() && std::ranges::any_of(lines, [](const Json& line) {
             return !At(line, {"lendLimit"}).is_null();
           });
  });
}

Charge Less(const Charge& charge, int64_t by) {
  return {std::max<int64_t>(0, charge.compute - by), std::max<int64_t>(0, charge.memory - by)};
}

// How late the product may hear which quota a namespace is under.
constexpr SimTime kLateNews = std::chrono::minutes(2);

// The quota that the namespace is under now, and those it was under since what began at `from`
// came under one and stayed.
std::set<std::string> LeavesOf(const QuotaModel& model, const Truth& truth, const std::string& ns,
                               SimTime from, SimTime now) {
  std::set<std::string> leaves{model.LeafOf(ns)};
  for (const auto& quotas : truth.Versions("gpuquotas", now, from - kLateNews)) {
    for (const auto& spaces : truth.Versions("namespaces", now, from - kLateNews)) {
      const std::string leaf = OwnerOf(quotas, spaces, ns);
      if (model.Has(leaf)) leaves.insert(leaf);
    }
  }
  return leaves;
}

bool IsHeld(SimTime from, std::optional<SimTime> to, SimTime since, SimTime now, Held which) {
  if (which == Held::kThroughout) return from <= since && (!to || *to > now);
  return from <= now && (!to || *to > since);
}

void UseClaims(QuotaModel& model, const Truth& truth, SimTime since, SimTime now, Held which) {
  for (const auto& [uid, claim] : truth.claims()) {
    for (const Allocation& one : claim.allocations) {
      if (!IsHeld(one.from, one.to, since, now, which)) continue;
      const auto holdings = HoldingsOf(one);
      if (!holdings) continue;
      const std::set<std::string> leaves = LeavesOf(model, truth, claim.ns(), one.from, now);
      if (which == Held::kThroughout && leaves.size() > 1) continue;
      for (const std::string& leaf : leaves) {
        for (const Holding& holding : *holdings) model.Use(leaf, holding);
      }
    }
  }
}

bool IsKnown(const PodLife& pod, const OwnBinds* own) {
  if (own == nullptr || !pod.record || pod.binder != own->who) return false;
  const auto promised = own->promised.find(pod.uid);
  return promised != own->promised.end() && promised->second < own->before;
}

}  // namespace

void UseHoldings(QuotaModel& model, const Truth& truth, const Owners& owners, SimTime since,
                 SimTime now, Held which, const PodLife* but, const OwnBinds* own) {
  for (const auto& [uid, pod] : truth.pods()) {
    if (&pod == but || !pod.bound) continue;
    // What another scheduler placed is charged too, once it was heard of.
    if (!pod.record && which == Held::kThroughout) continue;
    // Of one that cannot be read nobody knows what it would be charged, or to whom.
    if (which == Held::kThroughout && At(pod.object, {"spec", "schedulingGroup"}).is_string())
      continue;
    const SimTime from = IsKnown(pod, own) ? std::min(since, *pod.bound) : *pod.bound;
    if (!IsHeld(from, pod.ended, since, now, which)) continue;
    // A team may release what is leaving.
    if (which == Held::kThroughout && pod.leaving && *pod.leaving <= now) continue;
    const Json* const node = truth.object("nodes", pod.node);
    if (node == nullptr) continue;
    const std::optional<Holding> holding = HoldingOf(pod, *node);
    if (!holding) continue;
    const std::set<std::string> leaves = owners.Of(pod, now);
    if (leaves.size() > 1 && which == Held::kThroughout) continue;
    for (const std::string& leaf : leaves) model.Use(leaf, *holding);
  }
  UseClaims(model, truth, since, now, which);
}

void QuotaChecker::Hear(const Happening& happening) {
  owners_.Hear(happening);
  if (happening.kind == Happening::Kind::kPromised) {
    const std::string kind = TextAt(happening.after, {"kind"});
    const std::string uid = TextAt(happening.after, {"uid"});
    if (kind == "open") promised_.try_emplace(uid, ++promises_);
    if (kind == "close" || kind == "void") promised_.erase(uid);
  }
  if (happening.kind != Happening::Kind::kWritten || happening.resource != "pods" ||
      !IsTranche(happening.who) || happening.after.is_null()) {
    return;
  }
  const PodLife* const pod = truth_.pod(TextAt(happening.after, {"metadata", "uid"}));
  if (pod != nullptr && pod->bound == happening.at && pod->record) Bound(*pod, happening.at);
}

void QuotaChecker::Bound(const PodLife& pod, SimTime now) {
  if (truth_.objects("gpuquotas").empty() || pod.record->leaf.empty()) return;
  const Json* const node = truth_.object("nodes", pod.node);
  if (node == nullptr) return;
  std::optional<Holding> holding = HoldingOf(*pod.record, *node);
  if (!holding) return;
  holding->charge = Less(holding->charge, kRounding);
  const SimTime since = std::min(now, pod.filtered.value_or(now)) - options_.lag;
  const auto promised = promised_.find(pod.uid);
  const OwnBinds own{pod.binder, promised_, promised == promised_.end() ? 0 : promised->second};
  const auto quotas = truth_.Versions("gpuquotas", now, since);
  const auto namespaces = truth_.Versions("namespaces", now, since);
  for (const QuotaModel::Objects& declared : quotas) {
    if (!truth_.objects("gpubudgets").empty() && LimitsLending(declared)) return;
    for (const QuotaModel::Objects& spaces : namespaces) {
      QuotaModel model(declared, spaces);
      const std::string& leaf = pod.record->leaf;
      if (!model.known() || !model.Has(leaf) || !model.Enforces(leaf)) return;
      UseHoldings(model, truth_, owners_, since, now, Held::kThroughout, &pod, &own);
      if (model.Admits(leaf, *holding)) return;
    }
  }
  Found(now, pod.key,
        fmt::format("expected room for {} milli of {} in quota {}, found none",
                    holding->charge.compute / kQuantaPerMilli, holding->model, pod.record->leaf));
}

}  // namespace tranche::sim::check
