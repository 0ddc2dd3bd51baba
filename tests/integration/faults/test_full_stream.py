# SPDX-License-Identifier: Apache-2.0
"""Streams keep messages by age, and the disk is finite: messages that every consumer has read make room for new ones; a message that waits
for a consumer is never removed, however full the stream."""
import base64
import json
import random
import time

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import free_port, wait_until
from tests.harness.sink import SmtpSink

TOTAL = 450  # of 50 KB, 38 KB when rendered: 22 and 17 MB, where REQUEST_NORMAL holds 20 MB and RENDERED_NORMAL 10 MB
PER_REQUEST = 50


def noise(chance):
    return base64.b64encode(chance.randbytes(37_500), b"AB").decode()  # a letter at a time it is seconds of CPU time


def test_more_than_the_streams_hold_goes_through_and_what_waits_is_kept():
    pipeline = Pipeline({"STENTOR_TRIM_MS": "1000", "STENTOR_INGEST_SWEEP_AGE_MS": "1000", "STENTOR_TENANT_SHARE": "0"}, ack_wait_ms=15000)
    pipeline.mailbox = SmtpSink(pipeline.folder / "sink", free_port())
    pipeline.start()
    try:
        html = pipeline.folder / "big.html"
        html.write_text("<p>{{noise}}</p>")
        pipeline.cli("template", "put", "big", "--subject", "Big", "--html", html)
        wait_until(lambda: pipeline.post({"to": "a@example.com", "template": "big"})[0] == 202, 20, "the template")
        client = NatsClient(pipeline.nats.port)
        for stream in ("REQUEST_NORMAL", "RENDERED_NORMAL"):
            config = client.stream_info(stream)["config"]
            small = json.dumps({**config, "max_bytes": config["max_bytes"] // 4}).encode()
            assert "error" not in json.loads(client.request(f"$JS.API.STREAM.UPDATE.{stream}", small))
        chance = random.Random(1)
        wait_until(lambda: pipeline.history_count("status = 'sent'") == 1, 20, "the first mail")
        pipeline.services["dispatcher"].stop()

        def info():
            return client.stream_info("RENDERED_NORMAL")
        unread = info()["state"]["last_seq"] + 1
        for first in range(0, TOTAL, PER_REQUEST):
            bodies = [{"to": f"u{first + i}@example.com", "template": "big", "variables": {"noise": noise(chance)}}
                      for i in range(PER_REQUEST)]
            while pipeline.post(bodies)[0] != 202:
                time.sleep(0.1)
        wait_until(lambda: info()["state"]["bytes"] > 0.9 * info()["config"]["max_bytes"], 60, "the stream being full")
        time.sleep(3)  # several passes of the trimmer
        assert info()["state"]["first_seq"] <= unread, "what the dispatcher had not read was removed"
        pipeline.services["dispatcher"].start()
        wait_until(lambda: pipeline.history_count("status = 'sent'") >= TOTAL + 1, 300, "every mail being sent")
        assert info()["state"]["first_seq"] > unread
        flusher = pipeline.services["digest-flusher"]
        assert flusher.metric("stentor_digest_flusher_stream_trimmed_total") >= info()["state"]["first_seq"] - 1
        assert pipeline.postgres.query("SELECT count(*) FROM dispatcher.ledger WHERE unknown_count > 0 OR attempt > 1")[0][0] == 0
    finally:
        pipeline.stop()


def test_a_service_that_was_never_started_holds_no_event_back():
    """EVENTS has two readers, and order-saga need not run. Once it has read, what it has not read waits for it."""
    pipeline = Pipeline({"STENTOR_TRIM_MS": "1000"}).start(["ingest", "digest-flusher"])
    try:
        client = NatsClient(pipeline.nats.port)
        limit = client.stream_info("EVENTS")["config"]["max_bytes"]

        def state():
            return client.stream_info("EVENTS")["state"]

        def fill():
            """Publishes unwanted messages while there is room: then the trimmer would like to make some."""
            while state()["bytes"] < 0.85 * limit:
                client.publish("evt.acme.noise", b"x" * 800_000)
            return True
        fill()
        assert state()["messages"] > 40
        wait_until(lambda: state()["first_seq"] > 1, 30, "room being made without order-saga")
        pipeline.services["order-saga"] = saga = pipeline.service("order-saga").start()
        wait_until(lambda: saga.metric("stentor_order_saga_passed_total") >= state()["messages"], 30, "order-saga having read")
        time.sleep(1)  # its acks
        saga.stop()
        unread = state()["last_seq"] + 1
        wait_until(lambda: fill() and state()["first_seq"] >= unread - 1, 60, "what both have read being gone")
        time.sleep(3)  # several passes of the trimmer
        fill()
        assert unread - 1 <= state()["first_seq"] <= unread, "what order-saga had not read was removed"
        saga.start()
        wait_until(lambda: state()["first_seq"] > unread, 30, "room being made again")
    finally:
        pipeline.stop()
