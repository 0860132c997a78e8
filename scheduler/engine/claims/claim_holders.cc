#include "scheduler/engine/claims/claim_holders.h"

#include <algorithm>

#include "topology/base/mark.h"

namespace tranche {

PodRecord* ClaimHolders::Find(const PodUid& uid) const {
  if (PodRecord* record = cluster_.Find(uid)) return record;
  const auto pod = books_.pods.find(uid);
  return pod == books_.pods.end() ? nullptr : &pod->second;
}

HeldWork ClaimHolders::AsWorkOf(const PodRecord& record, const HeldWork& claim) const {
  HeldWork work = claim;
  work.pod = record.request->name;
  work.gang = record.request->gang;
  const GpuClass* gpu_class = cluster_.set->ClassOf(record.request->priority_class);
  work.workload_class = gpu_class == nullptr ? "" : gpu_class->name;
  // The claim may be older than what the pod does with it.
  work.running = record.held_since;
  return work;
}

const HeldWork* ClaimHolders::FirstClaimOf(const ClaimingPod& pod) const {
  for (const dra::PodClaim& use : pod.claims->claims) {
    const dra::Claim* claim = cluster_.catalog.FindClaim({pod.request->name.ns, use.claim});
    if (claim == nullptr) continue;
    if (const HeldWork* work = cluster_.book.Find(KeyOfClaim(claim->uid))) return work;
  }
  return nullptr;
}

std::optional<HeldWork> ClaimHolders::WorkOf(const PodUid& uid) const {
  if (const HeldWork* work = cluster_.book.Find(uid)) return *work;
  const auto pod = books_.pods.find(uid);
  const HeldWork* const work = pod == books_.pods.end() ? nullptr : FirstClaimOf(pod->second);
  return work == nullptr ? std::nullopt : std::optional(AsWorkOf(pod->second, *work));
}

std::optional<std::vector<PodUid>> ClaimHolders::UsersOf(const PodUid& key) const {
  const dra::Claim* claim = cluster_.catalog.FindByUid(UidOfClaim(key));
  if (claim == nullptr || claim->reserved_for.empty()) return std::nullopt;
  std::vector<PodUid> users;
  for (const PodUid& uid : claim->reserved_for) {
    const PodRecord* record = Find(uid);
    const bool gone = record == nullptr ? books_.gone.contains(uid) : record->terminal;
    if (gone) continue;
    if (record == nullptr) return std::nullopt;
    const auto pod = books_.pods.find(uid);
    const bool by_claim = pod != books_.pods.end() && FirstClaimOf(pod->second) != nullptr;
    if (!by_claim && cluster_.book.Find(uid) == nullptr) {
      // The claim is reserved for it, and it does not name the claim: it is of its template's name
      // still, or somebody wrote it there.
      TRANCHE_MARK(claim_reserved_for_a_pod_that_does_not_name_it);
      return std::nullopt;
    }
    users.push_back(uid);
  }
  std::ranges::sort(users);
  return users;
}

void ClaimHolders::AddTo(HeldWork& work, const HeldWork& claim) {
  for (const ModelCharge& part : claim.parts) Add(work.parts, part);
  // Entitled to some of it is entitled.
  if (claim.marks.state == QuotaState::kInQuota) work.marks = claim.marks;
  work.within_nominal |= claim.within_nominal;
}

}  // namespace tranche
