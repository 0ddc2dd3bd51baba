# SPDX-License-Identifier: Apache-2.0
"""Calls of one of our HTTP clients by hand, through a program of tests/probes."""
import json
import subprocess

from tests.harness.processes import BIN


class HttpProbe:
    """name: of the program in tests/probes; options: its arguments; first: the id of the first call."""

    def __init__(self, name, *options, first=0):
        self.child = subprocess.Popen([BIN.parent / "tests" / name, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.next = first

    def post(self, url, count=1, **more):
        """(calls in the order of their ids, the sum)."""
        self.child.stdin.write(json.dumps({"url": url, "count": count, "first": self.next, **more}) + "\n")
        self.child.stdin.flush()
        self.next += count
        calls = []
        while not (line := json.loads(self.child.stdout.readline())).get("done"):
            calls.append(line)
        return sorted(calls, key=lambda call: call["id"]), line

    def one(self, url, **more):
        return self.post(url, **more)[0][0]

    def stop(self):
        self.child.stdin.close()
        assert self.child.wait(30) == 0
