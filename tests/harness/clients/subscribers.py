# SPDX-License-Identifier: Apache-2.0
"""A NATS server whose accounts `stentor init` describes, so that a subscriber is made as an operator makes it: create, reload."""
import json
import os
import signal
import subprocess
import time

from tests.harness.nats_client import NatsClient
from tests.harness.processes import BIN, wait_until

TABLE = "relay stentor-outbox-relay tenants=*\nstentor-outbox-relay=pw\nsubscriber stentor-subscriber tenant=acme\nstentor-subscriber=pw\n"


def stentor(*words):
    return subprocess.run([BIN / "stentor", *map(str, words)], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"})


def describe(pipeline):
    """The folder of init, with the passwords that the services have."""
    etc, accounts = pipeline.folder / "etc", pipeline.folder / "accounts"
    accounts.write_text(TABLE)
    done = stentor("init", "files", "--folder", etc, "--passwords", pipeline.nats.folder / "passwords", "--accounts", accounts, "--epoch-keys", "none")
    assert done.returncode == 0, done.stderr
    return etc


def create(folder, name, tenant):
    """The password of a new subscriber."""
    done = stentor("subscriber", "create", name, "--tenant", tenant, "--folder", folder, "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["user"], made["tenant"]) == (name, tenant)
    return made["password"]


def reload(pipeline, name, password):
    """Has nats-server read the folder's accounts, and waits until it knows the subscriber and every service is connected again."""
    head = pipeline.nats.config.read_text().splitlines()[:2]
    pipeline.nats.config.write_text("\n".join(head) + '\ninclude "../etc/nats-accounts.conf"\n')
    for _ in range(2):  # as the command says: nats-server 2.9 connects what a new account imports at the second
        os.kill(pipeline.nats.child.pid, signal.SIGHUP)
        time.sleep(1)

    def known():
        try:
            NatsClient(pipeline.nats.port, name, password).close()
            return True
        except (AssertionError, OSError):
            return False
    wait_until(known, 10, "nats-server knowing the new user")
    for service in pipeline.services.values():
        service.wait_ready()  # their password is a hash now: each has connected again
