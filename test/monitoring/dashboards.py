"""What must hold for every dashboard: in its file alone, and in what Prometheus answers to it."""

import json
import math
import re

COLUMNS = 24
OLDEST_SCHEMA = 38  # Grafana 10.0
# Colours of Grafana's themes; a number would suit only one of them.
COLOURS = {"green", "yellow", "orange", "red", "blue", "purple", "text", "transparent"}
HOST = re.compile(r"https?://|\b\d+\.\d+\.\d+\.\d+\b")
# Lines of models have no pool.
MAY_LACK = {"pool"}
LABEL = re.compile(r"{{\s*(\w+)\s*}}")
LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


def panels_of(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries_of(dashboard):
    """(panel, its query, the expression) of all panels."""
    for panel in panels_of(dashboard):
        for query in panel["targets"]:
            yield panel, query, query["expr"]


# ---- the file ----------------------------------------------------------------------------------


def _values(node, key):
    """Every value of that key, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from _values(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _values(value, key)


def check_layout(dashboard):
    taken = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if place["x"] < 0 or place["x"] + place["w"] > COLUMNS or place["w"] < 1:
            return f"{panel['title']}: expected to lie in {COLUMNS} columns, found {place}"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in taken:
                    return (f"{panel['title']} and {taken[x, y]}: expected places apart, found "
                            f"both at column {x}, line {y}")
                taken[x, y] = panel["title"]
    for line in range(1 + max(y for _, y in taken)):
        width = sum((x, line) in taken for x in range(COLUMNS))
        if width != COLUMNS:
            return f"line {line}: expected panels over {COLUMNS} columns, found {width}"
    return None


def check_words(dashboard):
    for panel in panels_of(dashboard):
        for key in ("title", "description"):
            if not panel.get(key):
                return f"panel {panel['id']}: expected a {key}, found none"
        defaults = panel["fieldConfig"]["defaults"]
        if panel["type"] in ("stat", "timeseries") and not defaults.get("unit"):
            return f"{panel['title']}: expected a unit, found none"
        if panel["type"] == "table":
            units = [entry["value"] for override in panel["fieldConfig"]["overrides"]
                     for entry in override["properties"] if entry["id"] == "unit"]
            if len(units) != len(panel["targets"]):
                return f"{panel['title']}: expected a unit for each column, found {len(units)}"
        if panel["type"] == "stat" and not defaults["thresholds"]["steps"]:
            return f"{panel['title']}: expected thresholds, found none"
    titles = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"]
    first = dashboard["panels"][0]
    if first["type"] != "row" or len(titles) != len(set(titles)):
        return f"expected rows of different titles, the first at the top, found {titles}"
    return None


def check_portable(dashboard):
    if dashboard["schemaVersion"] < OLDEST_SCHEMA:
        return f"expected a schema of Grafana 10, found {dashboard['schemaVersion']}"
    if "id" in dashboard:
        return f"expected no id, which belongs to one Grafana, found {dashboard['id']}"
    host = HOST.search(json.dumps(dashboard))
    if host:
        return f"expected no host, found {host.group()}"
    for source in _values(dashboard, "datasource"):
        if source != {"type": "prometheus", "uid": "${datasource}"}:
            return f"expected the data source of the variable, found {source}"
    for colour in _values(dashboard, "color"):
        if isinstance(colour, str) and colour not in COLOURS:
            return f"expected a colour of the themes, found {colour}"
    numbers = [panel["id"] for panel in dashboard["panels"]]
    if len(numbers) != len(set(numbers)):
        return f"expected each panel id once, found {numbers}"
    return None


def check_variables(dashboard):
    known = {entry["name"] for entry in dashboard["templating"]["list"]}
    known |= {"__rate_interval", "__range", "__interval"}
    text = json.dumps(dashboard)
    used = set(re.findall(r"\$\{?(\w+)", text)) - {"__all"}
    if used - known:
        return f"expected variables of {sorted(known)}, found {sorted(used - known)}"
    unused = {entry["name"] for entry in dashboard["templating"]["list"]} - used
    return f"expected every variable to be used, found {sorted(unused)} nowhere" if unused else None


FILE_CHECKS = {"layout": check_layout, "words": check_words, "portable": check_portable,
               "variables": check_variables}


# ---- what Prometheus answers -------------------------------------------------------------------


def choices(dashboard, prometheus):
    """Variable -> its values, as Grafana would offer them. Raises ValueError on one without any."""
    chosen = {}
    for entry in dashboard["templating"]["list"]:
        if entry["type"] != "query":
            continue
        series, label = LABEL_VALUES.fullmatch(entry["query"]["query"]).groups()
        values = prometheus.label_values(substitute(series, chosen), label)
        if not values:
            raise ValueError(f"variable {entry['name']}: expected values, found none")
        chosen[entry["name"]] = values
    return chosen


def substitute(expr, chosen):
    """As Grafana does: one value as it is, several as a choice of a regular expression."""
    for name, values in chosen.items():
        escaped = [re.escape(value).replace("\\", "\\\\") for value in values]
        joined = values[0] if len(values) == 1 else f"({'|'.join(escaped)})"
        expr = expr.replace(f"${name}", joined)
    return (expr.replace("$__rate_interval", "1m").replace("$__range", "5m")
            .replace("$__interval", "1s"))


def repetitions(panel, chosen):
    """The choices of each copy of a panel that is repeated for every value of a variable."""
    name = panel.get("repeat")
    if not name:
        return [chosen]
    return [{**chosen, name: [value]} for value in chosen[name]]


def check_answer(panel, query, series):
    """The series must hold a number, and the labels that the panel shows."""
    if not series:
        return "expected data, found none"
    samples = [float(value) for one in series
               for _, value in one.get("values", [one.get("value")])]
    if not any(math.isfinite(sample) for sample in samples):
        return f"expected a finite number, found only {sorted(set(map(str, samples)))}"
    shown = set(LABEL.findall(query["legendFormat"]))
    if panel["type"] == "table":
        shown |= set(panel["transformations"][1]["options"]["indexByName"])
    present = {label for one in series for label in one["metric"]}
    if shown - present - MAY_LACK:
        return f"expected the labels {sorted(shown)}, found {sorted(present)}"
    # Lines of one name cannot be told apart.
    if panel["type"] == "timeseries":
        names = [LABEL.sub(lambda label: one["metric"].get(label[1], ""), query["legendFormat"])
                 for one in series]
        if len(names) != len(set(names)):
            return f"expected a name for each line, found {sorted(names)}"
    return None
