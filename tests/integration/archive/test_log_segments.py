# SPDX-License-Identifier: Apache-2.0
"""The log as segments: what the archiver stores of the streams, killed between its steps, with a hole, and what trimming keeps."""
import hashlib
import subprocess

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.segments import read_segment

STREAMS = ["REQUEST_NORMAL", "STATUS", "PEOPLE", "CONFIG", "AUDIT"]
POINTS = ["archiver.segment_put", "archiver.segment_verified", "archiver.segments_committed"]


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline()
    pipeline.storage = pipeline.folder / "objects"
    pipeline.extra = {"STENTOR_STORAGE_URL": f"file://{pipeline.storage}", "STENTOR_SEGMENT_S": "1", "STENTOR_SEGMENT_SPOOL_DIR": pipeline.folder}
    pipeline.start()
    pipeline.client = NatsClient(pipeline.nats.port)
    yield pipeline
    pipeline.client.close()
    pipeline.stop()


def position(pipeline, stream):
    return pipeline.postgres.query(f"SELECT coalesce(max(sequence), 0) FROM archive.log_positions WHERE stream = '{stream}'")[0][0]


def state(pipeline, stream):
    return pipeline.client.stream_info(stream)["state"]


def wait_stored(pipeline, *streams):
    for stream in streams:
        end = state(pipeline, stream)["last_seq"]
        wait_until(lambda: position(pipeline, stream) >= end, 30, f"{stream} stored up to {end}")


def send(pipeline, count):
    before = pipeline.history_count("status = 'sent'")
    for i in range(count):
        pipeline.send(to=f"user{before + i}@example.com")
    wait_until(lambda: pipeline.history_count("status = 'sent'") >= before + count, 30, "all sent")


def segments(pipeline, stream):
    """(first, last, records) of each in order; each object is as its row says."""
    rows = pipeline.postgres.query("SELECT key, first_sequence, last_sequence, events, bytes, sha256, class FROM archive.segments"
                                   f" WHERE stream = '{stream}' ORDER BY window_number, class")
    for key, first, last, events, size, digest, code in rows:
        data = (pipeline.storage / key).read_bytes()
        header, records = read_segment(data)
        assert len(data) == size and hashlib.sha256(data).digest() == bytes(digest)
        assert (header["stream"], header["first"], header["last"], header["events"], header["class"]) == (stream, first, last, events, code)
        yield first, last, records


def assert_whole(pipeline, stream):
    """Windows and holes follow each other, and the segments hold each message of the stream as it is there, once."""
    parts = {(first, last) for first, last, _ in segments(pipeline, stream)}
    parts |= set(pipeline.postgres.query(f"SELECT first_sequence, last_sequence FROM archive.holes WHERE stream = '{stream}'"))
    end = 0
    for first, last in sorted(parts):
        assert first == end + 1
        end = last
    records = [record for _, _, records in segments(pipeline, stream) for record in records]
    stored = {record.sequence: (record.subject, record.payload) for record in records}
    assert len(stored) == len(records)
    for sequence in range(state(pipeline, stream)["first_seq"], end + 1):
        message = pipeline.client.message(stream, seq=sequence)
        assert message is None or stored[sequence] == message
    return records


def test_every_message_of_the_log_is_in_a_segment(pipeline):
    send(pipeline, 20)
    wait_stored(pipeline, *STREAMS)
    counts = {stream: len(assert_whole(pipeline, stream)) for stream in STREAMS}
    assert counts["REQUEST_NORMAL"] == 20 and counts["STATUS"] >= 40 and counts["CONFIG"] > 3
    assert {record.form for record in assert_whole(pipeline, "STATUS")} == {0}  # their headers follow from them
    assert pipeline.postgres.query("SELECT count(*) FROM archive.holes") == [(0,)]
    archiver = pipeline.services["archiver"]
    assert archiver.metric("stentor_archiver_log_active") == 1
    assert archiver.metric("stentor_archiver_log_segments_total") >= 3  # a window each at least
    assert archiver.metric("stentor_archiver_log_holes_total") == 0


HAS_POINTS = subprocess.run([BIN / "stentor-archiver", "--crash-points"], capture_output=True, timeout=20).returncode == 0


@pytest.mark.skipif(not HAS_POINTS, reason="built without -DSTENTOR_CRASH_POINTS=ON")
@pytest.mark.parametrize("point", POINTS)
def test_killed_between_two_steps_it_stores_the_same_once(pipeline, point):
    archiver = pipeline.services["archiver"]
    archiver.kill()
    archiver.options["STENTOR_CRASH_AT"] = point
    archiver.start(wait=False)
    send_one = pipeline.send(to="killed@example.com")
    wait_until(lambda: not archiver.alive(), 30, f"the archiver's death at {point}")
    del archiver.options["STENTOR_CRASH_AT"]
    archiver.start()
    pipeline.status(send_one, wait="sent")
    wait_stored(pipeline, *STREAMS)
    for stream in STREAMS:
        assert_whole(pipeline, stream)


def test_what_the_stream_lost_before_it_was_stored_is_a_hole(pipeline):
    """In AUDIT, which nothing else here reads."""
    publish = lambda text: pipeline.client.publish("aud.acme.read", text.encode(), headers={"X-Test": text})  # noqa: E731
    publish("stored")
    wait_stored(pipeline, "AUDIT")
    archiver = pipeline.services["archiver"]
    archiver.stop()
    stored = position(pipeline, "AUDIT")
    publish("lost")
    pipeline.client.request("$JS.API.STREAM.PURGE.AUDIT", b"")
    publish("kept")
    archiver.start()
    wait_stored(pipeline, "AUDIT")
    holes = pipeline.postgres.query("SELECT first_sequence, last_sequence, reason FROM archive.holes WHERE stream = 'AUDIT'")
    assert holes == [(stored + 1, stored + 1, "removed")]
    assert archiver.metric("stentor_archiver_log_holes_total") == 1
    assert pipeline.postgres.query("SELECT first_sequence, last_sequence, reason FROM archive.log_faults()") == holes
    records = assert_whole(pipeline, "AUDIT")
    # The API's writes are noted in AUDIT, too.
    assert [(record.payload, record.headers) for record in records if record.headers.startswith(b"\x06X-Test")] == [
        (text, b"\x06X-Test" + bytes([len(text)]) + text) for text in (b"stored", b"kept")]


def test_trimming_waits_for_the_segments(pipeline):
    floor = dict(pipeline.postgres.query("SELECT stream, sequence FROM digest_flusher.projected()"))
    wait_stored(pipeline, "REQUEST_NORMAL")
    archiver = pipeline.services["archiver"]
    archiver.stop()
    pipeline.postgres.query("UPDATE archive.log_positions SET sequence = 1 WHERE stream = 'REQUEST_NORMAL'")
    assert dict(pipeline.postgres.query("SELECT stream, sequence FROM digest_flusher.projected()"))["REQUEST_NORMAL"] == 1
    assert floor["REQUEST_NORMAL"] > 1
    # With archiving off it waits for nothing.
    url = archiver.options.pop("STENTOR_STORAGE_URL")
    archiver.start()
    wait_until(lambda: dict(pipeline.postgres.query("SELECT stream, sequence FROM digest_flusher.projected()"))["REQUEST_NORMAL"] > 1, 20,
               "archiving being off")
    assert archiver.metric("stentor_archiver_log_active") == 0
    archiver.options["STENTOR_STORAGE_URL"] = url
