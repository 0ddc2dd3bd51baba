# SPDX-License-Identifier: Apache-2.0
"""The real S3 server: Debian's Ceph, one for a whole run of the tests (deploy/local/s3 starts it, in memory).

The first test that needs it starts it, whichever worker it belongs to, and the others wait for it. It ends with the run, also when the run
is killed: it watches the process that the run began with."""
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.harness.objectstore.client import Bucket
from tests.harness.objectstore.sigv4 import Credentials
from tests.harness.processes import HOME, free_port, wait_until

FOLDER = "TEST_CEPH"  # where the run's server has its things; with PID of the run in TEST_CEPH_UNTIL (tests/integration/conftest.py)
UNTIL = "TEST_CEPH_UNTIL"
CREDENTIALS = Credentials("AKIASTENTOR", "a/secret+with=signs")
PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin")


def missing():
    """'' or the programs that are not there: tests/run installs them."""
    return ", ".join(program for program in PROGRAMS if shutil.which(program) is None)


def endpoint():
    """http://127.0.0.1:PORT of the server, which runs when this returns."""
    if missing():
        pytest.skip(f"not installed: {missing()} (tests/run installs them)")
    folder = Path(os.environ[FOLDER])
    ready = folder / "server" / "ready"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "started").exists():
            _start(folder)
            (folder / "started").touch()
        wait_until(ready.exists, 90, f"the Ceph server (log: {folder / 'log'})")
    return ready.read_text().strip()


def _start(folder):
    credentials = folder / "credentials"
    credentials.write_text(f"KEY_ID={CREDENTIALS.key_id}\nSECRET={CREDENTIALS.secret}\n")
    with open(folder / "log", "ab") as log:
        server = subprocess.Popen([HOME / "deploy" / "local" / "s3", folder / "server", "--port", str(free_port()), "--mon-port", str(free_port()),
                          "--credentials", credentials, "--memory", "--until", os.environ[UNTIL]],
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")
    (folder / "pid").write_text(str(server.pid))


def end(folder):
    """The run is over: its server ends and its folder goes."""
    pid = Path(folder) / "pid"
    if pid.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGTERM)
            wait_until(lambda: not Path(f"/proc/{pid.read_text()}/cwd").exists(), 10, "the end of the Ceph server")
    shutil.rmtree(folder, ignore_errors=True)


def new_bucket(prefix="test"):
    """An empty one of its own."""
    return Bucket(endpoint(), f"{prefix}-{uuid.uuid4().hex[:12]}", CREDENTIALS).create()


def limit_bucket(bucket, objects=-1, kib=-1):
    """The real `bucket is full`: what is over is refused with 403 QuotaExceeded. -1: no limit."""
    words = ["--quota-scope=bucket", "--uid=stentor", f"--bucket={bucket.name}"]
    environment = {**os.environ, "CEPH_CONF": str(Path(os.environ[FOLDER]) / "server" / "ceph.conf")}
    for order in (["quota", "set", *words, f"--max-objects={objects}", f"--max-size={kib * 1024 if kib >= 0 else -1}"], ["quota", "enable", *words]):
        done = subprocess.run(["radosgw-admin", *order], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
