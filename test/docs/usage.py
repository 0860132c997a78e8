"""What programs know of themselves: their commands, options and arguments, from their --help."""

import re
import subprocess

SECTION = re.compile(r"[A-Z][^:]*(:|$)")
OPTION = re.compile(r"  (-[-\w,]+)(?:\{\w+\})?(.*)")
NAMED = re.compile(r"  (\w[-\w]*)(.*)")
# These sections of --help have rows that are no commands.
ROWS = {"Positionals:": "arguments", "Options:": "options", "How to reach the server:": "options"}
SHARED = "How to reach the server: see"


def output_of(words, folder, environment):
    return subprocess.run(
        words, cwd=folder, env=environment, text=True, timeout=60, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


class Help:
    """One page of --help."""

    def __init__(self, text):
        self.commands, self.needed, self.takes_value, self.takes_words = set(), [], {}, False
        section = ""
        for line in text.splitlines():
            if SECTION.match(line):
                section = line.strip()
            elif not section.startswith(("Examples", "Usage")):
                self._row(ROWS.get(section, "commands"), line)

    def _row(self, kind, line):
        option, named = OPTION.match(line), NAMED.match(line)
        if option:
            names, rest = option[1].split(","), option[2]
            value = bool(re.match(r" (?! |Excludes)\S", rest))
            self.takes_value.update({name: value for name in names})
            if "REQUIRED" in rest.split("  ")[0]:
                self.needed.append(set(names))
        elif named and kind == "arguments":
            self.takes_words = True
            if "REQUIRED" in named[2]:
                self.needed.append(named[1])
        elif named and kind == "commands":
            self.commands.add(named[1])


class Usage:
    """Asks programs for their help, each page once."""

    def __init__(self, folder, environment):
        self._folder, self._environment, self._pages = folder, environment, {}

    def _page(self, words):
        if words not in self._pages:
            found = output_of([*words, "--help"], self._folder, self._environment)
            page = Help(found.stdout)
            if found.returncode != 0:
                # A program without --help still says which options it expects.
                page.takes_value = {name: True for name in re.findall(r"--[-\w]+", found.stdout)}
                page.takes_words = True
            if SHARED in found.stdout:
                page.takes_value.update(self._page((words[0], "options")).takes_value)
            self._pages[words] = page
        return self._pages[words]

    def _descend(self, call):
        """The page of a call's command, and what follows the command."""
        words, rest = (call[0],), call[1:]
        page = self._page(words)
        while rest and rest[0] in page.commands:
            words, rest = (*words, rest[0]), rest[1:]
            page = self._page(words)
        return page, rest

    def check(self, call):
        """Returns what is wrong with a call, and whether it lacks what it needs to run."""
        page, rest = self._descend(call)
        wrong, seen, words = [], set(), 0
        if page.commands and rest and not rest[0].startswith("-"):
            return [f"expected a command of {call[0]}, found {rest[0]}"], False
        lacks = bool(page.commands) and not rest
        rest = list(rest)
        while rest:
            word = rest.pop(0)
            name, given, _ = word.partition("=")
            if not re.match(r"--?[a-zA-Z]", word):
                words += 1
            elif name not in page.takes_value:
                wrong.append(f"expected an option that {' '.join(call[:2])} knows, found {name}")
            elif page.takes_value[name] and not given:
                lacks = lacks or not rest
                rest = rest[1:]
            seen.add(name)
        if words and not page.takes_words and call[1:2] != ["help"]:
            wrong.append("expected options alone, found words besides")
        if seen & {"--help", "-h"}:
            return wrong, False
        for needed in page.needed:
            lacks = lacks or not (seen & needed if isinstance(needed, set) else words)
        return wrong, lacks
