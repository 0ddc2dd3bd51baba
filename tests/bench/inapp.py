# SPDX-License-Identifier: Apache-2.0
"""In-app: items into FEED and folded, by one gateway. The items are made before; the time runs from the first publish until the last row is
committed, and the counters have to say what a count of the items does."""
import os
import time
from pathlib import Path

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.protobuf import messages

RECIPIENTS = 1000
CONTENT = 300  # bytes sealed
CHUNK = 500
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(number):
    return "ntf_01M82XS89V" + "".join(ALPHABET[number >> 5 * place & 31] for place in range(15, -1, -1))


def packed_items(pipeline, count):
    protocol = messages(pipeline)
    now_us = time.time_ns() // 1000
    event = protocol.FeedEvent()
    event.meta.tenant = TENANT
    event.item.category = protocol.CATEGORY_TRANSACTIONAL
    event.item.template = "order-shipped"
    event.item.locale = "en"
    event.item.direction = "ltr"
    sealed = event.item.content
    sealed.key_generation = 1
    sealed.nonce = os.urandom(12)
    sealed.ciphertext = os.urandom(CONTENT)
    for number in range(count):
        name = (number % RECIPIENTS).to_bytes(16, "big")
        event.meta.notification_id = ulid(number)
        event.meta.event_id = f"e{number:021}"
        event.meta.occurred_at_us = event.item.created_at_us = now_us + number
        event.recipient = name * 2
        sealed.key_subject = name
        payload = event.SerializeToString()
        head = f"NATS/1.0\r\nNats-Msg-Id: {event.meta.event_id}\r\n\r\n".encode()
        yield b"HPUB feed.%s %d %d\r\n" % (TENANT.encode(), len(head), len(head) + len(payload)) + head + payload + b"\r\n"


def publish(pipeline, chunks):
    """Without waiting for each ack; PING after each chunk keeps the server from being flooded."""
    client = NatsClient(pipeline.nats.port)
    for chunk in chunks:
        client._write(chunk + b"PING\r\n")
        assert client._line() == b"PONG"
    client.close()


def items_per_s(count):
    pipeline = Pipeline(bytes_percent=20).start(["ingest", "gateway"])
    try:
        lines = list(packed_items(pipeline, count))
        chunks = [b"".join(lines[at:at + CHUNK]) for at in range(0, count, CHUNK)]
        gateway = pipeline.services["gateway"]
        cpu = cpu_s(gateway.child.pid)
        begun = time.monotonic()
        publish(pipeline, chunks)
        while pipeline.postgres.query("SELECT coalesce(sum(total), 0) FROM feed.counters")[0][0] < count:
            assert time.monotonic() - begun < 300, "not all items were folded"
            time.sleep(0.02)
        took = time.monotonic() - begun
        assert pipeline.postgres.query("SELECT count(*) FROM feed.items") == [(count,)]
        return count / took, (cpu_s(gateway.child.pid) - cpu) / count * 1e6
    finally:
        pipeline.stop()


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
