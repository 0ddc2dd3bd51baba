# SPDX-License-Identifier: Apache-2.0
"""Tenants: only known ones get mail, their own events make and change them, and what each field does.

The names are the documents': tenants_local (tenant_id, region, status, default_locale, default_timezone, notification_policy,
theme_etag, updated_at), tenant.created.v1, UserCheckedOut."""
import http.client
import itertools
import json
import os
import subprocess
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.orders import Order
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, SERVICES, wait_until
from tests.harness.protobuf import messages

NUMBERS = itertools.count()
WORDS = "Thank you, {{name}}"


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline({"STENTOR_SAGA_RETRY_TIMEOUT_MS": "600000"}).start([*SERVICES, "order-saga"])
    text = running.folder / "words.txt"
    text.write_text(WORDS)
    running.cli("template", "put", "thanks", "--subject", WORDS, "--text", text, tenant="platform")
    text.write_text("Order {{order_id}}")
    running.cli("template", "put", "order-placed", "--subject", "Order {{order_id}}", "--text", text, tenant="platform")
    running.cli("trigger", "put", "order-placed", "--event", "PlaceOrder", "--template", "order-placed", "--resolver", "address:email", tenant="platform")
    running.cli("trigger", "put", "stay", "--event", "stay.confirmed", "--template", "thanks", "--resolver", "address:guest.email", tenant="platform")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def nats(pipeline):
    client = NatsClient(pipeline.nats.port)
    yield client
    client.close()


@pytest.fixture
def name():
    return f"hotel-{next(NUMBERS)}"


class Publisher:
    """tenant-service: what it says of one tenant, an hour ago at the earliest."""

    def __init__(self, pipeline, nats, tenant):
        self.pipeline, self.nats, self.tenant = pipeline, nats, tenant
        self.start = datetime.now(timezone.utc) - timedelta(hours=1)

    def say(self, event, minute, event_id=None, by=None, **data):
        """by: the client of an application's account; without one straight into EVENTS, in clear."""
        at = (self.start + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
        body = {"specversion": "1.0", "id": event_id or str(uuid.uuid4()), "source": "/tenant-service", "type": event, "time": at,
                "data": {"tenant_id": self.tenant, **data}}
        (by or self.nats).publish(f"evt.platform.{event}", json.dumps(body).encode(), f"{event}-{body['id']}")
        return self

    def settings(self):
        done = self.pipeline.run_cli("tenant", "show", self.tenant, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def wait(self, **fields):
        wait_until(lambda: {key: self.settings().get(key) for key in fields} == fields, 20, f"{self.tenant} having {fields}, not {self.settings()}")
        return self.settings()


def letters(pipeline, tenant, stage=None):
    found = [json.loads(line) for line in pipeline.cli("dlq", "list", "--json", tenant=tenant).splitlines()]
    found = found[0] if found and isinstance(found[0], list) else found
    return [letter for letter in found if stage is None or letter["stage"] == stage]


def wait_letters(pipeline, tenant, count=1):
    return wait_until(lambda: (lambda found: found if len(found) == count else None)(letters(pipeline, tenant)), 30, f"{count} dead letters of {tenant}")


def request(pipeline, method, path, body, tenant):
    """With the operator's key: (status, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": tenant})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def key_of(pipeline, tenant):
    return json.loads(pipeline.cli("apikey", "create", "--name", "shop", "--json", tenant=tenant))["key"]


def post(pipeline, key, **fields):
    body = {"to": "guest@example.com", "template": "thanks", "variables": {"name": "Ann"}, **fields}
    return pipeline.post(body, headers={"Authorization": f"Bearer {key}"})


def post_known(pipeline, key, **fields):
    """ingest follows CONFIG: until it has the key, a try is 401."""
    return wait_until(lambda: (lambda answer: answer if answer[0] != 401 else None)(post(pipeline, key, **fields)), 20, "the API key reaching ingest")


def mails_to(pipeline, address):
    return pipeline.mailbox.mails(address)


# ---- only known tenants ----


def test_an_order_of_an_unknown_tenant_waits_for_the_operator(pipeline, nats, name):
    class Shop:
        pass
    shop = Shop()
    shop.nats, shop.query = nats, pipeline.postgres.query
    order = Order(shop, tenant=name).check_out()
    letter = wait_letters(pipeline, name)[0]
    assert letter["stage"] == "ingest" and f"tenant '{name}' is not known" in letter["reason"] and f"stentor tenant put {name}" in letter["reason"], letter
    assert mails_to(pipeline, order.email) == []
    pipeline.cli("tenant", "put", name, "--sender", f"hello@{name}.test")
    assert pipeline.cli("dlq", "resend", "--all", tenant=name).endswith("1 resent, 0 refused, 0 failed\n")
    mail = wait_until(lambda: mails_to(pipeline, order.email), 30, "the mail of the order")[0]
    assert order.id in mail["Subject"] and f"hello@{name}.test" in mail["From"]


def test_an_event_of_an_unknown_tenant_is_a_dead_letter_and_a_command_too(pipeline, nats, name):
    nats.publish(f"evt.{name}.stay.confirmed", json.dumps({"guest": {"email": f"{name}@example.com"}, "name": "Ann"}).encode(), "stay-1")
    command = messages(pipeline).NotifyCommand(to=f"command-{name}@example.com", template="thanks", variables_json='{"name":"Ben"}')
    nats.publish(f"evt.{name}.notify", command.SerializeToString(), "command-1")
    nats.publish(f"evt.{name}.nothing.listens", b"{}", "nothing-1")
    for letter in wait_letters(pipeline, name, 2):
        assert "is not known" in letter["reason"], letter
    pipeline.cli("tenant", "put", name)
    pipeline.cli("dlq", "resend", "--all", tenant=name)
    for address in (f"{name}@example.com", f"command-{name}@example.com"):
        wait_until(lambda: mails_to(pipeline, address), 30, f"the mail to {address}")
    assert letters(pipeline, name) == []


def test_a_tenant_that_was_put_after_its_event_needs_no_resend(pipeline, nats, name):
    """The event came first by a moment: it waits for the entry."""
    nats.publish(f"evt.{name}.stay.confirmed", json.dumps({"guest": {"email": f"{name}@example.com"}, "name": "Ann"}).encode(), "stay-1")
    entry = messages(pipeline).Tenant(tenant=name, name=name, sender_address=f"hello@{name}.test", sender_domains=[f"{name}.test"])
    nats.publish(f"cfg.tenant.{name}.self", entry.SerializeToString())
    wait_until(lambda: mails_to(pipeline, f"{name}@example.com"), 30, "the mail")
    assert letters(pipeline, name) == []


def test_over_http_the_answer_names_the_fix(pipeline, name):
    made = pipeline.run_cli("apikey", "create", "--name", "shop", "--json", tenant=name)
    assert f"stentor tenant put {name}" in made.stderr
    key = json.loads(made.stdout)["key"]
    status, _, problem = post_known(pipeline, key)
    assert status == 403 and problem["type"].endswith("tenant-unknown") and f"stentor tenant put {name}" in problem["detail"], problem
    batch = pipeline.post({"name": "b", "template": "thanks"}, path="/v1/batches", headers={"Authorization": f"Bearer {key}"})
    assert batch[0] == 403 and batch[2]["type"].endswith("tenant-unknown"), batch
    pipeline.cli("tenant", "put", name)
    wait_until(lambda: post(pipeline, key)[0] == 202, 20, "the tenant reaching ingest")


def test_an_installation_may_accept_unknown_tenants(pipeline):
    environment = {**os.environ, "STENTOR_HOME": str(HOME), "STENTOR_INGEST_UNKNOWN_TENANTS": "perhaps", "STENTOR_DATABASE_URL": pipeline.postgres.url(),
                   "STENTOR_MASTER_KEY_FILE": str(pipeline.folder / "master.key"), "STENTOR_NATS_URL": pipeline.nats.url}
    refused = subprocess.run([BIN / "stentor-ingest"], env=environment, capture_output=True, text=True, timeout=30)
    assert refused.returncode != 0 and "refuse nor accept" in refused.stderr, refused


# ---- a tenant's own events ----


def test_tenant_created_makes_a_tenant_that_gets_mail(pipeline, nats, name):
    service = Publisher(pipeline, nats, name)
    service.say("TenantCreated", 1, name="Grand Hotel", region="eu-west", default_locale="de-DE", default_timezone="Europe/Berlin", status="active",
                notification_policy={}, theme_etag="W/1")
    made = service.wait(name="Grand Hotel", region="eu-west", status="active", locale="de-DE", time_zone="Europe/Berlin")
    assert made["suspended"] is False
    nats.publish(f"evt.{name}.stay.confirmed", json.dumps({"guest": {"email": f"{name}@example.com"}, "name": "Ann"}).encode(), "stay-1")
    wait_until(lambda: mails_to(pipeline, f"{name}@example.com"), 30, "the mail of the new tenant")


@pytest.mark.parametrize("created, suspended, deleted", [
    ("TenantCreated", "TenantSuspended", "TenantDeleted"),
    ("tenant.created.v1", "tenant.suspended.v1", "tenant.deleted.v1"),
    ("TenantCreatedIntegrationEvent", "melmastoon.tenant.suspended.v1", "tenant_deleted")])
def test_events_are_read_however_their_names_are_spelled(pipeline, nats, name, created, suspended, deleted):
    service = Publisher(pipeline, nats, name)
    service.say(created, 1, name="Inn", defaultTimezone="Europe/Paris").wait(status="active", time_zone="Europe/Paris")
    service.say(suspended, 2).wait(status="suspended", suspended=True)
    service.say(deleted, 3).wait(status="deleting", suspended=True)


def test_a_sealed_event_is_read_and_its_dead_letter_is_sealed(pipeline, nats, name):
    service, application = Publisher(pipeline, nats, name), NatsClient(pipeline.nats.port, "tenant-service")
    service.say("TenantCreated", 1, by=application, name="Sealed Hotel").wait(name="Sealed Hotel", status="active")
    service.say("TenantUpdated", 2, by=application, default_timezone="Nowhere, ask mona@zebedee.test")
    application.close()

    def stored():
        last = nats.stream_info("DEAD")["state"]["last_seq"]
        found = [nats.message("DEAD", seq=sequence) for sequence in range(max(1, last - 20), last + 1)]
        return [message[1] for message in found if message and b"TenantUpdated" in message[1]]
    (letter,) = wait_until(stored, 20, "the dead letter")
    assert b"zebedee" not in letter and b"Nowhere" not in letter


def test_an_older_event_undoes_nothing_newer(pipeline, nats, name):
    service = Publisher(pipeline, nats, name)
    service.say("TenantUpdated", 5, name="New name")
    service.say("TenantSuspended", 7)
    service.wait(name="New name", status="suspended")
    service.say("TenantReactivated", 6).say("TenantCreated", 1, name="Old name", region="eu-north", status="active")
    service.wait(region="eu-north")  # which no later event has named
    assert service.settings()["name"] == "New name" and service.settings()["status"] == "suspended"
    service.say("TenantReactivated", 8).wait(status="active", name="New name")


def test_the_operators_settings_stay_where_the_event_names_others(pipeline, nats, name):
    service = Publisher(pipeline, nats, name)
    pipeline.cli("tenant", "put", name, "--sender", f"hello@{name}.test", "--limit-day", "500", "--theme", "logo=a", "--locale", "fr-FR")
    before = service.settings()
    service.say("TenantUpdated", 90, name="Inn")  # a clock half an hour ahead counts as the stream's
    after = service.wait(name="Inn")
    assert after == {**before, "name": "Inn"}
    service.say("TenantUpdated", 2, default_locale="de-DE").say("TenantUpdated", 3, region="eu")  # the first is older than the operator's put
    service.wait(region="eu")
    assert service.settings()["locale"] == "fr-FR"


def test_a_repeated_event_writes_nothing(pipeline, nats, name):
    service = Publisher(pipeline, nats, name)
    service.say("TenantCreated", 1, event_id=f"{name}-a", name="Inn").wait(name="Inn")
    stands = nats.message("CONFIG", last_by_subj=f"cfg.tenant.{name}.self")
    known = pipeline.services["gateway"].metric('stentor_gateway_tenant_events_total{result="known"}')
    service.say("TenantCreated", 1, event_id=f"{name}-b", name="Inn")
    wait_until(lambda: pipeline.services["gateway"].metric('stentor_gateway_tenant_events_total{result="known"}') > known, 20, "the repeat being read")
    assert nats.message("CONFIG", last_by_subj=f"cfg.tenant.{name}.self") == stands


@pytest.mark.parametrize("data, said", [
    ({"tenant_id": "Not An Id"}, "member 'tenant_id'"),
    ({"default_timezone": "Mars/Base"}, "field 'time_zone'"),
    ({"status": "asleep"}, "field 'status': expected active, suspended or deleting"),
    ({"notification_policy": {"channels": {"fax": False}}}, "notification_policy.channels.fax")])
def test_an_event_that_cannot_be_used_is_a_dead_letter_that_names_the_member(pipeline, nats, name, data, said):
    Publisher(pipeline, nats, name).say("TenantCreated", 1, event_id=name, **data)
    found = wait_until(lambda: [letter for letter in letters(pipeline, "platform", "gateway") if said in letter["reason"]], 20, f"a letter with {said}")
    pipeline.cli("dlq", "drop", *[str(letter["sequence"]) for letter in found], "--yes", tenant="platform")


def test_a_resent_dead_letter_has_the_time_of_its_event(pipeline, nats, name):
    """The policy was wrong for Stentor; the operator has set it by hand since, and a later event renamed the tenant."""
    service = Publisher(pipeline, nats, name)
    service.say("TenantUpdated", 3, event_id=name, name="Old", default_locale="not a locale")
    wait_until(lambda: letters(pipeline, "platform", "gateway"), 20, "the dead letter")
    service.say("TenantUpdated", 4, name="New", default_locale="en-GB").wait(name="New")
    pipeline.cli("dlq", "resend", "--all", tenant="platform")
    wait_until(lambda: not letters(pipeline, "platform", "gateway"), 20, "the letter's end")
    assert service.wait(name="New")["locale"] == "en-GB"


def test_other_tenants_cannot_make_tenants(pipeline, nats, name):
    nats.publish("evt.acme.TenantCreated", json.dumps({"tenant_id": name}).encode(), f"forged-{name}")
    service = Publisher(pipeline, nats, f"{name}-x").say("TenantCreated", 1, name="Later")
    service.wait(name="Later")
    assert pipeline.run_cli("tenant", "show", name).returncode == 3


# ---- what the fields do ----


def test_of_a_tenant_that_is_being_deleted_nothing_is_accepted_and_what_waits_is_not_sent(pipeline, nats, name):
    service = Publisher(pipeline, nats, name)
    service.say("TenantCreated", 1, name="Inn").wait(status="active")
    key = key_of(pipeline, name)
    at = (datetime.now(timezone.utc) + timedelta(seconds=4)).isoformat().replace("+00:00", "Z")
    status, _, waiting = post_known(pipeline, key, to=f"{name}@example.com", scheduled_for=at)
    assert status == 202, waiting
    batch = pipeline.post({"name": "b", "template": "thanks", "rate_per_second": 1,
                           "members": [{"to": f"m{i}-{name}@example.com", "variables": {"name": "A"}} for i in range(500)]},
                          path="/v1/batches", headers={"Authorization": f"Bearer {key}"})[2]["id"]
    assert pipeline.post(b"", path=f"/v1/batches/{batch}/start", headers={"Authorization": f"Bearer {key}"})[0] == 200
    service.say("TenantDeleted", 2).wait(status="deleting")
    refused = wait_until(lambda: (lambda answer: answer if answer[0] == 403 else None)(post(pipeline, key)), 20, "the refusal")
    assert refused[2]["type"].endswith("tenant-deleting"), refused
    row = json.loads(pipeline.cli("status", waiting["id"], "--wait", "suppressed", "--json", tenant=name))
    assert row["reason_code"] == "tenant_suspended" and mails_to(pipeline, f"{name}@example.com") == []
    end = wait_until(lambda: (lambda shown: shown if shown["status"] == "failed" else None)(
        json.loads(pipeline.cli("batch", "show", batch, "--json", tenant=name))), 30, "the end of the batch")
    assert "deleted" in end["reason"]


def test_the_policy_switches_channels_and_categories_off(pipeline, nats, name):
    service = Publisher(pipeline, nats, name)
    service.say("TenantCreated", 1, notificationPolicy={"categories": {"social": False, "billing": True}, "quiet_hours": {"start": "22:00", "end": "06:00"},
                                                         "unheard_of": 7})
    made = service.wait(notification_policy={"channels": {}, "categories": {"social": False}}, quiet_hours={"start": "22:00", "end": "06:00"})
    assert "unheard_of" not in made and "unheard_of" in pipeline.services["gateway"].tail(200)
    key = key_of(pipeline, name)
    refused = post_known(pipeline, key, category="social")[2]["id"]
    row = json.loads(pipeline.cli("status", refused, "--wait", "suppressed", "--json", tenant=name))
    assert row["reason_code"] == "tenant_policy"
    pipeline.cli("status", post(pipeline, key, category="billing")[2]["id"], "--wait", "sent", tenant=name)
    pipeline.cli("tenant", "put", name, "--category", "social", "--no-channel", "email")
    assert service.settings()["notification_policy"] == {"channels": {"email": False}, "categories": {}}
    own = pipeline.run_cli("tenant", "put", name, "--channel", "email", key=key)
    assert own.returncode != 0 and "notification_policy" in own.stderr  # the operator's


def test_a_limit_may_name_a_channel(pipeline, name):
    pipeline.cli("tenant", "put", name, "--limit-day", "email=2", "--limit-day", "10", "--recipient-limit-day", "email=1", "--over-limit", "suppress")
    shown = json.loads(pipeline.cli("tenant", "show", name, "--json"))
    assert shown["limits"] == {"per_minute": 0, "per_day": 10, "channels": {"email": {"per_minute": 0, "per_day": 2}}}
    assert shown["recipient_limits"]["channels"] == {"email": {"per_minute": 0, "per_day": 1}}
    key = key_of(pipeline, name)
    ids = [post_known(pipeline, key, to=f"{to}-{name}@example.com")[2]["id"] for to in ("a", "a", "b", "c")]
    ends = [json.loads(pipeline.cli("status", one, "--wait", "sent", "--json", tenant=name)) for one in ids]
    assert [end["status"] for end in ends] == ["sent", "suppressed", "suppressed", "suppressed"], ends
    assert {end["reason_code"] for end in ends[1:]} == {"rate_limit"}
    wrong = pipeline.run_cli("tenant", "put", name, "--limit-day", "fax=2")
    assert wrong.returncode == 2 and "CHANNEL=N" in wrong.stderr


# ---- the list ----


def test_the_operator_lists_tenants(pipeline, nats):
    for number, status in enumerate(["active", "suspended", "deleting"]):
        pipeline.cli("tenant", "put", f"zz-list-{number}", "--name", f"List {number}", "--region", "eu", "--status", status)
    rows = json.loads(pipeline.cli("tenant", "list", "--json"))
    mine = [(row["tenant"], row["name"], row["status"], row["region"]) for row in rows if row["tenant"].startswith("zz-list-")]
    assert mine == [("zz-list-0", "List 0", "active", "eu"), ("zz-list-1", "List 1", "suspended", "eu"), ("zz-list-2", "List 2", "deleting", "eu")]
    assert [row["tenant"] for row in rows] == sorted(row["tenant"] for row in rows) and "acme" in [row["tenant"] for row in rows]
    page = pipeline.cli("tenant", "list", "--status", "deleting")
    assert "zz-list-2" in page and "zz-list-0" not in page and page.startswith("TENANT")
    refused = pipeline.run_cli("tenant", "list", key=pipeline.key)
    assert refused.returncode == 1 and "tenants:operate" in refused.stderr  # an operator's key alone
    assert pipeline.run_cli("tenant", "list", "--status", "asleep").returncode == 2


def test_status_and_suspended_say_the_same(pipeline, name):
    pipeline.cli("tenant", "put", name, "--status", "deleting")
    assert json.loads(pipeline.cli("tenant", "show", name, "--json"))["suspended"] is True
    pipeline.cli("tenant", "put", name, "--no-suspended")
    assert json.loads(pipeline.cli("tenant", "show", name, "--json"))["status"] == "active"
    for change, status in (({"suspended": True}, "suspended"), ({"status": "deleting"}, "deleting"), ({"suspended": False}, "active")):
        shown = json.loads(pipeline.cli("tenant", "show", name, "--json"))
        answer = request(pipeline, "PUT", "/v1/tenant", {**shown, **change}, name)  # what a GET showed, with one of them changed
        assert answer[0] == 200 and answer[1]["status"] == status, answer
    assert request(pipeline, "PUT", "/v1/tenant", {"status": "deleting", "suspended": False}, f"{name}-new")[0] == 422
    both = pipeline.run_cli("tenant", "put", name, "--no-suspended", "--status", "suspended")
    assert both.returncode == 2 and "exclude each other" in both.stderr
