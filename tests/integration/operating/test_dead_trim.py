# SPDX-License-Identifier: Apache-2.0
"""A campaign whose mails are refused for good must not fill DEAD, and must not cost another tenant's letters, nor one that still waits.

Row 3c of the audit at volume: 100,000 marketing mails with 5 % refusals make 5,000 letters. Here DEAD has 4 MB.
"""
import json

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

OTHER = "globex"
LIMIT = 4_000_000
FLOOD = 400  # letters of 10 KB


@pytest.fixture(scope="module")
def flooded():
    running = Pipeline({"STENTOR_TRIM_MS": "1000"}).start(["ingest", "digest-flusher"])
    yield running
    running.stop()


def publish(client, proto, name, tenant=TENANT, code="rejected", reason="rejected: 554 no", size=10_000):
    letter = proto.DeadLetter(stage="dispatcher", reason=reason, reason_code=code, stream="RENDERED_LOW", stream_sequence=1,
                              subject=f"ntf.rendered.low.{tenant}", payload=b"\xff" * size)
    letter.meta.event_id, letter.meta.tenant, letter.meta.notification_id = name, tenant, "unknown"
    return client.publish(f"ntf.dead.dispatcher.{tenant}", letter.SerializeToString(), name)["seq"]


def test_a_flood_costs_its_own_oldest_letters_and_none_that_waits(flooded):
    """Killed between two deletions, the next pass goes on: each pass looks again."""
    client, proto = NatsClient(flooded.nats.port), messages(flooded)
    config = client.stream_info("DEAD")["config"]
    assert "error" not in json.loads(client.request("$JS.API.STREAM.UPDATE.DEAD", json.dumps({**config, "max_bytes": LIMIT}).encode()))
    waiting = publish(client, proto, "waiting", code="", reason="unknown_outcome: a process ended")
    others = [publish(client, proto, f"other-{i}", tenant=OTHER) for i in range(20)]

    def fill():
        return client.stream_info("DEAD")["state"]["bytes"] / LIMIT
    sequences = []
    for i in range(FLOOD):  # 4 MB: more than DEAD holds, with the others
        if fill() > 0.9:
            wait_until(lambda: fill() < 0.75, 20, "room in DEAD")
        sequences.append(publish(client, proto, f"flood-{i}"))
    wait_until(lambda: fill() < 0.75, 20, "DEAD being trimmed")

    assert client.message("DEAD", seq=waiting), "a letter whose notification has no end was removed"
    assert all(client.message("DEAD", seq=sequence) for sequence in others), "another tenant's letter was removed"
    left = [bool(client.message("DEAD", seq=sequence)) for sequence in sequences]
    assert left == sorted(left) and not left[0] and left[-1], "not the oldest went first"
    assert flooded.services["digest-flusher"].metric('stentor_digest_flusher_stream_trimmed_total{stream="DEAD"}') == left.count(False)
    log = flooded.services["digest-flusher"].log.read_text()
    assert "DEAD is nearly full" in log and f"ntf.dead.dispatcher.{TENANT}" in log
    client.close()


def test_letters_that_must_stay_do_not_hold_up_the_trimming_of_others(flooded):
    """The fullest subject has nothing to remove: without the next one DEAD would fill, and every service with a letter to write would wait."""
    client, proto = NatsClient(flooded.nats.port), messages(flooded)
    kept = [publish(client, proto, f"kept-{i}", tenant="initech", code="", reason="unknown_outcome: a process ended", size=10) for i in range(700)]

    def fill():
        return client.stream_info("DEAD")["state"]["bytes"] / LIMIT
    for i in range(FLOOD):
        if fill() > 0.9:
            break
        publish(client, proto, f"again-{i}")
    wait_until(lambda: fill() < 0.75, 40, "DEAD being trimmed")
    assert all(client.message("DEAD", seq=sequence) for sequence in (kept[0], kept[-1]))
    client.close()
