// How much GPU memory and how many cores a namespace may hold by its ResourceQuotas, as HAMi counts
// them: summed over all cards of all containers, init containers too.
//
// Only clusters that come from HAMi have such quotas (compatibility: hami); GPUQuota is the tree of
// our own. Every ResourceQuota of a namespace holds by itself. A cap of zero lets nothing in that
// asks for any.
// A plain value; externally synchronised. Cost: O(log pods), O(quotas of the namespace).
// Source: request-dialects section 4.5.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/placement.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// What counts against a cap.
struct CapAmount {
  Mebibytes memory;
  int64_t cores = 0;  // percent of a card
  friend bool operator==(const CapAmount&, const CapAmount&) = default;
};

// One ResourceQuota, as far as it is about GPUs; nullopt: it does not limit that.
struct NamespaceCap {
  std::string ns;
  std::string name;
  std::optional<Mebibytes> memory;  // limits.nvidia.com/gpumem
  std::optional<int64_t> cores;     // limits.nvidia.com/gpucores
  friend bool operator==(const NamespaceCap&, const NamespaceCap&) = default;
};

// A cap and its use, for people.
struct CapRow {
  NamespaceCap cap;
  CapAmount used;
};

class NamespaceCaps {
 public:
  // False: it was just so before.
  bool Set(NamespaceCap cap);
  bool Remove(const NamespacedName& cap);
  bool Limits(const std::string& ns) const { return caps_.contains(ns); }

  // What the pod holds; replaces what was said of it before.
  void Use(const PodUid& uid, const std::string& ns, const CapAmount& amount);
  // The namespace the pod held something in; empty: it held nothing.
  std::string Release(const PodUid& uid);

  // Is there room for the pod, what it holds already left out?
  bool Allows(const PodUid& uid, const std::string& ns, const CapAmount& amount) const;
  // The first cap that has no room: expected, found. Empty: all have.
  std::string Describe(const PodUid& uid, const std::string& ns, const CapAmount& amount) const;
  // Ascending namespace, name.
  std::vector<CapRow> Rows() const;
  CapAmount UsedBy(const std::string& ns) const;

 private:
  struct Held {
    std::string ns;
    CapAmount amount;
  };
  CapAmount Others(const PodUid& uid, const std::string& ns) const;

  std::map<std::string, std::map<std::string, NamespaceCap>> caps_;  // by namespace, name
  std::map<PodUid, Held> held_;
  std::map<std::string, CapAmount> used_;  // by namespace
};

// What the request takes wherever it runs: amounts that depend on the card count as nothing.
CapAmount LeastOf(const PodRequest& request);
// No placement on this node takes more.
CapAmount MostOn(const Inventory& inventory, const PodRequest& request);
CapAmount AmountOf(const Picks& picks);

}  // namespace tranche
