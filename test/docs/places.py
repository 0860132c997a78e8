"""What commands name besides options: files, presets, targets, tests, objects, API paths."""

import json
import pathlib
import re

import shell_text

IN_TREE = re.compile(r"(?:\.\./)*(?:bench|charts|policy|quota|release|scheduler|test|topology"
                     r"|\.ci)/[\w./*-]+")
API_PATH = re.compile(r"(?<![\w.])/(?:api/v1|embedded/v1)/[\w/.{}-]+")
KUBERNETES_NAMES = ("events", "lease", "namespaces", "nodes", "pods", "secret")
OPENAPI = "scheduler/api/openapi.yaml"


def _existing(root, command, word):
    """Whether a path is there, from the root or from the folder of the document."""
    for base in (root, (root / command.file).parent):
        clean = word.rstrip(".,")
        if "*" in clean:
            parent, name = (base / clean).parent, pathlib.PurePath(clean).name
            if list(parent.glob(name)):
                return True
        elif (base / clean).exists():
            return True
    return False


def _script(root, command, call):
    """The script a call runs, and its arguments."""
    words = [word for word in call if word != "-B"]
    if words and words[0] == "python3":
        words = words[1:]
    if words and ("/" in words[0]) and not words[0].startswith("build/"):
        for base in (root, (root / command.file).parent):
            if (base / words[0]).is_file():
                return base / words[0], words[1:]
    return None, []


def _wrong_of_script(root, command, call):
    script, arguments = _script(root, command, call)
    if script is None:
        return
    text = script.read_text(encoding="utf-8")
    for word in arguments:
        name = word.partition("=")[0]
        # A word without capitals, path or number is a step that the script has by name.
        known = name.startswith("--") or re.fullmatch(r"[a-z]{3,}", name)
        if known and script.suffix == ".sh" and not re.search(rf"(?<![\w-]){name}(?![\w-])", text) \
                and name != "certificates":
            yield f"expected a word that {script.name} knows, found {name}"
        if name.startswith("--") and script.suffix == ".py" and f"{name}" not in text:
            yield f"expected an option that {script.name} knows, found {name}"


def _after(call, option):
    """The words between an option and the next one."""
    words = call[call.index(option) + 1:]
    ends = [place for place, word in enumerate(words) if word.startswith("-")]
    return words[:ends[0]] if ends else words


def _wrong_of_build(root, call):
    if call[0] not in ("cmake", "ctest"):
        return
    presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))
    kind = ("testPresets" if call[0] == "ctest" else
            "workflowPresets" if "--workflow" in call else
            "buildPresets" if "--build" in call else "configurePresets")
    if "--preset" in call:
        name = call[call.index("--preset") + 1]
        if name not in [preset["name"] for preset in presets.get(kind, [])]:
            yield f"expected one of {kind}, found {name}"
    files = (*root.glob("CMakeLists.txt"), *root.glob("*/CMakeLists.txt"),
             *root.glob("*/*/CMakeLists.txt"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for option in {"--target", "-L"} & set(call):
        for name in _after(call, option):
            if not re.search(rf"[(\s;]{re.escape(name)}\b", text):
                yield f"expected a name of a CMakeLists.txt, found {name}"


def _wrong_of_go(root, command, calls):
    folder = (root / command.file).parent
    for call in calls:
        if call[0] == "cd":
            folder = root / call[1]
        elif call[:2] == ["go", "test"] and "-run" in call:
            name = call[call.index("-run") + 1]
            tests = "\n".join(path.read_text(encoding="utf-8")
                              for path in folder.glob("*_test.go"))
            if not re.search(rf"func {name}", tests):
                yield f"expected a test of {folder.name}, found {name}"


def _wrong_of_kubectl(root, call):
    if "--clusterrole" in call:
        name = call[call.index("--clusterrole") + 1]
        text = "\n".join(file.read_text(encoding="utf-8") for file in root.glob("charts/*.yaml"))
        if not re.search(rf"^  name: {re.escape(name)}$", text, re.MULTILINE):
            yield f"expected a ClusterRole of charts/, found {name}"
    if call[1:2] == ["get"]:
        known = set(KUBERNETES_NAMES)
        for file in root.glob("charts/tranche/crds/*.yaml"):
            text = file.read_text(encoding="utf-8")
            for names in re.findall(r"^    (?:plural|singular|shortNames): (.*)$", text,
                                    re.MULTILINE):
                known.update(re.findall(r"\w+", names))
        for name in call[2].split(","):
            if name not in known:
                yield f"expected the name of a resource, found {name}"


def _wrong_of_helm(root, call):
    values = (root / "charts/tranche/values.yaml").read_text(encoding="utf-8")
    for option, given in zip(call, call[1:]):
        for key in re.findall(r"([\w.]+)=", given) if option == "--set" else ():
            for part in key.split("."):
                if not re.search(rf"^ *{part}:|[{{,] ?{part}:", values, re.MULTILINE):
                    yield f"expected a key of the chart's values, found {key}"


def _wrong_of_filter(root, call):
    """Patterns of test names are made of pieces of names that tests have."""
    folder = root / "test" / call[0].rpartition("/")[2].removesuffix("_tests")
    for word in call:
        if word.startswith("--gtest_filter="):
            text = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.cc"))
            for piece in re.findall(r"\w+", word.partition("=")[2]):
                if piece not in text:
                    yield f"expected tests of {folder.name}, found {piece}"


def wrong_words(root, command):
    """Yields what a command names and is not there."""
    calls = shell_text.calls(command.text)
    for call in calls:
        for word in call:
            path = word.partition("=")[2] if word.startswith("-") and "=" in word else word
            if IN_TREE.fullmatch(path) and not _existing(root, command, path):
                yield f"expected a file of the tree, found no {path}"
        yield from _wrong_of_script(root, command, call)
        yield from _wrong_of_build(root, call)
        yield from _wrong_of_filter(root, call)
        if call[0] == "kubectl":
            yield from _wrong_of_kubectl(root, call)
        if call[0] == "helm":
            yield from _wrong_of_helm(root, call)
    yield from _wrong_of_go(root, command, calls)


class Paths:
    """The paths of the API, as its description has them."""

    def __init__(self, root):
        text = (root / OPENAPI).read_text(encoding="utf-8")
        named = re.findall(r"^  (/[\w/.{}-]+):", text, re.MULTILINE)
        self._known = [re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))) for path in named]

    def unknown(self, text):
        """Yields line and path of what a document names and the description does not."""
        for number, line in enumerate(text.splitlines(), 1):
            for path in API_PATH.findall(line):
                path = path.rstrip(".,")
                if not path.startswith("/api/v1/namespaces/") and \
                        not any(known.fullmatch(path) for known in self._known):
                    yield number, path
