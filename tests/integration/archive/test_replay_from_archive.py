# SPDX-License-Identifier: Apache-2.0
"""`stentor replay --from-archive`: what a stream has lost comes from its segments, by sequence, time and tenant; what is missing is named."""
import json
import time
from datetime import datetime, timezone

import pytest

from tests.harness.nats_client import Subscriber
from tests.harness.stored_log import StoredLog

COUNT = 8


@pytest.fixture(scope="module")
def pipeline():
    """REQUEST_NORMAL: COUNT messages in segments alone, COUNT in segments and stream, and 2 more that no segment holds yet may be there."""
    pipeline = StoredLog().start()
    pipeline.send_all(COUNT)
    pipeline.wait_stored("REQUEST_NORMAL", "STATUS")
    time.sleep(0.1)
    pipeline.between = datetime.now(timezone.utc)
    pipeline.send_all(COUNT)
    pipeline.wait_stored("REQUEST_NORMAL", "STATUS")
    pipeline.messages = {stream: [pipeline.client.message(stream, seq=i) for i in range(1, pipeline.state(stream)["last_seq"] + 1)]
                         for stream in ("REQUEST_NORMAL", "STATUS")}
    pipeline.purge("REQUEST_NORMAL", seq=COUNT + 3)
    yield pipeline
    pipeline.stop()


def replay(pipeline, *words, status=0, stream="REQUEST_NORMAL"):
    done = pipeline.run_cli("replay", "--stream", stream, "--from-archive", "--json", *words, STENTOR_STORAGE_URL=pipeline.extra["STENTOR_STORAGE_URL"])
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if status == 0 else done.stderr


def count(pipeline, *words, **more):
    done = replay(pipeline, *words, "--dry-run", **more)
    assert done["complete"] and done["removed_before"] == 0
    return done["messages"]


def test_each_message_comes_once_and_as_it_was(pipeline):
    subscriber = Subscriber(pipeline.nats.port)
    subscriber.subscribe("replay.>")
    done = replay(pipeline, "--from-seq", 2, "--to-subject", "replay.one")
    assert done["published"] == 2 * COUNT - 1 and (done["first"]["sequence"], done["last"]["sequence"]) == (2, 2 * COUNT)
    for sequence in range(2, 2 * COUNT + 1):
        _, headers, payload = subscriber.next()
        assert (headers["Stentor-Subject"], payload) == pipeline.messages["REQUEST_NORMAL"][sequence - 1]
        assert headers["Stentor-Sequence"] == f"REQUEST_NORMAL/{sequence}" and len(headers["Nats-Msg-Id"]) > 10
    subscriber.close()


def test_it_is_cut_by_sequence_time_tenant_and_subject(pipeline):
    between = pipeline.between.isoformat()
    assert count(pipeline, "--from-seq", 3, "--to-seq", 5) == 3
    assert count(pipeline, "--from-time", between) == COUNT
    assert count(pipeline, "--from-time", "1h", "--to-time", between) == COUNT
    assert count(pipeline, "--from-time", "1h") == count(pipeline, "--from-time", "1h", "--all-tenants") == 2 * COUNT
    assert count(pipeline, "--from-seq", 1, "--tenant", "other") == 0
    statuses = len([1 for subject, _ in pipeline.messages["STATUS"] if subject.endswith(".sent")])
    assert statuses == 2 * COUNT == count(pipeline, "--from-seq", 1, "--subject", "ntf.status.acme.email.sent", stream="STATUS")


def test_what_goes_through_the_service_is_not_sent_again(pipeline):
    mails = pipeline.mailbox.count_by_message_id()
    done = replay(pipeline, "--from-seq", 1, "--to-service", "renderer")
    assert done["published"] == 2 * COUNT
    pipeline.send_all(1)  # behind the copies
    assert pipeline.mailbox.count_by_message_id().items() >= mails.items() and len(pipeline.mailbox.count_by_message_id()) == len(mails) + 1
    # What the ledger may have forgotten is left out. Copies stand behind the originals.
    pipeline.postgres.query("UPDATE dispatcher.retention_watermark SET since = now()")
    left = replay(pipeline, "--from-seq", 1, "--to-seq", 2 * COUNT, "--to-service", "renderer")
    pipeline.postgres.query("UPDATE dispatcher.retention_watermark SET since = '-infinity'")
    assert (left["published"], left["skipped"]["forgotten"]) == (0, 2 * COUNT)


@pytest.mark.parametrize("words,stream,said", [
    (["--from-seq", 1], "EVENTS", "EVENTS is not archived: applications' events: their keys last two weeks"),
    (["--last-per-subject"], "STATUS", "--last-per-subject exclude each other"),
    (["--from-time", "1h", "--to-seq", 9], "STATUS", "--to-seq needs --from-seq"),
])
def test_what_cannot_be_is_refused(pipeline, words, stream, said):
    assert said in replay(pipeline, *words, "--dry-run", status=2, stream=stream)


# ---- what is missing ----------------------------------------------------------------------------------------------------


def objects(pipeline, stream):
    return [pipeline.storage / key for key, in pipeline.postgres.query(
        f"SELECT key FROM archive.segments WHERE stream = '{stream}' ORDER BY window_number")]


@pytest.mark.parametrize("harm,said", [
    (lambda path: path.rename(path.with_suffix(".gone")), "is not there"),
    (lambda path: path.write_bytes(path.read_bytes()[:-200]), "ends too early"),
    (lambda path: path.write_bytes(bytes(b ^ (i == 150) for i, b in enumerate(path.read_bytes()))), "has a wrong checksum"),
])
def test_an_object_that_is_missing_or_changed_is_named(pipeline, harm, said):
    path = objects(pipeline, "REQUEST_NORMAL")[0]
    kept = path.read_bytes()
    harm(path)
    reported = replay(pipeline, "--from-seq", 1, "--dry-run", status=1)
    path.write_bytes(kept)
    assert "log/REQUEST_NORMAL/" in reported and said in reported, reported
    assert count(pipeline, "--from-seq", 1) > 0


def test_a_segment_in_anothers_place_is_named(pipeline):
    first, other = objects(pipeline, "REQUEST_NORMAL")[0], objects(pipeline, "STATUS")[0]
    kept = first.read_bytes()
    first.write_bytes(other.read_bytes())
    pipeline.postgres.query(f"UPDATE archive.segments SET bytes = {len(other.read_bytes())} WHERE key = '{first.relative_to(pipeline.storage)}'")
    reported = replay(pipeline, "--from-seq", 1, "--dry-run", status=1)
    first.write_bytes(kept)
    pipeline.postgres.query(f"UPDATE archive.segments SET bytes = {len(kept)} WHERE key = '{first.relative_to(pipeline.storage)}'")
    assert "is another segment than its row says" in reported


def test_a_hole_is_an_error_with_its_sequences(pipeline):
    stored = pipeline.stored("STATUS")
    before = datetime.now(timezone.utc).isoformat()
    pipeline.lose_unstored()
    said = f"the log of 'STATUS' has a hole: messages {stored + 1} to "
    for _ in ("behind the last window", "between two windows"):
        assert said in replay(pipeline, "--from-seq", 1, "--dry-run", status=1, stream="STATUS")
        assert said in replay(pipeline, "--from-time", before, "--dry-run", status=1, stream="STATUS")
        pipeline.send_all(1)
        pipeline.wait_stored("STATUS")
        pipeline.purge("STATUS", keep=1)
    assert count(pipeline, "--from-seq", 1, "--to-seq", stored, stream="STATUS") == stored
    (last,), = pipeline.postgres.query("SELECT last_sequence FROM archive.holes WHERE stream = 'STATUS'")
    assert count(pipeline, "--from-seq", last + 1, stream="STATUS") > 0
