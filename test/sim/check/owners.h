// Which quota a bound pod counts against, as quotas and namespaces change while it runs.
//
// The rule. It counts against the leaf of its record, or, placed by another scheduler, of its
// namespace. Once that is not declared any more it comes under the one that owns its namespace
// then, for good: relabelling the namespace later moves it no more. A leader without its ledger,
// and the one after it, know no earlier leaf, and take the owner they find. Whoever leads hears of
// edits up to `lag` late and in any order, and of those while nobody led only what came of them:
// where that leaves a choice, a pod may count against any of several.
//
// One thread. Cost: an edit reads all quotas; a question the changes since the pod was bound.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/sim/check/terms.h"
#include "test/sim/check/truth.h"

namespace tranche::sim::check {

class Owners {
 public:
  Owners(const Truth& truth, SimTime lag) : truth_(truth), lag_(lag) {}
  // After the truth has heard it.
  void Hear(const Happening& happening);
  // The quotas that the pod may count against at `now`, in which "" is none. One: it is certain.
  std::set<std::string> Of(const PodLife& pod, SimTime now) const;

 private:
  // What is declared from a moment on.
  struct View {
    SimTime from{0};
    bool known = true;  // the model understands it
    bool anew = false;  // leaves are taken from namespaces again
    Objects quotas;
    Objects namespaces;
    std::map<std::string, std::string> owners;  // by namespace; without those that nobody owns
    bool declares(const std::string& leaf) const { return quotas.contains(leaf); }
  };
  void Look(SimTime at, bool anew);
  // What may own a pod's namespace, besides its leaves, for who hears of a view.
  struct Around {
    std::set<std::string> owners;
    SimTime until{0};
    bool certain = false;  // it was acted on by now, with no leaf back
  };
  Around LookAround(std::size_t view, const PodLife& pod, const std::set<std::string>& leaves,
                    SimTime now) const;

  const Truth& truth_;
  const SimTime lag_;
  Terms terms_;
  bool unmetered_ = false;  // who led last had no ledger
  std::vector<View> views_;
};

}  // namespace tranche::sim::check
