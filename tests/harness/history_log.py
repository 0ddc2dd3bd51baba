# SPDX-License-Identifier: Apache-2.0
"""A log of any length for history to fold: packed events published straight into the streams, as the stages would have."""
import os
import time

from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(number, at_ms):
    value = (at_ms << 80) | number
    return "".join(CROCKFORD[(value >> (5 * shift)) & 31] for shift in range(25, -1, -1))


def publish_log(pipeline, notifications, tenant="acme", at_us=None):
    """Two events for each: its request, and later its `sent` with an attempt. Returns how many events. at_us: when they were made."""
    proto = messages(pipeline)
    client = NatsClient(pipeline.nats.port)
    now_us = at_us or int(time.time() * 1e6)
    base = int.from_bytes(os.urandom(9), "big")
    before = {stream: client.stream_info(stream)["state"]["last_seq"] for stream in ("REQUEST_NORMAL", "STATUS")}

    def put(subject, events):
        parts = []
        for event in events:
            payload = event.SerializeToString()
            parts += [f"PUB {subject} {len(payload)}\r\n".encode(), payload, b"\r\n"]
        client.socket.sendall(b"".join(parts))

    def request(i):
        event = proto.NotificationRequest(
            channel=proto.CHANNEL_EMAIL, category=proto.CATEGORY_TRANSACTIONAL, priority=proto.PRIORITY_NORMAL, template="welcome",
            template_version="1.0.0", locale="en-US", address_hash=i.to_bytes(32, "big"), accepted_at_us=now_us)
        event.meta.tenant, event.meta.notification_id, event.meta.event_id = tenant, "ntf_" + ulid(base + i, now_us // 1000), f"request{i:015d}"
        event.meta.occurred_at_us = now_us
        event.address.key_subject, event.address.ciphertext = bytes(16), bytes(60)
        event.variables.key_subject, event.variables.ciphertext = bytes(16), bytes(60)
        return event

    def sent(i):
        event = proto.NotificationStatus(
            channel=proto.CHANNEL_EMAIL, category=proto.CATEGORY_TRANSACTIONAL, priority=proto.PRIORITY_NORMAL, status=proto.STATUS_SENT,
            template="welcome", template_version="1.0.0", address_hash=i.to_bytes(32, "big"), rendered_at_us=now_us + 3000,
            content_checksum=i.to_bytes(32, "big"))
        event.meta.tenant, event.meta.notification_id, event.meta.event_id = tenant, "ntf_" + ulid(base + i, now_us // 1000), f"sent{i:018d}"
        event.meta.occurred_at_us = now_us + 9000
        event.attempt.attempt_id, event.attempt.number, event.attempt.vendor = "dat_" + ulid(base + i, now_us // 1000), 1, "smtp"
        event.attempt.vendor_message_id, event.attempt.outcome, event.attempt.code = f"queue-{i}", proto.OUTCOME_ACCEPTED, "250"
        event.attempt.text, event.attempt.started_at_us, event.attempt.finished_at_us = "2.0.0 Ok: queued", now_us + 4000, now_us + 9000
        return event

    try:
        for start in range(0, notifications, 500):
            chunk = range(start, min(start + 500, notifications))
            put(f"ntf.request.normal.{tenant}", map(request, chunk))
            put(f"ntf.status.{tenant}.email.sent", map(sent, chunk))
        for stream, last in before.items():
            wait_until(lambda: client.stream_info(stream)["state"]["last_seq"] >= last + notifications, 120, f"the log in {stream}")
    finally:
        client.close()
    return 2 * notifications
