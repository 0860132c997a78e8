// The objects of the simulated cluster and their versions, as etcd keeps them: one counter of
// versions for all, a history of changes for each resource until it is compacted.
//
// Source: kube-client-protocol sections 5 to 7.
//
// Thread rule: one thread. Errors: none; whoever writes has checked.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/cluster/resources.h"

namespace tranche::sim {

// One version of one object. Never changes, so everybody shares it.
class Stored {
 public:
  Stored(Json object, std::string key, uint64_t version);
  const Json& object() const { return document_; }
  const Document& document() const { return document_; }
  const std::string& key() const { return key_; }
  uint64_t version() const { return version_; }
  // As JSON, made once.
  const std::string& text() const { return document_.text(); }
  std::string_view uid() const;
  std::string_view ns() const;
  std::string_view name() const;

 private:
  const Document document_;
  const std::string key_;
  const uint64_t version_;
};
using StoredPtr = std::shared_ptr<const Stored>;

struct Change {
  enum class Type : uint8_t { kAdded, kModified, kDeleted };
  Change(Type the_type, SimTime when, StoredPtr is, StoredPtr was)
      : type(the_type), at(when), object(std::move(is)), before(std::move(was)) {}

  Type type;
  SimTime at;
  StoredPtr object;  // deleted: its last state with the version of the deletion
  StoredPtr before;  // null: made
  // The frame of a watch, made once.
  const std::string& frame() const;

 private:
  mutable std::string frame_;
};

class Store {
 public:
  using Objects = std::map<std::string, StoredPtr>;  // by key

  Store(const Loop& loop, History& history) : loop_(loop), history_(history) {}

  // Null: there is none.
  StoredPtr Find(std::string_view resource, const std::string& key) const;
  const Objects& All(std::string_view resource) const;
  uint64_t version() const { return version_; }

  // Makes or replaces; gives version, and to a new one uid, creationTimestamp and generation. The
  // generation grows where anything but metadata and status changed.
  StoredPtr Put(std::string_view resource, Json object, const std::string& who);
  void Remove(std::string_view resource, const std::string& key, const std::string& who);

  // What changed after a version, oldest first; events at and before compacted() are gone.
  struct Log {
    uint64_t first = 0;  // number of changes.front()
    std::deque<Change> changes;
  };
  const Log& LogOf(std::string_view resource) const;
  uint64_t compacted() const { return compacted_; }
  // Forgets changes up to that version.
  void Compact(uint64_t version);

  // Called after each change, in the same step.
  using Listener = std::function<void(std::string_view resource, const Change&)>;
  void Listen(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  void Record(std::string_view resource, Change change, const std::string& who);

  const Loop& loop_;
  History& history_;
  std::map<std::string, Objects, std::less<>> objects_;
  std::map<std::string, Log, std::less<>> logs_;
  std::vector<Listener> listeners_;
  uint64_t version_ = 100;
  uint64_t compacted_ = 0;
  uint64_t uids_ = 0;
};

// "ns/name" or "name".
std::string KeyOf(const Json& object);
// RFC 3339 in seconds, as metav1.Time is.
std::string TimeText(SimTime since_begin);

}  // namespace tranche::sim
