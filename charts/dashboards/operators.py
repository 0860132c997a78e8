"""The dashboard of the operators: is it well, how full is the fleet, what was decided and why."""

import panels
from panels import (BYTES, CELSIUS, GPUS, HOURS, MONEY, NUMBER, PER_SECOND, PODS, RATIO, SECONDS,
                    WATT, graph, heatmap, stat, table, variable)

UID = "tranche-operators"
JOB = 'job=~"$job"'
MODEL = f'{JOB}, model=~"$model"'


def top(series, labels=""):
    """State, once however many processes tell it."""
    by = f" by ({labels})" if labels else ""
    return f"max{by} ({series}{{{JOB}}})"


def rate(series, labels="", more=""):
    by = f" by ({labels})" if labels else ""
    return f"sum{by} (rate({series}{{{JOB}{more}}}[$__rate_interval]))"


def grown(series, labels="", more=""):
    by = f" by ({labels})" if labels else ""
    return f"sum{by} (increase({series}{{{JOB}{more}}}[$__rate_interval]))"


def model(series):
    return f"max by (model) ({series}{{{MODEL}}})"


def pooled(series):
    return f"max by (pool, model) ({series}{{{MODEL}}})"


def quantile(share, series, labels=""):
    by = f"le, {labels}" if labels else "le"
    return (f"histogram_quantile({share}, sum by ({by}) "
            f"(rate({series}_bucket{{{JOB}}}[$__rate_interval])))")


FAILED = ', result=~"failed|not_ready|malformed"'


def well():
    firing = 'ALERTS{alertname=~"Tranche.+", alertstate="firing", severity!="info"}'
    return [
        stat("Alerts", "Alerts of Tranche that fire, those for teams left out. Needs the rules of "
             "alerts.yaml.", f"count({firing}) or vector(0)", NUMBER, ("green", (1, "red")), 3),
        stat("Processes that decide", "There must be one. With replicas the others stand by.",
             f"sum(tranche_ready{{{JOB}}})", limits=("red", (1, "green"), (2, "red")), width=3),
        stat("Calls that fail", "Share of kube-scheduler's calls answered with an error.",
             f"{rate('tranche_requests_total', more=FAILED)} / {rate('tranche_requests_total')}",
             RATIO, ("green", (0.01, "yellow"), (0.05, "red")), 3, decimals=1),
        stat("Filter, p99", "One filter call in a hundred takes longer. kube-scheduler gives up "
             "after 5 s.", 'histogram_quantile(0.99, sum by (le) (rate(tranche_request_duration_'
             f'seconds_bucket{{{JOB}, verb="filter"}}[$__rate_interval])))', SECONDS,
             ("green", (0.1, "yellow"), (0.5, "red")), 3),
        stat("Oldest reservation", "Age of the oldest bind that is not settled.",
             top("tranche_oldest_reservation_age_seconds"), SECONDS,
             ("green", (60, "yellow"), (120, "red")), 3),
        stat("API server heard", "Time since the API server was last heard, of the resource for "
             "which that is longest. At 60 s Tranche stops deciding.",
             top("tranche_watch_age_seconds"), SECONDS, ("green", (35, "yellow"), (45, "red")), 3),
        stat("Ledger", "Whether commits succeed.", f"min(tranche_ledger_writable{{{JOB}}})",
             limits=("red", (1, "green")), width=3,
             names={0: ("not writable", "red"), 1: ("writable", "green")}),
        stat("Ledger drift", "GPUs that pods hold and the ledger does not know, or the reverse. "
             "Must be 0.", f"max(abs(tranche_ledger_drift_quanta{{{JOB}}})) / 18018000", GPUS,
             ("green", (1e-6, "red")), 3, decimals=2),
    ]


def fleet():
    return [
        stat("GPUs", "Cards of all nodes.", f"sum({model('tranche_gpus')})", GPUS),
        stat("Allocated", "Share of all GPUs that pods hold.",
             f"sum({model('tranche_gpu_allocated')}) / sum({model('tranche_gpu_capacity')})", RATIO,
             decimals=1),
        stat("Stranded", "Share of all GPUs that is free on cards no common request can use.",
             f"sum({model('tranche_gpu_stranded')}) / sum({model('tranche_gpu_capacity')})", RATIO,
             ("green", (0.08, "yellow"), (0.15, "red")), decimals=1),
        stat("Nodes", "Nodes known.", top("tranche_nodes")),
        stat("Closed nodes", "Nodes kept from new GPU pods: not ready, cordoned, being changed, or "
             "with GPUs that come and go.", top("tranche_nodes_closed"),
             limits=("green", (1, "yellow"))),
        stat("Waiting pods", "GPU pods without a node.",
             f'max(tranche_pods{{{JOB}, state="pending"}})', PODS,
             ("green", (1, "yellow"), (100, "orange"))),
        table("By model", "Cards, what of them is taken and what is stranded.", ("model",), [
            ("Cards", model("tranche_gpus"), GPUS),
            ("Capacity", model("tranche_gpu_capacity"), GPUS),
            ("Allocated", model("tranche_gpu_allocated"), GPUS),
            ("Stranded", model("tranche_gpu_stranded"), GPUS, ("text", (1, "yellow"))),
            ("Memory", model("tranche_gpu_memory_capacity_bytes"), BYTES),
            ("Memory taken", model("tranche_gpu_memory_allocated_bytes"), BYTES),
        ], height=7),
        table("By pool", "Cards of the nodes in each GPUPool and what of them is taken.",
              ("pool", "model"), [
                  ("Cards", pooled("tranche_pool_gpus"), GPUS),
                  ("Allocated", pooled("tranche_pool_gpu_allocated"), GPUS),
              ], height=7),
        graph("Cost of the fleet", "What all GPUs cost an hour at the prices in force, and what of "
              "it is held: the rest is paid for and free.",
              [("sum by (currency) (max by (model, pool, currency) "
                f"(tranche_fleet_cost_per_hour{{{MODEL}}}))", "all {{currency}}"),
               ("sum by (currency) (max by (leaf, model, pool, currency) "
                f"(tranche_cost_per_hour{{{MODEL}}}))", "held {{currency}}")], MONEY),
        graph("GPUs without a price", "No GPUPrice suits them: they are in no cost.",
              [(f"sum by (model) (max by (model, pool) (tranche_unpriced_gpus{{{MODEL}}}))",
                "{{model}}")], GPUS),
        graph("Allocated", "Share of each model that pods hold, of compute and memory the larger.",
              [(f"{model('tranche_gpu_allocated')} / {model('tranche_gpu_capacity')}",
                "{{model}}")], RATIO, 8, maximum=1),
        graph("Device memory taken", "Share of the device memory of each model.",
              [(f"{model('tranche_gpu_memory_allocated_bytes')} / "
                f"{model('tranche_gpu_memory_capacity_bytes')}", "{{model}}")], RATIO, 8,
              maximum=1),
        graph("GPU pods", "By state.", [(top("tranche_pods", "state"), "{{state}}")], PODS, 8),
        graph("GPU utilisation by team", "As dcgm-exporter measures it, over the GPUs that pods "
              "hold. Empty without dcgm-exporter.",
              [("leaf:dcgm_gpu_utilization:avg", "{{leaf}}")], RATIO, 12, maximum=1),
        graph("Held and idle, by team", "GPUs below 5 % utilisation for half an hour.",
              [("leaf:dcgm_idle_gpus:count_30m", "{{leaf}}")], GPUS, 12),
        graph("Device memory in use", "What programs have taken of the memory of all GPUs of a "
              "kind, as dcgm-exporter measures it. Empty without dcgm-exporter.",
              [("sum by (modelName) (DCGM_FI_DEV_FB_USED) / "
                "sum by (modelName) (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
                "{{modelName}}")], RATIO, 8, maximum=1),
        graph("Hottest GPUs", "The hottest GPU of each node, of the ten hottest nodes.",
              [("topk(10, max by (Hostname) (DCGM_FI_DEV_GPU_TEMP))", "{{Hostname}}")],
              CELSIUS, 8, minimum=None),
        graph("Power", "What all GPUs of a kind draw.",
              [("sum by (modelName) (DCGM_FI_DEV_POWER_USAGE)", "{{modelName}}")], WATT, 8),
    ]


def fragmentation():
    return [
        graph("Stranded GPUs", "Free on cards no common request can use, of what was asked for "
              "lately.", [(model("tranche_gpu_stranded"), "{{model}}")], GPUS, 8),
        graph("Stranded share", "The same as a share of the model's GPUs; dashed: the alert.",
              [(f"{model('tranche_gpu_stranded')} / {model('tranche_gpu_capacity')}",
                "{{model}}")], RATIO, 8, limits=("transparent", (0.15, "red"))),
        graph("Whole GPUs that restarts would free", "What tranche top --advise would have "
              "restarted; nobody is evicted for it.",
              [(top("tranche_defragmentable_gpus"), "whole GPUs")], GPUS, 8),
        graph("MIG layouts changed", "Changes that ended, by outcome.",
              [(grown("tranche_mig_changes_total", "outcome"), "{{outcome}}")], NUMBER, 12),
        graph("Nodes whose MIG layout is being changed", "They take no new pods meanwhile.",
              [(top("tranche_mig_changes_pending"), "nodes")], NUMBER, 12),
        graph("Nodes emptied", "How it ended: gone (an autoscaler took it away), kept (nobody "
              "did), needed by somebody, given up.",
              [(grown("tranche_node_emptyings_total", "outcome"), "{{outcome}}")], NUMBER, 12),
        graph("Nodes that are emptied", "By consolidate or mig.window; they take no new pods "
              "meanwhile.",
              [(top("tranche_node_emptyings_pending"), "nodes")], NUMBER, 12),
        graph("Nodes asked for gangs", "ProvisioningRequests by what an autoscaler says of them, "
              "with GPUPolicy.provisioning.",
              [(top("tranche_provisioning_requests", "state"), "{{state}}")], NUMBER, 12),
        graph("Deletion costs written", "Which pods of a ReplicaSet are to go first, with "
              "GPUPolicy.deletionCost.",
              [(grown("tranche_deletion_cost_writes_total", "outcome"), "{{outcome}}")],
              NUMBER, 12),
    ]


def decisions():
    return [
        graph("Calls", "Calls of kube-scheduler by verb and result.",
              [(rate("tranche_requests_total", "verb, result"), "{{verb}} {{result}}")], PER_SECOND,
              8, stacked=True),
        graph("Time to answer, p50 and p99", "From a whole request to its answer.",
              [(quantile(share, "tranche_request_duration_seconds", "verb"),
                "{{verb}} " + f"p{share * 100:g}") for share in (0.5, 0.99)], SECONDS, 8),
        heatmap("Time to answer filter", "How many filter calls took how long.",
                f'sum by (le) (increase(tranche_request_duration_seconds_bucket{{{JOB}, '
                'verb="filter"}[$__rate_interval]))', 8),
        graph("Decisions", "By verb and reason; None is a yes.",
              [(rate("tranche_decisions_total", "verb, reason") + " > 0", "{{verb}} {{reason}}")],
              PER_SECOND, 12, stacked=True),
        graph("Nodes refused by filter", "By reason. Many nodes per call are normal.",
              [(rate("tranche_filter_refused_nodes_total", "reason") + " > 0", "{{reason}}")],
              PER_SECOND, 12, stacked=True),
        graph("Would have been refused", "By quotas in mode Observe, which refuse nothing.",
              [(grown("tranche_observed_refusals_total", "reason") + " > 0", "{{reason}}")],
              NUMBER, 8),
        graph("Binds on the way", "Claims are soft; reservations and binds are not settled yet.",
              [(top("tranche_claims"), "claims"), (top("tranche_reservations"), "reservations"),
               (top("tranche_binds_in_progress"), "binds")], NUMBER, 8),
        graph("Brought back to the queue", "Waiting pods that kube-scheduler was told to try again "
              "because room appeared, and attempts on binds unsettled for over 60 s.",
              [(grown("tranche_pokes_total"), "pods brought back"),
               (grown("tranche_bind_alarms_total"), "attempts on old binds")], NUMBER, 8),
    ]


def admission():
    return [
        graph("Reviews", "What API servers ask before pods are created or changed, by webhook and "
              "outcome.",
              [(rate("tranche_admission_reviews_total", "webhook, outcome"),
                "{{webhook}} {{outcome}}")], PER_SECOND, 8, stacked=True),
        graph("Refused and failed reviews", "By reason. Errors are no fault of users: API servers "
              "and Tranche do not understand each other.",
              [(grown("tranche_admission_reviews_total", "webhook, outcome, reason",
                      ', outcome=~"refused|error"'), "{{webhook}} {{outcome}}: {{reason}}")],
              NUMBER, 8),
        graph("Time of a review, p50 and p99", "From a whole review to its answer. API servers "
              "wait five seconds.",
              [(quantile(share, "tranche_admission_duration_seconds", "webhook"),
                "{{webhook}} " + f"p{share * 100:g}") for share in (0.5, 0.99)], SECONDS, 8),
    ]


def waiting():
    return [
        graph("Waiting pods by reason", "All teams, and pods without a quota.",
              [(f"sum by (reason) ({top('tranche_pending_workloads', 'leaf, class, reason')})",
                "{{reason}}")], PODS, 12, stacked=True),
        graph("GPUs that waiting pods ask for", "By team; without a name those without a quota.",
              [(f"sum by (leaf) ({top('tranche_pending_gpus', 'leaf, class, reason')})",
                "{{leaf}}")], GPUS, 12, stacked=True),
    ]


def preemption():
    lost = grown("tranche_lost_work_gpu_seconds_total", "leaf")
    return [
        graph("Reclaims", "By rule, team that lost pods and team they were taken for.",
              [(grown("tranche_reclaim_total", "rule, from, to"), "{{rule}} {{from}} → {{to}}")],
              NUMBER, 8),
        graph("Reclaims that run", "Planned and not ended.",
              [(top("tranche_reclaims_running"), "reclaims")], NUMBER, 8),
        graph("Evicted pods", "By team and rule.",
              [(grown("tranche_evicted_pods_total", "leaf, rule"), "{{leaf}} {{rule}}")], PODS, 8),
        graph("Lost work", "GPU-hours that evictions are expected to have lost, by team.",
              [(f"{lost} / 3600", "{{leaf}}")], HOURS, 8),
        graph("Evicted again", "Pods whose owner was evicted within a day before, by team.",
              [(grown("tranche_reevictions_total", "leaf"), "{{leaf}}")], PODS, 8),
        graph("Evictions not taken", "By the API server, by reason.",
              [(grown("tranche_eviction_failures_total", "reason"), "{{reason}}")], NUMBER, 8),
        graph("Time of planning, p99", "One round, by result.",
              [(quantile(0.99, "tranche_plan_duration_seconds", "result"), "{{result}}")], SECONDS,
              8),
        graph("Plans by quality", "optimal: proven the cheapest; unresolved: given up.",
              [(grown("tranche_plan_search_total", "quality"), "{{quality}}")], NUMBER, 8),
        graph("Wait of work within nominal", "How long work bound within its team's nominal quota "
              "had waited.",
              [(quantile(share, "tranche_time_to_nominal_seconds"), f"p{share * 100:g}")
               for share in (0.5, 0.95)], SECONDS, 8),
    ]


def ledger():
    return [
        graph("Entries", "Committed per second.",
              [(rate("tranche_ledger_entries_total"), "entries")], PER_SECOND, 8),
        graph("Waiting for a commit", "Events in memory; dashed: the alert.",
              [(top("tranche_ledger_queued"), "events")], NUMBER, 8,
              limits=("transparent", (1000, "red"))),
        graph("What went wrong", "Dropped events are lost, late entries were written over a minute "
              "after they happened.",
              [(grown("tranche_ledger_dropped_total"), "dropped"),
               (grown("tranche_ledger_commit_failures_total"), "failed commits"),
               (grown("tranche_ledger_late_total"), "late")], NUMBER, 8),
        graph("Drift", "GPUs that pods hold and the ledger does not know, or the reverse. Must be "
              "0.",
              [(f"max(tranche_ledger_drift_quanta{{{JOB}}}) / 18018000", "GPUs")], GPUS, 8,
              minimum=None),
        graph("Write-ahead log", "Dashed: the bound it is to be kept under.",
              [(top("tranche_ledger_wal_bytes"), "size")], BYTES, 8,
              limits=("transparent", (67108864, "red"))),
        graph("Newest entry", "Falls when an old file was restored.",
              [(top("tranche_ledger_last_entry"), "number")], NUMBER, 8),
        graph("Ledger faults", "What is wrong with the ledger, by kind. Must be 0; the log says "
              "more.", [(top("tranche_ledger_faults", "kind"), "{{kind}}")], NUMBER, 12),
        graph("Age of the newest copy", "One is due every day; dashed: the alert.",
              [(top("tranche_backup_age_seconds"), "age")], SECONDS, 12,
              limits=("transparent", (172800, "red"))),
    ]


def cluster():
    return [
        graph("Since the API server was heard", "By resource; dashed: the alert.",
              [(top("tranche_watch_age_seconds", "resource"), "{{resource}}")], SECONDS, 8,
              limits=("transparent", (45, "red"))),
        graph("Lists and watches", "Failures are followed by a wait and another try.",
              [(grown("tranche_watch_failures_total"), "failures"),
               (grown("tranche_watch_relists_total"), "complete lists"),
               (grown("tranche_watch_reconnects_total"), "watches reopened")], NUMBER, 8),
        graph("Agents of nodes", "Binds that wait for their turn, pods not served yet, and pods "
              "passed over because they were not served in time.",
              [(top("tranche_agent_binds_waiting"), "binds waiting"),
               (top("tranche_agent_pods_unserved"), "not served yet"),
               (grown("tranche_agent_pods_passed_over_total"), "passed over")], NUMBER, 8),
        graph("Writes the API server did not take", "Statuses and views.",
              [(grown("tranche_status_write_failures_total"), "writes")], NUMBER, 8),
        graph("Objects not in force", "Custom resources that are wrong as written.",
              [(top("tranche_invalid_objects"), "objects")], NUMBER, 8),
        graph("Books", "Faults that the check of the books every five minutes found, and "
              "reservations that no bind stands behind.",
              [(top("tranche_self_check_faults"), "faults"),
               (top("tranche_stuck_reservations"), "reservations")], NUMBER, 8),
        graph("Books set right", "Pods, records and ledger entries that did not go together, by "
              "kind; what is doubtful is busy.",
              [(grown("tranche_book_faults_total", "kind"), "{{kind}}")], NUMBER, 8),
        graph("Objects nobody can read", "Their newest version is not in force, by resource.",
              [(top("tranche_unreadable_objects", "resource"), "{{resource}}")], NUMBER, 8),
        graph("Pods whose GPUs nobody can name", "Their nodes count as full.",
              [(top("tranche_pods_devices_unknown"), "pods")], PODS, 8),
        graph("Nodes told to kube-scheduler before it asked", "What became of them, by outcome: "
              "taken, heard of too late, refused, withdrawn.",
              [(grown("tranche_early_nominations_total", "outcome"), "{{outcome}}")], NUMBER, 24),
    ]


def process():
    ours = f"and on (job, instance) tranche_build_info{{{JOB}}}"
    return [
        graph("Memory", "Resident, by process.",
              [(f"process_resident_memory_bytes {ours}", "{{instance}}")], BYTES, 8),
        graph("CPU", "Cores in use, by process.",
              [(f"rate(process_cpu_seconds_total[$__rate_interval]) {ours}", "{{instance}}")],
              NUMBER, 8),
        graph("Open files", "Share of the limit, by process.",
              [(f"process_open_fds / process_max_fds {ours}", "{{instance}}")], RATIO, 8),
        graph("Connections", "Open, and those closed to make room at the cap.",
              [(f"sum(tranche_http_connections{{{JOB}}})", "open"),
               (grown("tranche_http_connections_accepted_total"), "accepted"),
               (grown("tranche_http_connections_evicted_total"), "closed for room")], NUMBER, 8),
        graph("Refused before any handler", "By status of the answer, and TLS handshakes that "
              "failed.", [(grown("tranche_http_refusals_total", "status"), "{{status}}"),
                          (grown("tranche_tls_handshake_failures_total"), "TLS handshakes")],
              NUMBER, 8),
        graph("Clock", "How far our time runs ahead of the machine's clock, which was set back.",
              [(f"max by (instance) (tranche_clock_ahead_seconds{{{JOB}}})", "{{instance}}")],
              SECONDS, 8),
        graph("Time the engine is held", "Share of the time, by caller.",
              [(rate("tranche_lock_hold_seconds_sum", "caller"), "{{caller}}")], RATIO, 12),
        graph("Longest hold of the engine", "Since the start, by caller; dashed: what counts as "
              "long.", [(top("tranche_lock_longest_hold_seconds", "caller"), "{{caller}}")],
              SECONDS, 12, limits=("transparent", (0.02, "red"))),
        table("Processes", "Version and start.", ("job", "instance", "version"), [
            ("Ready", f"max by (job, instance) (tranche_ready{{{JOB}}}) * on (job, instance) "
             f"group_left (version) tranche_build_info{{{JOB}}}", NUMBER,
             ("text", (1, "green"))),
            ("Up for", "time() - max by (job, instance) (process_start_time_seconds) * on (job, "
             f"instance) group_left (version) tranche_build_info{{{JOB}}}", SECONDS)], height=5),
    ]


def dashboard():
    variables = [
        variable("job", "Tranche", "label_values(tranche_build_info, job)"),
        variable("model", "GPU model", 'label_values(tranche_gpus{job=~"$job"}, model)'),
    ]
    rows = [("Is it well?", well()), ("Fleet", fleet()), ("Fragmentation", fragmentation()),
            ("Decisions", decisions()), ("Admission", admission()), ("Waiting", waiting()),
            ("Preemption", preemption()), ("Ledger", ledger()),
            ("Cluster and agents", cluster()), ("Process", process())]
    return panels.dashboard(
        UID, "Tranche / Operators",
        "Is it well, how full is the fleet, what was decided and why, what was lost.",
        variables, rows)
