// Resource claims: what they are charged, and which nodes a pod may take its claims to.
#include "scheduler/engine/claim_accounting.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/dra/extended.h"
#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// Quota is asked anew for those that wait at most this often, and of so many.
constexpr Millis kLookAgain{1'000};
constexpr int kMostLooks = 64;
// A poke, or the removal of a gate, that is not seen to have worked is tried again after this.
constexpr Millis kToldTime{10'000};

bool HoldsGpus(const dra::Claim& claim) {
  return claim.allocation && std::ranges::any_of(claim.allocation->devices, [](const auto& held) {
           return !held.admin && held.id.driver == dra::kGpuDriver;
         });
}

// A device no slice tells of any more: what it was charged goes on.
bool IsGuess(const std::vector<ModelCharge>& parts) {
  return std::ranges::any_of(parts,
                             [](const ModelCharge& part) { return part.model == "unknown"; });
}

}  // namespace

DraBooks& DraDesk::BooksOf(Engine::Impl& engine) { return engine.dra_books; }

// ---- what claims are charged ------------------------------------------------------------------

NodeName DraDesk::NodeOf(const dra::Claim& claim) const {
  for (const PodUid& uid : claim.reserved_for) {
    if (const auto pod = books_.pods.find(uid); pod != books_.pods.end()) return pod->second.node;
    if (const PodRecord* record = engine_.Find(uid)) return record->node;
  }
  // NVIDIA's driver names a node's pool after the node.
  return NodeName(claim.allocation->devices.front().id.pool);
}

std::string DraDesk::ClassOf(const dra::Claim& claim) const {
  std::vector<PodUid> users = claim.reserved_for;
  users.push_back(claim.owner);
  for (const PodUid& uid : users) {
    if (const auto pod = books_.pods.find(uid); pod != books_.pods.end()) {
      return pod->second.request->priority_class;
    }
    if (const PodRecord* record = engine_.Find(uid)) return record->request->priority_class;
  }
  return "";
}

void DraDesk::Open(const PodUid& key, const dra::Claim& claim, std::vector<ModelCharge> parts,
                   Instant now, bool estimated) {
  PodRequest request;
  request.uid = key;
  request.name = {claim.ns, claim.name};
  request.priority_class = ClassOf(claim);
  DraBooks::Held& held = books_.held[key];
  held.node = NodeOf(claim);
  if (const auto known = engine_.unclaimed.find(key); known != engine_.unclaimed.end()) {
    held.interval = known->second.interval;
    engine_.unclaimed.erase(known);
    return;
  }
  if (const auto before = engine_.intervals.find(key); before != engine_.intervals.end()) {
    held.interval = std::max(held.interval, before->second + 1);
    engine_.intervals.erase(before);
  }
  const Standing standing = engine_.book.StandingOf(claim.ns, request.priority_class);
  HeldWork work = engine_.WorkOf(request, standing, now);
  work.parts = std::move(parts);
  MeterEvent event = engine_.Event(MeterKind::kOpen, key, held.interval, held.node, work, now);
  event.estimated = estimated;
  engine_.outbox.Journal(std::move(event));
  // The devices are taken from its allocation on, whatever its pods do.
  engine_.outbox.Journal(
      engine_.Event(MeterKind::kRunning, key, held.interval, held.node, work, now));
  engine_.book.Hold(key, std::move(work));
  engine_.book.Running(key, now);
  engine_.NoteChange();
}

void DraDesk::Close(const PodUid& key, Instant now) {
  const auto held = books_.held.find(key);
  const HeldWork* work = engine_.book.Find(key);
  if (held == books_.held.end() || work == nullptr) return;
  engine_.outbox.Journal(engine_.Event(MeterKind::kClose, key, held->second.interval,
                                       held->second.node, *work,
                                       std::max(now, work->running.value_or(work->since))));
  engine_.book.Release(key, now);
  engine_.intervals[key] = held->second.interval;
  books_.held.erase(held);
  engine_.NoteChange();
  engine_.PokeAdmitted(now);
}

void DraDesk::Recharge(const dra::Claim& claim, Instant now) {
  const PodUid key = KeyOf(claim.uid);
  std::vector<ModelCharge> parts;
  if (claim.allocation) {
    parts = dra::ChargeOfAllocation(claim, engine_.catalog.TableOf(*claim.allocation));
    Unkeep(key);
    if (!claim.owner.empty()) Unkeep(KeyOf(claim.owner));
  }
  const bool held = books_.held.contains(key);
  // What the ledger had open before a restart waits until everything has been shown.
  if (!books_.complete) return;
  const HeldWork* work = engine_.book.Find(key);
  if (held && work != nullptr) {
    if (work->parts == parts || (!parts.empty() && IsGuess(parts))) return;
    Close(key, now);
  }
  if (!parts.empty()) Open(key, claim, std::move(parts), now, false);
}

void DraDesk::RechargePool(const dra::PoolName& pool, Instant now) {
  for (const std::string& uid : engine_.catalog.HoldersOf(pool)) {
    Recharge(*engine_.catalog.FindByUid(uid), now);
  }
}

void DraDesk::FinishRestore(Instant now) {
  books_.complete = true;
  for (const auto& [uid, claim] : engine_.catalog.claims()) {
    if (!HoldsGpus(claim)) continue;
    const PodUid key = KeyOf(uid);
    Open(key, claim, dra::ChargeOfAllocation(claim, engine_.catalog.TableOf(*claim.allocation)),
         now, true);
  }
}

void DraDesk::Adopt(Instant now) {
  std::vector<PodUid> orphans;
  for (const auto& [key, held] : books_.held) {
    const HeldWork* work = engine_.book.Find(key);
    if (work == nullptr || !work->leaf.empty()) continue;
    const Standing standing = engine_.book.StandingOf(work->pod.ns, "");
    if (standing.leaf != kNoQuota) orphans.push_back(key);
  }
  for (const PodUid& key : orphans) {
    Close(key, now);
    const std::string uid = key.str().substr(KeyOf(std::string()).str().size());
    if (const dra::Claim* claim = engine_.catalog.FindByUid(uid)) Recharge(*claim, now);
  }
}

void DraDesk::PutClaim(dra::Claim claim, Instant now) {
  const std::string uid = claim.uid;
  const std::string replaced = engine_.catalog.PutClaim(std::move(claim));
  if (!replaced.empty()) Close(KeyOf(replaced), now);
  Recharge(*engine_.catalog.FindByUid(uid), now);
  // Pods that were refused because nobody had shown it.
  for (const PodUid& pod_uid : std::exchange(books_.unknown, {})) {
    const auto pod = books_.pods.find(pod_uid);
    if (pod == books_.pods.end() || !pod->second.node.empty()) continue;
    if (WantedOf(pod->second.request->name.ns, *pod->second.claims).unknown) {
      books_.unknown.insert(pod_uid);
    } else {
      engine_.outbox.Requeue(pod->second.request->name, pod_uid);
    }
  }
}

void DraDesk::Put(dra::Object object, Instant now) {
  if (auto* claim = std::get_if<dra::Claim>(&object)) {
    PutClaim(std::move(*claim), now);
  } else if (auto* slice = std::get_if<dra::Slice>(&object)) {
    const dra::PoolName pool(slice->driver, slice->pool);
    engine_.catalog.PutSlice(std::move(*slice));
    RechargePool(pool, now);
  } else if (auto* each = std::get_if<dra::DeviceClass>(&object)) {
    engine_.catalog.classes().PutClass(std::move(*each));
    books_.scores.Clear();
  } else if (auto* made = std::get_if<dra::ClaimTemplate>(&object)) {
    engine_.catalog.PutTemplate(std::move(made->claim));
  }
}

void DraDesk::Remove(const dra::ObjectRef& object, Instant now) {
  switch (object.kind) {
    case dra::ObjectRef::Kind::kClaim: {
      const std::string uid = engine_.catalog.RemoveClaim(object.ns, object.name);
      Unkeep(KeyOf(uid));
      return Close(KeyOf(uid), now);
    }
    case dra::ObjectRef::Kind::kSlice:
      return engine_.catalog.RemoveSlice(object.name);
    case dra::ObjectRef::Kind::kClass:
      books_.scores.Clear();
      return engine_.catalog.classes().RemoveClass(object.name);
    case dra::ObjectRef::Kind::kTemplate:
      return engine_.catalog.RemoveTemplate(object.ns, object.name);
  }
}

// ---- pods -------------------------------------------------------------------------------------

void DraDesk::NotePod(const PodFacts& pod, bool ended, Instant now) {
  const PodUid& uid = pod.request.uid;
  if (!pod.node.empty()) books_.served.erase(uid);
  if (ended || (!pod.claims && !pod.request.asks_gpu())) return ForgetPod(uid);
  if (pod.request.asks_gpu()) return;
  DraPod& known = books_.pods[uid];
  if (!known.request) {
    known.request = std::make_shared<const PodRequest>(pod.request);
    known.waits_since = pod.created.value_or(now);
    books_.by_name.emplace(pod.request.name, uid);
  }
  known.claims = pod.claims;
  if (!pod.node.empty()) known.node = pod.node;
  known.quota_gate = pod.our_gates.quota;
  known.other_gates = pod.our_gates.gang || pod.foreign_gates;
  if (known.node.empty()) return;
  known.last_reason = Reason::kNone;
  known.wants_gpus |= WantedOf(pod.request.name.ns, *pod.claims).holds_gpus;
}

void DraDesk::ForgetPod(const PodUid& uid) {
  books_.served.erase(uid);
  Unkeep(KeyOf(uid));
  const auto found = books_.pods.find(uid);
  if (found == books_.pods.end()) return;
  Release(uid, WantedOf(found->second.request->name.ns, *found->second.claims));
  books_.by_name.erase({found->second.request->name, uid});
  books_.unknown.erase(uid);
  books_.pods.erase(found);
}

DraDesk::Wanted DraDesk::WantedOf(const std::string& ns, const dra::PodClaims& claims) {
  Wanted wanted;
  const auto make_up = [&wanted](dra::Claim claim) {
    wanted.made_up.push_back(std::make_unique<dra::Claim>(std::move(claim)));
    wanted.claims.push_back(wanted.made_up.back().get());
  };
  for (const dra::PodClaim& use : claims.claims) {
    if (!use.claim.empty()) {
      const dra::Claim* claim = engine_.catalog.FindClaim(ns, use.claim);
      wanted.unknown |= claim == nullptr;
      if (claim != nullptr) wanted.claims.push_back(claim);
    } else if (const dra::Claim* made = engine_.catalog.FindTemplate(ns, use.template_name)) {
      make_up(*made);
    }
  }
  if (claims.extended) {
    const dra::Claim* claim = engine_.catalog.FindClaim(ns, claims.extended->claim);
    if (claim != nullptr) wanted.claims.push_back(claim);
  }
  dra::Claim extended;
  extended.ns = ns;
  for (std::size_t i = 0; i < claims.asks.size(); ++i) {
    const auto rest = dra::NotServed(std::span(&claims.asks[i], 1), claims.extended);
    if (rest.empty()) continue;
    auto request = dra::RequestOf(claims.asks[i], i, 0, engine_.catalog.classes());
    if (request) extended.requests.push_back(*std::move(request));
  }
  if (!extended.requests.empty()) make_up(std::move(extended));
  wanted.holds_gpus =
      std::ranges::any_of(wanted.claims, [](const auto* each) { return HoldsGpus(*each); });
  return wanted;
}

// ---- quota ------------------------------------------------------------------------------------

const dra::NodeBooks* DraDesk::BooksOn(NodeId id) {
  if (id == kNoNode || engine_.nodes[id] == nullptr || !engine_.nodes[id]->state.present()) {
    return nullptr;
  }
  const NodeFacts& facts = engine_.nodes[id]->state.facts();
  if (!engine_.catalog.MayHaveDevices(facts.name.str())) return nullptr;
  return &engine_.catalog.BooksOn({facts.name.str(), &facts.labels});
}

std::vector<ModelCharge> DraDesk::PartsOn(const Wanted& wanted, NodeId id) {
  std::vector<ModelCharge> parts;
  const dra::NodeBooks* books = BooksOn(id);
  if (books == nullptr) return parts;
  for (const dra::Claim* claim : wanted.claims) {
    if (claim->allocation) continue;
    for (const ModelCharge& part : dra::ChargeAtMost(*claim, *books, engine_.catalog.classes()))
      Add(parts, part);
  }
  return parts;
}

void DraDesk::Unkeep(const PodUid& key) {
  if (books_.kept.erase(key) > 0) engine_.book.Unearmark(key);
}

void DraDesk::Release(const PodUid& pod, const Wanted& wanted) {
  Unkeep(KeyOf(pod));
  for (const dra::Claim* claim : wanted.claims) {
    if (!claim->uid.empty()) Unkeep(KeyOf(claim->uid));
  }
}

void DraDesk::Keep(const PodRequest& request, const Wanted& wanted, NodeId id, Instant now) {
  const dra::NodeBooks* books = BooksOn(id);
  const Standing standing = engine_.ContextOf(request).standing;
  if (books == nullptr || standing.leaf == kNoQuota) return;
  const Millis lifetime = engine_.options.claim_lifetime;
  const auto keep = [&](const PodUid& key, PodName name, std::vector<ModelCharge> parts) {
    if (parts.empty() || books_.held.contains(key) || books_.kept.contains(key)) return;
    HeldWork work = engine_.WorkOf(request, standing, now);
    work.pod = std::move(name);
    work.parts = std::move(parts);
    engine_.book.Earmark(key, std::move(work));
    books_.kept[key] =
        lifetime > Millis::zero() ? std::optional<Instant>(now + lifetime) : std::nullopt;
  };
  std::vector<ModelCharge> to_be_made;
  for (const dra::Claim* claim : wanted.claims) {
    if (claim->allocation) continue;
    auto parts = dra::ChargeAtMost(*claim, *books, engine_.catalog.classes());
    if (claim->uid.empty()) {
      for (const ModelCharge& part : parts) Add(to_be_made, part);
    } else {
      keep(KeyOf(claim->uid), {claim->ns, claim->name}, std::move(parts));
    }
  }
  keep(KeyOf(request.uid), request.name, std::move(to_be_made));
}

Reason DraDesk::AskAnywhere(const RequestContext& context, const Wanted& wanted, Instant now,
                            std::vector<ModelCharge>& parts, std::optional<Instant>& eligible_at) {
  if (context.whole != Reason::kNone && context.whole != Reason::kDialectOff) {
    return context.whole;
  }
  std::vector<std::pair<std::vector<ModelCharge>, Reason>> asked;
  Reason first = Reason::kNone;
  for (const NodeId id : engine_.names.ascending()) {
    std::vector<ModelCharge> here = PartsOn(wanted, id);
    if (here.empty()) continue;
    if (std::ranges::find(
            asked, here, [](const auto& each) -> auto& { return each.first; }) != asked.end()) {
      continue;
    }
    Admission admission;
    const Reason reason =
        context.metered ? engine_.Admit(context, here, now, admission) : Reason::kNone;
    if (parts.empty() || reason == Reason::kNone) parts = here;
    if (reason == Reason::kNone) return reason;
    if (admission.eligible_at && (!eligible_at || *admission.eligible_at < *eligible_at)) {
      eligible_at = admission.eligible_at;
    }
    if (first == Reason::kNone || reason < first) first = reason;
    asked.emplace_back(std::move(here), reason);
  }
  return first;
}

DraWord DraDesk::WordFor(const PodRequest& request, const dra::PodClaims& claims, Instant now) {
  DraWord word;
  const Wanted wanted = WantedOf(request.name.ns, claims);
  std::vector<ModelCharge> parts;
  std::optional<Instant> eligible_at;
  const RequestContext context = engine_.ContextOf(request);
  const Reason reason = AskAnywhere(context, wanted, now, parts, eligible_at);
  word.wants_gpus = wanted.holds_gpus || !parts.empty();
  word.quota_waits =
      word.wants_gpus && IsQuotaReason(reason) && context.standing.mode == QuotaMode::kEnforce;
  return word;
}

void DraDesk::LetIn(Instant now) {
  std::vector<std::pair<Instant, PodUid>> waiting;
  for (const auto& [uid, pod] : books_.pods) {
    const bool refused = pod.quota_gate || IsQuotaReason(pod.last_reason);
    const bool told = pod.told && now < *pod.told + kToldTime;
    if (!refused || !pod.node.empty() || pod.other_gates || told) continue;
    waiting.emplace_back(pod.waits_since, uid);
  }
  std::ranges::sort(waiting);
  if (waiting.size() > kMostLooks) waiting.resize(kMostLooks);
  for (const auto& [since, uid] : waiting) {
    DraPod& pod = books_.pods.at(uid);
    const Wanted wanted = WantedOf(pod.request->name.ns, *pod.claims);
    Release(uid, wanted);
    pod.asked.clear();
    pod.eligible_at.reset();
    const Reason reason =
        AskAnywhere(engine_.ContextOf(*pod.request), wanted, now, pod.asked, pod.eligible_at);
    if (reason != Reason::kNone) {
      pod.last_reason = reason;
      pod.wants_gpus |= !pod.asked.empty();
      continue;
    }
    for (const NodeId id : engine_.names.ascending()) {
      if (pod.asked.empty() || PartsOn(wanted, id) != pod.asked) continue;
      Keep(*pod.request, wanted, id, now);
      break;
    }
    pod.told = now;
    if (pod.quota_gate) {
      engine_.outbox.Ungate(pod.request->name, uid, Gate::kQuota);
    } else {
      engine_.outbox.Requeue(pod.request->name, uid);
    }
  }
}

void DraDesk::Tend(Instant now) {
  for (auto at = books_.kept.begin(); at != books_.kept.end();) {
    const auto kept = at++;
    if (!kept->second || now < *kept->second) continue;
    engine_.book.Unearmark(kept->first);
    books_.kept.erase(kept);
  }
  if (!books_.complete || books_.pods.empty() || now < books_.looked_at + kLookAgain) return;
  books_.looked_at = now;
  LetIn(now);
}

std::optional<Instant> DraDesk::Due() const {
  std::optional<Instant> due;
  for (const auto& [key, until] : books_.kept) {
    if (until && (!due || *until < *due)) due = until;
  }
  for (const auto& [uid, pod] : books_.pods) {
    if (!pod.node.empty() || (!pod.quota_gate && !IsQuotaReason(pod.last_reason))) continue;
    const Instant again = books_.looked_at + kLookAgain;
    return due ? std::min(*due, again) : again;
  }
  return due;
}

void Engine::SetDraObject(dra::Object object, Instant now) {
  impl_->Advance(now);
  DraDesk(*impl_).Put(std::move(object), now);
}

void Engine::RemoveDraObject(const dra::ObjectRef& object, Instant now) {
  impl_->Advance(now);
  DraDesk(*impl_).Remove(object, now);
}

DraWord Engine::DraWordFor(const PodRequest& request, const dra::PodClaims& claims, Instant now) {
  impl_->Advance(now);
  return DraDesk(*impl_).WordFor(request, claims, now);
}

}  // namespace tranche
