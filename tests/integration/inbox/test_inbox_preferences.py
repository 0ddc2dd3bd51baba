# SPDX-License-Identifier: Apache-2.0
"""What a recipient wants to get, asked for and changed by the token of its inbox: as on the preference page, with the same effect."""
import json

import pytest

from tests.harness.processes import wait_until
from tests.integration.inbox.test_inapp import Client, new_user
from tests.integration.sending.test_templates import locale, publish


def make_recipient(pipeline, *addresses):
    status, _, made = pipeline.post({"identity_type": "user", "identity_id": new_user(), "addresses": list(addresses)}, path="/v1/recipients")
    assert status == 201, made
    return made["id"]


def choice(preferences, category, channel):
    return next((each["on"] for each in preferences if (each["category"], each["channel"]) == (category, channel)), None)


def put(client, *changes):
    return client.call("PUT", "/preferences", {"preferences": [{"category": category, "channel": channel, "on": on} for category, channel, on in changes]})


def test_a_recipient_sees_and_changes_what_it_gets(pipeline):
    email = f"{new_user()}@example.com"
    user = new_user()
    recipient = make_recipient(pipeline, {"channel": "email", "address": email}, {"channel": "inapp", "address": user})
    client = Client(pipeline, to=user)
    shown = client.get("/preferences")["preferences"]
    assert choice(shown, "marketing", "email") is True and choice(shown, "social", "inapp") is True, shown
    assert choice(shown, "security", "email") is None and choice(shown, "marketing", "sms") is None
    status, stored = put(client, ("marketing", "email", False), ("social", "inapp", False))
    assert status == 200 and choice(stored["preferences"], "marketing", "email") is False, stored
    assert choice(stored["preferences"], "social", "inapp") is False and choice(stored["preferences"], "social", "email") is True
    # The evidence: an opt-out of the address by this way, and preferences of the record.
    kept = json.loads(pipeline.cli("suppress", "list", "--json", "--address", email))
    assert [(entry["category"], entry["reason"], entry["created_by"]) for entry in kept] == [("marketing", "opt_out", "inbox")], kept
    status, _, preferences = pipeline.post(b"", path=f"/v1/recipients/{recipient}/preferences", method="GET")
    off = {(entry.get("category"), entry.get("channel")) for entry in preferences["preferences"] if entry["off"]}
    assert status == 200 and off == {("marketing", "email"), ("social", "inapp")}, preferences
    # And back: the opt-out ends.
    status, stored = put(client, ("marketing", "email", True))
    assert status == 200 and choice(stored["preferences"], "marketing", "email") is True
    wait_until(lambda: choice(client.get("/preferences")["preferences"], "marketing", "email"), 10, "the end of the opt-out")


def test_what_is_switched_off_is_not_sent(pipeline):
    publish(pipeline, "inbox-news", channel="inapp", category="marketing", locales=[locale("en", title="News", text="For you")])
    recipient = make_recipient(pipeline)
    client = Client(pipeline, recipient_id=recipient)
    assert put(client, ("marketing", "inapp", False), ("marketing", "email", False))[0] == 200
    status, _, answer = pipeline.post({"recipient_id": recipient, "channel": "inapp", "template": "inbox-news"})
    assert status == 202, answer
    assert pipeline.status(answer["id"], wait="suppressed")["status"] == "suppressed"
    assert client.items() == []


def test_an_inbox_without_a_record_has_no_preferences(pipeline):
    for method in ("GET", "PUT"):
        status, problem = Client(pipeline, to=new_user()).call(method, "/preferences", {"preferences": []} if method == "PUT" else None)
        assert (status, problem["type"]) == (404, "urn:stentor:problem:no-recipient") and "recipient_id" in problem["detail"], problem


def test_an_address_of_two_recipients_is_no_one_s(pipeline):
    shared = new_user()
    first = make_recipient(pipeline, {"channel": "inapp", "address": shared})
    make_recipient(pipeline, {"channel": "inapp", "address": shared})
    assert Client(pipeline, to=shared).call("GET", "/preferences")[0] == 404
    assert Client(pipeline, recipient_id=first).call("GET", "/preferences")[0] == 200


@pytest.mark.parametrize("body", [{}, {"preferences": [{"category": "security", "channel": "email", "on": False}]}, {"preferences": [{"category": "marketing"}]},
                                  {"preferences": [], "locale": "en"}, {"preferences": "none"}, b"[1, 2]", b"{"])
def test_a_wrong_body_changes_nothing_and_says_what_is_wrong(pipeline, body):
    client = Client(pipeline, recipient_id=make_recipient(pipeline))
    before = client.get("/preferences")
    status, _, problem = pipeline.post(body, path="/v1/inbox/preferences", method="PUT", headers={"Authorization": f"Bearer {client.token}"})
    assert status in (400, 422) and problem["detail"], problem
    assert client.get("/preferences") == before


def test_only_get_and_put(pipeline):
    status, problem = Client(pipeline, to=new_user()).call("POST", "/preferences", {})
    assert (status, problem["detail"]) == (405, "use GET or PUT")
