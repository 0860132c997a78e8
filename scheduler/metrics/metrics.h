// Counters of what Tranche did, and the Prometheus text of everything it exports.
//
// What happens often is counted as it happens (one atomic addition, or one short lock for a
// histogram); what is state is handed over at the scrape as plain values, so that no series can
// go stale. Thread rule: any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "scheduler/metrics/hami_aliases.h"
#include "topology/base/units.h"

namespace tranche::metrics {

enum class Verb : uint8_t { kFilter, kPrioritize, kPreempt, kBind, kCount };
enum class Result : uint8_t {
  kYes,        // a node was found, the pod was bound
  kNo,         // a domain refusal
  kNotReady,   // refused because caches are not synced or too old, or on the way out
  kMalformed,  // answered 400
  kFailed,     // the cluster did not do, or not answer, what was asked
  kCount
};

// What API servers ask before they create or change a pod, or an object of ours (kEdits).
enum class Webhook : uint8_t { kMutate, kValidate, kEdits, kCount };
enum class ReviewOutcome : uint8_t {
  kAllowed,  // as it is
  kChanged,  // allowed with a patch
  kRefused,
  kError,  // answered 400: no review, or no pod as API servers write them
  kCount
};
// Reasons of refusals and errors that are none of a Reason.
inline constexpr std::string_view kForgedResult = "ForgedResult";
inline constexpr std::string_view kEvicts = "Evicts";
inline constexpr std::string_view kMalformedReview = "MalformedReview";

// How a change of a node's MIG layout ended.
enum class MigOutcome : uint8_t {
  kDone,
  kFailed,      // mig-manager said so
  kRefused,     // the API server did not take the label
  kOverridden,  // somebody else set the label
  kGone,        // the node is gone, or has no GPUs any more
  kDiffers,     // the node advertises another layout than was planned
  kCount
};

// How it ended that a node was emptied to consolidate.
enum class EmptyingOutcome : uint8_t {
  kGone,     // the node was taken away
  kKept,     // it was empty for a while, and is there
  kNeeded,   // somebody came who could use it
  kGivenUp,  // its work could not be moved
  kCount
};

// One watched resource at the moment of a scrape.
struct WatchRow {
  std::string resource;
  std::optional<double> age_seconds;  // nullopt: nothing was heard yet
  int64_t relists = 0;
  int64_t reconnects = 0;
  int64_t failures = 0;
  int64_t unreadable = 0;  // objects
};

// The ledger at the moment of a scrape.
struct LedgerRow {
  bool writable = true;
  int64_t entries = 0;
  int64_t queued = 0;
  int64_t dropped = 0;
  int64_t failures = 0;
  int64_t late = 0;
  int64_t wal_bytes = 0;
  int64_t last_entry = 0;
  int64_t restored = 0;
  std::map<std::string, bool> faults;             // by kind, true: that is wrong now
  std::optional<int64_t> backup_age_seconds;      // nullopt: there is no copy
  std::optional<int64_t> checkpoint_age_seconds;  // nullopt: none was taken yet
  std::optional<int64_t> drift_quanta;            // nullopt: events are on their way
};

// How long one kind of caller held the engine, since the start.
struct HoldRow {
  std::string caller;  // of a closed set
  int64_t holds = 0;
  int64_t felt_holds = 0;  // over 0.3 ms: who waits for one takes several times as long
  int64_t long_holds = 0;  // over 20 ms
  double total_seconds = 0;
  double longest_seconds = 0;
};

// When pods that wait are expected to start, of one quota and class.
struct ExpectedStartRow {
  std::string leaf;            // empty: none
  std::string workload_class;  // empty: none
  double seconds = 0;          // from the scrape on; of the median pod
};

// Spans that were shown for pods that then started, by where in them that was.
struct ForecastSpansRow {
  int64_t before = 0;
  int64_t within = 0;
  int64_t after = 0;
};

// GPUs, and parts of them, of pods that did nothing when that was measured last.
struct IdleRow {
  std::string leaf;            // empty: none
  std::string workload_class;  // empty: none
  int64_t devices = 0;
};

// What is known of how much GPUs are used.
struct UseRow {
  double age_seconds = 0;  // of the last answer, else since it is awaited
  int64_t failures = 0;    // questions without one
  int64_t measured = 0;    // pods whose devices were all measured
  int64_t unmeasured = 0;  // the others
  std::vector<IdleRow> idle;
};

// The election by a Lease.
struct ElectionRow {
  bool leading = false;
  int64_t transitions = 0;  // as the lease says
};

// The state a scrape shows beside the counters.
struct Scrape {
  Instant now;
  std::string version;
  bool ready = false;
  std::optional<ElectionRow> election;  // nullopt: none, this process leads
  EngineTotals totals;
  int64_t binds_in_progress = 0;
  int64_t invalid_objects = 0;
  int64_t status_failures = 0;
  // The last whole comparison of the books with themselves.
  int64_t self_checks = 0;
  int64_t self_check_faults = 0;
  int64_t stuck_reservations = 0;
  int64_t self_check_mended = 0;
  int64_t reclaims_running = 0;
  int64_t mig_changes_pending = 0;
  int64_t emptyings_pending = 0;
  // ProvisioningRequests of ours by what their conditions say; empty: nobody looks.
  std::map<std::string, int64_t> provisioning_requests = {};
  std::optional<int64_t> defragmentable_gpus;  // nullopt: not looked for yet
  std::chrono::milliseconds clock_ahead{0};
  // The machine's clock of the API server's; nullopt: it is not known.
  std::optional<std::chrono::milliseconds> ahead_of_server = std::nullopt;
  std::vector<QuotaView> quotas;
  std::vector<BudgetReport> budgets;
  std::vector<PendingRow> pending;
  std::vector<HeldTimeRow> held_time;
  CostSums costs;
  std::vector<ExpectedStartRow> expected_starts;
  ForecastSpansRow forecast_spans;
  std::optional<UseRow> use = std::nullopt;  // nullopt: nobody is asked
  std::vector<NamespaceHeldRow> namespaces;
  std::vector<PodView> shares;  // of which the parts of GPUs are shown
  std::optional<LedgerRow> ledger;
  std::vector<WatchRow> watches;
  std::vector<HoldRow> holds;
  int64_t http_open = 0;
  int64_t http_accepted = 0;
  int64_t http_evicted = 0;
  int64_t tls_failures = 0;
  std::map<std::string, double> certificate_seconds;  // until it ends, by certificate
  std::map<int, int64_t> http_refusals;               // status -> requests
  std::optional<HamiRows> hami;                       // nullopt: no aliases
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void CountRequest(Verb verb, Result result, std::chrono::nanoseconds took);
  // Why a pod got no node, or Reason::kNone when it got one.
  void CountDecision(Verb verb, Reason reason);
  // nodes[i]: candidates refused for the reason of value i.
  using NodesByReason = std::array<int64_t, static_cast<std::size_t>(Reason::kCount)>;
  void CountRefusedNodes(const NodesByReason& nodes);
  // `reason`: the code of a Reason or one of the words above; "None" where there is none.
  void CountReview(Webhook webhook, ReviewOutcome outcome, std::string_view reason,
                   std::chrono::nanoseconds took);
  // A quota in mode Observe let a pod through that it would have refused.
  void CountObserved(Reason reason);
  void CountBindAlarm();
  void CountPoke();
  void CountPlan(const PlanOutcome& outcome, std::chrono::nanoseconds took);
  // The first pod of the leaf was evicted for the reclaim.
  void CountReclaimedFrom(const Reclaim& reclaim, const std::string& leaf);
  void CountEvicted(const Reclaim& reclaim, const ReclaimVictim& victim);
  // Outcomes that are no failure count nothing.
  void CountEvictionFailure(EvictionOutcome outcome);
  void CountMigChange(MigOutcome outcome);
  void CountEmptying(EmptyingOutcome outcome);
  // A deletion cost of a pod was written or taken back, or was to be.
  void CountDeletionCost(bool done);
  void CountStart(const StartedWork& start);

  // The whole exposition, text format 0.0.4. Cost: O(series).
  std::string Render(const Scrape& scrape) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::metrics
