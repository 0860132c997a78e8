// Nodes whose devices only resource slices tell of, and pods that use claims on them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/claims/claim_charges.h"
#include "scheduler/engine/claims/claim_wishes.h"
#include "test/unit/scheduler/dra/devices.h"
#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche::test {

inline dra::Claim Asks(const std::string& name, int64_t gpus = 1) {
  return dra::ClaimOf(name, {{"gpu", {dra::Choice("gpu.nvidia.com", {}, gpus)}}});
}
inline dra::Claim Allocated(dra::Claim claim, const std::string& node, const std::string& device,
                            std::vector<std::string> pods = {}) {
  claim = dra::Holding(std::move(claim), {dra::Held("gpu", node, device)});
  for (std::string& pod : pods) claim.reserved_for.emplace_back(std::move(pod));
  return claim;
}
inline dra::PodClaims Using(const std::vector<std::string>& claims) {
  dra::PodClaims uses;
  for (const std::string& claim : claims) {
    uses.claims.push_back({claim, claim, ""});
    uses.containers.push_back({"main", claim, ""});
  }
  return uses;
}
// A pod of the namespace "team"; its uid is its name.
inline PodFacts PodUsing(const std::string& name, const std::vector<std::string>& claims,
                         const std::string& node = "") {
  PodFacts pod;
  pod.request.uid = PodUid(name);
  pod.request.name = {"team", name};
  pod.node = NodeName(node);
  pod.claims = std::make_shared<const dra::PodClaims>(Using(claims));
  return pod;
}

// n1 and n2 with two H100 each, gpu-0 and gpu-1; nothing is asked of them yet.
struct ClaimsRoom : RequeueRoom {
  ClaimsRoom() {
    for (const std::string name : {"n1", "n2"}) {
      NodeFacts facts;
      facts.name = NodeName(name);
      Node(facts);
      constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";
      cluster.catalog.PutSlice(
          dra::NodeSlice(name, {dra::GpuDevice("gpu-0", name + "-a", kH100, kH100Mib),
                                dra::GpuDevice("gpu-1", name + "-b", kH100, kH100Mib)}));
      cluster.Refresh(IdOf(name), now);
    }
    for (dra::DeviceClass& each : dra::NvidiaClasses())
      cluster.catalog.classes().PutClass(std::move(each));
  }
  // The team owns so many; all objects are known.
  void TeamOwns(const std::string& gpus, QuotaMode mode = QuotaMode::kEnforce) {
    Declare({.quotas = {Quota("team").Owns("team").Line("h100", gpus).Mode(mode)}});
    charges.FinishRestore(now);
  }
  void Put(dra::Object object) { charges.Put(std::move(object), now); }
  void RemoveClaim(const std::string& name) {
    charges.Remove({dra::ObjectRef::Kind::kClaim, "team", name}, now);
  }
  ClaimWish WishFor(const std::vector<std::string>& claims) {
    return wishes.Of("team", Using(claims));
  }
  // Quota lets the team have so many more.
  bool Admits(int64_t gpus) {
    const PodRequest request = TeamPod("team", "any", gpus);
    Admission admission;
    const std::vector<ModelCharge> parts = {{"h100", {gpus * kQuantaPerGpu, gpus * kQuantaPerGpu}}};
    return rules.Admit(rules.ContextOf(request), parts, now, admission) == Reason::kNone;
  }

  ClaimBooks books;
  ClaimWishes wishes{cluster};
  ClaimCharges charges{cluster, books, rules, metering, requeue, wishes};
};

}  // namespace tranche::test
