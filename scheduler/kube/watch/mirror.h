// What we know of one resource: for every object its uid and version, nothing else. Turns events
// and whole lists into changes and deletions for the sink.
//
// Invariants: an object stays known until its DELETED, a list without it, or another uid under its
// key says that it is gone; an object that cannot be read still exists, and where a list holds one
// that cannot even be told by name, nothing is gone by that list. A list is handed over
// only when it is complete, new objects before vanished ones: in between, devices look busy twice
// rather than free. Under one key the old uid goes before the new one comes.
//
// Thread rule: the reading thread. Memory: about 250 bytes an object.
// Source: kube-client-protocol sections 6 and 7, hazards 8 to 10.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/kube/watch/json_cut.h"
#include "scheduler/kube/watch/object_sink.h"
#include "scheduler/wire/json/json.h"

namespace tranche::kube {

struct ObjectVersion {
  std::string uid;
  std::string resource_version;
  bool delivered = false;   // facts of this uid are with the sink
  bool unreadable = false;  // this version could not be read in full
};
using ObjectVersions = std::map<std::string, ObjectVersion>;  // by key

// Key and version of an object. Errors: InvalidArgument without name, uid or resourceVersion.
struct ObjectMeta {
  Identity identity;
  std::string resource_version;
};
absl::StatusOr<ObjectMeta> DecodeMeta(wire::Element object);

class Mirror {
 public:
  // A list under construction, beside what is known.
  struct List {
    struct Item {
      ObjectVersion version;
      Decoded decoded;
      bool unchanged = false;
    };
    std::map<std::string, Item> items;  // by key
    // It held items that cannot be told by name: what is missing may be among them.
    bool incomplete = false;
  };

  // `resource` names it in the log.
  Mirror(std::string resource, ObjectSink& sink);

  // One ADDED, MODIFIED or DELETED. Errors: InvalidArgument when it cannot be told which object
  // this is; then nothing has changed.
  absl::Status Changed(const ReadObject& read);
  absl::Status Deleted(wire::Element object);

  // Adds an object to `list`; the element may die afterwards. Errors as above.
  absl::Status Collect(List& list, const ReadObject& read);
  // Makes `list` the whole truth.
  void Replace(List list);

  const ObjectVersions& known() const { return known_; }
  // Versions that could not be read so far, and known objects whose version is one.
  int64_t undecodable() const { return undecodable_; }
  int64_t unreadable() const { return unreadable_; }

  // Comparing with a fresh consistent list while events go on: keys that any event touched since
  // StartTouching are left out, so a difference that remains is an event that never came.
  void StartTouching();
  void StopTouching();
  std::vector<std::string> Differences(const ObjectVersions& fresh) const;

 private:
  Decoded Decode(const ReadObject& read, const Identity& identity, bool known);
  // Says in the log why a version could not be read: once for each.
  void NoteProblem(const std::string& key, const std::string& problem, ObjectVersion& version);

  std::string resource_;
  ObjectSink& sink_;
  ObjectVersions known_;
  bool touching_ = false;
  std::set<std::string> touched_;
  int64_t undecodable_ = 0;
  int64_t unreadable_ = 0;
};

}  // namespace tranche::kube
