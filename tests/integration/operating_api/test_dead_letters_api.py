# SPDX-License-Identifier: Apache-2.0
"""Dead letters over the API: listed, grouped, counted before they are sent again, dropped; each in the audit log; by the command line too."""
import http.client
import json
import subprocess
import time
import urllib.parse
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.protobuf import messages
from tests.integration.operating.test_dlq import EVERY_ATTEMPT, LIMITED, exhaust, letters, letters_of, make_letter, rendered_of

OTHER = "globex"
DIED = -9


@pytest.fixture(scope="module")
def limited():
    running = Pipeline(LIMITED, durable=True).start()
    running.cli("tenant", "put", OTHER)
    yield running
    running.stop()


@pytest.fixture
def bus(limited):
    client = NatsClient(limited.nats.port)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def no_letters(limited):
    yield
    limited.cli("dlq", "drop", "--all", "--yes", "--all-tenants")


def ask(pipeline, method, path, body=None, tenant=TENANT, key=None, headers=None):
    """(status, parsed body): as the operator, who speaks for a tenant."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    sent = {"Authorization": f"Bearer {key or pipeline.operator_key}", "Content-Type": "application/json", **(headers or {})}
    if key is None:
        sent["Stentor-Tenant"] = tenant
    try:
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def slug(answer):
    return answer[0], (answer[1] or {}).get("type", "").rpartition(":")[2]


def listed(pipeline, **filters):
    status, page = ask(pipeline, "GET", "/v1/dead-letters?" + urllib.parse.urlencode(filters))
    assert status == 200, page
    return page


def sequence_of(pipeline, notification):
    return letters_of(pipeline, notification)[0]["sequence"]


def sent_once(pipeline, ids):
    for notification in ids:
        wait_until(lambda: pipeline.status(notification)["status"] == "sent", 30, "the mail that was sent again")
        assert len(pipeline.mailbox.for_notification(notification)) == 1
    wait_until(lambda: letters(pipeline) == [], 20, "the letters being deleted")


def noted(pipeline, action):
    return [entry for entry in json.loads(pipeline.cli("audit-log", "list", "--kind", "dead_letter", "--json")) if entry["action"] == action]


def parked(pipeline, bus, reason="unknown_outcome: a process ended"):
    """A letter of a mail that may have been sent. Returns notification and sequence."""
    notification = exhaust(pipeline)[0]
    event = rendered_of(pipeline, bus, notification)
    pipeline.cli("dlq", "drop", sequence_of(pipeline, notification))
    return notification, make_letter(pipeline, bus, event, f"ntf.rendered.normal.{TENANT}", reason=reason)


# ---- the story ------------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_counted_by_a_dry_run_and_exactly_these_sent_again(limited, bus):
    doubtful, doubtful_at = parked(limited, bus)
    ids = exhaust(limited, 3)
    page = listed(limited)
    assert [letter["sequence"] for letter in page["data"]] == sorted(letter["sequence"] for letter in page["data"]) and page["next"] is None
    one = next(letter for letter in page["data"] if letter["notification_id"] == ids[0])
    assert (one["stage"], one["reason"], one["vendor"], one["code"], one["enhanced_code"], one["attempts"]) == \
        ("dispatcher", "retries_exhausted", "smtp", "451", "4.3.0", EVERY_ATTEMPT)
    assert one["resend"] == "safe" and one["resend_why"] is None and "try later" in one["detail"]
    assert {letter["sequence"] for letter in listed(limited, reason="unknown_outcome")["data"]} == {doubtful_at}
    assert len(listed(limited, code="451", vendor="smtp", stage="dispatcher")["data"]) == 3 and listed(limited, stage="renderer")["data"] == []

    reasons = ask(limited, "GET", "/v1/dead-letters/reasons")[1]
    assert reasons["complete"] and [(row["reason"], row["code"], row["letters"], row["safe"], row["may_double"]) for row in reasons["data"]] == [
        ("retries_exhausted", "451", 3, 3, 0), ("unknown_outcome", "", 1, 0, 1)]

    dry = ask(limited, "POST", "/v1/dead-letters/resend", {"filter": {"stage": "dispatcher"}})[1]
    assert (dry["dry_run"], dry["complete"], dry["letters"], dry["safe"], dry["may_double"], dry["refused"], dry["count"]) == (True, True, 4, 3, 1, 0, 3)
    assert len(letters(limited)) == 4, "a dry run changes nothing"
    doubled = ask(limited, "POST", "/v1/dead-letters/resend", {"may_double": True})[1]
    assert doubled["count"] == 4

    late = exhaust(limited)[0]  # is not in what was counted
    real = {"filter": {"stage": "dispatcher"}, "dry_run": False, "until": dry["until"], "count": dry["count"]}
    assert slug(ask(limited, "POST", "/v1/dead-letters/resend", {**real, "count": 4})) == (409, "count-changed")
    assert len(letters(limited)) == 5, "nothing was done"
    status, done = ask(limited, "POST", "/v1/dead-letters/resend", real)
    assert status == 202 and done["requested"] == 3, done
    wait_until(lambda: {letter["notification_id"] for letter in letters(limited)} == {doubtful, late}, 40, "just these being sent again")
    for notification in ids:
        wait_until(lambda: limited.status(notification)["status"] == "sent", 30, "the mail")
        assert len(limited.mailbox.for_notification(notification)) == 1
    assert limited.mailbox.for_notification(doubtful) == limited.mailbox.for_notification(late) == []

    entry = noted(limited, "dead_letter.resent")[-1]
    sequences = {letter["sequence"] for letter in page["data"] if letter["notification_id"] in ids}
    assert {int(number) for number in entry["details"]["sequences"].split()} == sequences and entry["actor"].startswith("API key ")
    assert entry["tenant"] == TENANT and entry["details"]["may_double"] == "no"


def test_one_that_may_double_needs_the_word(limited, bus):
    notification, sequence = parked(limited, bus)
    shown = ask(limited, "GET", f"/v1/dead-letters/{sequence}")[1]
    assert shown["resend"] == "may_double" and "may have been sent already" in shown["resend_why"] and shown["subject"] == f"ntf.rendered.normal.{TENANT}"
    refused = ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend")
    assert slug(refused) == (409, "resend-refused") and refused[1]["field"] == "may_double"
    status, taken = ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend", {"may_double": True})
    assert status == 202 and taken == {"sequence": sequence, "notification_id": notification}
    sent_once(limited, [notification])
    assert noted(limited, "dead_letter.resent")[-1]["details"]["may_double"] == "yes"
    assert slug(ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend", {"may_double": True})) == (404, "not-found")


def test_the_same_call_twice_makes_one_mail(limited):
    notification = exhaust(limited)[0]
    sequence = sequence_of(limited, notification)
    for _ in range(2):
        status, answer = ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend", headers={"Idempotency-Key": "again-1"})
        assert status in (202, 404), answer
    ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend")  # another event about the same letter
    sent_once(limited, [notification])
    time.sleep(1)
    assert len(limited.mailbox.for_notification(notification)) == 1 and letters(limited, "--all-tenants") == []


def test_a_command_that_no_stage_could_follow_is_handled_again(limited, bus):
    """A letter about no notification: an application's command."""
    command = messages(limited).NotifyCommand(to="again@example.com", template="welcome", variables_json='{"name":"A"}')
    name = f"cmd-{uuid.uuid4().hex[:12]}"
    proto = messages(limited)
    letter = proto.DeadLetter(stage="ingest", reason="tenant 'acme' has no settings", stream="EVENTS", stream_sequence=1, deliveries=5,
                              subject=f"evt.{TENANT}.notify", payload=command.SerializeToString())
    letter.meta.event_id, letter.meta.tenant, letter.meta.causation_id = f"dead-{name}", TENANT, name
    sequence = bus.publish(f"ntf.dead.ingest.{TENANT}", letter.SerializeToString(), f"dead-{name}")["seq"]
    shown = ask(limited, "GET", f"/v1/dead-letters/{sequence}")[1]
    assert (shown["notification_id"], shown["resend"], shown["reason"]) == (None, "safe", "other")
    assert ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend")[0] == 202
    wait_until(lambda: limited.mailbox.mails("again@example.com"), 30, "the command's mail")
    wait_until(lambda: letters(limited) == [], 20, "the letter being deleted")


def test_what_a_vendor_reported_is_the_operators(limited, bus):
    sequence = make_letter(limited, bus, b"{}", "ntf.inbound.sendgrid", stage="webhook-receiver", reason="it cannot be read")
    refused = ask(limited, "POST", f"/v1/dead-letters/{sequence}/resend")
    assert slug(refused) == (409, "resend-refused") and "stentor dlq resend" in refused[1]["detail"]
    bus.publish(f"evt.{TENANT}.ResendErrorEmail", json.dumps({"dead_letter": sequence}).encode(), uuid.uuid4().hex)
    assert "sent again by an operator" in wait_until(lambda: letters(limited, "--stage", "ingest"), 20, "the event's own letter")[0]["reason"]


def test_a_dropped_one_ends_its_notification_and_is_gone(limited, bus):
    notification, sequence = parked(limited, bus)
    assert ask(limited, "DELETE", f"/v1/dead-letters/{sequence}") == (204, None)
    assert bus.message("DEAD", seq=sequence) is None
    assert limited.status(notification)["status"] == "failed"
    entry = noted(limited, "dead_letter.dropped")[-1]
    assert entry["target"] == f"DEAD/{sequence}" and entry["notification_id"] == notification
    assert slug(ask(limited, "DELETE", f"/v1/dead-letters/{sequence}")) == (404, "not-found")


# ---- a notification -------------------------------------------------------------------------------------------------


def test_a_failed_notification_is_sent_again_by_its_id(limited):
    notification = exhaust(limited)[0]
    status, answer = ask(limited, "POST", f"/v1/notifications/{notification}/resend", {"may_double": False, "ignore_expiry": True})
    assert status == 202 and answer["notification_id"] == notification, answer
    sent_once(limited, [notification])
    refused = ask(limited, "POST", f"/v1/notifications/{notification}/resend")
    assert slug(refused) == (409, "nothing-to-resend") and "'sent'" in refused[1]["detail"]
    for unknown in ("ntf_01KAGTQ5M0000000000000000A", "ntf_1"):
        assert slug(ask(limited, "POST", f"/v1/notifications/{unknown}/resend")) == (404, "not-found")


# ---- whose ----------------------------------------------------------------------------------------------------------


def test_another_tenant_finds_nothing(limited):
    notification = exhaust(limited)[0]
    sequence = sequence_of(limited, notification)
    for method, path in (("GET", f"/v1/dead-letters/{sequence}"), ("POST", f"/v1/dead-letters/{sequence}/resend"),
                         ("DELETE", f"/v1/dead-letters/{sequence}"), ("POST", f"/v1/notifications/{notification}/resend")):
        assert slug(ask(limited, method, path, tenant=OTHER)) == (404, "not-found"), path
    assert ask(limited, "GET", "/v1/dead-letters", tenant=OTHER)[1] == {"data": [], "next": None}
    assert ask(limited, "GET", "/v1/dead-letters/reasons", tenant=OTHER)[1]["data"] == []
    assert ask(limited, "POST", "/v1/dead-letters/resend", {}, tenant=OTHER)[1]["letters"] == 0
    cursor = urllib.parse.quote(ask(limited, "GET", "/v1/dead-letters?limit=1", tenant=TENANT)[1]["next"] or "x")
    assert slug(ask(limited, "GET", f"/v1/dead-letters?limit=1&cursor={cursor}", tenant=OTHER)) == (400, "invalid-parameter")
    assert letters_of(limited, notification)


def test_reading_and_sending_again_are_scopes_of_their_own(limited):
    def made(scopes):
        key = ask(limited, "POST", "/v1/api-keys", {"name": "dead", "scopes": scopes})[1]["key"]
        wait_until(lambda: ask(limited, "GET", "/v1/tenant", key=key)[0] != 401, 20, "the key being known")
        return key
    reader, sender = made(["read", "dead:read"]), made(["send"])
    assert ask(limited, "GET", "/v1/dead-letters", key=reader)[0] == 200
    for method, path in (("POST", "/v1/dead-letters/7/resend"), ("POST", "/v1/dead-letters/resend"), ("DELETE", "/v1/dead-letters/7"),
                         ("POST", "/v1/notifications/ntf_01KAGTQ5M0000000000000000A/resend")):
        refused = ask(limited, method, path, {}, key=reader)
        assert slug(refused) == (403, "missing-scope") and "dead:resend" in refused[1]["detail"]
    refused = ask(limited, "GET", "/v1/dead-letters/reasons", key=sender)
    assert slug(refused) == (403, "missing-scope") and "dead:read" in refused[1]["detail"]
    assert ask(limited, "GET", "/v1/dead-letters/7", key=made(["dead:read"]))[0] == 404


# ---- pages and bad input --------------------------------------------------------------------------------------------


def test_pages_follow_the_stream_and_have_each_letter_once(limited, bus):
    made = [make_letter(limited, bus, b"\xff", f"ntf.rendered.normal.{TENANT}", reason=f"reason_{chr(97 + i % 2)}: of its own") for i in range(7)]
    make_letter(limited, bus, b"\xff", f"ntf.rendered.normal.{OTHER}", tenant=OTHER)
    for filters, expected in (({}, made), ({"reason": "reason_b"}, made[1::2])):
        seen, page = [], {"next": ""}
        while page["next"] is not None:
            page = listed(limited, limit=2, **filters, **({"cursor": page["next"]} if page["next"] else {}))
            seen += [letter["sequence"] for letter in page["data"]]
            assert len(page["data"]) <= 2
        assert seen == expected
    assert listed(limited, since="2126-01-01T00:00:00Z")["data"] == []


@pytest.mark.parametrize("method, path, body, field", [
    ("GET", "/v1/dead-letters?stage=a.b", None, "stage"),
    ("GET", "/v1/dead-letters?since=yesterday", None, "since"),
    ("GET", "/v1/dead-letters?limit=0", None, "limit"),
    ("GET", "/v1/dead-letters/reasons?since=1", None, "since"),
    ("POST", "/v1/dead-letters/7/resend", {"may_double": "yes"}, "may_double"),
    ("POST", "/v1/dead-letters/7/resend", {"force": True}, "force"),
    ("POST", "/v1/dead-letters/resend", {"filter": {"stage": "*"}}, "filter.stage"),
    ("POST", "/v1/dead-letters/resend", {"filter": {"tenant": "globex"}}, "filter.tenant"),
    ("POST", "/v1/dead-letters/resend", {"filter": "all"}, "filter"),
    ("POST", "/v1/dead-letters/resend", {"dry_run": False}, "until"),
    ("POST", "/v1/dead-letters/resend", {"dry_run": False, "until": 9}, "count"),
    ("POST", "/v1/dead-letters/resend", {"dry_run": False, "until": 9, "count": 10001}, "count"),
])
def test_what_does_not_fit_names_the_field(limited, method, path, body, field):
    status, answer = ask(limited, method, path, body)
    assert (status, answer["field"]) == (422, field), answer


def test_what_is_no_sequence_or_no_parameter_is_refused(limited):
    for name in ("0", "-1", "x", "99999999999999999999", "9223372036854775807"):
        assert slug(ask(limited, "GET", f"/v1/dead-letters/{name}")) == (404, "not-found"), name
    assert slug(ask(limited, "GET", "/v1/dead-letters?tenant=globex")) == (400, "invalid-parameter")
    assert slug(ask(limited, "GET", "/v1/dead-letters?cursor=abc")) == (400, "invalid-parameter")


# ---- killed ---------------------------------------------------------------------------------------------------------


def refused_or_cut(pipeline, method, path):
    """The process that died is no answer: the proxy says so, or the connection ends."""
    try:
        return ask(pipeline, method, path)[0] >= 500
    except (OSError, http.client.HTTPException):
        return True


@pytest.mark.parametrize("point", ["gateway.letters_noted", "bus.stored", "gateway.end_stored"])
def test_a_gateway_killed_there_is_asked_again_and_nothing_is_doubled(limited, bus, point):
    if "\t" not in subprocess.run([BIN / "stentor-gateway", "--crash-points"], capture_output=True, text=True, timeout=20).stdout:
        pytest.skip("built without -DSTENTOR_CRASH_POINTS=ON")
    drops = point == "gateway.end_stored"
    notification, sequence = parked(limited, bus, "a stage gave it up") if drops else (exhaust(limited)[0], None)
    sequence = sequence or sequence_of(limited, notification)
    gateway = limited.services["gateway"]
    call = ("DELETE", f"/v1/dead-letters/{sequence}") if drops else ("POST", f"/v1/dead-letters/{sequence}/resend")
    gateway.kill()
    # The first event that a resend stores is its entry in AUDIT.
    gateway.options["STENTOR_CRASH_AT"] = f"{point}:2" if point == "bus.stored" else point
    gateway.start()
    del gateway.options["STENTOR_CRASH_AT"]
    assert refused_or_cut(limited, *call)
    assert gateway.exit_status(20) == DIED and f"crash point '{point}' reached" in gateway.tail()
    gateway.start()
    again = ask(limited, *call)
    assert again[0] in ((204,) if drops else (202, 404)), again
    if drops:
        assert bus.message("DEAD", seq=sequence) is None and limited.status(notification)["status"] == "failed"
        assert limited.mailbox.for_notification(notification) == []
    else:
        sent_once(limited, [notification])


# ---- by the command line --------------------------------------------------------------------------------------------


def test_the_command_line_writes_the_same_entries(limited, bus):
    first, second = exhaust(limited, 2)
    sequences = [sequence_of(limited, first), sequence_of(limited, second)]
    limited.cli("dlq", "resend", sequences[0], "--dry-run")
    before = len(noted(limited, "dead_letter.resent"))
    limited.cli("dlq", "resend", sequences[0])
    limited.cli("dlq", "drop", sequences[1])
    resent, dropped = noted(limited, "dead_letter.resent"), noted(limited, "dead_letter.dropped")
    assert len(resent) == before + 1, "a dry run is no entry"
    assert resent[-1]["target"] == f"DEAD/{sequences[0]}" and resent[-1]["notification_id"] == first
    assert dropped[-1]["target"] == f"DEAD/{sequences[1]}" and resent[-1]["actor"] == dropped[-1]["actor"] and dropped[-1]["actor"].startswith("cli ")
    make_letter(limited, bus, b"\xff", f"ntf.rendered.normal.{OTHER}", tenant=OTHER)
    make_letter(limited, bus, b"\xff", f"ntf.rendered.normal.{TENANT}")
    limited.cli("dlq", "drop", "--all", "--yes", "--all-tenants")
    assert [entry["tenant"] for entry in noted(limited, "dead_letter.dropped")[-2:]] == [OTHER, TENANT]
    assert limited.run_cli("audit-log", "verify").returncode == 0
