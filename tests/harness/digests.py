# SPDX-License-Identifier: Apache-2.0
"""DEFERRED events as the gate makes them, out of requests that were really accepted: sealed, with their own ids."""
import base64
import hashlib
import time
import uuid

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

YEAR_S = 300 * 24 * 3600


def now_us():
    return int(time.time() * 1e6)


def event_id(*words):
    return base64.urlsafe_b64encode(hashlib.sha256("/".join(map(str, words)).encode()).digest()[:16]).decode().rstrip("=")


class Deferrals:
    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.proto = messages(pipeline)
        self.nats = NatsClient(pipeline.nats.port)

    def close(self):
        self.nats.close()

    # ---- making ----

    def accept(self, recipients, template="welcome", **fields):
        """One accepted and sealed request for each of `recipients`, in their order. None of them waits or is sent."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + YEAR_S))
        start = self.nats.stream_info("DEFERRED")["state"]["last_seq"]
        ids = []
        for first in range(0, len(recipients), 500):
            bodies = [{"to": f"{who}@example.com".lower(), "template": template, "variables": {"name": who}, "recipient_id": who,
                       "scheduled_for": at, **fields} for who in recipients[first:first + 500]]
            status, _, answer = self.pipeline.post(bodies)
            assert status == 202, answer
            ids += [item["id"] for item in answer["notifications"]]
        query = "SELECT count(*) FROM digest_flusher.due_work WHERE notification_id = ANY (%s)"
        wait_until(lambda: self.pipeline.postgres.query(query, ids)[0][0] == len(ids), 30, "the requests waiting")
        self.pipeline.postgres.query("DELETE FROM digest_flusher.due_work WHERE notification_id = ANY (%s)", ids)
        requests = {event.request.meta.notification_id: event.request for event in self.since("DEFERRED", start, self.proto.Deferred)}
        return [requests[one] for one in ids]

    def publish(self, deferred):
        deferred.meta.occurred_at_us = now_us()
        return self.nats.publish(f"ntf.deferred.{deferred.reason}.{TENANT}", deferred.SerializeToString(), deferred.meta.event_id)

    def deferred(self, request, reason, due_us, cancel_key=""):
        deferred = self.proto.Deferred(reason=reason, due_at_us=due_us, cancel_key=cancel_key, request=request)
        deferred.request.scheduled_for_us = 0
        deferred.meta.CopyFrom(request.meta)
        deferred.meta.event_id = event_id("deferred", request.meta.notification_id, reason)
        return deferred

    def wait(self, request, reason, due_us, cancel_key=""):
        self.publish(self.deferred(request, reason, due_us, cancel_key))

    def gather(self, request, due_us, category="social", cancel_key="", again="", locale="en"):
        """Into the window of its recipient; returns the window's id. again: the same item as another event."""
        recipient = request.recipient_id
        window = "dgw_" + event_id("window", recipient, category, due_us)
        deferred = self.deferred(request, "digest", due_us, cancel_key)
        if again:
            deferred.meta.event_id = event_id(again, deferred.meta.event_id)
        deferred.digest.CopyFrom(self.proto.DigestWindow(
            window_id=window, recipient_id=recipient, category=self.proto.Category.Value("CATEGORY_" + category.upper()),
            channel=request.channel, flush_at_us=due_us, template="digest", template_version="1.0.0", locale=locale))
        self.publish(deferred)
        return window

    def cancel(self, key, before_us, reason="stay.cancelled"):
        deferred = self.proto.Deferred(reason="cancel", cancel_key=key)
        deferred.meta.event_id = event_id("cancel", key, uuid.uuid4().hex)
        deferred.meta.tenant = TENANT
        deferred.cancel.CopyFrom(self.proto.Cancel(cancel_key=key, before_us=before_us, reason=reason))
        self.publish(deferred)

    def say(self, recipient, **part):
        """An event on PEOPLE: say(who, preference=Preference(...))."""
        event = self.proto.PersonEvent(recipient_id=recipient, said_by="test", **part)
        event.meta.tenant = TENANT
        event.meta.event_id = event_id("person", recipient, uuid.uuid4().hex)
        event.meta.occurred_at_us = now_us()
        self.nats.publish(f"ppl.{TENANT}", event.SerializeToString(), event.meta.event_id)

    def prefer(self, recipient, frequency="daily", off=False, cleared=False, category="social", channel="email"):
        proto = self.proto
        self.say(recipient, preference=proto.Preference(
            category=proto.Category.Value("CATEGORY_" + category.upper()) if category else 0,
            channel=proto.Channel.Value("CHANNEL_" + channel.upper()) if channel else 0,
            frequency=proto.Frequency.Value("FREQUENCY_" + frequency.upper()), off=off, cleared=cleared))

    # ---- looking ----

    def since(self, stream, sequence, kind):
        """The events of a stream after `sequence`, each id once."""
        events = {}
        for at in range(sequence + 1, self.nats.stream_info(stream)["state"]["last_seq"] + 1):
            found = self.nats.message(stream, seq=at)
            if found is not None:
                event = kind.FromString(found[1])
                events.setdefault(event.meta.event_id, event)
        return list(events.values())

    def statuses(self, start=0):
        """{notification id: [(status, reason_code)]} of the events after `start`."""
        seen = {}
        for event in self.since("STATUS", start, self.proto.NotificationStatus):
            name = self.proto.Status.Name(event.status)[len("STATUS_"):].lower()
            seen.setdefault(event.meta.notification_id, []).append((name, event.reason_code))
        return seen

    def digests(self, start=0):
        """The digests' requests after `start`, each id once."""
        return [event for event in self.since("REQUEST_NORMAL", start, self.proto.NotificationRequest) if event.digest_window_id]

    def last(self, stream):
        return self.nats.stream_info(stream)["state"]["last_seq"]
