# SPDX-License-Identifier: Apache-2.0
"""Marketing and what a recipient refused, at addresses that are given inline (row C48: "marketing_consent JSONB NOT NULL"; capability 6: "An
inline address that belongs to a recipient is judged as that recipient; marketing to an unknown address needs the caller's word on consent,
recorded"). As callers do it: HTTP, a batch, a CSV file, an event, `stentor send`."""
import itertools
import json

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, Pipeline
from tests.harness.processes import wait_until
from tests.integration.recipients.test_people import Api

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def mailed():
    running = Pipeline().start()
    html = running.folder / "spring.html"
    html.write_text("<p>Spring, {{name}}</p>")
    running.cli("template", "put", "spring", "--subject", "Spring", "--html", html, "--category", "marketing")
    wait_until(lambda: running.post({"to": "first@example.com", "template": "spring"})[0] == 202, 20, "the template")
    yield running
    running.stop()


@pytest.fixture
def api(mailed):
    return Api(mailed.api_port, mailed.key)


def recipient(api, *addresses):
    status, body = api("POST", "/v1/recipients", {
        "identity_type": "user", "identity_id": f"c-{next(NUMBERS)}", "addresses": [{"channel": "email", "address": a} for a in addresses]})
    assert status == 201, body
    return body["id"]


def end(mailed, to, template="spring", **fields):
    row = mailed.status(mailed.send(to=to, template=template, **fields), wait="sent")
    return row["status"], row.get("reason_code") or None


def test_an_address_without_a_recipient_gets_marketing_with_the_callers_word_alone(mailed):
    """S4: 20,000 marketing mails went to addresses without a consent."""
    assert end(mailed, "stranger@example.com") == ("suppressed", "no_consent")
    assert end(mailed, "stranger@example.com", consent=CONSENT) == ("sent", None)
    assert end(mailed, "stranger@example.com", template="welcome") == ("sent", None)
    status, _, problem = mailed.post({"to": "s@example.com", "template": "spring", "consent": {"source": "form"}})
    assert (status, problem["field"]) == (422, "consent.given_at"), problem
    words = ["send", "--template", "spring", "--to", "shell@example.com", "--json"]
    said = mailed.cli(*words, "--consent-source", "fair in May", "--consent-at", "2025-05-01T12:00:00Z")
    assert json.loads(said)["status"] == "queued" and json.loads(mailed.cli(*words))["status"] == "suppressed"


def test_a_recipients_wishes_hold_for_the_address_alone(mailed, api):
    """S12: a recipient with PUT .../unsubscription true, addressed by `to`: was 202 queued."""
    gone = recipient(api, "gone@example.com")
    assert end(mailed, "gone@example.com", consent=CONSENT) == ("suppressed", "no_consent"), "the record decides, not the caller"
    assert api("PUT", f"/v1/recipients/{gone}/consents", [{"category": "marketing", "granted": True}])[0] == 200
    assert end(mailed, "GONE@example.com", consent=CONSENT) == ("sent", None)
    path = mailed.folder / "gone.json"
    mailed.cli("export", "--recipient", gone, "--out", path, "--by", "ticket-1")
    [recorded] = json.loads(path.read_text())["requests"]
    assert (recorded["consent_source"], recorded["consent_at"][:10]) == (CONSENT["source"], CONSENT["given_at"][:10])
    assert api("PUT", f"/v1/recipients/{gone}/unsubscription", {"unsubscribed": True})[0] == 200
    assert end(mailed, "gone@example.com", consent=CONSENT) == ("suppressed", "unsubscribed")
    assert end(mailed, "gone@example.com", template="welcome", category="social") == ("suppressed", "unsubscribed")
    assert end(mailed, "gone@example.com", template="welcome") == ("sent", None), "transactional"
    last = mailed.send(to="gone@example.com", template="spring")
    mailed.status(last, wait="suppressed")
    assert mailed.postgres.query("SELECT recipient_id FROM archiver.notifications WHERE id = %s", last) == [(gone,)]


def test_what_one_of_two_owners_refuses_is_refused(mailed, api):
    first, second = recipient(api, "family@example.com"), recipient(api, "family@example.com")
    for one in (first, second):
        assert api("PUT", f"/v1/recipients/{one}/consents", [{"category": "marketing", "granted": True}])[0] == 200
    assert end(mailed, "family@example.com") == ("sent", None)
    assert api("PUT", f"/v1/recipients/{second}/preferences", [{"category": "marketing", "off": True}])[0] == 200
    assert end(mailed, "family@example.com") == ("suppressed", "preference")
    assert end(mailed, "family@example.com", recipient_id=first) == ("suppressed", "preference")


def test_a_batch_file_says_it_for_each_address_or_the_batch_for_all(mailed):
    """S4 again: `to` of a CSV file is an inline address."""
    def run(name, text, *words):
        path = mailed.folder / f"{name}.csv"
        path.write_text(text)
        batch = json.loads(mailed.cli("batch", "create", "--name", name, "--template", "spring", *words, "--json"))["id"]
        mailed.cli("batch", "add", batch, path)
        mailed.cli("batch", "start", batch)
        rows = f"SELECT status, coalesce(reason_code, '') FROM archiver.notifications WHERE batch_id = '{batch}' AND status IN ('sent', 'suppressed')"
        wait_until(lambda: len(mailed.postgres.query(rows)) == text.count("\n") - 1, 30, "the end of every member")
        return sorted(mailed.postgres.query(rows))
    each = run("each", "to,consent_source,consent_at\nb1@example.com,form,2025-05-01T12:00:00Z\nb2@example.com,,\n")
    assert each == [("sent", ""), ("suppressed", "no_consent")]
    every = run("every", "to,consent_source,consent_at\nb3@example.com,form,2025-05-01T12:00:00Z\nb4@example.com,,\n",
                "--consent-source", "membership form", "--consent-at", "2025-01-01T00:00:00Z")
    assert every == [("sent", ""), ("sent", "")]


def test_an_event_says_it_for_its_address(mailed, api):
    trigger = {"event_type": "cart.left", "template": "spring", "resolver": "address:email"}
    assert api("PUT", "/v1/triggers/cart", trigger)[0] in (200, 201)
    nats = NatsClient(mailed.nats.port)
    known = [row[0] for row in mailed.postgres.query("SELECT id FROM archiver.notifications")]
    rows = "SELECT id, status, coalesce(reason_code, '') FROM archiver.notifications WHERE id <> ALL (%s) AND status IN ('sent', 'suppressed')"
    for number, (consent, outcome) in enumerate([({}, ("suppressed", "no_consent")), ({"consent": CONSENT}, ("sent", ""))]):
        event = f"cart-{number}"
        payload = json.dumps({"email": f"{event}@example.com", **consent}).encode()
        nats.publish("evt.acme.cart.left", payload, event)
        [row] = wait_until(lambda: mailed.postgres.query(rows, known), 20, "its notification")
        assert row[1:] == outcome
        known.append(row[0])
    nats.close()
