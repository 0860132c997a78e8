#include "scheduler/engine/selection/foreseen_charges.h"

#include "scheduler/engine/selection/shape.h"

namespace tranche {
namespace {

// Shapes remembered; then all are forgotten.
constexpr std::size_t kMostShapes = 20'000;

}  // namespace

// Nodes of one kind charge a request the same: the first of each stands for all.
void ForeseenCharges::LookAtNodes() {
  if (inventories_ == cluster_.inventories) return;
  inventories_ = cluster_.inventories;
  ++walks_;
  std::vector<ChargeKind> kinds;
  first_.clear();
  looked_at_.resize(cluster_.kinds.size());
  for (NodeId id{0}; id < cluster_.nodes.size(); ++id) {
    const NodeEntry* entry = cluster_.nodes[id].get();
    if (entry == nullptr || !entry->state.present() || looked_at_[entry->kind] == walks_) continue;
    looked_at_[entry->kind] = walks_;
    kinds.push_back(entry->kind);
    first_.push_back(id);
  }
  if (kinds == kinds_ && generation_ > 0) return;
  kinds_ = std::move(kinds);
  ++generation_;
  by_shape_.clear();
}

int64_t ForeseenCharges::WorkOut(const PodRequest& request) {
  for (const NodeId id : first_) {
    ++looks_;
    ChargeAtMost(cluster_.nodes[id]->state.inventory(), request, parts_);
    if (!parts_.empty()) return GpuEquivalents(TotalOf(parts_));
  }
  return 0;
}

int64_t ForeseenCharges::Of(PodRecord& record) {
  LookAtNodes();
  if (record.foreseen_of == generation_) return record.foreseen;
  shape_.clear();
  AppendShape(*record.request, shape_);
  if (by_shape_.size() > kMostShapes) by_shape_.clear();
  const auto [known, fresh] = by_shape_.try_emplace(shape_);
  if (fresh) known->second = WorkOut(*record.request);
  record.foreseen_of = generation_;
  record.foreseen = known->second;
  return record.foreseen;
}

}  // namespace tranche
