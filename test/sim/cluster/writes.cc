#include "test/sim/cluster/writes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/fakes/conditions.h"

namespace tranche::sim {
namespace {

constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";
constexpr const char* kApplyPatch = "application/apply-patch+yaml";

const Json* Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool HasFinalizers(const Json& object) {
  const Json* const finalizers = Find(object.at("metadata"), "finalizers");
  return finalizers != nullptr && !finalizers->empty();
}

// metadata of the body, when it says so, must be that of the object.
std::optional<Answer> CheckIdentity(const Json& body, const Stored& stored, int uid_code) {
  const Json* const metadata = Find(body, "metadata");
  if (metadata == nullptr) return std::nullopt;
  const Json& own = stored.object().at("metadata");
  const Json* const uid = Find(*metadata, "uid");
  if (uid != nullptr && *uid != own.at("uid")) {
    if (uid_code == 409) return Conflict("the UID in the precondition differs from the object's");
    return Invalid("metadata.uid: Invalid value: field is immutable");
  }
  const Json* const version = Find(*metadata, "resourceVersion");
  if (version != nullptr && *version != "" && *version != own.at("resourceVersion")) {
    return Conflict(
        "the object has been modified; please apply your changes to the latest version");
  }
  return std::nullopt;
}

// Of a strategic merge patch what pods need: maps merge, conditions by type, other lists replace.
void MergeStrategically(Json& object, const Json& patch) {
  for (auto it = patch.begin(); it != patch.end(); ++it) {
    Json& place = object[it.key()];
    if (it.key() == "conditions" && it->is_array()) {
      fakes::MergeConditions(place, *it);
    } else if (it->is_object()) {
      if (!place.is_object()) place = Json::object();
      MergeStrategically(place, *it);
    } else if (it->is_null()) {
      object.erase(it.key());
    } else {
      place = *it;
    }
  }
}

// All members but one are those of `old` again. Most are, and a copy costs more than a comparison.
void RestoreAllBut(std::string_view free, const Json& old, Json& object) {
  std::vector<std::string> surplus;
  for (auto it = object.begin(); it != object.end(); ++it) {
    if (it.key() != free && !old.contains(it.key())) surplus.push_back(it.key());
  }
  for (const std::string& member : surplus) object.erase(member);
  for (auto it = old.begin(); it != old.end(); ++it) {
    if (it.key() == free) continue;
    Json& member = object[it.key()];
    if (member != *it) member = *it;
  }
}

}  // namespace

std::optional<Answer> CheckPreconditions(const Json& options, const Stored& stored) {
  const Json* const wanted = options.is_object() ? Find(options, "preconditions") : nullptr;
  if (wanted == nullptr) return std::nullopt;
  const Json* const uid = Find(*wanted, "uid");
  if (uid != nullptr && *uid != std::string(stored.uid())) {
    return Conflict("the UID in the precondition differs from the object's");
  }
  const Json* const version = Find(*wanted, "resourceVersion");
  if (version != nullptr && *version != std::to_string(stored.version())) {
    return Conflict("the ResourceVersion in the precondition differs from the object's");
  }
  return std::nullopt;
}

std::optional<Json> Writes::Prepared(const Write& write, Answer& refusal) const {
  const Json* const metadata = Find(write.body, "metadata");
  const auto text = [metadata](const char* key) {
    return metadata == nullptr ? std::string() : metadata->value(key, std::string());
  };
  if (text("name").empty() || text("namespace") != write.path.ns ||
      write.body.value("kind", "") != write.path.type->kind) {
    refusal = Refuse(400, "BadRequest", "expected a named object of this kind and namespace");
    return std::nullopt;
  }
  if (!text("resourceVersion").empty()) {
    refusal = Refuse(400, "BadRequest", "resourceVersion should not be set on objects to create");
    return std::nullopt;
  }
  if (write.path.type->namespaced && store_.Find("namespaces", write.path.ns) == nullptr) {
    refusal = NotFound("namespaces", write.path.ns);
    return std::nullopt;
  }
  if (store_.Find(write.path.type->plural, KeyOf(write.body)) != nullptr) {
    refusal = Refuse(409, "AlreadyExists", KeyOf(write.body) + " already exists");
    return std::nullopt;
  }
  return write.body;
}

Answer Writes::Create(const Write& write) {
  Answer refusal;
  std::optional<Json> object = Prepared(write, refusal);
  if (!object) return refusal;
  return {201, store_.Put(write.path.type->plural, std::move(*object), write.who)};
}

Answer Writes::Replace(const Write& write) {
  const StoredPtr before = store_.Find(write.path.type->plural, write.path.key());
  if (before == nullptr) return NotFound(write.path.type->plural, write.path.key());
  if (!write.body.contains("metadata") || KeyOf(write.body) != before->key()) {
    return Refuse(400, "BadRequest", "the name of the object does not match the URL");
  }
  if (std::optional<Answer> refusal = CheckIdentity(write.body, *before, 409)) return *refusal;
  return Save(write, before, write.body);
}

std::optional<Json> Writes::Patched(const Write& write, const Stored& stored,
                                    Answer& refusal) const {
  if (write.content_type == kJsonPatch) {
    try {
      return stored.object().patch(write.body);
    } catch (const Json::exception& refused) {
      refusal = Invalid(refused.what());  // a `test` among them: 422, not 409
      return std::nullopt;
    }
  }
  const bool built_in = write.path.type->group != kTrancheGroup;
  const bool strategic = write.content_type == kStrategicPatch && built_in;
  if (!strategic && write.content_type != kMergePatch) {
    refusal = Refuse(415, "UnsupportedMediaType", write.content_type);
    return std::nullopt;
  }
  if (std::optional<Answer> conflict = CheckIdentity(write.body, stored, 422)) {
    refusal = std::move(*conflict);
    return std::nullopt;
  }
  Json object = stored.object();
  if (strategic) {
    MergeStrategically(object, write.body);
  } else {
    object.merge_patch(write.body);
  }
  return object;
}

Answer Writes::Patch(const Write& write) {
  if (write.content_type == kApplyPatch) return Apply(write);
  const StoredPtr before = store_.Find(write.path.type->plural, write.path.key());
  if (before == nullptr) return NotFound(write.path.type->plural, write.path.key());
  Answer refusal;
  std::optional<Json> object = Patched(write, *before, refusal);
  if (!object) return refusal;
  return Save(write, before, std::move(*object));
}

Answer Writes::Apply(const Write& write) {
  if (!write.has_field_manager) return Refuse(400, "BadRequest", "fieldManager is required");
  const std::string key = write.path.key();
  const StoredPtr before = store_.Find(write.path.type->plural, key);
  const bool of_status = !write.path.subresource.empty();
  if (before == nullptr && of_status) return NotFound(write.path.type->plural, key);
  Json object = before == nullptr ? write.body : before->object();
  std::set<std::string>& owned =
      applied_[std::string(write.path.type->plural) + "/" + key + "/" + write.path.subresource];
  std::set<std::string> given;
  for (auto it = write.body.begin(); it != write.body.end(); ++it) {
    const bool frame = it.key() == "apiVersion" || it.key() == "kind" || it.key() == "metadata";
    if (frame || (it.key() == "status") != of_status) continue;
    given.insert(it.key());
    object[it.key()] = *it;
  }
  for (const std::string& member : owned) {
    if (!given.contains(member)) object.erase(member);
  }
  owned = std::move(given);
  if (before != nullptr) return Save(write, before, std::move(object));
  object.erase("status");
  return {201, store_.Put(write.path.type->plural, std::move(object), write.who)};
}

Answer Writes::Save(const Write& write, const StoredPtr& before, Json object) {
  const Json& old = before->object();
  const auto keep = [&](const char* member) {
    const Json* const present = Find(old, member);
    if (present == nullptr) {
      object.erase(member);
    } else {
      object[member] = *present;
    }
  };
  if (write.path.subresource == "status") {
    const auto status = object.find("status");
    const Json* const present = Find(old, "status");
    if (status == object.end() || (present != nullptr && *present == *status)) return {200, before};
    RestoreAllBut("status", old, object);
    return {200, store_.Put(write.path.type->plural, std::move(object), write.who)};
  }
  if (write.path.type->has_status) {
    keep("status");
  }
  for (const char* own : {"uid", "creationTimestamp", "generation", "resourceVersion"}) {
    object["metadata"][own] = old.at("metadata").at(own);
  }
  if (object == old) return {200, before};
  if (object.at("metadata").contains("deletionTimestamp") && HasFinalizers(old) &&
      !HasFinalizers(object)) {
    store_.Remove(write.path.type->plural, before->key(), write.who);
    return Success(200);
  }
  return {200, store_.Put(write.path.type->plural, std::move(object), write.who)};
}

Answer Writes::Delete(const Write& write) {
  const StoredPtr before = store_.Find(write.path.type->plural, write.path.key());
  if (before == nullptr) return NotFound(write.path.type->plural, write.path.key());
  if (std::optional<Answer> refusal = CheckPreconditions(write.body, *before)) return *refusal;
  if (HasFinalizers(before->object())) {
    Json left = before->object();
    if (left["metadata"].contains("deletionTimestamp")) return {200, before};
    Json since = left["metadata"]["creationTimestamp"];
    left["metadata"]["deletionTimestamp"] = std::move(since);
    return {200, store_.Put(write.path.type->plural, std::move(left), write.who)};
  }
  const std::string prefix = std::string(write.path.type->plural) + "/" + write.path.key() + "/";
  applied_.erase(prefix);
  applied_.erase(prefix + "status");
  store_.Remove(write.path.type->plural, write.path.key(), write.who);
  return Success(200);
}

}  // namespace tranche::sim
