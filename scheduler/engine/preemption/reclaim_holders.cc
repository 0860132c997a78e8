// This file finds who holds what: pods by themselves, and by the claims they use. What a claim
// holds comes free when all who use it have gone, so they can only leave together.
#include <algorithm>
#include <ranges>
#include <utility>

#include "scheduler/engine/preemption/reclaim_case.h"
#include "scheduler/engine/state/kept_room.h"

namespace tranche {
namespace {

// Checkpoints looked at for one question: as uids are random, the first by uid stand for all.
constexpr std::size_t kMostCheckpoints = 4'096;
constexpr const char* kFirstKeyOfClaim = "claim/";

}  // namespace

bool ReclaimCase::Leaves(const PodUid& uid, const PodRecord& record) const {
  return IsLeaving(record, now_) || reclaims_.of_victim.contains(uid) ||
         (options_.gone != nullptr && options_.gone->contains(uid));
}

void ReclaimCase::NoteLeaving() {
  const auto note = [this](const PodUid& uid) {
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr) return;
    left_nodes_.insert(cluster_.names.Find(record->Place().str()));
    const HeldWork* work = cluster_.book.Find(uid);
    if (work == nullptr) {
      leaving_uncounted_.insert(uid);
      return;
    }
    if (leaving_.insert(uid).second) CountAsGone(*work);
  };
  for (const PodUid& uid : cluster_.terminating) {
    if (IsLeaving(*cluster_.Find(uid), now_)) note(uid);
  }
  for (const auto& [uid, reclaim] : reclaims_.of_victim) note(uid);
  if (options_.gone != nullptr) std::ranges::for_each(*options_.gone, note);
  for (const auto& member : preemptor_.members) {
    const PodRecord* record = cluster_.Find(member->uid);
    if (record != nullptr && record->earmark != nullptr) {
      left_nodes_.insert(cluster_.names.Find(record->earmark->node.str()));
    }
  }
}

// What the silent are assumed to lose rests on those who publish.
void ReclaimCase::NoteCheckpoints() {
  for (const PodUid& uid : cluster_.checkpointing | std::views::take(kMostCheckpoints)) {
    const Instant checkpoint = *cluster_.Find(uid)->traits.checkpoint;
    const HeldWork* work = cluster_.book.Find(uid);
    if (work == nullptr || !work->running || checkpoint > now_) continue;
    ages_.Add(work->workload_class, now_ - checkpoint);
  }
  for (const auto& [uid, work] : by_claims_) {
    const std::optional<Instant> checkpoint = claims_.Find(uid)->traits.checkpoint;
    const bool told = cluster_.book.Find(uid) == nullptr && checkpoint && *checkpoint <= now_;
    if (told && work.running) ages_.Add(work.workload_class, now_ - *checkpoint);
  }
}

const std::string& ReclaimCase::Ties::RootOf(const std::string& one) const {
  const std::string* at = &one;
  for (auto up = up_.find(*at); up != up_.end() && up->second != *at; up = up_.find(*at)) {
    at = &up->second;
  }
  return *at;
}

void ReclaimCase::Ties::Add(const std::string& one, const std::string& other) {
  up_.try_emplace(one, one);
  up_.try_emplace(other, other);
  std::string low = RootOf(one);
  std::string high = RootOf(other);
  if (high < low) std::swap(low, high);
  up_[high] = std::move(low);
}

std::string ReclaimCase::KeyOf(const PodUid& uid, const PodRequest& request) {
  return request.gang.empty() ? uid.str() : GangKeyOf(request);
}

// The charge of a claim that several use is that of the first of them who stays.
ReclaimCase::Ties ReclaimCase::GatherClaims() {
  Ties ties;
  const std::map<PodUid, HeldWork>& holdings = cluster_.book.holdings();
  for (auto claim = holdings.lower_bound(PodUid(kFirstKeyOfClaim));
       claim != holdings.end() && IsKeyOfClaim(claim->first); ++claim) {
    const auto& [key, work] = *claim;
    const std::optional<std::vector<PodUid>> users = claims_.UsersOf(key);
    if (!users) continue;
    const PodUid* first = nullptr;
    for (const PodUid& uid : *users) {
      const PodRecord& record = *claims_.Find(uid);
      if (Leaves(uid, record)) {
        leaving_.insert(uid);
        continue;
      }
      const HeldWork* own = cluster_.book.Find(uid);
      const auto [at, fresh] = by_claims_.try_emplace(uid);
      HeldWork& held = at->second;
      if (fresh) {
        held = own == nullptr ? claims_.AsWorkOf(record, work) : *own;
        if (own == nullptr) held.parts.clear();
      }
      if (first == nullptr) {
        first = &uid;
        ClaimHolders::AddTo(held, work);
      } else {
        ties.Add(KeyOf(*first, *claims_.Find(*first)->request), KeyOf(uid, *record.request));
      }
    }
    // All who use it leave or have gone, and it goes with them.
    if (first == nullptr) CountAsGone(work);
  }
  return ties;
}

void ReclaimCase::CountAsGone(const HeldWork& work) {
  if (work.quota == kNoQuota || work.released) return;
  for (const ModelCharge& part : work.parts) {
    tree_.Remove(work.quota, tree_.LineOf(work.quota, part.model), part.charge);
  }
}

std::vector<ReclaimCase::Holder> ReclaimCase::FindHolders(QuotaId root) {
  std::vector<Holder> found;  // ascending uid
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    const auto more = by_claims_.find(uid);
    const bool alone = more == by_claims_.end() && work.gang.empty();
    if (alone && IsHopeless(work, root)) continue;
    const PodRecord* record = leaving_.contains(uid) ? nullptr : cluster_.Find(uid);
    if (record == nullptr) continue;
    found.push_back({uid, more == by_claims_.end() ? &work : &more->second, record});
  }
  const std::size_t by_themselves = found.size();
  for (const auto& [uid, work] : by_claims_) {
    if (cluster_.book.Find(uid) == nullptr) found.push_back({uid, &work, claims_.Find(uid)});
  }
  if (found.size() > by_themselves) std::ranges::sort(found, {}, &Holder::uid);
  return found;
}

}  // namespace tranche
