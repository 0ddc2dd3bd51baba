# SPDX-License-Identifier: Apache-2.0
"""The console's dead letters in a real browser: why there are some, one with its story, sent again one by one and in bulk as they were counted, dropped."""
import json
import uuid

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, REFUSED, Console
from tests.harness.length import amount
from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.operating.test_dlq import make_letter

BLOCKED = f"550 5.7.1 blocked {HOSTILE}"
MANY = amount(4_000, 100_000)


@pytest.fixture(scope="module")
def tenant(pipeline):
    """One of its own, for its letters are counted; and a fixture for the one that has too many of them."""
    name = f"dead-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", name, "--name", name, "--sender", "hello@dead.test", "--sender-name", "Dead", tenant=name)
    for kind in ("html", "text"):
        (pipeline.folder / f"dead.{kind}").write_text("Good day!")
    pipeline.cli("template", "put", "hello", "--subject", "Hello", "--html", pipeline.folder / "dead.html", "--text", pipeline.folder / "dead.text", tenant=name)
    yield name
    pipeline.cli("dlq", "drop", "--all", "--yes", tenant=name)


@pytest.fixture(scope="module")
def console(pipeline, tenant):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(tenant)


@pytest.fixture(autouse=True)
def no_letters(pipeline, tenant):
    yield
    pipeline.cli("dlq", "drop", "--all", "--yes", tenant=tenant)


def refused(pipeline, tenant, count=1):
    """Mails that the server refused for good; their ids."""
    headers = {"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": tenant}
    pipeline.mailbox.answer(BLOCKED, times=count)
    mails = [{"to": f"dead-{uuid.uuid4().hex[:6]}@example.com", "template": "hello", "variables": {}} for _ in range(count)]

    def accepted():
        status, _, body = pipeline.post(mails, headers=headers)
        return status == 202 and body
    # A moment after the tenant was put ingest may not have heard of it or of its template.
    ids = [mail["id"] for mail in wait_until(accepted, 20, "the mails being accepted")["notifications"]]
    wait_until(lambda: all(of(pipeline, tenant, each) for each in ids), 30, "the dead letters")
    return ids


def of(pipeline, tenant, notification):
    found = [letter for letter in letters(pipeline, tenant) if letter["notification_id"] == notification]
    return found and found[0]["sequence"]


def letters(pipeline, tenant):
    return [json.loads(line) for line in pipeline.cli("dlq", "list", "--json", tenant=tenant).splitlines()]


def doubtful(pipeline, tenant, notification):
    """A letter about an event that may have been sent; its sequence."""
    proto = messages(pipeline)
    bus = NatsClient(pipeline.nats.port)
    try:
        event = proto.DeadLetter.FromString(bus.message("DEAD", seq=of(pipeline, tenant, notification))[1]).payload
        return make_letter(pipeline, bus, event, f"ntf.rendered.normal.{tenant}", tenant=tenant, reason="unknown_outcome: a process ended")
    finally:
        bus.close()


def sent(pipeline, notification):
    wait_until(lambda: len(pipeline.mailbox.for_notification(notification)) == 1, 30, "the mail that was sent again")


def again(console):
    """The screen, with what is there now."""
    console.go("#/live", "Live")
    console.go("#/dead", "Dead letters")


# ---- the story ------------------------------------------------------------------------------------------------------


def test_without_letters_the_screen_says_so(console):
    again(console)
    console.find(".empty", "No stage has given anything up.")
    console.find(".empty", "There is no dead letter.")
    assert not [text for text in console.texts("button") if "Send these again" in text]
    console.sound()


def test_groups_lead_to_letters_and_a_letter_tells_its_story(console, pipeline, tenant):
    first, second = refused(pipeline, tenant, 2)
    at = doubtful(pipeline, tenant, first)
    again(console)
    console.find("[aria-label=Reasons] tbody tr", "rejected")
    assert [text.split("\n")[0].split()[0] for text in console.texts("[aria-label=Reasons] tbody tr")] == ["2", "1"], "the largest first"
    console.find("[aria-label=Reasons] tbody tr", "rejected").click()
    console.until(lambda: len(console.texts("[aria-label='Dead letters'] tbody tr")) == 2, "the two of this reason")
    assert "refused by the vendor rejected" in console.texts("[aria-label=Reasons] tbody tr")[0].replace("\n", " "), "words and the code"
    tables = console.run("return [...document.querySelectorAll('.table')].map((each) => [each.scrollWidth, each.clientWidth])")
    assert len(tables) == 2 and all(inner <= seen for inner, seen in tables), f"to the side there is nothing: {tables}"
    assert "reason=rejected" in console.run("return location.hash")
    console.find("[aria-label='Dead letters'] tbody tr", second).click()
    console.find("[aria-label='Dead letter']", "blocked")
    console.find("[aria-label=Timeline] tbody tr", "failed")
    assert "550 5.7.1" in console.find("[aria-label=Attempts] tbody tr").text
    link = console.find(f"[aria-label='Dead letter'] a[href='#/find/{second}']")
    assert link.text == second
    console.sound()
    console.driver.set_window_size(700, 900)
    assert console.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "wider than a small window"
    console.driver.set_window_size(1300, 900)
    console.button("All letters").click()
    console.until(lambda: len(console.texts("[aria-label='Dead letters'] tbody tr")) == 3, "all three")
    console.fill("Reason", "unknown_outcome")
    console.until(lambda: len(console.texts("[aria-label='Dead letters'] tbody tr")) == 1, "the doubtful one")
    console.find("[aria-label='Dead letters'] tbody tr", "may double").click()
    console.find("[aria-label='Dead letter'] h2", str(at))


def test_one_is_sent_again_and_its_story_goes_on(console, pipeline, tenant):
    one = refused(pipeline, tenant)[0]
    again(console)
    console.expected.append(REFUSED)  # the letter that is gone is a 404
    console.find("[aria-label='Dead letters'] tbody tr", one).click()
    console.button("Send again …").click()
    console.find("dialog", "cannot be taken back")
    console.sound()
    console.find("dialog button", "Send it again").click()
    console.find(".notice.good", "no dead letter any more")
    console.find("[aria-label='Dead letter'] [aria-label=Timeline] tbody tr", "sent", 20)
    sent(pipeline, one)
    console.find(".empty", "There is no dead letter.")
    console.errors()
    console.expected.remove(REFUSED)


def test_one_that_may_double_is_sent_only_with_the_word(console, pipeline, tenant):
    one = refused(pipeline, tenant)[0]
    at = doubtful(pipeline, tenant, one)
    pipeline.cli("dlq", "drop", of(pipeline, tenant, one), tenant=tenant)
    console.expected.append(REFUSED)
    again(console)
    console.go(f"#/dead/{at}", "Dead letters")
    console.button("Send again …").click()
    console.find("dialog .notice.warn", "may have been sent already")
    assert not console.find("dialog button", "Send it again").is_enabled()
    console.find("dialog label", "may have gone out").click()
    console.find("dialog button", "Send it again").click()
    console.find(".notice.good", "no dead letter any more")
    sent(pipeline, one)
    console.errors()
    console.expected.remove(REFUSED)


def test_a_bulk_resend_counts_first_and_sends_exactly_what_it_counted(console, pipeline, tenant):
    ids = refused(pipeline, tenant, 3)
    at = doubtful(pipeline, tenant, ids[0])
    pipeline.cli("dlq", "drop", of(pipeline, tenant, ids[0]), tenant=tenant)
    again(console)
    console.button("Send these again …").click()
    console.find("dialog button", "Send 2 letters again")
    assert [text.split()[-1] for text in console.texts("dialog tr")] == ["2", "1", "0"]
    console.find("dialog label", "may have gone out").click()
    console.find("dialog button", "Send 3 letters again")
    console.find("dialog label", "may have gone out").click()
    console.find("dialog button", "Send 2 letters again")
    console.sound()

    pipeline.cli("dlq", "drop", of(pipeline, tenant, ids[2]), tenant=tenant)  # another one came before
    console.expected.append(REFUSED)
    console.find("dialog button", "Send 2 letters again").click()
    console.find("dialog .notice", "Nothing was sent")
    assert not [text for text in console.texts("dialog button") if "letters again" in text], "what was counted is not offered again"
    assert len(letters(pipeline, tenant)) == 2
    console.errors()
    console.expected.remove(REFUSED)
    console.find("dialog button", "Count again").click()
    console.find("dialog button", "Send 1 letter again").click()
    console.find("dialog .notice.good", "1 letter will be sent again")
    console.find("dialog button", "Close").click()
    sent(pipeline, ids[1])
    console.until(lambda: [str(at) in text or "unknown_outcome" in text for text in console.texts("[aria-label='Dead letters'] tbody tr")] == [True],
                  "the doubtful one alone", 20)
    assert pipeline.mailbox.for_notification(ids[0]) == pipeline.mailbox.for_notification(ids[2]) == []


def test_a_dropped_one_is_asked_for_and_gone(console, pipeline, tenant):
    one = refused(pipeline, tenant)[0]
    again(console)
    console.find("[aria-label='Dead letters'] tbody tr", one).click()
    console.button("Drop …").click()
    console.find("dialog", "never be sent again")
    console.find("dialog button", "Cancel").click()
    assert of(pipeline, tenant, one)
    console.button("Drop …").click()
    console.find("dialog button", "Drop it").click()
    console.find(".notice.good", "was dropped")
    console.find(".empty", "There is no dead letter.")
    assert letters(pipeline, tenant) == [] and console.run("return location.hash").startswith("#/dead")


# ---- who, and what goes wrong ---------------------------------------------------------------------------------------


def test_a_role_that_may_read_is_offered_no_act(pipeline, tenant):
    need()
    one = refused(pipeline, tenant)[0]
    with Console(pipeline) as viewer:
        viewer.sign_in("--role", "viewer", "--tenant", tenant)
        viewer.go("#/dead", "Dead letters")
        viewer.find("[aria-label='Dead letters'] tbody tr", one).click()
        viewer.find("[aria-label=Timeline] tbody tr", "failed")
        assert not [text for text in viewer.texts("button") if "again" in text or "Drop" in text]


def test_without_the_api_the_screen_says_so_and_tries_again(console, pipeline, tenant):
    one = refused(pipeline, tenant)[0]
    with console.without("*/v1/dead-letters*"):
        again(console)
        console.alert("No connection")
        assert len(console.all("[role=alert]")) == 2, "of the groups and of the list"
    console.find("section[aria-labelledby=letters] button", "Try again").click()
    console.find("[aria-label='Dead letters'] tbody tr", one)
    console.expected.append(REFUSED)
    console.go("#/dead/999999999", "Dead letters")
    console.find("[aria-label='Dead letter']", "none of this number")
    console.errors()
    console.expected.remove(REFUSED)


def test_keys_alone_open_a_letter_and_leave_a_dialog(console, pipeline, tenant):
    first, second = sorted(refused(pipeline, tenant, 2), key=lambda each: of(pipeline, tenant, each))
    again(console)
    console.find("[aria-label='Dead letters'] tbody tr", first)
    console.run("document.querySelector('[aria-label=\"Dead letters\"] tbody tr').focus()")
    console.press("ARROW_DOWN", "ENTER")
    console.find("[aria-label='Dead letter']", second)
    console.run("[...document.querySelectorAll('button')].find((each) => each.textContent.startsWith('Drop')).focus()")
    console.press("ENTER")
    console.find("dialog", "for good")
    console.press("ESCAPE")
    console.until(lambda: not console.all("dialog"), "the dialog is closed")
    assert console.focused().text == "Drop …" and len(letters(pipeline, tenant)) == 2


# ---- a hundred thousand ---------------------------------------------------------------------------------------------


def many(pipeline, tenant):
    letter = messages(pipeline).DeadLetter(stage="renderer", reason="broken: x")
    letter.meta.tenant = tenant
    payload = letter.SerializeToString()
    subject = f"ntf.dead.renderer.{tenant}"
    bus = NatsClient(pipeline.nats.port)
    message = f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\n"
    try:
        for _ in range(MANY // 2_000):
            bus._write(message * 1_999)
            bus.publish(subject, payload)  # its ack is of all before it
    finally:
        bus.close()


def test_a_hundred_thousand_letters_are_a_scroll_away(pipeline, console):
    crowd = f"crowd-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", crowd, tenant=crowd)
    many(pipeline, crowd)
    before = console.run("return document.querySelector('#tenant').value")
    try:
        console.go("#/live", "Live")
        console.tenant(crowd)
        console.find("h1", "Live")
        took = console.run_until_shown("#/dead", "[aria-label='Dead letters'] tbody tr")
        print(f"the first letters of {MANY:,} are there after {took:.0f} ms")
        assert took < 10_000
        for _ in range(5):
            assert console.run("return document.querySelectorAll('[aria-label=\"Dead letters\"] tbody tr').length") < 150
            loaded = console.run("return document.querySelector('[aria-label=\"Dead letters\"]').scrollHeight")
            console.run("const box = document.querySelector('[aria-label=\"Dead letters\"]'); box.scrollTop = box.scrollHeight")
            console.until(lambda: console.run("return document.querySelector('[aria-label=\"Dead letters\"]').scrollHeight") > loaded, "the next page")
        console.find("[aria-label=Reasons] tbody tr", "broken", 20)  # one call reads for eight seconds at most
        grouped = int(console.texts("[aria-label=Reasons] tbody td")[0].replace(",", ""))
        assert grouped == MANY or (grouped < MANY and console.find(".notice.warn", "more letters than one call reads"))
    finally:
        console.go("#/live", "Live")
        bus = NatsClient(pipeline.nats.port)
        bus.request("$JS.API.STREAM.PURGE.DEAD", f'{{"filter": "ntf.dead.*.{crowd}"}}'.encode())
        bus.close()
        console.tenant(before)
