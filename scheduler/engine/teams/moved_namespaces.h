// What an edit of administrators changes, where it is of namespaces alone: most edits are, and many
// a cluster makes a namespace every second.
//
// A pure function. Cost: O(objects), and for each namespace that differs O(quotas + policies).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy_set.h"

namespace tranche {

// Namespaces whose quota or policy is another one after it; nullopt: more than namespaces differs.
std::optional<std::vector<std::string>> MovedNamespaces(const PolicySet& before,
                                                        const PolicySet& after);

// The same, worked out where nobody waits for it. It also keeps the set before alive, whose end
// takes its time.
struct NamespaceMoves {
  std::shared_ptr<const PolicySet> before;  // null: nothing is worked out
  std::optional<std::vector<std::string>> moved;
};

}  // namespace tranche
