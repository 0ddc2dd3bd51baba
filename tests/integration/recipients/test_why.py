# SPDX-License-Identifier: Apache-2.0
"""`GET /v1/notifications/{id}/why` (rows 1f and 28a of the audit of domain.md, gateway.md 1.6): why did Alice not get it? One suppressed, one
deferred by quiet hours, one that the server refused, one that waits for a digest, one delivered; and what must not be seen."""
import base64
import json
import os
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.sending.test_triggers import call
from tests.integration.sending.test_triggers_people import new_person

QUESTIONS = ("question", "answer", "outcome", "evidence")


def send(pipeline, **fields):
    status, answer = call(pipeline, "POST", "/v1/notifications", {"template": "welcome", "variables": {"name": "Alice"}, **fields})
    assert status == 202, answer
    return answer


def why(pipeline, notification, until=lambda answer: True, key=None):
    """The answer, once it is as wanted."""
    last = {}

    def asked():
        nonlocal last
        status, last = call(pipeline, "GET", f"/v1/notifications/{notification}/why", key=key)
        assert status == 200, last
        return until(last)
    wait_until(asked, 30, f"why {notification}, last {last}")
    assert all(tuple(item) == QUESTIONS and item["question"] and item["answer"] for item in last["why"]), last
    return last


def about(answer, question):
    found = [item for item in answer["why"] if item["question"].startswith(question)]
    assert found, (question, answer)
    return found[0]


def is_status(status):
    return lambda answer: answer["status"] == status and not any("Not recorded" in item["answer"] for item in answer["why"])


def around_now():
    minute = datetime.now(timezone.utc).hour * 60 + datetime.now(timezone.utc).minute
    start, end = (minute - 60) % 1440, (minute + 120) % 1440
    return {"start": f"{start // 60:02d}:{start % 60:02d}", "end": f"{end // 60:02d}:{end % 60:02d}"}


def test_a_suppressed_one_names_the_entry_that_was_in_force_then(pipeline):
    address = f"{uuid.uuid4().hex}@example.com"
    status, entry = call(pipeline, "POST", "/v1/suppressions", {"channel": "email", "address": address, "reason": "manual"})
    assert status in (200, 201), entry
    refused = wait_until(lambda: [sent for sent in [send(pipeline, to=address)] if sent["status"] == "suppressed"], 20, "the suppression")[0]
    answer = why(pipeline, refused["id"], is_status("suppressed"))
    item = about(answer, "Is the address suppressed?")
    assert (item["outcome"], item["evidence"]["list"], item["evidence"]["reason"]) == ("stopped", "tenant", "manual"), item
    assert item["evidence"]["suppression_id"] == entry["id"] and about(answer, "May the tenant send?")["outcome"] == "ok"
    assert answer["summary"].startswith("It was not sent, because an operator has put the address on the suppression list.")
    assert about(answer, "Is the address suppressed now?")["evidence"]["suppression_id"] == entry["id"]
    status, _ = call(pipeline, "POST", f"/v1/suppressions/{entry['id']}/release")
    assert status == 200
    released = why(pipeline, refused["id"], lambda it: not any("now?" in item["question"] for item in it["why"]))
    item = about(released, "Is the address suppressed?")
    assert item["evidence"]["suppression_id"] == entry["id"] and "released_at" in item["evidence"], "what was in force then"


def test_a_deferred_one_says_whose_quiet_hours_and_until_when(pipeline):
    recipient, own, address = new_person(pipeline)
    hours = around_now()
    status, answer = call(pipeline, "PUT", f"/v1/recipients/{recipient}", {
        "identity_type": "guest", "identity_id": own, "quiet_hours": hours, "time_zone": "UTC",
        "addresses": [{"channel": "email", "address": address}]})
    assert status in (200, 201, 202), answer
    waits = wait_until(lambda: [it for it in [send(pipeline, recipient_id=recipient)] if it["status"] == "scheduled"], 20, "the quiet hours")[0]
    answer = why(pipeline, waits["id"], lambda it: is_status("scheduled")(it) and "reason" in about(it, "Does it wait")["evidence"])
    item = about(answer, "Do quiet hours hold it up?")
    assert item["outcome"] == "waits" and item["evidence"] == {"of": "the recipient", "hours": f"{hours['start']} to {hours['end']}"}
    due = about(answer, "Does it wait for a time?")
    assert due["outcome"] == "waits" and due["evidence"]["reason"] == "quiet" and due["evidence"]["due_at"][11:16] == hours["end"]
    assert "because it is night for the recipient" in answer["summary"] and f"{hours['end']}:00 UTC" in answer["summary"]
    urgent = send(pipeline, recipient_id=recipient, priority="critical")
    item = about(why(pipeline, urgent["id"], is_status("sent")), "Do quiet hours hold it up?")
    assert (item["outcome"], item["answer"]) == ("ok", "No: it is urgent, so they do not count"), "why something did not wait is seen too"


def test_a_refused_one_has_the_servers_words_and_its_dead_letter(pipeline):
    pipeline.mailbox.answer("550 5.1.1 no such user here")
    failed = send(pipeline, to=f"{uuid.uuid4().hex}@example.com")
    answer = why(pipeline, failed["id"], lambda it: is_status("failed")(it) and about(it, "Is there a dead letter")["outcome"] == "note")
    attempt = about(answer, "What came of attempt 1?")
    assert attempt["outcome"] == "failed" and "no such user here" in attempt["answer"]
    assert attempt["evidence"]["code"] == "550" and attempt["evidence"]["enhanced_code"] == "5.1.1"
    letter = about(answer, "Is there a dead letter")["evidence"]
    assert letter["stage"] == "dispatcher"
    assert f"stentor dlq resend {letter['sequence']}" in answer["summary"] and "address does not exist" in answer["summary"]
    shown = json.loads(pipeline.cli("dlq", "show", letter["sequence"], "--json"))
    assert failed["id"] in json.dumps(shown)
    assert about(answer, "Was its content made?")["evidence"]["version_is_now"] == "active"
    assert json.loads(pipeline.cli("why", failed["id"], "--json"))["why"] == answer["why"]
    printed = pipeline.cli("why", failed["id"])
    assert printed.splitlines()[1] == answer["summary"] and "  failed    What came of attempt 1? smtp refused it: " in printed
    missing = pipeline.run_cli("why", "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P")
    assert missing.returncode == 3 and "notification 'ntf_01M83AVY1NCDCG3Y6T3Y82BH3P'" in missing.stderr


def test_one_in_a_digest_says_when_it_goes_out(pipeline):
    recipient, _, _ = new_person(pipeline)
    pipeline.cli("template", "put", "digest-social", "--category", "social", "--subject", "{{digest_total}} news", "--text",
                 pipeline.folder / "welcome.txt")
    weekly = [{"category": "social", "channel": "email", "frequency": "weekly"}]
    status, answer = call(pipeline, "PUT", f"/v1/recipients/{recipient}/preferences", weekly)
    assert status in (200, 204), answer
    gathered = wait_until(lambda: [it for it in [send(pipeline, recipient_id=recipient, category="social")] if it["status"] == "scheduled"], 20,
                          "the preference at the gate")[0]
    answer = why(pipeline, gathered["id"], lambda it: is_status("scheduled")(it) and "reason" in about(it, "Does it wait")["evidence"])
    item = about(answer, "Is it gathered into a digest?")
    assert (item["outcome"], item["evidence"]) == ("waits", {"frequency": "weekly"})
    due = about(answer, "Does it wait for a time?")["evidence"]
    assert due["reason"] == "digest" and due["digest_window_id"].startswith("dgw_")
    assert "as a digest" in answer["summary"]
    item = about(answer, "Do the recipient's preferences allow it?")
    assert item["evidence"]["category"] == "social" and item["evidence"]["channel"] == "email" and item["evidence"]["now"] == "on"


def test_a_delivered_one_says_so_by_every_way(pipeline):
    sent = send(pipeline, to=f"{uuid.uuid4().hex}@example.com")["id"]
    answer = why(pipeline, sent, is_status("sent"))
    assert about(answer, "Did it arrive?")["outcome"] == "unknown" and "spam folder" in answer["summary"]
    proto = messages(pipeline)
    client = NatsClient(pipeline.nats.port)
    event_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    event = proto.NotificationStatus(
        meta=proto.Meta(event_id=event_id, tenant="acme", notification_id=sent, occurred_at_us=int(time.time() * 1e6)),
        channel=proto.CHANNEL_EMAIL, status=proto.STATUS_DELIVERED)
    client.publish("ntf.status.acme.email.delivered", event.SerializeToString(), event_id=event_id)
    client.close()
    answer = why(pipeline, sent, is_status("delivered"))
    assert about(answer, "Did it arrive?")["outcome"] == "ok" and answer["summary"].startswith("It arrived at ")
    included = call(pipeline, "GET", f"/v1/notifications/{sent}?include=why,timeline")[1]
    assert (included["summary"], included["why"]) == (answer["summary"], answer["why"]) and len(included["timeline"]) == 4
    row = pipeline.postgres.query("SELECT gate_trace FROM archiver.notifications WHERE id = %s", sent)[0][0]
    assert row == "T+S+A+"


def test_an_old_one_without_a_trace_says_that_it_was_not_recorded(pipeline):
    sent = send(pipeline, to=f"{uuid.uuid4().hex}@example.com")["id"]
    why(pipeline, sent, is_status("sent"))
    pipeline.postgres.query("UPDATE archiver.notifications SET gate_trace = NULL WHERE id = %s", sent)
    item = about(call(pipeline, "GET", f"/v1/notifications/{sent}/why")[1], "What did the gate ask")
    assert item["outcome"] == "unknown" and item["answer"].startswith("Not recorded")


def test_it_can_be_asked_at_once_and_of_nothing_that_is_not_the_tenants(pipeline):
    """Just accepted; another tenant's; an unknown id, one of the future, an archived one; without the scope."""
    pipeline.services["archiver"].pause()
    try:
        early = send(pipeline, to=f"{uuid.uuid4().hex}@example.com")["id"]
        answer = why(pipeline, early)
        assert about(answer, "Was it accepted?")["evidence"]["known_from"].startswith("the accept log")
        assert about(answer, "May the tenant send?")["outcome"] == "ok" and answer["status"] == "queued"
    finally:
        pipeline.services["archiver"].pause(False)
    pipeline.cli("tenant", "put", "why-other", "--name", "Other", "--sender", "hello@other.test", tenant="why-other")
    other, writer = _key(pipeline, "admin", "why-other"), _key(pipeline, "templates:write", "acme")
    assert call(pipeline, "GET", f"/v1/notifications/{early}/why", key=other)[0] == 404
    status, problem = call(pipeline, "GET", f"/v1/notifications/{early}/why", key=writer)
    assert status == 403 and "notifications:read" in problem["detail"]
    for wrong in ("ntf_nothing", "ntf_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P", "rcp_01M83AVY1NCDCG3Y6T3Y82BH3P"):
        assert call(pipeline, "GET", f"/v1/notifications/{wrong}/why")[0] == 404, wrong
    pipeline.postgres.query(
        "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, state, owner_epoch)"
        " VALUES ('notifications/record/2021-06', 'notifications', 'R', '2021-06-01Z', '2021-07-01Z', 'removed', 1)")
    try:
        status, problem = call(pipeline, "GET", "/v1/notifications/ntf_01F8A0S9XARCDCG3Y6T3Y82BH3/why")
        assert (status, problem["type"]) == (404, "urn:stentor:problem:archived"), problem
    finally:
        pipeline.postgres.query("DELETE FROM archive.units WHERE id = 'notifications/record/2021-06'")


# ---- would it reach them now? ----------------------------------------------------------------------------------------------


def explain(pipeline, who, key=None, **body):
    path = f"/v1/recipients/{who}/explain" if who else "/v1/recipients/explain"
    return call(pipeline, "POST", path, body, key=key)


def test_explain_asks_the_gate_for_a_recipient_and_makes_nothing(pipeline):
    recipient, own, address = new_person(pipeline)
    before = pipeline.history_count("true")
    status, answer = explain(pipeline, recipient, template="welcome")
    assert status == 200 and (answer["reaches_now"], answer["decision"]) == (True, "send"), answer
    assert answer["summary"] == "It would be sent at once." and answer["recipient_id"] == recipient
    status, answer = explain(pipeline, recipient, category="marketing")
    assert (answer["reaches_now"], answer["decision"], answer["reason_code"]) == (False, "suppress", "no_consent"), answer
    assert about(answer, "Is there the recipient's consent?")["outcome"] == "stopped"
    assert answer["summary"] == "It would not be sent, because the recipient has not agreed to messages of this kind. " \
                                "Ask the recipient for consent and record it."
    status, answer = explain(pipeline, recipient, channel="sms")
    assert answer["reason_code"] == "no_address", answer
    status, _ = call(pipeline, "PUT", f"/v1/recipients/{recipient}", {
        "identity_type": "guest", "identity_id": own, "quiet_hours": {"start": "22:00", "end": "07:00"}, "time_zone": "UTC",
        "addresses": [{"channel": "email", "address": address}]})
    wait_until(lambda: "Do quiet hours" in json.dumps(explain(pipeline, recipient)[1]), 20, "the quiet hours")
    night = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT23:30:00Z")
    status, answer = explain(pipeline, recipient, category="billing", at=night)
    assert (answer["decision"], answer["reason_code"], answer["until"][11:]) == ("wait", "quiet_hours", "07:00:00.000000Z"), answer
    assert answer["summary"].startswith("It would wait, because it is night for the recipient, and go out at ")
    assert explain(pipeline, recipient, category="security", at=night)[1]["decision"] == "send"
    # The gate that sends decides the same.
    refused = send(pipeline, recipient_id=recipient, category="marketing")
    assert refused["status"] == "suppressed"
    assert pipeline.history_count("true") - before <= 1, "nothing was made by asking"


def test_explain_asks_for_an_address_too_and_takes_no_place_of_a_limit(pipeline):
    pipeline.cli("tenant", "put", "why-limits", "--name", "L", "--sender", "hello@limits.test", tenant="why-limits")
    key = _key(pipeline, "admin", "why-limits")
    status, answer = call(pipeline, "PUT", "/v1/tenant", {"name": "L", "sender_address": "hello@limits.test", "limits": {"per_day": 2}},
                          key=pipeline.operator_key, headers={"Stentor-Tenant": "why-limits"})
    assert status == 200, answer
    address = f"{uuid.uuid4().hex}@example.com"
    wait_until(lambda: "within the limits" in json.dumps(explain(pipeline, None, key=key, address=address)[1]), 20, "the limits")
    for _ in range(5):
        assert explain(pipeline, None, key=key, address=address)[1]["decision"] == "send"
    counters = "SELECT count(*) FROM ingest.gate_counters WHERE tenant_id = 'why-limits'"
    assert pipeline.postgres.query(counters)[0][0] == 0
    status, entry = call(pipeline, "POST", "/v1/suppressions", {"channel": "email", "address": address, "reason": "complaint"}, key=key)
    assert status in (200, 201), entry
    answer = wait_until(lambda: [it for it in [explain(pipeline, None, key=key, address=address)[1]] if not it["reaches_now"]], 20, "it")[0]
    assert answer["reason_code"] == "complaint"
    assert about(answer, "Is the address suppressed?")["evidence"]["suppression_id"] == entry["id"]


@pytest.mark.parametrize("body, field", [
    ({"channel": "pigeon"}, "channel"), ({"category": "spam"}, "category"), ({"priority": "soon"}, "priority"),
    ({"template": "of-none"}, "template"), ({"at": "2020-01-01T00:00:00Z"}, "at"), ({"at": "tomorrow"}, "at"), ({"address": "no address"}, "address"),
    ({"nothing": 1}, "nothing"), ({}, "address")])
def test_a_bad_question_names_its_field(pipeline, body, field):
    status, problem = explain(pipeline, None, **{"address": "a@example.com", **body} if field != "address" or body else body)
    assert (status, problem["field"]) == (422, field), problem


def test_explain_knows_no_recipient_of_another_tenant(pipeline):
    recipient, _, _ = new_person(pipeline)
    pipeline.cli("tenant", "put", "why-third", "--name", "T", "--sender", "hello@third.test", tenant="why-third")
    other, reader = _key(pipeline, "admin", "why-third"), _key(pipeline, "notifications:read", "acme")
    assert explain(pipeline, recipient, key=other)[0] == 404
    assert explain(pipeline, recipient, key=reader)[0] == 403
    for wrong in ("rcp_nothing", "rcp_01M83AVY1NCDCG3Y6T3Y82BH3P", "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P"):
        assert explain(pipeline, wrong)[0] == 404, wrong


# ---- what was sent ---------------------------------------------------------------------------------------------------------


def _entries(pipeline, notification):
    lines = pipeline.cli("audit-log", "list", "--json", tenant="acme")
    return [entry for entry in json.loads(lines) if entry.get("target") == notification] if lines.startswith("[") else \
        [entry for entry in map(json.loads, lines.splitlines()) if entry.get("target") == notification]


def test_the_content_is_shown_to_who_may_see_it_and_noted_first(pipeline):
    address = f"{uuid.uuid4().hex}@example.com"
    sent = send(pipeline, to=address)["id"]
    why(pipeline, sent, is_status("sent"))
    reveal = _key(pipeline, "content:reveal", "acme")
    status, answer = call(pipeline, "GET", f"/v1/notifications/{sent}/content?ground=ticket%2017", key=reveal)
    assert status == 200, answer
    assert "Alice" in answer["content"]["text"] and "Alice" in answer["content"]["html"] and answer["content"]["kind"] == "email"
    assert (answer["id"], answer["status"], answer["template"], answer["channel"]) == (sent, "sent", "welcome", "email")
    assert "***" in answer["to"] and address not in json.dumps(answer)
    entry, = _entries(pipeline, sent)
    assert entry["action"] == "content.shown" and entry["kind"] == "read" and entry["ground"] == "ticket 17"
    assert entry["actor"].startswith("key ")
    pipeline.cli("audit-log", "verify")
    # Who may not, and what is not there: nothing is noted.
    status, problem = call(pipeline, "GET", f"/v1/notifications/{sent}/content")
    assert status == 403 and "content:reveal" in problem["detail"]
    pipeline.cli("tenant", "put", "why-fourth", "--name", "F", "--sender", "hello@fourth.test", tenant="why-fourth")
    other = _key(pipeline, "content:reveal", "why-fourth")
    assert call(pipeline, "GET", f"/v1/notifications/{sent}/content", key=other)[0] == 404
    status, problem = call(pipeline, "GET", f"/v1/notifications/{sent}/content?ground=for%20a@b.c", key=reveal)
    assert (status, problem["field"]) == (400, "ground"), problem
    later = send(pipeline, to=address, scheduled_for=(datetime.now(timezone.utc) + timedelta(days=1)).isoformat())["id"]
    status, problem = call(pipeline, "GET", f"/v1/notifications/{later}/content", key=reveal)
    assert (status, problem["type"]) == (404, "urn:stentor:problem:no-content"), problem
    assert len(_entries(pipeline, sent)) == 1 and _entries(pipeline, later) == []


def _key(pipeline, scopes, tenant):
    key = json.loads(pipeline.cli("apikey", "create", "--name", f"k{uuid.uuid4().hex[:8]}", "--scopes", scopes, "--json", tenant=tenant))["key"]
    wait_until(lambda: call(pipeline, "GET", "/v1/nothing", key=key)[0] != 401, 20, "the key reaching gateway")
    return key
