# SPDX-License-Identifier: Apache-2.0
"""tests/fuzz/run: what it refuses, and how it adds up hours. The fuzzing itself needs clang, which tests/run does not install."""
import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

RUN = Path(__file__).resolve().parents[2] / "fuzz" / "run"


def load():
    loader = importlib.machinery.SourceFileLoader("fuzz_run", str(RUN))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fuzz_run", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("words, says", [
    ([], "--minutes N is required"),
    (["--minutes", "-1"], "--minutes is 0 or more"),
    (["--minutes", "1", "--jobs", "0"], "--jobs 1 or more"),
    (["--minutes", "1", "--target", "nope"], "there is no target 'nope'; there are: accounts"),
])
def test_what_is_asked_wrongly_is_refused(words, says):
    done = subprocess.run([str(RUN), *words], capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr


def test_hours_add_up(tmp_path):
    fuzz = load()
    fuzz.HOURS = tmp_path / "HOURS.tsv"
    fuzz.record([SimpleNamespace(name="b", seconds=1800.0, runs=5, found=["x"]), SimpleNamespace(name="idle", seconds=0.0, runs=0, found=[])])
    fuzz.record([SimpleNamespace(name="b", seconds=3600.0, runs=7, found=[]), SimpleNamespace(name="a", seconds=36.0, runs=1, found=[])])
    rows = [line.split("\t") for line in fuzz.HOURS.read_text().splitlines()]
    assert [row[:3] + row[4:] for row in rows] == [
        ["target", "hours", "runs", "crashes_found"], ["a", "0.010", "1", "0"], ["b", "1.500", "12", "1"]]


@pytest.mark.parametrize("late", [0, 3, 40])
def test_every_target_has_a_turn_though_others_take_longer_than_theirs(monkeypatch, late):
    """A target reads its corpus before its time begins; those behind it had no turn at all."""
    fuzz, now, turns = load(), [0.0], []

    class Slow:
        found = ()

        def __init__(self, name):
            self.name = name

        def turn(self, seconds):
            turns.append(self.name)
            now[0] += max(1, seconds) + late

    monkeypatch.setattr(fuzz, "time", SimpleNamespace(monotonic=lambda: now[0]))
    names = [f"t{n}" for n in range(37)]
    fuzz.fuzz([Slow(name) for name in names], SimpleNamespace(minutes=5, jobs=1))
    assert turns[: len(names)] == names
    assert now[0] < 5 * 60 + len(names) * (late + 1)


def test_every_target_has_a_corpus():
    fuzz = load()
    for name in fuzz.all_targets():
        assert any((fuzz.FUZZ / "corpus" / name).iterdir()), name
