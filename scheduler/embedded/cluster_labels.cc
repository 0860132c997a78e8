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
#include "scheduler/wire/records/past_object.h"

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

WriteResult Cluster::State::SaveNode(const ObjectKey& key, StoredObject stored,
                                     wire::Element element, JsonPatch& patch) {
  Render(stored, element, patch);
  const wire::Element saved = ElementOf(stored);
  absl::StatusOr<NodeFacts> node = wire::DecodeNode(saved);
  if (!node.ok()) return Rejected(422, std::string(node.status().message()));
  queue.Push(NodeChanged{*std::move(node), wire::PastNodeText(saved)});
  store.Put(key, std::move(stored));
  return Done(200);
}

WriteResult Cluster::State::TryLabelNode(const NodeLabelWrite& write) {
  const ObjectKey key{std::string(kNodeKind), "", write.node.str()};
  const StoredObject* found = store.Find(key);
  if (found == nullptr) return NotFound(key);
  JsonPatch patch;
  if (write.value.empty()) {
    patch.Remove({"metadata", "labels", write.key});
  } else {
    patch.SetText({"metadata", "labels", write.key}, write.value);
  }
  return SaveNode(key, *found, ElementOf(*found), patch);
}

ConfigMapLookup Cluster::State::FindConfigMap(const ObjectKey& key, const std::string& data_key) {
  ConfigMapLookup lookup;
  lookup.kind = ConfigMapLookup::Kind::kMissing;
  const StoredObject* found = store.Find(key);
  if (found == nullptr) return lookup;
  const wire::Element element = ElementOf(*found);
  lookup.kind = ConfigMapLookup::Kind::kFound;
  lookup.text = TextIn(element, "data", data_key);
  lookup.version = TextIn(element, "metadata", "resourceVersion");
  return lookup;
}

WriteResult Cluster::State::TryPutConfigMap(const ConfigMapWrite& write) {
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
  const wire::Element element = ElementOf(stored);
  Save(key, std::move(stored), element, patch);
  return Done(created ? 201 : 200);
}

void Cluster::LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) {
  impl_->Do([&](State& state) { return state.TryLabelNode(write); }, std::move(done));
}

void Cluster::ReadConfigMap(NamespacedName map, std::string key,
                            std::function<void(ConfigMapLookup)> done) {
  const ObjectKey at{std::string(kConfigMapKind), std::move(map.ns), std::move(map.name)};
  done(impl_->Locked([&](State& state) { return state.FindConfigMap(at, key); }));
}

void Cluster::PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) {
  done(impl_->Locked([&](State& state) { return state.TryPutConfigMap(write); }));
}

}  // namespace tranche::embedded
