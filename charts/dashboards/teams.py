"""The dashboard of the teams: what they own, use, borrow, lend, wait for and have left."""

import panels
from panels import GPUS, HOURS, MOMENT, MONEY, PODS, RATIO, SECONDS, graph, stat, table, variable

UID = "tranche-teams"
LEAF = 'job=~"$job", leaf=~"$leaf"'
LINE = f'{LEAF}, model=~"$model"'
# A budget by its name, with the team it is of.
OF_TEAM = f'* on (budget) group_left (leaf) max by (budget, leaf) (tranche_budget_info{{{LEAF}}})'


def quota(series):
    """By team and line: the larger of compute and memory, once however many processes tell it."""
    return f"max by (leaf, model, pool) (tranche_quota_{series}_gpus{{{LINE}}})"


def budget(series):
    return f'max by (budget) (tranche_budget_{series}{{job=~"$job"}}) {OF_TEAM}'


def hours(series):
    return f"{budget(f'{series}_gpu_seconds')} / 3600"


WAITING = f"max by (leaf, class, reason) (tranche_pending_workloads{{{LEAF}}})"
WAITING_GPUS = f"max by (leaf, class, reason) (tranche_pending_gpus{{{LEAF}}})"
LEFT = f"({hours('limit')}) - ({hours('used')})"
UTILISATION = 'leaf_namespace_pod_gpu:dcgm_gpu_utilization:ratio{leaf=~"$leaf"}'


def glance():
    return [
        stat("In use", "GPUs held now, of compute and memory the larger.", f"sum({quota('used')})",
             GPUS, decimals=1),
        stat("Owned", "GPUs of the nominal quota.", f"sum({quota('nominal')})", GPUS, decimals=1),
        stat("Borrowed", "GPUs held beyond the nominal quota. Their owners may take them back.",
             f"sum({quota('borrowed')})", GPUS, ("text", (0.001, "yellow")), decimals=1),
        stat("Lent", "GPUs of idle nominal quota that other teams use now.",
             f"sum({quota('lent')})", GPUS, ("text", (0.001, "blue")), decimals=1),
        stat("Waiting pods", "GPU pods that have no node yet.", f"sum({WAITING}) or vector(0)",
             PODS, ("green", (1, "yellow"), (20, "orange"))),
        stat("GPU-hours left", "Of all budgets together, in their current windows.",
             f"sum({LEFT})", HOURS, ("red", (0.001, "text")), decimals=0),
    ]


def quotas():
    lines = table(
        "Quota by line", "What each team owns, uses, borrows, lends and could take in addition, by "
        "GPU model, and by pool where a line is of one. Below zero available: more is held than "
        "the limits allow, after an edit.",
        ("leaf", "model", "pool"), [
            ("Owned", quota("nominal"), GPUS),
            ("In use", quota("used"), GPUS),
            ("Borrowed", quota("borrowed"), GPUS, ("text", (0.001, "yellow"))),
            ("Lent", quota("lent"), GPUS, ("text", (0.001, "blue"))),
            ("Available", quota("available"), GPUS, ("red", (0, "text"))),
        ])
    used = graph(
        "$leaf: used against owned", "GPUs in use by model; dashed what the team owns. Above the "
        "dashed line is borrowed.",
        [(quota("used"), "{{model}} {{pool}} in use"),
         (quota("nominal"), "{{model}} {{pool}} owned")], GPUS,
        24, dashed="/owned$/", repeat="leaf")
    swing = graph(
        "Borrowed and lent", "Above zero what a team borrows, below zero what it lends.",
        [(f"sum by (leaf) ({quota('borrowed')})", "{{leaf}} borrows"),
         (f"-sum by (leaf) ({quota('lent')})", "{{leaf}} lends")], GPUS, minimum=None)
    room = graph(
        "Could be taken in addition", "GPUs that a team could still take, of its own and lent by "
        "others, if nodes have room. Unlimited is not drawn.",
        [(f"{quota('available')} < Inf", "{{leaf}} {{model}} {{pool}}")], GPUS, minimum=None)
    return [lines, used, swing, room]


def budgets():
    overview = table(
        "Budgets", "GPU-hours of the current window with what was carried in. Committed is "
        "promised to running work. Runs out: when what runs now will have used it up, if that is "
        "before the window ends.", ("budget", "leaf"), [
            ("Limit", hours("limit"), HOURS),
            ("Used", hours("used"), HOURS),
            ("Committed", hours("committed"), HOURS),
            ("Left", LEFT, HOURS, ("red", (0.001, "text"))),
            ("Used share", f"({hours('used')}) / ({hours('limit')} > 0)", RATIO,
             ("text", (0.8, "yellow"), (1, "red"))),
            ("Window ends", f"1000 * {budget('window_end_seconds')}", MOMENT),
            ("Runs out", f"1000 * {budget('exhausts_at_seconds')}", MOMENT),
        ])
    left = graph(
        "GPU-hours left", "Falls to zero where a budget is used up; rises when a window begins.",
        [(LEFT, "{{budget}} ({{leaf}})")], HOURS, minimum=None, limits=("red", (0, "transparent")))
    until = graph(
        "Time until used up", "How long each budget lasts if what runs now goes on. Budgets that "
        "last to the end of their window are not drawn.",
        [(f"({budget('exhausts_at_seconds')}) - time()", "{{budget}} ({{leaf}})")], SECONDS,
        limits=("red", (86400, "transparent")))
    held = graph(
        "GPU-hours by the hour", "GPU-hours that each team's work holds in an hour, refunds not "
        "taken off.",
        [(f"sum by (leaf) (rate(tranche_gpu_seconds_total{{{LEAF}}}[$__rate_interval]))",
          "{{leaf}}")], GPUS, 24, stacked=True)
    return [overview, left, until, held]


def cost():
    by_team = graph(
        "Cost by team", "What each team's GPUs cost an hour at the prices in force, in their "
        "currency. GPUs without a price are not in it.",
        [(f"sum by (leaf, currency) (max by (leaf, model, pool, currency) "
          f"(tranche_cost_per_hour{{{LEAF}}}))", "{{leaf}} {{currency}}")], MONEY, stacked=True)
    unpriced = graph(
        "Held without a price", "GPUs that teams hold and that no GPUPrice suits: in no cost.",
        [(f"sum by (leaf) (max by (leaf, model, pool) (tranche_held_unpriced_gpus{{{LEAF}}}))",
          "{{leaf}}")], GPUS, stacked=True)
    return [by_team, unpriced]


def waiting():
    reasons = graph(
        "Waiting pods by reason", "What each waiting pod waits for; tranche explain NAMESPACE/POD "
        "says more of one.", [(f"sum by (reason) ({WAITING})", "{{reason}}")], PODS, stacked=True)
    listed = table(
        "Waiting now", "Pods and the GPUs they ask for, by team, class and reason.",
        ("leaf", "class", "reason"), [("Pods", WAITING, PODS), ("GPUs", WAITING_GPUS, GPUS)], 12)
    duration = 'rate(tranche_time_to_nominal_seconds_bucket{job=~"$job"}[$__rate_interval])'
    entitled = graph(
        "Wait of work that teams are entitled to", "How long work that was bound within its team's "
        "nominal quota had waited; all teams together.",
        [(f"histogram_quantile({share}, sum by (le) ({duration}))", f"p{share * 100:g}")
         for share in (0.5, 0.95)], SECONDS, 12)
    waited = f"rate(tranche_wait_seconds_bucket{{{LEAF}}}[$__rate_interval])"
    by_team = graph(
        "Wait by team", "How long pods had waited since they were created when they were bound: 95 "
        "of 100 waited less.",
        [(f"histogram_quantile(0.95, sum by (leaf, le) ({waited}))", "{{leaf}}")], SECONDS, 12)
    ahead = graph(
        "Expected wait", "How long half of the pods that wait are expected to wait on at most, by "
        "team and class. Pods for which no time can be given are not in it.",
        [(f"max by (leaf, class) (tranche_expected_start_seconds{{{LEAF}}})",
          "{{leaf}} {{class}}")], SECONDS, 12)
    held = graph(
        "Starts and what was expected", "Pods that started, by where in the span of 80 % shown for "
        "them: eight in ten should be within. All teams together.",
        [('sum by (start) (increase(tranche_forecast_spans_total{job=~"$job"}'
          "[$__rate_interval]))", "{{start}}")], PODS, 12, stacked=True)
    return [reasons, listed, entitled, by_team, ahead, held]


def taken_back():
    def during(series, labels=LEAF):
        return f"increase({series}{{{labels}}}[$__rate_interval])"

    either = 'job=~"$job", from=~"$leaf"'
    other = 'job=~"$job", to=~"$leaf"'
    ranged = "sum by (from, to, rule) (increase(tranche_reclaim_total{%s}[$__range]))"
    return [
        table("Who took from whom", "Reclaims in the chosen time, by the team that lost pods, the "
              "team they were taken for and the rule.", ("from", "to", "rule"),
              [("Reclaims", f"{ranged % either} or {ranged % other}", "none")], 8),
        graph("Evicted pods", "By the team that lost them and the rule.",
              [(f"sum by (leaf, rule) ({during('tranche_evicted_pods_total')})",
                "{{leaf}} {{rule}}")], PODS, 8),
        graph("Lost work", "GPU-hours of work that evictions are expected to have lost.",
              [(f"sum by (leaf) ({during('tranche_lost_work_gpu_seconds_total')}) / 3600",
                "{{leaf}}")], HOURS, 8),
    ]


def utilisation():
    return [
        graph("GPU utilisation", "Mean over the GPUs the team's pods hold, as dcgm-exporter "
              "measures it: how much of the time any kernel ran. Empty without dcgm-exporter.",
              [('leaf:dcgm_gpu_utilization:avg{leaf=~"$leaf"}', "{{leaf}}")], RATIO, 12, maximum=1),
        graph("Held and idle", "GPUs whose mean utilisation was below 5 % for half an hour.",
              [('leaf:dcgm_idle_gpus:count_30m{leaf=~"$leaf"}', "{{leaf}}")], GPUS, 12),
        table("Least used pods", "The pods with the least utilisation over the last hour, GPU by "
              "GPU.", ("leaf", "quota_namespace", "quota_pod", "UUID"),
              [("Utilisation", f"bottomk(20, avg_over_time({UTILISATION}[1h]))", RATIO,
                ("red", (0.05, "yellow"), (0.3, "text")))]),
    ]


def dashboard():
    variables = [
        variable("job", "Tranche", "label_values(tranche_build_info, job)"),
        variable("leaf", "Team", 'label_values(tranche_namespace_info{job=~"$job"}, leaf)'),
        variable("model", "GPU model",
                 'label_values(tranche_quota_nominal_gpus{job=~"$job", leaf=~"$leaf"}, model)'),
    ]
    rows = [("At a glance", glance()), ("Quota", quotas()), ("Budgets", budgets()),
            ("Cost", cost()),
            ("Waiting", waiting()), ("Taken back", taken_back()),
            ("GPU utilisation", utilisation())]
    return panels.dashboard(
        UID, "Tranche / Teams", "What teams own, use, borrow, lend, wait for and have left.",
        variables, rows)
