// Every series Tranche exports: its name and its help text, which names the unit.
//
// Names start with tranche_ (process_ for what the operating system tells about the process),
// counters end in _total, durations are in seconds and memory in bytes. Labels come from closed
// sets (verb, result, reason, resource, state) or are GPU model names.
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

// ---- binds whose answer was lost --------------------------------------------------------------
inline constexpr Series kBindsPursued = {
    "tranche_binds_in_progress",
    "Binds not yet settled, those whose answer was lost included (binds)"};
inline constexpr Series kBindAlarms = {"tranche_bind_alarms_total",
                                       "Attempts on binds unsettled for over 60 s (attempts)"};
inline constexpr Series kPokes = {
    "tranche_pokes_total",
    "Waiting pods brought back to the scheduler's queue when room appeared (pods)"};

// ---- state ------------------------------------------------------------------------------------
inline constexpr Series kReady = {"tranche_ready",
                                  "1 while this process may decide, else 0 (bool)"};
inline constexpr Series kNodes = {"tranche_nodes", "Nodes known (nodes)"};
inline constexpr Series kNodesClosed = {"tranche_nodes_closed",
                                        "Nodes kept from new GPU pods (nodes)"};
inline constexpr Series kPods = {"tranche_pods", "GPU pods by state (pods)"};
inline constexpr Series kDevicesUnknown = {"tranche_pods_devices_unknown",
                                           "Bound pods whose GPUs nobody can name (pods)"};
inline constexpr Series kClaims = {"tranche_claims", "Soft claims made by filter (claims)"};
inline constexpr Series kReservations = {"tranche_reservations",
                                         "Reservations of binds without proof yet (reservations)"};
inline constexpr Series kOldestReservation = {"tranche_oldest_reservation_age_seconds",
                                              "Age of the oldest reservation (seconds)"};
inline constexpr Series kPolicyProblems = {
    "tranche_policy_surplus", "GPUPolicy objects not in force because another one is (objects)"};

// ---- capacity, by GPU model -------------------------------------------------------------------
inline constexpr Series kGpus = {"tranche_gpus", "GPU cards by model (cards)"};
inline constexpr Series kGpuCapacity = {"tranche_gpu_capacity",
                                        "Compute of all cards by model, 1 is a whole GPU (GPUs)"};
inline constexpr Series kGpuAllocated = {
    "tranche_gpu_allocated",
    "Taken of all cards by model, of compute or memory whichever is larger (GPUs)"};
inline constexpr Series kGpuStranded = {"tranche_gpu_stranded",
                                        "Free on cards no common request can use, by model (GPUs)"};
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

// ---- HTTP and process -------------------------------------------------------------------------
inline constexpr Series kHttpOpen = {"tranche_http_connections", "Connections open (connections)"};
inline constexpr Series kHttpAccepted = {"tranche_http_connections_accepted_total",
                                         "Connections accepted (connections)"};
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
