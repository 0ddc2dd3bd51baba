# SPDX-License-Identifier: Apache-2.0
"""Postgres clusters to copy: initdb and every migration are a second of work for each pipeline, a copy is a tenth of that.

A test session (tests/integration/conftest.py) names a folder; the first process that needs a kind of cluster makes it there, and all
others copy it. Without such a folder (bench, chaos by hand) each makes its own."""
import fcntl
import os
import subprocess
from pathlib import Path

FOLDER = "TEST_CLUSTERS"  # not STENTOR_*: the programs refuse what they do not know


def _copy(source, target):
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


def provide(kind, make, data):
    """Makes the folder `data`, which does not exist, a cluster that does not run: by make(), or as a copy of what it made before."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        make()
        return
    kept = Path(folder) / kind
    with open(kept.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            make()
            _copy(data, kept.with_suffix(".new"))
            kept.with_suffix(".new").rename(kept)
            return
    _copy(kept, data)
