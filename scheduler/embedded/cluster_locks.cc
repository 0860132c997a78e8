// Locks that node agents go by, annotations of pods, and scheduling gates.

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

NodeLockResult Cluster::State::TryChangeLock(const NodeLockWrite& write, LockChange change) {
  const ObjectKey key{std::string(kNodeKind), "", write.node.str()};
  const StoredObject* found = store.Find(key);
  if (found == nullptr) return {LockKind::kFailed, "", NotFound(key).message};
  const wire::Element element = ElementOf(*found);
  const std::optional<std::string> current = AnnotationOf(element, write.key);
  const bool take = change == LockChange::kTake;
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
  const WriteResult saved = SaveNode(key, *found, element, patch);
  if (saved.kind != WriteResult::Kind::kDone) return {LockKind::kFailed, "", saved.message};
  return {LockKind::kDone, take ? write.value : "", ""};
}

void Cluster::LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) {
  impl_->Do([&](State& state) { return state.TryChangeLock(write, State::LockChange::kTake); },
            std::move(done));
}

void Cluster::UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) {
  impl_->Do([&](State& state) { return state.TryChangeLock(write, State::LockChange::kDrop); },
            std::move(done));
}

void Cluster::AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) {
  const auto annotate = [&write](wire::Element /*pod*/, JsonPatch& patch) {
    for (const auto& [name, text] : write.annotations) {
      patch.SetText({"metadata", "annotations", name}, text);
    }
    return true;
  };
  impl_->Do([&](State& state) { return state.TryChangePod(write.pod, write.uid, annotate); },
            std::move(done));
}

void Cluster::MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) {
  bool theirs = false;
  const auto mark = [&](wire::Element pod, JsonPatch& patch) {
    for (const PodMark& one : write.marks) {
      const std::optional<std::string> present = AnnotationOf(pod, one.key);
      theirs |= !one.ours_alone && present != one.before && present != one.after;
    }
    if (theirs) return false;
    for (const PodMark& one : write.marks) {
      if (one.after) {
        patch.SetText({"metadata", "annotations", one.key}, *one.after);
      } else {
        patch.Remove({"metadata", "annotations", one.key});
      }
    }
    return true;
  };
  impl_->Do(
      [&](State& state) {
        const WriteResult result = state.TryChangePod(write.pod, write.uid, mark);
        return theirs ? Rejected(409, "an annotation is somebody else's by now") : result;
      },
      std::move(done));
}

void Cluster::RemoveGate(GateWrite write, std::function<void(WriteResult)> done) {
  const auto open = [&write](wire::Element pod, JsonPatch& patch) {
    std::optional<std::string> gates = GatesWithout(pod, write.gate);
    if (gates) patch.Set({"spec", "schedulingGates"}, *std::move(gates));
    return gates.has_value();
  };
  impl_->Do([&](State& state) { return state.TryChangePod(write.pod, write.uid, open); },
            std::move(done));
}

}  // namespace tranche::embedded
