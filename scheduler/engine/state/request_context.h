// What the rules of policy, team and namespace make of one request, for the length of one call.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policy/spec.h"
#include "quota/quota_book.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/node_names.h"
#include "topology/base/units.h"

namespace tranche {

// Where the members of a gang are: its domains by level.
struct Neighbours {
  const DomainLabels* labels = nullptr;
  std::array<std::string, kGangLevels> domain;  // empty: none is known
  // A member may be nowhere else than in that domain; kGangLevels: anywhere.
  int within = kGangLevels;
};

// What a team's rules make of one request, for one call.
struct RequestContext {
  const PodRequest* request = nullptr;
  const GpuPolicy* policy = nullptr;
  std::size_t policy_index = 0;
  QuotaMembership membership;
  const std::vector<SharingMode>* sharing = nullptr;  // nullptr: any
  Reason whole = Reason::kNone;                       // refuses every node
  NodeId only = kNoNode;                              // its place is there; kNoNode: anywhere
  bool kept = false;                                  // devices are kept for it
  const Neighbours* near = nullptr;                   // whom it belongs to; null: nobody
  bool metered = false;                               // quota or budgets have a say
  bool capped = false;                                // ResourceQuotas of the namespace have one
};

// What quota says to the request on nodes of one kind; made when the first such node is met.
struct KindAnswer {
  bool known = false;
  Reason reason = Reason::kNone;
  bool borrows = false;
  bool demoted = false;
  std::optional<Instant> eligible_at;
  std::vector<ModelCharge> parts;
};

}  // namespace tranche
