// The part of kube-scheduler that allocates resource claims: its plugin DynamicResources.
//
// Before a cycle the pod's claims must be there. Filter tries an allocation on each node, Reserve
// keeps one in memory, PreBind writes it into the claims' status before the extender is asked to
// bind, Unreserve takes the reservation back (the allocation stays), and PostFilter gives up an
// allocation that nobody uses and that keeps the pod from other nodes.
//
// What it knows is its informers' word, and what it wrote itself.
//
// Source: dra sections 3 and 4; kubernetes dynamicresources.go of 1.34 and 1.37.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/claims/claim_reads.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/informer.h"
#include "test/sim/world/pod_view.h"

namespace tranche::sim {

class ClaimPlugin {
 public:
  // `changed`: something came, went or became free, which may help pods that wait.
  ClaimPlugin(Loop& loop, ApiServer& api, SimTime most_lag, uint64_t seed,
              std::function<void()> changed);

  void Start(Actor actor);
  void Stop();

  // Why no attempt is made yet; empty: it may be.
  std::string NotReady(const PodView& pod) const;
  // Why the pod's claims cannot be met on the node; empty: they can.
  std::string WhyNot(const PodView& pod, const std::string& node) const;
  // Requires: WhyNot said nothing in this step. False: it would now.
  bool Reserve(const PodView& pod, const std::string& node);
  // Writes what Reserve kept; `done` hears whether all of it was stored.
  void PreBind(const PodView& pod, const std::function<void(bool)>& done);
  void Unreserve(const PodView& pod);
  void PostFilter(const PodView& pod);

 private:
  struct Reservation {
    std::vector<std::string> claims;          // keys, all of the pod
    std::map<std::string, Json> allocations;  // of those that had none
  };
  using Done = std::function<void(bool)>;

  void Hear(const Change& change);
  StoredPtr Known(const std::string& key) const;
  std::set<std::string> Taken() const;
  // Allocations on the node for the pod's claims that have none, by key.
  std::optional<std::map<std::string, Json>> Try(const PodView& pod, const std::string& node) const;
  void WriteNext(const std::string& uid, const std::string& pod_name, std::size_t at, int tries,
                 const Done& done);
  // Replaces the claim's status by what `change` makes of the object as it is stored then; false
  // of `change`: nothing is written.
  void EditStatus(const std::string& key, const std::function<bool(Json&)>& change, int tries,
                  const Done& done);

  Loop& loop_;
  ApiServer& api_;
  const std::function<void()> changed_;
  Actor actor_ = 0;
  std::map<std::string, StoredPtr> claims_;      // as its informer or its own writes showed them
  std::map<std::string, Reservation> reserved_;  // by the pod's uid, until its end is seen
  std::map<std::string, Json> in_flight_;        // key -> allocation that is not written yet
  Informer claim_informer_;
  Informer slice_informer_;
  Informer class_informer_;
  std::map<std::string, StoredPtr> slices_, classes_;
};

}  // namespace tranche::sim
