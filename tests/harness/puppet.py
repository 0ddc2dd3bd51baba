# SPDX-License-Identifier: Apache-2.0
"""A Python program of ours in a process of its own, driven by lines of JSON: its work costs the test's interpreter nothing.

The program runs `serve(loop, obey)`: each line on its standard input is a command, `obey(command)` gives the answer, and
the end of the input ends it, so it never outlives the test."""
import asyncio
import json
import os
import subprocess
import sys
import threading


class Puppet:
    """start(), tell(...) -> the answer, stop(). `program` is the path of the Python file."""

    def __init__(self, program):
        self.program = program
        self.child = None
        self.lock = threading.Lock()

    def start(self):
        self.child = subprocess.Popen(
            [sys.executable, str(self.program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        return self

    def tell(self, **command):
        with self.lock:
            self.child.stdin.write(json.dumps(command) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        assert line, f"{self.program} ended with {self.child.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, f"{command}: {answer['error']}"
        return answer

    def stop(self):
        if self.child is not None and self.child.poll() is None:
            self.child.stdin.close()
            try:
                self.child.wait(5)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def serve(obey):
    """The other side: an event loop that ends when the standard input does. `obey` is a coroutine function."""
    asyncio.run(_serve(obey))


async def _serve(obey):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            answer = await obey(json.loads(line)) or {}
        except Exception as error:  # noqa: BLE001 (reported to the test, which decides)
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)
    os._exit(0)
