# SPDX-License-Identifier: Apache-2.0
"""A tenant's webhooks: each status of its notifications arrives at its endpoint, signed as Standard Webhooks, checked by a package that is not
ours. `stentor-dispatcher --channels webhook` posts them, a process of its own."""
import json
import subprocess
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, SERVICES, wait_until
from tests.harness.sendgrid import body_of, event, new_signer, post
from tests.harness.vendor_doubles.chaos import Dns
from tests.harness.webhooks import Endpoint, Subscriptions, Verifier, new_secret

LADDER = "1,1"
OPTIONS = {"STENTOR_RETRY_LADDER": "1", "STENTOR_WEBHOOK_LADDER": LADDER, "STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_WEBHOOK_CALL_MS": "2500",
           "STENTOR_WEBHOOK_LEASE_MS": "4000", "STENTOR_WEBHOOK_QUEUE_MS": "3000"}
FAILED = "notification.webhook.delivery_failed.v1"


class World:
    def __init__(self, folder):
        self.dns = Dns(folder, {"mixed.vendor.test": ["127.0.0.1", "10.0.0.5"], "metadata.vendor.test": ["169.254.169.254"], "fine.vendor.test": ["127.0.0.1"]})
        self.pipeline = Pipeline({**OPTIONS, "STENTOR_WEBHOOK_DNS": self.dns.address}, ack_wait_ms=5000)
        self.pipeline.start([*SERVICES, "webhook"])
        self.verifier = Verifier()
        self.subscriptions = Subscriptions(self.pipeline)
        self.endpoints = []

    def endpoint(self, *secrets, **fields):
        """An endpoint with its subscription: (endpoint, id)."""
        endpoint = Endpoint(self.verifier)
        self.endpoints.append(endpoint)
        id = self.subscriptions.put(endpoint.url, *(secrets or [endpoint.secret]), **fields)
        return endpoint, id

    def event_of(self, type, id):
        """The last event of that type about a subscription, as a trigger of the tenant gets it."""
        found = self.subscriptions.client.message("EVENTS", last_by_subj=f"evt.acme.{type}")
        event = json.loads(found[1]) if found and found[1][:1] == b"{" else None
        return event if event and event["subscription_id"] == id else None

    def letters(self):
        return self.pipeline.cli("dlq", "list", "--stage", "webhook", "--json")

    def end(self):
        for id in list(self.subscriptions.entries):
            self.subscriptions.remove(id)
        for endpoint in self.endpoints:
            endpoint.close()
        self.endpoints.clear()


@pytest.fixture(scope="module")
def the_world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("dns"))
    yield made
    made.pipeline.stop()
    made.verifier.close()
    made.dns.stop()


@pytest.fixture
def world(the_world):
    yield the_world
    the_world.end()


def statuses(endpoint, notification):
    return [request.status for request in endpoint.of(notification)]


def arrives(endpoint, notification, *wanted, seconds=30):
    wait_until(lambda: set(wanted) <= set(statuses(endpoint, notification)), seconds, f"{wanted} at the endpoint")
    return {request.status: request for request in endpoint.of(notification)}


def test_each_status_of_a_notification_arrives_signed(world):
    endpoint, id = world.endpoint()
    notification = world.pipeline.send()
    got = arrives(endpoint, notification, "queued", "sent")
    assert endpoint.refused == []  # by the package
    sent = got["sent"]
    assert sent.event["type"] == "notification.sent" and sent.event["timestamp"].endswith("Z")
    assert sent.event["data"]["channel"] == "email" and sent.event["data"]["attempt"]["vendor"] == "smtp" and sent.event["data"]["template"] == "welcome"
    assert len(sent.body) < 20000 and "alice" not in sent.body and "address" not in sent.body
    assert sent.headers["content-type"] == "application/json" and abs(int(sent.headers["webhook-timestamp"]) - sent.at) < 10
    row = world.subscriptions.row(id, notification, event_type="notification.sent", state="delivered")
    assert (row["status_code"], row["attempt"], row["error"], row["response"], row["event_id"]) == (200, 1, None, "ok", sent.id)
    assert world.subscriptions.failures(id) == 0


def test_a_status_that_is_read_again_makes_no_second_delivery(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    notification = world.pipeline.send()
    first = arrives(endpoint, notification, "sent")["sent"]
    subject, payload = world.subscriptions.client.message("STATUS", last_by_subj="ntf.status.acme.email.sent")
    world.subscriptions.client.publish(subject, payload, event_id="another-id-of-the-copy")
    later = world.pipeline.send()
    arrives(endpoint, later, "sent")
    assert [request.id for request in endpoint.of(notification)] == [first.id]


def test_both_secrets_sign_while_one_takes_the_others_place(world):
    old, new = new_secret(), new_secret()
    endpoint, id = world.endpoint(new, old, events=["notification.sent"])
    for known in (new, old):
        endpoint.secret = known
        arrives(endpoint, world.pipeline.send(), "sent")
    assert endpoint.refused == []
    entry = world.subscriptions.get(id)
    entry.secrets[1].not_after_us = int(time.time() * 1e6) - 1
    world.subscriptions.store(entry)
    notification = world.pipeline.send()
    wait_until(lambda: endpoint.refused, 20, "a post that only the new secret signs")
    assert endpoint.of(notification) == [] and len(endpoint.refused[-1].headers["webhook-signature"].split()) == 1


def test_a_subscription_gets_what_its_filters_let_through(world):
    only_sent, _ = world.endpoint(events=["notification.sent"])
    all_of_email, _ = world.endpoint(events=["notification.*"], channels=[world.subscriptions.m.CHANNEL_EMAIL])
    sms, _ = world.endpoint(channels=[world.subscriptions.m.CHANNEL_SMS])
    marketing, _ = world.endpoint(categories=[world.subscriptions.m.CATEGORY_MARKETING])
    notification = world.pipeline.send()
    arrives(all_of_email, notification, "queued", "sent")
    arrives(only_sent, notification, "sent")
    assert statuses(only_sent, notification) == ["sent"] and sms.requests == marketing.requests == []


def test_a_filter_by_category_lets_through_what_a_vendor_reports_of_it(world, tmp_path):
    """The report itself says no category. Neither does the process need to have read the statuses before it in the same life."""
    webhook, m, sign = world.pipeline.services["webhook"], world.subscriptions.m, new_signer(world.pipeline, tmp_path)

    def report(*events):
        assert post(world.pipeline, body_of(*events), sign(body_of(*events)))[0] == 200
    every, _ = world.endpoint()
    older = world.pipeline.send()
    arrives(every, older, "queued", "sent")
    transactional, _ = world.endpoint(categories=[m.CATEGORY_TRANSACTIONAL], channels=[m.CHANNEL_EMAIL])
    marketing, _ = world.endpoint(categories=[m.CATEGORY_MARKETING])
    notification = world.pipeline.send()
    arrives(transactional, notification, "queued", "sent")
    report(event(notification, "delivered", 1), event(older, "delivered", 2))
    arrives(transactional, notification, "delivered")
    arrives(every, older, "delivered")
    assert webhook.stop() == 0
    together = world.pipeline.send()
    world.pipeline.status(together, wait="sent")
    report(event(together, "bounce", 3, type="bounce", status="5.1.1", reason="550 unknown"), event(notification, "open", 1))
    world.pipeline.status(together, wait="bounced")
    webhook.start()
    arrives(transactional, together, "queued", "sent", "bounced")
    arrives(transactional, notification, "opened")
    # Nothing said the older one's category while a filter by it was there.
    assert transactional.of(older) == [] and marketing.requests == []
    categories = world.pipeline.postgres.query("SELECT category FROM webhooks.categories WHERE notification_id = ANY(%s)", [older, notification, together])
    assert categories == [("transactional",)] * 2


def test_a_report_that_is_stored_before_its_notifications_own_statuses_passes_a_filter_by_category(world):
    """As after a failure of the stream, when either may be stored first. A subscription without the filter does not wait for it."""
    m, client = world.subscriptions.m, world.subscriptions.client
    every, _ = world.endpoint()
    transactional, _ = world.endpoint(categories=[m.CATEGORY_TRANSACTIONAL])
    arrives(transactional, world.pipeline.send(), "sent")
    status = m.NotificationStatus.FromString(client.message("STATUS", last_by_subj="ntf.status.acme.email.sent")[1])
    status.meta.notification_id = status.meta.notification_id[:-8] + "0000EARY"

    def store(id, name, category):
        status.meta.event_id, status.status, status.category = id, m.Status.Value(f"STATUS_{name.upper()}"), category
        client.publish(f"ntf.status.acme.email.{name}", status.SerializeToString(), event_id=id)
    store("aReportThatIsEarlier01", "delivered", m.CATEGORY_UNSPECIFIED)
    arrives(every, status.meta.notification_id, "delivered")
    store("theStatusThatIsLater01", "sent", m.CATEGORY_TRANSACTIONAL)
    arrives(transactional, status.meta.notification_id, "sent", "delivered")
    assert statuses(every, status.meta.notification_id) == ["delivered", "sent"]
    unknown = world.pipeline.services["webhook"].metric("stentor_webhook_uncategorised_total")
    status.meta.notification_id = "ntf_01KAGTQ5M0000000000000000A"  # a year old: its statuses do not come any more
    store("aReportOfAnOlderOne001", "opened", m.CATEGORY_UNSPECIFIED)
    arrives(every, status.meta.notification_id, "opened")
    assert world.pipeline.services["webhook"].metric("stentor_webhook_uncategorised_total") > unknown
    assert transactional.of(status.meta.notification_id) == []


def test_another_tenants_endpoint_gets_nothing(world):
    endpoint, _ = world.endpoint()
    other = Endpoint(world.verifier)
    world.endpoints.append(other)
    world.subscriptions.put(other.url, other.secret, tenant="other")
    arrives(endpoint, world.pipeline.send(), "sent")
    assert other.requests == []


def test_an_endpoint_that_fails_gets_the_event_again_under_the_same_id(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    endpoint.answers = [(500, {}), (503, {"Retry-After": "1"})]
    notification = world.pipeline.send()
    wait_until(lambda: len(endpoint.of(notification)) == 3, 30, "three posts")
    first, second, third = endpoint.of(notification)
    assert first.id == second.id == third.id and first.body == third.body
    assert int(third.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])  # signed at each attempt
    row = world.subscriptions.row(id, notification, state="delivered")
    assert (row["attempt"], row["turn"], row["error"]) == (3, 3, None)
    assert world.subscriptions.failures(id) == 0  # a success ends the row of failures


def test_retries_that_are_used_up_end_as_failed_with_an_event_and_a_dead_letter(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    endpoint.lasting = (500, {})
    notification = world.pipeline.send()
    row = world.subscriptions.row(id, notification, state="failed")
    assert (row["attempt"], row["error"], row["status_code"]) == (3, "status 500", 500)
    event = wait_until(lambda: world.event_of(FAILED, id), 20, "the event")
    assert (event["notification_id"], event["attempts"], event["status_code"], event["type"]) == (notification, 3, 500, "notification.sent")
    letter = wait_until(lambda: next((letter for letter in world.letters().splitlines() if notification in letter), None), 20, "its dead letter")
    assert "webhook.delivery_failed: 'status 500' after 3 attempts" in letter


def test_an_endpoint_that_is_gone_is_turned_off(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    endpoint.lasting = (410, {})
    notification = world.pipeline.send()
    row = world.subscriptions.row(id, notification, state="failed")
    assert (row["attempt"], row["error"]) == (1, "status 410")
    entry = wait_until(lambda: (lambda e: e if e.state == world.subscriptions.m.WEBHOOK_STATE_FAILING else None)(world.subscriptions.get(id)), 20, "the state")
    assert "410" in entry.state_reason and entry.target_url == endpoint.url and len(entry.secrets) == 1


def test_a_subscription_is_turned_off_after_its_failures_in_a_row(world):
    endpoint, id = world.endpoint(events=["notification.sent"], disable_after=20)
    endpoint.lasting = (500, {})
    for _ in range(8):  # three attempts each
        world.pipeline.send()
    entry = wait_until(lambda: (lambda e: e if e.state == world.subscriptions.m.WEBHOOK_STATE_FAILING else None)(world.subscriptions.get(id)), 60, "FAILING")
    assert "failures in a row" in entry.state_reason and world.subscriptions.failures(id) >= 20
    assert wait_until(lambda: world.event_of("notification.webhook.subscription_failing.v1", id), 20, "the event")
    posts = len(endpoint.requests)
    assert 20 <= posts <= 24
    notification = world.pipeline.send()
    witness, _ = world.endpoint(events=["notification.sent"])
    arrives(witness, world.pipeline.send(), "sent")
    assert endpoint.of(notification) == []
    assert any(line for line in world.pipeline.services["webhook"].log.read_text().splitlines() if "an endpoint fails" in line)  # at half of the way


def test_a_subscription_that_was_enabled_again_is_turned_off_only_by_as_many_failures_again(world):
    endpoint, id = world.endpoint(events=["notification.sent"], disable_after=5)
    endpoint.lasting = (500, {})
    active, failing = world.subscriptions.m.WEBHOOK_STATE_ACTIVE, world.subscriptions.m.WEBHOOK_STATE_FAILING

    def is_turned_off():
        entry = world.subscriptions.get(id)
        return entry if entry.state == failing else None
    for _ in range(2):  # three attempts each
        world.pipeline.send()
    entry = wait_until(is_turned_off, 60, "FAILING")
    wait_until(lambda: world.pipeline.postgres.query(
        "SELECT count(*) FROM webhooks.deliveries WHERE subscription_id = %s AND state = 'failed'", id) == [(2,)], 30, "the ends of both")
    entry.state, entry.state_reason, entry.state_changed_at_us = active, "", int(time.time() * 1e6)
    world.subscriptions.store(entry)
    notification = world.pipeline.send()
    assert world.subscriptions.row(id, notification, state="failed")["error"] == "status 500"  # not "disabled" after the first attempt
    assert len(endpoint.of(notification)) == 3 and world.subscriptions.failures(id) == 3
    assert world.subscriptions.get(id).state == active
    world.pipeline.send()
    wait_until(is_turned_off, 60, "FAILING again")
    assert world.subscriptions.failures(id) >= 5


def test_a_subscription_that_was_removed_or_disabled_gets_nothing_any_more(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    endpoint.lasting = (500, {})
    notification = world.pipeline.send()
    world.subscriptions.row(id, notification, state="waiting")
    entry = world.subscriptions.get(id)
    entry.state, entry.state_reason = world.subscriptions.m.WEBHOOK_STATE_DISABLED, "by its owner"
    world.subscriptions.store(entry)
    assert world.subscriptions.row(id, notification, state="failed")["error"] == "disabled"


def test_what_waits_for_its_turn_is_not_posted_any_more_once_it_was_disabled(world):
    """Decided when its turn comes, not when it began to wait: at the endpoint's pace that may be seconds later."""
    endpoint, id = world.endpoint(events=["notification.sent"], rate_per_s=1)
    notifications = [world.pipeline.send() for _ in range(6)]
    wait_until(lambda: len(endpoint.requests) >= 2, 20, "a post that waited for the one before")
    entry = world.subscriptions.get(id)
    entry.state = world.subscriptions.m.WEBHOOK_STATE_DISABLED
    world.subscriptions.store(entry)
    time.sleep(0.5)  # a post may be on its way
    posted = len(endpoint.requests)
    assert posted < len(notifications)
    ended = world.pipeline.postgres.query
    wait_until(lambda: len(ended("SELECT 1 FROM webhooks.deliveries WHERE subscription_id = %s AND state IN ('delivered', 'failed')", id)) == 6, 20, "their ends")
    assert len(endpoint.requests) == posted
    assert ended("SELECT DISTINCT error FROM webhooks.deliveries WHERE subscription_id = %s AND state = 'failed'", id) == [("disabled",)]


def test_a_redirect_is_a_failure_and_is_not_followed(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    elsewhere = Endpoint(world.verifier, endpoint.secret)
    world.endpoints.append(elsewhere)
    endpoint.answers = [(302, {"Location": elsewhere.url})]
    notification = world.pipeline.send()
    wait_until(lambda: len(endpoint.of(notification)) == 2, 20, "the second attempt, at the same endpoint")
    assert elsewhere.requests == [] and elsewhere.refused == []
    assert world.subscriptions.row(id, notification, state="delivered")["attempt"] == 2


def test_events_of_a_notification_come_one_after_the_other_and_hold_no_other(world):
    endpoint, id = world.endpoint(in_order=True)
    endpoint.answers = [(500, {})]
    held = world.pipeline.send()
    wait_until(lambda: endpoint.of(held), 20, "its first event")
    endpoint.failing[held] = 1  # it needs three attempts
    other = world.pipeline.send()
    arrives(endpoint, other, "queued", "sent")
    arrives(endpoint, held, "queued", "sent")
    assert statuses(endpoint, held) == ["queued", "queued", "queued", "sent"]
    queued, sent = endpoint.of(held)[0], endpoint.of(held)[-1]
    assert queued.event["data"]["previous_id"] is None and sent.event["data"]["previous_id"] == queued.id
    assert sent.event["data"]["sequence"] > queued.event["data"]["sequence"]


def test_events_that_are_read_together_name_the_one_before_at_their_own_subscription(world):
    webhook = world.pipeline.services["webhook"]
    assert webhook.stop() == 0
    endpoints = [world.endpoint(in_order=True, wait=False)[0] for _ in range(2)]
    notifications = [world.pipeline.send() for _ in range(3)]
    for notification in notifications:
        world.pipeline.status(notification, wait="sent")
    webhook.start()
    for endpoint in endpoints:
        for notification in notifications:
            got = arrives(endpoint, notification, "queued", "sent")
            assert got["queued"].event["data"]["previous_id"] is None and got["sent"].event["data"]["previous_id"] == got["queued"].id


def test_a_status_about_another_tenant_than_its_subjects_is_a_dead_letter(world):
    """Posted to a subscription of neither."""
    endpoint, id = world.endpoint(events=["notification.sent"])
    other = Endpoint(world.verifier)
    world.endpoints.append(other)
    other_id = world.subscriptions.put(other.url, other.secret, tenant="other", events=["notification.sent"])
    arrives(endpoint, world.pipeline.send(), "sent")
    _, payload = world.subscriptions.client.message("STATUS", last_by_subj="ntf.status.acme.email.sent")
    status = world.subscriptions.m.NotificationStatus.FromString(payload)
    status.meta.event_id, status.meta.tenant = "anotherTenantsStatus01", "other"
    world.subscriptions.client.publish("ntf.status.acme.email.sent", status.SerializeToString(), event_id="anotherTenantsStatus01")
    wait_until(lambda: "'meta.tenant' is 'other', which is not the subject's" in world.letters(), 20, "the dead letter")
    arrives(endpoint, world.pipeline.send(), "sent")
    assert world.pipeline.postgres.query("SELECT 1 FROM webhooks.deliveries WHERE event_id = 'anotherTenantsStatus01'") == []
    assert other.requests == [] and len(endpoint.requests) == 2 and other_id != id


class Refusal:
    """Postgres refuses rows of a subscription, as a constraint does that an operator added."""

    def __init__(self, world, condition, table="deliveries"):
        self.world, self.table = world, table
        world.pipeline.postgres.query(f"ALTER TABLE webhooks.{table} ADD CONSTRAINT refusal CHECK ({condition}) NOT VALID")

    def end(self):
        self.world.pipeline.postgres.query(f"ALTER TABLE webhooks.{self.table} DROP CONSTRAINT IF EXISTS refusal")


def test_a_row_in_order_that_postgres_refuses_takes_no_other_with_it(world):
    endpoint, _ = world.endpoint(in_order=True)
    refused, refused_id = world.endpoint(in_order=True, events=["notification.sent"])
    refusal = Refusal(world, f"subscription_id <> '{refused_id}'")
    try:
        for notification in [world.pipeline.send() for _ in range(3)]:
            arrives(endpoint, notification, "queued", "sent")
            wait_until(lambda one=notification: one in world.letters(), 20, "the dead letter of its status")
    finally:
        refusal.end()
    assert refused.requests == []
    assert len(endpoint.requests) == 6  # of statuses that are dead letters for the other one, too


def test_a_category_that_postgres_refuses_takes_no_other_with_it(world):
    """Its status is a dead letter, which a filter by its category lets through all the same."""
    m, webhook = world.subscriptions.m, world.pipeline.services["webhook"]
    endpoints = {"billing": world.endpoint(categories=[m.CATEGORY_BILLING])[0], "transactional": world.endpoint(categories=[m.CATEGORY_TRANSACTIONAL])[0]}
    assert webhook.stop() == 0  # so that it reads all of them together
    refusal = Refusal(world, "category <> 'billing'", "categories")
    try:
        notifications = [(world.pipeline.send(category=category), category) for category in ["billing", "transactional"] * 2]
        for notification, _ in notifications:
            world.pipeline.status(notification, wait="sent")
        webhook.start()
        for notification, category in notifications:
            arrives(endpoints[category], notification, "queued", "sent")
        wait_until(lambda: all((notification in world.letters()) == (category == "billing") for notification, category in notifications), 20, "the dead letters")
    finally:
        refusal.end()
    kept = world.pipeline.postgres.query("SELECT category FROM webhooks.categories WHERE notification_id = ANY(%s)", [one for one, _ in notifications])
    assert kept == [("transactional",)] * 2


def test_an_outcome_that_postgres_refuses_takes_no_other_with_it_and_is_kept(world):
    """Neither endpoint is called again: the one row waits, with its claim, until the table is mended."""
    endpoint, id = world.endpoint(events=["notification.sent"])
    refused, refused_id = world.endpoint(events=["notification.sent"])
    refusal = Refusal(world, f"subscription_id <> '{refused_id}' OR state <> 'delivered'")
    try:
        notifications = [world.pipeline.send() for _ in range(4)]
        for notification in notifications:
            world.subscriptions.row(id, notification, state="delivered")
            arrives(refused, notification, "sent")
        ended = "SELECT 1 FROM webhooks.deliveries WHERE subscription_id = %s AND state = 'claimed' AND lease_until < now() - interval '1 second'"
        wait_until(lambda: len(world.pipeline.postgres.query(ended, refused_id)) == 4, 30, "the time in which their claims would be taken over")
        later = world.pipeline.send()
        world.subscriptions.row(id, later, state="delivered")
    finally:
        refusal.end()
    for notification in [*notifications, later]:
        world.subscriptions.row(refused_id, notification, state="delivered")
        assert statuses(refused, notification) == ["sent"] == statuses(endpoint, notification)


def test_what_waits_for_an_earlier_event_counts_in_its_tenants_part(world):
    """A quarter of what a process has in hand, those behind the first event of their notification with it."""
    webhook = world.pipeline.services["webhook"]
    assert webhook.stop() == 0
    endpoint, id = world.endpoint(in_order=True, wait=False)
    endpoint.hang = 1
    notifications = [world.pipeline.send() for _ in range(8)]  # two statuses of each
    for notification in notifications:
        world.pipeline.status(notification, wait="sent")
    webhook.options["STENTOR_WEBHOOK_IN_FLIGHT"] = "16"
    try:
        webhook.start()
        in_hand = []
        wait_until(lambda: in_hand.append(webhook.metric("stentor_webhook_in_hand")) or len(endpoint.requests) >= 8, 60, "posts")
        assert 2 <= max(in_hand) <= 4
        endpoint.hang = 0
        for notification in notifications:
            arrives(endpoint, notification, "queued", "sent", seconds=60)
    finally:
        del webhook.options["STENTOR_WEBHOOK_IN_FLIGHT"]
        webhook.stop()
        webhook.start()


def test_an_endpoint_that_hangs_does_not_delay_another(world):
    hanging, hanging_id = world.endpoint(events=["notification.sent"])
    quick, _ = world.endpoint(events=["notification.sent"])
    hanging.hang = 6  # longer than a post may take
    for _ in range(12):
        world.pipeline.send()
    began = time.monotonic()
    for _ in range(5):
        arrives(quick, world.pipeline.send(), "sent")
    assert time.monotonic() - began < 10  # of its own: well below a second
    assert world.subscriptions.row(hanging_id, state="waiting")["error"] == "timeout"
    webhook = world.pipeline.services["webhook"]
    wait_until(lambda: webhook.metric('stentor_webhook_holds_total{reason="late"}') + webhook.metric('stentor_webhook_holds_total{reason="full"}') > 0, 30,
               "deliveries that wait elsewhere")
    hanging.hang = 0


def test_a_process_that_is_killed_leaves_no_event_undelivered(world):
    endpoint, id = world.endpoint(events=["notification.sent"])
    webhook = world.pipeline.services["webhook"]
    notifications = []
    for _ in range(3):
        notifications += [world.pipeline.send() for _ in range(10)]
        wait_until(lambda: len(endpoint.requests) >= len(notifications) - 9, 30, "some of them at the endpoint")
        webhook.kill()
        webhook.start()
    wait_until(lambda: all(endpoint.of(one) for one in notifications), 60, "all of them at the endpoint")
    wait_until(lambda: not world.pipeline.postgres.query(
        "SELECT 1 FROM webhooks.deliveries WHERE subscription_id = %s AND state <> 'delivered'", id), 60, "each recorded as delivered")
    assert all(len({request.id for request in endpoint.of(one)}) == 1 for one in notifications)  # what came twice has one id


def test_the_process_has_no_vendors_secret_and_no_data_key(world):
    """Its role of Postgres and its user of NATS reach its own work alone."""
    postgres, nats = world.pipeline.postgres, world.subscriptions.client
    for table in ("keys.data_keys", "keys.epochs", "dispatcher.ledger", "dispatcher.budget", "ingest.accept_log", "people.recipients"):
        assert postgres.query("SELECT has_table_privilege('stentor_webhook', %s, 'SELECT')", table) == [(False,)], table
    assert nats.stream_info("HOOK")["config"]["subjects"] == ["ntf.hook.*"]
    assert world.pipeline.services["webhook"].get("/readyz")[0] == 200


def test_the_option_names_the_composition(world):
    asked = subprocess.run([BIN / "stentor-dispatcher", "--channels", "webhook", "--help"], capture_output=True, text=True, timeout=20)
    usual = subprocess.run([BIN / "stentor-dispatcher", "--help"], capture_output=True, text=True, timeout=20)
    assert "--webhook-ladder" in asked.stdout and "--smtp-url" not in asked.stdout
    assert "--smtp-url" in usual.stdout and "--webhook-ladder" not in usual.stdout


@pytest.mark.parametrize("option, value, reason", [
    ("STENTOR_WEBHOOK_DNS", "no server", "DNS servers"), ("STENTOR_WEBHOOK_CA_FILE", "/nowhere/ca.pem", "'/nowhere/ca.pem'"),
    ("STENTOR_WEBHOOK_CA_FILE", __file__, "no certificates can be read")])
def test_a_wrong_option_stops_the_process_at_its_start(world, option, value, reason):
    """And not every tenant's subscription, by calls that all fail."""
    wrong = world.pipeline.service("webhook", "wrong", **{option: value}).start(wait=False)
    wait_until(lambda: not wrong.alive(), 20, "its end")
    assert option in wrong.tail() and reason in wrong.tail()


# ---- the last: the process without `loopback` takes the place of the other one ----


@pytest.fixture(scope="module")
def strict(the_world):
    """As it is installed."""
    pipeline = the_world.pipeline
    assert pipeline.services["webhook"].stop() == 0
    pipeline.services["webhook"] = pipeline.service("webhook", STENTOR_WEBHOOK_ADDRESSES="", STENTOR_WEBHOOK_LADDER="600").start()
    yield pipeline.services["webhook"]


@pytest.mark.parametrize("url", [
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "https://169.254.169.254/", "https://10.1.2.3/", "https://metadata.vendor.test/",
    "https://mixed.vendor.test:{port}/", "http://2130706433:{port}/", "https://[::ffff:127.0.0.1]:{port}/", "ftp://example.com/"])
def test_a_target_inside_is_refused_at_each_delivery(world, strict, url):
    endpoint, _ = world.endpoint(events=["notification.failed"])
    subscriptions = world.subscriptions
    id = subscriptions.put(url.format(port=endpoint.port), endpoint.secret, events=["notification.sent"])
    notification = world.pipeline.send()
    row = subscriptions.row(id, notification, state="waiting")
    assert (row["error"], row["status_code"]) == ("blocked", None)
    assert endpoint.requests == [] and endpoint.refused == []
