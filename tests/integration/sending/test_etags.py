# SPDX-License-Identifier: Apache-2.0
"""What is put has an ETag, and a put that names one replaces just that: of two at once the second is 412 and changes nothing."""
import http.client
import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.nats_client import NatsClient
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
    bodies = [{**shown, "physical_address": f"Street {number}"} for number in range(6)]
    stored = race(pipeline, "PUT", "/v1/tenant", bodies, If_Match=etag)
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
    assert ask(pipeline, "POST", "/v1/templates", document, If_Match=draft)[:2] == (200, draft), "it stands as it is"
    document["locales"][0]["text"] = "y"
    status, again, _ = ask(pipeline, "POST", "/v1/templates", document, If_Match=draft)
    assert status == 201 and again != draft
    assert refused(ask(pipeline, "POST", f"{path}/activate", If_Match=draft), again)
    stored = race(pipeline, "POST", f"{path}/activate", [None] * 3, If_Match=again)
    assert len(stored) == 1 and stored[0][2]["status"] == "active"
    wait_until(lambda: ask(pipeline, "GET", f"/v1/templates/{key}?version=1.0.0")[1] == stored[0][1], 10, "the version")
    assert refused(ask(pipeline, "POST", f"{path}/archive", If_Match=again), stored[0][1])
    assert ask(pipeline, "POST", f"{path}/archive", If_Match=stored[0][1])[0] == 200


def test_a_suppression_is_replaced_and_released_by_who_has_seen_it(pipeline):
    address = f"{uuid.uuid4().hex[:8]}@example.com"
    body = {"address": address, "note": "one"}

    def post(note, **headers):
        return ask(pipeline, "POST", "/v1/suppressions", {**body, "note": note}, **headers)

    assert post("one", If_Match="*")[0] == 412, "nothing is there"
    made = [answer for answer in (post("one", If_None_Match="*"), post("two", If_None_Match="*")) if answer[0] == 201]
    assert len(made) == 1
    _, first, entry = made[0]
    path = f"/v1/suppressions/{entry['id']}"
    wait_until(lambda: ask(pipeline, "GET", path)[1] == first, 10, "the entry reaching the program")
    assert refused(post("two", If_Match='"1"'), first) and refused(post("two", If_None_Match="*"), first)
    assert post("one", If_Match=first)[:2] == (200, first), "it stands as it is"
    status, second, entry = post("two", If_Match=first)
    assert status == 201 and second != first
    path = f"/v1/suppressions/{entry['id']}"
    wait_until(lambda: ask(pipeline, "GET", path)[1] == second, 10, "the entry reaching the program")
    assert refused(ask(pipeline, "DELETE", path, If_Match=first), second)
    assert refused(ask(pipeline, "POST", f"{path}/release", If_Match=first), second)
    status, third, entry = ask(pipeline, "DELETE", path, If_Match=second)
    assert status == 200 and entry["released_at"] and third not in (first, second)
    wait_until(lambda: ask(pipeline, "GET", path)[1] == third, 10, "the release reaching the program")
    assert ask(pipeline, "DELETE", path, If_Match=third)[:2] == (200, third), "twice is once"
    assert refused(ask(pipeline, "DELETE", path, If_Match=second), third)
    assert post("one", If_Match="*")[0] == 412, "a released one is gone"
    assert post("one", If_None_Match="*")[0] == 201
    fourth = post("one")[1]
    with ThreadPoolExecutor(5) as threads:
        answers = list(threads.map(lambda n: post(f"at once {n}", If_Match=fourth), range(5)))
    assert sorted(status for status, _, _ in answers) == [201] + [412] * 4, answers


def test_an_api_key_is_ended_by_who_has_seen_it(pipeline):
    tenant = {"Stentor_Tenant": "acme", "Authorization": f"Bearer {pipeline.operator_key}"}

    def keys(method, path="", body=None, **headers):
        return ask(pipeline, method, f"/v1/api-keys{path}", body, **tenant, **headers)

    status, first, key = keys("POST", body={"scopes": ["send"]})
    assert status == 201
    path = f"/{key['key_id']}"
    wait_until(lambda: keys("GET", path)[1] == first, 10, "the key reaching the program")
    assert refused(keys("DELETE", path, If_Match='"1"'), first) and refused(keys("POST", f"{path}/rotate", {}, If_Match='"1"'), first)
    status, successor, made = keys("POST", f"{path}/rotate", {}, If_Match=first)
    assert status == 201 and made["old_valid_until"] and keys("GET", f"/{made['key_id']}")[1] == successor
    second = wait_until(lambda: (tag := keys("GET", path)[1]) != first and tag, 10, "the end of the old one")
    assert refused(keys("DELETE", path, If_Match=first), second)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: keys("DELETE", path, If_Match=second), range(4)))
    assert sorted(status for status, _, _ in answers) == [200] + [412] * 3, answers
    assert keys("DELETE", path, If_Match="*")[0] == 200, "ended is ended"
    assert keys("DELETE", "/unknown", If_Match=first)[0] == 404


def test_a_vendors_key_is_put_by_who_has_seen_it(pipeline):
    path, operator = "/v1/tenant/inbound-keys/sendgrid", {"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": "etag-vendor"}
    assert ask(pipeline, "PUT", path, {"public_key": "QUJD"}, If_Match="*", **operator)[0] == 412
    status, first, _ = ask(pipeline, "PUT", path, {"public_key": "QUJD"}, If_None_Match="*", **operator)
    assert status == 200
    assert ask(pipeline, "PUT", path, {"public_key": "QUJD"}, **operator)[:2] == (200, first), "it stands as it is"
    status, second, _ = ask(pipeline, "PUT", path, {"public_key": "QUJE"}, If_Match=first, **operator)
    assert status == 200 and second != first
    assert refused(ask(pipeline, "PUT", path, {"revoked": True}, If_Match=first, **operator), second)


@pytest.mark.parametrize("method, path", [
    ("POST", "/v1/suppressions/import"), ("POST", "/v1/api-keys"), ("POST", "/v1/recipients"), ("POST", "/v1/batches"),
    ("POST", "/v1/notifications"), ("POST", "/v1/templates/preview")])
def test_a_precondition_is_never_passed_over(pipeline, method, path):
    """Who names an ETag would take the answer for one about it."""
    for header, name in (("If_Match", "If-Match"), ("If_None_Match", "If-None-Match")):
        status, _, problem = ask(pipeline, method, path, {}, **{header: "*"}, Authorization=f"Bearer {pipeline.operator_key}",
                                 Stentor_Tenant="acme")
        assert (status, problem["type"], problem["field"]) == (400, "urn:stentor:problem:invalid-precondition", name), problem


def test_what_is_put_again_as_it_stands_makes_no_message(pipeline):
    """CONFIG keeps eight messages of each subject: the same put in a loop filled it, and pushed out what was before."""
    nats = NatsClient(pipeline.nats.port)
    name = f"same-{uuid.uuid4().hex[:8]}"
    operator = {"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": name}
    trigger = {"event_type": "same.event", "template": "welcome", "resolver": "address:to"}
    draft = {"key": name, "version": "1.0.0", "status": "draft", "locales": [{"locale": "en", "subject": "s", "text": "x"}]}
    puts = [("PUT", "/v1/tenant", {"name": "Same", "locale": "de"}, {}), ("PUT", f"/v1/triggers/{name}", trigger, {}),
            ("POST", "/v1/templates", draft, {}), ("PUT", "/v1/tenant", {"name": "Same"}, operator),
            ("PUT", "/v1/tenant/sender-domains/same.test", None, operator), ("PATCH", "/v1/tenant", {"name": "Same"}, operator)]
    shown = ask(pipeline, "GET", "/v1/tenant")[2]
    puts[0] = ("PUT", "/v1/tenant", shown, {})
    for method, path, body, headers in puts:
        assert ask(pipeline, method, path, body, **headers)[0] in (200, 201), path
        wait_until(lambda: all(ask(pipeline, method, path, body, **headers)[0] == 200 for _ in range(2)), 10, path)
        before = nats.stream_info("CONFIG")["state"]["last_seq"]
        answers = [ask(pipeline, method, path, body, **headers) for _ in range(9)]
        assert {(status, tag) for status, tag, _ in answers} == {(200, answers[0][1])} and answers[0][1], path
        assert nats.stream_info("CONFIG")["state"]["last_seq"] == before, path
    status, tag, _ = ask(pipeline, "PUT", f"/v1/triggers/{name}", {**trigger, "priority": "high"})
    assert status == 200 and nats.stream_info("CONFIG")["state"]["last_seq"] == before + 1, "another one does"
    nats.close()


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
    # The parts of a recipient have the recipient's ETag.
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
