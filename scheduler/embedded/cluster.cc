#include "scheduler/embedded/cluster.h"

#include <fmt/core.h>

#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "scheduler/embedded/event_queue.h"
#include "scheduler/embedded/json_patch.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/embedded/object_edits.h"
#include "scheduler/embedded/object_store.h"
#include "scheduler/embedded/object_uid.h"
#include "scheduler/embedded/text_file.h"
#include "scheduler/wire/json.h"
#include "scheduler/wire/pod_decode.h"

namespace tranche::embedded {
namespace {

constexpr std::string_view kPodKind = "Pod";
constexpr std::string_view kNodeKind = "Node";
constexpr std::string_view kPolicyKind = "GPUPolicy";

ObjectKey KeyOf(const PodName& pod) { return {std::string(kPodKind), pod.ns, pod.name}; }

ObjectKey QueriedKey(std::string_view kind, std::string_view ns, std::string_view name) {
  ObjectKey key{KindFromQuery(kind), std::string(ns), std::string(name)};
  const Scope scope = ScopeOf(key.kind);
  if (scope == Scope::kCluster) key.ns.clear();
  if (scope == Scope::kNamespace && key.ns.empty()) key.ns = kDefaultNamespace;
  return key;
}

WriteResult Rejected(int code, std::string message) {
  return {WriteResult::Kind::kRejected, code, std::move(message)};
}

bool IsTerminal(PodPhase phase) {
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
}

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
  return {WriteResult::Kind::kDone, 201, ""};
}

}  // namespace

// State behind the lock. Events are queued while it is held and delivered after it is released.
struct Cluster::Impl {
  Impl(const Clock& the_clock, ClusterEvents& events, GpuPolicy the_defaults)
      : clock(the_clock), queue(events), defaults(std::move(the_defaults)) {}

  absl::StatusOr<ApplyReport> Apply(std::string_view text, bool padded);
  absl::Status CheckUids(const std::vector<ManifestObject>& objects) const;
  void Store(ManifestObject& object, Instant now);
  void StorePod(PodFacts pod, const ManifestObject& object, const StoredObject& stored,
                JsonPatch& patch, Instant now);
  void Forget(const ObjectKey& key);
  void PushPolicies();
  void PushPod(PodFacts pod);
  void PushHeard();

  void DeleteOne(const DeleteRequest& request, Instant now);
  WriteResult TryBind(const BindingWrite& write);
  absl::StatusOr<PodFacts> ReadPod(const StoredObject& stored, wire::Element& element);
  absl::Status Rewrite(const ObjectKey& key, StoredObject stored, wire::Element element,
                       JsonPatch& patch);

  const Clock& clock;
  EventQueue queue;
  const GpuPolicy defaults;

  std::mutex mutex;
  ObjectStore store;
  std::map<std::string, GpuPolicy> policies;
  wire::Parser parser;  // of single stored objects
  uint64_t made_uids = 0;
};

absl::StatusOr<ApplyReport> Cluster::Impl::Apply(std::string_view text, bool padded) {
  const absl::StatusOr<Document> document = Document::Parse(text, padded);
  if (!document.ok()) return document.status();
  absl::StatusOr<Manifest> manifest = ReadManifest(*document, defaults);
  if (!manifest.ok()) return manifest.status();
  {
    const std::lock_guard lock(mutex);
    const Instant now = clock.Now();
    absl::Status status = CheckUids(manifest->objects);
    if (!status.ok()) return status;
    // Policies first: what comes with them is judged by them.
    bool policies_changed = false;
    for (ManifestObject& object : manifest->objects) {
      if (object.key.kind != kPolicyKind) continue;
      Store(object, now);
      policies_changed = true;
    }
    if (policies_changed) PushPolicies();
    for (ManifestObject& object : manifest->objects) {
      if (object.key.kind != kPolicyKind) Store(object, now);
    }
  }
  queue.Flush();
  return ApplyReport{static_cast<int>(manifest->objects.size()), std::move(manifest->ignored)};
}

// A uid names one object: books kept by uid would mix two.
absl::Status Cluster::Impl::CheckUids(const std::vector<ManifestObject>& objects) const {
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

void Cluster::Impl::Store(ManifestObject& object, Instant now) {
  const StoredObject* prior = store.Find(object.key);
  if (prior != nullptr && !object.uid.empty() && object.uid != prior->uid) {
    Forget(object.key);
    prior = nullptr;
  }
  StoredObject stored;
  if (!object.uid.empty()) {
    stored.uid = object.uid;
  } else if (prior != nullptr) {
    stored.uid = prior->uid;
  } else {
    do {
      stored.uid = MakeUid(object.key, now, ++made_uids);
    } while (store.OwnerOf(stored.uid) != nullptr);
  }
  stored.created = object.created     ? *object.created
                   : prior != nullptr ? prior->created
                                      : std::chrono::floor<std::chrono::seconds>(now);
  // A deletion under way cannot be taken back.
  stored.deletion = object.deletion || prior == nullptr ? object.deletion : prior->deletion;

  JsonPatch patch = NewcomerPatch(object);
  SetIdentity(patch, stored);
  SetVersion(patch, store.NextVersion());
  if (stored.deletion) SetDeletion(patch, *stored.deletion);
  if (auto* node = std::get_if<NodeFacts>(&object.facts)) {
    node->uid = NodeUid(stored.uid);
    queue.Push([facts = std::move(*node)](ClusterEvents& events) { events.NodeChanged(facts); });
  } else if (auto* pod = std::get_if<PodFacts>(&object.facts)) {
    StorePod(std::move(*pod), object, stored, patch, now);
  } else if (auto* policy = std::get_if<GpuPolicy>(&object.facts)) {
    policy->name = object.key.name;
    policies[object.key.name] = std::move(*policy);
  }
  std::string text;
  patch.Write(object.element, text);
  text.shrink_to_fit();
  stored.text = std::move(text);
  store.Put(object.key, std::move(stored));
}

void Cluster::Impl::StorePod(PodFacts pod, const ManifestObject& object, const StoredObject& stored,
                             JsonPatch& patch, Instant now) {
  pod.request.uid = PodUid(stored.uid);
  pod.request.name = {object.key.ns, object.key.name};
  pod.created = stored.created;
  pod.terminating = stored.deletion.has_value();
  if (!pod.node.empty() && pod.phase == PodPhase::kPending) {
    pod.phase = PodPhase::kRunning;
    SetRunning(patch, object.element, now);
  } else {
    SetPendingIfUnstated(patch, object.element);
  }
  PushPod(std::move(pod));
}

void Cluster::Impl::Forget(const ObjectKey& key) {
  const StoredObject* stored = store.Find(key);
  if (key.kind == kPodKind) {
    queue.Push([uid = PodUid(stored->uid)](ClusterEvents& events) { events.PodGone(uid); });
  } else if (key.kind == kNodeKind) {
    queue.Push([name = NodeName(key.name)](ClusterEvents& events) { events.NodeGone(name); });
  }
  store.Erase(key);
}

void Cluster::Impl::PushPolicies() {
  std::vector<GpuPolicy> all;
  for (const auto& [name, policy] : policies) all.push_back(policy);
  queue.Push([all = std::move(all)](ClusterEvents& events) { events.PoliciesChanged(all); });
}

void Cluster::Impl::PushPod(PodFacts pod) {
  queue.Push([facts = std::move(pod)](ClusterEvents& events) mutable {
    events.PodChanged(std::move(facts));
  });
}

void Cluster::Impl::PushHeard() {
  queue.Push([](ClusterEvents& events) {
    events.Heard("nodes");
    events.Heard("pods");
  });
}

absl::StatusOr<PodFacts> Cluster::Impl::ReadPod(const StoredObject& stored,
                                                wire::Element& element) {
  absl::StatusOr<wire::Element> root = parser.Parse(stored.text, false);
  if (!root.ok()) return root.status();
  element = *root;
  return wire::DecodePod(element);
}

// Stores a pod with changes and tells the engine.
absl::Status Cluster::Impl::Rewrite(const ObjectKey& key, StoredObject stored,
                                    wire::Element element, JsonPatch& patch) {
  SetVersion(patch, store.NextVersion());
  std::string text;
  patch.Write(element, text);
  text.shrink_to_fit();
  stored.text = std::move(text);
  absl::StatusOr<PodFacts> pod = ReadPod(stored, element);
  if (!pod.ok()) return pod.status();
  store.Put(key, std::move(stored));
  PushPod(*std::move(pod));
  return absl::OkStatus();
}

void Cluster::Impl::DeleteOne(const DeleteRequest& request, Instant now) {
  const StoredObject* stored = store.Find(request.key);
  if (stored == nullptr) return;  // named twice
  if (request.key.kind != kPodKind) return Forget(request.key);
  wire::Element element;
  const absl::StatusOr<PodFacts> pod = ReadPod(*stored, element);
  if (!pod.ok() || pod->node.empty() || IsTerminal(pod->phase)) return Forget(request.key);
  const int64_t grace = request.grace_seconds.value_or(StatedGraceSeconds(element));
  if (grace == 0) return Forget(request.key);
  const Deletion deletion{now + std::chrono::seconds(grace), grace};
  if (stored->deletion && stored->deletion->at <= deletion.at) return;
  StoredObject changed = *stored;
  changed.deletion = deletion;
  JsonPatch patch;
  SetDeletion(patch, deletion);
  if (!Rewrite(request.key, std::move(changed), element, patch).ok()) Forget(request.key);
}

WriteResult Cluster::Impl::TryBind(const BindingWrite& write) {
  if (write.node.empty()) return Rejected(422, "expected a node name, found none, in target.name");
  const ObjectKey key = KeyOf(write.pod);
  const StoredObject* stored = store.Find(key);
  if (stored == nullptr) return Rejected(404, fmt::format("pod {} not found", write.pod.str()));
  wire::Element element;
  const absl::StatusOr<PodFacts> pod = ReadPod(*stored, element);
  if (!pod.ok()) return Rejected(422, std::string(pod.status().message()));
  WriteResult result = CheckBinding(write, stored, *pod);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const Instant now = clock.Now();
  JsonPatch patch;
  SetBinding(patch, element, write, now);
  if (pod->phase == PodPhase::kPending) SetRunning(patch, element, now);
  const absl::Status status = Rewrite(key, *stored, element, patch);
  if (!status.ok()) return Rejected(422, std::string(status.message()));
  return result;
}

Cluster::Cluster(const Clock& clock, ClusterEvents& events, GpuPolicy defaults)
    : impl_(std::make_unique<Impl>(clock, events, std::move(defaults))) {}

Cluster::~Cluster() = default;

absl::StatusOr<ApplyReport> Cluster::Apply(std::string_view text) {
  return impl_->Apply(text, false);
}

absl::StatusOr<ApplyReport> Cluster::LoadFile(const std::string& path) {
  const absl::StatusOr<std::string> text =
      ReadTextFile(path, wire::kMaxDocumentBytes, simdjson::SIMDJSON_PADDING);
  if (!text.ok()) return text.status();
  absl::StatusOr<ApplyReport> report = impl_->Apply(*text, true);
  if (report.ok()) return report;
  return absl::Status(report.status().code(),
                      fmt::format("{}: {}", path, std::string(report.status().message())));
}

absl::Status Cluster::Delete(std::string_view text) {
  const absl::StatusOr<Document> document = Document::Parse(text, false);
  if (!document.ok()) return document.status();
  const absl::StatusOr<std::vector<DeleteRequest>> requests = ReadDeleteRequests(*document);
  if (!requests.ok()) return requests.status();
  {
    const std::lock_guard lock(impl_->mutex);
    const Instant now = impl_->clock.Now();
    bool policies_changed = false;
    for (const DeleteRequest& request : *requests) {
      const StoredObject* stored = impl_->store.Find(request.key);
      if (stored == nullptr || (!request.uid.empty() && request.uid != stored->uid)) {
        return absl::NotFoundError(fmt::format(
            "expected {}{}{}, found {}", request.key.str(), request.uid.empty() ? "" : " of uid ",
            request.uid, stored == nullptr ? "no such object" : "uid " + stored->uid));
      }
      policies_changed = policies_changed || request.key.kind == kPolicyKind;
    }
    for (const DeleteRequest& request : *requests) {
      impl_->DeleteOne(request, now);
      if (request.key.kind == kPolicyKind) impl_->policies.erase(request.key.name);
    }
    if (policies_changed) impl_->PushPolicies();
  }
  impl_->queue.Flush();
  return absl::OkStatus();
}

std::optional<std::string> Cluster::Get(std::string_view kind, std::string_view ns,
                                        std::string_view name) const {
  const ObjectKey key = QueriedKey(kind, ns, name);
  const std::lock_guard lock(impl_->mutex);
  const StoredObject* stored = impl_->store.Find(key);
  if (stored == nullptr) return std::nullopt;
  return stored->text;
}

std::string Cluster::List(std::string_view kind, std::string_view ns) const {
  const std::string exact = KindFromQuery(kind);
  const std::lock_guard lock(impl_->mutex);
  return impl_->store.List(exact, ScopeOf(exact) == Scope::kCluster ? std::string_view() : ns);
}

std::optional<Instant> Cluster::Tick(Instant now) {
  std::optional<Instant> next;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const ObjectKey& key : impl_->store.Due(now)) impl_->Forget(key);
    next = impl_->store.NextDue();
    impl_->PushHeard();
  }
  impl_->queue.Flush();
  return next;
}

void Cluster::FinishLoading() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->PushHeard();
    impl_->queue.Push([](ClusterEvents& events) { events.Synced(); });
  }
  impl_->queue.Flush();
}

void Cluster::Bind(BindingWrite write, std::function<void(WriteResult)> done) {
  WriteResult result;
  {
    const std::lock_guard lock(impl_->mutex);
    result = impl_->TryBind(write);
    if (result.kind == WriteResult::Kind::kDone) {
      // Queued behind the event, so that the engine has seen the bound pod first.
      impl_->queue.Push([done, result](ClusterEvents& /*events*/) { done(result); });
    }
  }
  if (result.kind == WriteResult::Kind::kDone) {
    impl_->queue.Start();
  } else {
    done(std::move(result));
  }
}

void Cluster::Poke(PodName, PodUid, Instant, std::function<void(WriteResult)> done) {
  WriteResult result;
  result.kind = WriteResult::Kind::kDone;
  done(std::move(result));
}

void Cluster::GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) {
  PodLookup lookup;
  {
    const std::lock_guard lock(impl_->mutex);
    const StoredObject* stored = impl_->store.Find(KeyOf(pod));
    if (stored == nullptr || (!uid.empty() && stored->uid != uid.str())) {
      lookup.kind = PodLookup::Kind::kMissing;
    } else {
      wire::Element element;
      absl::StatusOr<PodFacts> facts = impl_->ReadPod(*stored, element);
      if (facts.ok()) {
        lookup.kind = PodLookup::Kind::kFound;
        lookup.pod = *std::move(facts);
      } else {
        lookup.message = std::string(facts.status().message());
      }
    }
  }
  done(std::move(lookup));
}

}  // namespace tranche::embedded
