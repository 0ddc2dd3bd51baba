# SPDX-License-Identifier: Apache-2.0
"""A running product of one build, as the bench sees it (serve.py runs it)."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STARTS_MAX = 3


def start(*words):
    """A Product; again when another program took one of its ports in the meantime."""
    for number in range(1, STARTS_MAX + 1):
        try:
            return Product(*words)
        except AssertionError as error:
            if number == STARTS_MAX:
                raise
            print(f"{error}; starting it again", file=sys.stderr, flush=True)
    return None


class Product:
    def __init__(self, build, sink_port, beside=(), options=None):
        """beside: programs beside those that the harness starts. options: settings for every program."""
        settings = {"sink_port": sink_port, "beside": list(beside), "options": options or {}}
        environment = {**os.environ, "STENTOR_BIN": str(build.bin)}
        self.child = subprocess.Popen([sys.executable, HERE / "serve.py", build.tree, json.dumps(settings)], env=environment,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name, value in self.answer().items():
            setattr(self, name, value)
        self.folder = Path(self.folder)

    def answer(self):
        line = self.child.stdout.readline()
        assert line, f"serve.py ended with {self.child.wait()}: see above"
        return json.loads(line)

    def ask(self, **command):
        self.child.stdin.write(json.dumps(command) + "\n")
        self.child.stdin.flush()
        return self.answer()

    def cli(self, *words, admin=False):
        return self.ask(cli=list(map(str, words)), admin=admin)["output"]

    def database(self, name="stentor"):
        import psycopg2
        connection = psycopg2.connect(f"host=127.0.0.1 port={self.postgres_port} dbname={name} user=postgres")
        connection.autocommit = True
        return connection

    def stop(self):
        """In order; fails when a service did not end well."""
        self.ask(stop=True)
        assert self.child.wait(60) == 0

    def close(self):
        """Whatever its state: at the end of its input it kills what it started."""
        if self.child.poll() is None:
            self.child.stdin.close()
            self.child.wait(120)
