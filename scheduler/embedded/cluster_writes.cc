// What we write to the embedded cluster, and what the API server would answer.
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/embedded/answers.h"
#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_edits.h"
#include "scheduler/wire/json/object_json.h"
#include "topology/base/check.h"

namespace tranche::embedded {
namespace {

// What a server checks before it takes a Binding; kDone when nothing stands against it.
WriteResult CheckBinding(const BindingWrite& write, const StoredObject* stored,
                         const PodFacts& pod) {
  if (!write.uid.empty() && stored->uid != write.uid.str()) {
    return Rejected(409, fmt::format("expected pod {} with uid {}, found uid {}", write.pod.str(),
                                     write.uid.str(), stored->uid));
  }
  if (stored->deletion) {
    return Rejected(409, fmt::format("pod {} is being deleted and takes no node", write.pod.str()));
  }
  if (!pod.node.empty()) {
    return Rejected(
        409, fmt::format("pod {} is already assigned to node {}", write.pod.str(), pod.node.str()));
  }
  if (pod.gated) {
    return Rejected(409,
                    fmt::format("pod {} has scheduling gates and takes no node", write.pod.str()));
  }
  return Done(201);
}

// An object of ours that has a name and nothing else.
std::string BareObject(const ObjectKey& key) {
  wire::Json metadata = {{"name", key.name}};
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  return wire::Dump(
      {{"apiVersion", "tranche.dev/v1alpha1"}, {"kind", key.kind}, {"metadata", metadata}});
}

}  // namespace

WriteResult Cluster::State::TryBind(const BindingWrite& write) {
  if (write.node.empty()) return Rejected(422, "expected a node name, found none, in target.name");
  const ObjectKey key = KeyOf(write.pod);
  const StoredObject* stored = store.Find(key);
  if (stored == nullptr) return NotFound(key);
  wire::Element element;
  absl::StatusOr<PodFacts> pod = ReadPod(*stored, element);
  if (!pod.ok()) return Rejected(422, std::string(pod.status().message()));
  WriteResult result = CheckBinding(write, stored, *pod);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const Instant now = clock.Now();
  JsonPatch patch;
  SetBinding(patch, write);
  SetCondition(patch, element, {"PodScheduled", true, "", "", now});
  pod->bound_at = now;
  if (pod->phase == PodPhase::kPending) SetRunning(patch, element, *pod, now);
  const absl::Status status = SavePod(key, *stored, element, patch);
  if (!status.ok()) return Rejected(422, std::string(status.message()));
  return result;
}

WriteResult Cluster::State::TryChangePod(const PodName& pod, const PodUid& uid,
                                         const PodChange& change) {
  WriteResult result = CheckPod(pod, uid);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const ObjectKey key = KeyOf(pod);
  const StoredObject& stored = *store.Find(key);
  const wire::Element element = ElementOf(stored);
  JsonPatch patch;
  if (!change(element, patch)) return result;
  const absl::Status status = SavePod(key, stored, element, patch);
  if (!status.ok()) return Rejected(422, std::string(status.message()));
  return result;
}

WriteResult Cluster::State::TryWrite(const ObjectWrite& write) {
  const ObjectKey key{write.kind, write.ns, write.name};
  wire::Parser fields_parser;
  const absl::StatusOr<wire::Element> root = fields_parser.Parse("{" + write.fields + "}");
  wire::Object fields;
  if (!root.ok() || root->get(fields) != simdjson::SUCCESS) {
    return Rejected(400, fmt::format("expected members of {}, found other text", key.str()));
  }
  const StoredObject* found = store.Find(key);
  const bool may_create = key.kind == kViewKind || key.kind == kReclaimKind;
  if (found == nullptr && (write.status || !may_create)) return NotFound(key);
  JsonPatch patch;
  StoredObject stored;
  if (found != nullptr) {
    stored = *found;
  } else {
    const Instant now = clock.Now();
    stored.text = BareObject(key);
    stored.uid = NewUid(key, now);
    stored.created = std::chrono::floor<std::chrono::seconds>(now);
    stored.generation = 1;
    SetIdentity(patch, stored);
  }
  for (const auto member : fields) patch.Set({member.key}, simdjson::minify(member.value));
  const wire::Element element = ElementOf(stored);
  Save(key, std::move(stored), element, patch);
  return Done(found != nullptr ? 200 : 201);
}

WriteResult Cluster::State::TrySetWaiting(const WaitingWrite& write) {
  WriteResult result = CheckPod(write.pod, write.uid);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const ObjectKey key = KeyOf(write.pod);
  const StoredObject& stored = *store.Find(key);
  const wire::Element element = ElementOf(stored);
  JsonPatch patch;
  SetCondition(patch, element,
               {"tranche.dev/Waiting", write.waiting, write.reason, write.message, write.when});
  // No word to the engine, which knows: to a pod that waits, nothing else has happened.
  Save(key, stored, element, patch);
  return result;
}

void Cluster::State::KeepEvent(const EventWrite& event) {
  const wire::EventText text{event.kind,    event.ns,     event.name,    event.uid,
                             event.warning, event.reason, event.action,  event.note,
                             event.when,    "embedded",   ++event_serial};
  const wire::EventPlace place = wire::PlaceOf(text);
  const ObjectKey key{std::string(kEventKind), place.ns, place.name};
  const absl::StatusOr<wire::Element> element = parser.Parse(wire::EncodeEvent(text));
  TRANCHE_CHECK(element.ok());
  StoredObject stored;
  stored.uid = NewUid(key, event.when);
  stored.created = std::chrono::floor<std::chrono::seconds>(event.when);
  JsonPatch patch;
  SetIdentity(patch, stored);
  Save(key, std::move(stored), *element, patch);
  events.push_back(key);
  if (events.size() <= kKeptEvents) return;
  store.Erase(events.front());
  events.pop_front();
}

PodLookup Cluster::State::LookUp(const PodName& pod, const PodUid& uid) {
  PodLookup lookup;
  const StoredObject* stored = store.Find(KeyOf(pod));
  if (stored == nullptr || (!uid.empty() && stored->uid != uid.str())) {
    lookup.kind = PodLookup::Kind::kMissing;
    return lookup;
  }
  wire::Element element;
  absl::StatusOr<PodFacts> facts = ReadPod(*stored, element);
  if (facts.ok()) {
    lookup.kind = PodLookup::Kind::kFound;
    lookup.pod = *std::move(facts);
  } else {
    lookup.message = std::string(facts.status().message());
  }
  return lookup;
}

void Cluster::Bind(BindingWrite write, std::function<void(WriteResult)> done) {
  impl_->Do([&](State& state) { return state.TryBind(write); }, std::move(done));
}

void Cluster::Requeue(PodName, PodUid, Instant, std::function<void(WriteResult)> done) {
  WriteResult result;
  result.kind = WriteResult::Kind::kDone;
  done(std::move(result));
}

void Cluster::GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) {
  done(impl_->Locked([&](State& state) { return state.LookUp(pod, uid); }));
}

void Cluster::Write(ObjectWrite write, std::function<void(WriteResult)> done) {
  done(impl_->Locked([&](State& state) { return state.TryWrite(write); }));
}

void Cluster::DeleteView(NamespacedName view, std::function<void(WriteResult)> done) {
  const ObjectKey key{std::string(kViewKind), std::move(view.ns), std::move(view.name)};
  impl_->Locked([&](State& state) { state.store.Erase(key); });
  done(Done(200));
}

void Cluster::DeleteReclaim(std::string name, std::function<void(WriteResult)> done) {
  const ObjectKey key{std::string(kReclaimKind), "", std::move(name)};
  impl_->Locked([&](State& state) { state.store.Erase(key); });
  done(Done(200));
}

void Cluster::SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) {
  done(impl_->Locked([&](State& state) { return state.TrySetWaiting(write); }));
}

void Cluster::Emit(EventWrite event, std::function<void(WriteResult)> done) {
  impl_->Locked([&](State& state) { state.KeepEvent(event); });
  done(Done(201));
}

}  // namespace tranche::embedded
