#include "quota/held_sums.h"

#include <algorithm>

namespace tranche {

void HeldSums::Series::AdvanceTo(Instant at) {
  if (at <= last) return;
  sum += Int128{quanta} * (at - last).count();
  last = at;
}

void HeldSums::BeginCounting(Instant now) {
  began_ = now;
  for (auto& [key, series] : series_) {
    series.sum = 0;
    series.last = now;
  }
}

void HeldSums::Change(const Holder& holder, int sign, Instant at) {
  if (began_) at = std::max(at, *began_);
  std::vector<ModelCharge>& held = by_namespace_[holder.ns];
  for (const ModelCharge& part : holder.parts) {
    const Charge change =
        sign > 0 ? part.charge : Charge{-part.charge.compute, -part.charge.memory};
    Add(held, {part.model, change});
    const auto [found, fresh] =
        series_.try_emplace(Key{holder.leaf, holder.workload_class, part.model});
    Series& series = found->second;
    if (fresh) series.last = at;
    const int64_t quanta = sign * GpuEquivalents(part.charge);
    // News from before what was summed already is added to it, or taken out of it again.
    if (began_) {
      series.AdvanceTo(at);
      series.sum += Int128{quanta} * (series.last - at).count();
    }
    series.quanta += quanta;
  }
  std::erase_if(held, [](const ModelCharge& part) { return part.charge == Charge{}; });
  if (held.empty()) by_namespace_.erase(holder.ns);
}

void HeldSums::Step(Instant from, Instant to) {
  if (!began_) return;
  for (auto& [key, series] : series_) {
    series.AdvanceTo(from);
    series.last = std::max(series.last, to);
  }
}

std::vector<HeldTimeRow> HeldSums::Time(Instant now) {
  std::vector<HeldTimeRow> rows;
  rows.reserve(series_.size());
  for (auto& [key, series] : series_) {
    if (began_) series.AdvanceTo(now);
    // A counter that fell would be read as one that began anew: late ends wait to be caught up
    // with.
    series.told = std::max(series.told, series.sum);
    rows.push_back({key.leaf, key.workload_class, key.model, series.told});
  }
  return rows;
}

std::vector<NamespaceHeldRow> HeldSums::ByNamespace() const {
  std::vector<NamespaceHeldRow> rows;
  for (const auto& [ns, parts] : by_namespace_) {
    for (const ModelCharge& part : parts) rows.push_back({ns, part.model, part.charge});
  }
  return rows;
}

}  // namespace tranche
