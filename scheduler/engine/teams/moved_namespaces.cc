#include "scheduler/engine/teams/moved_namespaces.h"

#include <algorithm>

namespace tranche {
namespace {

// The quotas, policies and all else being equal, equal names are equal objects.
bool IsRouted(const std::string& ns, const PolicySet& before, const PolicySet& after) {
  if (!std::ranges::equal(before.LeavesOf(ns), after.LeavesOf(ns), {}, &GpuQuota::name,
                          &GpuQuota::name)) {
    return false;
  }
  const GpuPolicy* former = before.PolicyFor(ns);
  const GpuPolicy* present = after.PolicyFor(ns);
  return former == nullptr || present == nullptr ? former == present
                                                 : former->name == present->name;
}

}  // namespace

std::optional<std::vector<std::string>> MovedNamespaces(const PolicySet& before,
                                                        const PolicySet& after) {
  if (before.policies != after.policies || before.node_policies != after.node_policies ||
      before.quotas != after.quotas || before.budgets != after.budgets ||
      before.classes != after.classes || before.pools != after.pools ||
      before.prices != after.prices) {
    return std::nullopt;
  }
  std::vector<std::string> moved;
  const auto look = [&](const std::string& ns) {
    if (!IsRouted(ns, before, after)) moved.push_back(ns);
  };
  auto former = before.namespaces.begin();
  auto present = after.namespaces.begin();
  while (former != before.namespaces.end() || present != after.namespaces.end()) {
    const bool gone = present == after.namespaces.end() ||
                      (former != before.namespaces.end() && former->first < present->first);
    const bool fresh =
        !gone && (former == before.namespaces.end() || present->first < former->first);
    if (gone) {
      look((former++)->first);
    } else if (fresh) {
      look((present++)->first);
    } else {
      if (former->second != present->second) look(present->first);
      ++former;
      ++present;
    }
  }
  return moved;
}

}  // namespace tranche
