# SPDX-License-Identifier: Apache-2.0
"""Addresses in EVENTS: what an application, a relay, the saga or an operator publishes is nowhere readable, is handled once, and ends with its epoch."""
import base64
import json
import os
import signal
import time

import pytest

from tests.harness.holder import Holder
from tests.harness.nats_client import NatsClient
from tests.harness.orders import Shop
from tests.harness.outbox import Application, prepare
from tests.harness.pipeline import SERVICES, Pipeline
from tests.harness.processes import wait_until
from tests.integration.erasure.sealed_events import content, headers_of, is_sealed, opened
from tests.integration.erasure.test_epochs import end_keep, epochs
from tests.integration.sending.test_triggers import call_with_headers

NAME = "Zebedee Quill"
BY_RELAY, BY_APPLICATION, BY_OPERATOR, BY_SAGA, BAD, LATE = (
    f"{who}@zebedee.test" for who in ("relay", "application", "operator", "saga", "bad", "late"))
STAY = "melmastoon.reservation.confirmed.v1"  # as the hotel's document names it


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1", "STENTOR_INGEST_RESEAL_MS": "100", "STENTOR_EPOCH_SETTLE_S": "0"})
    (running.folder / "epochs").mkdir()
    running.extra["STENTOR_EPOCH_KEYS_DIR"] = running.folder / "epochs"
    running.start([*SERVICES, "order-saga"])
    prepare(running)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def shop(pipeline):
    shop = Shop(pipeline).put_mails()
    for key, path in (("stay", "address:guest.email"), ("broken", "address:guest.mail")):
        put_trigger(pipeline, key, STAY if key == "stay" else "stay.broken", path)
    yield shop
    shop.close()


def put_trigger(pipeline, key, event_type, resolver):
    body = {"event_type": event_type, "template": "welcome", "resolver": resolver, "name_path": "guest.name"}
    status, headers, answer = call_with_headers(pipeline, "PUT", f"/v1/triggers/{key}", body)
    assert status == 200, answer
    pipeline.wait_config(int(headers["ETag"].strip('"')), "ingest", "gateway")


def guest(address):
    return json.dumps({"guest": {"email": address, "name": NAME}, "name": NAME}).encode()


def stored(pipeline, stream):
    """(sequence, subject, headers, data) of each message."""
    client = NatsClient(pipeline.nats.port)
    state = client.stream_info(stream)["state"]
    try:
        for sequence in range(state["first_seq"], state["last_seq"] + 1):
            answer = json.loads(client.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"seq": sequence}).encode()))
            if "message" in answer:
                message = answer["message"]
                yield (sequence, message["subject"], headers_of(base64.b64decode(message.get("hdrs", ""))), base64.b64decode(message.get("data", "")))
    finally:
        client.close()


def mails_to(pipeline, address):
    return [mail for mail in pipeline.mailbox.mails(address) if address in str(mail["To"])]


def nothing_in_clear_waits(pipeline):
    return pipeline.postgres.query("SELECT count(*) FROM ingest.clear_events")[0][0] == 0


def cli(pipeline, *words):
    return pipeline.run_cli(*words, STENTOR_EPOCH_KEYS_DIR=str(pipeline.folder / "epochs"))


def letters(pipeline):
    rows = cli(pipeline, "dlq", "list", "--json").stdout.splitlines()
    return [json.loads(row) for row in rows]


@pytest.fixture(scope="module")
def story(pipeline, shop):
    """By every way: events of orders and of a hotel with names and addresses, some that can never succeed, one whose order is not there."""
    hotel = Application(pipeline, "hotel")
    relay = hotel.relay().start()
    pipeline.services[relay.name] = relay
    hotel.sql("INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key) VALUES ('evt-1', 'acme', %s, %s, '{}', 'r')",
              STAY, guest(BY_RELAY).decode())
    application, operator = NatsClient(pipeline.nats.port, "acme-app"), NatsClient(pipeline.nats.port, "stentor-cli")
    assert json.loads(application.request(f"evt.acme.{STAY}", guest(BY_APPLICATION), {"Nats-Msg-Id": f"for-{BY_APPLICATION}"}))["seq"]
    assert json.loads(application.request("evt.acme.stay.broken", guest(BAD)))["seq"]
    operator.publish(f"evt.acme.{STAY}", guest(BY_OPERATOR))  # without an id
    operator.publish("evt.acme.stay.broken", guest(BAD), "broken-2")
    operator.publish("evt.acme.notify", b"no command for " + BAD.encode(), "bad-command")
    operator.publish("evt.acme.UserCheckedOut", json.dumps({"orderId": "none", "email": BAD, "fullName": NAME}).encode(), "bad-order")
    order = shop.order(email=BY_SAGA)
    order.check_out(fullName=NAME)
    lost = shop.order(email=BAD).cancel(reason=f"{NAME} wrote from {LATE}")
    for address in (BY_RELAY, BY_APPLICATION, BY_OPERATOR, BY_SAGA):
        wait_until(lambda: mails_to(pipeline, address), 40, f"the mail to {address}")
    wait_until(lambda: len(letters(pipeline)) >= 4, 30, "the dead letters")
    lost.wait_inbox(1)
    wait_until(lambda: nothing_in_clear_waits(pipeline), 30, "the originals being erased")
    application.close()
    operator.close()
    return order, lost


def test_no_event_no_dead_letter_and_no_table_holds_a_readable_address(pipeline, story):
    clear, _, tried = Holder(pipeline).reads("zebedee.test", NAME)
    assert not clear and tried > 0
    events = list(stored(pipeline, "EVENTS"))
    assert sum(is_sealed(data) for *_, data in events) >= 8
    assert not any(b"zebedee" in repr((subject, headers, data)).encode().lower() for _, subject, headers, data in events)


def test_each_was_mailed_once(pipeline, story):
    assert [len(mails_to(pipeline, address)) for address in (BY_RELAY, BY_APPLICATION, BY_OPERATOR, BY_SAGA)] == [1, 1, 1, 1]


def test_what_was_sealed_is_what_was_published(pipeline, story):
    found = [opened(pipeline, subject, headers, data) for _, subject, headers, data in stored(pipeline, "EVENTS") if subject.endswith(STAY)]
    assert sorted(json.loads(data)["guest"]["email"] for _, data in found) == sorted([BY_RELAY, BY_APPLICATION, BY_OPERATOR])


def test_a_sealed_letter_is_shown_and_sent_again(pipeline, story):
    rows = [row for row in letters(pipeline) if "broken" in row["reason"]]
    assert len(rows) == 2, rows
    shown = cli(pipeline, "dlq", "show", rows[0]["sequence"], "--json")
    assert BAD in shown.stdout, shown
    blind = pipeline.run_cli("dlq", "show", str(rows[0]["sequence"]), STENTOR_MASTER_KEY_FILE="")
    assert blind.returncode == 0 and "STENTOR_MASTER_KEY_FILE opens it" in blind.stdout and BAD not in blind.stdout
    wrong = pipeline.run_cli("dlq", "show", str(rows[0]["sequence"]), STENTOR_MASTER_KEY_FILE="/nonexistent")
    assert wrong.returncode == 0 and "/nonexistent" in wrong.stdout and rows[0]["reason"][:20] in wrong.stdout
    put_trigger(pipeline, "broken", "stay.broken", "address:guest.email")
    time.sleep(0.5)
    resent = cli(pipeline, "dlq", "resend", rows[0]["sequence"])
    assert resent.returncode == 0, resent
    wait_until(lambda: mails_to(pipeline, BAD), 30, "the mail of the letter that was sent again")


def test_an_event_that_waited_for_its_order_is_applied(pipeline, story):
    _, lost = story
    (row,) = pipeline.postgres.query("SELECT event FROM order_saga.inbox_state WHERE verdict = 'unmatched'")
    assert is_sealed(bytes(row[0]))
    lost.check_out().wait_state("Cancelled")


def test_an_original_stays_until_every_reader_is_past_it(pipeline, story):
    saga, client = pipeline.services["order-saga"], NatsClient(pipeline.nats.port, "stentor-cli")
    os.kill(saga.child.pid, signal.SIGSTOP)
    try:
        sequence = json.loads(client.request(f"evt.acme.{STAY}", guest(LATE)))["seq"]
        wait_until(lambda: mails_to(pipeline, LATE), 30, "the mail")
        wait_until(lambda: any(headers.get("Stentor-Original") == str(sequence) for _, _, headers, _ in stored(pipeline, "EVENTS")), 30, "the copy")
        time.sleep(1)  # ten rounds of the work
        assert client.message("EVENTS", seq=sequence) is not None
    finally:
        os.kill(saga.child.pid, signal.SIGCONT)
    wait_until(lambda: client.message("EVENTS", seq=sequence) is None, 30, "the original being erased")
    assert len(mails_to(pipeline, LATE)) == 1
    client.close()


def test_a_tenant_may_keep_its_events_in_clear(pipeline, story):
    pipeline.cli("tenant", "put", "beta", "--name", "Beta", "--events", "clear")
    assert json.loads(pipeline.cli("tenant", "show", "beta", "--json", tenant="beta"))["events"] == "clear"
    application, admin = NatsClient(pipeline.nats.port, "beta-app"), NatsClient(pipeline.nats.port)

    def in_clear():
        sequence = json.loads(application.request("evt.beta.stay.made", b'{"n": 1}'))["seq"]
        return admin.message("EVENTS", seq=sequence)[1] == b'{"n": 1}'
    wait_until(in_clear, 20, "ingest knowing the tenant's choice")
    sequence = admin.publish("evt.beta.stay.made", b'{"n": 2}')["seq"]
    wait_until(lambda: json.loads(admin.request("$JS.API.CONSUMER.INFO.EVENTS.ingest"))["ack_floor"]["stream_seq"] >= sequence, 20, "ingest's ack")
    assert pipeline.postgres.query("SELECT count(*) FROM ingest.clear_events WHERE sequence = %s", sequence) == [(0,)]
    application.close()
    admin.close()


def test_a_tenants_event_in_clear_is_read_from_its_copy_by_a_gateway_that_comes_later(pipeline, story):
    """A gateway that has never read holds no original back, and what that said is in its copy."""
    gateway, client = pipeline.services["gateway"], NatsClient(pipeline.nats.port)
    gateway.stop()
    config = json.loads(client.request("$JS.API.CONSUMER.INFO.EVENTS.gateway"))["config"]
    client.request("$JS.API.CONSUMER.DELETE.EVENTS.gateway")
    made = json.loads(client.request("$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.gateway", json.dumps({"stream_name": "EVENTS", "config": config}).encode()))
    assert made["delivered"]["consumer_seq"] == 0, made
    sequence = client.publish("evt.platform.TenantCreated", json.dumps({"tenant_id": "later", "name": "Later Inn"}).encode(), "later")["seq"]
    wait_until(lambda: client.message("EVENTS", seq=sequence) is None, 30, "the original being erased")
    client.close()
    gateway.start()
    wait_until(lambda: pipeline.run_cli("tenant", "show", "later", "--json").returncode == 0, 30, "the tenant")


def test_an_events_keys_end_with_their_epoch(pipeline, story):
    """An erasure and two epochs later nothing of the person opens, and a dead letter says why."""
    sealed = [(subject, data) for _, subject, _, data in stored(pipeline, "EVENTS") if is_sealed(data)]
    letter = next(row["sequence"] for row in letters(pipeline) if "broken" in row["reason"])
    assert all(content(pipeline, subject, subject.split(".")[1], data) for subject, data in sealed)
    cli(pipeline, "erase", "--address", BY_RELAY, "--ground", "Art. 17 GDPR", "--requested-by", "test")
    (number,) = [number for number, row in epochs(pipeline).items() if row["state"] == "open"]
    cli(pipeline, "keys", "rotate", "--wait")
    end_keep(pipeline, number)
    assert not any(content(pipeline, subject, subject.split(".")[1], data) for subject, data in sealed)
    shown = cli(pipeline, "dlq", "show", letter)
    assert "is not in STENTOR_EPOCH_KEYS_DIR: destroyed" in shown.stdout and BAD not in shown.stdout
