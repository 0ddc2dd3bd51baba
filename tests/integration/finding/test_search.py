# SPDX-License-Identifier: Apache-2.0
"""Customer service finds what went to a customer (A10, A71, B19): by recipient, address, correlation id, source event, batch, template,
vendor's id and what became of it. Before the search index GET /v1/notifications was 404."""
import json
import re
import uuid
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import pytest

from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import call
from tests.integration.sending.test_triggers_people import new_person


def when(**delta):
    return quote((datetime.now(timezone.utc) + timedelta(**delta)).isoformat())


def send(pipeline, **fields):
    status, answer = call(pipeline, "POST", "/v1/notifications", {"template": "welcome", "variables": {"name": "A"}, **fields})
    assert status == 202, answer
    return answer["id"]


def new_address():
    return f"{uuid.uuid4().hex}@example.com"


def page(pipeline, query, path="/v1/notifications", key=None):
    status, answer = call(pipeline, "GET", f"{path}?{query}", key=key)
    assert status == 200, answer
    return answer


def found(pipeline, query, path="/v1/notifications", key=None):
    return [item["id"] for item in page(pipeline, query, path, key)["data"]]


def wait_found(pipeline, query, ids, path="/v1/notifications"):
    wait_until(lambda: set(found(pipeline, query, path)) == set(ids), 20, f"{query} finding {ids}")


def refusal(pipeline, query, status=400, path="/v1/notifications"):
    got, answer = call(pipeline, "GET", f"{path}?{query}")
    assert got == status, answer
    return answer


# ---- the story ------------------------------------------------------------------------------------------------------------


def test_support_finds_what_went_to_a_customer(pipeline):
    recipient, _, address = new_person(pipeline)
    order = f"order-{uuid.uuid4().hex}"
    first = send(pipeline, recipient_id=recipient, correlation_id=order, source_event_id=f"{order}-placed")
    second = send(pipeline, to=address, correlation_id=order)
    other = send(pipeline, to=new_address())
    wait_found(pipeline, f"recipient_id={recipient}", [first])
    wait_found(pipeline, f"address={quote(address)}", [first, second])
    wait_found(pipeline, f"correlation_id={order}", [first, second])
    wait_found(pipeline, f"source_event={order}-placed", [first])
    wait_found(pipeline, "", [first], path=f"/v1/recipients/{recipient}/notifications")
    wait_until(lambda: pipeline.history_count("status = 'sent' AND id = ANY (ARRAY['%s', '%s', '%s'])" % (first, second, other)) == 3, 20, "all sent")
    assert found(pipeline, f"correlation_id={order}") == [second, first]  # the newest first
    item = page(pipeline, f"source_event={order}-placed")["data"][0]
    alone = call(pipeline, "GET", f"/v1/notifications/{first}")[1]
    assert item == {name: value for name, value in alone.items() if name != "attempts"}
    assert item["status"] == "sent" and item["correlation_id"] == order and item["recipient_id"] == recipient
    assert first not in found(pipeline, f"address={quote(address.upper())}&recipient_id={new_person(pipeline)[0]}")
    assert set(found(pipeline, f"address={quote(address.upper())}")) == {first, second}  # however it is written


def test_filters_narrow_what_the_index_names(pipeline):
    order = f"order-{uuid.uuid4().hex}"
    sent = send(pipeline, to=new_address(), correlation_id=order, category="security")
    kept = send(pipeline, to=new_address(), correlation_id=order, scheduled_for=(datetime.now(timezone.utc) + timedelta(days=2)).isoformat())
    wait_found(pipeline, f"correlation_id={order}", [sent, kept])
    wait_until(lambda: found(pipeline, f"correlation_id={order}&status=sent") == [sent], 20, "the one that is sent")
    assert found(pipeline, f"correlation_id={order}&status=scheduled") == [kept]
    assert found(pipeline, f"correlation_id={order}&category=security") == [sent]
    assert found(pipeline, f"correlation_id={order}&channel=sms") == []
    assert found(pipeline, f"correlation_id={order}&template=farewell") == []
    assert set(found(pipeline, f"correlation_id={order}&from={when(hours=-1)}&to={when(minutes=1)}")) == {sent, kept}
    assert found(pipeline, f"correlation_id={order}&to={when(hours=-1)}") == []
    assert found(pipeline, f"correlation_id={order}&from={when(minutes=1)}") == []


def test_a_span_is_looked_through_by_what_has_no_index(pipeline):
    before = datetime.now(timezone.utc)
    ids = [send(pipeline, to=new_address()) for _ in range(3)]
    wait_until(lambda: pipeline.history_count(f"status = 'sent' AND id = ANY (ARRAY{ids})") == 3, 20, "all sent")
    span = f"from={quote(before.isoformat())}&to={when(minutes=1)}"
    answer = page(pipeline, f"status=sent&{span}")
    assert [item["id"] for item in answer["data"]] == ids[::-1] and "lag_seconds" not in answer
    assert found(pipeline, f"status=sent&channel=email&category=transactional&{span}") == ids[::-1]
    assert found(pipeline, f"channel=sms&{span}") == [] and found(pipeline, f"category=billing&{span}") == []
    pages, cursor = [], ""
    while cursor is not None:
        answer = page(pipeline, f"{span}&limit=1{cursor and '&cursor=' + cursor}")
        pages.append([item["id"] for item in answer["data"]])
        cursor = answer["next"]
    assert [item for one in pages for item in one] == ids[::-1] and max(map(len, pages)) == 1


def test_a_mail_is_found_by_what_became_of_it_and_by_its_message_id(pipeline):
    address = f"{uuid.uuid4().hex}@example.com"
    pipeline.mailbox.answer("550 5.1.1 no such user")
    failed = send(pipeline, to=address)
    wait_until(lambda: failed in found(pipeline, "status=failed") + found(pipeline, "status=bounced"), 20, "it among the ends")
    state = call(pipeline, "GET", f"/v1/notifications/{failed}")[1]["status"]
    assert found(pipeline, f"status={state}&address={quote(address)}") == [failed]
    sent = send(pipeline, to=new_address())
    mail = wait_until(lambda: pipeline.mailbox.for_notification(sent), 20, "the mail")[0]
    message_id = mail["Message-ID"].strip()
    wait_found(pipeline, f"vendor_message_id={quote(message_id)}", [sent])
    assert found(pipeline, f"vendor_message_id={quote(message_id[1:-1])}") == [sent]
    assert found(pipeline, "vendor_message_id=SM-of-none") == []


def test_a_batchs_notifications_are_listed_page_by_page(pipeline):
    name = f"b-{uuid.uuid4().hex[:8]}"
    status, batch = call(pipeline, "POST", "/v1/batches", {"template": "welcome", "name": name})
    assert status in (201, 202), batch
    rows = b"".join(json.dumps({"to": new_address(), "variables": {"name": "A"}}).encode() + b"\n" for _ in range(7))
    status, answer = call(pipeline, "PUT", f"/v1/batches/{batch['id']}/members?part=1", rows, headers={"Content-Type": "application/x-ndjson"})
    assert status in (200, 201, 202), answer
    path = f"/v1/batches/{batch['id']}/notifications"
    empty = page(pipeline, "", path)
    assert (empty["data"], empty["next"], empty["waits_for"]) == ([], None, "start") and "lag_seconds" in empty
    assert page(pipeline, "status=sent", path)["waits_for"] == "start"
    status, answer = call(pipeline, "POST", f"/v1/batches/{batch['id']}/start")
    assert status in (200, 202), answer
    seen = page(pipeline, "", path)
    assert seen["data"] or seen["waits_for"] in ("acceptance", "index")
    wait_until(lambda: len(found(pipeline, "", path)) == 7, 30, "all members")
    wait_until(lambda: len(found(pipeline, "status=sent", path)) == 7, 30, "all members sent")
    assert found(pipeline, "status=failed", path) == []
    pages, cursor = [], ""
    while cursor is not None:
        answer = page(pipeline, f"limit=3{cursor and '&cursor=' + cursor}", path)
        pages.append([item["id"] for item in answer["data"]])
        cursor = answer["next"]
    assert list(map(len, pages)) == [3, 3, 1]
    assert {item for one in pages for item in one} == set(found(pipeline, f"batch_id={batch['id']}"))
    assert "waits_for" not in page(pipeline, "", path) and "waits_for" not in page(pipeline, "status=failed", path)


def test_an_empty_page_of_a_batch_says_what_it_waits_for(pipeline):
    """As the batch stands: each of its states, written where ingest writes it."""
    batch = call(pipeline, "POST", "/v1/batches", {"template": "welcome", "name": "stands"})[1]["id"]
    path = f"/v1/batches/{batch}/notifications"
    for change, waits in (("status = 'scheduled'", "scheduled_for"), ("status = 'running'", "acceptance"), ("status = 'running', paused = true", "resume"),
                          ("status = 'running', paused = false, accepted = 3", "index"), ("status = 'completed', ended_at = now() + interval '1 hour'", "index"),
                          ("ended_at = now() - interval '1 hour'", None), ("status = 'cancelled', accepted = 0, ended_at = now()", None),
                          ("status = 'failed'", None)):
        # A lease of another process: none of ours runs it meanwhile.
        pipeline.postgres.query(f"UPDATE ingest.batches SET holder = 'elsewhere', lease_until = now() + interval '1 hour', {change} WHERE id = %s", batch)
        answer = page(pipeline, "", path)
        assert (answer["data"], answer["waits_for"]) == ([], waits), change


# ---- bad input, other tenants ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query, field", [
    ("recipient=rcp_1", "recipient"), ("recipient_id=rcp_1&recipient_id=rcp_2", "recipient_id"), ("status=failed&cursor=abc", "cursor"),
    ("channel=email", "from"), ("", "from")])
def test_a_question_that_is_none_is_400_that_names_it(pipeline, query, field):
    assert refusal(pipeline, query)["field"] == field


@pytest.mark.parametrize("what, since, until", [("status=sent", -72, 0), ("category=billing", -30, -1)])
def test_a_question_without_an_index_is_about_a_day_at_most(pipeline, what, since, until):
    assert refusal(pipeline, f"{what}&from={when(hours=since)}&to={when(hours=until)}")["field"] == "from"


@pytest.mark.parametrize("query, field", [
    ("recipient_id=alice", "recipient_id"), ("address=%20", "address"), ("batch_id=1", "batch_id"), ("template=A%20B", "template"),
    ("status=gone", "status"), ("channel=fax", "channel"), ("category=gossip", "category"), ("correlation_id=x&from=yesterday", "from"),
    ("correlation_id=x&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "to"), ("correlation_id=" + "x" * 257, "correlation_id"),
    ("correlation_id=x&limit=0", "limit"), ("status=unknown&vendor_message_id=x", "status")])
def test_a_value_that_is_none_is_422_that_names_its_field(pipeline, query, field):
    assert refusal(pipeline, query, 422)["field"] == field


def test_a_list_of_what_there_is_not_is_404_and_of_who_got_nothing_empty(pipeline):
    recipient = new_person(pipeline)[0]
    assert page(pipeline, "", f"/v1/recipients/{recipient}/notifications")["data"] == []
    unknown = "rcp_01M82XS89VEV77VD8AS0MCM001"
    assert "notifications" in refusal(pipeline, "", 404, f"/v1/recipients/{unknown}/notifications")["detail"]
    refusal(pipeline, "", 404, "/v1/batches/dbt_01M82XS89VEV77VD8AS0MCM001/notifications")
    refusal(pipeline, "status=failed", 404, "/v1/batches/dbt_01M82XS89VEV77VD8AS0MCM001/notifications")
    assert refusal(pipeline, "", 422, "/v1/recipients/alice/notifications")["field"] == "recipient_id"


def test_another_tenant_finds_nothing_and_its_cursor_is_none(pipeline):
    order = f"order-{uuid.uuid4().hex}"
    ids = [send(pipeline, to=new_address(), correlation_id=order) for _ in range(3)]
    wait_found(pipeline, f"correlation_id={order}", ids)
    cursor = page(pipeline, f"correlation_id={order}&limit=1")["next"]
    name = f"t{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", name, "--name", "Globex", "--sender", f"hello@{name}.test", "--sender-name", "Globex")
    other = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=name))["key"]
    wait_until(lambda: call(pipeline, "GET", f"/v1/notifications?correlation_id={order}", key=other)[0] == 200, 20, "the other tenant's key")
    assert found(pipeline, f"correlation_id={order}", key=other) == []
    assert found(pipeline, f"from={when(hours=-1)}&to={when(minutes=1)}", key=other) == []
    recipient = new_person(pipeline)[0]
    assert call(pipeline, "GET", f"/v1/recipients/{recipient}/notifications", key=other)[0] == 404
    batch = call(pipeline, "POST", "/v1/batches", {"template": "welcome", "name": "ours"})[1]["id"]
    assert [call(pipeline, "GET", f"/v1/batches/{batch}/notifications", key=key)[0] for key in (None, other)] == [200, 404]
    status, answer = call(pipeline, "GET", f"/v1/notifications?correlation_id={order}&cursor={cursor}", key=other)
    assert status == 400 and answer["field"] == "cursor"
    assert refusal(pipeline, f"correlation_id={order}x&cursor={cursor}")["field"] == "cursor"
    assert found(pipeline, f"correlation_id={order}&cursor={cursor}") == ids[:2][::-1]


def test_a_key_that_may_not_read_notifications_is_told_the_scope(pipeline):
    key = json.loads(pipeline.cli("apikey", "create", "--name", "templates", "--scopes", "templates:read", "--json"))["key"]
    wait_until(lambda: call(pipeline, "GET", "/v1/templates", key=key)[0] == 200, 20, "the key")
    status, answer = call(pipeline, "GET", "/v1/notifications?correlation_id=x", key=key)
    assert status == 403 and "notifications:read" in answer["detail"]


# ---- the index ------------------------------------------------------------------------------------------------------------


def test_the_index_names_no_address_and_no_callers_id(pipeline):
    address, order = new_address(), f"order-{uuid.uuid4().hex}"
    ids = [send(pipeline, to=address, correlation_id=order)]
    wait_found(pipeline, f"correlation_id={order}", ids)
    rows = pipeline.postgres.query("SELECT e::text FROM find.entries e WHERE notification_id = ANY (%s)", ids)
    assert len(rows) == 3 and not any(text in row[0] for row in rows for text in (address, order, "welcome"))


def test_an_answer_says_how_fresh_it_is_and_a_rebuild_finds_the_same_again(pipeline):
    order = f"order-{uuid.uuid4().hex}"
    ids = [send(pipeline, to=new_address(), correlation_id=order) for _ in range(5)]
    wait_found(pipeline, f"correlation_id={order}", ids)
    wait_until(lambda: page(pipeline, f"correlation_id={order}")["lag_seconds"] < 2, 20, "an index that has caught up")
    pipeline.postgres.query("DELETE FROM find.entries WHERE notification_id = ANY (%s)", ids)
    assert found(pipeline, f"correlation_id={order}") == []
    done = pipeline.run_cli("rebuild", "find", admin=True)
    assert done.returncode == 0 and re.search(r"\d+ events in ", done.stdout), done.stdout + done.stderr
    assert set(found(pipeline, f"correlation_id={order}")) == set(ids)
    assert pipeline.run_cli("rebuild", "find", "--dry-run", admin=True).returncode == 2
    assert "projection find" in pipeline.run_cli("doctor", admin=True).stdout
