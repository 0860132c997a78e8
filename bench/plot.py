#!/usr/bin/env python3
"""Draws what tranche-bench fill and mig wrote, as PNG and SVG.

    python3 -m venv build/plot && build/plot/bin/pip install matplotlib==3.11.2
    build/plot/bin/python bench/plot.py --in fill.json churn.json mig.json --out build/plots

Pictures (a picture is drawn when its numbers are there):
    fill-VARIANT     allocation against arrival, and the points over FGD
    fill-overview    points over FGD of every variant, where several are there
    churn-VARIANT    share of tasks lost by size, where pods also leave
    mig-utilisation  slots in use by mix of profiles and load
"""

import argparse
import collections
import json
import os
import sys

try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    sys.exit("plot.py: expected the Python package matplotlib, found none: "
             "python3 -m venv build/plot && build/plot/bin/pip install matplotlib==3.11.2")

# Okabe and Ito's colours, which people with any colour vision tell apart. One policy, one colour.
ORANGE, BLUE, GREEN, SKY, PINK, AMBER = (
    "#D55E00", "#0072B2", "#009E73", "#56B4E9", "#CC79A7", "#B8860B")
BROWN = "#7A3500"  # ours too
DARK, GREY, LIGHT = "#222222", "#8A8A8A", "#D9D9D9"
Look = collections.namedtuple("Look", "label colour")
LOOKS = {
    "tranche": Look("Tranche", ORANGE),
    "tranche-protocol": Look("Tranche over HTTP", BROWN),
    "fgd": Look("FGD", BLUE),
    "bestfit": Look("BestFit", GREEN),
    "packing": Look("GpuPacking", AMBER),
    "clustering": Look("GpuClustering", PINK),
    "dotprod": Look("DotProd", SKY),
    "random": Look("Random", GREY),
    "fgd-mig": Look("FGD for MIG", BLUE),
    "fgd-mig-repack": Look("FGD, free repacking", "#7FB8DB"),
    "best-fit": Look("best fit", GREEN),
    "first-fit": Look("first fit", AMBER),
    "blocked": Look("blocked starts", PINK),
    "round-robin": Look("round robin", SKY),
    "worst-fit": Look("worst fit", GREY),
}
ORDER = list(LOOKS)
CLASSES = [("sharing", "part of a GPU"), ("1", "1 GPU"), ("2", "2 GPUs"), ("4", "4 GPUs"),
           ("8", "8 GPUs")]
SPAN = range(50, 131)  # percent of arrival

STYLE = {
    "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white",
    "font.family": "DejaVu Sans", "font.size": 14, "text.color": DARK, "axes.labelcolor": DARK,
    "axes.titlesize": 15, "axes.titlelocation": "left", "axes.labelsize": 14,
    "axes.edgecolor": GREY, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": LIGHT, "grid.linewidth": 0.8,
    "xtick.color": DARK, "ytick.color": DARK, "lines.linewidth": 1.8,
    "legend.frameon": False, "svg.hashsalt": "tranche",
}


def is_ours(policy):
    return policy.startswith("tranche")


def look(policy):
    if policy in LOOKS:
        return LOOKS[policy]
    moves = policy.removeprefix("tranche+")
    if moves.isdecimal():
        return Look(f"Tranche, {moves} moves per 100 accepts", BROWN)
    if is_ours(policy):
        return Look("Tranche " + policy.removeprefix("tranche").strip("-+ "), BROWN)
    return Look(policy, GREY)


def rank(policy):
    return (ORDER.index(policy) if policy in ORDER else len(ORDER), policy)


def mean(figure):
    return figure["mean"] if isinstance(figure, dict) else figure


def percent(runs, key):
    """A figure of each run in percent, whether written as a share or in percent."""
    values = [float(mean(run[key])) for run in runs]
    return [value * 100 for value in values] if max(values) <= 1.5 else values


def load_text(load):
    return f"{load:.1f}" if round(load, 1) == load else f"{load:g}"


def heading(figure, title, subtitle):
    figure.text(0.035, 0.955, title, fontsize=19, fontweight="bold", va="top")
    figure.text(0.035, 0.895, subtitle, fontsize=13, color="#555555", va="top")


def save(figure, out, name):
    for ending in ("png", "svg"):
        path = os.path.join(out, f"{name}.{ending}")
        metadata = {"Date": None} if ending == "svg" else {"Software": None}
        figure.savefig(path, dpi=150, metadata=metadata)
        print(path)
    pyplot.close(figure)


def spread(heights, gap):
    """The heights, moved apart by at least `gap` and otherwise as little as a sweep allows."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for _ in range(200):
        for low, high in zip(order, order[1:]):
            overlap = gap - (placed[high] - placed[low])
            if overlap > 0:
                placed[low] -= overlap / 2
                placed[high] += overlap / 2
    return placed


def label_ends(axes, ends, gap, with_value=None):
    """Names at the right ends of lines, apart from one another: (x, height, policy)."""
    for (x, height, policy), at in zip(ends, spread([end[1] for end in ends], gap)):
        shown = look(policy)
        text = shown.label if with_value is None else f"{shown.label} {with_value.format(height)}"
        axes.annotate(text, (x, height), xytext=(x + 3.5, at), va="center", fontsize=13,
                      color=shown.colour, fontweight="bold" if is_ours(policy) else "normal",
                      annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "color": shown.colour, "lw": 0.8,
                                  "relpos": (0, 0.5), "shrinkA": 2, "shrinkB": 1})


# ---- fill

def curve(run):
    """Arrival percent -> allocation percent; written as pairs or as the values from 1 % on."""
    points = run["curve"]
    if points and isinstance(points[0], (list, tuple)):
        return {round(arrival): value for arrival, value in points}
    return {at: value for at, value in enumerate(points, start=1)}


def at_full(curves, policy):
    return curves[policy].get(100, float("nan"))


def draw_line(axes, policy, points):
    xs = sorted(points)
    axes.plot(xs, [points[x] for x in xs], color=look(policy).colour,
              linewidth=3.6 if is_ours(policy) else 1.8, zorder=4 if is_ours(policy) else 3,
              solid_capstyle="round")


def draw_allocation(axes, curves):
    axes.plot(SPAN, [min(x, 100) for x in SPAN], color=GREY, linewidth=1.5, linestyle=(0, (4, 3)))
    axes.text(101, 100.5, "all that is asked for", color="#666666", fontsize=12, va="bottom")
    ends = []
    for policy in curves:
        points = {x: y for x, y in curves[policy].items() if x in SPAN}
        draw_line(axes, policy, points)
        ends.append((max(points), points[max(points)], policy))
    low = min(curves[policy].get(SPAN.start, 50) for policy in curves)
    axes.set(xlim=(SPAN.start, SPAN.stop - 1), ylim=(min(low, 50), 103),
             xlabel="GPUs asked for so far, % of the cluster", ylabel="GPUs allocated, %")
    axes.set_title("Allocation", pad=10)
    label_ends(axes, ends, 2.5, "{:.1f}")


def draw_lead(axes, curves):
    """Points over FGD. What falls far below is cut off: the first panel shows it."""
    base = curves["fgd"]
    axes.axhline(0, color=look("fgd").colour, linewidth=1.8)
    ends = [(SPAN.stop - 1, 0.0, "fgd")]
    tops, floors = [0.0], [-3.1]
    for policy in curves:
        if policy == "fgd":
            continue
        points = {x: y - base[x] for x, y in curves[policy].items() if x in SPAN and x in base}
        draw_line(axes, policy, points)
        ends.append((max(points), points[max(points)], policy))
        tops.append(max(points.values()))
        if is_ours(policy):
            floors.append(min(points.values()))
            xs = sorted(points)
            axes.fill_between(xs, [points[x] for x in xs], color=look(policy).colour, alpha=0.13)
            if policy == "tranche" and 100 in points:
                axes.annotate(f"{points[100]:+.2f} at 100 %", (100, points[100]), xytext=(0, 12),
                              textcoords="offset points", ha="left", color=look(policy).colour,
                              fontsize=14, fontweight="bold")
                axes.plot(100, points[100], "o", color=look(policy).colour, markersize=9, zorder=5)
    low, high = min(floors) - 0.4, max(1.5, max(tops) + 0.4)
    shown = [end for end in ends if end[1] > low + 0.2]
    axes.set(xlim=(SPAN.start, SPAN.stop - 1), ylim=(low, high),
             xlabel="GPUs asked for so far, % of the cluster")
    axes.set_title("Difference to FGD, points", pad=10)
    label_ends(axes, shown, (high - low) / 19)


def draw_fill(variant, runs, out):
    curves = {run["policy"]: curve(run) for run in sorted(runs, key=lambda r: rank(r["policy"]))}
    figure = pyplot.figure(figsize=(16, 9))
    has_lead = "fgd" in curves and len(curves) > 1
    grid = figure.add_gridspec(1, 2 if has_lead else 1, left=0.055, right=0.885, top=0.79,
                               bottom=0.095, width_ratios=[1.25, 1] if has_lead else [1],
                               wspace=0.43)
    draw_allocation(figure.add_subplot(grid[0]), curves)
    if has_lead:
        draw_lead(figure.add_subplot(grid[1]), curves)
    ours = next((policy for policy in curves if is_ours(policy)), next(iter(curves)))
    title = f"{variant}: {look(ours).label} allocates {at_full(curves, ours):.1f} % of the GPUs"
    if has_lead and ours != "fgd":
        title += f", FGD {at_full(curves, 'fgd'):.1f} %"
    seeds = len(runs[0].get("seeds", []))
    heading(figure, title, "when as many GPUs have been asked for as there are; mixed pods arrive "
            f"and none leaves; mean of {seeds} seeds")
    save(figure, out, f"fill-{variant}")


def draw_fill_overview(by_variant, out):
    rows = []
    for variant, runs in by_variant.items():
        full = {run["policy"]: curve(run).get(100) for run in runs}
        if full.get("fgd") is not None and full.get("tranche") is not None:
            rows.append((full["tranche"] - full["fgd"], variant, full["tranche"]))
    if len(rows) < 2:
        return
    rows.sort()
    figure, axes = pyplot.subplots(figsize=(16, 9))
    figure.subplots_adjust(left=0.135, right=0.93, top=0.80, bottom=0.10)
    colours = [ORANGE if lead >= 0 else GREY for lead, _, _ in rows]
    axes.barh(range(len(rows)), [row[0] for row in rows], color=colours, height=0.62)
    for at, (lead, _, allocation) in enumerate(rows):
        side = 1 if lead >= 0 else -1
        axes.annotate(f"{lead:+.2f}   ({allocation:.1f} % allocated)", (lead, at),
                      xytext=(8 * side, 0), textcoords="offset points", va="center",
                      ha="left" if side > 0 else "right", fontsize=13,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    axes.axvline(0, color=BLUE, linewidth=2)
    axes.set_yticks(range(len(rows)), [row[1] for row in rows])
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.22)
    axes.set_xlabel("points of allocation over FGD (the blue line) at 100 % arrival")
    ahead = sum(row[0] > 0 for row in rows)
    heading(figure, f"Tranche allocates more than FGD on {ahead} of {len(rows)} variants",
            "of the open trace, when as many GPUs have been asked for as there are")
    save(figure, out, "fill-overview")


# ---- churn

def grouped_bars(axes, groups, policies, value_of, error_of=None):
    """Bars of the policies side by side, a cluster for each group; where there is a value."""
    width = 0.84 / len(policies)
    for i, policy in enumerate(policies):
        bars = []
        for at, group in enumerate(groups):
            value = value_of(policy, group)
            if value is not None:
                error = error_of(policy, group) if error_of else 0
                bars.append((at + (i - (len(policies) - 1) / 2) * width, value, error))
        xs, heights, errors = zip(*bars) if bars else ((), (), ())
        axes.bar(xs, heights, width * 0.92, color=look(policy).colour, label=look(policy).label)
        if any(errors):
            axes.errorbar(xs, heights, yerr=errors, fmt="none", ecolor=DARK, elinewidth=1.2,
                          capsize=3)
        yield policy, xs, heights, errors
    axes.grid(axis="x", visible=False)
    axes.tick_params(axis="x", length=0)


def legend(figure, axes, at):
    """All policies in one row above the panels: bars have no room for names of their own."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.028, at), ncol=len(labels),
                  handlelength=1.0, handleheight=1.0, columnspacing=1.6, fontsize=13)


def draw_churn(variant, runs, out):
    loads = sorted({run["load"] for run in runs})
    policies = sorted({run["policy"] for run in runs}, key=rank)
    cells = {(run["policy"], run["load"]): run for run in runs}
    figure, panels = pyplot.subplots(1, len(loads), figsize=(16, 9), sharey=True, squeeze=False)
    figure.subplots_adjust(left=0.06, right=0.98, top=0.73, bottom=0.08, wspace=0.07)
    for axes, load in zip(panels[0], loads):
        def lost(policy, size, load=load):
            run = cells.get((policy, load))
            return run and mean(run["lostPercent"][size[0]])

        def error(policy, size, load=load):
            figure_of = cells[policy, load]["lostPercent"][size[0]]
            return 2 * figure_of.get("standardError", 0)

        for policy, xs, heights, errors in grouped_bars(axes, CLASSES, policies, lost, error):
            for x, height, wide in zip(xs, heights, errors):
                axes.annotate(f"{height:.1f}", (x, height + wide), xytext=(0, 3),
                              textcoords="offset points", ha="center", fontsize=10.5,
                              color=look(policy).colour,
                              fontweight="bold" if is_ours(policy) else "normal")
        axes.set_xticks(range(len(CLASSES)), [text for _, text in CLASSES])
        parts = [f"{look(policy).label} {mean(cells[policy, load]['allocation']):.1f} %"
                 for policy in policies if (policy, load) in cells]
        axes.set_title(f"load {load_text(load)}\nallocated: " + ", ".join(parts),
                       fontsize=13, pad=8)
    panels[0][0].set_ylabel("tasks lost, % of those that came")
    legend(figure, panels[0][0], 0.862)
    heading(figure, f"{variant}: what is lost when pods also leave, by size of the pod",
            f"steady state, mean of {len(runs[0].get('seeds', []))} seeds; whiskers: two "
            "standard errors of the difference to FGD")
    save(figure, out, f"churn-{variant}")


# ---- mig

# 10 to 20 points behind: bars of theirs would only squeeze the others.
WEAK = ["random", "round-robin", "worst-fit"]


def weak_note(runs):
    """The weak policies' figures in words, of the first mix at the load nearest to 1."""
    weak = [run for run in runs if run["policy"] in WEAK]
    if not weak:
        return ""
    mix = weak[0]["mix"]
    load = min((run["load"] for run in weak if run["mix"] == mix), key=lambda l: abs(l - 1))
    parts = [f"{look(run['policy']).label.lower()} {run['slots']:.1f} %"
             for run in sorted(weak, key=lambda run: -run["slots"])
             if run["mix"] == mix and run["load"] == load]
    return f"not shown, for mix {mix} at load {load_text(load)}: " + ", ".join(parts)


def draw_mig(runs, out):
    for run, slots in zip(runs, percent(runs, "slotUtilization")):
        run["slots"] = slots
    note = weak_note(runs)
    runs = [run for run in runs if run["policy"] not in WEAK] or runs
    mixes = list(dict.fromkeys(run["mix"] for run in runs))
    policies = sorted({run["policy"] for run in runs}, key=lambda p: (not is_ours(p), rank(p)))
    cells = {(run["policy"], run["mix"], run["load"]): run["slots"] for run in runs}
    floor = max(0, int(min(cells.values()) / 5) * 5 - 5)
    figure, panels = pyplot.subplots(1, len(mixes), figsize=(16, 9), sharey=True, squeeze=False)
    figure.subplots_adjust(left=0.06, right=0.985, top=0.76, bottom=0.11, wspace=0.06)
    for axes, mix in zip(panels[0], mixes):
        loads = sorted({run["load"] for run in runs if run["mix"] == mix})
        bars = grouped_bars(axes, loads, policies, lambda p, load: cells.get((p, mix, load)))
        for policy, xs, heights, _ in bars:
            if not is_ours(policy) and policy != "fgd-mig":
                continue
            for x, height in zip(xs, heights):
                axes.annotate(f"{height:.1f}", (x, height), xytext=(0, 4), rotation=90,
                              textcoords="offset points", ha="center", va="bottom", fontsize=11.5,
                              color=look(policy).colour,
                              fontweight="bold" if is_ours(policy) else "normal")
        axes.set_xticks(range(len(loads)), [f"load {load_text(load)}" for load in loads])
        axes.set_ylim(floor, 102)
        axes.set_title(f"mix: {mix}", pad=8)
    cut = "" if floor == 0 else f" (the axis begins at {floor} %)"
    panels[0][0].set_ylabel(f"memory slots in use, %{cut}")
    figure.text(0.06, 0.02, note, fontsize=12, color="#555555")
    legend(figure, panels[0][0], 0.862)
    heading(figure, mig_title(cells, mixes), "MIG instances come and go"
            f" on {runs[0].get('gpus', 100)} GPUs; load 1.0 asks for all slots; "
            f"mean of {len(runs[0].get('seeds', []))} seeds")
    save(figure, out, "mig-utilisation")


def mig_title(cells, mixes):
    at = [(policy, mix, load) for policy, mix, load in cells if policy == "tranche"]
    compared = [cell for cell in at if ("fgd-mig", *cell[1:]) in cells]
    if not compared:
        return f"MIG slots in use for {len(mixes)} mixes of profiles"
    ahead = sum(cells[cell] > cells["fgd-mig", cell[1], cell[2]] for cell in compared)
    return (f"Tranche keeps more MIG slots in use than FGD in {ahead} of {len(compared)} "
            "cases, moving nothing")


# ---- files

def read(paths):
    """(benchmark, runs) of all files; ends the program on a file that is something else."""
    found = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            found.append((content["benchmark"], content["runs"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"plot.py: expected the JSON of tranche-bench --out, found {path}: {error!r}")
    return found


def by_variant(runs):
    groups = collections.defaultdict(list)
    for run in runs:
        groups[run["variant"]].append(run)
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in", dest="files", nargs="+", required=True, metavar="FILE.json",
                        help="what tranche-bench fill or mig wrote with --out")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the pictures go")
    arguments = parser.parse_args()
    files = read(arguments.files)
    runs = [run for benchmark, runs in files if benchmark == "fill" for run in runs]
    mig = [run for benchmark, runs in files if benchmark == "mig" for run in runs]
    fill = by_variant(run for run in runs if "curve" in run)
    churn = by_variant(run for run in runs if "lostPercent" in run)
    if not (fill or churn or mig):
        sys.exit("plot.py: expected runs of the benchmarks fill or mig, found neither")
    os.makedirs(arguments.out, exist_ok=True)
    with pyplot.rc_context(STYLE):
        for variant, some in fill.items():
            draw_fill(variant, some, arguments.out)
        draw_fill_overview(fill, arguments.out)
        for variant, some in churn.items():
            draw_churn(variant, some, arguments.out)
        if mig:
            draw_mig(mig, arguments.out)


if __name__ == "__main__":
    main()
