// Extended resources ("nvidia.com/gpu: 1") on nodes where no device plugin but DRA serves them: the
// pod is judged as any other, kube-scheduler makes a claim for it, and that claim is charged.
#include <algorithm>
#include <utility>

#include "scheduler/dra/extended.h"
#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// The key an ask stands for; empty: nothing DRA could serve.
std::string KeyOfAsk(const Ask& ask) {
  switch (ask.resource) {
    case Resource::kGpu:
      return std::string(kGpuKey);
    case Resource::kGpuShared:
      return std::string(kGpuSharedKey);
    case Resource::kMig:
      return FormatMigResource(ask.mig);
    case Resource::kShare:
      break;
  }
  return "";
}

}  // namespace

DraDesk::Wanted DraDesk::WantedOf(const PodRequest& request) {
  Wanted wanted;
  auto claim = std::make_unique<dra::Claim>();
  claim->ns = request.name.ns;
  claim->name = request.name.name;
  for (std::size_t i = 0; i < request.asks.size(); ++i) {
    const Ask& ask = request.asks[i];
    const auto container = static_cast<std::size_t>(ask.container);
    const dra::ExtendedAsk extended{"", KeyOfAsk(ask), ask.count};
    auto made = dra::RequestOf(extended, container, i, engine_.catalog.classes());
    if (!made) return {};
    claim->requests.push_back(*std::move(made));
  }
  if (claim->requests.empty()) return {};
  wanted.claims.push_back(claim.get());
  wanted.made_up.push_back(std::move(claim));
  return wanted;
}

bool DraDesk::HasOnlyDraGpus(NodeId id) const {
  const NodeState& state = engine_.nodes[id]->state;
  return state.present() && !state.inventory().has_devices() &&
         engine_.catalog.MayHaveDevices(state.facts().name.str());
}

bool DraDesk::IsServed(const PodUid& uid, NodeId id) const {
  const auto served = books_.served.find(uid);
  return served != books_.served.end() &&
         std::ranges::find(served->second, id) != served->second.end();
}

void DraDesk::AddServed(const RequestContext& context, std::size_t width, Instant now,
                        FilterAnswer& answer) {
  const PodUid& uid = context.request->uid;
  books_.served.erase(uid);
  Unkeep(KeyOf(uid));
  if (!engine_.catalog.has_slices() || answer.chosen.size() >= width) return;
  const Wanted wanted = WantedOf(*context.request);
  if (wanted.claims.empty()) return;
  std::vector<Place> places;
  DraScores::Wish own;
  DraScores::Wish& wish = WishOf(wanted, own);
  engine_.names.ascending();
  for (auto& [position, reason] : answer.refused) {
    const NodeId id = engine_.ids[position];
    const bool here = reason == Reason::kNoGpu || reason == Reason::kDevicesUnknown;
    if (!here || id == kNoNode || !HasOnlyDraGpus(id)) continue;
    const DraScores::Score score = ScoreOn(wanted, id, wish);
    if (score.parts == 0) continue;
    reason = Reason::kNone;
    if (context.metered && context.standing.mode == QuotaMode::kEnforce) {
      Admission admission;
      const std::vector<ModelCharge>& parts = wish.parts()[static_cast<std::size_t>(score.parts)];
      reason = engine_.Admit(context, parts, now, admission);
    }
    if (reason == Reason::kNone)
      places.push_back({{score.cost, engine_.names.rank(id)}, position, id});
  }
  std::erase_if(answer.refused, [](const auto& each) { return each.second == Reason::kNone; });
  std::ranges::sort(places, {}, &Place::order);
  const std::size_t room = width - answer.chosen.size();
  if (places.size() > room) places.resize(room);
  if (places.empty()) {
    for (const auto& [position, reason] : answer.refused) {
      if (IsQuotaReason(reason) &&
          (answer.reason > Reason::kWaitingForQuota || reason < answer.reason)) {
        answer.reason = reason;
      }
    }
    return;
  }
  if (answer.chosen.empty()) {
    Keep(*context.request, wanted, engine_.ids[places.front().position], now);
  }
  std::vector<NodeId>& served = books_.served[uid];
  for (const uint32_t position : answer.chosen) served.push_back(engine_.ids[position]);
  for (const Place& place : places) {
    answer.chosen.push_back(place.position);
    served.push_back(engine_.ids[place.position]);
  }
  answer.reason = Reason::kNone;
}

}  // namespace tranche
