"""The commands that documents show: those of their code blocks, and those in their prose."""

import collections
import os
import pathlib
import re

import shell_text

# line is that of the document; inline commands stand in prose or tables, between backticks; shown
# are the lines that a block shows as the command's answer.
Command = collections.namedtuple("Command", "file line text inline shown", defaults=((),))

PROGRAMS = {"tranche", "kubectl", "helm", "curl", "cmake", "ctest", "docker", "git", "go", "ninja",
            "python3", "promtool", "kube-scheduler", "cat", "echo", "ln", "cd", "tranche-bench",
            "tranche-node", "tranche-sim", "tranche-scenario"}
# These may stand in a line of commands, and begin none.
BESIDES = {"base64", "chmod", "date", "grep", "man", "sleep", "command", "node"}
INLINE_PROGRAMS = ("tranche", "kubectl tranche", "tranche-bench", "tranche-node", "tranche-sim",
                   "tranche-scenario")
# In prose a command has something behind the program's name; the name alone is just that.
INLINE = re.compile(rf"(?:{'|'.join(INLINE_PROGRAMS)}) [-a-zA-Z.].*", re.DOTALL)
# Where it is clear whose command it is, prose leaves tranche out.
LEFT_OUT = re.compile(r"(?:audit|explain|export|ledger|nodes|pods|plan|queue|replay|top"
                      r"|scheduler-config|topology|validate|whatif) (?:.* )?-.*", re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
SHELLS = {"sh", "bash", "shell"}
SHOWN_TOGETHER = {"", "console"}
SKIPPED_FOLDERS = {".cache", ".git", "__pycache__", "adr", "build", "node_modules"}
FENCE = re.compile(r"\s*```(.*)")


def documents(root):
    """Paths of the documents whose commands hold now: decisions and changes tell of their day."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = set(folders) - SKIPPED_FOLDERS
        found += [pathlib.Path(folder, name).relative_to(root).as_posix() for name in files
                  if name.endswith(".md") and name != "CHANGELOG.md"]
    return sorted(found)


def is_program(word):
    return (word in PROGRAMS or word.startswith(("build/", "./"))
            or "/" in word and word.endswith((".sh", ".py")) or word == ".ci/run")


def begins_command(text):
    found = shell_text.calls(text)
    return bool(found) and is_program(found[-1][0] if len(found) == 1 else first_word(text, found))


def first_word(text, found):
    """The program at the front of a line that calls several."""
    return min((call[0] for call in found), key=lambda word: text.find(word) % (len(text) + 1))


def _block_commands(file, language, lines):
    """Of a code block: marked by '$ ', or all of them where the first line is a command."""
    if language not in SHELLS | SHOWN_TOGETHER:
        return
    marked = [place for place, (_, line) in enumerate(lines) if line.strip().startswith("$ ")]
    for place, end in zip(marked, [*marked[1:], len(lines)]):
        asked = [(lines[place][0], lines[place][1].strip()[2:])]
        answer = tuple(line.strip() for _, line in lines[place + 1:end] if line.strip())
        for number, text in shell_text.logical_lines(asked):
            yield Command(file, number, text, False, answer)
    found = [] if marked else list(shell_text.logical_lines(lines))
    if language in SHELLS or found and begins_command(found[0][1]):
        for number, text in found:
            yield Command(file, number, text, False)


def _indented(lines):
    """Lines of code by their four blanks, after an empty line."""
    before = ""
    for number, line in lines:
        if line.startswith("    ") and not before.strip() and begins_command(line.strip()):
            yield number, line.strip()
            line = ""
        before = line


def _inline(file, prose):
    """Commands between backticks, which may go on in the next line of a paragraph."""
    text = "\n".join(line for _, line in prose)
    for span in SPAN.finditer(text):
        command = re.sub(r"\s*\n\s*", " ", span[1])
        if LEFT_OUT.fullmatch(command):
            command = f"tranche {command}"
        if "\n\n" not in span[1] and INLINE.fullmatch(command):
            yield Command(file, prose[text.count("\n", 0, span.start())][0], command, True)


def commands_of(file, text):
    """All commands of a document, by line."""
    found, prose, block, language = [], [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and block is None:
            block, language = [], fence[1].strip()
        elif fence:
            found += _block_commands(file, language, block)
            block = None
        elif block is not None:
            block.append((number, line))
        prose.append((number, line if block is None and not fence else ""))
    indented = dict(_indented(prose))
    found += [Command(file, *row, False) for row in shell_text.logical_lines(indented.items())]
    found += _inline(file, [(number, "" if number in indented else line)
                            for number, line in prose])
    return sorted(found, key=lambda command: command.line)
