#include "scheduler/engine/claims/claim_holders.h"

#include <algorithm>

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

std::optional<HeldWork> ClaimHolders::WorkOf(const PodUid& uid) const {
  if (const HeldWork* work = cluster_.book.Find(uid)) return *work;
  const auto pod = books_.pods.find(uid);
  if (pod == books_.pods.end()) return std::nullopt;
  const std::string& ns = pod->second.request->name.ns;
  for (const dra::PodClaim& use : pod->second.claims->claims) {
    const dra::Claim* claim = cluster_.catalog.FindClaim({ns, use.claim});
    if (claim == nullptr) continue;
    if (const HeldWork* work = cluster_.book.Find(KeyOfClaim(claim->uid))) {
      return AsWorkOf(pod->second, *work);
    }
  }
  return std::nullopt;
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
