#include "scheduler/engine/teams/demand_notes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tranche {
namespace {

// What became of a pod at a moment.
enum class Step : uint8_t { kCame, kPlaced, kEnded };
struct Turn {
  Instant at;
  Step step;
  const AskedBefore* pod;
};

std::vector<Turn> TurnsOf(std::span<const AskedBefore> pods, Instant now) {
  std::vector<Turn> turns;
  turns.reserve(3 * pods.size());
  for (const AskedBefore& pod : pods) {
    // A clock may have gone back between two records.
    const Instant came = std::min(pod.created, now);
    turns.push_back({came, Step::kCame, &pod});
    const Instant placed = std::clamp(pod.placed.value_or(came), came, now);
    if (pod.placed) turns.push_back({placed, Step::kPlaced, &pod});
    turns.push_back({std::clamp(pod.ended.value_or(now), placed, now), Step::kEnded, &pod});
  }
  std::ranges::stable_sort(turns, {}, [](const Turn& turn) { return turn.at; });
  return turns;
}

}  // namespace

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

void DemandNotes::Recall(std::span<const AskedBefore> pods, Instant now) {
  // Looked up only.
  std::map<std::pair<const PodRequest*, std::string>, std::vector<DemandKind>> kinds_of;
  for (const Turn& turn : TurnsOf(pods, now)) {
    const AskedBefore& pod = *turn.pod;
    const auto [kinds, fresh] = kinds_of.try_emplace({pod.request.get(), pod.workload_class});
    if (fresh) kinds->second = KindsOf(*pod.request, pod.workload_class);
    for (const DemandKind& kind : kinds->second) {
      if (turn.step == Step::kPlaced) log.Placed(kind, turn.at);
      if (turn.step == Step::kEnded) log.Ended(kind, pod.placed.has_value(), turn.at);
      if (turn.step == Step::kCame) {
        pod.ended ? log.Began(kind, turn.at) : log.WasThere(kind, turn.at);
      }
    }
    // One that waits still is counted when it is asked about.
    if (turn.step == Step::kCame && (pod.placed || pod.ended)) {
      cluster_.scorer.Arrived(*pod.request);
    }
    if (turn.step == Step::kEnded && pod.placed && pod.ended) {
      cluster_.scorer.Departed(*pod.request);
    }
  }
}

}  // namespace tranche
