# SPDX-License-Identifier: Apache-2.0
"""`stentor rebuild history` where the streams have lost their beginning: from segments first, then from the streams, without a gap."""
import json
import shutil

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_until
from tests.harness.stored_log import StoredLog

STREAMS = ["REQUEST_NORMAL", "STATUS"]
ROWS = """SELECT 'n ' || (to_jsonb(n) - 'updated_at')::text FROM archiver.notifications n
          UNION ALL SELECT 'a ' || to_jsonb(a)::text FROM archiver.delivery_attempts a"""


@pytest.fixture
def pipeline():
    pipeline = StoredLog().start()
    yield pipeline
    pipeline.stop()


def rows(pipeline):
    return sorted(row[0] for row in pipeline.postgres.query(ROWS))


def run(pipeline, *words, storage=True):
    url = {"STENTOR_STORAGE_URL": pipeline.extra["STENTOR_STORAGE_URL"]} if storage else {}
    return pipeline.run_cli("rebuild", "history", "--json", *words, admin=True, **url)


def rebuild(pipeline, *words):
    done = run(pipeline, *words)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def test_what_the_streams_have_lost_comes_from_segments(pipeline):
    pipeline.send_all(15)
    pipeline.wait_stored(*STREAMS)
    pipeline.send_all(15)
    pipeline.wait_stored(*STREAMS)
    # One stream is in the middle of its second window, of the other nothing is left.
    pipeline.purge("STATUS", keep=5)
    pipeline.purge("REQUEST_NORMAL")
    before = rows(pipeline)
    total = sum(pipeline.state(stream)["last_seq"] for stream in STREAMS)
    refused = run(pipeline, storage=False)
    assert refused.returncode == 1 and "begins at" in refused.stderr and rows(pipeline) == before
    compared = rebuild(pipeline, "--dry-run")
    assert (compared["differences"], compared["shown"], compared["events"]) == (0, [], total)
    swapped = rebuild(pipeline)
    assert (swapped["swapped"], swapped["events"], swapped["carried"]) == (True, total, 0)
    assert rows(pipeline) == before and len(before) == 60
    # The archiver goes on behind what came from segments alone, and what comes now is in the streams alone.
    pipeline.send_all(5)
    assert rebuild(pipeline, "--dry-run")["differences"] == 0
    pipeline.postgres.query("UPDATE archiver.notifications SET template = 'forged'")
    assert json.loads(run(pipeline, "--dry-run").stdout)["differences"] == 35


def test_what_retention_has_removed_does_not_come_back(pipeline):
    gone, *kept = pipeline.send_all(4)
    pipeline.wait_stored(*STREAMS)
    pipeline.purge("STATUS")
    pipeline.postgres.query("INSERT INTO stentor.history_removed VALUES ('R', now() + interval '1 hour')")
    pipeline.postgres.query("DELETE FROM archiver.notifications WHERE id = %s", gone)
    pipeline.postgres.query("DELETE FROM archiver.delivery_attempts WHERE notification_id = %s", gone)
    before = rows(pipeline)
    assert rebuild(pipeline, "--dry-run")["differences"] == 0
    rebuild(pipeline)
    assert rows(pipeline) == before and len(before) == 2 * len(kept)


def test_a_message_gone_from_within_a_stream_is_read_from_its_segment(pipeline):
    pipeline.send_all(3)
    pipeline.wait_stored(*STREAMS)
    last = pipeline.state("STATUS")["last_seq"]
    assert json.loads(pipeline.client.request("$JS.API.STREAM.MSG.DELETE.STATUS", json.dumps({"seq": last - 1}).encode()))["success"]
    assert "has gaps before" in run(pipeline, storage=False).stderr
    assert rebuild(pipeline, "--dry-run")["differences"] == 0


def test_a_hole_is_an_error_with_its_name_or_its_rows_are_carried_over(pipeline):
    pipeline.send_all(4)
    pipeline.wait_stored(*STREAMS)
    stored = pipeline.stored("STATUS")
    pipeline.lose_unstored()
    pipeline.send_all(2)
    pipeline.wait_stored(*STREAMS)
    (first, last), = pipeline.postgres.query("SELECT first_sequence, last_sequence FROM archive.holes WHERE stream = 'STATUS'")
    assert (first, pipeline.history_count()) == (stored + 1, 7)
    pipeline.purge("STATUS", keep=1)
    kept = rows(pipeline)
    refused = run(pipeline)
    assert refused.returncode == 1 and f"the log of 'STATUS' has a hole: messages {first} to {last} are in no segment (removed)" in refused.stderr
    assert "--carry-older" in refused.stderr and rows(pipeline) == kept
    assert rebuild(pipeline, "--carry-older")["carried"] == len(kept)
    assert rows(pipeline) == kept

def test_a_stream_made_again_is_a_hole_and_its_former_rows_are_carried_over(pipeline):
    pipeline.send_all(4)
    pipeline.wait_stored(*STREAMS)
    before = rows(pipeline)
    config = pipeline.client.stream_info("STATUS")["config"]
    archiver = pipeline.services["archiver"]
    archiver.stop()
    assert json.loads(pipeline.client.request("$JS.API.STREAM.DELETE.STATUS"))["success"]
    assert "error" not in json.loads(pipeline.client.request("$JS.API.STREAM.CREATE.STATUS", json.dumps(config).encode()))
    archiver.start(wait=False)  # its history has stopped: the position is another stream's
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM archive.holes WHERE stream = 'STATUS' AND reason = 'recreated'")[0][0] == 1, 30, "the hole")
    refused = run(pipeline)
    assert refused.returncode == 1 and "the log of 'STATUS' has a hole" in refused.stderr and "(recreated)" in refused.stderr and rows(pipeline) == before
    assert rebuild(pipeline, "--carry-older")["carried"] == len(before)
    assert rows(pipeline) == before
    archiver.stop()
    archiver.start()
    pipeline.send_all(2)
    assert len(rows(pipeline)) == len(before) + 4


def test_messages_whose_numbers_come_again_are_all_read(pipeline):
    # The server loses its tail, which history and the segments hold; the same sequences come once more, with other messages.
    pipeline.send_all(4)
    pipeline.wait_stored(*STREAMS)
    assert pipeline.nats.stop() in (0, 1)
    shutil.copytree(pipeline.nats.folder / "store", pipeline.nats.folder / "copy")
    pipeline.nats.start()
    pipeline.client = NatsClient(pipeline.nats.port)
    pipeline.send_all(4)
    pipeline.wait_stored(*STREAMS)
    pipeline.nats.kill()
    shutil.rmtree(pipeline.nats.folder / "store")
    (pipeline.nats.folder / "copy").rename(pipeline.nats.folder / "store")
    pipeline.nats.start()
    pipeline.client = NatsClient(pipeline.nats.port)
    pipeline.send_all(8)
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM archive.holes WHERE reason = 'tail_lost' AND stream = 'STATUS'")[0][0] >= 1, 30, "the lost tail noticed")
    pipeline.wait_stored(*STREAMS)
    before = rows(pipeline)
    for stream in STREAMS:
        pipeline.purge(stream)
    assert rebuild(pipeline, "--dry-run")["differences"] == 0
    rebuild(pipeline)
    assert rows(pipeline) == before and len(before) == 32
