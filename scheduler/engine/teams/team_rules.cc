#include "scheduler/engine/teams/team_rules.h"

#include <algorithm>

#include "scheduler/index/charge_of.h"

namespace tranche {
namespace {

// Namespaces whose policy is remembered; questions may name any.
constexpr std::size_t kMostNamespaces = 20'000;

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

void TeamRules::TrimPolicies() {
  if (policy_of_namespace_.size() > kMostNamespaces) policy_of_namespace_.clear();
}

RequestContext TeamRules::ContextOf(const PodRequest& request) {
  RequestContext context;
  context.request = &request;
  const auto [at, fresh] =
      policy_of_namespace_.try_emplace(request.name.ns, cluster_.policies.size() - 1);
  if (fresh) {
    // `policies` begins with those of the set; its last one governs where none of them does.
    if (const GpuPolicy* governs = cluster_.set->PolicyFor(request.name.ns)) {
      at->second = static_cast<std::size_t>(governs - cluster_.set->policies.data());
    }
  }
  context.policy_index = at->second;
  context.policy = &cluster_.policies[at->second];
  context.membership = cluster_.book.MembershipOf(request.name.ns, request.priority_class);
  if (context.membership.gpu_class != nullptr) {
    context.sharing = &context.membership.gpu_class->sharing;
  }
  const QuotaMembership& membership = context.membership;
  context.metered = (membership.leaf != kNoQuota && membership.mode != QuotaMode::kOff) ||
                    (membership.leaf == kNoQuota && !membership.budgets.empty());
  context.capped = namespaces_.caps.Limits(request.name.ns);
  if (request.refusal) {
    context.whole = request.refusal->reason;
  } else if (!context.policy->dialects.empty() &&
             std::ranges::find(context.policy->dialects, StyleName(request.style)) ==
                 context.policy->dialects.end()) {
    context.whole = Reason::kStyleOff;
  } else if (membership.leaf_found == QuotaMembership::Leaf::kConflict) {
    context.whole = Reason::kLeafConflict;
  } else if (membership.leaf_found == QuotaMembership::Leaf::kNone &&
             !cluster_.set->quotas.empty() && context.policy->unassigned == Permission::kRefuse) {
    context.whole = Reason::kNoLeaf;
  } else if (!namespaces_.CapsAllowLeast(request)) {
    context.whole = Reason::kNamespaceQuota;
  } else if (ledger_closed_ && context.metered && membership.mode != QuotaMode::kObserve) {
    context.whole = Reason::kLedgerClosed;
  }
  return context;
}

void TeamRules::ForgetKindAnswers() {
  for (const ChargeKind kind : kinds_asked_) kind_answers_[kind].known = false;
  kinds_asked_.clear();
  kind_answers_.resize(cluster_.kinds.size());
}

Reason TeamRules::Admit(const RequestContext& context, std::span<const ModelCharge> parts,
                        Instant now, Admission& admission) {
  admission =
      cluster_.book.Admit(context.membership, parts, context.request->expected_runtime, now);
  return ReasonOf(admission.code);
}

bool TeamRules::MayPassHold(const RequestContext& context, NodeId id, int rank,
                            const std::string& leaf, Instant now) {
  const QuotaMembership& membership = context.membership;
  if (RankOf(membership.gpu_class) > rank) return true;
  if (membership.leaf == kNoQuota || cluster_.book.tree().name(membership.leaf) == leaf)
    return false;
  std::vector<ModelCharge> parts;
  ChargeAtMost(cluster_.nodes[id]->state.inventory(), *context.request, parts);
  Admission admission;
  return !parts.empty() && Admit(context, parts, now, admission) == Reason::kNone &&
         !admission.borrows && !admission.demoted;
}

const KindAnswer& TeamRules::AskQuota(const RequestContext& context, NodeId id, Instant now) {
  const ChargeKind kind = cluster_.hot[id].kind;
  KindAnswer& answer = kind_answers_[kind];
  if (answer.known) return answer;
  answer.known = true;
  kinds_asked_.push_back(kind);
  ChargeAtMost(cluster_.nodes[id]->state.inventory(), *context.request, answer.parts);
  Admission admission;
  answer.reason = Admit(context, answer.parts, now, admission);
  answer.borrows = admission.borrows;
  answer.demoted = admission.demoted;
  answer.eligible_at = admission.eligible_at;
  return answer;
}

std::string TeamRules::DescribeQuotaAnswers(const RequestContext& context, Instant now) {
  for (const ChargeKind kind : kinds_asked_) {
    const KindAnswer& answer = kind_answers_[kind];
    if (answer.reason == Reason::kNone) continue;
    Admission admission;
    Admit(context, answer.parts, now, admission);
    return cluster_.book.Explain(context.membership, admission, answer.parts, now);
  }
  return "";
}

}  // namespace tranche
