# SPDX-License-Identifier: Apache-2.0
"""An installation as an operator makes one: `stentor init`, a Postgres that wants passwords, a NATS with the accounts of the folder."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg2

from tests.harness.processes import BIN, HOME, Nats, Postgres, Process, free_port

NAMES = ["ingest", "gateway", "renderer", "dispatcher", "webhook", "webhook-receiver", "digest-flusher", "archiver", "order-saga"]


def run(*words, crash_at=None, timeout=60, **environment):
    env = {"PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME), "HOME": "/nonexistent", **environment}
    if crash_at:
        env["STENTOR_CRASH_AT"] = crash_at
    return subprocess.run([BIN / "stentor", *map(str, words)], env=env, capture_output=True, text=True, timeout=timeout)


def do(*words, **more):
    done = run(*words, **more)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()] if "--json" in words else done.stdout


class ScramPostgres(Postgres):
    """Made as an operator would, with the superuser's password from the folder; every login needs its password."""

    def __init__(self, folder, password_file):
        super().__init__(folder)
        self.password_file = password_file

    def start(self, wait=True):
        if not self.data.exists():
            copy = self.folder / "password"
            shutil.copy(self.password_file, copy)
            for path in (self.folder, copy):
                if self.user():
                    shutil.chown(path, self.user())
            subprocess.run([self.bin / "initdb", "-D", self.data, "-U", "postgres", "--auth=scram-sha-256", f"--pwfile={copy}",
                            "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"], check=True, user=self.user(), stdout=subprocess.DEVNULL, cwd="/")
        return Process.start(self, wait)


class FolderNats(Nats):
    def __init__(self, folder, port, etc):
        super().__init__(folder)
        self.port, self.etc = port, etc

    def start(self, wait=True):
        return Process.start(self, wait)

    def argv(self):
        return ["nats-server", "-c", self.etc / "nats.conf"]


class World:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="stentor-init-"))
        os.chmod(self.folder, 0o755)
        self.etc = self.folder / "etc"
        self.postgres = ScramPostgres(self.folder / "pg", self.etc / "postgres.password")
        self.nats = FolderNats(self.folder / "nats", free_port(), self.etc)
        self.services = []

    def files(self, *words, **more):
        return run("init", "files", "--folder", self.etc, "--database", f"host=127.0.0.1 port={self.postgres.port} dbname=stentor",
                   "--nats", self.nats.url, "--nats-listen", f"127.0.0.1:{self.nats.port}", "--nats-store", self.folder / "nats/store", *words, **more)

    def servers(self, *words, **more):
        return run("init", "servers", "--folder", self.etc, "--bytes-scale-percent", 1, "--timeout", 20, "--json", *words, **more)

    def start(self):
        assert self.files().returncode == 0
        self.postgres.start()
        self.nats.start()
        return self

    def text(self, name):
        return (self.etc / name).read_text().rstrip("\n")

    def verifiers(self):
        with psycopg2.connect(self.text("superuser.database-url").replace("dbname='stentor'", "dbname='postgres'")) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE 'stentor%' ORDER BY 1")
            return cursor.fetchall()

    def end(self):
        for process in [*self.services, self.nats, self.postgres]:
            if process.alive():
                process.kill()
        shutil.rmtree(self.folder)


class FolderService(Process):
    """A service by its settings of the folder; what the test gives goes over them."""

    def __init__(self, world, name, **options):
        self.name, self.world, self.port, self.api_port = name, world, free_port(), free_port()
        self.options = options
        super().__init__(world.folder / "services")

    def argv(self):
        return [BIN / f"stentor-{self.name}", "--config", self.world.etc / f"{self.name}.conf"]

    def environment(self):
        return {"PATH": os.environ["PATH"], "STENTOR_ADMIN_PORT": str(self.port), "STENTOR_GATEWAY_PORT": str(self.api_port),
                "STENTOR_INGEST_PORT": str(self.api_port), "STENTOR_WEBHOOK_PORT": str(self.api_port), "STENTOR_SMTP_URL": "smtp://127.0.0.1:1",
                "STENTOR_SMTP_TLS": "off", "STENTOR_LOG_FORMAT": "json", **{name: str(value) for name, value in self.options.items()}}

    def asked(self):
        """By the program itself, as a container asks: (exit status, what it says)."""
        done = subprocess.run([*self.argv(), "--ready"], env=self.environment(), capture_output=True, text=True, timeout=10)
        return done.returncode, done.stdout + done.stderr

    def ready(self):
        return self.asked()[0] == 0
