# SPDX-License-Identifier: Apache-2.0
"""The log stored in a bucket that fails: full, read-only, slow, lossy, lying, and a fifth of all requests at random. Nothing counts as
stored that was not read back, history goes on meanwhile, and in the end every message is in a segment once."""
import dataclasses
import hashlib
import json
import random
import time

import pytest

from tests.harness.length import amount
from tests.harness.nats_client import NatsClient
from tests.harness.objectstore import ceph
from tests.harness.objectstore.puppet import ANSWERS_LOST, Fault, Puppet
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.segments import read_segment

STREAMS = ["REQUEST_NORMAL", "STATUS", "PEOPLE", "CONFIG"]
LOG = "p/log/"
CHAOS = (*ANSWERS_LOST, Fault.CUT_IN_ANSWER, Fault.WRONG_BYTES, Fault.LOST, Fault.CONFLICT)


def started(environment):
    pipeline = Pipeline()
    url = environment["STENTOR_STORAGE_URL"] + "&patience_s=2&timeout_s=2"
    pipeline.extra = {**environment, "STENTOR_STORAGE_URL": url, "STENTOR_SEGMENT_S": "1", "STENTOR_SEGMENT_SPOOL_DIR": pipeline.folder}
    pipeline.start()
    pipeline.client = NatsClient(pipeline.nats.port)
    return pipeline


@pytest.fixture(scope="module")
def puppet():
    with Puppet() as running:
        yield running


@pytest.fixture(scope="module")
def pipeline(puppet):
    pipeline = started(puppet.environment("p"))
    yield pipeline
    pipeline.client.close()
    pipeline.stop()


def send(pipeline, count):
    """Returns when history has them: the archiver's other work does not wait for the bucket."""
    before = pipeline.history_count("status = 'sent'")
    for i in range(count):
        pipeline.send(to=f"user{before + i}@example.com")
    wait_until(lambda: pipeline.history_count("status = 'sent'") >= before + count, 30, "all sent, and in history")


def ends(pipeline):
    return {stream: pipeline.client.stream_info(stream)["state"]["last_seq"] for stream in STREAMS}


def position(pipeline, stream):
    return pipeline.postgres.query(f"SELECT coalesce(max(sequence), 0) FROM archive.log_positions WHERE stream = '{stream}'")[0][0]


def wait_stored(pipeline, seconds=90):
    for stream, end in ends(pipeline).items():
        wait_until(lambda: position(pipeline, stream) >= end, seconds, f"{stream} stored up to {end}")


def failures(pipeline):
    return pipeline.services["archiver"].metric("stentor_archiver_log_failures_total")


def assert_whole(pipeline, read):
    """read(key): the object. Each message of the streams is in a segment once, and each object is as its row says."""
    assert pipeline.postgres.query("SELECT count(*) FROM archive.holes") == [(0,)]
    for stream, end in ends(pipeline).items():
        stored, next_first = {}, 1
        rows = pipeline.postgres.query("SELECT key, first_sequence, last_sequence, bytes, sha256 FROM archive.segments"
                                       f" WHERE stream = '{stream}' ORDER BY window_number, class")
        for first, last in sorted({(row[1], row[2]) for row in rows}):
            assert first == next_first, (stream, first)
            next_first = last + 1
        assert next_first == end + 1, stream
        for key, _, _, size, digest in rows:
            data = read(key)
            assert len(data) == size and hashlib.sha256(data).digest() == bytes(digest), key
            for record in read_segment(data)[1]:
                assert record.sequence not in stored
                stored[record.sequence] = record.payload
        for sequence in range(pipeline.client.stream_info(stream)["state"]["first_seq"], end + 1):
            message = pipeline.client.message(stream, seq=sequence)
            assert message is None or stored[sequence] == message[1]


def in_puppet(puppet):
    return lambda key: puppet.newest(f"p/{key}").body


@pytest.mark.parametrize("trouble", ["full", "read_only"])
def test_a_bucket_that_takes_nothing_is_waited_for(pipeline, puppet, trouble):
    wait_stored(pipeline)
    before, failed = ends(pipeline)["STATUS"], failures(pipeline)
    setattr(puppet, trouble, True)
    send(pipeline, 5)
    wait_until(lambda: failures(pipeline) > failed, 30, "a failure that is counted")
    assert position(pipeline, "STATUS") <= before
    setattr(puppet, trouble, False)
    wait_stored(pipeline)
    assert_whole(pipeline, in_puppet(puppet))


def test_a_slow_bucket_holds_nothing_else_up(pipeline, puppet):
    wait_stored(pipeline)
    puppet.delay_s = 0.7
    began = time.monotonic()
    send(pipeline, 10)
    assert time.monotonic() - began < 20
    puppet.delay_s = 0
    wait_stored(pipeline)
    assert_whole(pipeline, in_puppet(puppet))


@pytest.mark.parametrize("fault, method", [(Fault.WRONG_BYTES, "GET"), (Fault.SHORT_BODY, "GET"), (Fault.LOST, "PUT"), (Fault.OWN_412, "PUT"),
                                           (Fault.SILENCE, "PUT")], ids=lambda value: getattr(value, "name", value))
def test_what_was_not_read_back_does_not_count(pipeline, puppet, fault, method):
    wait_stored(pipeline)
    puppet.next(fault, times=1 if fault is Fault.SILENCE else 2, method=method, key=LOG)
    send(pipeline, 3)
    wait_stored(pipeline)
    assert puppet.orders_left() == 0
    assert_whole(pipeline, in_puppet(puppet))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_every_message_is_stored_while_a_fifth_of_all_requests_fails(pipeline, puppet, seed):
    dice, from_here = random.Random(seed), len(puppet.requests)
    puppet.chaos(0.2, seed=seed, faults=CHAOS)
    for _ in range(amount(6, 25)):
        send(pipeline, dice.randint(2, 6))
        wait_stored(pipeline, 180)  # windows of their own, so that there is much to fail
        if dice.random() < 0.3:
            pipeline.services["archiver"].kill()
            pipeline.services["archiver"].start()
    wait_stored(pipeline, 180)
    puppet.calm()
    met = [request.fault for request in puppet.requests[from_here:] if request.fault]
    assert len(met) >= amount(3, 20) and len(set(met)) >= amount(2, 5), met
    assert_whole(pipeline, in_puppet(puppet))
    assert not [refused for refused in puppet.refused if refused.code == "SignatureDoesNotMatch"]


def rebuild(pipeline):
    storage = {name: value for name, value in pipeline.extra.items() if name.startswith("STENTOR_STORAGE_")}
    return pipeline.run_cli("rebuild", "history", "--json", "--dry-run", admin=True, **storage)


SPOILT = {
    "changed": lambda body: body[:len(body) // 2] + bytes([body[len(body) // 2] ^ 1]) + body[len(body) // 2 + 1:],
    "shortened": lambda body: body[:len(body) // 2],
    "deleted": None,
}


def test_a_segment_that_was_spoilt_by_hand_ends_a_rebuild_with_its_name(pipeline, puppet):
    send(pipeline, 3)
    wait_stored(pipeline)
    pipeline.client.request("$JS.API.STREAM.PURGE.STATUS", b"")  # only the bucket has them
    (key,), = pipeline.postgres.query("SELECT key FROM archive.segments WHERE stream = 'STATUS' ORDER BY window_number LIMIT 1")
    for spoilt, how in SPOILT.items():
        kept = [dataclasses.replace(version) for version in puppet.store[f"p/{key}"]]
        puppet.change(f"p/{key}", how) if how else puppet.lose(f"p/{key}")
        done = rebuild(pipeline)
        assert done.returncode == 1 and key.rsplit("/", 1)[1] in done.stderr, (spoilt, done.stdout, done.stderr)
        puppet.store[f"p/{key}"] = kept
    done = rebuild(pipeline)
    assert done.returncode == 0 and json.loads(done.stdout)["differences"] == 0, done.stderr


def test_no_version_of_a_segment_is_left_at_its_end(pipeline, puppet):
    """Also of one that was put twice: a damaged one is put again, and a server without conditions overwrites."""
    archiver, query = pipeline.services["archiver"], pipeline.postgres.query
    there = "SELECT key, version FROM archive.segments WHERE stream = 'RENDERED_NORMAL' AND deleted_at IS NULL ORDER BY key"
    wait_until(lambda: query(there), 20, "content stored")
    before = len(query(there))
    send(pipeline, 2)
    wait_until(lambda: len(query(there)) > before, 20, "more content stored")
    pipeline.services["dispatcher"].stop()
    (key, version), *_ = segments = query(there)
    newest = puppet.store[f"p/{key}"][-1]
    assert newest.id == version
    puppet.keep(f"p/{key}", newest.body, {})
    assert len(puppet.store[f"p/{key}"]) == 2
    archiver.stop()
    puppet.locked_keys = {f"p/{key}"}
    archiver.options["STENTOR_CONTENT_KEPT"] = "1s"
    archiver.start()
    # One that the bucket holds on to, though it is the oldest, holds up no other.
    wait_until(lambda: {row[0] for row in query(there)} & {row[0] for row in segments} == {key}, 30, "the end of the others")
    assert len(puppet.store[f"p/{key}"]) == 2 and "the bucket does not delete some segments" in archiver.log.read_text()
    puppet.locked_keys = set()
    wait_until(lambda: not {row[0] for row in query(there)} & {row[0] for row in segments}, 30, "the end of the content")
    assert [versions for key, _ in segments for versions in puppet.store.get(f"p/{key}", [])] == []
    pipeline.services["dispatcher"].start()


def test_the_log_in_a_real_bucket():
    bucket = ceph.new_bucket("log")
    pipeline = started(bucket.environment("p"))
    try:
        send(pipeline, 5)
        wait_stored(pipeline)
        assert_whole(pipeline, lambda key: bucket.get(f"p/{key}"))

        def counted():
            return {f"p/{key}" for (key,) in pipeline.postgres.query("SELECT key FROM archive.segments WHERE key LIKE 'log/%'")}
        # An object is there a moment before its row.
        wait_until(lambda: set(bucket.keys(LOG)) == counted(), 20, "a row for each object, and an object for each row")
    finally:
        pipeline.client.close()
        pipeline.stop()
