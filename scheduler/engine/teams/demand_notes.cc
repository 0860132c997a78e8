#include "scheduler/engine/teams/demand_notes.h"

#include <memory>

namespace tranche {

void DemandNotes::Note(PodRecord& record, Instant now) {
  const bool placed = !record.node.empty();
  if (record.demand == nullptr) {
    const GpuClass* gpu_class = cluster_.set->ClassOf(record.request->priority_class);
    record.demand = std::make_unique<PodRecord::Demand>();
    record.demand->kinds = KindsOf(*record.request, gpu_class == nullptr ? "" : gpu_class->name);
    for (const DemandKind& kind : record.demand->kinds) log.Began(kind, now);
  }
  if (!placed || record.demand->placed) return;
  record.demand->placed = true;
  for (const DemandKind& kind : record.demand->kinds) log.Placed(kind, now);
}

void DemandNotes::End(PodRecord& record, Instant now) {
  if (record.demand == nullptr) return;
  for (const DemandKind& kind : record.demand->kinds) {
    log.Ended(kind, record.demand->placed, now);
  }
  if (record.demand->placed) cluster_.scorer.Departed(*record.request);
  record.demand = nullptr;
}

}  // namespace tranche
