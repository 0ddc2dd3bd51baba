# SPDX-License-Identifier: Apache-2.0
"""D25, B19: an order by its correlation id, with how it came there and what was sent for it. Before, both routes were 404."""
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.orders import Order
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import call


class Shop:
    def __init__(self, pipeline):
        self.pipeline, self.nats = pipeline, NatsClient(pipeline.nats.port)
        self.query = pipeline.postgres.query


@pytest.fixture(scope="module")
def shop(pipeline):
    saga = pipeline.service("order-saga").start()
    shop = Shop(pipeline)
    yield shop
    shop.nats.close()
    assert saga.stop() == 0


def shown(pipeline, order_id, query="", status=200):
    got, answer = call(pipeline, "GET", f"/v1/orders/{order_id}{query}")
    assert got == status, answer
    return answer


def listed(pipeline, query=""):
    status, answer = call(pipeline, "GET", f"/v1/orders{query}")
    assert status == 200, answer
    return answer


def mail_about(pipeline, order):
    status, answer = call(pipeline, "POST", "/v1/notifications", {
        "template": "welcome", "variables": {"name": "A"}, "to": order.email, "correlation_id": order.id})
    assert status == 202, answer
    return answer["id"]


def test_an_order_is_shown_with_its_transitions_and_notifications(pipeline, shop):
    order = Order(shop).check_out()
    order.wait_state("Placed")
    mails = [mail_about(pipeline, order) for _ in range(3)]
    wait_until(lambda: len(shown(pipeline, order.id)["notifications"]["data"]) == 3, 20, "its notifications")
    order.complete().wait_state("Completed")
    answer = shown(pipeline, order.id.upper())
    assert (answer["state"], answer["total"], answer["currency"], answer["archived"]) == ("Completed", "59.90", "EUR", False)
    assert [(t["event"], t.get("from"), t["to"]) for t in answer["transitions"]] == [
        ("UserCheckedOut", None, "Placed"), ("StatusChanged", "Placed", "Completed")]
    assert [item["id"] for item in answer["notifications"]["data"]] == mails[::-1]
    assert order.email not in str(answer)
    first = shown(pipeline, order.id, "?limit=2")["notifications"]
    rest = shown(pipeline, order.id, f"?limit=2&cursor={first['next']}")["notifications"]
    assert [item["id"] for item in first["data"] + rest["data"]] == mails[::-1] and rest["next"] is None
    order.cancel().wait_inbox(3)  # contradicts it
    assert shown(pipeline, order.id)["transitions"][-1]["verdict"] == "conflict"


def test_orders_are_listed_by_state_page_by_page(pipeline, shop):
    orders = [Order(shop).check_out().wait_state("Placed").id for _ in range(3)]
    done = Order(shop).check_out().wait_state("Placed").complete().wait_state("Completed").id
    pages, cursor = [], ""
    while cursor is not None:
        answer = listed(pipeline, f"?limit=2{cursor and '&cursor=' + cursor}")
        pages += answer["data"]
        cursor = answer["next"]
    assert [order["order_id"] for order in pages if order["order_id"] in orders] == orders[::-1]
    assert done not in [order["order_id"] for order in pages]
    assert listed(pipeline, "?state=Completed&limit=1")["data"][0]["order_id"] == done
    assert listed(pipeline, "?state=Failed")["data"] == []


def test_an_order_that_there_is_not_and_a_state_that_is_none(pipeline, shop):
    shown(pipeline, uuid.uuid4(), status=404)
    shown(pipeline, "order-17", status=404)
    foreign = Order(shop, tenant=f"t{uuid.uuid4().hex[:8]}").check_out()
    wait_until(foreign.state, 30, "the other tenant's order")
    shown(pipeline, foreign.id, status=404)
    assert TENANT != foreign.tenant and foreign.id not in str(listed(pipeline, "?limit=1000"))
    status, answer = call(pipeline, "GET", "/v1/orders?state=Lost")
    assert status == 422 and answer["field"] == "state"
    status, answer = call(pipeline, "GET", "/v1/orders?customer=alice")
    assert status == 400 and answer["field"] == "customer"
