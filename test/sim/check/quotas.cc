#include "test/sim/check/quotas.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

void UseHoldings(QuotaModel& model, const Truth& truth, SimTime since, SimTime now, Held which,
                 const PodLife* but) {
  for (const auto& [uid, pod] : truth.pods()) {
    if (&pod == but || !pod.bound) continue;
    // What another scheduler placed is charged too, once it was heard of.
    if (!pod.record && which == Held::kThroughout) continue;
    const bool began = *pod.bound <= (which == Held::kThroughout ? since : now);
    const SimTime left = which == Held::kThroughout ? now : since;
    if (!began || (pod.ended && *pod.ended <= left)) continue;
    // A team may release what is leaving.
    if (which == Held::kThroughout && pod.leaving && *pod.leaving <= now) continue;
    const Json* const node = truth.object("nodes", pod.node);
    if (node == nullptr) continue;
    const std::optional<Holding> holding = HoldingOf(pod, *node);
    if (!holding) continue;
    const std::string leaf = pod.record ? pod.record->leaf : "";
    model.Use(model.Has(leaf) ? leaf : model.LeafOf(pod.ns()), *holding);
  }
}

void QuotaChecker::Hear(const Happening& happening) {
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
  const auto quotas = truth_.Versions("gpuquotas", now, since);
  const auto namespaces = truth_.Versions("namespaces", now, since);
  for (const QuotaModel::Objects& declared : quotas) {
    if (!truth_.objects("gpubudgets").empty() && LimitsLending(declared)) return;
    for (const QuotaModel::Objects& spaces : namespaces) {
      QuotaModel model(declared, spaces);
      const std::string& leaf = pod.record->leaf;
      if (!model.known() || !model.Has(leaf) || !model.Enforces(leaf)) return;
      UseHoldings(model, truth_, since, now, Held::kThroughout, &pod);
      if (model.Admits(leaf, *holding)) return;
    }
  }
  Found(now, pod.key,
        fmt::format("expected room for {} milli of {} in quota {}, found none",
                    holding->charge.compute / kQuantaPerMilli, holding->model, pod.record->leaf));
}

}  // namespace tranche::sim::check
