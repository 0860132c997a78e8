#!/usr/bin/python3
"""The documents as a web site: pages that need no server and no script.

    release/docs_site.py --out DIR [--source URL]

DIR is made, or must be empty. Besides the documents it has pages made of what they are about: the
fields of the custom resources, the metrics, the alerts. A link or an anchor that leads nowhere is
an error, and so is a page that no other leads to. Links to files that are no documents go to
--source (".../blob/main/"), without it they are plain text. The same tree gives the same bytes.

Needs python3-markdown and python3-yaml, of the distribution as its python3 is.
"""

import argparse
import html
import json
import os
import pathlib
import re
import sys

import markdown
import yaml
from markdown.extensions.toc import TocExtension

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = "scheduler/docs"
INDEX = f"{DOCS}/README.md"
# Documents outside of that folder, by the page each becomes.
OTHERS = {
    "README.md": "about.html",
    "CHANGELOG.md": "changelog.html",
    "CONTRIBUTING.md": "contributing.html",
    "SECURITY.md": "reporting.html",
    "charts/README.md": "chart.html",
    "charts/tranche/README.md": "chart-values.html",
    "scheduler/server/README.md": "configuration.html",
    "release/README.md": "release.html",
    "bench/README.md": "benchmarks.html",
    "bench/RESULTS.md": "results.html",
}
REFERENCE = {"crds.html": "Custom resources", "metrics.html": "Metrics", "alerts.html": "Alerts"}
LINK = re.compile(r'(<a href=")([^"]+)(")')
IMAGE = re.compile(r'(<img [^>]*src=")([^"]+)(")')
ANCHOR = re.compile(r' id="([^"]+)"')
SERIES = re.compile(r'inline constexpr Series \w+ = \{\s*((?:"(?:[^"\\]|\\.)*"[\s,]*)+)\};')
STYLE = (pathlib.Path(__file__).resolve().parent / "docs_site.css").read_text()


class Faults(list):
    def expect(self, page, expected, found):
        self.append(f"{page}: expected {expected}, found {found}")


def anchor_of(text, separator):
    """As GitHub makes them of headings, which the documents link to."""
    kept = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return kept.replace(" ", separator)


def pages_of(root):
    """Documents by their path in the tree, with the page each becomes."""
    pages = {INDEX: "index.html"}
    for path in sorted((root / DOCS).glob("*.md")):
        pages.setdefault(f"{DOCS}/{path.name}", path.stem.lower().replace("_", "-") + ".html")
    for path in sorted((root / DOCS / "adr").glob("*.md")):
        pages[f"{DOCS}/adr/{path.name}"] = f"adr-{path.stem}.html"
    for name, page in OTHERS.items():
        if (root / name).exists():
            pages[name] = page
    return pages


def render(text):
    return markdown.markdown(text, output_format="html5", extensions=[
        "tables", "fenced_code", "sane_lists", TocExtension(slugify=anchor_of)])


def title_of(text, otherwise):
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found.group(1).replace("`", "") if found else otherwise


def text_of(value):
    return html.escape(" ".join(str(value).split()), quote=False)


def rows(titles, cells):
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bounds_of(schema):
    """What a value must be besides its type."""
    said = []
    if "enum" in schema:
        said.append(", ".join(str(value) for value in schema["enum"]))
    for least, most, unit in (("minimum", "maximum", ""), ("minItems", "maxItems", " items"),
                              ("minLength", "maxLength", " characters"),
                              ("minProperties", "maxProperties", " members")):
        if least in schema and most in schema:
            said.append(f"{schema[least]} to {schema[most]}{unit}")
        elif least in schema or most in schema:
            word = "at least" if least in schema else "at most"
            said.append(f"{word} {schema.get(least, schema.get(most))}{unit}")
    if "pattern" in schema:
        said.append(f"<code>{text_of(schema['pattern'])}</code>")
    if "default" in schema:
        said.append(f"default <code>{text_of(json.dumps(schema['default']))}</code>")
    return "; ".join(said)


def fields_of(schema, path=""):
    required = set(schema.get("required", []))
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        inner = field
        shown = here
        while inner.get("type") == "array" and "items" in inner:
            inner = inner["items"]
            shown += "[]"
        kind = field.get("type") or ("number or text" if field.get("x-kubernetes-int-or-string")
                                     else "any of several")
        rules = "".join(f"<li>{text_of(rule.get('message', rule['rule']))}</li>"
                        for rule in field.get("x-kubernetes-validations", []))
        yield [f"<code>{shown}</code>", kind + (", required" if name in required else ""),
               bounds_of(inner),
               text_of(field.get("description", "")) + (f"<ul>{rules}</ul>" if rules else "")]
        yield from fields_of(inner, shown)


def crds_page(root):
    text = ["<h1>Custom resources</h1>",
            "<p>Every field, made of the definitions. What they are for is in the "
            '<a href="admin-guide.html">guide for administrators</a>.</p>']
    for path in sorted((root / "charts/tranche/crds").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text())["spec"]
        kind = crd["names"]["kind"]
        for version in crd["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            whose = "of the cluster" if crd["scope"] == "Cluster" else "of a namespace"
            text.append(f'<h2 id="{kind.lower()}">{kind}</h2><p>{text_of(schema["description"])} '
                        f'{crd["group"]}/{version["name"]}, {whose}.</p>')
            shown = {"properties": {name: schema["properties"][name] for name in ("spec", "status")
                                    if name in schema["properties"]}}
            text.append(rows(["field", "type", "bounds", "meaning"], fields_of(shown)))
    return "".join(text)


def metrics_page(root):
    series = []
    for found in SERIES.finditer((root / "scheduler/metrics/names.h").read_text()):
        parts = re.findall(r'"((?:[^"\\]|\\.)*)"', found.group(1))
        series.append((parts[0], "".join(parts[1:])))
    if not series:
        sys.exit("site: expected series in scheduler/metrics/names.h, found none")
    table = rows(["metric", "meaning"],
                 ([f"<code>{name}</code>", text_of(help_text)] for name, help_text in series))
    return ("<h1>Metrics</h1><p>What <code>/metrics</code> tells, by the names in the program. "
            "Counters end in <code>_total</code>. "
            'What to watch is in <a href="operations.html">operations</a>.</p>' + table)


def alerts_page(root, faults, anchors):
    rules = yaml.safe_load((root / "charts/tranche/rules/alerts.yaml").read_text())
    cells = []
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "alert" not in rule:
                continue
            notes = rule["annotations"]
            file, _, anchor = notes["runbook"].partition("#")
            page = pathlib.PurePath(file).stem.lower() + ".html"
            if anchor not in anchors.get(page, ()):
                faults.expect("alerts.html", f"a runbook for {rule['alert']}", notes["runbook"])
            cells.append([f'<a href="{page}#{anchor}">{rule["alert"]}</a>',
                          text_of(rule.get("labels", {}).get("severity", "")),
                          f"<code>{text_of(rule['expr'])}</code>", text_of(notes["summary"])])
    return ("<h1>Alerts</h1><p>The rules of the chart; each leads to what is to be done.</p>"
            + rows(["alert", "severity", "fires where", "meaning"], cells))


def relative(target, source):
    return pathlib.PurePosixPath(os.path.normpath((pathlib.PurePosixPath(source).parent / target)))


def with_links(body, source, pages, root, base, faults):
    """Links of the document at `source` as the site has them; and where they lead."""
    led = set()

    def link(found):
        before, target, after = found.groups()
        if re.match(r"[a-z]+:", target):
            return found.group(0)
        path, _, anchor = target.partition("#")
        file = str(relative(path, source)) if path else source
        if (root / file).is_dir() and f"{file}/README.md" in pages:
            file += "/README.md"
        if file in pages:
            led.add((pages[file], anchor))
            return f"{before}{pages[file]}{'#' + anchor if anchor else ''}{after}"
        if not (root / file).exists():
            faults.expect(source, "a file of the tree", target)
        if base:
            return f"{before}{base}{file}{after}"
        return '<a class="file' + after

    return LINK.sub(link, body), led


def with_titles(body, titles):
    """Where a link is called as its file is, it is called as the document."""
    def named(found):
        before, page, anchor, after = found.groups()
        return f"{before}{page}{anchor or ''}{after}{html.escape(titles[page])}</a>"
    return re.sub(r'(<a href=")([\w.-]+\.html)(#[^"]*)?(">)[\w./-]+\.md</a>', named, body)


def copy_images(body, source, root, out, faults):
    def image(found):
        before, target, after = found.groups()
        if re.match(r"[a-z]+:", target):
            return found.group(0)
        path = root / str(relative(target, source))
        if not path.exists():
            faults.expect(source, "an image of the tree", target)
            return found.group(0)
        (out / path.name).write_bytes(path.read_bytes())
        return f"{before}{path.name}{after}"
    return IMAGE.sub(image, body)


def navigation(index_body):
    """The table of the index, whose first column says what for, as a list."""
    lines = []
    for wish, cell in re.findall(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*</tr>", index_body,
                                 re.DOTALL):
        links = re.findall(r'<a href="([^"]+\.html(?:#[^"]*)?)">(.*?)</a>', cell)
        if links:
            items = "".join(f'<li><a href="{href}">{name[:1].upper() + name[1:]}</a></li>'
                            for href, name in links)
            lines.append(f"<p>{wish}</p><ul>{items}</ul>")
    reference = "".join(f'<li><a href="{page}">{title}</a></li>'
                        for page, title in REFERENCE.items())
    more = "".join(f'<li><a href="{page}">{name}</a></li>' for page, name in (
        ("about.html", "About"), ("configuration.html", "Configuration"),
        ("chart.html", "Chart"), ("changelog.html", "Changes")))
    return f'{"".join(lines)}<p>look it up</p><ul>{reference}{more}</ul>'


def whole(title, nav, body):
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self';
 img-src 'self'; base-uri 'none'; form-action 'none'">
<title>{html.escape(title)} – Tranche</title>
<link rel="stylesheet" href="site.css">
</head>
<body>
<header><a href="index.html">Tranche</a>
<a class="to-nav" href="#documents">All documents</a></header>
<div class="columns">
<main>{body}</main>
<nav id="documents" aria-label="Documents">{nav}</nav>
</div>
</body>
</html>
"""


def wide(body):
    """Tables and listings scroll by themselves, also by keyboard, so that the page never does."""
    body = body.replace("<table>", '<div class="wide" tabindex="0" role="group" '
                        'aria-label="Table"><table>').replace("</table>", "</table></div>")
    # The corner of a table that names nothing is no heading.
    body = re.sub(r"<th( [^>]*)?></th>", r"<td\1></td>", body)
    return body.replace("<pre>", '<pre tabindex="0">')


def make(root, out, base):
    faults = Faults()
    pages = pages_of(root)
    bodies, titles, led = {}, {}, {}
    for source, page in pages.items():
        text = (root / source).read_text()
        titles[page] = title_of(text, source)
        body, led[page] = with_links(render(text), source, pages, root, base, faults)
        bodies[page] = copy_images(body, source, root, out, faults)
    anchors = {page: set(ANCHOR.findall(body)) for page, body in bodies.items()}
    for page, title in REFERENCE.items():
        titles[page] = title
    bodies["crds.html"] = crds_page(root)
    bodies["metrics.html"] = metrics_page(root)
    bodies["alerts.html"] = alerts_page(root, faults, anchors)
    for page, targets in led.items():
        for target, anchor in sorted(targets):
            if anchor and anchor not in anchors[target]:
                faults.expect(page, f"an anchor of {target}", f"#{anchor}")
    bodies = {page: with_titles(body, titles) for page, body in bodies.items()}
    nav = navigation(bodies["index.html"])
    reached = {target for targets in led.values() for target, _ in targets}
    reached |= set(re.findall(r'href="([\w.-]+\.html)', nav)) | {"index.html"}
    for page in sorted(set(bodies) - reached):
        if not page.startswith("adr-"):  # the folder of decisions is linked as one
            faults.expect(page, "a page that leads here", "none")
    decisions = sorted(page for page in bodies if page.startswith("adr-"))
    items = (f'<li><a href="{page}">{html.escape(titles[page])}</a></li>' for page in decisions)
    bodies["decisions.html"] = f"<h1>Decisions</h1><ul>{''.join(items)}</ul>"
    titles["decisions.html"] = "Decisions"
    bodies["index.html"] = re.sub(r'<a [^>]*>decisions</a>',
                                  '<a href="decisions.html">decisions</a>', bodies["index.html"])
    changes = '<li><a href="changelog.html">'
    nav = nav.replace(changes, f'<li><a href="decisions.html">Decisions</a></li>{changes}')
    for page, body in sorted(bodies.items()):
        here = nav.replace(f'<a href="{page}">', f'<a href="{page}" aria-current="page">')
        (out / page).write_text(whole(titles[page], here, wide(body)))
    (out / "site.css").write_text(STYLE)
    return faults, len(bodies)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--source", default="", help="where files of the tree are shown")
    given = parser.parse_args()
    if given.source and not given.source.endswith("/"):
        given.source += "/"
    given.out.mkdir(parents=True, exist_ok=True)
    if any(given.out.iterdir()):
        sys.exit(f"site: expected an empty folder, found files in {given.out}")
    faults, pages = make(ROOT, given.out, given.source)
    for fault in faults:
        print(f"site: {fault}", file=sys.stderr)
    print(f"{pages} pages in {given.out}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
