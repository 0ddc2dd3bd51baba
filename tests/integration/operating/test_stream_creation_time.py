# SPDX-License-Identifier: Apache-2.0
"""A change of the streams' size and a restart of NATS: nats-server 2.9.10 reports another creation time for every stream then."""
import json

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until

POSITIONS = """SELECT stream, sequence, to_char(stream_created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') FROM {}.positions"""
SCHEMAS = ("archiver", "people", "digest_flusher")


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(durable=True).start()
    yield running
    running.stop()


def reported(pipeline, stream):
    client = NatsClient(pipeline.nats.port)
    try:
        return client.stream_info(stream)["created"][:26]
    finally:
        client.close()


def restart_nats(pipeline):
    pipeline.nats.stop()
    pipeline.nats.start()


def positions(pipeline):
    return {(schema, row[0]): row[1:] for schema in SCHEMAS for row in pipeline.postgres.query(POSITIONS.format(schema))}


def everything_is_folded(pipeline, name):
    """A mail and a recipient, through every projection."""
    before = positions(pipeline)
    sent = pipeline.send(to=f"{name}@example.com")
    person = ("recipient", "put", "--identity", f"user:{name}", "--name", name, "--email", f"{name}@example.com")
    wait_until(lambda: pipeline.run_cli(*person).returncode == 0, 20, "gateway having NATS again")
    assert pipeline.status(sent, wait="sent")["status"] == "sent"

    def moved():
        now = positions(pipeline)
        return all(key in now and now[key] != before.get(key) for key in (("people", "PEOPLE"), ("digest_flusher", "PEOPLE"), ("archiver", "STATUS")))
    wait_until(moved, 20, "people, digests and history going on")


def test_projections_go_on_where_nats_reports_another_creation_time(pipeline):
    everything_is_folded(pipeline, "first")
    created = reported(pipeline, "PEOPLE")
    restart_nats(pipeline)
    pipeline.cli("migrate", "--skip-database", "--bytes-scale-percent", "2", admin=True)
    restart_nats(pipeline)
    if reported(pipeline, "PEOPLE") == created:
        pytest.skip("this nats-server keeps a stream's creation time")
    everything_is_folded(pipeline, "second")  # by the readers that were there
    for name in ("archiver", "ingest", "digest-flusher"):
        pipeline.services[name].stop()
        pipeline.services[name].start()
    everything_is_folded(pipeline, "third")  # from the stored positions
    for (schema, stream), (_, known) in positions(pipeline).items():
        assert known == reported(pipeline, stream), (schema, stream)
    assert "stream's creation time changed but its messages are the same" in pipeline.services["archiver"].log.read_text()
    report = json.loads(pipeline.cli("doctor", "--json"))
    shown = {check["check"]: check["text"] for check in report["checks"]}
    assert report["ok"] and shown["senders"] == "1 tenant, each From of a verified domain"
    for name in ("history", "people", "digests"):
        assert shown[f"projection {name}"].startswith("0 events behind, at ") and shown[f"projection {name}"].endswith(", folding"), shown


def test_a_rebuild_knows_the_stream_though_the_archiver_was_away(pipeline):
    pipeline.services["archiver"].stop()
    try:
        pipeline.postgres.query("UPDATE archiver.positions SET stream_created_at = stream_created_at - interval '1 hour'")
        done = pipeline.run_cli("rebuild", "history", "--dry-run", "--json", admin=True)  # without --carry-older
        assert done.returncode == 0 and json.loads(done.stdout)["differences"] == 0, done.stdout + done.stderr
    finally:
        pipeline.services["archiver"].start()
    everything_is_folded(pipeline, "fourth")
