"""Shell lines as documents show them: comments, continued lines, and the programs they call."""

import re
import shlex

# This ends where a '#' begins a comment: one in quotes, escaped or within a word does not.
BEFORE_COMMENT = re.compile(
    r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\(?:.|$)|[^'"\\#]|(?<=[^\s;&|])\#)*""")
SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
HEREDOC = re.compile(r"<<-?\s*'?\"?(\w+)")
ASSIGNMENT = re.compile(r"\w+=")
SEPARATORS = {"|", "||", "&&", ";", "&", "(", ")", "|&"}
REDIRECTIONS = {">", ">>", "<", "<<", "<<-", ">&", "&>", "<<<"}
# These stand before a program and are none themselves.
BEFORE_PROGRAM = {"until", "while", "if", "then", "do", "else", "eval", "exec", "sudo", "time"}
ENDS = {"done", "fi"}


def without_comment(line):
    return BEFORE_COMMENT.match(line)[0].rstrip()


def logical_lines(lines):
    """Yields (number, text) of lines whose continuations are joined and here-documents skipped.

    lines are pairs of a number and a text.
    """
    rest = iter(lines)
    for number, line in rest:
        text = without_comment(line)
        while text.endswith("\\"):
            _, more = next(rest, (0, ""))
            text = text[:-1].rstrip() + " " + without_comment(more.strip())
        heredoc = HEREDOC.search(text)
        if heredoc:
            for _, body in rest:
                if body.strip() == heredoc[1]:
                    break
        if text.strip():
            yield number, text.strip()


def _words(text):
    """The words of a line, or of what can be read of it: '$(' stands alone in none."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def _call(words):
    """The words of one call, without assignments, redirections and what stands before a program."""
    kept = []
    rest = iter(words)
    for word in rest:
        if word in REDIRECTIONS:
            if kept and kept[-1].isdigit():
                kept.pop()
            next(rest, None)
        elif kept or not (ASSIGNMENT.match(word) or word in BEFORE_PROGRAM):
            kept.append(word)
    if kept and kept[0] == "nice":
        kept = kept[3:] if kept[1:2] == ["-n"] else kept[1:]
    return [] if kept and kept[0] in ENDS else kept


def calls(text):
    """All programs that a line calls, each with its arguments, those in $(...) too."""
    found = []
    for inner in SUBSTITUTION.findall(text):
        found += calls(inner)
    words = []
    for word in [*_words(SUBSTITUTION.sub("SUBSTITUTED", text)), ";"]:
        if word in SEPARATORS or set(word) <= {";", ")", "("}:
            call = _call(words)
            if call:
                found.append(call)
            words = []
        else:
            words.append(word)
    return found
