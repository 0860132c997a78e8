#include "scheduler/engine/claims/claim_pods.h"

#include <algorithm>
#include <utility>

namespace tranche {
namespace {

// Quota is asked anew for those that wait at most this often, and of so many.
constexpr Millis kLookAgain{1'000};
constexpr int kMostLooks = 64;
// A requeue, or the removal of a gate, that is not seen to have worked is tried again after this.
constexpr Millis kToldTime{10'000};
// A claim whose pods have gone and that is still allocated after this counts as held.
constexpr Millis kDeallocationMost{60'000};

}  // namespace

void ClaimPods::Note(const PodFacts& pod, bool ended, Instant now) {
  const PodUid& uid = pod.request.uid;
  if (!pod.node.empty()) books_.served.erase(uid);
  if (ended && books_.pods.contains(uid)) NoteGone(uid, now);
  if (ended || (!pod.claims && !pod.request.asks_gpu())) return Forget(uid);
  if (pod.request.asks_gpu()) return;
  ClaimingPod& known = books_.pods[uid];
  if (!known.request) {
    known.request = std::make_shared<const PodRequest>(pod.request);
    known.waits_since = pod.created.value_or(now);
    books_.by_name.emplace(pod.request.name, uid);
  }
  known.claims = pod.claims;
  known.traits.labels = pod.labels;
  if (!pod.node.empty()) {
    known.node = pod.node;
    books_.on_node[pod.node].insert(uid);
  }
  known.quota_gate = pod.our_gates.quota;
  known.other_gates = pod.our_gates.gang || pod.foreign_gates;
  if (known.node.empty()) return;
  known.last_reason = Reason::kNone;
  known.wants_gpus |= wishes_.Of(pod.request.name.ns, *pod.claims).holds_gpus;
}

void ClaimPods::NoteGone(const PodUid& uid, Instant now) {
  if (cluster_.catalog.has_slices()) books_.gone[uid] = now + kDeallocationMost;
}

void ClaimPods::Forget(const PodUid& uid) {
  books_.served.erase(uid);
  charges_.Unkeep(KeyOfClaimsToBe(uid));
  const auto found = books_.pods.find(uid);
  if (found == books_.pods.end()) return;
  charges_.Release(uid, wishes_.Of(found->second.request->name.ns, *found->second.claims));
  books_.by_name.erase({found->second.request->name, uid});
  books_.unknown.erase(uid);
  const auto here = books_.on_node.find(found->second.node);
  if (here != books_.on_node.end() && here->second.erase(uid) > 0 && here->second.empty())
    books_.on_node.erase(here);
  books_.pods.erase(found);
}

Reason ClaimPods::AskAnywhere(const RequestContext& context, const ClaimWish& wish, Instant now,
                              std::vector<ModelCharge>& parts,
                              std::optional<Instant>& eligible_at) {
  if (context.whole != Reason::kNone && context.whole != Reason::kStyleOff) {
    return context.whole;
  }
  std::vector<std::pair<std::vector<ModelCharge>, Reason>> asked;
  Reason first = Reason::kNone;
  for (const NodeId id : cluster_.names.ascending()) {
    std::vector<ModelCharge> here = wishes_.PartsOn(wish, id);
    if (here.empty()) continue;
    if (std::ranges::find(
            asked, here, [](const auto& each) -> auto& { return each.first; }) != asked.end()) {
      continue;
    }
    Admission admission;
    const Reason reason =
        context.metered ? rules_.Admit(context, here, now, admission) : Reason::kNone;
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

ClaimForecast ClaimPods::Forecast(const PodRequest& request, const dra::PodClaims& claims,
                                  Instant now) {
  ClaimForecast word;
  const ClaimWish wish = wishes_.Of(request.name.ns, claims);
  std::vector<ModelCharge> parts;
  std::optional<Instant> eligible_at;
  const RequestContext context = rules_.ContextOf(request);
  const Reason reason = AskAnywhere(context, wish, now, parts, eligible_at);
  word.wants_gpus = wish.holds_gpus || !parts.empty();
  word.quota_waits =
      word.wants_gpus && IsQuotaReason(reason) && context.membership.mode == QuotaMode::kEnforce;
  return word;
}

void ClaimPods::LetIn(Instant now) {
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
    ClaimingPod& pod = books_.pods.at(uid);
    const ClaimWish wish = wishes_.Of(pod.request->name.ns, *pod.claims);
    charges_.Release(uid, wish);
    pod.asked.clear();
    pod.eligible_at.reset();
    const Reason reason =
        AskAnywhere(rules_.ContextOf(*pod.request), wish, now, pod.asked, pod.eligible_at);
    if (reason != Reason::kNone) {
      pod.last_reason = reason;
      pod.wants_gpus |= !pod.asked.empty();
      continue;
    }
    for (const NodeId id : cluster_.names.ascending()) {
      if (pod.asked.empty() || wishes_.PartsOn(wish, id) != pod.asked) continue;
      charges_.Keep(*pod.request, wish, id, now);
      break;
    }
    pod.told = now;
    if (pod.quota_gate) {
      cluster_.outbox.Ungate(pod.request->name, uid, Gate::kQuota);
    } else {
      cluster_.outbox.Requeue(pod.request->name, uid);
    }
  }
}

void ClaimPods::Tend(Instant now) {
  std::erase_if(books_.gone, [now](const auto& entry) { return entry.second <= now; });
  for (auto at = books_.kept.begin(); at != books_.kept.end();) {
    const auto kept = at++;
    if (!kept->second || now < *kept->second) continue;
    cluster_.book.Unearmark(kept->first);
    books_.kept.erase(kept);
  }
  if (!books_.complete || books_.pods.empty() || now < books_.looked_at + kLookAgain) return;
  books_.looked_at = now;
  LetIn(now);
}

std::optional<Instant> ClaimPods::Due() const {
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

}  // namespace tranche
