# SPDX-License-Identifier: Apache-2.0
"""What an operator reads: /readyz of a deleted stream or consumer, of a Postgres that takes no writes or no connections; and that
neither slow clients nor a full table of files shut /healthz."""
import json
import os
import resource
import socket
import subprocess
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until

CONNECTIONS = 40


@pytest.fixture(scope="module")
def breakable():
    running = Pipeline({"STENTOR_INGEST_CONNECTIONS": CONNECTIONS, "STENTOR_WEBHOOK_CONNECTIONS": CONNECTIONS}).start()
    yield running
    running.stop()


def await_unready(service, *words, seconds=10):
    def reported():
        status, text = service.get("/readyz")
        return status == 503 and all(word in text for word in words)
    wait_until(reported, seconds, f"{service.name} saying {words}: {service.get('/readyz')}")


def await_ready(service, seconds=15):
    wait_until(service.ready, seconds, f"{service.name} being ready: {service.get('/readyz')}")


def lines_of(service, word):
    return [line for line in service.log.read_text().splitlines() if word in line]


def test_finding_16_a_deleted_consumer_and_a_deleted_stream_are_reported(breakable):
    ingest, renderer = breakable.services["ingest"], breakable.services["renderer"]
    client = NatsClient(breakable.nats.port)
    client.request("$JS.API.CONSUMER.DELETE.REQUEST_NORMAL.renderer")
    await_unready(renderer, "consumer 'renderer' of stream 'REQUEST_NORMAL' is missing", "stentor migrate")
    assert ingest.ready()
    breakable.cli("migrate", admin=True)
    await_ready(renderer)
    client.request("$JS.API.STREAM.DELETE.STATUS")
    await_unready(ingest, "stream 'STATUS' is missing", "stentor migrate", seconds=25)  # it reads nothing of it now: the next look says so
    breakable.cli("migrate", admin=True)
    await_ready(ingest)
    assert len(lines_of(ingest, "stream 'STATUS' is missing")) == 1
    client.close()
    breakable.send()


def test_finding_16_a_postgres_that_takes_no_writes_is_reported(breakable):
    """As with a full disk: reading goes on, each write is 53100."""
    ingest = breakable.services["ingest"]
    breakable.postgres.query(
        "CREATE FUNCTION ingest.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'could not extend file \"base/1/2\": No space left on device' USING ERRCODE = '53100'; END $$;"
        "CREATE TRIGGER full_disk BEFORE INSERT ON ingest.accept_log EXECUTE FUNCTION ingest.full_disk()")
    try:
        breakable.post({"to": "a@example.com", "template": "welcome", "variables": {"name": "A"}})
        await_unready(ingest, "postgres takes no writes", "No space left on device")
        assert ingest.get("/healthz")[0] == 200
        assert lines_of(ingest, "postgres takes no writes")
    finally:
        breakable.postgres.query("DROP TRIGGER full_disk ON ingest.accept_log; DROP FUNCTION ingest.full_disk()")
    await_ready(ingest, 25)
    breakable.send()


def test_finding_16_why_postgres_takes_no_connection_is_logged(breakable):
    ingest = breakable.services["ingest"]
    before = len(lines_of(ingest, "too many connections"))
    breakable.postgres.query("ALTER ROLE stentor_ingest CONNECTION LIMIT 0")
    try:
        breakable.postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'stentor_ingest'")
        wait_until(lambda: len(lines_of(ingest, "too many connections")) > before, 15, "the reason in the log")
        await_unready(ingest, "not connected to postgres", "too many connections")
        assert len(lines_of(ingest, "too many connections")) - before <= 3, "one line for a reason, not one for each attempt"
    finally:
        breakable.postgres.query("ALTER ROLE stentor_ingest CONNECTION LIMIT -1")
    await_ready(ingest)


def dial(port):
    return socket.create_connection(("127.0.0.1", port), 5)


@pytest.mark.parametrize("which", ["ingest", "webhook-receiver"])
def test_finding_06_silent_connections_shut_no_other_out(breakable, which):
    service = breakable.services[which]
    port = breakable.ingest_port if which == "ingest" else breakable.webhook_port
    silent = []
    try:
        for target, count in ((port, 2 * CONNECTIONS), (service.admin_port, 80)):
            for _ in range(count):
                peer = dial(target)
                peer.sendall(b"POST /v1/notifications HTTP/1.1\r\nX-Slow: ")
                silent.append(peer)
        time.sleep(1.2)  # a stranger may wait for a second before it is given up
        begin = time.monotonic()
        status = breakable.post(b"{}", path="/v1/notifications" if which == "ingest" else "/v1/inbound/acme/sendgrid", port=port)[0]
        assert status in (400, 401, 403, 422)
        assert service.get("/healthz")[0] == 200 and service.get("/readyz")[0] == 200
        assert time.monotonic() - begin < 5
    finally:
        for peer in silent:
            peer.close()


def settled_files(pid):
    """How many files it has open, once those of clients that went away are closed."""
    def count():
        before = len(os.listdir(f"/proc/{pid}/fd"))
        time.sleep(0.3)
        return before if before == len(os.listdir(f"/proc/{pid}/fd")) else 0
    return wait_until(count, 20, "no file being opened or closed")


def test_finding_16_exhausted_files_are_logged_with_the_limit(breakable):
    ingest = breakable.services["ingest"]
    pid = ingest.child.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    now = settled_files(pid)
    ports = [breakable.ingest_port, ingest.admin_port]

    def named():
        return [json.loads(line)["port"] for line in lines_of(ingest, f"the limit of open files is {now + 3}")]
    peers = []
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (now + 3, hard))
        for port in ports:
            peers += [dial(port) for _ in range(12)]
            wait_until(lambda: port in named(), 10, f"the line about files of port {port}")
        time.sleep(0.5)  # it tries again five times a second
        assert named() == ports, "one line a minute for each port"
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        for peer in peers:
            peer.close()
    await_ready(ingest)
    breakable.send()


def test_finding_10_a_password_without_a_verified_server_ends_the_start(breakable):
    for word in ("opportunistic", "off"):
        dispatcher = breakable.services["dispatcher"]
        environment = {**dispatcher.environment(), "STENTOR_ADMIN_PORT": "0", "STENTOR_SMTP_URL": "smtp://me:S3cret@127.0.0.1:1",
                       "STENTOR_SMTP_TLS": word}
        done = subprocess.run(dispatcher.argv(), env=environment, capture_output=True, text=True, timeout=20)
        assert done.returncode != 0
        assert "STENTOR_SMTP_TLS=required" in done.stderr and "S3cret" not in done.stderr
