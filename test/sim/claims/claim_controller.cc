#include "test/sim/claims/claim_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "test/sim/cluster/pod_writes.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;

constexpr SimTime kMostLag = milliseconds(100);
constexpr const char* kClaims = "resourceclaims";

}  // namespace

ClaimController::ClaimController(Loop& loop, ApiServer& api, uint64_t seed)
    : loop_(loop),
      api_(api),
      draws_(seed),
      self_(loop.NewActor("resourceclaim-controller")),
      pods_(loop, api.store(), "pods", kMostLag, draws_.Next(),
            [this](const Change& change) { HearPod(change); }),
      claims_(loop, api.store(), kClaims, kMostLag, draws_.Next(),
              [this](const Change& change) { HearClaim(change); }) {}

void ClaimController::Start() {
  pods_.Start(self_);
  claims_.Start(self_);
}

void ClaimController::HearPod(const Change& change) {
  const Stored& pod = *change.object;
  const std::string uid(pod.uid());
  const bool over = change.type == Change::Type::kDeleted || IsTerminal(pod.object());
  const std::vector<ClaimUse> uses = ClaimsOf(pod);
  for (const ClaimUse& use : uses) {
    if (!use.key.empty()) uses_[uid].insert(use.key);
  }
  if (over) {
    for (const std::string& key : uses_[uid]) Later(key);
    if (change.type == Change::Type::kDeleted) {
      uses_.erase(uid);
      statuses_.erase(uid);
    }
    return;
  }
  if (!NodeOf(pod.object()).empty()) ReserveFor(pod);
  if (std::ranges::any_of(uses, [](const ClaimUse& use) { return use.key.empty(); })) {
    loop_.After(SimTime(draws_.Between(1'000, 100'000)), self_,
                [this, key = pod.key()] { MakeClaims(key); });
  }
}

void ClaimController::ReserveFor(const Stored& pod) {
  for (const ClaimUse& use : ClaimsOf(pod)) {
    const StoredPtr claim = api_.store().Find(kClaims, use.key);
    if (claim == nullptr || AllocationOf(claim->object()) == nullptr ||
        IsReservedFor(claim->object(), pod.uid()) || IsLeaving(claim->object())) {
      continue;
    }
    Json object = claim->object();
    object["status"]["reservedFor"].push_back(
        {{"resource", "pods"}, {"name", pod.name()}, {"uid", pod.uid()}});
    Put(*claim, std::move(object), "status");
  }
}

void ClaimController::HearClaim(const Change& change) {
  if (change.type == Change::Type::kDeleted) return;
  for (const std::string& uid : ReservedFor(change.object->object())) {
    uses_[uid].insert(change.object->key());
  }
  for (const auto& [uid, keys] : uses_) {
    if (!keys.contains(change.object->key()) || IsReservedFor(change.object->object(), uid))
      continue;
    const StoredPtr pod = PodOf(uid);
    const bool runs =
        pod != nullptr && !IsTerminal(pod->object()) && !NodeOf(pod->object()).empty();
    if (runs) ReserveFor(*pod);
  }
  const std::string owner = OwnerOf(change.object->object());
  if (!owner.empty()) uses_[owner].insert(change.object->key());
  Later(change.object->key());
}

void ClaimController::Later(const std::string& key) {
  if (!due_.insert(key).second) return;
  loop_.After(SimTime(draws_.Between(1'000, 300'000)), self_, [this, key] {
    due_.erase(key);
    Sync(key);
  });
}

StoredPtr ClaimController::PodOf(const std::string& uid) const {
  const Store::Objects& pods = api_.store().All("pods");
  const auto found =
      std::ranges::find_if(pods, [&uid](const auto& entry) { return entry.second->uid() == uid; });
  return found == pods.end() ? nullptr : found->second;
}

bool ClaimController::IsOver(const std::string& uid) const {
  const StoredPtr pod = PodOf(uid);
  return pod == nullptr || IsTerminal(pod->object());
}

void ClaimController::Sync(const std::string& key) {
  const StoredPtr claim = api_.store().Find(kClaims, key);
  if (claim == nullptr) return;
  Json object = claim->object();
  const bool allocated = AllocationOf(object) != nullptr;
  std::vector<std::string> left = ReservedFor(object);
  const std::size_t before = left.size();
  std::erase_if(left, [this](const std::string& uid) { return IsOver(uid); });
  if (left.size() < before || (allocated && left.empty() && before > 0)) {
    std::erase_if(object["status"]["reservedFor"].get_ref<Json::array_t&>(),
                  [&left](const Json& consumer) {
                    return std::ranges::find(left, consumer.value("uid", "")) == left.end();
                  });
    if (left.empty()) {
      object["status"].erase("reservedFor");
      object["status"].erase("allocation");
    }
    return Put(*claim, std::move(object), "status");  // what is left to do comes with the change
  }
  const std::string owner = OwnerOf(object);
  const bool owner_over = !owner.empty() && IsOver(owner);
  if (allocated && left.empty() && (IsLeaving(object) || owner_over)) {
    object["status"].erase("allocation");
    return Put(*claim, std::move(object), "status");
  }
  if (IsLeaving(object) && !allocated) {
    object["metadata"].erase("finalizers");
    return Put(*claim, std::move(object), "");
  }
  if (!owner_over || IsLeaving(object)) return;
  Write write{loop_.NameOf(self_), "DELETE", {FindResource(kClaims)}};
  write.path.ns = claim->ns();
  write.path.name = claim->name();
  write.body = {{"preconditions", {{"uid", claim->uid()}}}};
  api_.Do(self_, std::move(write));
}

void ClaimController::Put(const Stored& claim, Json object, const char* subresource) {
  Write write{loop_.NameOf(self_), "PUT", {FindResource(kClaims)}};
  write.path.ns = claim.ns();
  write.path.name = claim.name();
  write.path.subresource = subresource;
  write.body = std::move(object);
  api_.Do(self_, std::move(write), [this, key = claim.key()](const Answer& answer) {
    if (!answer.done()) Later(key);  // somebody was faster
  });
}

void ClaimController::MakeClaims(const std::string& pod_key) {
  const StoredPtr pod = api_.store().Find("pods", pod_key);
  if (pod == nullptr || IsTerminal(pod->object()) || IsLeaving(pod->object())) return;
  for (const ClaimUse& use : ClaimsOf(*pod)) {
    if (!use.key.empty() || use.template_name.empty()) continue;
    const StoredPtr made_of = api_.store().Find("resourceclaimtemplates",
                                                std::string(pod->ns()) + "/" + use.template_name);
    if (made_of == nullptr) {
      loop_.After(std::chrono::seconds(1), self_, [this, pod_key] { MakeClaims(pod_key); });
      continue;
    }
    if (!making_.insert(std::string(pod->uid()) + "/" + use.name).second) continue;
    const std::string claim = fmt::format("{}-{}-{:05}", pod->name(), use.name, ++names_);
    Write write{loop_.NameOf(self_), "POST", {FindResource(kClaims)}};
    write.path.ns = pod->ns();
    write.body = {{"apiVersion", "resource.k8s.io/v1"},
                  {"kind", "ResourceClaim"},
                  {"metadata",
                   {{"name", claim},
                    {"namespace", pod->ns()},
                    {"annotations", {{"resource.kubernetes.io/pod-claim-name", use.name}}},
                    {"finalizers", Json::array({kClaimFinalizer})},
                    {"ownerReferences", Json::array({{{"apiVersion", "v1"},
                                                      {"kind", "Pod"},
                                                      {"name", pod->name()},
                                                      {"uid", pod->uid()},
                                                      {"controller", true}}})}}},
                  {"spec", made_of->object().at("spec").at("spec")}};
    api_.Do(self_, std::move(write), [this, pod_key, name = use.name, claim](const Answer& answer) {
      if (answer.done()) NoteMade(pod_key, name, claim);
    });
  }
}

void ClaimController::NoteMade(const std::string& pod_key, const std::string& name,
                               const std::string& claim) {
  const StoredPtr pod = api_.store().Find("pods", pod_key);
  if (pod == nullptr) return;
  Json& made = statuses_[std::string(pod->uid())];
  made.push_back({{"name", name}, {"resourceClaimName", claim}});
  Write write{loop_.NameOf(self_), "PATCH", {FindResource("pods")}};
  write.path.ns = pod->ns();
  write.path.name = pod->name();
  write.path.subresource = "status";
  write.content_type = "application/strategic-merge-patch+json";
  write.body = {{"metadata", {{"uid", pod->uid()}}}, {"status", {{"resourceClaimStatuses", made}}}};
  api_.Do(self_, std::move(write));
}

}  // namespace tranche::sim
