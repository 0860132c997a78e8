"""Breaches that the tree still has, by rule and folder: `known.txt`. A number may only fall.

A row of the file is: rule, folder, how many. It counts for all below the folder.
"""

import collections

PATH = "test/tidy/known.txt"


def _rows(files, rule):
    rows = {}
    if PATH in files:
        for line in files[PATH].text.splitlines():
            words = line.split("#")[0].split()
            if len(words) == 3 and words[0] == rule:
                rows[words[1]] = int(words[2])
    return rows


def beyond(files, rule, reports):
    """Passes reports on, but for folders that have exactly as many as known."""
    rows = _rows(files, rule)
    by_folder = collections.defaultdict(list)
    for report in reports:
        folders = [folder for folder in rows if report[0].startswith(folder + "/")]
        by_folder[max(folders, key=len, default=None)].append(report)
    yield from by_folder.pop(None, [])
    for folder, count in sorted(rows.items()):
        found = by_folder[folder]
        if len(found) > count:
            for path, line, text in found:
                yield path, line, f"{text} (known below {folder}: {count}, found {len(found)})"
        elif len(found) < count or count == 0:
            yield PATH, 1, (f"expected {rule} {folder} to be lowered to {len(found)}"
                            if found else f"expected no row {rule} {folder}: it has none left")
