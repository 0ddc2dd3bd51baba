# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around units: each fault is named, nothing is removed that was not verified, and mended it goes on."""
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from tests.harness.processes import BIN, Postgres, wait_until
from tests.harness.archive.units import UNIT, ArchiveProcess, Units


@pytest.fixture()
def units():
    units = Units()
    yield units
    units.close()


def later(units, hours=1):
    return units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600 * %s) * 1000000)::int8", hours)[0][0]


@pytest.mark.parametrize("damage", ["changed", "deleted", pytest.param("shortened", marks=pytest.mark.long)])
def test_a_damaged_object_is_named_and_nothing_is_restored_from_it(units, damage):
    units.fill(rows=50)
    units.start()
    units.run()
    key = units.objects()[0]
    path = units.bucket / key
    whole = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    else:
        path.write_bytes(whole[:-7] if damage == "shortened" else whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    for kind, argument in (("verify", {}), ("restore", {"until_us": later(units)})):
        state, message = units.request(kind, unit=UNIT, **argument)
        assert state == "failed" and key in message, message
    assert units.state() == "removed" and units.rows() == 0
    path.write_bytes(whole)
    assert units.request("verify", unit=UNIT)[0] == "done"
    assert units.request("restore", unit=UNIT, until_us=later(units))[0] == "done"
    assert units.rows() == 100


def test_an_object_that_goes_before_the_removal_keeps_the_tables(units):
    units.fill(rows=20)
    units.start(STENTOR_ARCHIVE_GRACE_S="3")
    request = units.ask("run", unit=UNIT, older_than_us=0)
    wait_until(lambda: units.state() == "removing", 30, "detached")
    assert units.wait(request)[0] == "done"  # it waits for the grace
    path = units.bucket / units.objects()[0]
    whole = path.read_bytes()
    path.unlink()
    wait_until(lambda: units.postgres.query("SELECT now() > removed_at + interval '3 s' FROM archive.units WHERE id = %s", UNIT) == [(True,)], 10, "the grace")
    state, message = units.request("run", unit=UNIT)
    assert state == "failed" and "is gone from the bucket" in message
    assert units.state() == "removing" and units.unit("failures") >= 1
    assert len(units.postgres.query("SELECT 1 FROM pg_tables WHERE schemaname = 'archive_drop'")) == 2
    path.write_bytes(whole)
    assert units.request("run", unit=UNIT)[0] == "done"
    assert units.state() == "removed" and units.unit("failure") is None


def test_a_changed_manifest_is_named(units):
    units.fill(rows=5)
    units.start()
    units.run()
    path = units.bucket / units.unit("manifest_key")
    text = path.read_text()
    path.write_text(text.replace('"rows" : 5', '"rows" : 4', 1))
    assert path.read_text() != text
    state, message = units.request("verify")
    assert state == "failed" and units.unit("manifest_key") in message
    path.write_text(text)
    assert units.request("verify")[0] == "done"


FOREIGN = ("INSERT INTO {} (created_at, id, tenant_id, channel, status, status_rank)"
           " VALUES ('2026-01-05T00:00:00Z', 'ntf_01KAGTQ5M0RFOREIGN00000000', 'acme', 'email', 'sent', 5)")


@pytest.mark.parametrize("point, state", [
    ("manifest_stored", "committed"), ("unit_detached", "removing"),
    pytest.param("unit_counted", "counted", marks=pytest.mark.long), pytest.param("unit_checked", "committed", marks=pytest.mark.long)])
def test_a_row_added_to_a_sealed_month_keeps_it_in_postgres(units, point, state):
    units.fill(rows=20)
    process = units.start(STENTOR_CRASH_AT=f"archiver.{point}")
    request = units.ask("run", unit=UNIT, older_than_us=0)
    wait_until(lambda: not process.alive(), 30, f"killed at {point}")
    assert units.state() == state
    table = units.unit("'archive_drop.' || quote_ident(detached[1])") or "archiver.notifications"
    units.postgres.query(FOREIGN.format(table))
    units.start()
    outcome, message = units.wait(request)
    assert outcome == "failed" and "acme" in message and "20" in message and "21" in message, message
    assert units.state() == state and units.postgres.query(f"SELECT count(*) FROM {table}") == [(41,)]
    units.postgres.query(f"DELETE FROM {table} WHERE id LIKE '%FOREIGN%'")
    units.run()
    assert units.state() == "removed"
    assert set(units.objects()) <= set(units.files("archive"))
    assert units.request("verify")[0] == "done"


def test_two_rows_of_a_stored_month_that_swap_a_value_keep_it_in_postgres(units):
    """The digest of rows is a sum: it must not be one over each column by itself."""
    units.fill(rows=2, tenants=("acme",))
    process = units.start(STENTOR_CRASH_AT="archiver.manifest_stored")
    request = units.ask("run", unit=UNIT, older_than_us=0)
    wait_until(lambda: not process.alive(), 30, "killed")
    swap = "UPDATE archiver.notifications n SET recipient_id = o.recipient_id FROM archiver.notifications o WHERE n.id <> o.id"
    units.postgres.query(swap)
    units.start()
    outcome, message = units.wait(request)
    assert outcome == "failed" and "with other content" in message, message
    assert units.state() == "committed"
    units.postgres.query(swap)
    units.run()
    assert units.state() == "removed"


def test_an_object_of_other_rows_than_postgres_counted_is_not_believed(units):
    """What an export at fault would write: an object that is whole and reads back as it was written, with another cell."""
    units.fill(rows=20)
    process = units.start(STENTOR_CRASH_AT="archiver.unit_counted")
    request = units.ask("run", unit=UNIT, older_than_us=0)
    wait_until(lambda: not process.alive(), 30, "killed behind the counting")
    reason, = units.postgres.query("SELECT reason FROM archiver.notifications WHERE tenant_id = 'acme' AND id LIKE %s", "%000000007")[0]
    units.postgres.query("UPDATE archiver.notifications SET reason = 'another' WHERE tenant_id = 'acme' AND id LIKE %s", "%000000007")
    process = units.start("writing", STENTOR_CRASH_AT="archiver.part_verified")
    wait_until(lambda: not process.alive(), 30, "killed behind the writing")
    wrong = set(units.files("archive"))
    units.postgres.query("UPDATE archiver.notifications SET reason = %s WHERE tenant_id = 'acme' AND id LIKE %s", reason, "%000000007")
    units.start("verifying")
    outcome, message = units.wait(request)
    assert outcome == "failed" and "archiver.notifications of tenant 'acme'" in message and "other content" in message, message
    units.run()  # the parts were made again, of the rows that there are
    assert units.state() == "removed" and len(set(units.files("archive")) - wrong) == 1
    assert units.request("verify")[0] == "done"
    assert units.request("restore", unit=UNIT, until_us=later(units))[0] == "done"
    assert units.rows() == 40 and units.postgres.query("SELECT 1 FROM archiver.notifications WHERE reason = 'another'") == []


def test_a_cell_changed_in_a_sealed_month_keeps_it_in_postgres(units):
    units.fill(rows=20)
    process = units.start(STENTOR_CRASH_AT="archiver.unit_counted")
    request = units.ask("run", unit=UNIT, older_than_us=0)
    wait_until(lambda: not process.alive(), 30, "killed behind the counting")
    units.postgres.query("UPDATE archiver.delivery_attempts SET code = '251' WHERE tenant_id = 'beta' AND id = 'dat_2' AND notification_id LIKE %s", "%000000003")
    units.start("verifying")
    outcome, message = units.wait(request)
    assert outcome == "failed" and "archiver.delivery_attempts of tenant 'beta'" in message and "other content" in message, message
    assert units.state() == "written" and units.rows() == 40
    assert units.request("run", unit=UNIT, older_than_us=0)[0] == "failed" and units.state() == "written"
    units.postgres.query("UPDATE archiver.delivery_attempts SET code = '250' WHERE tenant_id = 'beta'")
    wait_until(lambda: units.request("run", unit=UNIT, older_than_us=0)[0] == "done", 30, "what the last try wrote being made once more")
    assert units.state() == "removed"


def test_a_full_spool_disk_is_named_and_the_step_done_again(units):
    units.fill(rows=50)

    class Limited(ArchiveProcess):
        def argv(self):
            return ["env", "--ignore-signal=XFSZ", "prlimit", "--fsize=6000", *super().argv()]
    process = Limited(units.folder / "processes", "limited", units.environment()).start(wait=False)
    units.processes.append(process)
    state, message = units.request("run", unit=UNIT, older_than_us=0)
    assert state == "failed" and "spool file" in message and "STENTOR_ARCHIVE_SPOOL_DIR" in message
    assert units.state() == "counted" and units.rows() == 100
    units.end(process)
    units.start()
    units.run()
    assert units.state() == "removed"
    assert units.files("archive") == units.objects()


def test_a_second_process_waits_and_takes_over(units):
    units.fill(rows=5)
    first = units.start("first")
    second = units.start("second", wait=False)
    units.run()
    assert second.alive() and units.epoch() == 1
    units.fill(rows=5, month="2026-02")  # not while the second looks for units: a partition is made for it, and no service starts a child again here
    first.kill()
    wait_until(lambda: units.epoch() == 2, 20, "the second having taken over")
    units.run(unit="notifications/record/2026-02")
    assert units.state("notifications/record/2026-02") == "removed"


def test_a_fork_of_the_database_changes_nothing_in_the_bucket(units):
    units.fill(rows=5)
    first = units.start()
    units.run()
    units.end(first)
    fork = units.postgres
    fork.query("CREATE DATABASE fork TEMPLATE stentor", database="postgres")
    units.end(units.start())  # the original goes on
    before = {key: (units.bucket / key).read_bytes() for key in units.files("archive", "manifest", "_stentor")}
    url = fork.url("stentor_archiver", "fork")
    process = units.start("fork", wait=False, STENTOR_DATABASE_URL=url, STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    wait_until(lambda: fork.query("SELECT standing_still FROM archive.installation", database="fork") != [(None,)], 20, "standing still")
    assert "restored backup" in fork.query("SELECT standing_still FROM archive.installation", database="fork")[0][0]
    request = fork.query("SELECT archive.request('expire', '{}')", database="fork")[0][0]
    outcome = lambda: fork.query("SELECT state, message FROM archive.requests WHERE id = %s", request, database="fork")[0]  # noqa: E731
    wait_until(lambda: outcome()[0] == "failed", 20, "the refusal")
    assert "stentor archive adopt" in outcome()[1]
    assert {key: (units.bucket / key).read_bytes() for key in units.files("archive", "manifest", "_stentor")} == before
    units.end(process)
    units.start("original")
    assert units.request("verify")[0] == "done"


@pytest.mark.long
def test_a_copy_of_the_servers_disk_changes_nothing_in_the_bucket(units):
    """It has the newest token, the same server, timeline and database: only that the original renews its token tells them apart."""
    units.fill(rows=5)
    original = units.start()
    units.run()
    units.postgres.query("CHECKPOINT")
    copy = Postgres(units.folder / "copy")
    subprocess.run(["cp", "-a", units.postgres.data, copy.data], check=True)  # as a snapshot of the volume
    (copy.data / "postmaster.pid").unlink()
    if copy.user():
        shutil.chown(copy.folder, copy.user())
    copy.start()
    try:
        assert copy.query("SELECT token, owner_epoch FROM archive.installation") == units.postgres.query("SELECT token, owner_epoch FROM archive.installation")
        before = units.files("archive", "manifest")
        process = units.start("copy", wait=False, STENTOR_DATABASE_URL=copy.url("stentor_archiver"), STENTOR_RETENTION_SPANS="record=1d:1d:2d")
        wait_until(lambda: copy.query("SELECT standing_still FROM archive.installation") != [(None,)], 60, "standing still")
        assert "copy" in copy.query("SELECT standing_still FROM archive.installation")[0][0]
        assert units.files("archive", "manifest") == before and copy.query("SELECT state FROM archive.units WHERE id = %s", UNIT) == [("removed",)]
        units.end(process)
    finally:
        copy.kill()
    assert original.alive() and units.epoch() == 1
    assert units.request("verify")[0] == "done"
    assert units.postgres.query("SELECT standing_still FROM archive.installation") == [(None,)]


def test_adopting_takes_the_bucket_and_the_other_stands_still(units):
    units.fill(rows=5)
    units.end(units.start())
    units.postgres.query("UPDATE archive.installation SET token = gen_random_uuid(), previous_token = NULL")  # as in a restored backup
    units.start("restored", wait=False)
    wait_until(lambda: units.postgres.query("SELECT standing_still FROM archive.installation") != [(None,)], 20, "standing still")
    state, message = units.request("run", unit=UNIT, older_than_us=0)
    assert state == "failed" and "adopt" in message
    assert units.request("adopt")[0] == "done"
    assert units.postgres.query("SELECT standing_still FROM archive.installation") == [(None,)]
    units.run()
    assert units.state() == "removed"


@pytest.fixture
def log(pipeline):
    """Settings of a command that changes something: it says so in the audit log first."""
    return {"STENTOR_NATS_URL": pipeline.nats.url, "STENTOR_NATS_USER": "stentor-cli", "STENTOR_NATS_PASSWORD": "pw"}


def test_orphans_are_reported_and_deleted_by_command_only(units, log):
    units.fill(rows=5)
    units.start()
    units.run()
    key = units.objects()[0]
    orphan = key.replace("part-00000", "part-00099")
    with_metadata = [path for path in units.bucket.rglob("*") if path.is_file() and path.name.startswith(key.rsplit("/", 1)[1])]
    for path in with_metadata:
        copy = path.with_name(path.name.replace("part-00000", "part-00099"))
        subprocess.run(["cp", "-a", path, copy], check=True)
    assert (units.bucket / orphan).exists()
    (units.bucket / "archive" / "readme.txt").write_text("another program's")
    asset = units.bucket / "template-assets" / "acme" / ("0" * 64)  # mails show it, and no row names it
    asset.parent.mkdir(parents=True)
    asset.write_bytes(b"GIF89a")
    listed = json.loads(cli(units, "archive", "orphans", "--older-than", "0", "--json").stdout)
    assert [entry["key"] for entry in listed] == [orphan]
    assert cli(units, "archive", "orphans").stdout == ""  # younger than 7 days
    young = cli(units, "archive", "orphans", "--older-than", "23h", "--delete")
    assert young.returncode == 2 and "at least 1d" in young.stderr
    state, message = units.request("delete-orphans", older_than_us=0)
    assert state == "failed" and "--older-than 1d" in message
    assert cli(units, "archive", "orphans", "--older-than", "1d", "--delete", **log).stdout.startswith("0 orphans")
    assert (units.bucket / orphan).exists()
    two_days_ago = time.time() - 2 * 86400
    os.utime(units.bucket / orphan, (two_days_ago, two_days_ago))
    os.utime(asset, (two_days_ago, two_days_ago))
    os.utime(units.bucket / key, (two_days_ago, two_days_ago))  # old, and known
    assert cli(units, "archive", "orphans", "--older-than", "1d", "--delete", **log).stdout.startswith("1 orphans")
    assert not (units.bucket / orphan).exists()
    assert (units.bucket / "archive" / "readme.txt").exists() and asset.exists()
    assert units.request("verify")[0] == "done"


# ---- the commands ----

def cli(units, *words, **settings):
    return subprocess.run([BIN / "stentor", *words], capture_output=True, text=True, timeout=60, env={
        "PATH": "/usr/bin:/bin", "STENTOR_DATABASE_URL": units.postgres.url("stentor_cli"), **units.storage, **settings})


def test_the_commands_of_an_operator(units, log):
    units.fill(rows=30)
    assert "no units" in cli(units, "archive", "list").stderr
    units.start()
    ran = cli(units, "archive", "run", "--older-than", "0", "--json", **log)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["state"] == "done"
    assert re.search(r'"note":"\w+ (notifications|orders)/\w+/20\d\d-\d\d', ran.stderr)  # the steps at the moments when it looked
    listed = json.loads(cli(units, "archive", "list", "--json").stdout)
    assert [(unit["unit"], unit["state"], unit["rows"], unit["failure"]) for unit in listed if unit["rows"]] == [(UNIT, "removed", 180, "")]
    shown = json.loads(cli(units, "archive", "show", UNIT, "--json").stdout)
    assert [entry["key"] for entry in shown["list"]] and {entry["state"] for entry in shown["list"]} == {"verified"}
    rows = [json.loads(line) for line in cli(units, "archive", "show", UNIT, "--rows", "3", "--json").stdout.splitlines()]
    assert [row["tenant_id"] for row in rows] == ["acme"] * 3 and rows[0]["created_at"] == "2026-01-01T00:02:53.000000Z"
    assert rows[0]["content_checksum"] and rows[0]["scheduled_for"] is None
    assert "expires_at" not in cli(units, "archive", "show", UNIT, "--rows", "1").stdout
    assert "1 archived unit with notifications of the tenant was not looked" in cli(units, "--tenant", "acme", "find", "--correlation", "none").stderr
    assert "archived" not in cli(units, "--tenant", "stranger", "find", "--correlation", "none").stderr, "empty units, and those of others"
    restored = cli(units, "archive", "restore", UNIT, "--until", "2d", **log)
    assert restored.returncode == 0 and f"'{UNIT}' is in Postgres until" in restored.stdout
    assert "restored until" in cli(units, "archive", "list").stdout
    assert cli(units, "archive", "verify").returncode == 0
    assert cli(units, "archive", "show", "notifications/record/1999-01").returncode == 3
    wrong = cli(units, "archive", "run", "notifications/record/1999-01", **log)
    assert wrong.returncode == 1 and "stentor archive list" in wrong.stderr
    assert cli(units, "archive", "run", "--older-than", "soon", **log).returncode == 2
