# SPDX-License-Identifier: Apache-2.0
"""The product's object storage by hand: `storage_probe` (tests/probes) does what it is asked and says how each verb ended."""
import hashlib
import json
import os
import subprocess

from tests.harness.processes import BIN

PROBE = BIN.parent / "tests" / "storage_probe"
TAB = "\t"


class Storage:
    """environment: STENTOR_STORAGE_*; folder: for the files that are put. Ends with `with`; a sanitizer's finding fails the test."""

    def __init__(self, environment, folder):
        self.folder = folder
        self.log = open(folder / "probe.log", "ab")
        self.process = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, **environment})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        status = self.process.wait(60)
        self.log.close()
        assert kind or status == 0, (self.folder / "probe.log").read_text()[-2000:]

    def send(self, *words):
        """Does not wait: `answer()` does."""
        print(TAB.join(str(word) for word in words), file=self.process.stdin, flush=True)

    def answer(self):
        line = self.process.stdout.readline()
        assert line, (self.folder / "probe.log").read_text()[-2000:]
        return json.loads(line)

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def send_put(self, key, body, condition="always", etag="-", installation="-", storage_class="-", verb="put"):
        file = self.folder / "body"
        file.write_bytes(body)
        self.send(verb, key, file, condition, etag, installation, storage_class)

    def put(self, key, body, *words, **named):
        self.send_put(key, body, *words, **named)
        return self.answer()

    def get(self, key, offset=0, length=0):
        return self.ask("get", key, offset, length)

    def gives(self, key, body):
        """The object is exactly these bytes."""
        got = self.get(key)
        return got["outcome"] == "done" and (got["bytes"], got["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())

    def head(self, key):
        return self.ask("head", key)

    def list(self, prefix="-"):
        answer = self.ask("list", prefix)
        assert answer["outcome"] == "done", answer
        return [entry["key"] for entry in answer["entries"]]

    def delete(self, key, version="-"):
        return self.ask("delete", key, version)
