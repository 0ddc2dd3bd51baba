# SPDX-License-Identifier: Apache-2.0
"""Find, in a real browser: support learns within a minute why a mail was not sent, waits or failed; the search box, the filters, the acts, what is live."""
import json
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, Console
from tests.harness.browser.crowd import plant_failed
from tests.harness.length import amount
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.operating.test_dlq import TRY_LATER, letters_of, make_letter, rendered_of
from tests.integration.recipients.test_why import around_now
from tests.integration.sending.test_triggers import call
from tests.integration.sending.test_triggers_people import new_person

LIST = "[aria-label=Notifications] tbody tr"
ATTEMPTS = 4  # the first, and three of the ladder


@pytest.fixture(scope="module")
def console(pipeline):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(TENANT)


def new_address():
    return f"{uuid.uuid4().hex}@example.com"


def send(pipeline, **fields):
    status, answer = call(pipeline, "POST", "/v1/notifications", {"template": "welcome", "variables": {"name": HOSTILE}, **fields})
    assert status == 202, answer
    return answer


def is_found(pipeline, query, notification):
    """Until the index and history have it."""
    def there():
        return any(item["id"] == notification and "status" in item for item in call(pipeline, "GET", f"/v1/notifications?{query}")[1]["data"])
    wait_until(there, 30, f"{query} finding {notification}")


def search(console, text):
    console.go("#/find", "Find")
    console.fill("Address, id", text)
    console.press("ENTER")


def answer(console, *parts):
    """The sentence on top of a notification; all parts stand in it."""
    return console.until(lambda: next((text for text in console.texts(".notification .answer") if all(part in text for part in parts)), None), f"an answer with {parts}", 20)


def opened(console, notification):
    console.go(f"#/find/{notification}", "Find")
    console.find(".notification h2", notification)


# ---- the story ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def suppressed(pipeline):
    """(address, notification): an operator has suppressed it."""
    address = new_address()
    status, entry = call(pipeline, "POST", "/v1/suppressions", {"address": address, "note": HOSTILE})
    assert status == 201, entry
    refused = wait_until(lambda: [it for it in [send(pipeline, to=address, correlation_id=HOSTILE)] if it["status"] == "suppressed"], 20, "the suppression")[0]
    return address, refused["id"]


@pytest.fixture(scope="module")
def deferred(pipeline):
    """(recipient, address, notification): quiet hours."""
    recipient, own, address = new_person(pipeline)
    status, stored = call(pipeline, "PUT", f"/v1/recipients/{recipient}", {
        "identity_type": "guest", "identity_id": own, "name": HOSTILE, "quiet_hours": around_now(), "time_zone": "UTC",
        "addresses": [{"channel": "email", "address": address, "label": HOSTILE}]})
    assert status == 200, stored
    waits = wait_until(lambda: [it for it in [send(pipeline, recipient_id=recipient)] if it["status"] == "scheduled"], 20, "the quiet hours")[0]
    return recipient, address, waits["id"]


@pytest.fixture(scope="module")
def failed(pipeline):
    """(address, notification): the mail server does not know it."""
    address = new_address()
    pipeline.mailbox.answer(f"550 5.1.1 no such user {HOSTILE}")
    notification = send(pipeline, to=address, correlation_id=f"order-{address}")["id"]
    wait_until(lambda: pipeline.history_count(f"id = '{notification}' AND status = 'failed'") == 1, 30, "it fails")
    return address, notification


def test_support_types_an_address_and_reads_why_it_was_not_sent(console, pipeline, suppressed):
    address, notification = suppressed
    is_found(pipeline, f"address={address}", notification)
    search(console, address)
    console.find(".quiet", "as address")
    console.find(LIST, "suppressed").click()
    answer(console, "It was not sent, because an operator has put the address on the suppression list. An operator can release it.")
    stopped = console.find(".why .warn", "Is the address suppressed?")
    assert "Yes" in stopped.text and "reason manual" in stopped.text
    questions = console.texts(".why .question")
    assert questions[:2] == ["Was it accepted?", "May the tenant send?"] and questions.index("Is the address suppressed?") == 2
    assert HOSTILE in console.find(".notification .facts", HOSTILE).text
    console.sound()


def test_support_reads_until_when_it_waits_and_for_what(console, pipeline, deferred):
    _, address, notification = deferred
    is_found(pipeline, f"address={address}", notification)
    search(console, address)
    console.find(LIST, "scheduled").click()
    answer(console, "It has not been sent yet, because it is night for the recipient; it goes out at")
    assert "it waits for their end" in console.find(".why .wait", "Do quiet hours hold it up?").text


def test_support_reads_what_the_mail_server_said(console, pipeline, failed):
    address, notification = failed
    is_found(pipeline, f"address={address}", notification)
    search(console, address)
    console.find(LIST, "failed").click()
    answer(console, "It did not arrive, because the mail server says that the address does not exist.", HOSTILE, "550")
    attempt = console.find(".attempts li", "rejected_terminal")
    assert "smtp" in attempt.text and "550" in attempt.text and "5.1.1" in attempt.text
    assert console.texts(".attempts pre") == [f"no such user {HOSTILE}"], "the vendor's own words"
    console.sound()


# ---- the search box -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known(pipeline):
    """A mail that was sent, by all that it can be found by."""
    recipient, _, address = new_person(pipeline)
    order, event = f"order-{uuid.uuid4().hex}", f"event-{uuid.uuid4().hex}"
    notification = send(pipeline, recipient_id=recipient, correlation_id=order, source_event_id=event)["id"]
    wait_until(lambda: pipeline.history_count(f"id = '{notification}' AND status = 'sent'") == 1, 30, "it is sent")
    message_id = pipeline.mailbox.for_notification(notification)[0]["Message-ID"]
    is_found(pipeline, f"recipient_id={recipient}", notification)
    return {"id": notification, "recipient": recipient, "address": address, "order": order, "event": event, "message": message_id}


@pytest.mark.parametrize("what, said", [
    ("recipient", "as recipient"), ("address", "as address"), ("order", "as correlation or order id"), ("event", "as source event's id"),
    ("message", "as vendor's message id")])
def test_the_box_understands_what_was_typed(console, known, what, said):
    search(console, f"  {known[what]} ")
    console.find(".quiet", said)
    console.find(LIST, known["id"])


def test_the_list_says_who_it_went_to_and_why_in_words(console, pipeline, known, suppressed):
    search(console, known["order"])
    row = console.find(LIST, known["id"])
    assert f"rcp_…{known['recipient'][-8:]}" in row.text and console.find(f"{LIST} [title='{known['recipient']}']")
    address, notification = suppressed
    is_found(pipeline, f"address={address}", notification)
    search(console, address)
    text = console.find(LIST, notification).text
    assert "an address alone" in text and "by an operator manual" in text, text


def test_the_id_of_a_notification_leads_to_it_however_it_is_typed(console, known):
    search(console, known["id"].lower())
    console.find(".notification h2", known["id"])
    assert f"#/find/{known['id']}" == console.run("return location.hash")
    assert console.find(".facts a", known["recipient"]).get_attribute("href").endswith(f"#/recipients/{known['recipient']}")
    assert console.find(".facts a", "welcome").get_attribute("href").endswith("#/templates/welcome")
    number = 0
    for sign in known["id"][4:]:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(sign)
    assert console.find("code", f"{number:032x}"), "its trace is its ULID"


def test_what_nothing_has_is_said_with_all_that_was_tried(console):
    nothing = uuid.uuid4().hex
    search(console, nothing)
    said = console.find(".empty", nothing).text
    assert all(word in said for word in ("correlation or order id", "source event's id", "vendor's message id", "template")), said
    search(console, new_address())
    console.find(".empty", "as its address")
    search(console, f"rcp_{'0' * 26}")
    console.find(".empty", "No notification fits")
    with console.refused():
        console.fill("Which is", "batch_id")
        console.alert("batch_id")  # what the API says of it


def test_an_order_leads_to_its_notifications_by_either_of_its_ids(console, pipeline):
    correlation, order = str(uuid.uuid4()), str(uuid.uuid4())
    pipeline.postgres.query(
        "INSERT INTO order_saga.order_state (tenant_id, correlation_id, order_id, current_state, currency, order_placed_date, version, person, email_hash)"
        " VALUES (%s, %s, %s, 'Placed', 'EUR', now(), 1, '', sha256(''))", TENANT, correlation, order)
    notification = send(pipeline, to=new_address(), correlation_id=correlation)["id"]
    is_found(pipeline, f"correlation_id={correlation}", notification)
    search(console, correlation)
    console.find(LIST, notification)
    search(console, order)
    console.find("button", "Look for an order with this id").click()
    console.find(LIST, notification)
    search(console, str(uuid.uuid4()))
    with console.refused():
        console.find("button", "Look for an order with this id").click()
        console.alert("no order")


def test_filters_narrow_and_the_view_has_an_address(console, pipeline, known, failed):
    console.go("#/find", "Find")
    console.find(LIST, known["id"]).click()
    console.find(".notification h2", known["id"])
    assert console.find(f"{LIST}[aria-current]", "sent"), "the list stays beside it"
    with console.refused():
        console.go("#/find/%E0%A4%A", "Find")  # a broken link
        console.alert()
    console.go("#/find", "Find")
    console.fill("Status", "failed")
    console.until(lambda: console.texts(LIST) and all("failed" in text for text in console.texts(LIST)), "failed ones alone")
    assert any(failed[1] in text for text in console.texts(LIST))
    console.fill("Template", "no-such-template")
    console.press("ENTER")
    console.find(".empty", "No notification fits")
    assert console.run("return location.hash") == "#/find?status=failed&template=no-such-template"
    console.run("location.reload()")
    console.find(".empty", "No notification fits")
    assert console.field("Status").get_property("value") == "failed"
    console.fill("Accepted", "own")
    with console.refused():
        console.run("location.hash = '#/find?when=own&from=2026-01-01T00:00&to=2026-03-01T00:00'")
        console.alert("24 hours apart")


def test_without_an_answer_it_says_so_and_goes_on_when_asked_again(console, known):
    with console.without("*/v1/notifications?*"):
        console.go("#/find?status=failed", "Find")
        console.go("#/find?status=bounced", "Find")
        console.alert("The server does not answer")
    console.button("Try again").click()
    console.find(".empty", "No notification fits")
    with console.without("*/why*"):
        opened(console, known["id"])
        console.alert("The server does not answer")
        console.find(".steps li", "sent")  # what is known without it
    console.button("Try again").click()
    answer(console, "It was handed over at")
    with console.refused():
        opened(console, f"ntf_{'0' * 26}")
        console.alert("no notification")


# ---- one notification -----------------------------------------------------------------------------------------------------


def test_the_timeline_in_short_in_full_and_as_json(console, failed):
    opened(console, failed[1])
    console.until(lambda: [text.split("\n")[0].split(" ")[1] for text in console.texts(".steps li")] == ["queued", "rendered", "failed"], "the short one")
    console.find("[role=tab]", "Compact").click()
    console.press("ARROW_RIGHT")
    console.find(".steps.full li", "attempt 1 by smtp: rejected_terminal 550")
    console.press("ARROW_RIGHT")
    steps = json.loads(console.find("pre.json").text)
    assert [step["status"] for step in steps] == ["queued", "rendered", "failed"] and steps[-1]["vendor"] == "smtp"
    console.sound()


def test_what_still_moves_is_followed(console, pipeline):
    """It is opened while it waits for its second attempt, and the page is not touched."""
    pipeline.mailbox.answer("451 4.3.0 in a moment")
    pipeline.mailbox.answer("451 4.3.0 in another moment")
    notification = send(pipeline, to=new_address())["id"]
    opened(console, notification)
    answer(console, "It was handed over at")
    assert console.find(".notification h2 .pill", "sent")
    console.until(lambda: len(console.texts(".attempts li")) == 3, "its attempts")


def test_what_waits_is_cancelled_once_it_was_asked(console, pipeline, deferred):
    later = (datetime.now(timezone.utc) + timedelta(hours=2)).isoformat()
    notification = send(pipeline, to=new_address(), scheduled_for=later)["id"]
    wait_until(lambda: any(it["id"] == notification for it in call(pipeline, "GET", "/v1/scheduled?limit=1000")[1]["data"]), 20, "it waits")
    opened(console, notification)
    console.button("Cancel it").click()
    console.find("dialog p", "it is never sent")
    console.press("ESCAPE")
    assert not console.all("dialog") and console.find("button", "Cancel it") == console.focused()
    console.press("ENTER")
    console.find("dialog button", "Cancel this one").click()
    answer(console, "It was not sent, because it was cancelled before it went out")
    assert pipeline.status(notification)["reason_code"] == "cancelled"
    assert not any("Cancel it" == text for text in console.texts("button")), "nothing is left to cancel"


@pytest.fixture(scope="module")
def exhausted(pipeline):
    """Two mails that the server did not take in all their attempts; of the second one it is said that it may have gone out."""
    pipeline.mailbox.answer(TRY_LATER, times=2 * ATTEMPTS)
    safe, doubtful = (send(pipeline, to=new_address())["id"] for _ in range(2))
    wait_until(lambda: pipeline.history_count(f"id IN ('{safe}', '{doubtful}') AND status = 'failed'") == 2, 60, "both ladders' end")
    wait_until(lambda: letters_of(pipeline, safe) and letters_of(pipeline, doubtful), 20, "the dead letters")
    bus = NatsClient(pipeline.nats.port)
    event = rendered_of(pipeline, bus, doubtful)
    pipeline.cli("dlq", "drop", letters_of(pipeline, doubtful)[0]["sequence"])
    make_letter(pipeline, bus, event, f"ntf.rendered.normal.{TENANT}", reason="unknown_outcome: a process ended")
    bus.close()
    return safe, doubtful


def test_what_failed_is_sent_again_and_seen_to_go(console, pipeline, exhausted):
    opened(console, exhausted[0])
    answer(console, "It did not arrive", "stentor dlq resend")
    console.button("Send it again").click()
    console.find("dialog p", "safe to send again")
    console.find("dialog button", "Send this one again").click()
    console.find(".notice.good", "It is being sent again")
    answer(console, "It was handed over at")
    assert len(pipeline.mailbox.for_notification(exhausted[0])) == 1


def test_what_may_double_goes_only_with_the_word(console, pipeline, exhausted):
    opened(console, exhausted[1])
    console.find(".notification h2 .pill", "failed")
    console.button("Send it again").click()
    again = console.find("dialog button", "Send this one again")
    console.find("dialog", "The recipient may get it twice")
    assert "may have been sent already" in console.texts("dialog .notice")[0] and not again.is_enabled()
    console.sound()
    console.find("dialog label", "Send it even so").click()
    console.until(lambda: console.find("dialog button", "Send this one again").is_enabled(), "it may")
    console.find("dialog button", "Send this one again").click()
    answer(console, "It was handed over at")


def test_what_is_refused_says_why(console, failed):
    opened(console, failed[1])
    answer(console, "550")
    console.button("Send it again").click()
    console.find("dialog .notice", "its address is suppressed (hard_bounce)")
    with console.refused():
        console.find("dialog button", "Send this one again").click()
        console.find("dialog [role=alert]", "not sent again")


def test_content_is_shown_once_it_is_recorded_and_can_do_nothing(console, pipeline, known):
    opened(console, known["id"])
    console.button("Show the content").click()
    console.find("dialog p", "This is recorded")
    assert not console.all("iframe")
    ticket = f"ticket {uuid.uuid4().hex[:8]}"
    console.fill("Why do you read it", ticket)
    console.find("dialog button", "Record it and show").click()
    console.find("iframe")
    shown = console.find("[aria-labelledby=content]").text
    assert HOSTILE in shown and known["address"] not in shown, "the subject; the address is masked"
    console.find("[role=tab]", "Text").click()
    console.find("[aria-labelledby=content] pre", f"Welcome, {HOSTILE}!")
    entries = [entry for entry in json.loads(pipeline.cli("audit-log", "list", "--kind", "read", "--json")) if ticket in json.dumps(entry)]
    assert len(entries) == 1 and entries[0]["actor"] == "user olga" and known["id"] in json.dumps(entries[0]), entries
    console.sound()
    console.button("Hide the content").click()
    console.until(lambda: not console.all("[aria-labelledby=content]"), "it is hidden")


def test_whether_it_would_reach_them_now(console, pipeline, deferred, suppressed):
    opened(console, deferred[2])
    console.button("Would it reach").click()
    console.find("dialog button", "Ask the gate").click()
    console.find("dialog .answer", "It would wait, because it is night for the recipient")
    console.sound()
    console.press("ESCAPE")
    opened(console, suppressed[1])
    console.button("Would it reach").click()
    console.fill("Its address", suppressed[0])  # it went to an address, which the console does not know
    console.press("ENTER")
    console.find("dialog .answer", "It would not be sent, because an operator has put the address")
    console.press("ESCAPE")


def test_a_viewer_is_offered_no_act_that_it_may_not_do(pipeline, failed, deferred, known):
    need()
    with Console(pipeline, size=(700, 900)) as viewer:
        viewer.sign_in("--role", "viewer", "--tenant", TENANT, "--name", "vic")
        for notification in (failed[1], deferred[2], known["id"]):
            opened(viewer, notification)
            answer(viewer, " ")
            viewer.find(".notification button", "Would it reach")
            assert not {"Cancel it", "Send it again", "Show the content"} & set(viewer.texts("button"))
        # Narrow: the notification has the page for itself, and leads back.
        viewer.go("#/find?status=failed", "Find")
        viewer.find(LIST, failed[1]).click()
        viewer.find(".notification h2", failed[1])
        assert viewer.texts(LIST) == [] and viewer.focused().tag_name == "h2"
        viewer.sound()
        viewer.find("a", "Back to the list").click()
        viewer.find(LIST, failed[1])


def test_by_the_keyboard_alone(console, pipeline, failed):
    console.go("#/find", "Find")
    console.find(LIST)
    console.run("document.querySelector('main').focus()")
    console.press("TAB")
    assert console.focused().get_attribute("type") == "search"
    console.press(failed[0], "ENTER")
    console.find(".quiet", "as address")
    row = console.find(LIST, "failed")
    for _ in range(12):
        if console.focused() == row:
            break
        console.press("TAB")
    console.press("END", "HOME", "ENTER")
    console.find(".notification h2", failed[1])
    answer(console, "550")
    buttons = console.texts(".notification .acts button")
    reached = []
    for _ in range(30):
        console.press("TAB")
        reached.append(console.focused().text)
    assert set(buttons) <= set(reached), reached


# ---- 100,000 --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(pipeline):
    """A tenant with 100,000 failed mails of the last hour (4,000 without --long), in history and in the index."""
    tenant = f"crowd-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", tenant)
    plant_failed(pipeline, tenant, amount(4_000, 100_000))
    return tenant


@pytest.mark.parametrize("view", ["#/find", "#/find?status=failed"])
def test_among_100_000_the_list_is_there_at_once_and_few_rows_are_drawn(pipeline, crowd, console, view):
    console.go("#/live", "Live")  # what is open is the other tenant's
    console.tenant(crowd)
    try:
        took = console.run_until_shown(view, "[aria-label=Notifications] tbody tr[data-row='19']")
        print(f"{view} is there after {took:.0f} ms")
        for _ in range(4):
            before = console.run("return Number(document.querySelector('[aria-label=Notifications] tbody tr:last-child [colspan], [aria-label=Notifications]').scrollHeight)")
            console.run("const box = document.querySelector('.table'); box.scrollTop = box.scrollHeight")
            console.until(lambda: console.run("return document.querySelector('.table').scrollHeight") > before, "a further page", 20)
        assert len(console.all(f"{LIST}[data-row]")) < 100
    finally:
        console.tenant(TENANT)
