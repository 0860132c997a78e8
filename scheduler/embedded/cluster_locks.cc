// Locks that node agents go by, and scheduling gates.
#include <fmt/core.h>

#include <utility>

#include "scheduler/embedded/answers.h"
#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/wire/agents/node_lock.h"
#include "topology/base/check.h"

namespace tranche::embedded {
namespace {

using LockKind = NodeLockResult::Kind;

std::optional<std::string> AnnotationOf(wire::Element element, std::string_view key) {
  wire::Object object;
  TRANCHE_CHECK(element.get(object) == simdjson::SUCCESS);
  const auto metadata = wire::FindObject(object, "metadata");
  const auto annotations = metadata ? wire::FindObject(*metadata, "annotations") : std::nullopt;
  const auto text = annotations ? wire::FindText(*annotations, key) : std::nullopt;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

// spec.schedulingGates without those of that name; nullopt when there is none.
std::optional<std::string> GatesWithout(wire::Element pod, std::string_view gate) {
  wire::Object object;
  TRANCHE_CHECK(pod.get(object) == simdjson::SUCCESS);
  const auto spec = wire::FindObject(object, "spec");
  const auto gates = spec ? wire::FindArray(*spec, "schedulingGates") : std::nullopt;
  if (!gates) return std::nullopt;
  bool found = false;
  std::string others;
  for (const wire::Element one : *gates) {
    wire::Object member;
    if (one.get(member) == simdjson::SUCCESS && wire::FindText(member, "name") == gate) {
      found = true;
      continue;
    }
    if (!others.empty()) others += ',';
    others += simdjson::minify(one);
  }
  if (!found) return std::nullopt;
  return "[" + others + "]";
}

}  // namespace

NodeLockResult Cluster::Impl::TryLockNode(const NodeLockWrite& write, bool take) {
  const ObjectKey key{std::string(kNodeKind), "", write.node.str()};
  const StoredObject* found = store.Find(key);
  if (found == nullptr) return {LockKind::kFailed, "", NotFound(key).message};
  const absl::StatusOr<wire::Element> element = parser.Parse(found->text, false);
  TRANCHE_CHECK(element.ok());
  const std::optional<std::string> current = AnnotationOf(*element, write.key);
  if (!take && current != write.value) return {LockKind::kDone, current.value_or(""), ""};
  JsonPatch patch;
  if (take) {
    const wire::LockVerdict verdict =
        wire::JudgeLock(current, write.value, write.stale_after, write.now);
    if (verdict == wire::LockVerdict::kHeld) return {LockKind::kHeld, *current, ""};
    if (verdict == wire::LockVerdict::kOurs) return {LockKind::kDone, write.value, ""};
    patch.SetText({"metadata", "annotations", write.key}, write.value);
  } else {
    patch.Remove({"metadata", "annotations", write.key});
  }
  const WriteResult saved = SaveNode(key, *found, *element, patch);
  if (saved.kind != WriteResult::Kind::kDone) return {LockKind::kFailed, "", saved.message};
  return {LockKind::kDone, take ? write.value : "", ""};
}

WriteResult Cluster::Impl::TryRemoveGate(const GateWrite& write) {
  WriteResult result = CheckPod(write.pod, write.uid);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const ObjectKey key = KeyOf(write.pod);
  const StoredObject* stored = store.Find(key);
  const absl::StatusOr<wire::Element> element = parser.Parse(stored->text, false);
  TRANCHE_CHECK(element.ok());
  const std::optional<std::string> gates = GatesWithout(*element, write.gate);
  if (!gates) return result;
  JsonPatch patch;
  patch.Set({"spec", "schedulingGates"}, *gates);
  const absl::Status status = SavePod(key, *stored, *element, patch);
  if (!status.ok()) return Rejected(422, std::string(status.message()));
  return result;
}

WriteResult Cluster::Impl::TryAnnotatePod(const PodAnnotationWrite& write) {
  WriteResult result = CheckPod(write.pod, write.uid);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const ObjectKey key = KeyOf(write.pod);
  const StoredObject* stored = store.Find(key);
  const absl::StatusOr<wire::Element> element = parser.Parse(stored->text, false);
  TRANCHE_CHECK(element.ok());
  JsonPatch patch;
  for (const auto& [name, text] : write.annotations) {
    patch.SetText({"metadata", "annotations", name}, text);
  }
  const absl::Status status = SavePod(key, *stored, *element, patch);
  if (!status.ok()) return Rejected(422, std::string(status.message()));
  return result;
}

void Cluster::Impl::ChangeLock(const NodeLockWrite& write, bool take,
                               std::function<void(NodeLockResult)> done) {
  {
    const std::lock_guard guard(mutex);
    NodeLockResult result = TryLockNode(write, take);
    // Queued behind the event, so that the engine has seen the node first.
    queue.Push([done = std::move(done), result = std::move(result)](ClusterEvents& /*events*/) {
      done(result);
    });
  }
  queue.Start();
}

void Cluster::LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) {
  impl_->ChangeLock(write, /*take=*/true, std::move(done));
}

void Cluster::UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) {
  impl_->ChangeLock(write, /*take=*/false, std::move(done));
}

void Cluster::AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) {
  {
    const std::lock_guard guard(impl_->mutex);
    WriteResult result = impl_->TryAnnotatePod(write);
    impl_->queue.Push([done = std::move(done),
                       result = std::move(result)](ClusterEvents& /*events*/) { done(result); });
  }
  impl_->queue.Start();
}

void Cluster::RemoveGate(GateWrite write, std::function<void(WriteResult)> done) {
  {
    const std::lock_guard guard(impl_->mutex);
    WriteResult result = impl_->TryRemoveGate(write);
    impl_->queue.Push([done = std::move(done),
                       result = std::move(result)](ClusterEvents& /*events*/) { done(result); });
  }
  impl_->queue.Start();
}

}  // namespace tranche::embedded
