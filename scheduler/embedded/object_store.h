// Kubernetes objects as JSON text, by kind, namespace and name. A plain value: no events, no
// checks, no clock.
//
// Thread rule: one thread at a time. Cost: a few hundred bytes per object beside its text.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/base/units.h"

namespace tranche::embedded {

struct ObjectKey {
  std::string kind;
  std::string ns;  // empty for cluster-wide kinds
  std::string name;

  // "Pod default/web", "Node n1".
  std::string str() const;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// A year; longer grace periods are typing errors.
inline constexpr int64_t kMaxGraceSeconds = 366 * 86'400;

struct Deletion {
  Instant at;  // when the object goes
  int64_t grace_seconds = 0;
};

struct StoredObject {
  std::string text;  // minified JSON
  std::string uid;
  Instant created;                   // metadata.creationTimestamp
  int64_t generation = 0;            // metadata.generation, of our own kinds
  std::optional<Deletion> deletion;  // set: terminating
};

class ObjectStore {
 public:
  // nullptr when there is none. Valid until the store changes.
  const StoredObject* Find(const ObjectKey& key) const;
  // The object with that uid; nullptr when there is none. Valid until the store changes.
  const ObjectKey* OwnerOf(const std::string& uid) const;
  void Put(const ObjectKey& key, StoredObject object);
  void Erase(const ObjectKey& key);

  // Objects of a kind, ascending namespace and name; `ns` empty: all namespaces. A List object.
  std::string List(std::string_view kind, std::string_view ns) const;
  // Their keys; `ns` empty: all namespaces.
  std::vector<ObjectKey> Keys(std::string_view kind, std::string_view ns) const;
  // Keys whose deletion is at `now` or earlier, earliest first.
  std::vector<ObjectKey> Due(Instant now) const;
  std::optional<Instant> NextDue() const;

  // Ever growing, one series for all objects, as an API server counts.
  int64_t NextVersion() { return ++version_; }

 private:
  std::map<ObjectKey, StoredObject> objects_;
  std::unordered_map<std::string, ObjectKey> owners_;
  std::set<std::pair<Instant, ObjectKey>> deletions_;
  int64_t version_ = 0;
};

}  // namespace tranche::embedded
