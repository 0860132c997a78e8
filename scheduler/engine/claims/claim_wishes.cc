#include "scheduler/engine/claims/claim_wishes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/dra/extended.h"

namespace tranche {
namespace {

// The uuid of the card a device is, or is a part of.
std::string CardOf(const dra::Device& device) {
  const std::string_view parent = dra::GpuText(device, "parentUUID");
  return std::string(parent.empty() ? dra::GpuText(device, "uuid") : parent);
}

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

bool HoldsGpus(const dra::Claim& claim) {
  return claim.allocation && std::ranges::any_of(claim.allocation->devices, [](const auto& held) {
           return !held.admin && held.id.driver == dra::kGpuDriver;
         });
}

ClaimWish ClaimWishes::Of(const std::string& ns, const dra::PodClaims& claims) {
  ClaimWish wish;
  const auto make_up = [&wish](dra::Claim claim) {
    wish.made_up.push_back(std::make_unique<dra::Claim>(std::move(claim)));
    wish.claims.push_back(wish.made_up.back().get());
  };
  for (const dra::PodClaim& use : claims.claims) {
    if (!use.claim.empty()) {
      const dra::Claim* claim = cluster_.catalog.FindClaim({ns, use.claim});
      wish.unknown |= claim == nullptr;
      if (claim != nullptr) wish.claims.push_back(claim);
    } else if (const dra::Claim* made = cluster_.catalog.FindTemplate({ns, use.template_name})) {
      make_up(*made);
    }
  }
  if (claims.extended) {
    const dra::Claim* claim = cluster_.catalog.FindClaim({ns, claims.extended->claim});
    if (claim != nullptr) wish.claims.push_back(claim);
  }
  dra::Claim extended;
  extended.ns = ns;
  for (std::size_t i = 0; i < claims.asks.size(); ++i) {
    const auto rest = dra::NotServed(std::span(&claims.asks[i], 1), claims.extended);
    if (rest.empty()) continue;
    auto request = dra::RequestOf(claims.asks[i], i, 0, cluster_.catalog.classes());
    if (request) extended.requests.push_back(*std::move(request));
  }
  if (!extended.requests.empty()) make_up(std::move(extended));
  wish.holds_gpus =
      std::ranges::any_of(wish.claims, [](const auto* each) { return HoldsGpus(*each); });
  return wish;
}

const dra::NodeBooks* ClaimWishes::BooksOn(NodeId id) {
  if (id == kNoNode || cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->state.present()) {
    return nullptr;
  }
  const NodeFacts& facts = cluster_.nodes[id]->state.facts();
  if (!cluster_.catalog.MayHaveDevices(facts.name.str())) return nullptr;
  return &cluster_.catalog.BooksOn({facts.name.str(), &facts.labels});
}

std::vector<ModelCharge> ClaimWishes::PartsOn(const ClaimWish& wish, NodeId id) {
  std::vector<ModelCharge> parts;
  const dra::NodeBooks* books = BooksOn(id);
  if (books == nullptr) return parts;
  for (const dra::Claim* claim : wish.claims) {
    if (claim->allocation) continue;
    for (const ModelCharge& part : dra::ChargeAtMost(*claim, *books, cluster_.catalog.classes()))
      Add(parts, part);
  }
  PutIntoPool(parts, cluster_.nodes[id]->state.inventory().metered_pool);
  return parts;
}

ClaimWish ClaimWishes::Of(const PodRequest& request) {
  ClaimWish wish;
  auto claim = std::make_unique<dra::Claim>();
  claim->ns = request.name.ns;
  claim->name = request.name.name;
  for (std::size_t i = 0; i < request.asks.size(); ++i) {
    const Ask& ask = request.asks[i];
    const auto container = static_cast<std::size_t>(ask.container);
    const dra::ExtendedAsk extended{"", KeyOfAsk(ask), ask.count};
    auto made = dra::RequestOf(extended, container, i, cluster_.catalog.classes());
    if (!made) return {};
    claim->requests.push_back(*std::move(made));
  }
  if (claim->requests.empty()) return {};
  wish.claims.push_back(claim.get());
  wish.made_up.push_back(std::move(claim));
  return wish;
}

bool ClaimWishes::HasOnlyDraGpus(NodeId id) const {
  const NodeState& state = cluster_.nodes[id]->state;
  return state.present() && !state.inventory().has_devices() &&
         cluster_.catalog.MayHaveDevices(state.facts().name.str());
}

// Fewest NUMA nodes, then fewest cards opened, then fewest idle cards left: what is left whole
// stays whole.
ClaimOutlook ClaimWishes::On(const ClaimWish& wish, NodeId id, dra::StepBudget& budget) {
  ClaimOutlook word;
  word.parts = PartsOn(wish, id);
  const dra::NodeBooks* books = BooksOn(id);
  if (books == nullptr) {
    word.cost = kUnpredictedCost;
    return word;
  }
  ++trials_;
  word.prediction = dra::Predict(*books, wish.claims, cluster_.catalog.classes(), budget);
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
  if (word.prediction.kind == dra::Prediction::Kind::kUnknown) word.cost += kUnpredictedCost;
  // kube-scheduler has found room there: what we have not heard of yet rules nothing out.
  if (word.prediction.kind == dra::Prediction::Kind::kNoFit) word.cost += 2 * kUnpredictedCost;
  if (word.prediction.kind == dra::Prediction::Kind::kAborts) word.cost += 2 * kUnpredictedCost;
  return word;
}

}  // namespace tranche
