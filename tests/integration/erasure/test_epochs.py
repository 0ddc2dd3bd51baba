# SPDX-License-Identifier: Apache-2.0
"""Epoch keys under a running pipeline: what a backup holds opens until its epoch is destroyed, and never after."""
import json
import re

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.integration.erasure import wrapped_keys
from tests.integration.operating.test_keys_rotation import change_file, ids, restart

ROWS = "SELECT subject, generation, wrapped FROM keys.data_keys WHERE wrapped IS NOT NULL"


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(ack_wait_ms=3000)
    (running.folder / "epochs").mkdir()
    (running.folder / "dumps").mkdir()
    running.extra = {"STENTOR_EPOCH_KEYS_DIR": running.folder / "epochs", "STENTOR_EPOCH_SETTLE_S": "0",
                     "STENTOR_KEYS_DUMP_DIR": running.folder / "dumps"}
    running.start()
    yield running
    running.stop()


def epochs(pipeline):
    return {row["number"]: row for row in json.loads(pipeline.cli("keys", "status", "--json"))["epochs"]}


def opened(pipeline, rows):
    return wrapped_keys.opened(rows, pipeline.folder / "epochs", pipeline.master_keys()["master"])


def pass_keep(pipeline, number):
    """As if a week had passed since the epoch wrapped its last key."""
    pipeline.postgres.query(f"UPDATE keys.epochs SET emptied_at = emptied_at - interval '7 days' WHERE number = {number}")


def audited(pipeline):
    """[(epoch, event, time)] of AUDIT's entries about epoch keys."""
    entries = json.loads(pipeline.cli("audit-log", "list", "--kind", "erasure", "--json"))
    return [(int(entry["details"]["epoch"]), entry["event_id"], entry["at"]) for entry in entries if entry["action"] == "epoch_key.destroyed"]


def end_keep(pipeline, number):
    pass_keep(pipeline, number)
    wait_until(lambda: epochs(pipeline)[number]["state"] == "destroyed", 20, "the epoch key's end")


def test_a_backup_from_before_an_erasure_opens_nothing_once_its_epoch_has_ended(pipeline):
    wait_until(lambda: 1 in epochs(pipeline), 20, "the first epoch")
    for number in range(3):
        pipeline.status(pipeline.send(to=f"person{number}@example.com"), wait="sent")
    backup = pipeline.postgres.query(ROWS)
    assert len(backup) >= 3 and len(opened(pipeline, backup)) == len(backup), "every key opens while its epoch lasts"

    pipeline.cli("erase", "--address", "person0@example.com", "--ground", "Art. 17 GDPR", "--requested-by", "test")
    wait_until(lambda: len(pipeline.postgres.query(ROWS)) < len(backup), 30, "the erasure")
    assert len(opened(pipeline, backup)) == len(backup), "the hole: the table forgot the key, its backup did not"

    said = pipeline.cli("keys", "rotate", "--wait")
    assert "the epoch after 1 is open, and wraps every data key" in said
    assert epochs(pipeline)[1]["state"] == "empty" and epochs(pipeline)[2]["state"] == "open"
    assert len(opened(pipeline, backup)) == len(backup), "it is kept for a week"
    end_keep(pipeline, 1)
    assert opened(pipeline, backup) == {}, "no key file that exists now opens any of it"
    assert [number for number, *_ in audited(pipeline)] == [1]

    live = pipeline.postgres.query(ROWS)
    assert len(live) == len(backup) - 1 and len(opened(pipeline, live)) == len(live), "who was not erased is there"
    pipeline.status(pipeline.send(to="person1@example.com"), wait="sent")
    pipeline.status(pipeline.send(to="person0@example.com"), wait="sent")  # a new key, for a person who is here again


@pytest.mark.long
def test_an_epoch_key_is_destroyed_only_once_the_audit_log_has_it(pipeline):
    """Without NATS it stays; killed behind the entry, ingest writes the same one again and destroys the key."""
    ingest, folder = pipeline.services["ingest"], pipeline.folder / "epochs"
    pipeline.cli("keys", "rotate", "--wait")
    (number,) = [number for number, row in epochs(pipeline).items() if row["state"] == "empty"]
    before = sorted(folder.glob("*.epoch"))
    pipeline.nats.stop()
    try:
        pass_keep(pipeline, number)
        wait_until(lambda: ingest.metric("stentor_ingest_key_work_failing") == 1, 30, "the failure's metric")
        assert "an epoch key is not destroyed, AUDIT has no entry of it" in ingest.log.read_text()
        assert sorted(folder.glob("*.epoch")) == before
    finally:
        ingest.stop()
        pipeline.nats.start()
    ingest.options["STENTOR_CRASH_AT"] = "keywork.witnessed"
    ingest.start(wait=False)
    assert ingest.exit_status(60) == -9
    del ingest.options["STENTOR_CRASH_AT"]
    (entry,) = [entry for entry in audited(pipeline) if entry[0] == number]
    assert sorted(folder.glob("*.epoch")) == before, "the entry came first"
    ingest.start()
    wait_until(lambda: epochs(pipeline)[number]["state"] == "destroyed", 30, "the epoch key's end")
    assert [again for again in audited(pipeline) if again[0] == number] == [entry]
    assert json.loads(pipeline.cli("audit-log", "verify", "--json"))["chain"] == "whole"


def test_the_work_that_fails_is_named_and_goes_on_by_itself(pipeline):
    folder, ingest = pipeline.folder / "epochs", pipeline.services["ingest"]
    (number,) = [number for number, row in epochs(pipeline).items() if row["state"] == "open"]
    hidden = folder.rename(folder.with_name("hidden"))
    try:
        wait_until(lambda: ingest.metric("stentor_ingest_key_work_failing") == 1, 20, "the failure's metric")
        assert "epochs" in pipeline.cli("keys", "status") and "the work on keys fails since" in pipeline.cli("keys", "status")
        asked = pipeline.run_cli("keys", "rotate", "--wait")
        assert asked.returncode != 0 and "ingest reports: " in asked.stderr, asked
    finally:
        hidden.rename(folder)
    wait_until(lambda: epochs(pipeline).get(number + 1, {}).get("state") == "open", 20, "the epoch that was asked for")
    wait_until(lambda: ingest.metric("stentor_ingest_key_work_failing") == 0, 20, "its end")
    assert 0 < ingest.metric("stentor_ingest_epoch_age_seconds") < 60


def checks(pipeline):
    return {check["check"]: check for check in json.loads(pipeline.run_cli("doctor", "--json").stdout)["checks"]}


def test_a_backup_is_restored_with_the_newest_dump_of_the_keys(pipeline):
    """The backup is older than its epoch's end: it opens nothing by itself, and no program starts on it."""
    dumps, ingest, renderer = pipeline.folder / "dumps", pipeline.services["ingest"], pipeline.services["renderer"]
    tables = ("data_keys", "epochs", "master_keys")
    newest = max(epochs(pipeline))
    for table in tables:
        pipeline.postgres.query(f"CREATE TABLE public.backup_{table} AS SELECT * FROM keys.{table}")
    pipeline.cli("keys", "rotate", "--wait")
    end_keep(pipeline, newest)
    pipeline.send(to="person9@example.com")
    wait_until(lambda: len(opened(pipeline, pipeline.postgres.query(ROWS))) == len(pipeline.postgres.query(ROWS)), 20, "all wrapped again")
    live = opened(pipeline, pipeline.postgres.query(ROWS))
    for old in dumps.iterdir():
        old.unlink()
    dump = wait_until(lambda: next(dumps.glob("keys-*.dump"), None), 20, "the day's dump")
    assert wait_until(lambda: checks(pipeline)["keys dump"]["result"] == "ok", 20, "the dump read back")
    assert checks(pipeline)["epoch keys"]["result"] == "ok" and 0 < ingest.metric("stentor_ingest_keys_dump_age_seconds") < 60
    refused = pipeline.run_cli("keys", "restore", dump, admin=True)
    assert refused.returncode == 1 and "stop the services" in refused.stderr, refused

    ingest.stop()
    renderer.stop()
    for table in tables:
        pipeline.postgres.query(f"TRUNCATE keys.{table}; INSERT INTO keys.{table} SELECT * FROM public.backup_{table}")
    assert opened(pipeline, pipeline.postgres.query(ROWS)) == {}
    renderer.start(wait=False)
    assert renderer.exit_status(20) == 2 and "wraps data keys and is not in STENTOR_EPOCH_KEYS_DIR" in renderer.log.read_text()
    assert "data keys of" in pipeline.cli("keys", "restore", dump, "--dry-run")
    assert "1 added" in pipeline.cli("keys", "restore", dump, admin=True)
    assert opened(pipeline, pipeline.postgres.query(ROWS)) == live
    ingest.start()
    renderer.start()
    pipeline.status(pipeline.send(to="person9@example.com"), wait="sent")


def test_a_dump_by_hand_is_checked(pipeline):
    path = pipeline.folder / "by-hand.dump"
    assert json.loads(pipeline.cli("keys", "dump", "--to", path, "--json"))["data_keys"] > 3
    path.write_bytes(path.read_bytes()[:-1])
    refused = pipeline.run_cli("keys", "restore", path, "--dry-run")
    assert refused.returncode == 1 and "damaged, or cut off" in refused.stderr, refused


def test_a_dump_goes_to_storage_and_is_restored_from_there(pipeline):
    """Ingest copies each day's; the command line makes one by hand and finds the newest."""
    objects = pipeline.folder / "key-objects"
    storage = {"STENTOR_STORAGE_URL": f"file://{objects}"}

    def said_by(*words, **more):
        done = pipeline.run_cli(*words, **more, **storage)
        assert done.returncode == 0, done
        return done.stdout
    missing = pipeline.run_cli("keys", "restore", "storage", "--dry-run", **storage)
    assert missing.returncode == 1 and "has no dump of keys" in missing.stderr, missing
    said = json.loads(said_by("keys", "dump", "--to", "storage", "--json"))
    assert (objects / said["file"]).exists() and re.fullmatch(r"keys-dumps/keys-\d{8}T\d{6}Z\.dump", said["file"])
    checked = json.loads(said_by("keys", "restore", "storage", "--dry-run", "--json"))
    assert (checked["file"], checked["data_keys"]) == (said["file"], said["data_keys"])
    unset = pipeline.run_cli("keys", "dump", "--to", "storage")
    assert unset.returncode != 0 and "STENTOR_STORAGE_URL" in unset.stderr, unset
    ingest = pipeline.services["ingest"]
    ingest.stop()
    assert "0 added" in said_by("keys", "restore", "storage", admin=True)
    for old in [*(pipeline.folder / "dumps").iterdir(), objects / said["file"]]:  # a name has seconds: both may have one
        old.unlink()
    ingest.options.update(storage)
    ingest.start()
    wait_until(lambda: len(list(objects.glob("keys-dumps/keys-*.dump"))) == 1, 20, "ingest's dump of the day")


@pytest.mark.long
def test_a_master_key_is_not_retired_while_it_wraps_epoch_keys(pipeline):
    """No data key hangs on it: only the epoch keys' files do, and ingest wraps these again once it has the new file."""
    change_file(pipeline, "add")
    old, new = ids(pipeline, "master")
    restart(pipeline)
    change_file(pipeline, "use", new)
    pipeline.cli("migrate", "--bytes-scale-percent", "1", admin=True)
    refused = pipeline.run_cli("keys", "retire", old, "--now", admin=True)
    assert refused.returncode == 1 and "epoch keys are wrapped by it" in refused.stderr, refused
    restart(pipeline)
    wait_until(lambda: pipeline.run_cli("keys", "retire", old, "--now", admin=True).returncode == 0, 20, "the epoch keys wrapped by the new one")
    change_file(pipeline, "remove", old)
    restart(pipeline)
    pipeline.status(pipeline.send(to="person1@example.com"), wait="sent")
