"""Small trees for every rule: bad ones must be reported, good ones must not.

A row is (rule, is it bad, {path: text}). Files whose text starts with "+x " are executable.
"""

import rules

_LONG = "int a;  // " + "x" * 100 + "\n"
_UNORDERED = "std::unordered_map<int, int> by_id;\n"

_LONG_FUNCTION = "int F(int a) {\n" + "if (a) {\nUse();\n}\n" * 25 + "}\n"
_LONG_TABLE = "const int kTable[] = {\n" + "Row(1),\n" * 90 + "};\n"
# Two parts of the engine, of which the left one must not know the right one.
_LEFT, _RIGHT = [rooms[0] for rooms in rules.RANKS if rooms[0].startswith("scheduler/engine/")][:2]
_DECISION = "# 0001: A\n\nStatus: accepted\n\n## Context\n\n## Decision\n\n## Consequences\n"
_QUOTA_TABLE = ("| room | a |\n|---|---|\n| `tree/` | a |\n| `budget/` | a |\n"
                "| `preemption/` | a |\n")


def _scheduler_table():
    """A table of the rooms of scheduler/, in which http sees little and the others see engine."""
    names = {room.split("/")[1]: rank for room, rank in rules.RANK_OF.items()
             if room.startswith("scheduler/")}
    rows = ["| room | a | may include |", "|---|---|---|"]
    for name, rank in sorted(names.items(), key=lambda item: item[1]):
        sees = "quota"
        if rank > rules.RANK_OF["scheduler/engine"]:
            sees = "topology/base" if name == "http" else "engine"
        if rank > rules.RANK_OF["scheduler/wire/protocol"]:
            sees = "topology/base" if name == "http" else "wire, engine"
        rows.append(f"| `{name}/` | a | {sees} |")
    return "\n".join(rows) + "\n"


_TABLE = _scheduler_table()

EXAMPLES = [
    ("layers", True, {"topology/a.cc": '#include "quota/b.h"\n'}),
    ("layers", True, {"topology/base/a.h": '#include "topology/gpu.h"\n'}),
    ("layers", True, {"scheduler/http/a.cc": '#include "scheduler/kube/b.h"\n'}),
    ("layers", True, {"scheduler/ports/a.h": '#include "scheduler/wire/json/b.h"\n'}),
    ("layers", True, {"scheduler/wire/nodes/a.cc": '#include "scheduler/wire/records/b.h"\n'}),
    ("layers", True, {"scheduler/wire/claims/a.cc": '#include "scheduler/wire/pods/b.h"\n'}),
    ("layers", True, {"quota/tree/a.cc": '#include "quota/budget/b.h"\n'}),
    ("layers", True, {"scheduler/controllers/a.h": '#include "scheduler/api/b.h"\n'}),
    ("layers", True, {"scheduler/api/a.cc": '#include "scheduler/cli/b.h"\n'}),
    ("layers", True, {"scheduler/server/a.cc": '#include "test/fakes/b.h"\n'}),
    ("layers", False, {"quota/a.cc": '#include "topology/b.h"\n#include "quota/c.h"\n'}),
    ("layers", False, {"scheduler/kube/a.cc": '#include "scheduler/wire/json/b.h"\n'}),
    ("layers", False, {"test/unit/a_test.cc": '#include "scheduler/server/b.h"\n'}),

    ("libraries", True, {"scheduler/engine/a.cc": "#include <boost/asio.hpp>\n"}),
    ("libraries", True, {"scheduler/http/a.cc": "#include <sqlite3.h>\n"}),
    ("libraries", True, {"policy/decode.h": '#include "simdjson.h"\n'}),
    ("libraries", True, {"quota/a.cc": '#include "absl/container/btree_map.h"\n'}),
    ("libraries", True, {"quota/a.cc": "#include <unistd.h>\n"}),
    ("libraries", True, {"scheduler/server/a.cc": "#include <newlib/thing.hpp>\n"}),
    ("libraries", False, {"policy/decode.cc": '#include "simdjson.h"\n#include <vector>\n'}),
    ("libraries", False, {"quota/a.cc": '#include "absl/status/status.h"\n#include <fmt/os.h>\n'}),
    ("libraries", False, {"scheduler/cli/a.cc": "#include <sys/stat.h>\n#include <CLI/CLI.hpp>\n"}),

    ("core", True, {"quota/a.cc": "#include <thread>\n"}),
    ("core", True, {"quota/a.cc": "auto t = Clock::now();\n"}),
    ("core", True, {"quota/a.cc": "const char* v = getenv(name);\n"}),
    ("core", False, {"topology/base/plant.h": "const char* v = getenv(name);\n"}),
    ("core", True, {"quota/a.cc": "int dice = rand();\n"}),
    ("core", True, {"topology/a.h": "double score = 0;\n"}),
    ("core", False, {"quota/a.cc": '// a double now() \nauto s = "float";\nint operand(int);\n'}),
    ("core", False, {"quota/a.cc": 'auto s = R"x(a "double" )" )x";\nint big = 1\'000\'000;\n'}),
    ("core", False, {"scheduler/http/a.cc": "#include <thread>\ndouble seconds;\n"}),

    ("unordered", True, {"quota/a.cc": _UNORDERED + "for (auto& [k, v] : by_id) Use(k);\n"}),
    ("unordered", True, {"quota/a.h": _UNORDERED, "quota/a.cc": "auto it = by_id.begin();\n"}),
    ("unordered", False, {"quota/a.cc": _UNORDERED + "auto it = by_id.find(7);\n"}),
    ("unordered", False, {"quota/a.cc": "std::map<int, int> m;\nfor (auto& e : m) Use(e);\n"}),

    ("size", True, {"quota/a.cc": _LONG}),
    ("size", True, {"quota/a.cc": "int a;\n" * 501}),
    ("size", False, {"quota/a.cc": "int a;\n" * 500, "docs/a.md": _LONG}),

    ("headers", True, {"quota/a.h": "// What it is.\nint a;\n"}),
    ("headers", True, {"quota/a.h": "#pragma once\nint a;\n"}),
    ("headers", False, {"quota/a.h": "// What it is.\n#pragma once\n"}),

    ("first_include", True, {"quota/a.h": "", "quota/a.cc": "#include <map>\n"
                             '#include "quota/a.h"\n'}),
    ("first_include", True, {"quota/a.h": "", "quota/a.cc": "int a;\n"}),
    ("first_include", False, {"quota/a.h": "", "quota/b.cc": "", "test/a.h": "", "test/a.cc": "",
                              "quota/a.cc": '#include "quota/a.h"\n#include <map>\n'}),

    ("readmes", True, {"quota/a.cc": ""}),
    ("readmes", True, {"quota/README.md": "text without a title\n"}),
    ("readmes", True, {"scheduler/README.md": "# S\n", "scheduler/wire/json/a.cc": ""}),
    ("readmes", False, {"quota/README.md": "# Quota\n", ".ci/run": "", "README.md": ""}),

    ("scripts", True, {"test/run.sh": "#!/usr/bin/env bash\nset -euo pipefail\n"}),
    ("scripts", True, {"test/run.sh": "+x #!/usr/bin/env bash\necho\n"}),
    ("scripts", True, {".ci/run": "#!/usr/bin/env bash\nset -euo pipefail\n"}),
    ("scripts", False, {"test/run.sh": "+x #!/usr/bin/env bash\nset -euo pipefail\n"}),

    ("finished", True, {"quota/a.cc": "// TO" "DO: later\n"}),
    ("finished", True, {"README.md": "FIX" "ME\n"}),
    ("finished", False, {"quota/a.cc": "// Todos are fine, FIXMEUP too.\n"}),

    ("paths", True, {"quota/a.cc": "// see /ho" "me/someone/notes\n"}),
    ("paths", True, {"README.md": "`/wo" "rk/tree`\n"}),
    ("paths", False, {"README.md": "`/var/lib/tranche`, build/work/x, https://a.b/home/x\n"}),

    ("units", True, {f"quota/u{n}.cc": "" for n in range(21)}),
    ("units", False, {f"quota/u{n}{suffix}": "" for n in range(20) for suffix in (".h", ".cc")}),

    ("functions", True, {"quota/a.cc": _LONG_FUNCTION}),
    ("functions", True, {"quota/a.cc": "class A {\n public:\n" + _LONG_FUNCTION + "};\n"}),
    ("functions", True, {"quota/a.cc": "A::A(B b) : b_{b}, c_{1} {\n" + "Use();\n" * 70 + "}\n"}),
    ("functions", True, {"quota/a.cc": "const auto f = [](int a) {\n" + "Use();\n" * 70 + "};\n"}),
    ("functions", True, {"quota/a.cc": "int a;\n", "test/tidy/known.txt": "functions quota 1\n"}),
    ("functions", False, {"quota/a.cc": "int F() {\n" + "Use();\n" * 68 + "}\n"}),
    ("functions", False, {"quota/a.cc": _LONG_TABLE + "int F(A a = {}) {\n return 1;\n}\n"}),
    ("functions", False, {"quota/a.cc": _LONG_FUNCTION, "bench/a.cc": _LONG_FUNCTION,
                          "test/tidy/known.txt": "functions quota 1\n"}),

    ("loops", True, {"a.cc": 'for (const Json& pod : get("/pods")["pods"]) Use(pod);\n'}),
    ("loops", True, {"a.cc": 'for (auto& one : Json::parse(Body(a)).at("b")) Use(one);\n'}),
    ("loops", False, {"a.cc": 'for (const Json& one : pod.at("spec").at("b")) Use(one);\n'}),
    ("loops", False, {"a.cc": 'for (int a : Numbers(3)) Use(all[a]);\nint b = F(a)["b"];\n'}),

    ("booleans", True, {"quota/a.cc": "int a = Sum(list, true);\n"}),
    ("booleans", True, {"quota/a.cc": "Stop(false);\n"}),
    ("booleans", True, {"quota/a.cc": "Run([&] { books.Load(a, {1, 2},\n false); });\n"}),
    ("booleans", True, {"quota/a.cc": "Stop(false);\nStop(true);\n",
                        "test/tidy/known.txt": "booleans quota 1\n"}),
    ("booleans", False, {"quota/a.cc": "done_.store(true);\nbool a = true;\nSetIdle(false);\n"}),
    ("booleans", False, {"quota/a.cc": "Load({.step = 1, .whole = true});\nreturn false;\n"}),
    ("booleans", False, {"quota/a.cc": "Json::parse(a, nullptr, /*allow_exceptions=*/false);\n"}),
    ("booleans", False, {"quota/a.cc": "std::vector<bool> full(kinds(), false);\nF(a == true);\n"}),

    ("engine", True, {f"{_LEFT}/a.h": "class Books;\n", f"{_RIGHT}/b.h": "class Books {\n};\n"}),
    ("engine", True, {f"{_LEFT}/a.h": "void Use(Books& books);\n",
                      f"{_RIGHT}/b.h": "struct Books final : Other {\n};\n"}),
    ("engine", True, {f"{_LEFT}/a.h": "class A {\n  std::function<void(int)> requeue_;\n};\n"}),
    ("engine", False, {f"{_RIGHT}/b.h": "class Books;\n// std::function<void()> hook_;\n",
                       f"{_LEFT}/a.h": "class Books {\n  void Each(std::function<void()>);\n};\n"}),

    ("methods", True, {f"{_LEFT}/a.h": "class A {\n public:\n" + "".join(
        f"  void F{i}(int a);\n" for i in range(21)) + "};\n"}),
    ("methods", False, {f"{_LEFT}/a.h": "class A {\n public:\n  A(int a);\n" + "".join(
        f"  int f{i}() const {{ return g(); }}\n" for i in range(20)) +
        " private:\n  void G();\n};\n"}),

    ("tables", True, {"quota/README.md": "| room | a |\n|---|---|\n| `tree/` | a |\n"
                      "| `budget/` | a |\n"}),
    ("tables", True, {"quota/README.md": "| room | a |\n|---|---|\n| `budget/` | a |\n"
                      "| `tree/` | a |\n| `preemption/` | a |\n"}),
    ("tables", True, {"quota/README.md": _QUOTA_TABLE + "| `spare/` | a |\n"}),
    ("tables", True, {"scheduler/README.md": "| room | a | may include |\n|---|---|---|\n"
                      "| `facts/` | a | index |\n"}),
    ("tables", True, {"scheduler/README.md": _TABLE,
                      "scheduler/http/a.cc": '#include "scheduler/engine/b.h"\n'}),
    ("tables", False, {"quota/README.md": _QUOTA_TABLE, "scheduler/README.md": _TABLE,
                       "scheduler/kube/a.cc": '#include "scheduler/wire/json/b.h"\n'
                       '#include "scheduler/engine/b.h"\n#include "policy/c.h"\n'}),

    ("torn", True, {"quota/a.h": "bool a =\n    false;  // when\n"}),
    ("torn", True, {"quota/a.h": "std::vector<int>\n    victims;  // ascending\n"}),
    ("torn", True, {"quota/a.h": "// " + "word " * 18 + "\n// rank\n// and more text\n"}),
    ("torn", False, {"quota/a.h": "const int a =\n    Long(b) + Long(c);\nint\nmain();\n"}),
    ("torn", False, {"quota/a.h": "// A short line.\n// rank\n// and more text\n"}),

    ("comments", True, {"quota/a.h": "// Who may use how much.\nint a;\n"}),
    ("comments", True, {"quota/a.h": "int a;  // Whom it is for\n"}),
    ("comments", True, {"quota/a.h": "int a;\n", "test/tidy/known.txt": "comments quota 1\n"}),
    ("comments", False, {"quota/a.h": "// The pods, and for those\n// Who is a type.\nint a;\n"
                         'auto s = "// Who";\n'}),

    ("documents", True, {"README.md": "`quota/gone.h`\n", "quota/a.h": ""}),
    ("documents", True, {"scheduler/docs/A.md": "`kube/gone`\n", "scheduler/kube/a.h": ""}),
    ("documents", True, {"README.md": "[it](quota/gone.md)\n", "quota/a.h": ""}),
    ("documents", True, {"README.md": "`gone.cc`\n"}),
    ("documents", False, {"README.md": "`quota/a.*`, `quota/a`, `a.h:7`, `a/b`, `style_NAME.h`\n",
                          "quota/a.h": "", "quota/style_x.h": ""}),
    ("documents", False, {"scheduler/docs/A.md": "`kube/a.h` and [it](../kube/a.h)\n",
                          "scheduler/kube/a.h": ""}),

    ("named_files", True, {"quota/a.h": "// See gone.h.\n"}),
    ("named_files", True, {"scheduler/kube/a.h": "int a;  // as in wire/gone.cc\n"}),
    ("named_files", False, {"scheduler/kube/a.h": "// See a.h, kube/a.h and policy/v1.\n"}),

    ("api", True, {"scheduler/api/openapi.yaml": "paths:\n  /api/v1/a:\n"}),
    ("api", True, {"scheduler/api/openapi.yaml": "paths:\n", "scheduler/api/a.cc": '"/api/v1/a"'}),
    ("api", False, {"scheduler/api/openapi.yaml": "paths:\n  /api/v1/a/{b}/{c}:\n  /version:\n",
                    "scheduler/api/a.cc": '"/api/v1/a/"'}),

    ("decisions", True, {"scheduler/docs/adr/0001-a.md": _DECISION.replace("0001:", "1.")}),
    ("decisions", True, {"scheduler/docs/adr/0001-a.md": _DECISION.replace("Status", "State")}),
    ("decisions", True, {"scheduler/docs/adr/0001-a.md": _DECISION + "\n## Not taken\n"}),
    ("decisions", False, {"scheduler/docs/adr/0001-a.md": _DECISION + "\n### Not taken\n"}),
]
