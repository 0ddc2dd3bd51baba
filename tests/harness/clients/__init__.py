# SPDX-License-Identifier: Apache-2.0
"""Public NATS clients for the programs of deploy/examples/subscribe: what runs each, or why it cannot be run here."""
import fcntl
import os
import re
import shutil
import subprocess

import pytest

from tests.harness.processes import HOME

EXAMPLE = HOME / "deploy" / "examples" / "subscribe"
GO_PACKAGES = "/usr/share/gocode"  # of Debian's golang-github-nats-io-go-nats-dev
NATS_PY = "nats-py==2.9.0"


def node():
    """npm ci in the example's folder, once; for both tests that use it."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js here: apt-get install nodejs npm")
    with open(EXAMPLE / "package.json") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (EXAMPLE / "node_modules" / "nats").exists():
            done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=EXAMPLE, capture_output=True, text=True, timeout=300)
            if re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|CERT_IN_CHAIN", done.stderr):
                pytest.skip("the npm registry cannot be reached from here")
            assert done.returncode == 0, done.stderr


def _has_nats_py(interpreter, path=""):
    return subprocess.run([interpreter, "-c", "import nats.js.api"], capture_output=True, timeout=30, env={"PYTHONPATH": str(path)}).returncode == 0


def python(folder):
    """A Python with nats-py: this machine's, that of TEST_NATS_PY, or PyPI's package in a folder of its own; Debian has none."""
    interpreter = os.environ.get("TEST_NATS_PY", "/usr/bin/python3")
    if _has_nats_py(interpreter):
        return [interpreter, EXAMPLE / "durable.py"]
    target = folder / "nats-py"
    done = subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "5", "--target", target, NATS_PY],
                          capture_output=True, text=True, timeout=120)
    if not _has_nats_py(interpreter, target):
        pytest.skip(f"no nats-py here, and PyPI cannot be reached: TEST_NATS_PY=a Python that has it ({done.stderr.strip().splitlines()[-1:]})")
    return ["env", f"PYTHONPATH={target}", interpreter, EXAMPLE / "durable.py"]


def command(language, folder):
    """(words, environment) that run the durable subscriber in this language."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root")}
    if language == "node":
        node()
        return ["node", EXAMPLE / "durable.mjs"], environment
    if language == "python":
        return python(folder), environment
    if language == "go":
        if not shutil.which("go") or not os.path.isdir(f"{GO_PACKAGES}/src/github.com/nats-io/nats.go"):
            pytest.skip("no Go with nats.go here: apt-get install golang-go golang-github-nats-io-go-nats-dev")
        go = environment | {"GO111MODULE": "off", "GOPATH": GO_PACKAGES, "GOFLAGS": ""}
        subprocess.run(["go", "build", "-o", folder / "durable-go", EXAMPLE / "durable.go"], check=True, env=go, timeout=300)
        return [folder / "durable-go"], environment
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", EXAMPLE / "durable.c", "-o", folder / "durable-c", "-lnats"], check=True, timeout=60)
    return [folder / "durable-c"], environment
