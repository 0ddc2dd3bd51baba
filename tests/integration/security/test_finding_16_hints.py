# SPDX-License-Identifier: Apache-2.0
"""A hint names a whole command: each "stentor ..." in the texts of the programs is one that the command line takes."""
import re

import pytest

from tests.harness.processes import HOME

STRINGS = re.compile(r'"((?:[^"\\\n]|\\.)*)"(?:\s*\n?\s*"((?:[^"\\\n]|\\.)*)")*')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# What begins a hint: what follows is to be typed. Elsewhere "stentor" is a prefix of a line or a purpose of a derived key.
HINT = re.compile(r"(?:HINT: |run |`|; |, then |line back; |do |does it: |-> )stentor ((?:[a-z%][\w%.-]*|[A-Z]+)(?: (?:--)?[\w%.|=-]+)*)")
ROW = re.compile(r'^    \{"([a-z][a-z -]*)", "([^"]*)", (?:\d+|ARGS_MAX), (?:\d+|ARGS_MAX),', re.M)  # of services/cli/commands.c


def literals():
    """(file, text): neighbouring C string literals as one."""
    for folder in ("services", "common"):
        for path in sorted((HOME / folder).rglob("*.[ch]")):
            source = re.sub(r"^\s*(//.*|#include.*)$", "", path.read_text(), flags=re.M)
            for match in STRINGS.finditer(source):
                yield path.relative_to(HOME), "".join(LITERAL.findall(match.group(0)))


def commands():
    """name -> how many words must follow it."""
    rows = ROW.findall((HOME / "services/cli/commands.c").read_text())
    return {name: sum(not word.startswith("[") for word in usage.split(" | ")[0].split()) for name, usage in rows}


def fault_of(words, known):
    """What is wrong with the words behind "stentor"; None: nothing."""
    name = next((n for n in (" ".join(words[:2]), words[0]) if n in known), None)
    if name is None:
        return "no such command"
    given = [word for word in words[len(name.split()):] if not word.startswith("--")]
    return None if len(given) >= known[name] or "--all" in words else "words are missing"


def test_finding_16_every_hint_names_a_whole_command():
    known = commands()
    assert known["rebuild"] == 1 and known["doctor"] == 0 and len(known) > 50
    hints = [(path, match.group(1).split()) for path, text in literals() for match in HINT.finditer(text)]
    # of the command line's own usage lines, with the command's name filled in
    hints = [(path, words) for path, words in hints if words[0] != "help" and not words[0].startswith("%")]
    assert len(hints) > 20, "the pattern finds no hints any more"
    wrong = [f"{path}: stentor {' '.join(words)}: {fault_of(words, known)}" for path, words in hints if fault_of(words, known)]
    assert not wrong, wrong


@pytest.mark.parametrize("words", ["rebuild", "dlq", "frobnicate", "apikey rotate", "dlq drop", "template show"])
def test_finding_16_half_a_command_is_seen(words):
    assert fault_of(words.split(), commands())
