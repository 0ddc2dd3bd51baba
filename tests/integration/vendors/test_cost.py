# SPDX-License-Identifier: Apache-2.0
"""What a message costs: by the operator's prices until the vendor says more, in its answer or in a later callback. Shown with each attempt."""
import http.client
import json

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_sms import World

LONG = "x" * 160  # with the rest of the template two segments
SINCE = ("--from", "2026-01-01T00:00:00Z")


@pytest.fixture(scope="module", name="world")
def _world():
    made = World()
    try:
        words = made.pipeline.folder / "code.txt"
        words.write_text("{{name}}, your code is 4711. {{{more}}}")
        made.cli("template", "put", "code", "--channel", "sms", "--text", words)
        made.twilio = made.vendor("twilio")
        price(made, "sms", "twilio", "--price", "0.0079", "--unit", "segment")
        price(made, "sms", "twilio", "--price", "0.09", "--unit", "segment", "--country", "+49")
        price(made, "sms", "twilio", "--price", "0.2", "--country", "+1")
        price(made, "sms", "twilio", "--price", "0.3", "--country", "+1242")
        price(made, "sms", "twilio", "--price", "0.9", "--country", "+1242", "--from", "2099-01-01T00:00:00Z")
        price(made, "sms", "vonage", "--price", "0.5")
        yield made
    finally:
        made.close()


def price(world, *words):
    since = () if "--from" in words else SINCE
    world.cli("costs", "set", *words, "--currency", "USD", *since)


def shown(world, notification):
    """The attempts of GET /v1/notifications/{id}."""
    client = http.client.HTTPConnection("127.0.0.1", world.pipeline.api_port, timeout=30)
    try:
        client.request("GET", f"/v1/notifications/{notification}", headers={"Authorization": f"Bearer {world.pipeline.key}"})
        answer = client.getresponse()
        assert answer.status == 200
        return json.loads(answer.read()).get("attempts", [])
    finally:
        client.close()


def cost(attempt):
    return {name: attempt.get(name) for name in ("segments", "cost", "currency", "cost_estimated")}


def estimate(segments, amount):
    return {"segments": segments, "cost": amount, "currency": "USD", "cost_estimated": True}


def test_an_sms_of_two_segments_costs_two_until_the_vendor_says_more(world):
    notification = world.sent(variables={"name": "Alice", "more": LONG})
    mail = world.twilio.mails[-1]
    assert [cost(one) for one in shown(world, notification)] == [estimate(2, "0.18")]
    assert "accepted, 201, 2 segments, 0.18 USD (estimated)" in " ".join(world.cli("status", notification).split())
    world.reported(world.twilio, mail, "delivered", Price="-0.1502", PriceUnit="USD", NumSegments="2")
    said = {"segments": 2, "cost": "0.1502", "currency": "USD", "cost_estimated": False}
    wait_until(lambda: [cost(one) for one in shown(world, notification)] == [said], 20, "the vendor's own price in the timeline")
    assert [cost(one) for one in world.pipeline.status(notification)["attempts"]] == [said]
    assert "0.1502 USD\n" in world.cli("status", notification), "no estimate any more"
    row = world.pipeline.postgres.query(f"SELECT outcome, code, segments, cost_micros, currency, calling_code, price_category"
                                        f" FROM archiver.delivery_attempts WHERE notification_id = '{notification}'")
    assert row == [("accepted", "201", 2, 150200, "USD", "49", None)], "of the number there is its country code"


def test_what_the_vendor_says_at_once_is_no_estimate(world):
    world.twilio.price = "-0.00750"
    try:
        notification = world.sent()
    finally:
        world.twilio.price = None
    assert [cost(one) for one in shown(world, notification)] == [{"segments": 1, "cost": "0.0075", "currency": "USD", "cost_estimated": False}]


@pytest.mark.parametrize("number, amount", [("+12425550100", "0.3"), ("+12125550100", "0.2"), ("+436641234567", "0.0079")])
def test_the_longest_beginning_of_the_number_has_the_price(world, number, amount):
    notification = world.sent(to=number)
    assert [cost(one) for one in shown(world, notification)] == [estimate(1, amount)]


def test_a_price_that_is_put_later_counts_for_what_was_sent_before_and_a_tenants_own_goes_first(world):
    notification = world.sent(to="+33612345678")
    assert cost(shown(world, notification)[0]) == estimate(1, "0.0079")
    price(world, "sms", "twilio", "--price", "0.05", "--country", "+33")
    assert cost(shown(world, notification)[0]) == estimate(1, "0.05")
    price(world, "sms", "twilio", "--price", "0.04", "--country", "+33", "--tenant", TENANT)
    assert cost(shown(world, notification)[0]) == estimate(1, "0.04")


def test_what_a_vendor_refused_costs_nothing(world):
    number = world.number()
    world.twilio.rejected.add(number)
    notification = world.accepted(to=number)
    world.pipeline.status(notification, wait="failed")
    assert [(one["outcome"], one["cost"]) for one in shown(world, notification)] == [("rejected_terminal", "0")]


def test_the_price_of_a_category_is_that_of_what_the_vendor_bills(world):
    """A function of the row and the prices alone: Meta, which bills by category, sends in channels/test_whatsapp.py."""
    for category, amount in (("*", 7000), ("marketing", 90000)):
        world.pipeline.postgres.query("INSERT INTO archive.unit_costs (channel, vendor, category, valid_from, unit, micros, currency)"
                                      f" VALUES ('whatsapp', 'meta', '{category}', '2026-01-01', 'message', {amount}, 'EUR')")

    def asked(category, channel="whatsapp"):
        return world.pipeline.postgres.query(
            f"SELECT units, cost_micros, currency, estimated FROM archive.attempt_cost('{TENANT}', '{channel}', 'meta', 'delivered', now(), 1, NULL, NULL, '49',"
            f" {category})")
    assert asked("'marketing'") == [(1, 90000, "EUR", True)]
    assert asked("'utility'") == asked("NULL") == [(1, 7000, "EUR", True)]
    assert asked("'free'")[0][1::2] == (0, False)
    assert asked("NULL", channel="sms") == [(1, None, None, None)], "there is no price"


def test_facts_have_the_cost_and_a_rebuild_agrees(world):
    # Partitions of classes hold what the tests before sent.
    facts = world.pipeline.postgres.query(
        "SELECT segments, cost_micros, currency, calling_code, cost_estimated FROM archive.delivery_attempts_facts(now() - interval '1 hour', now())"
        " WHERE units = 1 ORDER BY cost_micros")
    assert (1, 7500, "USD", "49", False) in facts and (2, 150200, "USD", "49", False) in facts and (1, 300000, "USD", "1242", True) in facts
    assert json.loads(world.pipeline.cli("rebuild", "history", "--dry-run", "--json", admin=True))["differences"] == 0


@pytest.mark.parametrize("country", ["DE", "49", "+049", "+12345", "+4x"])
def test_a_country_that_no_number_begins_with_is_refused(world, country):
    done = world.pipeline.run_cli("costs", "set", "sms", "twilio", "--price", "1", "--currency", "USD", "--country", country)
    assert done.returncode == 2 and f"--country '{country}' is not what numbers there begin with, such as +43" in done.stderr
