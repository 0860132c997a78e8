#!/usr/bin/env python3
"""The command line as shells and terminals see it; see README.md.

run.py PROGRAM

Exit codes: 0 all is well, 1 something is not, 2 usage.
"""

import fcntl
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINE = ROOT / "test/cases/topologies/dgx1-v100.txt"
COLOUR = re.compile("\033\\[[0-9;]*m")
failures = []


def expect(what, found, wanted):
    if found == wanted:
        print(f"ok      {what}")
    else:
        failures.append(what)
        print(f"FAILED  {what}: expected {wanted!r}, found {found!r}")


def has(tool):
    if shutil.which(tool):
        return True
    if os.environ.get("TRANCHE_CI") == "1":
        expect(f"{tool} is installed", False, True)
    else:
        print(f"SKIPPED {tool} is not installed")
    return False


def output(arguments, **options):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False, **options).stdout


# What a line is completed to, its last word being the one under the cursor.
LINES = [
    ("tranche quo", ["quota"]),
    ("tranche ledger ",
     ["bill", "export", "held", "repair-clock", "report", "statement", "verify"]),
    ("tranche ledger bill --by o", ["owner"]),
    ("tranche ledger export --pas", ["--past"]),
    ("tranche nodes -o ", ["custom-columns=", "json", "jsonpath=", "name", "table", "wide",
                           "yaml"]),
    ("tranche nodes --output=y", ["--output=yaml"]),
    ("tranche nodes --server http://127.0.0.1:1 --outp", ["--output"]),
    ("tranche serve --log-level=tr", ["--log-level=trace"]),
    ("tranche validate -f some", ["some file.yaml"]),
    ("tranche explain x", []),
]

# Bash and zsh are asked on a terminal of their own, where they cut the line themselves; what the
# script answers goes into a file.
BASH = """
source ./script
ask() {
  _tranche "$@"
  printf '%s\\n' "${COMPREPLY[@]}" done >answer
  exit
}
complete -F ask tranche
"""

# In zsh compadd is asked what it got.
ZSH = """
autoload -Uz compinit && compinit -u -D
source ./script
zstyle ':completion:*' list-grouped false
compadd() {
  local -a found displayed
  builtin compadd -A found "$@"
  (( ${#found} )) && print -rl -- "${IPREFIX}"${^found} >>answer
  builtin compadd "$@"
}
show() { zle -I; : >|answer; zle complete-word; print done >>answer; exit }
zle -N show
zle -C complete-word complete-word _main_complete
bindkey '^I' show
"""


def type_line(folder, line, shell, **environment):
    """The words a shell was given for the line when the tabulator was hit."""
    answer = folder / "answer"
    answer.unlink(missing_ok=True)
    program, terminal = pty.fork()
    if program == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm", **environment)
        os.execvp(shell[0], shell)
    os.write(terminal, f"{line}\t".encode())
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass  # the other end is closed
    os.waitpid(program, 0)
    words = answer.read_text().splitlines() if answer.exists() else ["no answer", "done"]
    return sorted(set(filter(None, words[:-1]))) if words[-1] == "done" else words


def complete_bash(folder, line):
    (folder / "bashrc").write_text(BASH)
    found = type_line(folder, line, ["bash", "--rcfile", "bashrc", "-i"])
    # Bash wants what comes after the '=' alone.
    prefix = re.search(r"(?<= )--[^ =]*=(?=[^ ]*$)", line)
    return [(prefix[0] if prefix else "") + word for word in found]


def complete_fish(folder, line):
    script = f"source ./script; complete -C {line!r}"
    found = output(["fish", "--no-config", "-c", script], cwd=folder)
    return sorted(word.split("\t")[0] for word in found.splitlines())


def complete_zsh(folder, line):
    (folder / ".zshrc").write_text(ZSH)
    found = type_line(folder, line, ["zsh", "-i"], ZDOTDIR=str(folder))
    return [word.replace("\\", "") for word in found]  # blanks of file names are quoted


def check_completion(program, folder):
    (folder / "some file.yaml").write_text("kind: List\n")
    shells = {"bash": complete_bash, "zsh": complete_zsh, "fish": complete_fish}
    for shell, complete in shells.items():
        if not has(shell):
            continue
        script = output([program, "completion", shell])
        (folder / "script").write_text(script)
        expect(f"{shell}: syntax", output([shell, "-n", str(folder / "script")]), "")
        for line, wanted in LINES:
            expect(f"{shell}: {line!r}", complete(folder, line), wanted)


def check_kubectl(folder):
    output_of_help = output(["kubectl-tranche", "ledger", "report", "--help"])
    expect("kubectl: help names it", "Usage: kubectl tranche ledger report" in output_of_help, True)
    script = folder / "kubectl_complete-tranche"
    script.write_text(output(["kubectl-tranche", "completion", "kubectl"]))
    script.chmod(0o755)
    expect("kubectl: completion", output([str(script), "explain", "--nam"]),
           "--namespace\tnamespace of the pod\n:4\n")
    expect("kubectl: manual page", "\\fBkubectl tranche\\fR" in output(["kubectl-tranche", "man"]),
           True)


def check_manual(program, folder):
    page = folder / "tranche.1"
    page.write_text(output([program, "man"]))
    expect("man: groff", output(["groff", "-ww", "-z", "-man", str(page)]), "")
    if has("man"):
        found = subprocess.run(["man", "--warnings", "-l", str(page)], text=True, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
        expect("man: man --warnings", found.stderr, "")
    if has("mandoc"):
        # The same program gives the same page on any day: it has a version and no date.
        found = output(["mandoc", "-Tlint", "-Wwarning", str(page)]).splitlines()
        expect("man: mandoc", [line for line in found if "missing date" not in line], [])


def on_terminal(arguments, columns, **environment):
    """What the program writes on a terminal of that width."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(arguments, stdout=child, stderr=child, stdin=child,
                          env={**os.environ, "TERM": "xterm", **environment}):
        os.close(child)
        found = b""
        try:
            while piece := os.read(parent, 65536):
                found += piece
        except OSError:
            pass  # the program has ended
    os.close(parent)
    return found.decode().replace("\r\n", "\n")


def check_terminals(program):
    table = [program, "topology", "best", str(MACHINE)]
    piped = output(table)
    expect("pipe: no colours", COLOUR.search(piped), None)
    for what in (table, [program, "explain", "--help"], [program, "--help"]):
        for columns in (80, 120):
            found = on_terminal(what, columns)
            longest = max(len(COLOUR.sub("", line)) for line in found.splitlines())
            name = " ".join(what[1:3])
            expect(f"{columns} columns: {name} fits", longest <= columns, True)
    expect("terminal: colours", COLOUR.search(on_terminal(table, 120)) is not None, True)
    expect("terminal: only colours differ", COLOUR.sub("", on_terminal(table, 120)), piped)
    expect("terminal: NO_COLOR", on_terminal(table, 120, NO_COLOR="1"), piped)
    expect("terminal: dumb", on_terminal(table, 120, TERM="dumb"), piped)
    drawn = [program, "topology", "show", str(MACHINE)]
    expect("terminal: NO_COLOR of topology show", on_terminal(drawn, 120, NO_COLOR="1"),
           output(drawn))


def main():
    if len(sys.argv) != 2 or not os.access(sys.argv[1], os.X_OK):
        print("usage: run.py PROGRAM", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        names = folder / "bin"
        names.mkdir()
        program = str(pathlib.Path(sys.argv[1]).resolve())
        for link in ("tranche", "kubectl-tranche"):
            (names / link).symlink_to(program)
        os.environ["PATH"] = f"{names}:{os.environ['PATH']}"
        os.environ["HOME"] = name
        os.environ.pop("NO_COLOR", None)
        work = folder / "work"
        work.mkdir()
        check_completion("tranche", work)
        check_kubectl(work)
        check_manual("tranche", work)
        check_terminals("tranche")
    print(f"cli: {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
