#!/usr/bin/env python3
"""Every command of the documents is run, or named with the test that runs it; see README.md.

run.py PROGRAM        runs the commands with this tranche, and asks programs beside it for help
run.py --self-test    shows the test its own faults

Exit codes: 0 all is well, 1 something is not, 2 usage.
"""

import collections
import os
import pathlib
import re
import sys
import tempfile

import documents
import places
import shell_text
import tables
import usage
import world

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = ("commands", "run", "elsewhere", "named", "failed")
ASKED_FOR_HELP = re.compile(r"tranche(-\w+)?$")
# Between backticks these name what runs in a cluster, or for ever.
NAMES_ALONE = ("tranche serve", "tranche probe", "tranche reserve")
# Beside tranche itself, these are run.
RUN = {"tranche", "kubectl", "curl", "cat", "echo", "ln", "chmod", "command"}

Rows = collections.namedtuple("Rows", "fillings elsewhere exits answers_elsewhere",
                              defaults=((),) * 4)


def matches(row, command):
    return re.search(row.file, command.file) and re.search(row.text, command.text)


def without_numbers(line):
    """A line of an answer without what is another one each time: numbers, and widths of columns."""
    return re.sub(r"\d+", "0", " ".join(line.split()))


class Judge:
    """Decides of each command whether it is run, listed or wrong."""

    def __init__(self, place, rows):
        self._place, self._rows = place, rows
        self._usage = usage.Usage(place.folder, place.environment)
        self._answers, self._used, self.not_built = {}, set(), set()
        self.counts = collections.defaultdict(collections.Counter)
        self.failures = []

    def fail(self, where, what):
        self.failures.append(f"{where}: {what}")

    def _first(self, rows, command):
        for row in rows:
            if matches(row, command):
                self._used.add(row)
                return row
        return None

    def _filled(self, command):
        text = command.text
        for row in self._rows.fillings:
            if matches(row, command):
                self._used.add(row)
                text = re.sub(row.text, row.by, text)
        return text

    def _asked(self, call):
        """A call as the program sees it that is asked for its help, or nothing."""
        name = pathlib.PurePath(call[0]).name
        if name == "kubectl" and call[1:2] == ["tranche"]:
            return call[1:]
        if not ASKED_FOR_HELP.match(name):
            return None
        if (self._place.names / name).exists():
            return [name, *call[1:]]
        self.not_built.add(name)
        return None

    def judge_document(self, file, text, paths):
        for command in documents.commands_of(file, text):
            self.judge(command)
        for line, path in paths.unknown(text):
            self.fail(f"{file}:{line}: {path}", "expected a path of the API's description")

    def judge(self, command):
        count = self.counts[command.file]
        count["commands"] += 1
        text = self._filled(command)
        wrong, lacks = list(places.wrong_words(ROOT, command)), False
        for call in shell_text.calls(text):
            asked = self._asked(call)
            if asked:
                found, incomplete = self._usage.check(asked)
                wrong += found
                lacks = lacks or incomplete
        kind = self._kind(command, text, lacks)
        if kind == "run" and not wrong:
            wrong += self._run(command, text)
        count[kind or "failed"] += 1
        if not kind:
            wrong.append("expected this command to be run or listed in tables.py")
        elif wrong:
            count["failed"] += 1
        for what in wrong:
            self.fail(f"{command.file}:{command.line}: {command.text}", what)

    def _kind(self, command, text, lacks):
        if self._first(self._rows.elsewhere, command):
            return "elsewhere"
        if command.inline and (lacks or text.startswith(NAMES_ALONE)):
            return "named"
        programs = [call[0] for call in shell_text.calls(text)]
        return "run" if programs and set(programs) <= RUN else None

    def _run(self, command, text):
        row = self._first(self._rows.exits, command)
        wanted = row.code if row else 0
        if (text, wanted) not in self._answers:
            if text.startswith("tranche serve "):
                port = world.free_port()
                text_here = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
                answer = self._place.run_server(text_here, port)
            else:
                here = re.sub(r"(127\.0\.0\.1|localhost):8080", f"127.0.0.1:{self._place.port}",
                              text)
                answer = self._place.run(here)
            self._answers[text, wanted] = answer
        code, output = self._answers[text, wanted]
        if code != wanted:
            told = output.strip()[-500:]
            return [f"expected exit code {wanted}, found {code}: {told or 'it says nothing'}"]
        if not command.shown or self._first(self._rows.answers_elsewhere, command):
            return []
        said = {without_numbers(line) for line in output.splitlines()}
        return [f"expected the answer to have the line that is shown, found none like: {line}"
                for line in command.shown if without_numbers(line) not in said]

    def judge_tables(self):
        """Rows that are for nothing any more, and tests that are not there."""
        for row in (row for rows in self._rows for row in rows):
            if row not in self._used:
                self.fail(f"tables.py: {row.file!r}, {row.text!r}",
                          "expected a command that this row is for, found none")
        for row in (*self._rows.elsewhere, *self._rows.answers_elsewhere):
            if not row.by.startswith(tables.NOBODY) and not (ROOT / row.by).exists():
                self.fail(f"tables.py: {row.file!r}, {row.text!r}",
                          f"expected a test, found no {row.by}")


def print_counts(counts):
    rows = [("file", *COLUMNS)]
    total = collections.Counter()
    for file, count in counts.items():
        rows.append((file, *(str(count[column]) for column in COLUMNS)))
        total.update(count)
    rows.append(("all", *(str(total[column]) for column in COLUMNS)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells))


def check_documents(binary, folder):
    with world.World(binary, folder) as place:
        rows = Rows(tables.fillings(place), tables.ELSEWHERE, tables.EXITS,
                    tables.ANSWERS_ELSEWHERE)
        judge = Judge(place, rows)
        paths = places.Paths(ROOT)
        for file in documents.documents(ROOT):
            judge.judge_document(file, (ROOT / file).read_text(encoding="utf-8"), paths)
        judge.judge_tables()
        return judge


def main():
    if sys.argv[1:] == ["--self-test"]:
        import self_test  # It imports this file in turn.
        wrong = self_test.faults()
        print("\n".join([*wrong, f"docs: self-test, {len(wrong)} failed"]))
        return 1 if wrong else 0
    if len(sys.argv) != 2 or not os.access(sys.argv[1], os.X_OK):
        print("usage: run.py PROGRAM | --self-test", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        judge = check_documents(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(name))
    print_counts(judge.counts)
    for name in sorted(judge.not_built):
        print(f"SKIPPED the options of {name}, which is not built")
        if os.environ.get("TRANCHE_CI") == "1":
            judge.fail(name, "expected it to be built")
    for failure in judge.failures:
        print(f"FAILED  {failure}")
    print(f"docs: {len(judge.failures)} failed")
    return 1 if judge.failures else 0


if __name__ == "__main__":
    sys.exit(main())
