# SPDX-License-Identifier: Apache-2.0
"""A master key file that is not the installation's ends every program that loads it, before it is ready and before it does anything."""
import json
import re
import secrets

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import NEIGHBOURS, SERVICES, free_port, wait_until

HOLDERS = [name for name in [*SERVICES, *NEIGHBOURS] if name not in ("archiver", "outbox-relay")]


@pytest.fixture(scope="module")
def running():
    pipeline = Pipeline().start()
    yield pipeline
    pipeline.stop()


def wrong_files(running):
    (master,), (hashed,) = running.master_keys().values()
    other = secrets.token_hex
    return {"both": (other(32), other(32)), "first": (other(32), hashed), "second": (master, other(32)), "swapped": (hashed, master)}


def wrong_file(running, which):
    path = running.folder / f"wrong-{which}-{secrets.token_hex(4)}.key"  # a program may be reading the one before
    path.write_text("\n".join(wrong_files(running)[which]) + "\n")
    return path


def start_wrong(running, name, which):
    ports = {f"STENTOR_{name}_PORT": free_port() for name in ("INGEST", "GATEWAY", "WEBHOOK")}
    service = running.service(name, instance=f"wrong-{which}", **ports)
    service.options["STENTOR_MASTER_KEY_FILE"] = wrong_file(running, which)
    return service.start(wait=False)


def test_finding_05_each_program_that_loads_another_installations_file_ends_before_it_is_ready(running):
    cases = [(name, "both") for name in HOLDERS]
    cases += [(name, which) for name in ("ingest", "webhook-receiver") for which in ("first", "second", "swapped")]
    started = [(case, start_wrong(running, *case)) for case in cases]
    for (name, which), service in started:
        def ended(service=service):
            assert not service.ready(), f"{name} is ready with a wrong file ({which})"
            return service.child.poll() is not None
        wait_until(ended, 30, f"{name} refusing a wrong file ({which})")
        assert service.child.returncode == 2, service.tail()
        kind = "hash" if which == "second" else "master"
        assert f"expected the {kind} key " in service.log.read_text(), service.tail()
        assert "HINT: correct STENTOR_MASTER_KEY_FILE" in service.log.read_text()


def with_file(running, path, *words):
    good = running.folder / "master.key"
    kept = good.read_text()
    good.write_text(path.read_text())
    try:
        return running.run_cli(*words)
    finally:
        good.write_text(kept)


@pytest.mark.parametrize("which", ["both", "first", "second", "swapped"])
def test_finding_05_doctor_refuses_another_installations_file(running, which):
    """`suppress` did too, when it hashed addresses itself: now ingest and gateway do, which refuse the file at their start."""
    path = wrong_file(running, which)
    report = json.loads(with_file(running, path, "doctor", "--json").stdout)
    checks = {check["check"]: check for check in report["checks"]}
    assert not report["ok"] and checks["master key file"]["result"] == "fail", report
    assert "expected the " in checks["master key file"]["text"]


def test_doctor_says_that_the_file_is_the_registered_one(running):
    report = json.loads(running.run_cli("doctor", "--json").stdout)
    checks = {check["check"]: check for check in report["checks"]}
    assert checks["master key file"] == {"check": "master key file", "result": "ok", "text": "the registered one"}


def test_finding_05_migrate_refuses_another_installations_file_and_registers_the_right_one_once(running):
    kept = running.postgres.query("SELECT count(*) FROM keys.master_keys")
    good = running.folder / "master.key"
    text = good.read_text()
    try:
        good.write_text(wrong_file(running, "both").read_text())
        refused = running.run_cli("migrate", "--skip-nats", admin=True)
        assert refused.returncode == 1 and "expected the master key " in refused.stderr, refused
        refused = running.run_cli("migrate", "--skip-database", "--bytes-scale-percent", "1", admin=True)
        assert refused.returncode == 1 and "CONFIG: master key file" in refused.stderr, refused
    finally:
        good.write_text(text)
    assert "registered keys" in running.cli("migrate", "--bytes-scale-percent", "1", admin=True)
    assert running.postgres.query("SELECT count(*) FROM keys.master_keys") == kept == [(2,)] or kept == [["2"]]


def test_finding_05_a_database_without_a_registered_key_lets_no_service_start_and_says_the_command(running):
    rows = running.postgres.query("SELECT kind, encode(check_value, 'hex') FROM keys.master_keys")
    running.postgres.query("TRUNCATE keys.master_keys")
    try:
        service = running.service("renderer", instance="first").start(wait=False)
        wait_until(lambda: service.child.poll() is not None, 30, "the renderer ending")
        assert service.child.returncode == 2
        assert "HINT: STENTOR_MASTER_KEY_FILE=FILE stentor migrate" in service.log.read_text()
    finally:
        for kind, check in rows:
            running.postgres.query(
                f"INSERT INTO keys.master_keys (kind, key_id, check_value) VALUES ('{kind}', substr('\\x{check}'::bytea, 1, 4), '\\x{check}')")


def test_finding_16_no_program_leaves_a_core_dump_and_the_start_line_says_what_is_locked(running):
    for name, service in running.services.items():
        limits = open(f"/proc/{service.child.pid}/limits").read()
        assert re.search(r"^Max core file size +0 +0 ", limits, re.M), (name, limits)
        started = next(json.loads(line) for line in service.log.read_text().splitlines() if '"event":"started"' in line)
        assert started["locked_memory"] in (("all", "master keys", "none") if name in HOLDERS else ("none",)), started
    service = running.service("renderer", instance="debugged", STENTOR_CORE_DUMPS="true").start()
    assert not re.search(r"^Max core file size +0 +0 ", open(f"/proc/{service.child.pid}/limits").read(), re.M)
    assert service.stop() == 0
