# SPDX-License-Identifier: Apache-2.0
"""Finding 12: an event is its tenant, type and id. One tenant's id never takes another tenant's or another type's event."""
import json
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages


@pytest.fixture(scope="module")
def pipeline():
    # What the operator publishes in clear is not stored again meanwhile: sequences are compared.
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "1,1", "STENTOR_INGEST_RESEAL_MS": "3600000"}).start()
    html = pipeline.folder / "welcome.html"
    pipeline.cli("tenant", "put", "beta", "--name", "Beta", "--sender", "hello@beta.test", "--sender-name", "Beta", tenant="beta")
    pipeline.cli("template", "put", "welcome", "--subject", "Welcome, {{name}}!", "--html", html, "--text", pipeline.folder / "welcome.txt",
                 "--require", "name:string", tenant="beta")
    pipeline.cli("trigger", "put", "paid", "--event", "paid", "--template", "welcome", "--resolver", "address:to")
    client = Application(pipeline, "acme")
    client.answer("evt.acme.paid", b'{"to":"early@example.com","name":"E"}', "ready")  # the templates and the trigger are known
    wait_until(lambda: count(pipeline, "acme") == 1, 30, "the first event's notification")
    yield pipeline
    pipeline.stop()


class Application(NatsClient):
    def __init__(self, pipeline, tenant):
        super().__init__(pipeline.nats.port, f"{tenant}-app")

    def write(self, subject, payload, event_id=None, **headers):
        """Publishes without waiting for the answer."""
        names = {**({"Nats-Msg-Id": event_id} if event_id else {}), **{name.replace("_", "-"): value for name, value in headers.items()}}
        block = b"NATS/1.0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in names.items()) + b"\r\n"
        self._write(f"HPUB {subject} {self.inbox} {len(block)} {len(block) + len(payload)}\r\n".encode() + block + payload + b"\r\n")

    def read(self):
        words = self._line().split()
        assert words[0] == b"MSG", words
        body = self.file.read(int(words[-1]))
        self.file.read(2)
        return json.loads(body)

    def answer(self, subject, payload, event_id=None, **headers):
        self.write(subject, payload, event_id, **headers)
        return self.read()


def count(pipeline, tenant):
    return pipeline.history_count(f"tenant_id = '{tenant}' AND status = 'sent'")


def stored(pipeline):
    client = NatsClient(pipeline.nats.port)
    last = client.stream_info("EVENTS")["state"]["last_seq"]
    client.close()
    return last


def command(pipeline, to):
    return messages(pipeline).NotifyCommand(to=to, template="welcome", variables_json='{"name":"N"}').SerializeToString()


def test_finding_12_one_id_of_two_tenants_and_two_types_is_three_events(pipeline):
    acme, beta = Application(pipeline, "acme"), Application(pipeline, "beta")
    paid = b'{"to":"paid@example.com","name":"P"}'
    before, mails = stored(pipeline), [count(pipeline, "acme"), count(pipeline, "beta")]
    acme.write("evt.acme.notify", command(pipeline, "a@example.com"), "order-17")
    acme.write("evt.acme.paid", paid, "order-17")
    beta.write("evt.beta.notify", command(pipeline, "b@example.com"), "order-17")
    answers = [acme.read(), acme.read(), beta.read()]
    assert sorted(answer["seq"] for answer in answers) == [before + 1, before + 2, before + 3]
    assert all(answer["stream"] == "EVENTS" and "duplicate" not in answer for answer in answers)
    wait_until(lambda: [count(pipeline, "acme"), count(pipeline, "beta")] == [mails[0] + 2, mails[1] + 1], 30, "three notifications")
    # The same event again, at once and past the stream's window, from the application and from the operator.
    assert "error" not in acme.answer("evt.acme.notify", command(pipeline, "a@example.com"), "order-17")
    acme.write("evt.acme.paid", paid, "again")
    acme.write("evt.acme.paid", paid, "again")
    first, second = acme.read(), acme.read()
    assert first["seq"] == second["seq"] and [answer.get("duplicate", False) for answer in (first, second)].count(True) == 1
    operator = NatsClient(pipeline.nats.port)
    operator.publish("evt.acme.notify", command(pipeline, "a@example.com"), "order-17")
    operator.publish("evt.acme.paid", paid, "order-17")
    operator.publish("evt.acme.paid", paid, "acme/paid/last")
    acme.answer("evt.acme.paid", paid, "last")
    wait_until(lambda: count(pipeline, "acme") == mails[0] + 4, 30, "the notifications of 'again' and 'last'")
    done = json.loads(operator.request("$JS.API.CONSUMER.INFO.EVENTS.ingest"))
    assert done["num_pending"] == 0
    assert [count(pipeline, "acme"), count(pipeline, "beta")] == [mails[0] + 4, mails[1] + 1]
    for client in (acme, beta, operator):
        client.close()


def test_an_event_without_an_id_is_the_cloud_events_own(pipeline):
    acme = Application(pipeline, "acme")
    before = count(pipeline, "acme")
    body = b'{"to":"cloud@example.com","name":"C"}'
    for _ in range(2):
        assert "error" not in acme.answer("evt.acme.paid", body, ce_specversion="1.0", ce_id="c-1", ce_source="/shop", ce_type="paid")
    assert "error" not in acme.answer("evt.acme.paid", body)  # without any: an event of its own
    wait_until(lambda: count(pipeline, "acme") == before + 2, 30, "one notification of c-1, one of the event without an id")
    acme.close()


def test_what_is_not_stored_is_answered_with_the_reason(pipeline):
    acme = Application(pipeline, "acme")
    before = stored(pipeline)
    refused = acme.answer("evt.acme.pa:id", b"{}", "x")
    assert refused["error"]["code"] == 400 and "event's type" in refused["error"]["description"]
    refused = acme.answer("evt.acme.paid", b"{}", "x", Nats_Rollup="all")
    assert refused["error"]["code"] == 400 and "Nats-Rollup" in refused["error"]["description"]
    refused = acme.answer("evt.acme.paid", b"x" * 950000, "x")
    assert refused["error"]["code"] == 400 and "at most 921600" in refused["error"]["description"]
    assert stored(pipeline) == before
    acme.close()


def test_a_full_stream_is_answered_503_and_the_repeat_is_stored(pipeline):
    admin, acme = NatsClient(pipeline.nats.port), Application(pipeline, "acme")
    config = admin.stream_info("EVENTS")["config"]
    full = {**config, "max_msgs": 1}
    assert "error" not in json.loads(admin.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(full).encode()))
    start = time.monotonic()
    refused = acme.answer("evt.acme.paid", b'{"to":"full@example.com","name":"F"}', "full-1")
    assert refused["error"]["code"] == 503 and "maximum messages exceeded" in refused["error"]["description"]
    assert time.monotonic() - start < 5  # at once, and not after the time that a publish waits for its ack
    assert "error" not in json.loads(admin.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(config).encode()))
    assert acme.answer("evt.acme.paid", b'{"to":"full@example.com","name":"F"}', "full-1")["seq"] > 0
    admin.close()
    acme.close()


def test_a_flood_of_one_application_is_stored_or_refused_but_never_unanswered(pipeline):
    acme, before = Application(pipeline, "acme"), stored(pipeline)
    for i in range(3000):
        acme.write("evt.acme.no.trigger", b"{}", f"flood-{i}")
    answers = [acme.read() for _ in range(3000)]
    taken = [answer for answer in answers if "error" not in answer]
    assert {answer["error"]["code"] for answer in answers if "error" in answer} <= {503}
    assert len({answer["seq"] for answer in taken}) == len(taken) == stored(pipeline) - before
    acme.close()


def test_a_stop_of_ingest_leaves_no_event_half_answered(pipeline):
    """What was answered is stored; what was not is repeated and is stored once."""
    ingest, acme, before = pipeline.services["ingest"], Application(pipeline, "acme"), stored(pipeline)
    for i in range(200):
        acme.write("evt.acme.no.trigger", b"{}", f"stop-{i}")
    assert ingest.stop() == 0
    ingest.start()
    answered = set()
    acme.socket.settimeout(1)
    with pytest.raises(OSError):
        while True:
            answered.add(acme.read()["seq"])
    assert len(answered) == stored(pipeline) - before
    acme.close()
