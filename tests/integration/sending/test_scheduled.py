# SPDX-License-Identifier: Apache-2.0
"""What waits for a time can be listed, and one of it cancelled (C67, C109, finding 18 of the five documents): cancelled and never
sent, or 409 and it is due."""
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import call, guest, handled, mails_to, new_type, publish, put_trigger
from tests.integration.sending.test_triggers_people import new_person


def later(**delta):
    return (datetime.now(timezone.utc) + timedelta(**delta)).isoformat()


def send(pipeline, address, at, **fields):
    status, answer = call(pipeline, "POST", "/v1/notifications", {
        "to": address, "template": "welcome", "variables": {"name": "A"}, "scheduled_for": at, **fields})
    assert status == 202, answer
    return answer["id"]


def new_address():
    return f"{uuid.uuid4().hex}@example.com"


def cancel(pipeline, notification_id, key=None):
    return call(pipeline, "POST", f"/v1/notifications/{notification_id}/cancel", key=key)


def listed(pipeline, query=""):
    status, answer = call(pipeline, "GET", f"/v1/scheduled?limit=1000{query}")
    assert status == 200, answer
    return answer["data"]


def is_listed(pipeline, notification_id):
    return [item for item in listed(pipeline) if item["id"] == notification_id]


def waits(pipeline, notification_id):
    return wait_until(lambda: is_listed(pipeline, notification_id), 20, "the row of what waits")[0]


def shown(pipeline, notification_id):
    _, answer = call(pipeline, "GET", f"/v1/notifications/{notification_id}")
    return answer.get("status"), answer.get("reason_code")


# ---- the story ------------------------------------------------------------------------------------------------------------


def test_an_operator_finds_a_reminder_and_cancels_it(pipeline, nats):
    """C67 and C109: at d9095a0 both addresses were 404."""
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", offset_s=-3600, subject_path="stay.id")
    start = (datetime.now(timezone.utc) + timedelta(days=2)).replace(microsecond=0)
    for stay in ("s1", "s2"):
        data = guest(stay={"id": stay, "start": start.isoformat()})
        handled(pipeline, nats, publish(nats, event_type, data, event_id=f"{event_type}-{stay}"))
    found = wait_until(lambda: listed(pipeline, f"&trigger={trigger}&subject=s1"), 20, "the reminder")
    due = (start - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    assert len(found) == 1 and {name: found[0][name] for name in ("reason", "due_at", "cancellable", "template", "trigger", "subject",
                                                                 "source_event_id", "channel")} == {
        "reason": "schedule", "due_at": due, "cancellable": True, "template": "welcome", "trigger": trigger, "subject": "s1",
        "source_event_id": f"{event_type}-s1", "channel": "email"}
    notification = found[0]["id"]
    assert notification in pipeline.cli("scheduled", "list", "--trigger", trigger, "--subject", "s1")
    done = json.loads(pipeline.cli("cancel", notification, "--json"))
    assert done == {"id": notification, "status": "suppressed", "reason_code": "cancelled"}
    wait_until(lambda: shown(pipeline, notification) == ("suppressed", "cancelled"), 20, "the end in history")
    assert listed(pipeline, f"&trigger={trigger}&subject=s1") == [] and len(listed(pipeline, f"&trigger={trigger}&subject=s2")) == 1
    assert json.loads(pipeline.cli("cancel", notification, "--json")) == done  # asked for again
    status = pipeline.status(notification)
    assert status["status"] == "suppressed" and [step["status"] for step in status["timeline"]] == ["scheduled", "suppressed"]
    assert "by API key" in status["reason"]
    handled(pipeline, nats, publish(nats, event_type, data, event_id=f"{event_type}-s1"))
    assert pipeline.run_cli("cancel", "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV").returncode != 0


def test_a_cancelled_notification_is_never_sent(pipeline):
    address = new_address()
    gone, stays = send(pipeline, address, later(seconds=3)), send(pipeline, address, later(seconds=3))
    waits(pipeline, gone)
    assert cancel(pipeline, gone) == (200, {"id": gone, "status": "suppressed", "reason_code": "cancelled"})
    wait_until(lambda: shown(pipeline, stays)[0] == "sent", 20, "the other one")
    assert len(mails_to(pipeline, address)) == 1 and shown(pipeline, gone) == ("suppressed", "cancelled")


def test_what_does_not_wait_is_409_and_what_is_not_there_404(pipeline):
    address = new_address()
    status, answer = call(pipeline, "POST", "/v1/notifications", {"to": address, "template": "welcome", "variables": {"name": "A"}})
    wait_until(lambda: shown(pipeline, answer["id"])[0] == "sent", 20, "the mail")
    status, problem = cancel(pipeline, answer["id"])
    assert status == 409 and problem["type"].endswith("not-waiting") and "'sent'" in problem["detail"]
    for unknown in ("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ntf_x", "%27"):
        assert cancel(pipeline, unknown)[0] == 404
    other = json.loads(pipeline.cli("apikey", "create", "--name", "platform", "--json", tenant="platform"))["key"]
    waiting = send(pipeline, address, later(days=1))
    waits(pipeline, waiting)
    wait_until(lambda: cancel(pipeline, waiting, other)[0] != 401, 20, "the other tenant's key")
    assert cancel(pipeline, waiting, other)[0] == 404 and is_listed(pipeline, waiting)  # another tenant's
    reader = json.loads(pipeline.cli("apikey", "create", "--name", "reader", "--scopes", "read", "--json"))["key"]
    wait_until(lambda: call(pipeline, "GET", "/v1/scheduled", key=reader)[0] == 200, 20, "the reader's key")
    assert cancel(pipeline, waiting, reader)[0] == 403
    assert cancel(pipeline, waiting)[0] == 200


@pytest.mark.parametrize("query,field", [
    ("reason=saga", "reason"), ("recipient_id=bob", "recipient_id"), ("due_before=noon", "due_before"), ("trigger=a", "subject"),
    ("subject=a", "trigger"),
])
def test_a_bad_filter_names_its_field(pipeline, query, field):
    status, problem = call(pipeline, "GET", f"/v1/scheduled?{query}")
    assert status == 422 and problem["field"] == field


def test_the_list_has_pages_in_the_order_of_the_due_times_and_filters(pipeline):
    recipient, _, _ = new_person(pipeline)
    at = [later(days=30, seconds=n) for n in (3, 1, 2)]
    body = {"recipient_id": recipient, "template": "welcome", "variables": {"name": "A"}}
    made = [call(pipeline, "POST", "/v1/notifications", {**body, "scheduled_for": when})[1]["id"] for when in at]
    for notification in made:
        waits(pipeline, notification)
    want = [made[1], made[2], made[0]]
    query = f"/v1/scheduled?recipient_id={recipient}&limit=2"
    _, first = call(pipeline, "GET", query)
    _, second = call(pipeline, "GET", f"{query}&cursor={first['next']}")
    assert [item["id"] for item in first["data"] + second["data"]] == want and second["next"] is None
    assert {item["recipient_id"] for item in first["data"]} == {recipient}
    assert [item["id"] for item in listed(pipeline, f"&recipient_id={recipient}&due_before={at[2].replace('+', '%2B')}")] == [made[1]]
    assert listed(pipeline, f"&recipient_id={recipient}&reason=quiet") == []


# ---- digests --------------------------------------------------------------------------------------------------------------


def test_an_item_of_an_open_digest_is_listed_and_cancelled(pipeline):
    recipient, _, _ = new_person(pipeline)
    pipeline.cli("template", "put", "digest-social", "--category", "social", "--subject", "{{digest_total}} news", "--text",
                 pipeline.folder / "welcome.txt")
    weekly = [{"category": "social", "channel": "email", "frequency": "weekly"}]
    status, answer = call(pipeline, "PUT", f"/v1/recipients/{recipient}/preferences", weekly)
    assert status in (200, 204), answer
    body = {"recipient_id": recipient, "template": "welcome", "variables": {"name": "A"}, "category": "social"}

    def gathered():
        notification = call(pipeline, "POST", "/v1/notifications", body)[1]
        return notification["status"] == "scheduled" and notification["id"]
    first = wait_until(gathered, 20, "the preference at the gate")
    second = gathered()
    item = waits(pipeline, first)
    assert item["reason"] == "digest" and item["digest_window_id"].startswith("dgw_") and item["cancellable"]
    assert cancel(pipeline, first)[0] == cancel(pipeline, first)[0] == 200
    wait_until(lambda: shown(pipeline, first) == ("suppressed", "cancelled"), 20, "the end in history")
    assert is_listed(pipeline, first) == [] and is_listed(pipeline, second)


# ---- races and crashes ----------------------------------------------------------------------------------------------------


def test_cancelling_while_it_becomes_due_is_either_never_sent_or_409(pipeline):
    """Hundreds are cancelled from four connections in the second in which they are due: each answer says what then happens."""
    address, due = new_address(), datetime.now(timezone.utc) + timedelta(seconds=5)
    # A row each, due over half a second.
    ids = [send(pipeline, address, (due + timedelta(milliseconds=5 * n)).isoformat()) for n in range(120)]
    waits(pipeline, ids[-1])
    time.sleep(max(0, (due - datetime.now(timezone.utc)).total_seconds() - 0.1))
    with ThreadPoolExecutor(4) as pool:
        answers = dict(pool.map(lambda i: (i, cancel(pipeline, i)[0]), ids[::-1]))
    assert set(answers.values()) <= {200, 409}
    sent = [i for i, status in answers.items() if status == 409]
    wait_until(lambda: len(mails_to(pipeline, address)) >= len(sent), 30, "what was due")
    wait_until(lambda: all(shown(pipeline, i) == ("suppressed", "cancelled") for i in ids if i not in sent), 20, "the ends")
    assert len(mails_to(pipeline, address)) == len(sent)
    assert 0 < len(sent) < len(ids), "one side of the race did not happen"


def test_a_deferral_that_comes_again_after_its_cancellation_is_not_sent(pipeline, nats):
    """Killed between the commit and the ack, the scheduler gets the deferral again; its row may be gone by then. And a scheduler
    that dies with a cancelled row reports its end once."""
    address = new_address()
    notification = send(pipeline, address, later(seconds=4))
    waits(pipeline, notification)
    pipeline.services["digest-flusher"].kill()
    assert cancel(pipeline, notification)[0] == 200  # while no scheduler is there
    pipeline.services["digest-flusher"].start()
    wait_until(lambda: shown(pipeline, notification) == ("suppressed", "cancelled"), 20, "the end in history")
    row = "SELECT count(*) FROM digest_flusher.due_work WHERE notification_id = %s"
    wait_until(lambda: pipeline.postgres.query(row, notification)[0][0] == 0, 20, "the row's end")
    last = nats.stream_info("DEFERRED")["state"]["last_seq"]
    again = [m for m in (nats.message("DEFERRED", seq=seq) for seq in range(max(1, last - 50), last + 1)) if m and notification.encode() in m[1]]
    for subject, payload in again:
        nats.publish(subject, payload)
    assert again
    time.sleep(5)
    assert mails_to(pipeline, address) == [] and shown(pipeline, notification) == ("suppressed", "cancelled")
