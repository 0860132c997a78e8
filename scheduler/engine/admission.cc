// What a pod's team may have: policy, class, quota and budget of a request, and who comes first.
//
// Quota is asked once per kind of node in a call, not once per node: nodes of one kind charge a
// request the same. Claims are no use of quota: bind asks again (DESIGN section 1).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Others give way to a waiting pod for this long; then it has had its chance.
constexpr Millis kYieldTime{30'000};
// Waiting pods looked at in one call: enough to keep the order where it matters.
constexpr int kMostContenders = 16;
constexpr int kMostPokes = 16;

Reason ReasonOf(AdmissionCode code) {
  switch (code) {
    case AdmissionCode::kAdmitted:
      return Reason::kNone;
    case AdmissionCode::kBudgetExhausted:
      return Reason::kBudgetExhausted;
    case AdmissionCode::kExceedsMaxQuota:
      return Reason::kExceedsMaxQuota;
    case AdmissionCode::kBorrowLimit:
      return Reason::kBorrowLimit;
    case AdmissionCode::kLenderLimit:
      return Reason::kLenderLimit;
    case AdmissionCode::kWaitingForQuota:
      return Reason::kWaitingForQuota;
  }
  return Reason::kNone;
}

}  // namespace

RequestContext Engine::Impl::ContextOf(const PodRequest& request) {
  RequestContext context;
  context.request = &request;
  const auto [at, fresh] = policy_of_namespace.try_emplace(request.name.ns, policies.size() - 1);
  if (fresh) {
    // `policies` begins with those of the set; its last one governs where none of them does.
    if (const GpuPolicy* governs = set->PolicyFor(request.name.ns)) {
      at->second = static_cast<std::size_t>(governs - set->policies.data());
    }
  }
  context.policy_index = at->second;
  context.policy = &policies[at->second];
  context.standing = book.StandingOf(request.name.ns, request.priority_class);
  if (context.standing.gpu_class != nullptr) {
    context.sharing = &context.standing.gpu_class->sharing;
  }
  const Standing& standing = context.standing;
  context.metered = (standing.leaf != kNoQuota && standing.mode != QuotaMode::kOff) ||
                    (standing.leaf == kNoQuota && !standing.budgets.empty());
  context.capped = caps.Limits(request.name.ns);
  if (request.refusal) {
    context.whole = request.refusal->reason;
  } else if (!context.policy->dialects.empty() &&
             std::ranges::find(context.policy->dialects, DialectName(request.dialect)) ==
                 context.policy->dialects.end()) {
    context.whole = Reason::kDialectOff;
  } else if (standing.leaf_found == Standing::Leaf::kConflict) {
    context.whole = Reason::kLeafConflict;
  } else if (standing.leaf_found == Standing::Leaf::kNone && !set->quotas.empty() &&
             context.policy->unassigned == Permission::kRefuse) {
    context.whole = Reason::kNoLeaf;
  } else if (!CapsAllowLeast(request)) {
    context.whole = Reason::kNamespaceQuota;
  } else if (ledger_closed && context.metered && standing.mode != QuotaMode::kObserve) {
    context.whole = Reason::kLedgerClosed;
  }
  return context;
}

void Engine::Impl::ForgetKindAnswers() {
  for (const uint32_t kind : kinds_asked) kind_answers[kind].known = false;
  kinds_asked.clear();
  kind_answers.resize(kinds.size());
}

Reason Engine::Impl::Admit(const RequestContext& context, std::span<const ModelCharge> parts,
                           Instant now, Admission& admission) {
  admission = book.Admit(context.standing, parts, context.request->expected_runtime, now);
  return ReasonOf(admission.code);
}

const KindAnswer& Engine::Impl::AskQuota(const RequestContext& context, NodeId id, Instant now) {
  const uint32_t kind = hot[id].kind;
  KindAnswer& answer = kind_answers[kind];
  if (answer.known) return answer;
  answer.known = true;
  kinds_asked.push_back(kind);
  ChargeAtMost(nodes[id]->state.inventory(), *context.request, answer.parts);
  Admission admission;
  answer.reason = Admit(context, answer.parts, now, admission);
  answer.borrows = admission.borrows;
  answer.demoted = admission.demoted;
  answer.eligible_at = admission.eligible_at;
  return answer;
}

// The highest-ranked quota reason found during this call, with its charge and moment.
void Engine::Impl::NoteQuotaRefusal(const RequestContext& context, PodRecord& record, Instant now) {
  record.eligible_at.reset();
  record.observed = Reason::kNone;
  const bool observes = context.standing.mode == QuotaMode::kObserve;
  const KindAnswer* first = nullptr;
  for (const uint32_t kind : kinds_asked) {
    const KindAnswer& answer = kind_answers[kind];
    if (record.asked.empty()) record.asked = answer.parts;
    if (answer.reason == Reason::kNone) continue;
    if (first == nullptr || answer.reason < first->reason) first = &answer;
    const bool sooner =
        answer.eligible_at && (!record.eligible_at || *answer.eligible_at < *record.eligible_at);
    if (sooner) record.eligible_at = answer.eligible_at;
  }
  const PodUid& uid = context.request->uid;
  // Refused on GPUs of one model and placed on another: nothing is waited for.
  if (first == nullptr || quota_allows_one) {
    contenders.erase(uid);
    record.eligible_at.reset();
    return;
  }
  record.asked = first->parts;
  if (observes) {
    record.observed = first->reason;
    record.eligible_at.reset();
    return;
  }
  contenders.insert(uid);
  if (record.eligible_at && *record.eligible_at > now) wakeups.emplace(*record.eligible_at, uid);
}

// Placement right among those who borrow: higher class, then the lower share of what is borrowed,
// weighted and corrected for past use, then who waits longer.
bool Engine::Impl::ComesFirst(const PodRecord& left, const PodRecord& right, Instant now) const {
  const Standing of_left = book.StandingOf(left.request->name.ns, left.request->priority_class);
  const Standing of_right = book.StandingOf(right.request->name.ns, right.request->priority_class);
  if (RankOf(of_left.gpu_class) != RankOf(of_right.gpu_class))
    return RankOf(of_left.gpu_class) > RankOf(of_right.gpu_class);
  if (of_left.leaf != of_right.leaf) {
    // A pod without a leaf borrows nothing.
    if (of_left.leaf == kNoQuota || of_right.leaf == kNoQuota) return of_left.leaf == kNoQuota;
    const int order = book.CompareShares(of_left.leaf, of_right.leaf, now);
    if (order != 0) return order < 0;
  }
  // Within a team's class, whoever was evicted comes first.
  const bool left_returned = reclaims.returned.contains(left.request->uid);
  const bool right_returned = reclaims.returned.contains(right.request->uid);
  if (left_returned != right_returned) return left_returned;
  return std::tie(left.waits_since, left.request->uid) <
         std::tie(right.waits_since, right.request->uid);
}

std::optional<PodUid> Engine::Impl::YieldsTo(const RequestContext& context, const PodRecord& record,
                                             Instant now) {
  const Standing& standing = context.standing;
  if (contenders.empty() || standing.mode != QuotaMode::kEnforce || best.empty()) {
    return std::nullopt;
  }
  const NodeId mine = best.front().node;
  const KindAnswer& taken = AskQuota(context, mine, now);
  if (!taken.borrows) return std::nullopt;
  const QuotaId root = book.tree().root(standing.leaf);
  int looked_at = 0;
  for (const PodUid& uid : contenders) {
    if (uid == context.request->uid) continue;
    PodRecord* other = Find(uid);
    if (other == nullptr || !IsPending(*other) || other->asked.empty()) continue;
    if (++looked_at > kMostContenders) break;
    const bool had_its_chance = other->yields_since && now - *other->yields_since > kYieldTime;
    if (had_its_chance) continue;
    const RequestContext theirs = ContextOf(*other->request);
    if (theirs.whole != Reason::kNone || theirs.standing.leaf == kNoQuota ||
        book.tree().root(theirs.standing.leaf) != root ||
        RankOf(theirs.standing.gpu_class) < RankOf(standing.gpu_class)) {
      continue;
    }
    // It must really fit now, by quota and on a node of ours, and no longer if we are let in.
    // Shares cost the most to compare and are asked for last.
    Admission admission;
    if (Admit(theirs, other->asked, now, admission) != Reason::kNone) continue;
    if (!ComesFirst(*other, record, now)) continue;
    if (!book.FitsBeside(standing.leaf, taken.parts, theirs.standing.leaf, other->asked)) {
      const bool placed = std::ranges::any_of(best, [&](const Candidate& candidate) {
        return hot[candidate.node].closed == Reason::kNone &&
               Fits(theirs, candidate.node) == Reason::kNone;
      });
      if (!placed) continue;
      TRANCHE_MARK(pod_yields_to_another_team);
      if (!other->yields_since) other->yields_since = now;
      return uid;
    }
  }
  return std::nullopt;
}

// An evicted pod gets devices back before others of its team and class (quota-model section 4).
bool Engine::Impl::GivesWayToReturned(const RequestContext& context, const PodRecord& record,
                                      Instant now, PodUid& first) {
  const Standing& standing = context.standing;
  const bool asked = standing.leaf != kNoQuota && standing.mode == QuotaMode::kEnforce;
  if (!asked || best.size() != 1 || reclaims.returned.contains(context.request->uid) ||
      record.earmark != nullptr) {
    return false;
  }
  const NodeId mine = best.front().node;
  int looked_at = 0;
  for (const PodUid& uid : reclaims.returned) {
    PodRecord* other = Find(uid);
    if (other == nullptr || !IsPending(*other) || ++looked_at > kMostContenders) continue;
    if (other->yields_since && now - *other->yields_since > kYieldTime) continue;
    const RequestContext theirs = ContextOf(*other->request);
    if (theirs.whole != Reason::kNone || theirs.standing.leaf != standing.leaf ||
        RankOf(theirs.standing.gpu_class) != RankOf(standing.gpu_class)) {
      continue;
    }
    if (Fits(theirs, mine) != Reason::kNone) continue;
    std::vector<ModelCharge> parts;
    ChargeAtMost(nodes[mine]->state.inventory(), *other->request, parts);
    Admission admission;
    if (Admit(theirs, parts, now, admission) != Reason::kNone) continue;
    TRANCHE_MARK(pod_yields_to_one_evicted_before);
    if (!other->yields_since) other->yields_since = now;
    first = uid;
    return true;
  }
  return false;
}

bool Engine::Impl::PokeIfFits(const PodUid& uid, Instant now) {
  PodRecord* record = Find(uid);
  if (record == nullptr || !IsPending(*record) || record->traits.gated) return false;
  const RequestContext context = ContextOf(*record->request);
  if (context.whole != Reason::kNone) return false;
  const ScopedRemoval lift(*this, uid, now, SharesWith(uid));
  ids.clear();
  for (NodeId id = 0; id < hot.size(); ++id) {
    if (hot[id].closed == Reason::kNone) ids.push_back(id);
  }
  Select(context, ids, 1, now, nullptr);
  if (best.empty() || record->poked == now) return !best.empty();
  record->poked = now;
  outbox.Requeue(record->request->name, uid);
  return true;
}

void Engine::Impl::PokeAdmitted(Instant now) {
  std::vector<PodUid> waiting(contenders.begin(), contenders.end());
  std::erase_if(waiting, [this](const PodUid& uid) {
    const PodRecord* record = Find(uid);
    return record == nullptr || !IsQuotaReason(record->last_reason);
  });
  std::ranges::sort(waiting, [&](const PodUid& left, const PodUid& right) {
    return ComesFirst(*Find(left), *Find(right), now);
  });
  int poked = 0;
  for (const PodUid& uid : waiting) {
    poked += PokeIfFits(uid, now);
    if (poked == kMostPokes) return;
  }
}

std::string Engine::Impl::DescribeQuota(const RequestContext& context, const PodRecord& record,
                                        Instant now) {
  if (context.whole == Reason::kLeafConflict) {
    std::string found;
    for (const GpuQuota* leaf : set->LeavesOf(context.request->name.ns)) {
      found += (found.empty() ? "" : ", ") + leaf->name;
    }
    return fmt::format(
        "expected one GPUQuota whose namespaceSelector matches namespace {}, found {}",
        context.request->name.ns, found);
  }
  if (context.whole == Reason::kNoLeaf) {
    return fmt::format(
        "expected a GPUQuota whose namespaceSelector matches namespace {}, found none",
        context.request->name.ns);
  }
  if (record.last_reason == Reason::kNamespaceQuota) return DescribeCaps(*context.request, kNoNode);
  if (!context.metered || record.asked.empty()) return "";
  Admission admission;
  if (Admit(context, record.asked, now, admission) == Reason::kNone) {
    return IsQuotaReason(record.last_reason) ? "there is quota for it now; it is tried again" : "";
  }
  std::string why = book.Explain(context.standing, admission, record.asked, now);
  if (admission.code == AdmissionCode::kBudgetExhausted ||
      !contenders.contains(record.request->uid)) {
    return why;
  }
  int position = 1, waiting = 0;
  const QuotaId root = book.tree().root(context.standing.leaf);
  for (const PodUid& uid : contenders) {
    const PodRecord* other = Find(uid);
    if (other == nullptr || !IsPending(*other)) continue;
    const Standing theirs =
        book.StandingOf(other->request->name.ns, other->request->priority_class);
    if (theirs.leaf == kNoQuota || book.tree().root(theirs.leaf) != root) continue;
    ++waiting;
    position += other != &record && ComesFirst(*other, record, now);
  }
  return fmt::format("{}. Position {} of {}", why, position, waiting);
}

std::string Engine::Impl::DescribeQuotaAnswers(const RequestContext& context, Instant now) {
  for (const uint32_t kind : kinds_asked) {
    const KindAnswer& answer = kind_answers[kind];
    if (answer.reason == Reason::kNone) continue;
    Admission admission;
    Admit(context, answer.parts, now, admission);
    return book.Explain(context.standing, admission, answer.parts, now);
  }
  return "";
}

void Engine::SetPolicies(std::shared_ptr<const PolicySet> set, const GpuPolicy& defaults,
                         Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  const int hami_before = impl.default_policy().hami_minor;
  const std::shared_ptr<const PolicySet> before = std::exchange(impl.set, set);
  impl.policies = set->policies;
  const bool covers_all = !impl.policies.empty() && !impl.policies.back().namespaces;
  if (!covers_all) impl.policies.push_back(defaults);
  impl.ForgetTeams();
  impl.book.SetPolicies(std::move(set), now);
  if (impl.default_policy().hami_minor != hami_before) {
    for (NodeId id = 0; id < impl.nodes.size(); ++id) {
      NodeEntry* entry = impl.nodes[id].get();
      if (entry == nullptr || !entry->state.present()) continue;
      NodeFacts facts = entry->state.facts();
      entry->state.SetFacts(std::move(facts), impl.default_policy().hami_minor, &impl.machines);
      entry->kind = impl.KindOf(entry->state.inventory());
      impl.Refresh(id, impl.latest);
    }
  }
  impl.Adopt(now);
  impl.NoteShrunk(*before);
  impl.NoteChange();
  impl.RegroupHungry();
  // An edit is no event to kube-scheduler.
  impl.PokeAdmitted(now);
}

}  // namespace tranche
