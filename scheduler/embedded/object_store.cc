#include "scheduler/embedded/object_store.h"

#include <fmt/core.h>

namespace tranche::embedded {

std::string ObjectKey::str() const {
  return ns.empty() ? fmt::format("{} {}", kind, name) : fmt::format("{} {}/{}", kind, ns, name);
}

const StoredObject* ObjectStore::Find(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : &found->second;
}

const ObjectKey* ObjectStore::OwnerOf(const std::string& uid) const {
  const auto found = owners_.find(uid);
  return found == owners_.end() ? nullptr : &found->second;
}

void ObjectStore::Put(const ObjectKey& key, StoredObject object) {
  Erase(key);
  owners_.insert_or_assign(object.uid, key);
  if (object.deletion) deletions_.emplace(object.deletion->at, key);
  objects_.emplace(key, std::move(object));
}

void ObjectStore::Erase(const ObjectKey& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  const StoredObject& object = found->second;
  const auto owner = owners_.find(object.uid);
  if (owner != owners_.end() && owner->second == key) owners_.erase(owner);
  if (object.deletion) deletions_.erase({object.deletion->at, key});
  objects_.erase(found);
}

std::string ObjectStore::List(std::string_view kind, std::string_view ns) const {
  std::string out = fmt::format(
      R"({{"apiVersion":"v1","kind":"List","metadata":{{"resourceVersion":"{}"}},"items":[)",
      version_);
  bool first = true;
  const ObjectKey from{std::string(kind), std::string(ns), ""};
  for (auto at = objects_.lower_bound(from); at != objects_.end(); ++at) {
    if (at->first.kind != kind || (!ns.empty() && at->first.ns != ns)) break;
    if (!first) out += ',';
    first = false;
    out += at->second.text;
  }
  out += "]}";
  return out;
}

std::vector<ObjectKey> ObjectStore::Keys(std::string_view kind, std::string_view ns) const {
  std::vector<ObjectKey> keys;
  const ObjectKey from{std::string(kind), std::string(ns), ""};
  for (auto at = objects_.lower_bound(from); at != objects_.end(); ++at) {
    if (at->first.kind != kind || (!ns.empty() && at->first.ns != ns)) break;
    keys.push_back(at->first);
  }
  return keys;
}

std::vector<ObjectKey> ObjectStore::Due(Instant now) const {
  std::vector<ObjectKey> due;
  for (const auto& [at, key] : deletions_) {
    if (at > now) break;
    due.push_back(key);
  }
  return due;
}

std::optional<Instant> ObjectStore::NextDue() const {
  if (deletions_.empty()) return std::nullopt;
  return deletions_.begin()->first;
}

}  // namespace tranche::embedded
