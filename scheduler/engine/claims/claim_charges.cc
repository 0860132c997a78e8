#include "scheduler/engine/claims/claim_charges.h"

#include <algorithm>
#include <utility>

namespace tranche {
namespace {

// Of devices that no slice tells of. nullopt: each is known.
std::optional<Charge> GuessedOf(const std::vector<ModelCharge>& parts) {
  const auto guess = std::ranges::find_if(
      parts, [](const ModelCharge& part) { return PartsOf(part.model).model == "unknown"; });
  return guess == parts.end() ? std::nullopt : std::optional(guess->charge);
}

// Where a device is no longer told of, what it was charged goes on.
bool IsBetterKnown(const std::vector<ModelCharge>& parts, const std::vector<ModelCharge>& held) {
  const std::optional<Charge> guessed = GuessedOf(parts);
  const std::optional<Charge> before = GuessedOf(held);
  return !guessed || (before && guessed->compute < before->compute);
}

// The node that alone can reach the devices. Null: several can, or it is said by labels.
const std::string* OnlyNodeOf(const dra::Allocation& allocation) {
  if (!allocation.nodes || allocation.nodes->affinity.size() != 1) return nullptr;
  const auto names_one = [](const NodeTerm& term) {
    return term.is_field && term.key == "metadata.name" && term.op == NodeTerm::Operator::kIn &&
           term.values.size() == 1;
  };
  const std::vector<NodeTerm>& terms = allocation.nodes->affinity.front();
  const auto found = std::ranges::find_if(terms, names_one);
  return found == terms.end() ? nullptr : &found->values.front();
}

}  // namespace

// On the line of the pool that its node is in; work that runs stays on the one it began on.
std::vector<ModelCharge> ClaimCharges::ChargeOf(const dra::Claim& claim) const {
  std::vector<ModelCharge> parts =
      dra::ChargeOfAllocation(claim, cluster_.catalog.TableOf(*claim.allocation));
  const HeldWork* const held = cluster_.book.Find(KeyOfClaim(claim.uid));
  if (held != nullptr && !held->parts.empty()) {
    PutIntoPool(parts, PartsOf(held->parts.front().model).pool);
    return parts;
  }
  const NodeId node = cluster_.names.Find(NodeOf(claim).str());
  if (node != kNoNode && cluster_.nodes[node] != nullptr) {
    PutIntoPool(parts, cluster_.nodes[node]->state.inventory().metered_pool);
  }
  return parts;
}

NodeName ClaimCharges::NodeOf(const dra::Claim& claim) const {
  // kube-scheduler allocates a claim before it binds the first pod that uses it.
  for (const PodUid& uid : claim.reserved_for) {
    const auto pod = books_.pods.find(uid);
    const PodRecord* const record = pod == books_.pods.end() ? cluster_.Find(uid) : &pod->second;
    if (record != nullptr && !record->node.empty()) return record->node;
  }
  if (const std::string* const only = OnlyNodeOf(*claim.allocation)) return NodeName(*only);
  // NVIDIA's driver names a node's pool after the node.
  return NodeName(claim.allocation->devices.front().id.pool);
}

const PodRecord* ClaimCharges::UserOf(const dra::Claim& claim) const {
  std::vector<PodUid> users = claim.reserved_for;
  users.push_back(claim.owner);
  for (const PodUid& uid : users) {
    if (const auto pod = books_.pods.find(uid); pod != books_.pods.end()) return &pod->second;
    if (const PodRecord* record = cluster_.Find(uid)) return record;
  }
  return nullptr;
}

void ClaimCharges::Open(const PodUid& key, const dra::Claim& claim, std::vector<ModelCharge> parts,
                        Start start, Instant now) {
  const bool remembered = metering_.unclaimed.contains(key);
  if (!remembered && cluster_.book.Find(key) != nullptr) return;  // charged already
  PodRequest request;
  request.uid = key;
  request.name = {claim.ns, claim.name};
  const PodRecord* const user = UserOf(claim);
  if (user != nullptr) request.priority_class = user->request->priority_class;
  MeteredClaim& held = metering_.claims[key];
  held.node = NodeOf(claim);
  if (const auto known = metering_.unclaimed.find(key); known != metering_.unclaimed.end()) {
    held.interval = known->second.interval;
    metering_.unclaimed.erase(known);
    return;
  }
  held.interval = metering_.earlier.NextOf(key, held.interval);
  const QuotaMembership membership = cluster_.book.MembershipOf(claim.ns, request.priority_class);
  HeldWork work = cluster_.WorkOf(request, membership, now);
  work.parts = std::move(parts);
  MeterEvent event = metering_.Event(MeterKind::kOpen, key, held.interval, held.node, work, now);
  event.estimated = start == Start::kEstimated;
  if (user != nullptr) {
    event.controller = user->traits.controller;
    event.labels = user->traits.labels;
  }
  cluster_.outbox.Journal(std::move(event));
  // The devices are taken from its allocation on, whatever its pods do.
  cluster_.outbox.Journal(
      metering_.Event(MeterKind::kRunning, key, held.interval, held.node, work, now));
  cluster_.book.Hold(key, std::move(work));
  cluster_.book.Running(key, now);
  cluster_.NoteChange();
}

void ClaimCharges::Close(const PodUid& key, Instant now) {
  const auto held = metering_.claims.find(key);
  const HeldWork* work = cluster_.book.Find(key);
  if (held == metering_.claims.end() || work == nullptr) return;
  cluster_.outbox.Journal(metering_.Event(MeterKind::kClose, key, held->second.interval,
                                          held->second.node, *work,
                                          std::max(now, work->running.value_or(work->since))));
  cluster_.book.Release(key, now);
  metering_.earlier.Note(key, held->second.interval);
  metering_.claims.erase(held);
  cluster_.NoteChange();
  requeue_.Admitted(now);
}

void ClaimCharges::Recharge(const dra::Claim& claim, Instant now) {
  const PodUid key = KeyOfClaim(claim.uid);
  std::vector<ModelCharge> parts;
  if (claim.allocation) {
    parts = ChargeOf(claim);
    Unkeep(key);
    if (!claim.owner.empty()) Unkeep(KeyOfClaimsToBe(claim.owner));
  }
  const bool held = metering_.claims.contains(key);
  // What the ledger had open before a restart waits until everything has been shown.
  if (!books_.complete) return;
  const HeldWork* work = cluster_.book.Find(key);
  if (held && work != nullptr) {
    if (work->parts == parts || (!parts.empty() && !IsBetterKnown(parts, work->parts))) return;
    Close(key, now);
  }
  if (!parts.empty()) Open(key, claim, std::move(parts), Start::kSeen, now);
}

void ClaimCharges::RechargePool(const dra::PoolName& pool, Instant now) {
  for (const std::string& uid : cluster_.catalog.HoldersOf(pool)) {
    Recharge(*cluster_.catalog.FindByUid(uid), now);
  }
}

void ClaimCharges::FinishRestore(Instant now) {
  books_.complete = true;
  for (const auto& [uid, claim] : cluster_.catalog.claims()) {
    if (!HoldsGpus(claim)) continue;
    const PodUid key = KeyOfClaim(uid);
    Open(key, claim, ChargeOf(claim), Start::kEstimated, now);
  }
}

std::set<PodUid> ClaimCharges::Keys() const {
  std::set<PodUid> keys;
  for (const auto& [uid, claim] : cluster_.catalog.claims()) keys.insert(KeyOfClaim(uid));
  return keys;
}

void ClaimCharges::Adopt(Instant now) {
  std::vector<PodUid> orphans;
  for (const auto& [key, held] : metering_.claims) {
    const HeldWork* work = cluster_.book.Find(key);
    if (work == nullptr || !metering_.IsUnowned(*work)) continue;
    const QuotaMembership membership = cluster_.book.MembershipOf(work->pod.ns, "");
    if (membership.leaf != kNoQuota) orphans.push_back(key);
  }
  for (const PodUid& key : orphans) {
    // It holds what it held, whether a slice tells of these devices just now or not.
    std::vector<ModelCharge> parts = cluster_.book.Find(key)->parts;
    Close(key, now);
    const dra::Claim* claim = cluster_.catalog.FindByUid(UidOfClaim(key));
    if (claim == nullptr || !claim->allocation) continue;
    Open(key, *claim, std::move(parts), Start::kSeen, now);
  }
}

void ClaimCharges::PutClaim(dra::Claim claim, Instant now) {
  const std::string uid = claim.uid;
  const std::string replaced = cluster_.catalog.PutClaim(std::move(claim));
  if (!replaced.empty()) Close(KeyOfClaim(replaced), now);
  Recharge(*cluster_.catalog.FindByUid(uid), now);
  // Pods that were refused because nobody had shown it.
  for (const PodUid& pod_uid : std::exchange(books_.unknown, {})) {
    const auto pod = books_.pods.find(pod_uid);
    if (pod == books_.pods.end() || !pod->second.node.empty()) continue;
    if (wishes_.Of(pod->second.request->name.ns, *pod->second.claims).unknown) {
      books_.unknown.insert(pod_uid);
    } else {
      cluster_.outbox.Requeue(pod->second.request->name, pod_uid);
    }
  }
}

void ClaimCharges::Put(dra::Object object, Instant now) {
  if (auto* claim = std::get_if<dra::Claim>(&object)) {
    PutClaim(std::move(*claim), now);
  } else if (auto* slice = std::get_if<dra::Slice>(&object)) {
    const dra::PoolName pool(slice->driver, slice->pool);
    cluster_.catalog.PutSlice(std::move(*slice));
    RechargePool(pool, now);
  } else if (auto* each = std::get_if<dra::DeviceClass>(&object)) {
    cluster_.catalog.classes().PutClass(std::move(*each));
    books_.scores.Clear();
  } else if (auto* made = std::get_if<dra::ClaimTemplate>(&object)) {
    cluster_.catalog.PutTemplate(std::move(made->claim));
  } else if (auto* rule = std::get_if<dra::TaintRule>(&object)) {
    cluster_.catalog.PutTaintRule(std::move(*rule));
  }
}

void ClaimCharges::Remove(const dra::ObjectRef& object, Instant now) {
  switch (object.kind) {
    case dra::ObjectRef::Kind::kClaim: {
      const std::string uid = cluster_.catalog.RemoveClaim({object.ns, object.name});
      Unkeep(KeyOfClaim(uid));
      Close(KeyOfClaim(uid), now);
      // A uid never comes back.
      metering_.earlier.Forget(KeyOfClaim(uid));
      return;
    }
    case dra::ObjectRef::Kind::kSlice:
      return cluster_.catalog.RemoveSlice(object.name);
    case dra::ObjectRef::Kind::kClass:
      books_.scores.Clear();
      return cluster_.catalog.classes().RemoveClass(object.name);
    case dra::ObjectRef::Kind::kTemplate:
      return cluster_.catalog.RemoveTemplate({object.ns, object.name});
    case dra::ObjectRef::Kind::kTaintRule:
      return cluster_.catalog.RemoveTaintRule(object.name);
  }
}

void ClaimCharges::Unkeep(const PodUid& key) {
  if (books_.kept.erase(key) > 0) cluster_.book.Unearmark(key);
}

void ClaimCharges::Release(const PodUid& pod, const ClaimWish& wish) {
  Unkeep(KeyOfClaimsToBe(pod));
  for (const dra::Claim* claim : wish.claims) {
    if (!claim->uid.empty()) Unkeep(KeyOfClaim(claim->uid));
  }
}

void ClaimCharges::Keep(const PodRequest& request, const ClaimWish& wish, NodeId id, Instant now) {
  const dra::NodeBooks* books = wishes_.BooksOn(id);
  const QuotaMembership membership = rules_.ContextOf(request).membership;
  if (books == nullptr || membership.leaf == kNoQuota) return;
  const Millis lifetime = cluster_.options.tentative_lifetime;
  const auto keep = [&](const PodUid& key, PodName name, std::vector<ModelCharge> parts) {
    if (parts.empty() || metering_.claims.contains(key) || books_.kept.contains(key)) return;
    HeldWork work = cluster_.WorkOf(request, membership, now);
    work.pod = std::move(name);
    work.parts = std::move(parts);
    work.tentative = true;
    cluster_.book.Earmark(key, std::move(work));
    books_.kept[key] =
        lifetime > Millis::zero() ? std::optional<Instant>(now + lifetime) : std::nullopt;
  };
  std::vector<ModelCharge> to_be_made;
  for (const dra::Claim* claim : wish.claims) {
    if (claim->allocation) continue;
    auto parts = dra::ChargeAtMost(*claim, *books, cluster_.catalog.classes());
    PutIntoPool(parts, cluster_.nodes[id]->state.inventory().metered_pool);
    if (claim->uid.empty()) {
      for (const ModelCharge& part : parts) Add(to_be_made, part);
    } else {
      keep(KeyOfClaim(claim->uid), {claim->ns, claim->name}, std::move(parts));
    }
  }
  keep(KeyOfClaimsToBe(request.uid), request.name, std::move(to_be_made));
}

}  // namespace tranche
