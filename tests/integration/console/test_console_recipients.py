# SPDX-License-Identifier: Apache-2.0
"""Recipients, in a real browser: found, masked, revealed on the record; preferences, consents, suppressions, and whether a notification would arrive."""
import json
import uuid

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, Console
from tests.harness.length import amount
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import call

LIST = "[aria-label=Recipients] tbody tr"


@pytest.fixture(scope="module")
def console(pipeline):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(TENANT)


def make(pipeline, **fields):
    """(rcp_ id, own id, address) of a recipient that the projection knows."""
    own, address = uuid.uuid4().hex, f"alice-{uuid.uuid4().hex}@example.com"
    status, stored = call(pipeline, "POST", "/v1/recipients", {
        "identity_type": "user", "identity_id": own, "name": f"Alice {HOSTILE}", "time_zone": "Europe/Berlin", "labels": ["vip"],
        "addresses": [{"channel": "email", "address": address, "primary": True, "label": HOSTILE}], **fields})
    assert status == 201, stored
    return stored["id"], own, address


@pytest.fixture(scope="module")
def alice(pipeline):
    """A recipient about whom everything is there."""
    recipient, own, address = make(pipeline)
    for path, body in (("preferences", [{"category": "social", "channel": "email", "frequency": "weekly", "at": "08:30", "weekday": 3}]),
                       ("consents", [{"category": "marketing", "channel": "email", "granted": True, "source": HOSTILE}])):
        status, stored = call(pipeline, "PUT", f"/v1/recipients/{recipient}/{path}", body)
        assert status == 200, stored
    status, entry = call(pipeline, "POST", "/v1/suppressions", {"address": address, "category": "billing", "note": HOSTILE})
    assert status == 201, entry
    status, sent = call(pipeline, "POST", "/v1/notifications", {"template": "welcome", "variables": {"name": "A"}, "recipient_id": recipient})
    assert status == 202, sent
    wait_until(lambda: call(pipeline, "GET", f"/v1/recipients/{recipient}/notifications")[1]["data"], 30, "the search index")
    return {"id": recipient, "own": own, "address": address, "sent": sent["id"], "suppression": entry["id"]}


def search(console, text):
    console.go("#/recipients", "Recipients")
    console.fill("Address, id", text)
    console.press("ENTER")


def opened(console, recipient):
    console.go(f"#/recipients/{recipient}", "Recipients")
    return console.find("h2", recipient)


# ---- found ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what, said", [("address", "as address"), ("own", "as own id of a user")])
def test_a_recipient_is_found_by_what_is_known_of_it_and_shown_masked(console, alice, what, said):
    search(console, f" {alice[what]} ")
    console.find(".quiet", said)
    row = console.find(LIST, alice["id"])
    assert "ali***@example.com" in row.text and alice["address"] not in row.text and "A***" in row.text
    console.sound()
    row.click()
    console.find("h2", alice["id"])


def test_its_id_leads_to_it_and_what_nothing_has_is_said(console, alice):
    search(console, alice["id"].lower())
    console.find("h2", alice["id"])
    console.go("#/recipients", "Recipients")
    console.find(".empty", "found one by one")
    nothing = uuid.uuid4().hex
    search(console, nothing)
    console.find(".empty", f"No recipient has {nothing}")
    search(console, f"{nothing}@example.com")
    console.find(".empty", "No recipient has it")
    console.sound()


def test_without_an_answer_it_says_so(console, alice):
    with console.without("*/v1/recipients/*"):
        console.go(f"#/recipients/{alice['id']}", "Recipients")
        console.alert("The server does not answer")
    console.button("Try again").click()
    console.find("h2", alice["id"])
    with console.refused():
        console.go(f"#/recipients/rcp_{'0' * 26}", "Recipients")
        console.alert("no recipient")


# ---- one of them ----------------------------------------------------------------------------------------------------------


def test_all_that_decides_what_reaches_them_is_on_one_page(console, alice):
    opened(console, alice["id"])
    console.find("[aria-label=Addresses] td", "ali***@example.com")
    console.find("[aria-label=Addresses] td", HOSTILE)
    held = console.find("[data-part=suppressions] .entry", "manual")
    assert "for billing" in held.text and HOSTILE in held.text and alice["suppression"] in held.text
    assert "weekly" in console.find("button.cell[aria-label='social by email: weekly 08:30']").text
    assert HOSTILE in console.find("[aria-label=Consents] tbody tr", "yes").text
    console.find("[data-part=notifications] tbody tr", alice["sent"])
    assert not any(alice["address"] in text for text in console.texts("main")), "masked"
    console.sound()
    console.find("[data-part=notifications] tbody tr", alice["sent"]).click()
    console.find(".notification h2", alice["sent"])


def test_name_and_addresses_are_shown_once_it_is_recorded(console, pipeline, alice):
    opened(console, alice["id"])
    console.button("Show name and addresses").click()
    console.find("dialog p", "This is recorded")
    console.press("ESCAPE")
    assert not any(alice["address"] in text for text in console.texts("main"))
    console.button("Show name and addresses").click()
    console.find("dialog button", "Record it and show").click()
    console.find("[aria-label=Addresses] td", alice["address"])
    console.find(".facts", f"Alice {HOSTILE}")
    entries = [each for each in json.loads(pipeline.cli("audit-log", "list", "--kind", "read", "--json")) if each["target"] == alice["id"]]
    assert [each["actor"] for each in entries] == ["user olga"], entries
    assert "Show name and addresses" not in console.texts("button")
    console.sound()


def test_a_preference_is_changed_by_the_keyboard_alone(console, pipeline):
    recipient, _, _ = make(pipeline)
    opened(console, recipient)
    console.find("button.cell")
    console.run("document.querySelector('button.cell').focus()")
    console.press("ARROW_DOWN", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_UP", "ARROW_LEFT")
    assert console.focused().get_attribute("aria-label") == "transactional by email: · not said"
    console.press("ENTER")
    console.find("dialog h2", "transactional by email")
    console.fill("The recipient wants it", "weekly")
    console.fill("On", "5")
    console.sound()
    console.find("dialog button", "Save").click()
    console.find("button.cell[aria-label='transactional by email: weekly 08:00']")
    kept = call(pipeline, "GET", f"/v1/recipients/{recipient}/preferences")[1]["preferences"]
    assert [(each["category"], each["channel"], each["off"], each["frequency"], each["at"], each["weekday"]) for each in kept] == \
        [("transactional", "email", False, "weekly", "08:00", 5)]
    console.find("button.cell[aria-label='transactional by email: weekly 08:00']").click()
    console.fill("The recipient wants it", "")
    console.find("dialog button", "Save").click()
    console.find("[data-part=preferences] .quiet", "has said nothing")
    assert call(pipeline, "GET", f"/v1/recipients/{recipient}/preferences")[1]["preferences"] == []


def test_a_consent_is_recorded_with_its_source(console, pipeline):
    recipient, _, _ = make(pipeline)
    opened(console, recipient)
    console.find("[data-part=consents] .empty", "None was given")
    console.button("Record a consent").click()
    assert not console.find("dialog button", "Record it").is_enabled(), "a consent has a source"
    console.fill("The recipient", "false")
    console.fill("Source", "phone, ticket 17")
    console.find("dialog button", "Record it").click()
    console.find("[aria-label=Consents] tbody tr", "no")
    consent, = call(pipeline, "GET", f"/v1/recipients/{recipient}/consents")[1]["consents"]
    assert (consent["category"], consent["channel"], consent["granted"], consent["source"]) == ("marketing", "email", False, "phone, ticket 17")


def test_it_is_asked_whether_a_notification_would_reach_them_and_a_suppression_released(console, pipeline):
    recipient, _, address = make(pipeline)
    status, entry = call(pipeline, "POST", "/v1/suppressions", {"address": address})
    assert status == 201, entry
    opened(console, recipient)
    console.find("[data-part=suppressions] .entry", entry["id"])
    console.button("Ask the gate").click()
    console.find("[data-part=reach] .answer", "It would not be sent, because an operator has put the address")
    console.sound()
    console.button("Release it").click()
    console.find("dialog p", "ali***@example.com")
    console.find("dialog button", "Release this one").click()
    console.find("[data-part=suppressions] .empty", "None")
    assert call(pipeline, "GET", f"/v1/suppressions/{entry['id']}")[1]["released_by"] == "user olga"
    console.button("Ask the gate").click()
    console.find("[data-part=reach] .answer", "It would be sent at once")
    console.fill("Category", "marketing")
    console.button("Ask the gate").click()
    console.find("[data-part=reach] .answer", "the recipient has not agreed to messages of this kind")
    with console.refused():
        console.fill("Template", "no-such-template")
        console.button("Ask the gate").click()
        console.alert("no-such-template")


def test_unsubscribed_from_everything_and_back_and_deleted(console, pipeline):
    recipient, _, _ = make(pipeline)
    opened(console, recipient)
    console.button("Unsubscribe from everything").click()
    console.find("dialog button", "Unsubscribe").click()
    console.find(".notice.warn", "Unsubscribed from everything but critical and security")
    assert "unsubscribed_at" in call(pipeline, "GET", f"/v1/recipients/{recipient}")[1]
    console.button("Subscribe again").click()
    console.find("dialog button", "Subscribe again").click()
    console.until(lambda: "Unsubscribe from everything" in console.texts("button"), "subscribed again")
    console.button("Delete").click()
    console.find("dialog .notice", "The record goes with its 1 address")
    console.press("ESCAPE")
    assert call(pipeline, "GET", f"/v1/recipients/{recipient}")[0] == 200
    console.button("Delete").click()
    console.find("dialog button", "Delete this one recipient").click()
    console.find(".notice.good", "The recipient is deleted")
    assert call(pipeline, "GET", f"/v1/recipients/{recipient}")[0] == 404


def test_what_another_changed_meanwhile_is_not_written_over(console, pipeline):
    recipient, _, _ = make(pipeline)
    opened(console, recipient)
    console.find("button.cell[aria-label='every category by every channel: · not said']").click()
    console.find("dialog h2")
    status, stored = call(pipeline, "PUT", f"/v1/recipients/{recipient}/preferences", [{"category": "social", "channel": "any", "off": True}])
    assert status == 200, stored
    console.fill("The recipient wants it", "off")
    console.find("dialog button", "Save").click()
    console.find("button.cell[aria-label='every category by every channel: off']")
    kept = call(pipeline, "GET", f"/v1/recipients/{recipient}/preferences")[1]["preferences"]
    assert {(each["category"], each["off"]) for each in kept} == {("any", True), ("social", True)}


def test_a_viewer_sees_it_masked_and_changes_nothing(pipeline, alice):
    need()
    with Console(pipeline, size=(700, 900)) as viewer:
        viewer.sign_in("--role", "viewer", "--tenant", TENANT, "--name", "vic")
        opened(viewer, alice["id"])
        viewer.find("[data-part=suppressions] .entry", "manual")
        viewer.find("[data-part=preferences] td", "weekly")
        viewer.find("[aria-label=Consents] tbody tr", "yes")
        assert not viewer.all("button.cell")
        assert not {"Show name and addresses", "Unsubscribe from everything", "Delete", "Release it", "Record a consent"} & set(viewer.texts("button"))
        viewer.sound()


# ---- 100,000 --------------------------------------------------------------------------------------------------------------


def test_among_100_000_of_one_id_few_rows_are_drawn(console, pipeline):
    """Such as what an import without ids of its own makes."""
    own = f"crowd-{uuid.uuid4().hex}"
    pipeline.postgres.query(
        "INSERT INTO people.recipients (tenant_id, recipient_id, identity_type, identity_id, updated_at, sequence)"
        " SELECT %s, 'rcp_' || lpad(n::text, 10, '0') || %s, 'guest', %s, now(), 1 FROM generate_series(1, %s) AS n",
        TENANT, uuid.uuid4().hex[:16].upper().replace("I", "0"), own, amount(4_000, 100_000))
    try:
        console.go("#/live", "Live")
        took = console.run_until_shown(f"#/recipients?as=guest&q={own}", "[aria-label=Recipients] tbody tr[data-row='19']")
        print(f"it is there after {took:.0f} ms")
        for _ in range(3):
            before = console.run("return document.querySelector('.table').scrollHeight")
            console.run("const box = document.querySelector('.table'); box.scrollTop = box.scrollHeight")
            console.until(lambda: console.run("return document.querySelector('.table').scrollHeight") > before, "a further page", 20)
        assert len(console.all(f"{LIST}[data-row]")) < 100
    finally:
        pipeline.postgres.query("DELETE FROM people.recipients WHERE tenant_id = %s AND identity_id = %s", TENANT, own)
