// Takes out of what the engine shows everything that is another team's, for one who may see some
// namespaces alone.
//
// Pods of other namespaces are left out, or are "a pod of another team" where something is said of
// them; so are names of other teams in texts. Nodes and what is free on them are nobody's secret.
// What is not surely harmless is left out. A value; one thread at a time. Cost: a pass over what is
// given.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/api/sight/sight.h"
#include "scheduler/engine/engine.h"
#include "scheduler/host/recent_events.h"

namespace tranche {

inline constexpr const char* kAnothersPod = "a pod of another team";
inline constexpr const char* kAnotherTeam = "another team";

class Veil {
 public:
  // `quotas`: all there are.
  Veil(Sight sight, std::span<const QuotaView> quotas);

  bool Sees(std::string_view ns) const { return sight_.Sees(ns); }
  // A quota that owns a namespace which is seen.
  bool SeesTeam(const std::string& name) const { return teams_.contains(name); }
  const std::set<std::string>& teams() const { return teams_; }
  bool SeesBudget(const BudgetReport& budget) const {
    return SeesTeam(budget.spec.quota_ref) || Sees(budget.spec.ns);
  }
  // One of its pods is seen.
  bool Concerns(const Reclaim& reclaim) const;

  // Names of the form namespace/name, and those of teams and their namespaces, that are not seen.
  std::string Text(std::string_view text) const;

  // For what is seen itself.
  void Draw(PodView& pod) const;
  void Draw(GangView& gang) const;
  void Draw(Explanation& explanation) const;
  void Draw(RankView& rank) const;
  void Draw(QuotaView& quota) const;
  void Draw(RecentEvent& event) const;
  // For what concerns others too.
  void Draw(NodeView& node) const;
  void Draw(Reclaim& reclaim) const;

 private:
  std::string Word(std::string_view word) const;

  const Sight sight_;
  std::set<std::string> teams_;
  // Teams and namespaces that are not seen and not above what is.
  std::set<std::string, std::less<>> hidden_;
};

}  // namespace tranche
