# SPDX-License-Identifier: Apache-2.0
"""The console's suppression list in a real browser: who is on it and why, one added, one released."""
import http.client
import json
import uuid

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, Console
from tests.harness.processes import wait_until

LIST = "[aria-label=Suppressions] tbody tr"


@pytest.fixture(scope="module")
def tenant(pipeline):
    """One of its own, whose list is empty at first."""
    name = f"sup-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", name, "--name", name, "--sender", "hello@sup.test", "--sender-name", "Sup", tenant=name)
    return name


@pytest.fixture(scope="module")
def console(pipeline, tenant):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(tenant)


def api(pipeline, tenant, method, path, body=None, key=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    connection.request(method, path, None if body is None else json.dumps(body),
                       {"Authorization": f"Bearer {key or pipeline.operator_key}", **({} if key else {"Stentor-Tenant": tenant})})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read() or b"null")


def made(pipeline, tenant, **fields):
    address = fields.pop("address", f"sup-{uuid.uuid4().hex[:8]}@example.com")
    status, entry = api(pipeline, tenant, "POST", "/v1/suppressions", {"address": address, **fields})
    assert status == 201, entry
    return address, entry


def test_an_empty_list_says_so_and_one_that_does_not_come_too(console):
    console.go("#/suppressions", "Suppressions")
    console.find(".empty", "No address is on the tenant’s own list.")
    console.sound()
    with console.without("*/v1/suppressions*"):
        console.go("#/live", "Live")
        console.go("#/suppressions", "Suppressions")
        console.alert("No connection")
        console.sound()
        console.go("#/live", "Live")
    console.go("#/suppressions", "Suppressions")
    console.find(".empty", "No address is on")


def test_one_is_added_seen_masked_and_released_by_keys_alone(console, pipeline, tenant):
    address = f"dora-{uuid.uuid4().hex[:8]}@example.com"
    console.go("#/suppressions", "Suppressions")
    console.button("Suppress an address …").send_keys("\n")
    console.find("dialog h2", "Suppress an address")
    assert not console.button("Suppress it").is_enabled(), "of no address"
    console.sound()
    console.find("dialog input").send_keys(address)
    console.field("Note").send_keys(HOSTILE)
    console.button("Suppress it").send_keys("\n")
    console.find(".notice.good", "Suppressed: dor***@example.com (email).")
    row = console.find(LIST, "dor***@example.com")
    assert "by an operator manual" in row.text.replace("\n", " ") and "in force" in row.text and "user olga" in row.text and HOSTILE[:20] in row.text and address not in row.text
    stored = api(pipeline, tenant, "GET", "/v1/suppressions")[1]["data"]
    assert [(each["reason"], each["category"], each["note"]) for each in stored] == [("manual", None, HOSTILE)]
    console.sound()
    console.run("arguments[0].focus()", row)
    console.press("ENTER")
    panel = console.find("section[aria-label=Suppression]", stored[0]["id"])
    assert address not in panel.text and "user olga" in panel.text and HOSTILE in panel.text
    console.sound()
    console.button("Release it …").send_keys("\n")
    console.find("dialog h2", "Release this suppression?")
    console.press("ESCAPE")
    console.until(lambda: not console.all("dialog"), "the dialog's end")
    console.button("Release it …").send_keys("\n")
    console.button("Release this one").send_keys("\n")
    console.find("section[aria-label=Suppression]", "Released by")
    assert api(pipeline, tenant, "GET", f"/v1/suppressions/{stored[0]['id']}")[1]["released_by"] == "user olga"
    console.find(".empty", "No address is on")
    assert not [text for text in console.texts("button") if "Release it" in text]
    console.button("Close").click()
    console.fill("State", "all")
    console.find(LIST, "released")


def test_what_the_api_refuses_stands_at_its_field_and_nothing_is_lost(console):
    console.go("#/suppressions", "Suppressions")
    with console.refused():
        console.button("Suppress an address …").click()
        console.find("dialog input").send_keys("no address")
        console.button("Suppress it").click()
        console.find("dialog .wrong")
        assert console.run("return document.querySelector('dialog input').value") == "no address"
        console.sound()
        console.press("ESCAPE")


def test_filters_narrow_the_list_and_keys_have_names(console, pipeline, tenant):
    key = json.loads(pipeline.cli("apikey", "create", "--name", f"shop {HOSTILE[:20]}", "--json", tenant=tenant))
    wait_until(lambda: api(pipeline, tenant, "GET", "/v1/me", key=key["key"])[0] == 200, 20, "the key")
    address, one = made(pipeline, tenant, reason="hard_bounce")
    status, other = api(pipeline, tenant, "POST", "/v1/suppressions", {"address": "+491701234567", "channel": "sms", "reason": "opt_out"}, key["key"])
    assert status == 201, other
    console.go("#/live", "Live")
    console.run("location.reload()")  # keys are read once a session
    console.go("#/suppressions", "Suppressions")
    row = console.find(LIST, "recipient opted out opt_out")
    named = console.until(lambda: HOSTILE[:20] in console.find(LIST, "opt_out").text and console.find(LIST, "opt_out").text, "the key's name")
    assert key["key_id"] in named and row
    console.fill("Channel", "email")
    console.until(lambda: len(console.texts(LIST)) == 1, "one of them")
    assert "no such mailbox hard_bounce" in console.texts(LIST)[0].replace("\n", " ")
    console.fill("Address, as a whole", address)
    console.press("ENTER")
    console.until(lambda: "address=" in console.run("return location.hash") and len(console.texts(LIST)) == 1, "by its address")
    console.fill("Reason", "complaint")
    console.find(".empty", "None is like this.")
    console.sound()


def test_who_may_only_read_is_offered_no_act_and_sees_ids(pipeline, tenant):
    need()
    with Console(pipeline) as viewer:
        viewer.sign_in("--role", "viewer", "--tenant", tenant, "--name", "vic")
        viewer.go("#/suppressions", "Suppressions")
        viewer.find(LIST).click()
        viewer.find("section[aria-label=Suppression]", "sup_")
        assert not [text for text in viewer.texts("button") if "Release" in text or "Suppress" in text]
        viewer.sound()
