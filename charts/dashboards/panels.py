"""Grafana's dashboard model (schema 38, Grafana 10 and later), as little of it as we use.

A dashboard is rows of panels; panels flow from left to right over 24 columns. Every panel asks the
data source of the variable `datasource`, and says in words what it shows. Colours are Grafana's
names, which suit its light and its dark theme.
"""

COLUMNS = 24
SCHEMA_VERSION = 38
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

GPUS = "none"
PODS = "none"
NUMBER = "none"
SECONDS = "s"
RATIO = "percentunit"
BYTES = "bytes"
CELSIUS = "celsius"
WATT = "watt"
PER_SECOND = "ops"
MOMENT = "dateTimeAsIso"
MONEY = "suffix: /h"  # the currency is the line's name
HOURS = "suffix: GPU-h"  # Grafana's own hours become days and years


def target(expr, legend="", instant=False, table=False):
    """One query. `table`: a row for each series, as tables want it."""
    query = {"datasource": DATASOURCE, "expr": " ".join(expr.split()), "legendFormat": legend,
             "range": not instant, "instant": instant}
    if table:
        query["format"] = "table"
    return query


def steps(*limits):
    """Thresholds: the first colour, then pairs (from this value on, colour)."""
    first, *rest = limits
    return {"mode": "absolute", "steps": [{"color": first, "value": None}] +
            [{"color": colour, "value": value} for value, colour in rest]}


def _panel(kind, title, description, queries, width, height, defaults, options, overrides=()):
    for letter, query in zip("ABCDEFGHIJ", queries, strict=False):
        query["refId"] = letter
    return {"type": kind, "title": title, "description": description, "datasource": DATASOURCE,
            "targets": queries, "gridPos": {"w": width, "h": height},
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
            "options": options}


def stat(title, description, expr, unit=NUMBER, limits=("text",), width=4, names=None,
         decimals=None):
    """One number. `names`: value -> (text, colour), for numbers that stand for words."""
    defaults = {"unit": unit, "thresholds": steps(*limits), "color": {"mode": "thresholds"}}
    if decimals is not None:
        defaults["decimals"] = decimals
    if names:
        defaults["mappings"] = [{"type": "value", "options": {
            str(value): {"text": text, "color": colour, "index": index}
            for index, (value, (text, colour)) in enumerate(names.items())}}]
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
               "colorMode": "value", "graphMode": "area", "textMode": "auto",
               "justifyMode": "auto", "orientation": "auto"}
    return _panel("stat", title, description, [target(expr)], width, 4, defaults, options)


def graph(title, description, queries, unit=NUMBER, width=12, stacked=False, height=8, limits=None,
          dashed=None, minimum=0, maximum=None, repeat=None):
    """Lines over time. `dashed`: a pattern of the names to draw as a dashed line without area.
    `repeat`: the variable of which each value gets a panel of its own."""
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 30 if stacked else 10,
              "showPoints": "never", "spanNulls": False,
              "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
    defaults = {"unit": unit, "custom": custom, "color": {"mode": "palette-classic"}}
    if minimum is not None:
        defaults["min"] = minimum
    if maximum is not None:
        defaults["max"] = maximum
    if limits:
        defaults["thresholds"] = steps(*limits)
        custom["thresholdsStyle"] = {"mode": "dashed"}
    overrides = [] if dashed is None else [
        {"matcher": {"id": "byRegexp", "options": dashed}, "properties": [
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
            {"id": "custom.fillOpacity", "value": 0},
            {"id": "custom.stacking", "value": {"mode": "none", "group": "B"}}]}]
    options = {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True,
                          "calcs": ["lastNotNull", "max"]},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    made = _panel("timeseries", title, description, [target(*query) for query in queries], width,
                  height, defaults, options, overrides)
    if repeat:
        made.update(repeat=repeat, repeatDirection="h", maxPerRow=2)
    return made


def heatmap(title, description, expr, width=12):
    """How often what took how long; `expr` gives a series for each bucket."""
    query = target(expr, "{{le}}")
    query["format"] = "heatmap"
    options = {"calculate": False, "cellGap": 1, "yAxis": {"unit": SECONDS},
               "rowsFrame": {"layout": "auto"}, "filterValues": {"le": 1e-9},
               "color": {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5},
               "tooltip": {"show": True}, "legend": {"show": True}}
    return _panel("heatmap", title, description, [query], width, 8, {}, options)


def table(title, description, keys, columns, width=24, height=8):
    """A row for each set of `keys` (labels). `columns`: (name, expr, unit[, thresholds])."""
    queries = [target(expr, instant=True, table=True) for _, expr, *_ in columns]
    overrides = []
    for letter, (name, _, unit, *limits) in zip("ABCDEFGHIJ", columns, strict=False):
        properties = [{"id": "displayName", "value": name}, {"id": "unit", "value": unit}]
        if limits:
            properties += [{"id": "thresholds", "value": steps(*limits[0])},
                           {"id": "custom.cellOptions", "value": {"type": "color-text"}}]
        value = f"Value #{letter}" if len(columns) > 1 else "Value"
        overrides.append({"matcher": {"id": "byName", "options": value},
                          "properties": properties})
    made = _panel("table", title, description, queries, width, height,
                  {"custom": {"align": "auto"}, "decimals": 2, "color": {"mode": "thresholds"}},
                  {"showHeader": True, "footer": {"show": False}}, overrides)
    made["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {
            "excludeByName": {"Time": True},
            "indexByName": {key: index for index, key in enumerate(keys)}}}]
    return made


def variable(name, label, query, multi=True):
    """Values to choose from, read from a label of a series."""
    made = {"type": "query", "name": name, "label": label, "datasource": DATASOURCE,
            "definition": query, "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
            "multi": multi, "includeAll": multi, "hide": 0, "regex": "", "options": []}
    if multi:
        made.update(allValue=".+", current={"text": ["All"], "value": ["$__all"], "selected": True})
    return made


def dashboard(uid, title, description, variables, rows):
    """`rows`: (title, panels)."""
    panels, top = [], 0
    for row_title, members in rows:
        panels.append({"type": "row", "title": row_title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}})
        top += 1
        left, tallest = 0, 0
        for panel in members:
            place = panel["gridPos"]
            if left + place["w"] > COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            place.update(x=left, y=top)
            left += place["w"]
            tallest = max(tallest, place["h"])
            panels.append(panel)
        top += tallest
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    source = {"type": "datasource", "name": "datasource", "label": "Data source",
              "query": "prometheus", "refresh": 1, "regex": "", "hide": 0, "multi": False,
              "includeAll": False, "options": [], "current": {}}
    return {
        "uid": uid, "title": title, "description": description, "tags": ["tranche", "gpu"],
        "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": True, "graphTooltip": 1,
        "timezone": "browser", "refresh": "30s", "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source, *variables]}, "annotations": {"list": []},
        "links": [{"type": "dashboards", "title": "Tranche", "tags": ["tranche"], "url": "",
                   "icon": "external link", "asDropdown": False, "includeVars": False,
                   "keepTime": True, "targetBlank": False, "tooltip": ""}],
        "panels": panels,
    }
