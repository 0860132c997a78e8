// Resource claims: in which order kube-scheduler should take the nodes a pod's claims can be met
// on.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

constexpr int64_t kUnpredicted = int64_t{1} << 32;

// The uuid of the card a device is, or is a part of.
std::string CardOf(const dra::Device& device) {
  const std::string_view parent = dra::GpuText(device, "parentUUID");
  return std::string(parent.empty() ? dra::GpuText(device, "uuid") : parent);
}

}  // namespace

// Fewest NUMA nodes, then fewest cards opened, then fewest idle cards left: what is left whole
// stays whole.
DraDesk::NodeWord DraDesk::WordOn(const Wanted& wanted, NodeId id) {
  NodeWord word;
  word.parts = PartsOn(wanted, id);
  const dra::NodeBooks* books = BooksOn(id);
  if (books == nullptr) {
    word.cost = kUnpredicted;
    return word;
  }
  word.prediction = dra::Predict(*books, wanted.claims, engine_.catalog.classes());
  std::map<std::string, bool> used_cards;  // by uuid
  std::map<dra::DeviceId, const dra::Device*> devices;
  for (const dra::DeviceBook& book : books->devices) {
    const dra::Pool& pool = books->pools[static_cast<std::size_t>(book.pool)];
    if (pool.driver != dra::kGpuDriver) continue;
    devices.emplace(dra::IdOf(*books, book), book.device);
    used_cards[CardOf(*book.device)] |= book.taken || book.shares > 0;
  }
  int64_t opened = 0;
  std::set<int64_t> numa;
  for (const auto& claim : word.prediction.devices) {
    for (const dra::AllocatedDevice& held : claim) {
      const auto found = devices.find(held.id);
      if (found == devices.end() || held.admin) continue;
      bool& used = used_cards[CardOf(*found->second)];
      opened += !used;
      used = true;
      const dra::Attribute* zone =
          dra::FindAttribute(*found->second, "resource.kubernetes.io", "numaNode");
      if (zone != nullptr && std::holds_alternative<int64_t>(zone->value)) {
        numa.insert(std::get<int64_t>(zone->value));
      }
    }
  }
  const int64_t idle =
      std::ranges::count_if(used_cards, [](const auto& card) { return !card.second; });
  word.cost = (static_cast<int64_t>(numa.size()) << 24) + (opened << 16) + idle;
  if (word.prediction.kind == dra::Prediction::Kind::kUnknown) word.cost += kUnpredicted;
  // kube-scheduler has found room there: what we have not heard of yet rules nothing out.
  if (word.prediction.kind == dra::Prediction::Kind::kNoFit) word.cost += 2 * kUnpredicted;
  if (word.prediction.kind == dra::Prediction::Kind::kAborts) word.cost += 2 * kUnpredicted;
  return word;
}

DraScores::Wish& DraDesk::WishOf(const Wanted& wanted, DraScores::Wish& own) {
  // Where an allocated claim's devices are is its own matter.
  const bool allocated = std::ranges::any_of(
      wanted.claims, [](const auto* each) { return each->allocation.has_value(); });
  if (allocated || engine_.catalog.depends_on_labels()) return own;
  const dra::Catalog::Changes changes = engine_.catalog.TakeChanges();
  if (changes.all) books_.scores.Clear();
  for (const std::string& node : changes.nodes) books_.scores.Outdate(engine_.names.Find(node));
  for (const NodeId id : engine_.TakeRefreshed()) books_.scores.Outdate(id);
  return books_.scores.Of(wanted.claims);
}

DraScores::Score DraDesk::ScoreOn(const Wanted& wanted, NodeId id, DraScores::Wish& wish) {
  if (id == kNoNode) return {kUnpredicted, 0};
  if (const DraScores::Score* known = wish.Find(id)) return *known;
  const NodeWord word = WordOn(wanted, id);
  return wish.Put(id, word.cost, word.parts);
}

Reason DraDesk::AskOnce(const RequestContext& context, const DraScores::Wish& wish, int parts,
                        Instant now, DraPod& pod, std::vector<std::optional<Reason>>& asked) {
  const auto at = static_cast<std::size_t>(parts);
  if (at >= asked.size()) asked.resize(wish.parts().size());
  if (asked[at]) return *asked[at];
  Admission admission;
  const Reason reason = engine_.Admit(context, wish.parts()[at], now, admission);
  asked[at] = reason;
  if (reason != Reason::kNone && pod.asked.empty()) pod.asked = wish.parts()[at];
  if (admission.eligible_at && (!pod.eligible_at || *admission.eligible_at < *pod.eligible_at)) {
    pod.eligible_at = admission.eligible_at;
  }
  return reason;
}

std::vector<DraDesk::Place> DraDesk::PlacesFor(const RequestContext& context, const Wanted& wanted,
                                               DraPod& pod, Instant now, FilterAnswer& answer,
                                               bool& wants) {
  std::vector<Place> places;
  DraScores::Wish own;
  DraScores::Wish& wish = WishOf(wanted, own);
  std::vector<std::optional<Reason>> asked;  // of quota, by parts
  for (uint32_t position = 0; position < engine_.ids.size(); ++position) {
    const NodeId id = engine_.ids[position];
    const DraScores::Score score = ScoreOn(wanted, id, wish);
    wants |= score.parts > 0;
    Reason reason = Reason::kNone;
    if (context.metered && score.parts > 0) {
      reason = AskOnce(context, wish, score.parts, now, pod, asked);
    }
    if (reason != Reason::kNone && context.standing.mode != QuotaMode::kEnforce) {
      answer.observed = reason;
      reason = Reason::kNone;
    }
    if (id != kNoNode && engine_.hot[id].closed == Reason::kOperatorBusy) {
      reason = Reason::kOperatorBusy;
    }
    if (reason != Reason::kNone) {
      answer.refused.emplace_back(position, reason);
      if (answer.reason == Reason::kNone || reason < answer.reason) answer.reason = reason;
      continue;
    }
    const uint32_t name = id == kNoNode ? ~uint32_t{0} : engine_.names.rank(id);
    places.push_back({{score.cost, name}, position, id});
  }
  return places;
}

bool DraDesk::Filter(const PodRequest& request, std::span<const std::string_view> candidates,
                     Instant now, FilterAnswer& answer) {
  const auto found = books_.pods.find(request.uid);
  if (found == books_.pods.end()) return false;
  DraPod& pod = found->second;
  const Wanted wanted = WantedOf(request.name.ns, *pod.claims);
  Release(request.uid, wanted);
  const RequestContext context = engine_.ContextOf(request);
  engine_.names.FindAll(candidates, engine_.ids);
  engine_.names.ascending();
  bool wants = wanted.holds_gpus;
  pod.asked.clear();
  pod.eligible_at.reset();
  std::vector<Place> places = PlacesFor(context, wanted, pod, now, answer, wants);
  pod.wants_gpus |= wants;
  const auto refuse_all = [&](Reason reason) {
    answer.RefuseAll(candidates.size(), reason);
    pod.last_reason = reason;
    return true;
  };
  if (wanted.unknown) {
    books_.unknown.insert(request.uid);
    return refuse_all(Reason::kClaimUnknown);
  }
  if (!wants) {
    answer.refused.clear();
    answer.reason = answer.observed = Reason::kNone;
    return false;
  }
  if (context.whole != Reason::kNone && context.whole != Reason::kDialectOff) {
    return refuse_all(context.whole);
  }
  const auto width = static_cast<std::size_t>(context.policy->filter_width);
  const std::size_t kept = std::min(width, places.size());
  std::ranges::partial_sort(places, places.begin() + static_cast<std::ptrdiff_t>(kept), {},
                            &Place::order);
  places.resize(kept);
  pod.ranked.clear();
  for (const Place& place : places) {
    answer.chosen.push_back(place.position);
    pod.ranked.push_back(place.node);
  }
  pod.last_reason = places.empty() ? answer.reason : Reason::kNone;
  if (!places.empty()) {
    answer.reason = Reason::kNone;
    pod.asked.clear();
    pod.eligible_at.reset();
    Keep(request, wanted, places.front().node, now);
  }
  return true;
}

bool DraDesk::RankAs(const std::vector<NodeId>& ranked, const std::vector<NodeId>& ids,
                     std::vector<int>& ranks) {
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> order;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    order.emplace_back(std::ranges::find(ranked, ids[i]) - ranked.begin(), i);
  }
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    ranks[order[i].second] = RankAt(i);
  }
  return true;
}

bool DraDesk::Rank(const PodUid& uid, std::span<const std::string_view> candidates,
                   std::vector<int>& ranks) {
  const auto pod = books_.pods.find(uid);
  const auto served = books_.served.find(uid);
  const std::vector<NodeId>* ranked = nullptr;
  if (served != books_.served.end()) ranked = &served->second;
  if (pod != books_.pods.end()) ranked = &pod->second.ranked;
  if (ranked == nullptr || ranked->empty()) return false;
  engine_.names.FindAll(candidates, engine_.ids);
  return RankAs(*ranked, engine_.ids, ranks);
}

}  // namespace tranche
