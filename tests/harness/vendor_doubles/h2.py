# SPDX-License-Identifier: Apache-2.0
"""A real server of HTTP/2 over TLS (node), which does what the path says and knows which requests it took whole: h2.mjs."""
import json
import pathlib
import shutil
import signal
import subprocess

import pytest

from tests.harness.processes import free_port
from tests.harness.vendor_doubles.server import certificates


class H2:
    def __init__(self, folder, max_streams=100):
        if not shutil.which("node"):
            pytest.skip("this machine has no node")
        self.port = free_port()
        self.ca, chain, key = certificates(folder)
        program = pathlib.Path(__file__).with_name("h2.mjs")
        self.child = subprocess.Popen(["node", program, str(self.port), chain, key, str(max_streams)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout.readline() == "ready\n"

    def url(self, path, host="127.0.0.1"):
        return f"https://{host}:{self.port}{path}"

    def _ask(self, word):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def seen(self):
        """taken (ids), connections, together (most streams of a connection), before_first (of one that had answered nothing), headers (last)."""
        return self._ask("stats")

    def forget(self):
        self._ask("forget")

    def freeze(self):
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)

    def stop(self):
        self.child.kill()
        self.child.wait(10)
