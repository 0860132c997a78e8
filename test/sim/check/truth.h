// The cluster as the API server has it, read from the history alone: every life of a pod from when
// it was made to when it held nothing any more, and all other objects as they are now.
//
// What was edited on a bound pod counts for nothing here: a pod holds what its Binding says.
//
// Thread rule: one thread. Objects that were written are shared, not copied.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/check/claim_lives.h"

namespace tranche::sim::check {

// One device of an allocation record.
struct RecordDevice {
  std::string id;  // UUID, else "#INDEX", else "slot N" where only the count is known
  int64_t milli = 0;
  int64_t mib = 0;
  std::string profile;  // of a MIG instance; empty: none
  int64_t start = 0;
  int64_t size = 0;
};
struct Record {
  int64_t epoch = 0;
  std::string leaf;
  std::string knowledge;
  std::vector<RecordDevice> devices;
};
// tranche.dev/allocation; nullopt where it is none.
std::optional<Record> ReadRecord(const std::string& text);

struct PodLife {
  std::string key;  // "ns/name"
  std::string uid;
  std::string node;              // empty: none yet
  std::string binder;            // who wrote the node
  std::optional<Record> record;  // as it was bound
  std::string recorded;          // its text
  Document object;               // as it was stored last
  Document machine;              // its node as it was when it was bound
  SimTime made{0};
  bool binding = false;  // a bind was asked for, and its outcome was open when it was answered last
  bool doubted = false;  // nobody was told how its last bind went
  // The last answer of the filter verb before that bind; else before it was bound.
  std::optional<SimTime> filtered;
  // A nomination of ours, until it was taken back or another came: room is kept for the pod.
  struct Kept {
    std::string node;
    SimTime from{0};
    std::optional<SimTime> to;
  };
  std::vector<Kept> kept;
  std::optional<SimTime> bound;
  std::optional<SimTime> leaving;  // it has a deletionTimestamp, or is gone
  std::string evicted_by;          // who asked for that
  std::optional<SimTime> started;  // the first of its containers had, the first time, by its status
  std::optional<SimTime> finished;  // the last of its containers had, by its own status
  std::optional<SimTime> ended;     // Succeeded, Failed or gone: it holds nothing any more
  bool gone = false;

  bool holds() const { return bound && !ended; }
  bool waits() const { return !bound && !ended; }
  std::string ns() const { return key.substr(0, key.find('/')); }
};

using Objects = std::map<std::string, Document>;  // by key

class Truth {
 public:
  void Hear(const Happening& happening);

  // All lives, ascending uid.
  const std::map<std::string, PodLife>& pods() const { return pods_; }
  // nullptr: there is none (now).
  const PodLife* pod(const std::string& uid) const;
  const PodLife* pod_of(const std::string& key) const;
  // Finds whom kube-scheduler asked about (kAsked): another may have its name by the answer.
  const PodLife* pod_asked_about(const Happening& happening) const;
  // Pods that hold something on the node, ascending uid.
  std::vector<const PodLife*> on(const std::string& node) const;
  // All lives of resource claims, ascending uid.
  const std::map<std::string, ClaimLife>& claims() const { return claims_.all(); }
  // By resource and key; pods too, as they are stored.
  const Objects& objects(const std::string& resource) const;
  const Json* object(const std::string& resource, const std::string& key) const;
  // What an object of `resource` was at some moment of the last `lag`, newest first: as it is now,
  // and as it was before each change since.
  std::vector<Document> Lately(const std::string& resource, const std::string& key, SimTime now,
                               SimTime lag) const;
  // All objects of `resource` at every moment from `since` to `now`, which may be past; newest
  // first, never empty.
  std::vector<Objects> Versions(const std::string& resource, SimTime now, SimTime since) const;

 private:
  struct Change {
    SimTime at;
    Document before;
  };
  void HearAnswer(const Happening& happening);
  void HearPod(const Happening& happening);

  std::map<std::string, PodLife> pods_;
  ClaimLives claims_;
  std::map<std::string, std::string> uids_;            // key -> uid of who is there now
  std::map<std::string, std::set<std::string>> held_;  // node -> uids
  std::map<std::string, Objects> objects_;
  std::map<std::pair<std::string, std::string>, std::vector<Change>> changes_;  // not of pods
};

// Members of objects, by the way of member names; null where there is none.
const Json& At(const Json& object, std::initializer_list<const char*> path);
std::string TextAt(const Json& object, std::initializer_list<const char*> path);
std::string Annotation(const Json& object, const char* name);
std::string Label(const Json& object, const char* name);
// RFC 3339, as the world's clock counts; nullopt: it is no time.
std::optional<SimTime> TimeOf(const std::string& text);
// Written by a replica of Tranche: "tranche-0/3".
bool IsTranche(const std::string& who);

}  // namespace tranche::sim::check
