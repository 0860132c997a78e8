// Objects that people apply and delete, and what the engine hears of them.
#include <fmt/core.h>

#include <chrono>
#include <unordered_map>
#include <utility>

#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_edits.h"
#include "scheduler/embedded/object_uid.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/records/past_object.h"
#include "topology/base/status.h"

namespace tranche::embedded {
namespace {

bool IsTerminal(PodPhase phase) {
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
}

// A member of an object as minified text; empty: it has none.
std::string MemberText(wire::Element element, std::string_view key) {
  wire::Object object;
  if (element.get(object) != simdjson::SUCCESS) return "";
  const auto member = wire::Find(object, key);
  return member ? simdjson::minify(*member) : std::string();
}

}  // namespace

absl::StatusOr<ApplyReport> Cluster::Impl::Apply(std::string_view text, wire::Padding padding) {
  TRANCHE_ASSIGN_OR_RETURN(const Document document, Document::Parse(text, padding));
  TRANCHE_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(document, defaults));
  TRANCHE_RETURN_IF_ERROR(Locked([&](State& kept) { return kept.StoreAll(manifest.objects); }));
  queue.Flush();
  return ApplyReport{static_cast<int>(manifest.objects.size()), std::move(manifest.ignored)};
}

absl::Status Cluster::State::StoreAll(std::vector<ManifestObject>& objects) {
  const Instant now = clock.Now();
  TRANCHE_RETURN_IF_ERROR(CheckUids(objects));
  // What decides how to take the rest comes first.
  for (ManifestObject& object : objects) {
    if (IsPolicyObject(object.key.kind)) Store(object, now);
  }
  SettlePolicyObjects();
  for (ManifestObject& object : objects) {
    if (!IsPolicyObject(object.key.kind)) Store(object, now);
  }
  SettleBudgets();
  return absl::OkStatus();
}

// A uid names one object: books kept by uid would mix two.
absl::Status Cluster::State::CheckUids(const std::vector<ManifestObject>& objects) const {
  std::unordered_map<std::string_view, const ObjectKey*> stated;
  for (const ManifestObject& object : objects) {
    if (object.uid.empty()) continue;
    const ObjectKey* owner = store.OwnerOf(object.uid);
    if (owner == nullptr) owner = stated.emplace(object.uid, &object.key).first->second;
    if (*owner != object.key) {
      return absl::InvalidArgumentError(
          fmt::format("{}: expected a uid of its own, found {} of {}, in metadata.uid",
                      object.key.str(), wire::Quoted(object.uid), owner->str()));
    }
  }
  return absl::OkStatus();
}

std::string Cluster::State::NewUid(const ObjectKey& key, Instant now) {
  std::string uid;
  do {
    uid = MakeUid(key, now, ++made_uids);
  } while (store.OwnerOf(uid) != nullptr);
  return uid;
}

void Cluster::State::Store(ManifestObject& object, Instant now) {
  const StoredObject* prior = store.Find(object.key);
  if (prior != nullptr && !object.uid.empty() && object.uid != prior->uid) {
    Forget(object.key);
    prior = nullptr;
  }
  StoredObject stored;
  if (!object.uid.empty()) {
    stored.uid = object.uid;
  } else {
    stored.uid = prior != nullptr ? prior->uid : NewUid(object.key, now);
  }
  stored.created = object.created     ? *object.created
                   : prior != nullptr ? prior->created
                                      : std::chrono::floor<std::chrono::seconds>(now);
  // A deletion under way cannot be taken back.
  stored.deletion = object.deletion || prior == nullptr ? object.deletion : prior->deletion;

  JsonPatch patch = NewcomerPatch(object);
  if (IsOurs(object.key.kind)) ContinueOurs(object, prior, stored, patch);
  if (object.key.kind == kDisruptionBudgetKind) DeriveBudget(object, patch);
  SetIdentity(patch, stored);
  if (stored.deletion) SetDeletion(patch, *stored.deletion);
  Observe(object, stored.uid);
  if (auto* node = std::get_if<NodeFacts>(&object.facts)) {
    node->uid = NodeUid(stored.uid);
    queue.Push(NodeChanged{std::move(*node), wire::PastNodeText(object.element)});
  } else if (auto* pod = std::get_if<PodFacts>(&object.facts)) {
    StorePod(std::move(*pod), object, stored, patch, now);
  }
  Save(object.key, std::move(stored), object.element, patch);
  if (IsPolicyObject(object.key.kind)) PushPolicyObject(object.key, *store.Find(object.key));
}

// As an API server does: a new spec gets a new generation, a write of the rest keeps the status.
void Cluster::State::ContinueOurs(const ManifestObject& object, const StoredObject* prior,
                                  StoredObject& stored, JsonPatch& patch) {
  stored.generation = 1;
  if (prior == nullptr) return;
  stored.generation = prior->generation;
  const wire::Element before = ElementOf(*prior);
  if (MemberText(object.element, "spec") != MemberText(before, "spec")) ++stored.generation;
  std::string status = MemberText(before, "status");
  const bool stated = !MemberText(object.element, "status").empty();
  if (!stated && !status.empty()) patch.Set({"status"}, std::move(status));
}

void Cluster::State::StorePod(PodFacts pod, const ManifestObject& object,
                              const StoredObject& stored, JsonPatch& patch, Instant now) {
  pod.request.uid = PodUid(stored.uid);
  pod.request.name = {object.key.ns, object.key.name};
  pod.created = stored.created;
  pod.terminating = stored.deletion.has_value();
  if (stored.deletion) pod.deletion_at = stored.deletion->at;
  if (!pod.node.empty() && pod.phase == PodPhase::kPending) {
    SetRunning(patch, object.element, pod, now);
  } else {
    SetPendingIfUnstated(patch, object.element);
  }
  FollowPod(pod, object.element);
  PushPod(std::move(pod), object.element);
}

void Cluster::State::PushPod(PodFacts pod, wire::Element element) {
  PodChanged changed{std::move(pod)};
  if (changed.pod.request.asks_gpu()) {
    changed.object = wire::PastPodText(element);
  }
  queue.Push(std::move(changed));
}

void Cluster::State::Forget(const ObjectKey& key) {
  if (key.kind == kPodKind) {
    for (auto& [budget_key, budget] : derived) {
      if (budget_key.ns == key.ns) budget.Forget(key.name);
    }
    queue.Push(PodGone{PodUid(store.Find(key)->uid)});
  } else if (key.kind == kNodeKind) {
    queue.Push(NodeGone{NodeName(key.name)});
  } else if (IsPolicyObject(key.kind)) {
    policy_objects_changed = true;
    queue.Push(PolicyObjectGone{key.kind, {key.ns, key.name}});
  }
  Unobserve(key);
  derived.erase(key);
  store.Erase(key);
}

void Cluster::State::PushPolicyObject(const ObjectKey& key, const StoredObject& stored) {
  policy_objects_changed = true;
  queue.Push(PolicyObject{key.kind, key.ns, key.name, stored.uid, stored.generation, stored.text});
}

void Cluster::State::SettlePolicyObjects() {
  if (!std::exchange(policy_objects_changed, false)) return;
  queue.Push(PolicyObjectsSettled());
}

void Cluster::State::PushHeard() {
  queue.Push(Heard{"nodes"});
  queue.Push(Heard{"pods"});
}

wire::Element Cluster::State::ElementOf(const StoredObject& stored) {
  const absl::StatusOr<wire::Element> element = parser.Parse(stored.text);
  TRANCHE_CHECK(element.ok());
  return *element;
}

absl::StatusOr<PodFacts> Cluster::State::ReadPod(const StoredObject& stored,
                                                 wire::Element& element) {
  element = ElementOf(stored);
  return wire::DecodePod(element);
}

void Cluster::State::Render(StoredObject& stored, wire::Element element, JsonPatch& patch) {
  SetVersion(patch, store.NextVersion());
  std::string text;
  patch.Write(element, text);
  text.shrink_to_fit();
  stored.text = std::move(text);
}

void Cluster::State::Save(const ObjectKey& key, StoredObject stored, wire::Element element,
                          JsonPatch& patch) {
  Render(stored, element, patch);
  store.Put(key, std::move(stored));
}

absl::Status Cluster::State::SavePod(const ObjectKey& key, StoredObject stored,
                                     wire::Element element, JsonPatch& patch) {
  Render(stored, element, patch);
  TRANCHE_ASSIGN_OR_RETURN(PodFacts pod, ReadPod(stored, element));
  store.Put(key, std::move(stored));
  FollowPod(pod, element);
  PushPod(std::move(pod), element);
  return absl::OkStatus();
}

void Cluster::State::DeleteOne(const DeleteRequest& request, Instant now) {
  if (store.Find(request.key) == nullptr) return;  // named twice
  if (request.key.kind != kPodKind) return Forget(request.key);
  DeletePod(request.key, request.grace_seconds, std::nullopt, now);
}

void Cluster::State::DeletePod(const ObjectKey& key, std::optional<int64_t> grace_seconds,
                               const std::optional<wire::ConditionText>& condition, Instant now) {
  const StoredObject* stored = store.Find(key);
  wire::Element element;
  const absl::StatusOr<PodFacts> pod = ReadPod(*stored, element);
  if (!pod.ok() || pod->node.empty() || IsTerminal(pod->phase)) return Forget(key);
  const int64_t grace = grace_seconds.value_or(StatedGraceSeconds(element));
  if (grace == 0) return Forget(key);
  const Deletion deletion{now + std::chrono::seconds(grace), grace};
  if (stored->deletion && stored->deletion->at <= deletion.at) return;
  StoredObject changed = *stored;
  changed.deletion = deletion;
  JsonPatch patch;
  SetDeletion(patch, deletion);
  if (condition) SetCondition(patch, element, *condition);
  if (!SavePod(key, std::move(changed), element, patch).ok()) Forget(key);
}

}  // namespace tranche::embedded
