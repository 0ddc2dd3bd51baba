# SPDX-License-Identifier: Apache-2.0
"""Builds to compare: a revision from the history, in a folder of its own under build/, or this tree as it is."""
import os
import shutil
import subprocess
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
KEPT = HOME / "build" / "loads"


class Build:
    """A source tree with its programs (preset `release`)."""

    def __init__(self, tree, title):
        self.tree, self.title = tree, title

    @property
    def bin(self):
        return self.tree / "build" / "release" / "bin"

    def knows(self, name):
        """Whether a program of it has this setting: one that none knows is an error."""
        return subprocess.run(["grep", "-rqF", "--include=*.c", f'"{name}"', self.tree / "services", self.tree / "common"]).returncode == 0


def provide(revision):
    """The build of a revision; None: of this tree with what is not committed. What was built before is only looked at."""
    if revision is None:
        tree, title = HOME, "this tree"
    else:
        commit = commit_of(revision)
        tree, title = KEPT / commit[:12], commit[:12]
        if not tree.exists():
            unpack(commit, tree)
    compile_release(tree)
    return Build(tree, title)


def commit_of(revision):
    done = subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"], cwd=HOME, capture_output=True, text=True)
    assert done.returncode == 0, f"'{revision}' is no revision of this history (a clone without depth has them all)"
    return done.stdout.strip()


def unpack(commit, tree):
    """Whole or not at all: an interrupted one leaves a folder of another name."""
    part = tree.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", commit], cwd=HOME, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", part], stdin=archive.stdout, check=True)
    assert archive.wait() == 0, f"git archive {commit}"
    part.rename(tree)


def compile_release(tree):
    """Both with the same compiler and flags; what it says is shown when it fails."""
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree)}
    done = subprocess.run("cmake --preset release && cmake --build --preset release", shell=True, cwd=tree, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{tree} was not built:\n{done.stdout[-4000:]}"
