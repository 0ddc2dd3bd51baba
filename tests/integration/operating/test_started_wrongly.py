# SPDX-License-Identifier: Apache-2.0
"""A program that is started with something wrong prints one line with the cause and the remedy, and works when it is corrected, without a restart
where that is possible. What asks whether it works: its own --ready, readiness that does not flap, systemd."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time

import psycopg2
import pytest

from tests.harness.installed import NAMES, FolderService, World, do, run
from tests.harness.nats_client import NatsClient
from tests.harness.processes import BIN, wait_until


@pytest.fixture(name="world", scope="module")
def _world():
    world = World()
    try:
        world.start()
        assert world.servers().returncode == 0
        yield world
    finally:
        world.end()


@pytest.fixture(name="start")
def _start(world):
    running = []

    def start(name="archiver", **options):
        service = FolderService(world, name, **options)
        service.log = service.folder / f"{name}-{time.monotonic_ns()}.log"
        running.append(service)
        return service.start(wait=False)
    yield start
    for service in running:
        assert service.stop() == 0, service.tail()


def lines(service, level=("warn", "error")):
    """What an operator must look at, without the time."""
    logged = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in logged if line["level"] in level]


def says(service, *words):
    return wait_until(lambda: [line for line in lines(service) if all(word in json.dumps(line) for word in words)], 10, f"a line with {words}")


def sql(world, text, database="stentor"):
    connection = psycopg2.connect(world.text("superuser.database-url").replace("dbname='stentor'", f"dbname='{database}'"))
    connection.autocommit = True
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(text)


# ---- without configuration ----


@pytest.mark.parametrize("name", [*NAMES, "outbox-relay"])
def test_without_configuration_one_line_says_what_is_missing(name):
    done = subprocess.run([BIN / f"stentor-{name}"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert "is not set" in done.stderr and "HINT: --config FILE of 'stentor init files'" in done.stderr


def test_in_a_container_that_line_is_json_on_standard_output():
    done = subprocess.run([BIN / "stentor-ingest"], env={"PATH": os.environ["PATH"], "STENTOR_LOG_FORMAT": "json", "STENTOR_LOG_OUTPUT": "stdout"},
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and done.stderr == ""
    line = json.loads(done.stdout)
    assert line["level"] == "error" and line["event"] == "cannot start" and "is not set" in line["error"]


def test_the_log_goes_where_it_is_said_to(world):
    service = FolderService(world, "archiver", STENTOR_LOG_OUTPUT="stdout")
    with subprocess.Popen(service.argv(), env=service.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        first = json.loads(running.stdout.readline())
        assert first["service"] == "stentor-archiver"
        wait_until(lambda: service.ready(), 20, "ready")
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=20)
    assert err == "" and all(json.loads(line) for line in out.splitlines()) and running.returncode == 0
    bad = subprocess.run(service.argv(), env={**service.environment(), "STENTOR_LOG_OUTPUT": "syslog"}, capture_output=True, text=True, timeout=20)
    assert bad.returncode == 2 and "STENTOR_LOG_OUTPUT is 'syslog': expected stderr or stdout" in bad.stderr


# ---- passwords ----


def test_a_wrong_password_of_postgres(world, start):
    right = world.text("archiver.database-url")
    service = start(STENTOR_DATABASE_URL=right.replace(world.text("archiver.password"), "wrong"))
    (line,) = says(service, "password authentication failed", "stentor_archiver", "HINT: see STENTOR_DATABASE_URL", "stentor init servers")
    status, text = service.asked()
    assert status == 1 and "password authentication failed" in text and "HINT" in text
    sql(world, "ALTER ROLE stentor_archiver PASSWORD 'wrong'")
    try:
        service.wait_ready()
        assert len([other for other in lines(service) if "password authentication" in json.dumps(other)]) == 1, lines(service)
    finally:
        assert world.servers("--reset-passwords").returncode == 0


def test_a_wrong_password_of_nats(world, start):
    accounts = world.etc / "nats-accounts.conf"
    text = accounts.read_text()
    service = start(STENTOR_NATS_PASSWORD="another")
    says(service, "Authorization", "HINT: STENTOR_NATS_USER, STENTOR_NATS_PASSWORD", "reload")
    status, said = service.asked()
    assert status == 1 and "not connected to nats (" in said and "HINT" in said
    try:
        accounts.write_text(re.sub(r'(user: "stentor-archiver", password: )"[^"]*"', r'\1"another"', text))
        world.nats.child.send_signal(signal.SIGHUP)
        service.wait_ready()
        assert len([line for line in lines(service) if "HINT" in json.dumps(line)]) == 1, "one line, however many attempts"
    finally:
        accounts.write_text(text)
        world.nats.child.send_signal(signal.SIGHUP)


# ---- what is in the servers ----


def test_a_database_of_a_newer_release(world, start):
    sql(world, "INSERT INTO stentor.migrations (schema, number, slug, checksum) VALUES ('ingest', 9998, 'later', '')")
    try:
        service, forced = start(), start("ingest", STENTOR_DATABASE_NEWER="true")
        (line,) = says(service, "not ready", "newer release: it has migration ingest/9998", "HINT: start the newer release")
        status, text = service.asked()
        assert status == 1 and "ingest/9998" in text
        forced.wait_ready()
        assert says(forced, "started on a newer database", "ingest/9998")
    finally:
        sql(world, "DELETE FROM stentor.migrations WHERE number = 9998")
    service.wait_ready()
    # What runs goes on: an upgrade brings the database up first.
    sql(world, "INSERT INTO stentor.migrations (schema, number, slug, checksum) VALUES ('ingest', 9998, 'later', '')")
    time.sleep(1.2)
    assert service.ready()
    sql(world, "DELETE FROM stentor.migrations WHERE number = 9998")


def test_a_database_of_an_older_release_and_none_of_ours(world, start):
    sql(world, "UPDATE stentor.migrations SET schema = 'order_saga_' WHERE schema = 'order_saga'")
    sql(world, "CREATE DATABASE empty", "postgres")
    sql(world, "GRANT CONNECT ON DATABASE empty TO stentor_archiver", "postgres")
    service = start()
    empty = start("archiver", STENTOR_DATABASE_URL=world.text("archiver.database-url").replace("dbname='stentor'", "dbname='empty'"))
    try:
        says(service, "not ready", "older release: migration order_saga/0001 is missing", "HINT: run 'stentor migrate'")
    finally:
        sql(world, "UPDATE stentor.migrations SET schema = 'order_saga' WHERE schema = 'order_saga_'")
    service.wait_ready()
    says(empty, "not ready", "was not prepared", "for a new one 'stentor init'")


def test_half_of_the_streams_are_missing(world, start):
    with contextlib.closing(NatsClient(world.nats.port, password=world.text("admin.password"))) as client:
        for stream in ("CONFIG", "REQUEST_LOW", "STATUS", "EVENTS", "DEAD", "RENDERED_HIGH"):
            assert json.loads(client.request(f"$JS.API.STREAM.DELETE.{stream}"))["success"]
    services = [start(name) for name in ("archiver", "renderer")]
    for service in services:
        (line,) = says(service, "not ready", "is missing", "more of", "HINT: run 'stentor migrate'")
        assert service.asked()[0] == 1
    assert world.servers().returncode == 0
    for service in services:
        service.wait_ready()


# ---- clocks ----

SHIFT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    static int (*real)(clockid_t, struct timespec *);
    real = real ? real : (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, ret);
    ret->tv_sec += clock == CLOCK_REALTIME ? 300 : 0;
    return status;
}
"""


def test_a_clock_that_is_five_minutes_off(world, start, tmp_path):
    (tmp_path / "shift.c").write_text(SHIFT)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "shift.so", tmp_path / "shift.c", "-ldl"], check=True)
    shifted = {"LD_PRELOAD": str(tmp_path / "shift.so"), "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    service = start(**shifted)
    (line,) = says(service, "clock differs from this machine's", '"Postgres"', "no restart is needed")
    assert -301000 <= line["server_ahead_ms"] <= -298000
    says(service, "clock differs from this machine's", '"NATS"')
    service.wait_ready()
    done = run("--config", world.etc / "cli.conf", "doctor", "--json", **shifted)
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    for name in ("postgres clock", "nats clock"):
        assert checks[name]["result"] == "fail" and re.match(r"(299|300) s behind", checks[name]["text"]) and "chrony" in checks[name]["text"]
    right = start("gateway")
    right.wait_ready()
    assert not [line for line in lines(right) if "clock" in line["event"]]


# ---- readiness ----


def test_the_program_itself_says_whether_another_of_it_works(world, start):
    service = FolderService(world, "webhook-receiver")
    assert service.asked()[0] == 1 and "no answer from the admin port 127.0.0.1:" in service.asked()[1]
    service = start("webhook-receiver", STENTOR_ADMIN_BIND="0.0.0.0")
    service.wait_ready()
    assert service.asked() == (0, "ready\n")
    assert do("ready", f"http://127.0.0.1:{service.port}") == f"http://127.0.0.1:{service.port}: ready\n"
    done = run("ready", f"http://127.0.0.1:{service.port}", "http://127.0.0.1:1")
    assert done.returncode == 1 and "http://127.0.0.1:1: " in done.stdout
    service.options["STENTOR_ADMIN_PORT"] = 0
    status, text = service.asked()
    assert status == 2 and "STENTOR_ADMIN_PORT is 0" in text


def test_readiness_does_not_come_and_go_with_a_server_that_does(world, start):
    service = start()
    service.wait_ready()
    seen = []
    for _ in range(4):
        world.nats.kill()
        seen.append(service.ready())
        world.nats.start()
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            seen.append(service.ready())
            time.sleep(0.03)
    assert not any(seen[2:]), seen
    service.wait_ready()


def test_systemd_hears_of_start_watchdog_and_stop(world, start):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind("\0stentor-test-%d" % os.getpid())
        heard.settimeout(15)
        service = start(NOTIFY_SOCKET="@stentor-test-%d" % os.getpid(), WATCHDOG_USEC="2000000")
        assert heard.recv(1024) == b"READY=1\nSTATUS=ready"
        assert service.ready()
        assert heard.recv(1024) == b"WATCHDOG=1"
        world.nats.kill()
        said = wait_until(lambda: (text := heard.recv(1024)) != b"WATCHDOG=1" and text, 10, "the status")
        assert said.startswith(b"STATUS=not ready: not connected to nats")
        world.nats.start()
        assert wait_until(lambda: (text := heard.recv(1024)) != b"WATCHDOG=1" and text, 10, "the status") == b"STATUS=ready"
        service.stop()
        assert wait_until(lambda: (text := heard.recv(1024)) != b"WATCHDOG=1" and text, 10, "the end") == b"STOPPING=1\nSTATUS=stopping"


