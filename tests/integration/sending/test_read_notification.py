# SPDX-License-Identifier: Apache-2.0
"""`Location` of the 202 can be read (audit of domain.md: finding 6, row 1f): GET /v1/notifications/{id}, from the accept log until history
has the notification, and the clients of deploy/examples/http as their users run them."""
import concurrent.futures
import http.client
import json
import os
import shutil
import subprocess
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import HOME, wait_until
from tests.harness.upstream import Upstream

EXAMPLES = HOME / "deploy" / "examples" / "http"


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "1,1"}).start()
    yield pipeline
    pipeline.stop()


def _get(pipeline, path, key=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {key or pipeline.key}", **(headers or {})})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def _post(pipeline, body, key=None, **headers):
    """(status, Location, answer)"""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    connection.request("POST", "/v1/notifications", json.dumps(body), {"Authorization": f"Bearer {key or pipeline.key}", **headers})
    answer = connection.getresponse()
    return answer.status, answer.getheader("Location"), json.loads(answer.read())


def _mail(to="alice@example.com", **fields):
    return {"to": to, "template": "welcome", "variables": {"name": "Alice"}, **fields}


def _key(pipeline, scopes, tenant="acme"):
    made = pipeline.run_cli("apikey", "create", "--name", f"k{uuid.uuid4().hex[:8]}", "--scopes", scopes, "--json", tenant=tenant)
    assert made.returncode == 0, made.stderr
    key = json.loads(made.stdout)["key"]
    wait_until(lambda: _get(pipeline, "/v1/nothing", key)[0] != 401, 20, "the key reaching gateway")
    return key


def _shown(pipeline, place, status):
    """What stands there, once it has this status."""
    last = {}

    def reached():
        nonlocal last
        code, last = _get(pipeline, place)
        assert code == 200, last
        return last["status"] == status
    wait_until(reached, 30, f"{place} being {status}, last {last}")
    return last


def test_the_location_of_a_202_leads_to_the_notification_until_its_end(pipeline):
    status, place, answer = _post(pipeline, _mail(correlation_id="order-17", priority="high"))
    assert status == 202 and place == f"/v1/notifications/{answer['id']}"
    shown = _shown(pipeline, place, "sent")
    assert shown["id"] == answer["id"] and shown["correlation_id"] == "order-17" and shown["priority"] == "high"
    assert (shown["channel"], shown["category"], shown["template"]) == ("email", "transactional", "welcome")
    assert shown["queued_at"] <= shown["rendered_at"] <= shown["sent_at"] and "ended_at" not in shown and "reason_code" not in shown


def test_a_refused_mail_shows_why(pipeline):
    pipeline.mailbox.answer("550 5.1.1 no such user")
    place = _post(pipeline, _mail("refused@example.com"))[1]
    shown = _shown(pipeline, place, "failed")
    assert shown["reason_code"] == "invalid_address" and "no such user" in shown["reason"] and "ended_at" in shown, shown


def test_the_timeline_shows_each_status_and_the_attempts_what_the_vendor_said(pipeline):
    """Row 28a, `GET /v1/notifications/{id}` with its timeline; each by a route of its own too."""
    pipeline.mailbox.answer("451 4.7.1 greylisted, try again", times=1)
    place = _post(pipeline, _mail("grey@example.com"))[1]
    _shown(pipeline, place, "sent")
    code, whole = _get(pipeline, f"{place}?include=timeline,attempts")
    assert code == 200
    steps = [(step["status"], step.get("attempt")) for step in whole["timeline"]]
    assert steps == [("queued", None), ("rendered", None), ("sending", 1), ("sent", 2)], whole
    assert [step["at"] for step in whole["timeline"]] == sorted(step["at"] for step in whole["timeline"])
    assert whole["timeline"][2]["code"] == "451" and "greylisted" in whole["timeline"][2]["reason"]
    first, second = whole["attempts"]
    assert (first["vendor"], first["outcome"], first["code"], first["enhanced_code"]) == ("smtp", "rejected_retryable", "451", "4.7.1")
    assert "greylisted" in first["reply"] and second["outcome"] == "accepted" and second["was_unknown"] is False
    assert _get(pipeline, f"{place}/timeline") == (200, {"id": whole["id"], "status": "sent", "timeline": whole["timeline"]})
    code, page = _get(pipeline, f"{place}/attempts?limit=1")
    assert code == 200 and page["data"] == [first], page
    assert _get(pipeline, f"{place}/attempts?limit=1&cursor={page['next']}") == (200, {"data": [second], "next": None})
    assert _get(pipeline, f"{place}/attempts")[1]["data"] == whole["attempts"]
    plain = _get(pipeline, place)[1]
    assert "timeline" not in plain and "reply" not in plain["attempts"][0], "without include it is as it was"
    other = _post(pipeline, _mail())[1]
    code, problem = _get(pipeline, f"{other}/attempts?limit=1&cursor={page['next']}")
    assert (code, problem["field"]) == (400, "cursor"), problem
    code, problem = _get(pipeline, f"{place}?include=timeline,secrets")
    assert (code, problem["field"]) == (400, "include") and "'secrets' is unknown; of timeline" in problem["detail"], problem


def test_a_repeat_with_the_same_idempotency_key_leads_to_the_same_place(pipeline):
    headers = {"Idempotency-Key": f"order-{uuid.uuid4()}"}
    first, again = _post(pipeline, _mail(), **headers), _post(pipeline, _mail(), **headers)
    assert first[1] == again[1] == f"/v1/notifications/{first[2]['id']}"


def test_a_repeat_gets_its_answer_also_when_it_would_be_refused_by_now(pipeline, tmp_path):
    """Capability 1c, "the same key and body gets the same answer": a newer version, which the body does not name, requires more; a time has passed."""
    words = tmp_path / "words.txt"
    words.write_text("Hello {{name}}")
    pipeline.cli("template", "put", "growing", "--subject", "Hello", "--text", words, "--require", "name")
    expires = (datetime.now(timezone.utc) + timedelta(seconds=3)).isoformat()
    body, key = _mail(template="growing", expires_at=expires), {"Idempotency-Key": f"order-{uuid.uuid4()}"}
    wait_until(lambda: _post(pipeline, _mail(template="growing"))[0] == 202, 20, "the template reaching ingest")
    first = _post(pipeline, body, **key)
    assert first[0] == 202, first
    pipeline.cli("template", "put", "growing", "--subject", "Hello", "--text", words, "--require", "name", "--require", "surname")
    wait_until(lambda: _post(pipeline, _mail(template="growing"))[0] == 422, 20, "the version that requires more")
    wait_until(lambda: "expires_at" in json.dumps(_post(pipeline, body)[2]), 10, "its time having passed")
    assert _post(pipeline, body, **key) == first
    other = _post(pipeline, _mail("other@example.com", template="growing"), **key)
    assert other[0] == 422 and "surname" in json.dumps(other[2]), "another body is judged as it is"
    assert _post(pipeline, body, **{"Idempotency-Key": f"order-{uuid.uuid4()}"})[0] == 422


def test_an_array_has_no_location_and_each_of_its_ids_can_be_read(pipeline):
    status, place, answer = _post(pipeline, [_mail("a@example.com"), _mail("b@example.com")])
    assert status == 202 and place is None
    for one in answer["notifications"]:
        assert _get(pipeline, f"/v1/notifications/{one['id']}")[0] == 200


def test_what_history_does_not_have_yet_is_shown_from_the_accept_log(pipeline):
    """With the archiver away history learns of nothing: every 202 can still be read, with the status of its answer."""
    pipeline.services["archiver"].stop()
    try:
        asked = [_post(pipeline, _mail(f"early{n}@example.com")) for n in range(20)]
        later = _post(pipeline, _mail(scheduled_for="2026-12-31T00:00:00Z", correlation_id="new-year"))
        pipeline.cli("suppress", "add", "stop@example.com")
        wait_until(lambda: _post(pipeline, _mail("stop@example.com"))[2]["status"] == "suppressed", 20, "the suppression")
        refused = _post(pipeline, _mail("stop@example.com"))
        assert pipeline.history_count(f"id = '{asked[0][2]['id']}'") == 0
        for _, place, answer in asked:
            code, shown = _get(pipeline, place)
            assert (code, shown["status"], shown["template"]) == (200, "queued", "welcome"), shown
        shown = _get(pipeline, later[1])[1]
        assert shown["status"] == "scheduled" and shown["scheduled_for"] == "2026-12-31T00:00:00.000000Z", shown
        assert shown["correlation_id"] == "new-year"
        shown = _get(pipeline, refused[1])[1]
        assert (shown["status"], shown["reason_code"]) == ("suppressed", "manual") and "ended_at" in shown
        step, = _get(pipeline, f"{refused[1]}/timeline")[1]["timeline"]
        assert (step["status"], step["reason_code"], step["at"]) == ("suppressed", "manual", shown["ended_at"])
        assert _get(pipeline, f"{refused[1]}/attempts") == (200, {"data": [], "next": None})
    finally:
        pipeline.services["archiver"].start()
    shown = _shown(pipeline, asked[0][1], "sent")
    assert shown["sent_at"]


def test_another_tenants_notification_is_not_there(pipeline):
    """404 for the other tenant's key, also while only the accept log has it; and for what is no id, or was never given."""
    pipeline.cli("tenant", "put", "other", "--name", "Other", "--sender", "hello@other.test", tenant="other")
    other = _key(pipeline, "admin", "other")
    place = _post(pipeline, _mail())[1]
    assert _get(pipeline, place)[0] == 200
    code, problem = _get(pipeline, place, other)
    assert code == 404 and problem["type"] == "urn:stentor:problem:not-found"
    _shown(pipeline, place, "sent")
    for what in ("", "?include=timeline,attempts", "/timeline", "/attempts"):
        assert _get(pipeline, place + what, other)[0] == 404, what
    code, shown = _get(pipeline, place, pipeline.operator_key, {"Stentor-Tenant": "acme"})
    assert code == 200 and shown["status"] == "sent"  # the operator names the tenant
    for wrong in ("ntf_nothing", "ntf_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P", "rcp_01M83AVY1NCDCG3Y6T3Y82BH3P"):
        for what in ("", "/timeline", "/attempts"):
            assert _get(pipeline, f"/v1/notifications/{wrong}{what}")[0] == 404, wrong


def test_a_key_that_sends_may_read_what_it_sent_and_one_without_the_scope_may_not(pipeline):
    sender, reader, writer = _key(pipeline, "send"), _key(pipeline, "read"), _key(pipeline, "templates:write")
    status, place, _ = _post(pipeline, _mail(), key=sender)
    assert status == 202
    assert _get(pipeline, place, sender)[0] == 200 and _get(pipeline, place, reader)[0] == 200
    code, problem = _get(pipeline, place, writer)
    assert code == 403 and "notifications:read" in problem["detail"]


def test_each_class_is_read_from_its_own_partitions(pipeline):
    """The class is in the id, and the row with its attempts is looked for among the partitions of that class alone."""
    place = _post(pipeline, _mail("classes@example.com"))[1]
    _shown(pipeline, place, "sent")
    expected = wait_until(lambda: _get(pipeline, f"{place}?include=attempts")[1]["attempts"], 20, "its attempt in history")
    assert [(one["vendor"], one["outcome"]) for one in expected] == [("smtp", "accepted")]
    mail = place.rsplit("/", 1)[1]
    for letter in "SB":
        other = f"{mail[:14]}{letter}{mail[15:]}"
        for table, column in (("notifications", "id"), ("delivery_attempts", "notification_id")):
            pipeline.postgres.query(
                f"INSERT INTO archiver.{table} SELECT (jsonb_populate_record(t, jsonb_build_object('{column}', %s::text, 'retention_class', %s::text))).*"
                f" FROM archiver.{table} t WHERE {column} = %s", other, letter, mail)
        code, shown = _get(pipeline, place.replace(mail, other) + "?include=attempts")
        assert (code, shown["id"], shown["status"], shown["attempts"]) == (200, other, "sent", expected), shown


def test_those_asked_at_once_are_read_together_and_each_gets_its_own(pipeline):
    """Two questions wait in Postgres, so what comes meanwhile is asked together: of two tenants, three classes, of none, with and without late events."""
    pipeline.cli("tenant", "put", "together", "--name", "Together", "--sender", "hello@together.test", tenant="together")
    keys = {"acme": pipeline.key, "together": _key(pipeline, "admin", "together")}
    places = [("acme", _post(pipeline, _mail(f"t{n}@example.com", correlation_id=f"t{n}"))[1]) for n in range(6)]
    _shown(pipeline, places[0][1], "sent")
    for letter, (_, place) in zip("SB", places[:2]):
        mail = wait_until(lambda place=place: _get(pipeline, f"{place}?include=attempts")[1].get("attempts") and place.rsplit("/", 1)[1], 20, "its attempt")
        other = f"{mail[:14]}{letter}{mail[15:]}"
        for table, column in (("notifications", "id"), ("delivery_attempts", "notification_id")):
            pipeline.postgres.query(
                f"INSERT INTO archiver.{table} SELECT (jsonb_populate_record(t, jsonb_build_object('{column}', %s::text, 'retention_class', %s::text))).*"
                f" FROM archiver.{table} t WHERE {column} = %s", other, letter, mail)
        places.append(("acme", f"/v1/notifications/{other}"))
    places += [("together", places[0][1]), ("acme", "/v1/notifications/ntf_01M83AVY1NCDCG3Y6T3Y82BH3P")]

    def ask(one):
        return _get(pipeline, f"{one[1]}?include=attempts,timeline", keys[one[0]])

    def at_once():
        blocker = pipeline.postgres.connect("postgres", "stentor")
        with blocker.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(2 * len(places)) as pool:
            cursor.execute("BEGIN; LOCK TABLE archiver.notifications_record IN ACCESS EXCLUSIVE MODE")
            asked = [pool.submit(ask, place) for place in 2 * places]
            time.sleep(1)
            assert not any(answer.done() for answer in asked)
            waiting = pipeline.postgres.query("SELECT count(*) FROM pg_stat_activity WHERE usename = 'stentor_gateway' AND wait_event_type = 'Lock'")[0][0]
            assert waiting == 2, "all others wait in the gateway"
            cursor.execute("ROLLBACK")
            answers = [answer.result(30) for answer in asked]
        blocker.close()
        return answers
    for _, place in places[:6]:
        _shown(pipeline, place, "sent")
        wait_until(lambda place=place: _get(pipeline, f"{place}?include=attempts")[1]["attempts"], 20, "its attempt")
    alone = [ask(place) for place in places]
    assert [code for code, _ in alone] == [200] * 8 + [404] * 2 and len({shown.get("id") for code, shown in alone if code == 200}) == 8, alone

    def same(answer):
        return answer[0], {name: value for name, value in answer[1].items() if name not in ("instance", "request_id")}
    assert [same(answer) for answer in at_once()] == 2 * [same(answer) for answer in alone]
    pipeline.postgres.query(
        "INSERT INTO archiver.late_notifications (created_at, retention_class, id, tenant_id, channel, status, status_rank, delivered_at)"
        " SELECT created_at, retention_class, id, tenant_id, channel, 'delivered', status_rank + 1, '2026-11-23T10:00:00Z'"
        f" FROM archiver.notifications WHERE id = '{places[2][1].rpartition('/')[2]}'")
    late = [ask(place) for place in places]
    assert late[2][1]["status"] == "delivered" and late[2] != alone[2]
    assert [same(answer) for answer in at_once()] == 2 * [same(answer) for answer in late]


def test_a_failures_reason_holds_no_value_of_the_variables(pipeline):
    """What a helper refuses may be personal: it stands in no status, dead letter or log, though the line does."""
    (pipeline.folder / "priced.txt").write_text("It costs\n{{currency n code}} on {{date at zone=zone}}.\n")
    pipeline.cli("template", "put", "priced", "--subject", "A price", "--text", pipeline.folder / "priced.txt")
    secrets = ("Mallory-5", "Eve/Street-7")
    for code, zone, helper in ((secrets[0], "UTC", "currency"), ("EUR", secrets[1], "date")):
        body = {"to": "alice@example.com", "template": "priced", "variables": {"n": 5, "at": 0, "code": code, "zone": zone}}
        place = wait_until(lambda body=body: _post(pipeline, body)[1], 20, "the template")
        shown = _shown(pipeline, place, "failed")
        assert shown["reason_code"] == "render_failed" and f"line 2, column {1 if helper == 'currency' else 24}: '{helper}': " in shown["reason"], shown
        answers = json.dumps([_get(pipeline, f"{place}/{what}") for what in ("timeline", "why")] + [shown, _get(pipeline, "/v1/dead-letters")])
        assert not any(secret in answers for secret in secrets), answers
    for log in (pipeline.folder / "services").rglob("*.log"):
        said = log.read_text(errors="replace")
        assert not any(secret in said for secret in secrets), log


def test_those_asked_together_fail_together_and_none_waits_twice(pipeline):
    """Two questions wait in Postgres and are ended there: each of them, and all that wait behind them, get 503 with Retry-After at once."""
    place = _post(pipeline, _mail(correlation_id="fails"))[1]
    _shown(pipeline, place, "sent")
    ours = "FROM pg_stat_activity WHERE usename = 'stentor_gateway' AND wait_event_type = 'Lock'"

    def ask(_):
        connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=60)
        connection.request("GET", place, headers={"Authorization": f"Bearer {pipeline.key}"})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Retry-After"), json.loads(answer.read()).get("type")
    blocker = pipeline.postgres.connect("postgres", "stentor")
    with blocker.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(80) as pool:
        cursor.execute("BEGIN; LOCK TABLE archiver.notifications_record IN ACCESS EXCLUSIVE MODE")
        asked = [pool.submit(ask, n) for n in range(80)]  # more than two questions take
        wait_until(lambda: pipeline.postgres.query(f"SELECT count(*) {ours}")[0][0] == 2, 20, "two questions in Postgres")
        time.sleep(1)
        assert not any(answer.done() for answer in asked)
        began = time.monotonic()
        pipeline.postgres.query(f"SELECT pg_terminate_backend(pid) {ours}")
        answers = [answer.result(60) for answer in asked]
        took = time.monotonic() - began
        left = pipeline.postgres.query(f"SELECT count(*) {ours}")[0][0]
        cursor.execute("ROLLBACK")
    blocker.close()
    assert {(status, kind) for status, _, kind in answers} == {(503, "urn:stentor:problem:unavailable")}, answers
    assert all(int(after) >= 1 for _, after, _ in answers)
    assert took < 5 and left == 0, "asked again, they would wait for the lock, or for a statement's ten seconds"
    wait_until(lambda: ask(0)[0] == 200, 20, "a connection")
    with concurrent.futures.ThreadPoolExecutor(80) as pool:
        assert {status for status, _, _ in pool.map(ask, range(80))} == {200}, "nothing is left in the queue"


def test_what_is_archived_is_404_with_the_units_name_and_late_events_count(pipeline):
    """History by class and period: a removed unit is named, and what came after a period was sealed is merged as history's readers do."""
    place = _post(pipeline, _mail(correlation_id="late"))[1]
    _shown(pipeline, place, "sent")
    pipeline.postgres.query(
        "INSERT INTO archiver.late_notifications (created_at, retention_class, id, tenant_id, channel, status, status_rank, delivered_at)"
        " SELECT created_at, retention_class, id, tenant_id, channel, 'delivered', status_rank + 1, '2026-11-23T10:00:00Z'"
        f" FROM archiver.notifications WHERE id = '{place.rpartition('/')[2]}'")
    shown = _get(pipeline, place)[1]
    assert (shown["status"], shown["delivered_at"], shown["correlation_id"]) == ("delivered", "2026-11-23T10:00:00.000000Z", "late")
    old = "/v1/notifications/ntf_01G65Z755ARCDCG3Y6T3Y82BH3"  # of 2022-06-22, class record
    assert _get(pipeline, old)[1]["type"] == "urn:stentor:problem:not-found"
    pipeline.postgres.query(
        "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, state, owner_epoch)"
        " VALUES ('notifications/record/2022-06', 'notifications', 'R', '2022-06-01Z', '2022-07-01Z', 'removed', 1)")
    code, problem = _get(pipeline, old)
    assert (code, problem["type"]) == (404, "urn:stentor:problem:archived") and "notifications/record/2022-06" in problem["detail"]
    assert [_get(pipeline, old + what)[1]["type"] for what in ("/timeline", "/attempts")] == ["urn:stentor:problem:archived"] * 2


# ---- the examples of clients ---------------------------------------------------------------------------------------------------

def _forward(pipeline, request, body):
    """The API's answer as bytes."""
    method, path, _ = request.line.split()
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    kept = {name: request.headers[name] for name in ("authorization", "idempotency-key") if name in request.headers}
    connection.request(method, path, body or None, kept)
    answer = connection.getresponse()
    location = f"Location: {answer.getheader('Location')}\r\n" if answer.getheader("Location") else ""
    content = answer.read()
    head = f"HTTP/1.1 {answer.status} x\r\nContent-Type: application/json\r\n{location}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


def _unkind(pipeline, seen):
    """A front that fails the first four POSTs: no answer, an answer that is lost behind the commit, 503 with Retry-After in seconds and as a date."""
    def script(request, client):
        body = b"".join(request.body())
        if request.line.startswith("POST"):
            seen.append((request.headers.get("idempotency-key"), body))
            if len(seen) == 2:
                assert b" 202 " in _forward(pipeline, request, body)
            if len(seen) <= 2:
                return False
            if len(seen) <= 4:
                after = b"1" if len(seen) == 3 else b"Thu, 26 Nov 2026 17:00:00 GMT"
                client.sendall(b"HTTP/1.1 503 x\r\nContent-Type: application/problem+json\r\nRetry-After: " + after + b"\r\nContent-Length: 2\r\n"
                               b"Connection: close\r\n\r\n{}")
                return False
        client.sendall(_forward(pipeline, request, body))
        return False
    return script


CLIENTS = {
    "python": ["/usr/bin/python3", "send.py"],
    "node": ["node", "send.mjs"],
    "go": ["go", "run", "send.go"],
}


def _run_client(language, api, key, *words):
    program = shutil.which(CLIENTS[language][0])
    if not program:
        pytest.skip(f"no {language} here: apt-get install {'golang-go' if language == 'go' else 'nodejs'}")
    return subprocess.run([program, *CLIENTS[language][1:], *words], cwd=EXAMPLES, capture_output=True, text=True, timeout=180, env={
        "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root"), "STENTOR_API_URL": api, "STENTOR_API_KEY": key})


@pytest.mark.parametrize("language", CLIENTS)
def test_a_client_whose_answers_are_lost_sends_one_mail(pipeline, language):
    """Capability 1: Idempotency-Key and repeats, as an application in this language does it."""
    order, seen = f"order-{uuid.uuid4()}", []
    front = Upstream("front", _unkind(pipeline, seen))
    done = _run_client(language, f"http://{front.address}", pipeline.key, order, f"{language}@example.com", "Alice")
    assert done.returncode == 0, done.stderr
    notification, status = done.stdout.split()
    assert status == "sent"
    assert len(seen) == 5 and len(set(seen)) == 1 and seen[0][0] == f"welcome/{order}"
    assert "503" in done.stderr and pipeline.history_count(f"correlation_id = '{order}'") == 1
    again = _run_client(language, f"http://127.0.0.1:{pipeline.api_port}", pipeline.key, order, f"{language}@example.com", "Alice")
    assert again.stdout.split()[0] == notification  # the program was started again
    assert len(pipeline.mailbox.for_notification(notification)) == 1
    other = _run_client(language, f"http://127.0.0.1:{pipeline.api_port}", pipeline.key, order, f"{language}@example.com", "Bob")
    assert other.returncode == 1 and "another body" in other.stderr, other.stderr
