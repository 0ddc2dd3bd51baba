# SPDX-License-Identifier: Apache-2.0
"""What is put has an ETag, and a put that names one replaces just that: of two at once the second is 412 and changes nothing."""
import http.client
import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.processes import wait_until


def ask(pipeline, method, path, body=None, **headers):
    """(status, ETag, parsed body); if_match becomes If-Match."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    raw = None if body is None else json.dumps(body)
    sent = {"Authorization": f"Bearer {pipeline.key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    try:
        connection.request(method, path, raw, sent)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers["ETag"], json.loads(text) if text else None
    finally:
        connection.close()


def refused(answer, etag):
    """A 412 that says what stands there."""
    status, now, problem = answer
    assert (status, problem["type"]) == (412, "urn:stentor:problem:precondition-failed"), problem
    assert now == etag
    return True


def race(pipeline, method, path, bodies, **headers):
    """All at once; who was stored and who was refused."""
    with ThreadPoolExecutor(len(bodies)) as threads:
        answers = list(threads.map(lambda body: ask(pipeline, method, path, body, **headers), bodies))
    assert {status for status, _, _ in answers} <= {200, 412}, answers
    return [answer for answer in answers if answer[0] == 200]


def test_of_settings_put_at_once_under_one_etag_one_is_stored(pipeline):
    status, etag, shown = ask(pipeline, "GET", "/v1/tenant")
    assert status == 200 and etag.strip('"').isdigit()
    stored = race(pipeline, "PUT", "/v1/tenant", [shown] * 6, If_Match=etag)
    assert len(stored) == 1
    wait_until(lambda: ask(pipeline, "GET", "/v1/tenant")[1] == stored[0][1], 10, "the settings reaching the program")
    assert refused(ask(pipeline, "PUT", "/v1/tenant", shown, If_Match=etag), stored[0][1])
    assert refused(ask(pipeline, "PUT", "/v1/tenant", shown, If_None_Match="*"), stored[0][1])
    assert ask(pipeline, "PUT", "/v1/tenant", shown, If_Match=f'"1", {stored[0][1]}')[0] == 200
    assert ask(pipeline, "PUT", "/v1/tenant", shown, If_Match="*")[0] == 200


@pytest.mark.parametrize("headers, field", [({"If_Match": "4711"}, "If-Match"), ({"If_Match": '"1'}, "If-Match"),
                                            ({"If_None_Match": '"1"'}, "If-None-Match")])
def test_what_is_no_precondition_is_named(pipeline, headers, field):
    shown = ask(pipeline, "GET", "/v1/tenant")[2]
    status, _, problem = ask(pipeline, "PUT", "/v1/tenant", shown, **headers)
    assert (status, problem["field"]) == (400, field), problem


def test_a_trigger_is_made_once_and_replaced_by_who_has_seen_it(pipeline):
    path = f"/v1/triggers/etag-{uuid.uuid4().hex[:8]}"
    body = {"event_type": f"etag.{uuid.uuid4().hex[:8]}", "template": "welcome", "resolver": "address:to"}
    assert ask(pipeline, "PUT", path, body, If_Match="*")[0] == 412, "nothing is there"
    made = race(pipeline, "PUT", path, [body] * 4, If_None_Match="*")
    assert len(made) == 1
    first = made[0][1]
    wait_until(lambda: ask(pipeline, "GET", path)[1] == first, 10, "the trigger reaching the program")
    status, second, _ = ask(pipeline, "PUT", path, {**body, "enabled": False}, If_Match=first)
    assert status == 200 and second != first
    assert refused(ask(pipeline, "PUT", path, body, If_Match=first), second)
    wait_until(lambda: ask(pipeline, "GET", path)[1] == second, 10, "the trigger reaching the program")
    assert refused(ask(pipeline, "DELETE", path, If_Match=first), second)
    assert ask(pipeline, "DELETE", path, If_Match=second)[0] == 204
    wait_until(lambda: ask(pipeline, "GET", path)[0] == 404, 10, "the removal reaching the program")
    assert ask(pipeline, "PUT", path, body, If_Match=second)[0] == 412, "it is gone"
    assert ask(pipeline, "PUT", path, body, If_None_Match="*")[0] == 200, "where one was removed there is none"


def test_a_version_is_moved_by_who_has_seen_it(pipeline):
    key = f"etag-{uuid.uuid4().hex[:8]}"
    document = {"key": key, "version": "1.0.0", "status": "draft", "locales": [{"locale": "en", "subject": "s", "text": "x"}]}
    path = f"/v1/templates/{key}/1.0.0"
    status, draft, _ = ask(pipeline, "POST", "/v1/templates", document, If_None_Match="*")
    assert status == 201
    assert refused(ask(pipeline, "POST", "/v1/templates", document, If_None_Match="*"), draft)
    status, again, _ = ask(pipeline, "POST", "/v1/templates", document, If_Match=draft)
    assert status == 201 and again != draft
    assert refused(ask(pipeline, "POST", f"{path}/activate", If_Match=draft), again)
    stored = race(pipeline, "POST", f"{path}/activate", [None] * 3, If_Match=again)
    assert len(stored) == 1 and stored[0][2]["status"] == "active"
    wait_until(lambda: ask(pipeline, "GET", f"/v1/templates/{key}?version=1.0.0")[1] == stored[0][1], 10, "the version")
    assert refused(ask(pipeline, "POST", f"{path}/archive", If_Match=again), stored[0][1])
    assert ask(pipeline, "POST", f"{path}/archive", If_Match=stored[0][1])[0] == 200


def test_a_person_is_changed_by_who_has_seen_it(pipeline):
    """One subject holds all people of a tenant: others change meanwhile, and that is no conflict."""
    status, first, made = ask(pipeline, "POST", "/v1/recipients", {"name": "Ada"})
    path = f"/v1/recipients/{made['id']}"
    assert status == 201 and ask(pipeline, "GET", path)[1] == first
    assert refused(ask(pipeline, "PUT", path, {"name": "Bob"}, If_None_Match="*"), first)
    for _ in range(3):
        assert ask(pipeline, "POST", "/v1/recipients", {"name": "Other"})[0] == 201
    stored = race(pipeline, "PUT", path, [{"name": f"Ada {i}"} for i in range(5)], If_Match=first)
    assert len(stored) == 1
    second = ask(pipeline, "GET", path)[1]
    assert second == stored[0][1] and second != first
    # What belongs to a person has the person's ETag.
    for part, body in (("preferences", [{"category": "social", "off": True}, {"category": "marketing", "off": True}]),
                       ("consents", [{"category": "marketing", "granted": True}]), ("unsubscription", {"unsubscribed": True})):
        before = ask(pipeline, "GET", path)[1]
        assert refused(ask(pipeline, "PUT", f"{path}/{part}", body, If_Match=first), before)
        status, after, _ = ask(pipeline, "PUT", f"{path}/{part}", body, If_Match=before)
        assert status == 200 and after != before and ask(pipeline, "GET", path)[1] == after
    assert len(ask(pipeline, "GET", f"{path}/preferences")[2]["preferences"]) == 2
    assert ask(pipeline, "GET", f"{path}/preferences")[1] == ask(pipeline, "GET", f"{path}/consents")[1] == after
    assert refused(ask(pipeline, "DELETE", path, If_Match=second), after)
    assert ask(pipeline, "DELETE", path, If_Match=after)[0] == 200
    assert ask(pipeline, "PUT", path, {"name": "Ada"}, If_Match=after)[0] == 412
    assert ask(pipeline, "PUT", path, {"name": "Ada"}, If_None_Match="*")[0] == 201
