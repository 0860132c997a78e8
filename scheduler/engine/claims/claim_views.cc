#include "scheduler/engine/claims/claim_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "quota/tree/charge.h"
#include "scheduler/engine/state/demands.h"
#include "scheduler/engine/views/demand_text.h"
#include "scheduler/engine/views/explain_text.h"
#include "topology/gpu_model.h"

namespace tranche {
namespace {

constexpr int64_t kMebibyte = 1024 * 1024;
constexpr int64_t kMilliPerGpu = 1000;

Mebibytes MemoryOf(const dra::Device& device) {
  const dra::Capacity* memory = dra::FindCapacity(device, dra::kGpuDriver, "memory");
  return Mebibytes::Of(memory == nullptr ? 0 : memory->value.whole() / kMebibyte);
}

// What one claim takes of the device.
std::pair<MilliGpu, Mebibytes> TakenOf(const dra::AllocatedDevice& held,
                                       const dra::DeviceTable::Entry& entry) {
  const Charge charge = dra::ChargeOfDevice(held, entry).charge;
  const int64_t milli = (charge.compute * kMilliPerGpu + kQuantaPerGpu - 1) / kQuantaPerGpu;
  Mebibytes memory = MemoryOf(*entry.device);
  for (const dra::CapacityAmount& consumed : held.consumed) {
    if (held.shared && consumed.name.name == "memory") {
      memory = Mebibytes::Of((consumed.amount.whole() + kMebibyte - 1) / kMebibyte);
    }
  }
  return {MilliGpu::Of(milli), memory};
}

// Where a MIG instance sits, as its memory slices say; size 0: they do not.
MigView PlaceOf(const dra::Device& device) {
  constexpr int kMostSlices = 8;
  MigView mig;
  mig.profile = dra::GpuText(device, "profile");
  for (int slice = kMostSlices - 1; slice >= 0; --slice) {
    if (dra::FindCapacity(device, dra::kGpuDriver, fmt::format("memorySlice{}", slice)) ==
        nullptr) {
      continue;
    }
    mig.start = slice;
    ++mig.size;
  }
  return mig;
}

std::string NameOf(const dra::AllocatedDevice& held, const dra::DeviceTable::Entry& entry) {
  if (entry.device == nullptr) return held.id.str();
  const std::string_view profile = dra::GpuText(*entry.device, "profile");
  const std::string_view uuid = dra::GpuText(*entry.device, "uuid");
  return fmt::format("{} ({}{}{}{}{})", held.id.device, dra::GpuText(*entry.device, "productName"),
                     profile.empty() ? "" : " MIG ", profile, uuid.empty() ? "" : ", ", uuid);
}

void AddSharing(const std::vector<dra::DriverConfig>& configs, std::vector<std::string>& told) {
  for (const dra::DriverConfig& config : configs) {
    if (!config.sharing || config.sharing->strategy == dra::Sharing::Strategy::kNone) continue;
    std::string text = dra::Describe(*config.sharing);
    if (std::ranges::find(told, text) == told.end()) told.push_back(std::move(text));
  }
}

}  // namespace

ResourceClaimView ClaimViews::ViewClaim(const dra::Claim& claim) {
  ResourceClaimView view;
  view.name = claim.name;
  view.allocated = claim.allocation.has_value();
  for (const PodUid& uid : claim.reserved_for) {
    if (const auto pod = books_.pods.find(uid); pod != books_.pods.end()) {
      view.pods.push_back(pod->second.request->name);
    } else if (const PodRecord* record = cluster_.Find(uid)) {
      view.pods.push_back(record->request->name);
    }
  }
  if (claim.allocation) {
    const dra::DeviceTable table = cluster_.catalog.TableOf(*claim.allocation);
    for (const dra::AllocatedDevice& held : claim.allocation->devices) {
      if (held.id.driver != dra::kGpuDriver) continue;
      view.devices.push_back(NameOf(held, table.Find(held.id)) +
                             (held.admin ? ", as administrator" : ""));
    }
    if (!view.devices.empty()) view.node = charges_.NodeOf(claim);
    view.charge = dra::ChargeOfAllocation(claim, table);
    AddSharing(claim.allocation->configs, view.sharing);
    return view;
  }
  AddSharing(claim.configs, view.sharing);
  for (const dra::Request& request : claim.requests) {
    for (const dra::RequestChoice& choice : request.choices) {
      const dra::DeviceClass* each = cluster_.catalog.classes().FindClass(choice.device_class);
      if (each != nullptr) AddSharing(each->configs, view.sharing);
    }
  }
  return view;
}

std::optional<Allocation> ClaimViews::AllocationOf(const ClaimingPod& pod) {
  Allocation allocation;
  allocation.knowledge = Knowledge::kExact;
  for (const dra::ContainerClaim& use : pod.claims->containers) {
    const auto named = std::ranges::find(pod.claims->claims, use.name, &dra::PodClaim::name);
    if (named == pod.claims->claims.end()) continue;
    const dra::Claim* claim = cluster_.catalog.FindClaim({pod.request->name.ns, named->claim});
    if (claim == nullptr || !claim->allocation) continue;
    const dra::DeviceTable table = cluster_.catalog.TableOf(*claim->allocation);
    auto container =
        std::ranges::find(allocation.containers, use.container, &ContainerDevices::container);
    if (container == allocation.containers.end()) {
      allocation.containers.push_back({use.container, {}});
      container = allocation.containers.end() - 1;
    }
    for (const dra::AllocatedDevice& held : claim->allocation->devices) {
      const std::string request = held.request.substr(0, held.request.find('/'));
      if (held.id.driver != dra::kGpuDriver || (!use.request.empty() && use.request != request)) {
        continue;
      }
      const dra::DeviceTable::Entry entry = table.Find(held.id);
      if (entry.device == nullptr) continue;
      Device device;
      device.uuid = GpuUuid(dra::GpuText(*entry.device, "uuid"));
      std::tie(device.milli, device.memory) = TakenOf(held, entry);
      if (const MigView mig = PlaceOf(*entry.device); !mig.profile.empty()) {
        device.mig = MigDevice{mig.profile, mig.start, mig.size};
      }
      container->devices.push_back(std::move(device));
    }
  }
  std::erase_if(allocation.containers, [](const auto& each) { return each.devices.empty(); });
  if (allocation.containers.empty()) return std::nullopt;
  return allocation;
}

PodView ClaimViews::ViewPod(const PodUid& uid, const ClaimingPod& pod) {
  PodView view;
  view.name = pod.request->name;
  view.uid = uid;
  view.priority_class = pod.request->priority_class;
  view.labels = pod.traits.labels;
  view.node = pod.node;
  view.state = pod.node.empty() ? PodState::kPending : PodState::kBound;
  const RequestContext context = rules_.ContextOf(*pod.request);
  if (context.membership.leaf != kNoQuota) {
    view.leaf = cluster_.book.tree().name(context.membership.leaf);
  }
  if (context.membership.gpu_class != nullptr) {
    view.workload_class = context.membership.gpu_class->name;
  }
  if (!pod.node.empty()) {
    view.allocation = AllocationOf(pod);
    if (view.allocation) view.allocation->leaf = view.leaf;
    for (const dra::PodClaim& use : pod.claims->claims) {
      const dra::Claim* claim = cluster_.catalog.FindClaim({pod.request->name.ns, use.claim});
      if (claim != nullptr && !view.quota_state) {
        view.quota_state = cluster_.book.StateOf(KeyOfClaim(claim->uid));
      }
    }
    return view;
  }
  view.reason = pod.last_reason;
  view.eligible_at = pod.eligible_at;
  if (pod.last_reason == Reason::kClaimUnknown) {
    view.detail = "expected every resource claim of the pod, found that one is not there yet";
  } else if (!pod.asked.empty()) {
    Admission admission;
    if (rules_.Admit(context, pod.asked, cluster_.latest, admission) != Reason::kNone) {
      view.detail =
          cluster_.book.Explain(context.membership, admission, pod.asked, cluster_.latest);
    } else {
      view.detail = "there is quota for it now; it is tried again";
    }
  }
  return view;
}

std::vector<std::pair<PodUid, const ClaimingPod*>> ClaimViews::WaitingPods() const {
  std::vector<std::pair<PodUid, const ClaimingPod*>> waiting;
  for (const auto& [uid, pod] : books_.pods) {
    if (pod.wants_gpus && pod.node.empty()) waiting.emplace_back(uid, &pod);
  }
  return waiting;
}

NodeVerdict ClaimViews::VerdictOn(const RequestContext& context, const ClaimWish& wish,
                                  bool pending, NodeId id, ClaimOutlook& outlook, Instant now) {
  NodeVerdict verdict;
  verdict.node = cluster_.names.name(id);
  if (context.whole != Reason::kNone && context.whole != Reason::kStyleOff) {
    verdict.reason = context.whole;
    return verdict;
  }
  const NodeFacts& facts = cluster_.nodes[id]->state.facts();
  if (pending) verdict.reason = JudgeDemands(facts, *context.request);
  if (verdict.reason != Reason::kNone) {
    verdict.detail = DescribeDemands(facts, *context.request, verdict.reason);
    return verdict;
  }
  outlook = wishes_.On(wish, id);
  const bool asks =
      std::ranges::any_of(wish.claims, [](const dra::Claim* claim) { return !claim->allocation; });
  if (asks && outlook.parts.empty()) {
    verdict.reason = Reason::kNoGpu;
    verdict.detail = "no device of the node is of a class the claims ask for";
    return verdict;
  }
  for (const dra::Claim* claim : wish.claims) {
    if (claim->allocation && !dra::Reaches(*claim->allocation, {facts.name.str(), &facts.labels})) {
      verdict.reason = Reason::kWrongDevice;
      verdict.detail = fmt::format("claim {} has devices of another node", claim->name);
      return verdict;
    }
  }
  Admission admission;
  if (pending && context.metered && context.membership.mode == QuotaMode::kEnforce &&
      !outlook.parts.empty()) {
    verdict.reason = rules_.Admit(context, outlook.parts, now, admission);
    if (verdict.reason != Reason::kNone) return verdict;
  }
  const dra::Prediction& seen = outlook.prediction;
  switch (seen.kind) {
    case dra::Prediction::Kind::kFits:
      for (const auto& claim : seen.devices) {
        for (const dra::AllocatedDevice& held : claim) {
          verdict.detail += (verdict.detail.empty() ? "gets " : ", ") + held.id.device;
        }
      }
      break;
    case dra::Prediction::Kind::kNoFit:
      verdict.reason = Reason::kNoRoom;
      verdict.detail = fmt::format("{}: {}", seen.request, seen.why);
      break;
    case dra::Prediction::Kind::kAborts:
      verdict.reason = Reason::kBadAmount;
      verdict.detail =
          fmt::format("kube-scheduler gives the pod up: {}: {}", seen.request, seen.why);
      break;
    case dra::Prediction::Kind::kUnknown:
      verdict.detail = fmt::format("which devices it would get is not foreseen: {}", seen.why);
      break;
  }
  verdict.fits = verdict.reason == Reason::kNone;
  return verdict;
}

std::optional<Explanation> ClaimViews::Explain(const PodName& name, Instant now) {
  const auto at = books_.by_name.lower_bound({name, PodUid()});
  if (at == books_.by_name.end() || at->first != name) return std::nullopt;
  const ClaimingPod& pod = books_.pods.at(at->second);
  Explanation explanation;
  explanation.pod = ViewPod(at->second, pod);
  const ClaimWish wish = wishes_.Of(name.ns, *pod.claims);
  for (const dra::Claim* claim : wish.claims) explanation.claims.push_back(ViewClaim(*claim));
  const RequestContext context = rules_.ContextOf(*pod.request);
  const bool pending = pod.node.empty();
  std::vector<std::pair<std::pair<int64_t, uint32_t>, std::size_t>> fitting;
  cluster_.names.ascending();
  for (const NodeId id : cluster_.names.ascending()) {
    if (cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->state.present()) continue;
    ClaimOutlook outlook;
    NodeVerdict verdict = VerdictOn(context, wish, pending, id, outlook, now);
    if (verdict.fits) {
      fitting.push_back({{outlook.cost, cluster_.names.rank(id)}, explanation.nodes.size()});
    }
    explanation.nodes.push_back(std::move(verdict));
  }
  std::ranges::sort(fitting);
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    explanation.nodes[fitting[i].second].rank = static_cast<int>(i);
  }
  if (pending) {
    Reason reason = pod.last_reason;
    if (reason == Reason::kNone && fitting.empty()) reason = Reason::kNoRoom;
    explanation.advice = AdviceFor(reason);
  }
  return explanation;
}

struct ClaimViews::CardViews {
  NodeView& view;
  std::map<std::string, std::size_t> positions;  // by uuid
  std::set<dra::PoolName> pools;

  GpuView& Of(const dra::Device& device) {
    const std::string_view parent = dra::GpuText(device, "parentUUID");
    const std::string uuid(parent.empty() ? dra::GpuText(device, "uuid") : parent);
    const auto [at, fresh] = positions.try_emplace(uuid, view.gpus.size());
    if (fresh) {
      GpuView& gpu = view.gpus.emplace_back();
      gpu.index = static_cast<int>(at->second);
      gpu.uuid = GpuUuid(uuid);
      gpu.free_milli = kWholeGpu;
    }
    return view.gpus[at->second];
  }
};

void ClaimViews::ViewGpus(NodeId id, NodeView& view) {
  if (!view.gpus.empty() || !wishes_.HasOnlyDraGpus(id)) return;
  const dra::NodeBooks* books = wishes_.BooksOn(id);
  if (books == nullptr) return;
  view.model.clear();
  CardViews cards{view, {}, {}};
  for (const dra::DeviceBook& book : books->devices) {
    const dra::Pool& pool = books->pools[static_cast<std::size_t>(book.pool)];
    if (pool.driver != dra::kGpuDriver) continue;
    cards.pools.insert({pool.driver, pool.name});
    ViewDevice(book, cards);
  }
  for (GpuView& gpu : view.gpus) {
    if (gpu.memory == Mebibytes::Zero()) {
      for (const dra::DeviceBook& book : books->devices) {
        if (dra::GpuText(*book.device, "parentUUID") != gpu.uuid.str()) continue;
        gpu.memory += book.device->consumes.empty() ? MemoryOf(*book.device) : Mebibytes::Zero();
      }
    }
    gpu.free_memory = gpu.memory;
  }
  std::set<std::string> holders;
  for (const dra::PoolName& pool : cards.pools) holders.merge(cluster_.catalog.HoldersOf(pool));
  for (const std::string& uid : holders) ViewHolder(*cluster_.catalog.FindByUid(uid), cards);
  view.knowledge = Knowledge::kExact;
}

void ClaimViews::ViewDevice(const dra::DeviceBook& book, CardViews& cards) {
  GpuView& gpu = cards.Of(*book.device);
  if (cards.view.model.empty()) {
    std::string label(dra::GpuText(*book.device, "productName"));
    std::ranges::replace(label, ' ', '-');
    cards.view.model = GpuModelName(label);
  }
  const bool instance = dra::GpuText(*book.device, "type") == "mig";
  gpu.is_mig |= instance;
  if (!instance) gpu.memory = MemoryOf(*book.device);
  gpu.healthy &= dra::IsToleratedBy(*book.device, {});
  const dra::Attribute* zone =
      dra::FindAttribute(*book.device, "resource.kubernetes.io", "numaNode");
  if (zone != nullptr && std::holds_alternative<int64_t>(zone->value)) {
    gpu.numa = static_cast<int>(std::get<int64_t>(zone->value));
  }
  // Of instances that could be made only those that are held exist.
  if (instance && (book.taken || book.shares > 0 || book.device->consumes.empty())) {
    gpu.mig.push_back(PlaceOf(*book.device));
  }
}

void ClaimViews::ViewHolder(const dra::Claim& claim, CardViews& cards) {
  const dra::DeviceTable table = cluster_.catalog.TableOf(*claim.allocation);
  const std::vector<PodName> pods = ViewClaim(claim).pods;
  for (const dra::AllocatedDevice& held : claim.allocation->devices) {
    const dra::DeviceTable::Entry entry = table.Find(held.id);
    if (held.admin || entry.device == nullptr ||
        !cards.pools.contains({held.id.driver, held.id.pool})) {
      continue;
    }
    GpuView& gpu = cards.Of(*entry.device);
    auto [milli, memory] = TakenOf(held, entry);
    gpu.free_milli -= milli;
    gpu.free_memory -= memory;
    const MigView place = PlaceOf(*entry.device);
    const auto mig = std::ranges::find_if(gpu.mig, [&place](const MigView& each) {
      return each.profile == place.profile && each.start == place.start && each.pods.empty();
    });
    for (std::size_t i = 0; i < std::max<std::size_t>(pods.size(), 1); ++i) {
      // A claim that no pod uses any more still holds its devices.
      const PodName user = pods.empty() ? PodName{claim.ns, claim.name} : pods[i];
      if (!place.profile.empty() && mig != gpu.mig.end()) mig->pods.push_back(user.str());
      // Several pods of one claim share what it holds: it is shown with the first of them.
      gpu.pods.push_back({user, i < claim.reserved_for.size() ? claim.reserved_for[i] : PodUid(),
                          i == 0 ? milli : MilliGpu::Zero(), i == 0 ? memory : Mebibytes::Zero()});
    }
  }
}

void ClaimViews::Audit(std::vector<std::string>& faults) const {
  for (const auto& [key, held] : metering_.claims) {
    const dra::Claim* claim = cluster_.catalog.FindByUid(UidOfClaim(key));
    if (cluster_.book.Find(key) == nullptr || claim == nullptr || !claim->allocation) {
      faults.push_back(fmt::format("{} is charged and holds nothing", key.str()));
    }
  }
  for (const auto& [key, until] : books_.kept) {
    if (metering_.claims.contains(key) || !cluster_.book.earmarks().contains(key)) {
      faults.push_back(fmt::format("quota is not kept for {} as the books say", key.str()));
    }
  }
}

}  // namespace tranche
