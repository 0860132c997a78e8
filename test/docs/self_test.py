"""Shows the test documents with faults, which it must find, and some without."""

import pathlib
import tempfile

import documents
import places
import run
import shell_text
import tables
import usage

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = "scheduler/docs/planted.md"
BLOCK = "```\n{}\n```\n"

# A stand-in for tranche: it has two commands, says what it knows, and refuses what it does not.
PROGRAM = """#!/bin/sh
case "$1 $2" in
  "nodes --help") printf 'Usage: tranche nodes\\n\\nPositionals:\\n  name NODE ...  these\\n
Options:\\n  -h,--help  help\\n  -o,--output json|wide  how\\n  -w,--watch  go on\\n' ;;
  "explain --help") printf 'Usage: tranche explain\\n\\nPositionals:\\n  pod POD REQUIRED  it\\n
Options:\\n  -h,--help  help\\n  --rank  where it stands\\n' ;;
  *--help*) printf 'Usage: tranche\\n\\nOptions:\\n  -h,--help  help\\n
Ask:\\n  nodes      the nodes\\n  explain    why\\n' ;;
  "explain gone/pod") echo no; exit 1 ;;
  "nodes ") printf 'NAME   FREE\ngpu-1    17\n' ;;
esac
"""

# A document's text, and what is said of it.
PLANTED = [
    (BLOCK.format("tranche nodes"), None),
    (BLOCK.format("tranche nodes -o wide   # all --wrong of them"), None),
    (BLOCK.format("tranche nodes --wrong"), "planted.md:2: tranche nodes --wrong: expected an op"),
    (BLOCK.format("tranche nodes \\\n  --wrong"), "found --wrong"),
    (BLOCK.format("cat F | tranche nodes --wrong"), "found --wrong"),
    (BLOCK.format("cat $(tranche nodes --wrong)"), "found --wrong"),
    (BLOCK.format("$ tranche nodes\nNAME  FREE\n$ tranche nodes --wrong"), "planted.md:4"),
    (BLOCK.format("$ tranche nodes\nNAME  FREE\ngpu-1 4"), None),
    (BLOCK.format("$ tranche nodes\nNAME  USED\ngpu-1 4"), "found none like: NAME  USED"),
    ("Text.\n\n    tranche nodes --wrong\n", "planted.md:3"),
    ("Ask `tranche\nnodes --wrong` for it.\n", "planted.md:1"),
    ("Ask `explain a/b --wrong` for it.\n", "found --wrong"),
    ("`tranche explain` and `tranche nodes -o` are names.\n", None),
    ("`tranche explain --wrong` is no name.\n", "found --wrong"),
    ("`tranche-words` are no command.\n", None),
    (BLOCK.format("tranche node"), "expected a command of tranche, found node"),
    (BLOCK.format("tranche explain gone/pod"), "expected exit code 0, found 1: no"),
    (BLOCK.format("kubectl tranche nodes --wrong"), "found --wrong"),
    (BLOCK.format("helm install other"), "expected this command to be run or listed"),
    (BLOCK.format("kubectl get pods"), None),
    (BLOCK.format("kubectl get gpuqotas"), "expected the name of a resource, found gpuqotas"),
    (BLOCK.format("tranche nodes\nsomething: else"), "planted.md:3"),
    (BLOCK.format("NAME  FREE\ntranche nodes --wrong"), None),
    ("```yaml\ntranche nodes --wrong\n```\n", None),
    (BLOCK.format("cat <<'END'\ntranche nodes --wrong\nEND\ntranche nodes"), None),
    (BLOCK.format("test/run.sh quick"), None),
    (BLOCK.format("test/run.sh quack"), "expected a word that run.sh knows, found quack"),
    (BLOCK.format("test/runs.sh"), "expected a file of the tree, found no test/runs.sh"),
    (BLOCK.format("cmake --preset releases"), "expected one of configurePresets, found releases"),
    (BLOCK.format("cmake --build --preset release --target tranches"),
     "expected a name of a CMakeLists.txt, found tranches"),
    (BLOCK.format("build/torture_tests --gtest_filter='PowerCut*'"), None),
    (BLOCK.format("build/torture_tests --gtest_filter='PowerCat*'"), "found PowerCat"),
    (BLOCK.format("helm install --set image.repository=R,image.tag=1"), None),
    (BLOCK.format("helm install --set image.repositories=R"), "found image.repositories"),
    (BLOCK.format("ctest --preset release -L unit_test"), "found unit_test"),
    (BLOCK.format("cd test/e2e && go test -run TestNothing ."), "found TestNothing"),
    (BLOCK.format("kubectl create rolebinding v --clusterrole tranche-view"),
     "expected a ClusterRole of charts/, found tranche-view"),
    ("GET `/api/v1/nodes/NAME` answers.\n", None),
    ("GET `/api/v1/node` answers.\n", "/api/v1/node: expected a path of the API's description"),
]

LISTED = [tables.Elsewhere("", r"^(test/runs?\.sh|cmake |ctest |cd |build/|helm install --set)",
                           tables.NOBODY + "it is long"),
          tables.Elsewhere("", r"^kubectl (get|create)", "test/docs/run.py")]
STALE = [
    ("elsewhere", tables.Elsewhere("", "^tranche forgotten", "test/docs/run.py"), "found none"),
    ("elsewhere", tables.Elsewhere("", "^tranche nodes", "test/gone"), "found no test/gone"),
    ("answers_elsewhere", tables.Elsewhere("", "^tranche old", "test/docs"), "found none"),
    ("fillings", tables.Filling("", "FORGOTTEN", "it"), "found none"),
    ("exits", tables.Exit("", "forgotten", 1), "found none")]


class Place:
    """Runs what it is given with the stand-in; what is asked of a cluster succeeds."""

    def __init__(self, folder):
        self.folder, self.names, self.port = folder, folder, 1
        for name in ("tranche", "kubectl"):
            (folder / name).write_text(PROGRAM, encoding="utf-8")
            (folder / name).chmod(0o755)
        self.environment = {"PATH": f"{folder}:/usr/bin:/bin"}

    def run(self, text):
        found = usage.output_of(["sh", "-c", text], self.folder, self.environment)
        return found.returncode, found.stdout


def failures_of(place, text, rows=None):
    """What is said of a document's text; with rows of the tables, also of these."""
    rows = rows or run.Rows()
    judge = run.Judge(place, rows._replace(elsewhere=[*rows.elsewhere, *LISTED]))
    judge.judge_document(FILE, text, places.Paths(ROOT))
    if any(rows):
        judge.judge_tables()
    return judge.failures


def faults():
    """What is wrong with the test itself."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        place = Place(pathlib.Path(name))
        for text, wanted in PLANTED:
            found = failures_of(place, text)
            if bool(found) != bool(wanted) or wanted and wanted not in "\n".join(found):
                wrong.append(f"expected {wanted}, found {found}, in {text!r}")
        for kind, row, wanted in STALE:
            found = failures_of(place, BLOCK.format("tranche nodes"), run.Rows(**{kind: [row]}))
            if not any(repr(row.text) in what and wanted in what for what in found):
                wrong.append(f"expected {wanted}, found {found}, of {row}")
    if not documents.documents(ROOT):
        wrong.append("expected documents, found none")
    if shell_text.calls("a=$(b c) nice -n 5 d <e | f && g >h") != \
            [["b", "c"], ["d"], ["f"], ["g"]]:
        wrong.append("expected the calls of a line, found others")
    return wrong
