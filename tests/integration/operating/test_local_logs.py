# SPDX-License-Identifier: Apache-2.0
"""What deploy/local/up starts fills no disk with its logs: the functions of lib.sh and keep-logs, in a folder of the test's."""
import os
import subprocess
from pathlib import Path

import pytest

from tests.harness.processes import HOME, wait_until

LOCAL = HOME / "deploy" / "local"


@pytest.fixture(name="data")
def _data(tmp_path):
    for name in ("log", "run"):
        (tmp_path / name).mkdir()
    return tmp_path


def _do(data, script):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", f'. "{LOCAL}/lib.sh"\n{script}'], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "STENTOR_DATA": str(data)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_log_that_is_too_long_begins_again_and_its_process_goes_on_writing(data):
    long, short = data / "log/ingest.log", data / "log/nats.log"
    short.write_text("short\n")
    with long.open("ab", buffering=0) as process:
        for number in range(300):
            process.write(b"%07d\n" % number)
        _do(data, "trim_logs 800")
        assert long.read_bytes() == b"" and Path(f"{long}.1").read_bytes() == b"".join(b"%07d\n" % n for n in range(200, 300))
        assert Path(f"{long}.1").stat().st_mode & 0o777 == 0o600
        process.write(b"after\n")
        assert long.read_bytes() == b"after\n", "where it begins, and not behind a hole"
    _do(data, "trim_logs 800")
    assert long.read_bytes() == b"after\n" and short.read_text() == "short\n" and not Path(f"{short}.1").exists()


def test_it_is_done_beside_what_runs_until_down_ends_it(data):
    log = data / "log/archiver.log"
    log.write_bytes(b"x" * 40_000_000)
    try:
        _do(data, f'keep_logs "{LOCAL}/keep-logs"')
        wait_until(lambda: log.stat().st_size == 0, 20, "the cut")
        assert Path(f"{log}.1").stat().st_size == 16 * 1024 * 1024
        pid = (data / "run/logs.pid").read_text()
        _do(data, f'keep_logs "{LOCAL}/keep-logs"')
        assert (data / "run/logs.pid").read_text() == pid, "there is one"
    finally:
        _do(data, "stop logs keep-logs")
    line = Path(f"/proc/{pid.strip()}/cmdline")  # empty: ended, and not reaped where init is slow
    assert not (line.exists() and line.read_bytes()) and not (data / "run/logs.pid").exists()
    up, down = (LOCAL / "up").read_text(), (LOCAL / "down").read_text()
    assert 'keep_logs "$here/keep-logs"' in up and "stop logs keep-logs" in down
