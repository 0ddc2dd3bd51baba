# SPDX-License-Identifier: Apache-2.0
"""Story 6, an order's saga (document D): tried again until it has failed, which is said; a late answer is a conflict; everything can be looked up."""
import json
import uuid

from tests.harness.processes import wait_until
from tests.harness.stories import new_address, story

OPTIONS = {"STENTOR_SAGA_RETRY_TIMEOUT_MS": "1500", "STENTOR_SAGA_SWEEP_MS": "200", "STENTOR_SAGA_SWEEP_AGE_MS": "1000"}  # D: 5 to 10 minutes


class Order:
    def __init__(self, user):
        self.user, self.id, self.correlation, self.email = user, str(uuid.uuid4()), str(uuid.uuid4()), new_address("customer")

    def check_out(self):
        self.user.publish("UserCheckedOutEvent", {
            "correlationId": self.correlation, "orderId": self.id, "basketId": str(uuid.uuid4()), "fullName": "Alice Doe", "email": self.email,
            "totalMoney": 59.90, "currency": "EUR"}, f"checkout-{self.id}")
        return self

    def becomes(self, status, **fields):
        self.user.publish("StatusChangedEvent", {"correlationId": self.correlation, "orderId": self.id, "status": status, **fields}, f"{status}-{self.id}")
        return self

    def shown(self):
        done = self.user.pipeline.run_cli("order", "show", self.id, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {"state": None}

    def wait(self, state):
        return wait_until(lambda: (lambda order: order["state"] == state and order)(self.shown()), 30, f"the order being {state}")

    def subjects(self):
        return sorted(str(mail["Subject"]).replace(self.id, "#") for mail in self.user.mails(self.email))

    def steps(self):
        return [(step["event"], step["verdict"], step.get("from"), step["to"]) for step in self.shown()["transitions"]]


def test_an_orders_saga():
    with story("digest-flusher", "order-saga", **OPTIONS) as user:
        user.example("orders/put", FAILED="yes")
        user.settle()
        completed = Order(user).check_out().becomes("Completed", carrier="DHL", trackingNumber="JD0146")
        order = Order(user).check_out()
        order.wait("Placed")
        assert completed.wait("Completed")["total"] == "59.90"

        failed = order.wait("Failed")  # D16 to D20, finding 22
        assert failed["correlation_id"] == order.correlation
        time_out = ("PlaceOrderTimeout", "applied", "Placed")
        assert order.steps() == [("UserCheckedOut", "applied", None, "Placed"), (*time_out, "Placed"), (*time_out, "Placed"), (*time_out, "Failed")]
        wait_until(lambda: order.subjects() == ["Your order #", "Your order # could not be confirmed"], 30, "the mail of OrderFailed")
        letter = user.letter(order.id)
        assert letter["stage"] == "order-saga" and "no status of the order arrived within its attempts (3)" in letter["reason"]
        assert [row["order_id"] for row in user.run("order", "list", "--state", "Failed")] == [order.id]
        assert {row["order_id"] for row in user.run("order", "list")} == {order.id, completed.id}

        order.becomes("Completed")  # D23
        conflict = wait_until(lambda: order.steps()[4:], 20, "the conflict")
        assert conflict == [("StatusChanged", "conflict", "Failed", "Failed")] and order.shown()["state"] == "Failed"
        text = user.pipeline.cli("order", "show", order.correlation)
        assert "Placed -> Failed" in text and order.email not in text
        wait_until(lambda: completed.subjects() == ["Your order #", "Your order # is on its way"], 20, "the other order's mails")
        assert len(order.subjects()) == 2, "one confirmation, though PlaceOrder went out three times"
