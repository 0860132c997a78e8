// Writes as the API server does them: create, replace, the three patches, server-side apply,
// delete. Pods have rules of their own, in pod_writes.h.
//
// Source: kube-client-protocol sections 3, 10 and 16. Of server-side apply there is what one field
// manager needs that owns all it writes: what it leaves out goes. What has finalizers goes with the
// last of them.
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "test/sim/cluster/answer.h"
#include "test/sim/cluster/resources.h"
#include "test/sim/cluster/store.h"

namespace tranche::sim {

struct Write {
  std::string who;
  std::string method;  // POST, PUT, PATCH, DELETE
  ApiPath path;
  std::string content_type = "application/json";
  Json body = {};
  bool has_field_manager = false;
  bool let_pass = false;  // by policies of others, before this step
};

class Writes {
 public:
  explicit Writes(Store& store) : store_(store) {}

  Answer Create(const Write& write);
  Answer Replace(const Write& write);
  Answer Patch(const Write& write);
  Answer Delete(const Write& write);

  // What Create would store: names in order and no version asked for. `refusal` says why not.
  std::optional<Json> Prepared(const Write& write, Answer& refusal) const;
  // What Patch would store.
  std::optional<Json> Patched(const Write& write, const Stored& stored, Answer& refusal) const;
  // Keeps the parts that this path may not write, and stores. What changes nothing makes no
  // version.
  Answer Save(const Write& write, const StoredPtr& before, Json object);

 private:
  Answer Apply(const Write& write);

  Store& store_;
  std::map<std::string, std::set<std::string>> applied_;  // path -> members that are owned
};

// uid and resourceVersion of DeleteOptions; nullopt: they hold.
std::optional<Answer> CheckPreconditions(const Json& options, const Stored& stored);

}  // namespace tranche::sim
