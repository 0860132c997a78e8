// Labels of nodes, and the ConfigMap that MIG layouts are written to.
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/embedded/answers.h"
#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_edits.h"
#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "topology/base/check.h"

namespace tranche::embedded {
namespace {

std::string BareConfigMap(const ObjectKey& key) {
  return wire::Dump({{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", key.name}, {"namespace", key.ns}}}});
}

// metadata.resourceVersion or data.KEY.
std::string TextIn(wire::Element element, std::string_view section, std::string_view key) {
  wire::Object object;
  if (element.get(object) != simdjson::SUCCESS) return "";
  const auto members = wire::FindObject(object, section);
  return members ? std::string(wire::FindText(*members, key).value_or("")) : std::string();
}

}  // namespace

WriteResult Cluster::Impl::SaveNode(const ObjectKey& key, StoredObject stored,
                                    wire::Element element, JsonPatch& patch) {
  Render(stored, element, patch);
  const absl::StatusOr<wire::Element> after = parser.Parse(stored.text, false);
  TRANCHE_CHECK(after.ok());
  absl::StatusOr<NodeFacts> node = wire::DecodeNode(*after);
  if (!node.ok()) return Rejected(422, std::string(node.status().message()));
  store.Put(key, std::move(stored));
  queue.Push([facts = *std::move(node)](ClusterEvents& receiver) { receiver.NodeChanged(facts); });
  return Done(200);
}

WriteResult Cluster::Impl::TryLabelNode(const NodeLabelWrite& write) {
  const ObjectKey key{std::string(kNodeKind), "", write.node.str()};
  const StoredObject* found = store.Find(key);
  if (found == nullptr) return NotFound(key);
  const absl::StatusOr<wire::Element> before = parser.Parse(found->text, false);
  if (!before.ok()) return Rejected(422, std::string(before.status().message()));
  JsonPatch patch;
  if (write.value.empty()) {
    patch.Remove({"metadata", "labels", write.key});
  } else {
    patch.SetText({"metadata", "labels", write.key}, write.value);
  }
  return SaveNode(key, *found, *before, patch);
}

ConfigMapLookup Cluster::Impl::FindConfigMap(const ObjectKey& key, const std::string& data_key) {
  ConfigMapLookup lookup;
  lookup.kind = ConfigMapLookup::Kind::kMissing;
  const StoredObject* found = store.Find(key);
  if (found == nullptr) return lookup;
  const absl::StatusOr<wire::Element> element = parser.Parse(found->text, false);
  TRANCHE_CHECK(element.ok());
  lookup.kind = ConfigMapLookup::Kind::kFound;
  lookup.text = TextIn(*element, "data", data_key);
  lookup.version = TextIn(*element, "metadata", "resourceVersion");
  return lookup;
}

WriteResult Cluster::Impl::TryPutConfigMap(const ConfigMapWrite& write) {
  const ObjectKey key{std::string(kConfigMapKind), write.ns, write.name};
  const ConfigMapLookup present = FindConfigMap(key, write.key);
  // Both are empty where it is to be made and is not there.
  if (present.version != write.version) {
    return Rejected(409, fmt::format("expected {} of version {}, found {}", key.str(),
                                     wire::Quoted(write.version), wire::Quoted(present.version)));
  }
  const bool created = present.version.empty();
  JsonPatch patch;
  StoredObject stored;
  if (created) {
    const Instant now = clock.Now();
    stored.text = BareConfigMap(key);
    stored.uid = NewUid(key, now);
    stored.created = std::chrono::floor<std::chrono::seconds>(now);
    SetIdentity(patch, stored);
  } else {
    stored = *store.Find(key);
  }
  patch.SetText({"data", write.key}, write.text);
  const absl::StatusOr<wire::Element> element = parser.Parse(stored.text, false);
  TRANCHE_CHECK(element.ok());
  Save(key, std::move(stored), *element, patch);
  return Done(created ? 201 : 200);
}

void Cluster::LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) {
  WriteResult result;
  {
    const std::lock_guard lock(impl_->mutex);
    result = impl_->TryLabelNode(write);
    if (result.kind == WriteResult::Kind::kDone) {
      // Queued behind the event, so that the engine has seen the node first.
      impl_->queue.Push([done, result](ClusterEvents& /*events*/) { done(result); });
    }
  }
  if (result.kind == WriteResult::Kind::kDone) {
    impl_->queue.Start();
  } else {
    done(std::move(result));
  }
}

void Cluster::ReadConfigMap(NamespacedName map, std::string key,
                            std::function<void(ConfigMapLookup)> done) {
  ConfigMapLookup lookup;
  {
    const std::lock_guard lock(impl_->mutex);
    lookup = impl_->FindConfigMap(
        {std::string(kConfigMapKind), std::move(map.ns), std::move(map.name)}, key);
  }
  done(std::move(lookup));
}

void Cluster::PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) {
  WriteResult result;
  {
    const std::lock_guard lock(impl_->mutex);
    result = impl_->TryPutConfigMap(write);
  }
  done(std::move(result));
}

}  // namespace tranche::embedded
