"""Small trees for every rule: bad ones must be reported, good ones must not.

A row is (rule, is it bad, {path: text}). Files whose text starts with "+x " are executable.
"""

_LONG = "int a;  // " + "x" * 100 + "\n"
_UNORDERED = "std::unordered_map<int, int> by_id;\n"

EXAMPLES = [
    ("layers", True, {"topology/a.cc": '#include "quota/b.h"\n'}),
    ("layers", True, {"topology/base/a.h": '#include "topology/gpu.h"\n'}),
    ("layers", True, {"scheduler/http/a.cc": '#include "scheduler/kube/b.h"\n'}),
    ("layers", True, {"scheduler/wire/a.cc": '#include "scheduler/ports/b.h"\n'}),
    ("layers", True, {"scheduler/app/a.cc": '#include "test/fakes/b.h"\n'}),
    ("layers", False, {"quota/a.cc": '#include "topology/b.h"\n#include "quota/c.h"\n'}),
    ("layers", False, {"scheduler/kube/a.cc": '#include "scheduler/wire/b.h"\n'}),
    ("layers", False, {"test/unit/a_test.cc": '#include "scheduler/app/b.h"\n'}),

    ("libraries", True, {"scheduler/engine/a.cc": "#include <boost/asio.hpp>\n"}),
    ("libraries", True, {"scheduler/http/a.cc": "#include <sqlite3.h>\n"}),
    ("libraries", True, {"policy/decode.h": '#include "simdjson.h"\n'}),
    ("libraries", True, {"quota/a.cc": '#include "absl/container/btree_map.h"\n'}),
    ("libraries", True, {"quota/a.cc": "#include <unistd.h>\n"}),
    ("libraries", True, {"scheduler/app/a.cc": "#include <newlib/thing.hpp>\n"}),
    ("libraries", False, {"policy/decode.cc": '#include "simdjson.h"\n#include <vector>\n'}),
    ("libraries", False, {"quota/a.cc": '#include "absl/status/status.h"\n#include <fmt/os.h>\n'}),
    ("libraries", False, {"scheduler/app/a.cc": "#include <sys/stat.h>\n#include <CLI/CLI.hpp>\n"}),

    ("core", True, {"quota/a.cc": "#include <thread>\n"}),
    ("core", True, {"quota/a.cc": "auto t = Clock::now();\n"}),
    ("core", True, {"quota/a.cc": "const char* v = getenv(name);\n"}),
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
    ("readmes", True, {"scheduler/README.md": "# S\n", "scheduler/wire/a.cc": ""}),
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
]
