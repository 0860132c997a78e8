// Only those are evicted that may be (R4), and by a plan that was written down.
//
// The rules. Each eviction that a replica asked for is named by a GPUReclaim, unless the replica
// ended within twelve seconds and writes fail: a failed write is tried again after ten, and one try
// is enough for the eviction (controllers/reclaimer.h). Its victim is of no
// class that is never preempted, and not of the preemptor's gang; it has run for its class's
// minRuntime, and was there for that of its team. A victim of another team (R1, R3, R5) was not in
// quota: work that is never preempted fills a team's nominal first, then higher ranks, then older
// work, gangs whole, line by line, and what no longer fits on one of its lines is borrowed; or (R1)
// the team has as much in quota without it. Marks are made of what anybody held, where the product
// had heard of ends up to some moment of the two seconds before the plan or since; where clocks are
// wrong nobody can tell who is older, and what does not fit together may be any of it, and where it
// cannot be told which team work counts for (owners.h) nothing is judged. Room that is kept for a
// pod (we have nominated it) counts for its team since then, and so do devices of its claims. What
// made room for a pod goes to nobody else of ours while the reclaim is Reserved.
//
// Not judged: reclaims without a preemptor (drains, shrinks), marks of quotas in slices or memory.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/check/checker.h"
#include "test/sim/check/owners.h"
#include "test/sim/check/quota_model.h"

namespace tranche::sim::check {

// Work of one gang, or one pod.
struct WorkUnit {
  bool never = false;
  int64_t rank = 2;
  SimTime start{0};
  std::string key;
  std::map<std::string, Charge> charges;  // by line
  bool victims = false;
};

class EvictionChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;
  void AtEnd(const Ending& ending) override;

 private:
  struct Plan {
    std::string name;
    std::string rule;
    std::string leaf;
    std::set<std::string> members;  // uids
    SimTime since{0};               // first told
  };
  struct Eviction {
    std::string uid;
    SimTime at{0};
    std::optional<SimTime> ran_since;
    std::optional<int64_t> min_runtime;  // of its class then, seconds
    bool never = false;                  // by its class, at all times lately
    int64_t of_team = 0;                 // at all times lately, seconds
  };
  // Room that was made for one, and that another got.
  struct Given {
    std::string waiting;  // uid
    std::string key;      // of the other
    SimTime at{0};
    std::string text;
  };
  void Told(const Happening& happening);
  void Evicted(const PodLife& pod, SimTime now);
  void Bound(const PodLife& pod, SimTime now);
  void Judge(const Eviction& eviction, const Plan& plan);
  void JudgeQuota(const Eviction& eviction, const Plan& plan, const std::set<std::string>& teams);
  bool MayLackARecord(const Eviction& eviction) const;
  bool WasNoticed(const PodLife& victim, SimTime now) const;
  // R1 may choose which of a team's work is borrowed: what it can spare.
  enum class Chosen : uint8_t { kNever, kMayBe };
  bool MayBeBorrowed(const PodLife& victim, const std::string& leaf, Chosen chosen, SimTime since,
                     SimTime at) const;
  struct Moment {
    SimTime heard{0};             // ends were heard of up to then
    SimTime at{0};                // of the eviction
    bool counts_kept = false;     // room that is kept is work as well, and binds that take long
    bool counts_claims = false;   // claims were heard of
    bool counts_leaving = false;  // what was asked to leave is not gone yet
    bool by_charge = false;       // work is as old as its charge in the ledger, else as its filter
    const Objects& nodes;
    const Objects& classes;
  };
  // Its place was in the ledger then, whatever came of its bind.
  bool WasPromised(const PodLife& pod, const Moment& moment) const {
    const auto intervals = intervals_.find(pod.uid);
    return intervals != intervals_.end() &&
           std::ranges::any_of(intervals->second, [&moment](const auto& interval) {
             return interval.first <= moment.at && interval.second >= moment.heard;
           });
  }
  static const PodLife::Kept* KeptAt(const PodLife& pod, const Moment& moment);
  // What claims of the team held, each a unit of the class of its first user; false: somebody's is
  // not known.
  bool AddClaims(const std::string& leaf, const QuotaModel& model, const Moment& moment,
                 std::map<std::string, WorkUnit>& units) const;
  // What the team of the victim held; nullopt: somebody's is not known.
  std::optional<std::vector<WorkUnit>> UnitsOf(const PodLife& victim, const std::string& leaf,
                                               const QuotaModel& model, const Moment& moment) const;

  Owners owners_{truth_, options_.lag};
  std::map<std::string, Plan> plans_;                      // by victim's uid, the newest
  std::map<std::string, std::set<std::string>> reserved_;  // reclaim -> preemptors, while Reserved
  std::map<std::string, SimTime> ends_;                    // of processes
  std::set<std::string> metered_;                          // uids with an open interval
  std::map<std::string, std::vector<std::pair<SimTime, SimTime>>> intervals_;  // by uid
  std::map<std::string, SimTime> charged_;  // when the last interval of a uid opened
  SimTime last_charge_{0};
  std::vector<Eviction> evictions_;
  std::vector<Given> given_;
};

}  // namespace tranche::sim::check
