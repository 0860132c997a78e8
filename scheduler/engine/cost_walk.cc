#include "scheduler/engine/cost_walk.h"

#include <algorithm>
#include <tuple>

#include "quota/tree/charge.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"

namespace tranche {
namespace {

// A node whose devices are read out of slices takes as long as so many others.
constexpr int kNodesOfOneRead = 16;

using CostKey = std::tuple<std::string, std::string, std::string, std::string>;
using CostMap = std::map<CostKey, CostRow>;

void Add(CostMap& rows, const std::string& leaf, const CostWalk::Offer& offer, Int128 quanta) {
  CostRow& row = rows[{leaf, offer.model, offer.pool, offer.currency}];
  row.quanta += quanta;
  row.money += quanta * offer.micros;
}

std::vector<CostRow> RowsOf(CostMap rows) {
  std::vector<CostRow> all;
  for (auto& [key, row] : rows) {
    std::tie(row.leaf, row.model, row.pool, row.currency) = key;
    all.push_back(std::move(row));
  }
  return all;
}

// How many nodes of the slice it was worth.
int AddOffer(EngineParts& parts, NodeId id, Instant now, CostWalk& walk) {
  const ClusterState& cluster = parts.cluster;
  const NodeEntry* const entry = cluster.nodes[id].get();
  if (entry == nullptr || !entry->state.present()) return 1;
  const Inventory& inventory = entry->state.inventory();
  CostWalk::Offer offer;
  const GpuPrice* price = nullptr;
  const bool of_slices = parts.claim_wishes.HasOnlyDraGpus(id);
  if (of_slices) {
    NodeView view;
    parts.claim_views.ViewGpus(id, view);
    offer.model = view.model;
    offer.gpus = static_cast<int64_t>(view.gpus.size());
    // Groups of prices are of the models that nodes advertise themselves.
    const NodeTraits traits = TraitsOf(*cluster.set, entry->state.facts().labels.Finder());
    price = PriceOf(cluster.set->prices, traits, offer.model, now).price;
  } else {
    offer.model = inventory.model;
    offer.gpus = static_cast<int64_t>(inventory.cards.size());
    price = cluster.prices.PriceIn(entry->price_group);
  }
  if (offer.gpus > 0) {
    offer.pool = entry->pool;
    if (price != nullptr) {
      offer.currency = price->currency;
      offer.micros = price->micros_per_gpu_hour;
    }
    walk.offers.insert_or_assign(walk.offers.end(), id, std::move(offer));
  }
  return of_slices ? kNodesOfOneRead : 1;
}

// Where work is that is charged; empty: nobody knows.
NodeName PlaceOf(const EngineParts& parts, const PodUid& uid) {
  const Metering& metering = parts.metering;
  if (const auto known = metering.unclaimed.find(uid); known != metering.unclaimed.end()) {
    return known->second.node;
  }
  if (const auto claim = metering.claims.find(uid); claim != metering.claims.end()) {
    return claim->second.node;
  }
  const auto found = parts.cluster.pods.find(uid);
  return found == parts.cluster.pods.end() ? NodeName() : found->second.Place();
}

void AddWork(const EngineParts& parts, const PodUid& uid, const HeldWork& work, CostWalk& walk) {
  if (work.tentative) return;
  const NodeId id = parts.cluster.names.Find(PlaceOf(parts, uid).str());
  for (const ModelCharge& part : work.parts) {
    const int64_t share = std::max(part.charge.compute, part.charge.memory);
    if (share <= 0) continue;
    walk.uses[{id, std::string(PartsOf(part.model).model)}].push_back({work.leaf, share});
  }
}

}  // namespace

void Engine::CostSlice(CostWalk& walk, Instant now) {
  EngineParts& parts = *parts_;
  // Hours of prices begin and end.
  parts.Advance(now);
  const ClusterState& cluster = parts.cluster;
  if (walk.stage == CostWalk::Stage::kWork) {
    const std::map<PodUid, HeldWork>& held = cluster.book.holdings();
    auto at = walk.after ? held.upper_bound(*walk.after) : held.begin();
    for (int i = 0; i < CostWalk::kWorkAtOnce && at != held.end(); ++i, ++at) {
      walk.after = at->first;
      AddWork(parts, at->first, at->second, walk);
    }
    if (at == held.end()) walk.stage = CostWalk::Stage::kDone;
  }
  if (walk.stage == CostWalk::Stage::kNodes) {
    for (int i = 0; i < CostWalk::kNodesAtOnce && walk.node < cluster.nodes.size(); ++walk.node) {
      i += AddOffer(parts, walk.node, now, walk);
    }
    if (walk.node >= cluster.nodes.size()) walk.stage = CostWalk::Stage::kWork;
  }
}

CostSums CostsOf(const CostWalk& walk) {
  CostMap held;
  CostMap fleet;
  for (const auto& [id, offer] : walk.offers) {
    Add(fleet, "", offer, Int128{offer.gpus} * kQuantaPerGpu);
  }
  for (const auto& [place, uses] : walk.uses) {
    const auto& [id, model] = place;
    const auto found = walk.offers.find(id);
    CostWalk::Offer offer;
    offer.model = model;
    // What is held on GPUs that nobody tells of any more has no price.
    if (found != walk.offers.end() && found->second.model == model) offer = found->second;
    const Int128 capacity = Int128{offer.gpus} * kQuantaPerGpu;
    Int128 sum = 0;
    for (const CostWalk::Use& use : uses) sum += use.share;
    for (const CostWalk::Use& use : uses) {
      const bool too_much = sum > capacity && capacity > 0;
      Add(held, use.leaf, offer, too_much ? use.share * capacity / sum : Int128{use.share});
    }
  }
  return {RowsOf(std::move(held)), RowsOf(std::move(fleet))};
}

}  // namespace tranche
