# SPDX-License-Identifier: Apache-2.0
"""A subscriber of its own user makes a durable consumer on STATUS with public clients (audit: finding 4; domain.md row 33d, "NATS users with
only their subjects": it sees its own tenant's statuses and no other's)."""
import json
import subprocess
import uuid

import pytest

from tests.harness import clients
from tests.harness.clients import subscribers
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    pipeline = Pipeline().start()
    pipeline.etc = subscribers.describe(pipeline)
    pipeline.passwords = {name: subscribers.create(pipeline.etc, name, tenant) for name, tenant in (("search", "acme"), ("board", "beta"))}
    subscribers.reload(pipeline, "search", pipeline.passwords["search"])
    yield pipeline
    pipeline.stop()


def _run(pipeline, language, count, user="search", tenant="acme", consumer="", timeout=90):
    words, environment = clients.command(language, pipeline.folder)
    environment |= {"NATS_URL": pipeline.nats.url, "NATS_USER": user, "NATS_PASSWORD": pipeline.passwords[user], "TENANT": tenant}
    if consumer:
        environment["CONSUMER"] = consumer
    return subprocess.run([*words, str(count)], capture_output=True, text=True, timeout=timeout, env=environment)


def _statuses(pipeline, tenant="acme"):
    """How many STATUS has of the tenant."""
    answer = json.loads(NatsClient(pipeline.nats.port).request("$JS.API.STREAM.INFO.STATUS", json.dumps({"subjects_filter": f"ntf.status.{tenant}.>"}).encode()))
    return sum((answer["state"].get("subjects") or {}).values())


def _sent(pipeline):
    """A notification with both of its statuses in the stream."""
    before, notification = _statuses(pipeline), pipeline.send()
    wait_until(lambda: _statuses(pipeline) == before + 2, 20, "queued and sent")
    return notification


def _of_beta(pipeline):
    """A status of another tenant."""
    event = uuid.uuid4().hex[:22]
    headers = {"ce-type": "stentor.notification.sent.v1", "ce-subject": "ntf_of_beta", "ce-id": event}
    NatsClient(pipeline.nats.port).publish("ntf.status.beta.email.sent", b"", event_id=event, headers=headers)


@pytest.mark.parametrize("number, language", enumerate(["node", "go", "c", "python"]))
def test_a_durable_consumer_of_a_public_client_goes_on_where_it_stopped(pipeline, number, language):
    _of_beta(pipeline)
    first, consumer = _sent(pipeline), f"search-{number}"
    done = _run(pipeline, language, _statuses(pipeline), consumer=consumer)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {status for status, notification, _ in lines if notification == first} == {"queued", "sent"}
    assert len(lines) == _statuses(pipeline) and len({event for *_, event in lines}) == len(lines)
    second = _sent(pipeline)  # while the program is away
    done = _run(pipeline, language, 2, consumer=consumer)
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[:2] for line in done.stdout.splitlines()) == [["queued", second], ["sent", second]]


def test_no_public_client_makes_a_consumer_of_another_tenant_or_name(pipeline):
    """The C client, because it is there wherever Stentor is built."""
    for other in ({"tenant": "beta"}, {"consumer": "board-0"}, {"consumer": "stentor-archiver-0"}, {"consumer": "search-8"}):
        done = _run(pipeline, "c", 1, **other)
        assert done.returncode == 1 and done.stdout == "" and "consumer" in done.stderr, (other, done.stdout, done.stderr)
    _of_beta(pipeline)
    done = _run(pipeline, "c", _statuses(pipeline, "beta"), user="board", tenant="beta")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == _statuses(pipeline, "beta"), done.stderr


def test_what_is_wrong_is_refused_and_nothing_is_written(pipeline):
    before = {path.name: path.read_bytes() for path in pipeline.etc.iterdir() if path.is_file()}
    for words, said in ((("search", "--tenant", "acme"), "'search' is given twice"), (("search-3", "--tenant", "beta"), "is a consumer of subscriber 'search'"),
                        (("Desk", "--tenant", "acme"), "'Desk' is not a name"), (("desk", "--tenant", "A*"), "'A*' is not a tenant id"),
                        (("desk\nx", "--tenant", "acme"), "line")):
        done = subscribers.stentor("subscriber", "create", *words, "--folder", pipeline.etc)
        assert done.returncode == 2 and said in done.stderr, (words, done.stderr)
    done = subscribers.stentor("subscriber", "create", "desk", "--tenant", "acme", "--folder", pipeline.folder / "nothing")
    assert done.returncode == 1 and "HINT: --folder" in done.stderr
    assert {path.name: path.read_bytes() for path in pipeline.etc.iterdir() if path.is_file()} == before


def test_the_files_keep_who_may_read_them_and_init_keeps_the_subscriber(pipeline, tmp_path):
    etc = tmp_path / "etc"
    assert subscribers.stentor("init", "files", "--folder", etc, "--epoch-keys", "none").returncode == 0
    (etc / "nats-accounts.conf").chmod(0o640)
    password = subscribers.create(etc, "desk", "acme")
    assert (etc / "nats-accounts.conf").stat().st_mode & 0o777 == 0o640 and (etc / "accounts").stat().st_mode & 0o777 == 0o600
    written = (etc / "nats-accounts.conf").read_text()
    assert '"subscriber-desk"' in written and password not in written  # a hash
    assert subscribers.stentor("init", "files", "--folder", etc).returncode == 0
    assert (etc / "nats-accounts.conf").read_text() == written
