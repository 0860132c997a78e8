#include "test/sim/check/claims.h"

#include <fmt/format.h>

#include <algorithm>

namespace tranche::sim::check {
namespace {

constexpr SimTime kAllowed = std::chrono::seconds(1);
constexpr const char* kKey = "claim/";

bool UsesClaimsAlone(const Json& pod) {
  const Json& claims = At(pod, {"spec", "resourceClaims"});
  const Json& containers = At(pod, {"spec", "containers"});
  if (!claims.is_array() || claims.empty() || !containers.is_array()) return false;
  return std::ranges::none_of(containers, [](const Json& container) {
    const Json& limits = At(container, {"resources", "limits"});
    if (!limits.is_object()) return false;
    const auto items = limits.items();
    return std::any_of(items.begin(), items.end(),
                       [](const auto& limit) { return limit.key().starts_with("nvidia.com/"); });
  });
}

// How many whole GPUs the pod's one claim asks for; 0: this model does not know.
int64_t WholeCards(const Truth& truth, const PodLife& pod) {
  const Json& made = At(pod.object, {"status", "resourceClaimStatuses"});
  if (!made.is_array() || made.size() != 1) return 0;
  const Json* const claim =
      truth.object("resourceclaims", pod.ns() + "/" + TextAt(made[0], {"resourceClaimName"}));
  if (claim == nullptr || !At(*claim, {"metadata", "deletionTimestamp"}).is_null() ||
      !At(*claim, {"status", "allocation"}).is_null()) {
    return 0;
  }
  const Json& devices = At(*claim, {"spec", "devices"});
  const Json& requests = At(devices, {"requests"});
  if (!requests.is_array() || requests.size() != 1 || devices.contains("constraints")) return 0;
  const Json& exactly = At(requests[0], {"exactly"});
  const Json& count = At(exactly, {"count"});
  const bool whole = TextAt(exactly, {"deviceClassName"}) == "gpu.nvidia.com";
  return whole && count.is_number_integer() ? count.get<int64_t>() : 0;
}

}  // namespace

void ClaimChecker::Hear(const Happening& happening) {
  terms_.Hear(happening);
  if (happening.kind == Happening::Kind::kQuiet) quiet_ = happening.at;
  if (happening.kind != Happening::Kind::kWritten || happening.resource != "resourceclaims") return;
  if (IsTranche(happening.who)) {
    Found(happening.at, happening.key, "expected no write of ours to a claim, found one");
  }
  HearClaim(happening);
}

void ClaimChecker::HearClaim(const Happening& happening) {
  const Json& object = happening.after.is_null() ? happening.before : happening.after;
  const std::string uid = TextAt(object, {"metadata", "uid"});
  std::erase_if(holders_, [&uid](const auto& holder) { return holder.second == uid; });
  const Allocation* const current = truth_.claims().at(uid).current();
  if (current == nullptr) return;
  for (const ClaimDevice& device : current->devices) {
    const auto [holder, is_free] = holders_.emplace(device.name, uid);
    if (is_free) continue;
    Found(happening.at, happening.key,
          fmt::format("expected {} to be free for the claim, found it allocated to {}", device.name,
                      truth_.claims().at(holder->second).key));
  }
}

void ClaimChecker::Judge(const ClaimLife& claim, const Charged* charged, SimTime now) {
  const SimTime late = kAllowed + options_.lag;
  const auto known_by = [&](SimTime at) {
    const SimTime aware = terms_.AwareBy(at, options_.lag);
    return aware == SimTime::max() ? aware : aware + late;
  };
  if (claim.allocations.empty()) {
    if (charged != nullptr && (charged->open || charged->to - charged->from > kAllowed)) {
      Found(now, claim.key, "expected no charge of a claim without allocation, found one");
    }
    return;
  }
  const Allocation& first = claim.allocations.front();
  const Allocation& last = claim.allocations.back();
  const bool seen_first = first.to.value_or(now) > known_by(first.from);
  const bool seen_last = last.to.value_or(now) > known_by(last.from);
  if (charged == nullptr) {
    if (seen_first || seen_last) {
      Found(first.from, claim.key, "expected the claim's time in the ledger, found none");
    }
    return;
  }
  if (charged->from < first.from - kAllowed ||
      (seen_first && charged->from > known_by(first.from))) {
    Found(first.from, claim.key,
          fmt::format("expected the claim charged from {} on, found from {}", Seconds(first.from),
                      Seconds(charged->from)));
  }
  if (!last.to) {
    if (seen_last && !charged->open) {
      Found(
          now, claim.key,
          fmt::format("expected the claim charged on, found its end at {}", Seconds(charged->to)));
    }
    return;
  }
  if (charged->open) {
    if (known_by(*last.to) < now) {
      Found(*last.to, claim.key,
            fmt::format("expected the claim's charge to end at {}, found it open",
                        Seconds(*last.to)));
    }
    return;
  }
  SimTime earliest = *last.to - kAllowed;
  if (charged->estimated) {
    const SimTime unled = terms_.UnledSince(*last.to, options_.lag);
    earliest = std::min(earliest, unled - std::chrono::minutes(1));
  }
  if ((seen_last && charged->to < earliest) || charged->to > known_by(*last.to)) {
    Found(*last.to, claim.key,
          fmt::format("expected the claim charged until {}, found until {}", Seconds(*last.to),
                      Seconds(charged->to)));
  }
}

void ClaimChecker::CheckWaiting(const PodLife& pod, SimTime now) {
  const int64_t cards = WholeCards(truth_, pod);
  if (cards == 0 || !truth_.objects("gpuquotas").empty() || pod.made > *quiet_) return;
  std::map<std::string, int64_t> free;  // by node
  for (const auto& [name, slice] : truth_.objects("resourceslices")) {
    for (const Json& device : At(slice, {"spec", "devices"})) {
      const std::string node = TextAt(slice, {"spec", "nodeName"});
      const bool whole = TextAt(device, {"attributes", "type", "string"}) == "gpu";
      if (whole && !holders_.contains(node + "/" + TextAt(device, {"name"}))) ++free[node];
    }
  }
  for (const auto& [name, count] : free) {
    const Json* const node = truth_.object("nodes", name);
    const Json spec = node == nullptr ? Json() : At(*node, {"spec"});
    const bool open =
        node != nullptr && !spec.contains("unschedulable") && !spec.contains("taints");
    if (!open || count < cards) continue;
    Found(
        now, pod.key,
        fmt::format("expected the pod to run, since {} GPUs of {} are free for its claim, found it "
                    "waiting",
                    count, name));
    return;
  }
}

void ClaimChecker::AtEnd(const Ending& ending) {
  if (quiet_) {
    for (const auto& [uid, pod] : truth_.pods()) {
      if (pod.waits() && UsesClaimsAlone(pod.object)) CheckWaiting(pod, ending.at);
    }
  }
  if (ending.ledgers.empty() || !options_.disks_are_sound || options_.faults.has(Fault::kClock)) {
    return;
  }
  const std::map<std::string, Charged> charged = ReadCharges(ending.ledgers);
  for (const auto& [uid, claim] : truth_.claims()) {
    const auto found = charged.find(kKey + uid);
    Judge(claim, found == charged.end() ? nullptr : &found->second, ending.at);
  }
  for (const auto& [uid, pod] : truth_.pods()) {
    if (!UsesClaimsAlone(pod.object) || !charged.contains(uid)) continue;
    Found(ending.at, pod.key, "expected the pod's claims charged alone, found the pod as well");
  }
}

}  // namespace tranche::sim::check
