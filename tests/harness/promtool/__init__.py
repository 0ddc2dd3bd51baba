# SPDX-License-Identifier: Apache-2.0
"""Prometheus' own tool: that of the machine, or out of Debian's package, whose service is not installed for it."""
import fcntl
import pathlib
import shutil
import subprocess

import pytest

CACHE = pathlib.Path.home() / ".cache" / "stentor-promtool"


def promtool():
    """Its path; without it the test is skipped."""
    found = shutil.which("promtool")
    unpacked = CACHE / "usr" / "bin" / "promtool"
    if found or not shutil.which("apt-get"):
        return found or pytest.skip("no promtool here: it comes with Prometheus")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:  # other workers fetch it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not unpacked.exists():
            done = subprocess.run(["apt-get", "download", "prometheus"], cwd=CACHE, capture_output=True, text=True, timeout=300)
            package = next(iter(CACHE.glob("prometheus_*.deb")), None)
            if done.returncode != 0 or package is None:
                pytest.skip("no promtool here, and Debian's archive cannot be reached")
            subprocess.run(["dpkg", "-x", package, CACHE], check=True)
            package.unlink()
            (CACHE / "usr" / "bin" / "prometheus").unlink()
    return unpacked


def run(*words, **options):
    return subprocess.run([promtool(), *words], capture_output=True, text=True, timeout=300, **options)
