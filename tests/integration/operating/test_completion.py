# SPDX-License-Identifier: Apache-2.0
"""Completion and manual page are made from the command table: bash, zsh and fish are asked for real, and groff reads the page."""
import re
import subprocess

import pytest

from tests.harness.processes import BIN

ASK = {
    "bash": '. "$1"; shift; complete -p stentor >/dev/null; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stentor; printf "%s\\n" "${COMPREPLY[@]}"',
    # zsh's own functions stand for nothing here: what would be offered is printed instead
    "zsh": 'compdef() { }; _files() { }; _describe() { print -rl -- "${described[@]%%:*}" | grep -e "^$words[CURRENT]" }; '
           '. "$1"; shift; words=("$@"); CURRENT=$#; _stentor',
    "fish": 'source $argv[1]; complete -C (string join " " -- $argv[2..-1])',
}
RUN = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-fc"], "fish": ["fish", "--no-config", "-c"]}


def _printed(*words):
    done = subprocess.run([BIN / "stentor", *words], env={}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


@pytest.fixture(name="offers", scope="module", params=ASK)
def _offers(request, tmp_path_factory):
    shell = request.param
    script = tmp_path_factory.mktemp(shell) / "completion"
    script.write_text(_printed("completion", shell))

    def offers(line):
        words = [script, *line.split(" ")] if shell == "fish" else ["x", script, *line.split(" ")]
        done = subprocess.run([*RUN[shell], ASK[shell], *words], capture_output=True, text=True, timeout=30)
        assert done.stderr == "", done.stderr
        found = {word.split("\t")[0] for word in done.stdout.split("\n")} - {""}
        # fish 4 adds what has the letters anywhere, as it does for every command
        return {word for word in found if word.startswith(words[-1])} if shell == "fish" else found
    offers.shell = shell
    return offers


def _commands():
    return re.findall(r"^  ([a-z-]+(?: [a-z-]+)?)  +\S", _printed("help"), re.M)


def test_every_command_is_offered_word_by_word(offers):
    commands = _commands()
    assert len(commands) > 60
    assert {command.split()[0] for command in commands} <= offers("stentor ")
    for group in ("template", "dlq", "master-key", "outbox"):
        assert offers(f"stentor {group} ") == {command.split()[1] for command in commands if command.startswith(group + " ")}, group
    assert offers("stentor te") == {"template", "tenant"}
    assert offers("stentor help dl") == {"dlq"}


def test_the_flags_of_a_command_are_offered_and_no_others(offers):
    reported = set(re.findall(r"--[a-z-]+", _printed("help", "send").split("\n", 1)[1]))
    assert {"--template", "--var-json"} <= reported <= offers("stentor send --") and "--subject" not in offers("stentor send --")
    assert offers("stentor template put welcome --sub") == {"--subject"}
    assert offers("stentor suppress export --al") == {"--all"}


def test_flags_before_the_command_are_passed_over(offers):
    assert offers("stentor --api-url http://x template arch") == {"archive"}
    assert offers("stentor --core-dumps dlq re") == {"resend"}
    assert offers("stentor --api-u") == {"--api-url"}


def test_the_choices_of_a_value_are_offered(offers):
    assert offers("stentor suppress export --format ") == {"csv", "ndjson"}
    assert offers("stentor completion ") == {"bash", "zsh", "fish"}
    assert offers("stentor tenant put acme --over-limit su") == {"suppress"}


def test_bash_cuts_a_flag_and_its_value_at_the_equals_sign(offers):
    if offers.shell == "bash":
        assert offers("stentor suppress export --format = c") == {"csv"}
        assert offers("stentor suppress export --format =") == {"csv", "ndjson"}


def test_another_shell_is_refused_with_the_three():
    done = subprocess.run([BIN / "stentor", "completion", "tcsh"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "expected bash, zsh or fish" in done.stderr and done.stdout == ""


def test_the_manual_page_has_every_command_flag_and_setting_and_no_reader_warns(tmp_path):
    page = tmp_path / "stentor.1"
    page.write_text(_printed("man"))
    for reader in (["groff", "-man", "-ww", "-z"], ["man", "--warnings", "-l"]):
        done = subprocess.run([*reader, page], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0 and done.stderr == "", done.stderr
    read = done.stdout
    for command in _commands():
        assert re.search(rf"^   stentor {command}\b", read, re.M), command
    for name in ("STENTOR_API_URL", "--idempotency-key", "EXIT STATUS", "~/.config/stentor/config"):
        assert name in read, name
    assert re.search(r"^ +--reason NAME", read, re.M)
