# SPDX-License-Identifier: Apache-2.0
"""Story 1, a bookshop (document A): the mails of its orders, the ladder of five retries, what the mail server refused for good."""
import json
import uuid

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.stories import LATER, envelope, new_address, notification_of, story, text_of

STREET = "1 High Street"
LADDER = "1,1,1,1,1"  # A: five retries, after 5 and 15 minutes, 1, 4 and 12 hours
REFUSED = "554 5.7.1 rejected by policy"
NO_SUCH_USER = "550 5.1.1 no such user"


class Order:
    """One order, as the services of the bookshop publish it."""

    def __init__(self, shop, name="alice"):
        self.shop, self.id, self.correlation, self.email = shop, str(uuid.uuid4()), str(uuid.uuid4()), new_address(name)

    def tell(self, command, **fields):
        """Twice, as a bus that delivers at least once does."""
        message = {"correlationId": self.correlation, "orderId": self.id, "fullName": "Alice Doe", "email": self.email, "currency": "EUR", **fields}
        written = envelope(command, message)
        for _ in range(2):
            self.shop.publish(command, written)
        return self

    def mail(self, subject):
        """The only mail of the order with the subject."""
        mail, = wait_until(lambda: [mail for mail in self.shop.mails(self.email) if mail["Subject"] == subject.format(self.id)], 30, subject)
        return mail


def order_mails(shop):
    """A25 to A28, A05, A84 to A86, D21, findings 10 and 15: what PlaceOrderCommand, CompleteOrderCommand and CancelOrderCommand say, once each."""
    order, other = Order(shop), Order(shop)
    order.tell("PlaceOrderCommand", totalMoney=34.9, lines=[{"name": "Dune", "quantity": 2, "price": 12.5}, {"name": "Emma", "price": 9.9}])
    placed = order.mail("Your order {}")
    order.tell("CompleteOrderCommand", carrier="DHL", trackingNumber="JD0146")
    completed = order.mail("Your order {} is on its way")
    other.tell("CancelOrderCommand", refundMoney="12.50", reason="out of stock")
    cancelled = other.mail("Your order {} is cancelled")
    for part in ("Dear Alice Doe", "of 34.90 EUR", "2 x Dune, 12.50 EUR", "1 x Emma, 9.90 EUR"):
        assert part in text_of(placed), text_of(placed)
    assert "at DHL as JD0146." in text_of(completed) and "12.50 EUR go back" in text_of(cancelled)
    for mail in (placed, completed, cancelled):
        assert STREET in text_of(mail) and STREET in mail.get_body(("html",)).get_content()
        assert mail["List-Unsubscribe"] is None, "transactional mail is exempt"
        assert "hello@acme.test" in mail["From"]
    row = shop.status(notification_of(placed), wait="sent")
    assert (row["correlation_id"], row["source_event_type"]) == (order.correlation, "PlaceOrder")
    return order, other


def the_ladder(shop):
    """A32, A33, A99: after the fifth retry it waits for manual intervention, and an operator sends it past the limit."""
    shop.pipeline.mailbox.answer(LATER, times=6)
    order = Order(shop, "ladder").tell("PlaceOrderCommand", totalMoney=1)
    letter = shop.letter("retries_exhausted")
    notification = letter["notification_id"]
    row = shop.status(notification)
    assert (row["status"], row["reason_code"]) == ("failed", "retries_exhausted")
    assert [(attempt["number"], attempt["outcome"]) for attempt in row["attempts"]] == [(number, "rejected_retryable") for number in range(1, 7)]
    assert shop.mails(order.email) == []
    shop.publish("ResendErrorEmailIntegrationEvent", envelope("ResendErrorEmailIntegrationEvent", {"notificationId": notification, "requestedBy": "ops"}))
    order.mail("Your order {}")
    row = wait_until(lambda: (lambda row: row["status"] == "sent" and row)(shop.status(notification)), 20, "the status")
    assert (row["attempts"][-1]["number"], row["attempts"][-1]["outcome"]) == (7, "accepted") and shop.letters(notification) == []
    attempts = [json.loads(line) for line in shop.pipeline.services["dispatcher"].log.read_text().splitlines() if notification in line]
    assert [(line["attempt"], line["code"]) for line in attempts if "code" in line] == [*((number, "451") for number in range(1, 7)), (7, "250")]


def what_was_refused_for_good(shop):
    """A35, finding 1: a 554 and an address that does not exist wait for manual review, and can be sent again."""
    shop.pipeline.mailbox.answer(REFUSED)
    order = Order(shop, "refused").tell("CompleteOrderCommand", carrier="DHL", trackingNumber="JD0147")
    letter = shop.letter('"rejected"')
    assert shop.status(letter["notification_id"])["status"] == "failed" and "rejected by policy" in letter["reason"]
    shop.publish("ResendErrorEmail", {"notification_id": letter["notification_id"]})
    order.mail("Your order {} is on its way")
    wait_until(lambda: shop.letters('"rejected"') == [], 20, "no letter any more")

    shop.pipeline.mailbox.answer(NO_SUCH_USER)
    order = Order(shop, "gone").tell("PlaceOrderCommand", totalMoney=1)
    letter = shop.letter("invalid_address")
    entry, = wait_until(lambda: shop.run("suppress", "list", "--address", order.email), 20, "the suppression")
    assert entry["reason"] == "hard_bounce" and entry["source_notification_id"] == letter["notification_id"]
    status, words = shop.refused("dlq", "resend", letter["sequence"])
    assert status == 1 and "stentor suppress release" in words
    shop.run("suppress", "release", entry["id"])  # the customer has corrected the mailbox
    wait_until(lambda: shop.pipeline.run_cli("dlq", "resend", letter["sequence"]).returncode == 0, 20, "its being sent again")
    order.mail("Your order {}")


def test_a_bookshop():
    with story("digest-flusher", STENTOR_RETRY_LADDER=LADDER) as shop:
        shop.pipeline.cli("tenant", "put", TENANT, "--physical-address", f"BookWorm\n{STREET}", "--address-footer", "every")
        shop.example("orders/put")
        shop.settle(lambda mail: STREET in text_of(mail))
        wait_until(shop.idle, 30, "nothing on its way that would meet another mail's refusal")
        orders = order_mails(shop)
        the_ladder(shop)
        what_was_refused_for_good(shop)
        assert [len(shop.mails(order.email)) for order in orders] == [2, 1], "the repeats made no mail"
