// Every series Tranche exports: its name and its help text, which names the unit.
//
// Names start with tranche_ (process_ for what the operating system tells about the process),
// counters end in _total, durations are in seconds and memory in bytes. Labels come from closed
// sets (verb, result, reason, rule, resource, state, caller) or are names of quotas, the namespaces
// they own, budgets, classes or GPU models. No label is named namespace, container, service or
// node: a Prometheus in a cluster writes those of the scraped process over ours
// (tranche_gpu_share_info has a label pod: there ours is exported_pod unless honor_labels is set).
#pragma once

namespace tranche::metrics {

struct Series {
  const char* name;
  const char* help;
};

// ---- verbs ------------------------------------------------------------------------------------
inline constexpr Series kRequests = {
    "tranche_requests_total", "Calls of kube-scheduler answered, by verb and result (calls)"};
inline constexpr Series kRequestDuration = {
    "tranche_request_duration_seconds",
    "Time from a whole request to its answer, by verb (seconds)"};
inline constexpr Series kDecisions = {
    "tranche_decisions_total",
    "Decisions about pods by verb and reason; reason None is a yes (decisions)"};
inline constexpr Series kRefusedNodes = {"tranche_filter_refused_nodes_total",
                                         "Candidate nodes refused by filter, by reason (nodes)"};
inline constexpr Series kObserved = {
    "tranche_observed_refusals_total",
    "Times a quota in mode Observe would have refused a pod, by reason (times)"};

// ---- admission webhooks ------------------------------------------------------------------------
inline constexpr Series kReviews = {
    "tranche_admission_reviews_total",
    "Reviews of API servers answered, by webhook, outcome and reason; reason None where there is "
    "none (reviews)"};
inline constexpr Series kReviewDuration = {
    "tranche_admission_duration_seconds",
    "Time from a whole review to its answer, by webhook (seconds)"};

// ---- binds whose answer was lost --------------------------------------------------------------
inline constexpr Series kBindsPursued = {
    "tranche_binds_in_progress",
    "Binds not yet settled, those whose answer was lost included (binds)"};
inline constexpr Series kBindAlarms = {"tranche_bind_alarms_total",
                                       "Attempts on binds unsettled for over 60 s (attempts)"};
inline constexpr Series kBookFaults = {
    "tranche_book_faults_total",
    "States of pods, records and the ledger that do not go together, repaired or set aside, by "
    "kind (faults)"};
inline constexpr Series kPokes = {
    "tranche_pokes_total",
    "Waiting pods brought back to the scheduler's queue when room appeared (pods)"};

// ---- the engine's lock ------------------------------------------------------------------------
inline constexpr Series kLockHold = {
    "tranche_lock_hold_seconds",
    "How long the engine was held, all others waiting, by caller (seconds)"};
inline constexpr Series kLongestLockHold = {
    "tranche_lock_longest_hold_seconds",
    "The longest it was held since the start of the process, by caller (seconds)"};

// ---- state ------------------------------------------------------------------------------------
inline constexpr Series kReady = {"tranche_ready",
                                  "1 while this process may decide, else 0 (bool)"};
inline constexpr Series kLeader = {
    "tranche_leader", "1 while this process leads, always without an election, else 0 (bool)"};
inline constexpr Series kLeaderTransitions = {
    "tranche_leader_transitions_total",
    "How often the lease of the election has changed hands, as the lease says (times)"};
inline constexpr Series kNodes = {"tranche_nodes", "Nodes known (nodes)"};
inline constexpr Series kNodesClosed = {"tranche_nodes_closed",
                                        "Nodes kept from new GPU pods (nodes)"};
inline constexpr Series kPods = {"tranche_pods", "GPU pods by state (pods)"};
inline constexpr Series kDevicesUnknown = {"tranche_pods_devices_unknown",
                                           "Bound pods whose GPUs nobody can name (pods)"};
inline constexpr Series kClaims = {"tranche_claims", "Soft claims made by filter (claims)"};
inline constexpr Series kReservations = {"tranche_reservations",
                                         "Reservations of binds without proof yet (reservations)"};
inline constexpr Series kAgentWaiting = {
    "tranche_agent_binds_waiting",
    "Binds that wait until a node's agent has served another pod (binds)"};
inline constexpr Series kAgentServing = {
    "tranche_agent_pods_unserved",
    "Pods written for a node's agent, one at a time, that it has not served yet (pods)"};
inline constexpr Series kEarlyNominations = {
    "tranche_early_nominations_total",
    "Nodes told to kube-scheduler before it asked: told, and what became of them (nominations)"};
inline constexpr Series kEarlyOutstanding = {
    "tranche_early_nominations_outstanding",
    "Waiting pods whose node kube-scheduler was told before it asked (pods)"};
inline constexpr Series kAgentPassedOver = {
    "tranche_agent_pods_passed_over_total",
    "Pods a node's agent did not serve in time, after whom the next was bound (pods)"};
inline constexpr Series kOldestReservation = {"tranche_oldest_reservation_age_seconds",
                                              "Age of the oldest reservation (seconds)"};
inline constexpr Series kInvalidObjects = {
    "tranche_invalid_objects",
    "Custom resources of tranche.dev that are not in force as written (objects)"};
inline constexpr Series kStatusFailures = {
    "tranche_status_write_failures_total",
    "Status and view writes the API server did not take (writes)"};
inline constexpr Series kSelfChecks = {
    "tranche_self_checks_total",
    "Times all of the books were compared with themselves, every five minutes (checks)"};
inline constexpr Series kSelfCheckFaults = {
    "tranche_self_check_faults",
    "Places where the books did not agree with themselves at the last check, and pods it forgot "
    "because the API server has none (faults)"};
inline constexpr Series kSelfCheckMended = {
    "tranche_self_check_mended_total",
    "Sums of the books that were wrong and were summed again (sums)"};
inline constexpr Series kStuckReservations = {
    "tranche_stuck_reservations",
    "Reservations for which no bind can be under way any more, at the last check (reservations)"};
inline constexpr Series kClockAhead = {
    "tranche_clock_ahead_seconds",
    "How far our time runs ahead of the machine's clock, which was set back (seconds)"};
inline constexpr Series kServerClock = {
    "tranche_api_server_clock_skew_seconds",
    "How far the machine's clock is ahead of the API server's, at least, by the Date of its last "
    "answers; negative: behind (seconds)"};

// ---- teams ------------------------------------------------------------------------------------
inline constexpr Series kNamespaceInfo = {
    "tranche_namespace_info",
    "Always 1; which quota a namespace counts for, to join what others measure by namespace "
    "(constant)"};
inline constexpr Series kBudgetInfo = {
    "tranche_budget_info",
    "Always 1; which quota a budget limits, or in which quota the one namespace it limits is "
    "(constant)"};
inline constexpr Series kQuotaNominal = {
    "tranche_quota_nominal_gpus",
    "Nominal quota by quota, model and dimension, and by pool where a "
    "line is of one (GPUs)"};
inline constexpr Series kQuotaUsed = {"tranche_quota_used_gpus",
                                      "Held now by quota, model, pool and dimension (GPUs)"};
inline constexpr Series kQuotaBorrowed = {"tranche_quota_borrowed_gpus",
                                          "Of what is held, beyond nominal (GPUs)"};
inline constexpr Series kQuotaLent = {"tranche_quota_lent_gpus",
                                      "Of idle nominal, what others use now (GPUs)"};
inline constexpr Series kQuotaAvailable = {
    "tranche_quota_available_gpus",
    "What the quota could take in addition; negative when over its limit (GPUs)"};
inline constexpr Series kBudgetUsed = {"tranche_budget_used_gpu_seconds",
                                       "Used in the current window, by budget (GPU-seconds)"};
inline constexpr Series kBudgetCommitted = {"tranche_budget_committed_gpu_seconds",
                                            "Promised to running work, by budget (GPU-seconds)"};
inline constexpr Series kBudgetLimit = {
    "tranche_budget_limit_gpu_seconds",
    "Of the current window, with what was carried in, by budget (GPU-seconds)"};
inline constexpr Series kBudgetExhausted = {"tranche_budget_exhausted",
                                            "1 while the budget is used up, else 0 (bool)"};
inline constexpr Series kBudgetExhaustsAt = {
    "tranche_budget_exhausts_at_seconds",
    "When running work will have used the budget up, since the Unix epoch (seconds)"};
inline constexpr Series kBudgetWindowEnd = {
    "tranche_budget_window_end_seconds",
    "End of the current window of a calendar budget, since the Unix epoch (seconds)"};
inline constexpr Series kPendingWorkloads = {"tranche_pending_workloads",
                                             "Waiting pods by leaf, class and reason (pods)"};
inline constexpr Series kPendingGpus = {"tranche_pending_gpus",
                                        "GPUs that waiting pods ask for (GPUs)"};

inline constexpr Series kGpuSeconds = {
    "tranche_gpu_seconds_total",
    "GPU time held since the start of this process, refunds not taken off, by quota, model, "
    "pool where quotas tell it apart, and class; of no quota where leaf is empty (GPU-seconds)"};
inline constexpr Series kNamespaceUsed = {
    "tranche_namespace_used_gpus",
    "Held now by namespace and model, and pool where quotas tell it apart "
    "(GPUs)"};
inline constexpr Series kCost = {
    "tranche_cost_per_hour",
    "What GPUs held now cost by GPUPrices, by quota, model, the nodes' pool and currency; what has "
    "no price is tranche_held_unpriced_gpus (currency an hour)"};
inline constexpr Series kFleetCost = {
    "tranche_fleet_cost_per_hour",
    "What all GPUs cost now by GPUPrices, held or free, by model, the nodes' pool and currency "
    "(currency an hour)"};
inline constexpr Series kHeldUnpriced = {
    "tranche_held_unpriced_gpus",
    "Of GPUs held now, those that no GPUPrice suits, in no cost; by quota, model and pool (GPUs)"};
inline constexpr Series kUnpriced = {
    "tranche_unpriced_gpus",
    "Of all GPUs, those that no GPUPrice suits, in no cost; by model and pool (GPUs)"};
inline constexpr Series kShareInfo = {
    "tranche_gpu_share_info",
    "Thousandths of the GPU that the pod holds, to join what exporters measure by UUID; pods whose "
    "GPUs are known (milli)"};

// ---- reclaims ---------------------------------------------------------------------------------
inline constexpr Series kReclaims = {
    "tranche_reclaim_total",
    "Reclaims by rule, whom they took from and whom for, counted when the first pod of a quota is "
    "evicted (reclaims)"};
inline constexpr Series kReclaimsRunning = {"tranche_reclaims_running",
                                            "Reclaims planned and not ended (reclaims)"};
inline constexpr Series kEvictedPods = {"tranche_evicted_pods_total",
                                        "Pods evicted, by rule and their quota (pods)"};
inline constexpr Series kLostWork = {
    "tranche_lost_work_gpu_seconds_total",
    "Work expected to be lost by evictions, by quota of the evicted (GPU-seconds)"};
inline constexpr Series kReevictions = {
    "tranche_reevictions_total",
    "Pods evicted whose owner was evicted within a day before, by quota (pods)"};
inline constexpr Series kEvictionFailures = {
    "tranche_eviction_failures_total", "Evictions the API server did not take, by reason (calls)"};
inline constexpr Series kTimeToNominal = {
    "tranche_time_to_nominal_seconds",
    "How long work that was bound in quota had waited (seconds)"};
inline constexpr Series kWait = {
    "tranche_wait_seconds",
    "How long work that was bound had waited since it was created, by quota and class (seconds)"};
inline constexpr Series kExpectedStart = {
    "tranche_expected_start_seconds",
    "How long half of the pods that wait and have a forecast are expected to wait on at most, by "
    "quota and class (seconds)"};
inline constexpr Series kForecastSpans = {
    "tranche_forecast_spans_total",
    "Spans of 80 % shown for pods that then started, by where the start was (spans)"};
inline constexpr Series kIdleDevices = {"tranche_idle_devices",
                                        "GPUs and parts of GPUs of pods that did nothing when that "
                                        "was measured last, by quota and class "
                                        "(devices)"};
inline constexpr Series kUseAge = {
    "tranche_gpu_use_age_seconds",
    "Time since somebody told how much GPUs are used, else since that is awaited (seconds)"};
inline constexpr Series kUseFailures = {
    "tranche_gpu_use_failures_total",
    "Questions how much GPUs are used that had no answer that could be read (calls)"};
inline constexpr Series kUsePods = {
    "tranche_gpu_use_pods",
    "Pods that hold devices, by whether the use of all of them was measured last (pods)"};
inline constexpr Series kPlanDuration = {"tranche_plan_duration_seconds",
                                         "Time of one round of planning, by result (seconds)"};
inline constexpr Series kPlanSearches = {
    "tranche_plan_search_total",
    "Plans by quality: proven the cheapest, or not; unresolved: given up (plans)"};

// ---- advice -----------------------------------------------------------------------------------
inline constexpr Series kDefragmentable = {
    "tranche_defragmentable_gpus",
    "Whole GPUs that restarting pods would free, some minutes old (GPUs)"};
inline constexpr Series kMigChanges = {
    "tranche_mig_changes_total", "Changes of a node's MIG layout that ended, by outcome (changes)"};
inline constexpr Series kMigChangesPending = {
    "tranche_mig_changes_pending",
    "Nodes kept from new pods while their MIG layout is changed (nodes)"};
inline constexpr Series kEmptyings = {
    "tranche_node_emptyings_total",
    "Nodes that are no longer emptied to consolidate: gone, kept (empty for a while and still "
    "there), needed by somebody, given up (nodes)"};
inline constexpr Series kEmptyingsPending = {
    "tranche_node_emptyings_pending",
    "Nodes kept from new pods while they are emptied, or kept empty (nodes)"};
inline constexpr Series kDeletionCosts = {
    "tranche_deletion_cost_writes_total",
    "Deletion costs of pods that were written or taken back: done, failed (writes)"};
inline constexpr Series kProvisioningRequests = {
    "tranche_provisioning_requests",
    "ProvisioningRequests for gangs that wait for room, by what an autoscaler says of them: asked, "
    "accepted, not_yet, provisioned, expired, revoked, failed (requests)"};

// ---- ledger -----------------------------------------------------------------------------------
inline constexpr Series kLedgerWritable = {"tranche_ledger_writable",
                                           "1 while commits to the ledger succeed, else 0 (bool)"};
inline constexpr Series kLedgerEntries = {"tranche_ledger_entries_total",
                                          "Entries committed by this process (entries)"};
inline constexpr Series kLedgerQueued = {"tranche_ledger_queued",
                                         "Events waiting for a commit (events)"};
inline constexpr Series kLedgerDropped = {
    "tranche_ledger_dropped_total", "Events lost because the queue was full; must be 0 (events)"};
inline constexpr Series kLedgerFailures = {"tranche_ledger_commit_failures_total",
                                           "Commits that failed (commits)"};
inline constexpr Series kLedgerLate = {
    "tranche_ledger_late_total", "Entries written over a minute after they happened (entries)"};
inline constexpr Series kLedgerWal = {"tranche_ledger_wal_bytes",
                                      "Size of the ledger's write-ahead log (bytes)"};
inline constexpr Series kLedgerDrift = {
    "tranche_ledger_drift_quanta",
    "Held by pods but not open in the ledger, or the reverse; must be 0 (quanta)"};
inline constexpr Series kLedgerRestored = {
    "tranche_ledger_restored_entries",
    "Entries of the ledger that were taken over from checkpoints in statuses (entries)"};
inline constexpr Series kLedgerCheckpointAge = {
    "tranche_ledger_checkpoint_age_seconds",
    "Age of the newest checkpoint of the ledger taken for statuses (seconds)"};
inline constexpr Series kLedgerFaults = {
    "tranche_ledger_faults",
    "1 while that is wrong with the ledger, by kind; must be 0, the log says more (bool)"};
inline constexpr Series kLedgerBackupAge = {"tranche_backup_age_seconds",
                                            "Age of the newest copy of the ledger (seconds)"};
inline constexpr Series kLedgerHead = {
    "tranche_ledger_last_entry",
    "Number of the newest entry; falls when an old file was restored (entry)"};

// ---- capacity, by GPU model -------------------------------------------------------------------
inline constexpr Series kGpus = {"tranche_gpus", "GPUs by model (GPUs)"};
inline constexpr Series kPoolGpus = {"tranche_pool_gpus",
                                     "GPUs of nodes in a GPUPool, by pool and model (GPUs)"};
inline constexpr Series kPoolGpuAllocated = {
    "tranche_pool_gpu_allocated", "Taken of them, of compute or memory whichever is larger (GPUs)"};
inline constexpr Series kGpuCapacity = {"tranche_gpu_capacity",
                                        "Compute of all GPUs by model, 1 is a whole GPU (GPUs)"};
inline constexpr Series kGpuAllocated = {
    "tranche_gpu_allocated",
    "Taken of all GPUs by model, of compute or memory whichever is larger (GPUs)"};
inline constexpr Series kGpuStranded = {"tranche_gpu_stranded",
                                        "Free on GPUs no common request can use, by model (GPUs)"};
inline constexpr Series kGpuMemoryCapacity = {"tranche_gpu_memory_capacity_bytes",
                                              "Device memory by model (bytes)"};
inline constexpr Series kGpuMemoryAllocated = {"tranche_gpu_memory_allocated_bytes",
                                               "Device memory taken by model (bytes)"};

// ---- the watch --------------------------------------------------------------------------------
inline constexpr Series kWatchAge = {
    "tranche_watch_age_seconds", "Time since the API server was last heard, by resource (seconds)"};
inline constexpr Series kWatchRelists = {"tranche_watch_relists_total",
                                         "Complete lists read, by resource (lists)"};
inline constexpr Series kWatchReconnects = {"tranche_watch_reconnects_total",
                                            "Watches reopened, by resource (watches)"};
inline constexpr Series kWatchFailures = {"tranche_watch_failures_total",
                                          "Lists and watches that failed, by resource (failures)"};
inline constexpr Series kUnreadableObjects = {
    "tranche_unreadable_objects",
    "Objects whose newest version could not be read, by resource; must be 0 (objects)"};

// ---- HTTP and process -------------------------------------------------------------------------
inline constexpr Series kHttpOpen = {"tranche_http_connections", "Connections open (connections)"};
inline constexpr Series kHttpAccepted = {"tranche_http_connections_accepted_total",
                                         "Connections accepted (connections)"};
inline constexpr Series kCertificateExpires = {
    "tranche_certificate_expires_seconds",
    "Time until a certificate ends, that shown to callers (server) or to the API server (client); "
    "negative: it has (seconds)"};
inline constexpr Series kTlsFailures = {
    "tranche_tls_handshake_failures_total",
    "Connections whose TLS handshake failed or took too long (connections)"};
inline constexpr Series kHttpEvicted = {
    "tranche_http_connections_evicted_total",
    "Idle connections closed to make room at the cap (connections)"};
inline constexpr Series kHttpRefusals = {
    "tranche_http_refusals_total",
    "Requests the HTTP server refused before any handler, by status (requests)"};
inline constexpr Series kBuildInfo = {"tranche_build_info",
                                      "Always 1; the labels name the build (constant)"};
inline constexpr Series kProcessRss = {"process_resident_memory_bytes",
                                       "Resident memory of the process (bytes)"};
inline constexpr Series kProcessVirtual = {"process_virtual_memory_bytes",
                                           "Virtual memory of the process (bytes)"};
inline constexpr Series kProcessCpu = {"process_cpu_seconds_total",
                                       "User and system time of the process (seconds)"};
inline constexpr Series kProcessFds = {"process_open_fds", "Open file descriptors (descriptors)"};
inline constexpr Series kProcessMaxFds = {"process_max_fds",
                                          "Limit of open file descriptors (descriptors)"};
inline constexpr Series kProcessStart = {"process_start_time_seconds",
                                         "Start of the process since the Unix epoch (seconds)"};

}  // namespace tranche::metrics
