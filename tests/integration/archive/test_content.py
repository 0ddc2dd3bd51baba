# SPDX-License-Identifier: Apache-2.0
"""What was sent and what vendors said, in object storage for their time."""
import json
import os
import subprocess
import time
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.segments import read_segment
from tests.harness.sendgrid import body_of, event, new_signer, post

CONTENT_S = 4


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline()
    pipeline.storage = pipeline.folder / "objects"
    pipeline.extra = {"STENTOR_STORAGE_URL": f"file://{pipeline.storage}", "STENTOR_SEGMENT_S": "1", "STENTOR_SEGMENT_SPOOL_DIR": pipeline.folder,
                      "STENTOR_EPOCH_KEYS_DIR": pipeline.folder / "epochs", "STENTOR_EPOCH_SETTLE_S": "0"}
    (pipeline.folder / "epochs").mkdir()
    pipeline.start()
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM keys.epochs") == [(1,)], 20, "the first epoch")
    pipeline.client = NatsClient(pipeline.nats.port)
    yield pipeline
    pipeline.client.close()
    pipeline.stop()


def rows(pipeline, stream, what="key"):
    return [row[0] for row in pipeline.postgres.query(f"SELECT {what} FROM archive.segments WHERE stream = '{stream}' AND deleted_at IS NULL")]


def records(pipeline, stream):
    return [record for key in rows(pipeline, stream) for record in read_segment((pipeline.storage / key).read_bytes())[1]]


def sent(pipeline, to):
    id = pipeline.send(to=to)
    pipeline.status(id, wait="sent")
    return id


def test_content_and_callbacks_are_stored_sealed(pipeline):
    id = sent(pipeline, "ann@example.com")
    pipeline.client.publish("ntf.inbound.sendgrid", b"callback", headers={"Nats-Msg-Id": "one"})
    wait_until(lambda: rows(pipeline, "RENDERED_NORMAL") and rows(pipeline, "INBOUND"), 20, "content and callbacks stored")
    assert all(key.startswith("rendered/RENDERED_NORMAL/") for key in rows(pipeline, "RENDERED_NORMAL"))
    assert all(key.startswith("webhooks/INBOUND/") for key in rows(pipeline, "INBOUND"))
    ours = str(pipeline.postgres.query("SELECT id FROM archive.installation")[0][0])
    assert {(pipeline.storage / ".owner" / key).read_text() for key in rows(pipeline, "INBOUND")} == {ours}
    content = [record for record in records(pipeline, "RENDERED_NORMAL") if id.encode() in record.payload]
    assert len(content) == 1 and b"ann@example.com" not in content[0].payload
    assert [record.payload for record in records(pipeline, "INBOUND")] == [b"callback"]


def test_sending_does_not_wait_for_stored_content(pipeline):
    """Unlike the log: a full RENDERED stream would stop it."""
    held = {stream for stream, _ in pipeline.postgres.query("SELECT stream, sequence FROM digest_flusher.projected()")}
    assert "REQUEST_NORMAL" in held and not held & {"RENDERED_NORMAL", "INBOUND"}


def test_a_segment_that_the_present_is_made_of_has_no_end(pipeline):
    wait_until(lambda: rows(pipeline, "CONFIG"), 20, "the log stored")
    key = rows(pipeline, "CONFIG")[0]
    with pytest.raises(Exception, match="does not end"):
        pipeline.postgres.query(f"SELECT archive.segments_deleted(ARRAY['{key}'])")
    assert key in rows(pipeline, "CONFIG")


def test_a_segment_says_whose_events_it_holds(pipeline):
    for stream in ("RENDERED_NORMAL", "REQUEST_NORMAL", "STATUS"):
        wait_until(lambda: rows(pipeline, stream), 20, f"{stream} stored")
        assert {tuple(tenants) for tenants in rows(pipeline, stream, "tenants")} == {("acme",)}
    assert rows(pipeline, "INBOUND", "tenants") == [None]  # it has no tenant in this test: any hold keeps it


# ---- shown again ----

def show(pipeline, *words, status=0, **environment):
    done = subprocess.run(
        [BIN / "stentor", *words], text=True, capture_output=True, timeout=60,
        env={"PATH": os.environ["PATH"], "STENTOR_NATS_URL": pipeline.nats.url, "STENTOR_NATS_USER": "stentor-cli", "STENTOR_NATS_PASSWORD": "pw",
             "STENTOR_TENANT": "acme", "STENTOR_DATABASE_URL": pipeline.postgres.url("stentor_cli"),
             "STENTOR_MASTER_KEY_FILE": str(pipeline.folder / "master.key"), "STENTOR_STORAGE_URL": f"file://{pipeline.storage}",
             "STENTOR_EPOCH_KEYS_DIR": str(pipeline.folder / "epochs"), **environment})
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def content(pipeline, id, **more):
    return json.loads(show(pipeline, "content", id, "--ground", "ticket 42", "--requested-by", "kim", "--json", **more))


def reads(pipeline, target):
    entries = json.loads(show(pipeline, "audit-log", "list", "--kind", "read", "--target", target, "--json"))
    return [(entry["action"], entry["actor"], entry["ground"], entry["notification_id"]) for entry in entries]


def test_what_was_sent_is_shown_with_an_entry_in_the_audit_log(pipeline):
    id = sent(pipeline, "dora@example.com")
    [mail] = pipeline.mailbox.mails("dora@example.com")
    shown = content(pipeline, id)
    assert (shown["id"], shown["tenant"], shown["status"], shown["channel"], shown["stream"]) == (id, "acme", "sent", "email", "RENDERED_NORMAL")
    assert shown["content"]["subject"] == str(mail["Subject"])
    for part, kind in (("html", "html"), ("text", "plain")):
        assert shown["content"][part].split() == mail.get_body((kind,)).get_content().split() != []
    assert "dora" not in shown["to"] and shown["to"].endswith("@example.com")
    assert reads(pipeline, id) == [("content.shown", "kim", "ticket 42", id)]
    text = show(pipeline, "content", id, "--ground", "ticket 42")
    assert f"---- subject ----\n{shown['content']['subject']}\n" in text and "---- html ----" in text
    assert len(reads(pipeline, id)) == 2


def test_content_that_the_stream_lost_is_read_from_object_storage(pipeline):
    id = sent(pipeline, "emil@example.com")
    before = content(pipeline, id)
    wait_until(lambda: [1 for record in records(pipeline, "RENDERED_NORMAL") if id.encode() in record.payload], 20, "content stored")
    pipeline.client.request("$JS.API.STREAM.PURGE.RENDERED_NORMAL", b"")
    assert content(pipeline, id) == before
    error = show(pipeline, "content", id, "--ground", "x", status=3, STENTOR_STORAGE_URL="")
    assert "is not kept any more" in error
    assert len(reads(pipeline, id)) == 2  # what was not shown is not noted


def test_who_may_not_see_it_does_not(pipeline):
    id = sent(pipeline, "fred@example.com")
    assert "--ground" in show(pipeline, "content", id, status=2)
    assert "no address" in show(pipeline, "content", id, "--ground", "for a@example.com", status=2)
    assert "not a notification id" in show(pipeline, "content", "ntf_1", "--ground", "x", status=2)
    assert "not in history" in show(pipeline, "content", id, "--ground", "x", "--tenant", "platform", status=3)
    assert reads(pipeline, id) == []


def test_what_cannot_be_noted_is_not_shown(pipeline):
    id = sent(pipeline, "gina@example.com")
    config = pipeline.client.stream_info("AUDIT")["config"]
    change = lambda **more: pipeline.client.request("$JS.API.STREAM.UPDATE.AUDIT", json.dumps({**config, **more}).encode())  # noqa: E731
    change(max_msg_size=1)
    text = show(pipeline, "content", id, "--ground", "x", status=1)
    change()
    assert "cannot be noted" in text and "gina" not in text and "----" not in text
    assert reads(pipeline, id) == []


def test_what_was_erased_stays_sealed(pipeline):
    id = sent(pipeline, "hugo@example.com")
    content(pipeline, id)
    show(pipeline, "erase", "--address", "hugo@example.com", "--ground", "asked to")
    assert "was erased or is restricted" in show(pipeline, "content", id, "--ground", "x", status=1)


def test_callbacks_are_shown_as_they_came(pipeline, tmp_path):
    signer = new_signer(pipeline, tmp_path)
    ids = [sent(pipeline, to) for to in ("ida@example.com", "jan@example.com")]
    bodies = [body_of(event(id, "delivered", number)) for number, id in enumerate(ids)]
    for body in bodies:
        assert post(pipeline, body, signer(body))[0] == 200
    words = ["callbacks", "--since", "1h", "--ground", "ticket 43", "--json"]
    shown = lambda *more, **env: [json.loads(line) for line in show(pipeline, *words, *more, **env).splitlines()]  # noqa: E731
    everything = shown()
    both = everything[1:]  # the first is the signer's own
    assert [each["body"] for each in both] == [json.loads(body) for body in bodies]
    assert {each["vendor"] for each in both} == {"sendgrid"}
    assert shown("--notification", ids[1]) == both[1:]
    assert shown("--limit", "1") == everything[:1]
    assert shown("--tenant", "platform") == []
    assert reads(pipeline, ids[1]) == [("callbacks.shown", "operator", "ticket 43", ids[1])]
    # The same from object storage.
    wait_until(lambda: len(records(pipeline, "INBOUND")) >= 3, 20, "callbacks stored")
    pipeline.client.request("$JS.API.STREAM.PURGE.INBOUND", b"")
    assert shown() == everything
    assert shown(STENTOR_STORAGE_URL="") == []


# ---- the end ----

def test_content_ends_with_its_time(pipeline):
    archiver = pipeline.services["archiver"]
    old = {stream: rows(pipeline, stream) for stream in ("RENDERED_NORMAL", "INBOUND", "REQUEST_NORMAL")}
    archiver.stop()
    archiver.options["STENTOR_CONTENT_KEPT"] = f"{CONTENT_S}s"
    # A copy of this database, as a fork or a restored backup: the bucket is another's now.
    owner = pipeline.storage / "_stentor" / "owner.json"
    ours = owner.read_text()
    owner.write_text(json.dumps({"installation": str(uuid.uuid4()), "epoch": 7, "token": str(uuid.uuid4()), "database": "1/1/1"}))
    archiver.start()
    wait_until(lambda: "segments past their time were not deleted" in archiver.log.read_text(), 30, "the refusal to delete")
    assert set(old["RENDERED_NORMAL"]) <= set(rows(pipeline, "RENDERED_NORMAL"))
    assert all((pipeline.storage / key).exists() for key in old["RENDERED_NORMAL"])
    archiver.stop()
    owner.write_text(ours)
    # A clock that is off: a message from the future was stored.
    pipeline.postgres.query("UPDATE archive.log_positions SET stored_at = now() + interval '7 years' WHERE stream = 'DEAD'")
    archiver.start()
    wait_until(lambda: "nothing is deleted while clocks disagree" in archiver.log.read_text(), 60, "the refusal because of clocks")
    assert set(old["RENDERED_NORMAL"]) <= set(rows(pipeline, "RENDERED_NORMAL"))
    assert all((pipeline.storage / key).exists() for key in old["RENDERED_NORMAL"])
    fault = "SELECT clock_fault IS NULL FROM archive.installation"
    assert pipeline.postgres.query(fault) == [(False,)]
    # A hold of one person keeps the whole segments of the tenant.
    hold = show(pipeline, "hold", "set", "--address", "ann@example.com", "--ground", "case 7", "--json")
    pipeline.postgres.query("UPDATE archive.log_positions SET stored_at = NULL WHERE stream = 'DEAD'")
    time.sleep(3)  # passes are a second apart
    assert set(old["RENDERED_NORMAL"]) <= set(rows(pipeline, "RENDERED_NORMAL"))
    assert all((pipeline.storage / key).exists() for key in old["RENDERED_NORMAL"])
    show(pipeline, "hold", "release", str(json.loads(hold)["hold"]))
    wait_until(lambda: not set(old["RENDERED_NORMAL"]) & set(rows(pipeline, "RENDERED_NORMAL")), 30, "the end of the content")
    assert not [key for key in old["RENDERED_NORMAL"] if (pipeline.storage / key).exists()]
    assert pipeline.postgres.query(fault) == [(True,)]
    assert archiver.metric("stentor_archiver_log_expired_total") >= len(old["RENDERED_NORMAL"])
    for stream in ("INBOUND", "REQUEST_NORMAL"):  # not these
        assert set(old[stream]) <= set(rows(pipeline, stream))
        assert all((pipeline.storage / key).exists() for key in old[stream])
    # The stream's windows go on.
    id = sent(pipeline, "ben@example.com")
    wait_until(lambda: [1 for record in records(pipeline, "RENDERED_NORMAL") if id.encode() in record.payload], 20, "new content stored")
    assert pipeline.postgres.query("SELECT count(*) FROM archive.holes WHERE stream = 'RENDERED_NORMAL'") == [(0,)]


def age(pipeline, stream, to):
    pipeline.postgres.query(f"UPDATE archive.segments SET min_at = '{to}', max_at = '{to}' WHERE stream = '{stream}' AND deleted_at IS NULL")


def test_the_log_ends_with_its_class_and_not_before_its_units(pipeline):
    query = pipeline.postgres.query
    old = {stream: rows(pipeline, stream) for stream in ("REQUEST_NORMAL", "STATUS", "CONFIG")}
    assert all(old.values())
    query("INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch)"
          " VALUES ('notifications/record/2016-01', 'notifications', 'R', '2016-01-01', '2016-02-01', 0)")
    for stream, to in (("REQUEST_NORMAL", "2015-06-01"), ("STATUS", "2016-01-15"), ("CONFIG", "2015-06-01")):
        age(pipeline, stream, to)
    wait_until(lambda: not set(old["REQUEST_NORMAL"]) & set(rows(pipeline, "REQUEST_NORMAL")), 30, "the end of the requests")
    assert not [key for key in old["REQUEST_NORMAL"] if (pipeline.storage / key).exists()]
    time.sleep(2)
    for stream in ("STATUS", "CONFIG"):  # its unit is in Postgres; it has no end
        assert set(old[stream]) <= set(rows(pipeline, stream))
        assert all((pipeline.storage / key).exists() for key in old[stream])
    query("DELETE FROM archive.units WHERE id = 'notifications/record/2016-01'")
    wait_until(lambda: not set(old["STATUS"]) & set(rows(pipeline, "STATUS")), 30, "the end of the statuses")
    assert set(old["CONFIG"]) <= set(rows(pipeline, "CONFIG"))
    # The streams' windows go on, and nothing is said to be missing.
    sent(pipeline, "bea@example.com")
    wait_until(lambda: rows(pipeline, "REQUEST_NORMAL"), 20, "a new request stored")
    assert query("SELECT count(*) FROM archive.log_faults() WHERE stream IN ('REQUEST_NORMAL', 'STATUS')") == [(0,)]


def test_nothing_is_stored_of_what_is_not_kept_and_what_was_stored_goes(pipeline):
    archiver = pipeline.services["archiver"]
    assert rows(pipeline, "INBOUND")
    stored_before = [pipeline.storage / key for stream in ("RENDERED_NORMAL", "INBOUND") for key in rows(pipeline, stream)]
    archiver.stop()
    archiver.options.update({"STENTOR_CONTENT_KEPT": "0s", "STENTOR_CALLBACKS_KEPT": "0s"})
    archiver.start()
    before = pipeline.postgres.query("SELECT max(window_number) FROM archive.segments WHERE stream = 'RENDERED_NORMAL'")
    stored = "SELECT sequence FROM archive.log_positions WHERE stream = 'REQUEST_NORMAL'"
    at = pipeline.postgres.query(stored)[0][0]
    sent(pipeline, "cid@example.com")
    wait_until(lambda: pipeline.postgres.query(stored)[0][0] > at, 20, "its request stored")
    assert pipeline.postgres.query("SELECT max(window_number) FROM archive.segments WHERE stream = 'RENDERED_NORMAL'") == before
    wait_until(lambda: not rows(pipeline, "INBOUND") + rows(pipeline, "RENDERED_NORMAL"), 20, "the end of what was stored")
    assert not [path for path in stored_before if path.exists()]
