# SPDX-License-Identifier: Apache-2.0
"""Story 3, a hotel (document C): reminders around a stay, stays that move or are cancelled, a guest who is unknown, one who is forgotten."""
import uuid
from datetime import timedelta

from tests.harness.processes import wait_until
from tests.harness.stories import new_address, now, stamp, story

CONFIRMED, CANCELLED, LEFT = (f"melmastoon.reservation.{what}.v1" for what in ("confirmed", "cancelled", "checked_out"))
DAY = timedelta(days=1)


class Hotel:
    def __init__(self, user):
        self.user = user

    def guest(self, kind="guest", own=None):
        """(the hotel's own id, address, recipient)"""
        own, address = own or uuid.uuid4().hex[:12], new_address(kind)
        recipient = self.user.run("recipient", "put", "--identity", f"{kind}:{own}", "--name", "Gül Ünal", "--email", address)["id"]
        return own, address, recipient

    def tell(self, event, stay, guest="", at=None, **data):
        """A CloudEvent of the reservation service."""
        self.user.publish(event, {"specversion": "1.0", "id": uuid.uuid4().hex, "type": event, "source": "/reservations", "time": stamp(at or now()),
                                  "data": {"reservationId": stay, "guestId": guest, **data}})

    def confirm(self, stay, guest, due, at=None):
        """Of a stay that begins a day after `due`."""
        self.tell(CONFIRMED, stay, guest, at, stayStart=stamp(due + DAY))

    def reminders(self, stay):
        return self.user.waiting("--trigger", "pre-arrival", "--subject", stay)

    def waits(self, stay, due):
        """The id of the reminder that is due then."""
        return wait_until(lambda: [row["id"] for row in self.reminders(stay) if row["due_at"][:19] == stamp(due)[:19]], 20, f"the reminder of {stay}")[0]

    def ended(self, notification, why):
        row = self.user.status(notification, wait="suppressed")
        assert (row["status"], row["reason_code"]) == ("suppressed", why)


def put_triggers(user):
    user.template("pre-arrival", {"en-US": ("Your stay begins tomorrow", "Until tomorrow")}, category="reminder")
    user.template("thank-you", {"en-US": ("Thank you for your stay", "Come again")}, category="operational")
    user.pipeline.cli("trigger", "put", "pre-arrival", "--event", CONFIRMED, "--template", "pre-arrival", "--resolver", "identity:guest:guestId",
                      "--anchor", "stayStart", "--offset", -86400, "--subject-path", "reservationId", "--obsoleted-by", CANCELLED)
    user.pipeline.cli("trigger", "put", "thank-you", "--event", LEFT, "--template", "thank-you", "--resolver", "identity:guest:guestId",
                      "--anchor", "checkedOutAt", "--offset", 1)


def a_guest_who_is_unknown_is_a_dead_letter(hotel, due):
    """It is sent again once the guest is there."""
    letter = hotel.user.letter("no guest 'g-404'")
    hotel.guest(own="g-404")
    hotel.user.run("dlq", "resend", letter["sequence"])
    hotel.waits("r-unknown", due)


def a_stay_that_moves_and_is_cancelled_by_hand(hotel):
    """C74, C109, finding 9: one reminder, at the new date; an operator finds it and cancels it."""
    guest, address, _ = hotel.guest()
    first = now(days=10)
    hotel.confirm("r-moved", guest, first)
    old = hotel.waits("r-moved", first)
    hotel.confirm("r-moved", guest, first + 2 * DAY)
    new = hotel.waits("r-moved", first + 2 * DAY)
    hotel.ended(old, "rescheduled")
    assert [row["id"] for row in hotel.reminders("r-moved")] == [new]
    assert hotel.user.run("cancel", new) == {"id": new, "status": "suppressed", "reason_code": "cancelled"}
    hotel.ended(new, "cancelled")
    assert hotel.reminders("r-moved") == [] and hotel.user.mails(address) == []


def stays_that_are_cancelled(hotel):
    """C69: afterwards, and before the confirmation has arrived."""
    guest, address, _ = hotel.guest()
    hotel.confirm("r-cancelled", guest, now(days=3))
    waiting = wait_until(lambda: hotel.reminders("r-cancelled"), 20, "the reminder")[0]["id"]
    hotel.tell(CANCELLED, "r-cancelled")
    hotel.ended(waiting, "obsolete")
    hotel.tell(CANCELLED, "r-early")
    hotel.confirm("r-early", guest, now(seconds=2), at=now(minutes=-1))
    return address


def what_is_due(hotel):
    """C73: a day before the stay, and a second after it."""
    guest, address, _ = hotel.guest()
    due = now(seconds=3)
    hotel.confirm("r-due", guest, due)
    assert hotel.user.mail(address)["Subject"] == "Your stay begins tomorrow" and now() >= due
    hotel.tell(LEFT, "r-due", guest, checkedOutAt=stamp(now()))
    wait_until(lambda: [mail["Subject"] for mail in hotel.user.mails(address)][1:] == ["Thank you for your stay"], 20, "the thank-you")


def a_user_who_is_deleted(hotel):
    """C98, C99: iam.user.deleted.v1 erases; what suppresses the address stays."""
    user, (own, address, recipient) = hotel.user, hotel.guest("user")
    user.run("suppress", "add", address, "--category", "marketing")
    waiting = user.send("scheduled", recipient_id=recipient, template="thank-you", scheduled_for=stamp(now(days=2)))
    wait_until(lambda: user.waiting("--recipient", recipient), 20, "what waits")
    user.publish("iam.user.deleted.v1", {"userId": own, "email": address}, f"deleted-{own}")
    user.pipeline.cli("erase", "run")  # a timer's, every hour
    assert user.refused("recipient", "get", recipient)[0] == 3
    hotel.ended(waiting, "recipient_erased")
    erased, = user.run("erase", "list")
    assert (erased["recipient"], erased["state"]) == (recipient, "erased") and erased["keys"] > 0
    assert [entry["reason"] for entry in user.run("suppress", "list", "--address", address)] == ["manual"]


def test_a_hotel():
    with story("digest-flusher") as user:
        put_triggers(user)
        user.settle()
        hotel = Hotel(user)
        unknown = now(days=20)
        hotel.confirm("r-unknown", "g-404", unknown)
        a_stay_that_moves_and_is_cancelled_by_hand(hotel)
        cancelled = stays_that_are_cancelled(hotel)
        what_is_due(hotel)
        assert user.mails(cancelled) == [] and hotel.reminders("r-early") == []
        a_user_who_is_deleted(hotel)
        a_guest_who_is_unknown_is_a_dead_letter(hotel, unknown)
