# SPDX-License-Identifier: Apache-2.0
"""What a hostile review found in the API: borrowed texts after their owner, keys and tenants that may too much, answers that say too much."""
import datetime
import http.client
import json
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline().start()
    yield running
    running.stop()


def ask(pipeline, method, path, body=None, key=None):
    """(status, parsed body) of one request with the pipeline's key or another."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        raw = None if body is None else json.dumps(body).encode()
        connection.request(method, path, raw, {"Authorization": f"Bearer {key or pipeline.key}"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def test_finding_09_a_refused_preview_says_what_was_asked_for(pipeline):
    """The body was freed before the answer quoted it: heap addresses went out. A build with the address sanitizer ends here."""
    for key, version in (("nope", "1.0.0"), ("n" * 64, "v" * 64), ("welcome", "9.9.9")):
        status, problem = ask(pipeline, "POST", "/v1/templates/preview", {"template": key, "version": version})
        assert status == 404 and problem["detail"] == f"no template '{key}' version {version}", problem
    assert ask(pipeline, "POST", "/v1/templates/preview", {"template": "welcome", "data": {"name": "A"}})[0] == 200


# ---- finding 11: keys -----------------------------------------------------------------------------------------------------


def make_key(pipeline, *flags, tenant="acme"):
    """A new key that ingest knows already."""
    made = json.loads(pipeline.cli("apikey", "create", "--json", *flags, tenant=tenant))
    wait_until(lambda: ask(pipeline, "GET", "/v1/tenant", key=made["key"])[0] != 401, 20, "the API key reaching ingest")
    return made


def problem_of(answer):
    return answer[0], (answer[1] or {}).get("type", "").rpartition(":")[2]


PERSON = {"identity_type": "guest", "identity_id": "g1", "addresses": [{"channel": "email", "address": "ann@example.com"}]}
VERSION = {"key": "scoped", "version": "1.0.0", "locales": [{"locale": "en", "subject": "S", "text": "T"}]}
# What a key with the scope may, and what it lacks for the rest: method, path, body, the scope that it needs.
CALLS = [
    ("POST", "/v1/notifications", {}, "notifications:send"),
    ("POST", "/v1/batches", {}, "batches:write"),
    ("GET", "/v1/batches", None, "batches:read"),
    ("GET", "/v1/templates", None, "templates:read"),
    ("POST", "/v1/templates", {**VERSION, "status": "draft"}, "templates:write"),
    ("POST", "/v1/templates/scoped/1.0.0/activate", None, "templates:activate"),
    ("GET", "/v1/recipients?address=a@example.com", None, "recipients:read"),
    ("POST", "/v1/recipients", PERSON, "recipients:write"),
    ("GET", "/v1/suppressions", None, "suppressions:read"),
    ("POST", "/v1/suppressions", {"address": "x@example.com"}, "suppressions:write"),
    ("GET", "/v1/suppressions/export", None, "suppressions:export"),
    ("GET", "/v1/triggers", None, "triggers:read"),
    ("PUT", "/v1/triggers/t1", {}, "triggers:write"),
    ("GET", "/v1/tenant", None, "tenant:read"),
    ("PUT", "/v1/tenant", {}, "tenant:write"),
]


def test_finding_11_a_key_may_what_its_scopes_say_and_no_more(pipeline):
    sets = {"send": ["notifications:send", "batches:write", "batches:read"], "read": [s for *_, s in CALLS if s.endswith(":read")]}
    for name, granted in (*sets.items(), *((scope, [scope]) for scope in ("recipients:read", "templates:write"))):
        key = make_key(pipeline, "--scopes", name)["key"]
        for method, path, body, scope in CALLS:
            answer = ask(pipeline, method, path, body, key)
            if scope in granted:
                assert answer[0] not in (401, 403), (name, path, answer)
            else:
                assert problem_of(answer) == (403, "missing-scope") and f"'{scope}'" in answer[1]["detail"], (name, path, answer)


def test_finding_11_whole_addresses_complaints_and_going_live_need_a_scope_of_their_own(pipeline):
    key = make_key(pipeline, "--scopes", "manage")["key"]
    _, made = ask(pipeline, "POST", "/v1/recipients", PERSON, key)
    assert ask(pipeline, "GET", f"/v1/recipients/{made['id']}", key=key)[0] == 200
    for path in (f"/v1/recipients/{made['id']}?reveal=true", "/v1/recipients?address=ann@example.com&reveal=true"):
        answer = ask(pipeline, "GET", path, key=key)
        assert problem_of(answer) == (403, "missing-scope") and "'recipients:reveal'" in answer[1]["detail"]
    live = {**VERSION, "key": "live"}
    assert problem_of(ask(pipeline, "POST", "/v1/templates", live, key)) == (403, "missing-scope")
    assert ask(pipeline, "POST", "/v1/templates", {**live, "status": "draft"}, key)[0] == 201

    complaint = {"address": "angry@example.com", "reason": "complaint"}
    _, entry = ask(pipeline, "POST", "/v1/suppressions", complaint, key)
    _, other = ask(pipeline, "POST", "/v1/suppressions", {"address": "calm@example.com"}, key)
    mail = {"to": "angry@example.com", "template": "welcome", "variables": {"name": "A"}}
    wait_until(lambda: pipeline.post(mail)[2]["status"] == "suppressed", 10, "the complaint reaching ingest's memory")
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)).isoformat()
    for method, path, body in (("DELETE", f"/v1/suppressions/{entry['id']}", None), ("POST", f"/v1/suppressions/{entry['id']}/release", None),
                               ("POST", "/v1/suppressions", {**complaint, "expires_at": soon}),
                               ("POST", "/v1/suppressions", {**complaint, "reason": "manual"})):
        assert problem_of(ask(pipeline, method, path, body, key)) == (403, "missing-scope"), (method, path)
    assert ask(pipeline, "DELETE", f"/v1/suppressions/{other['id']}", key=key)[0] == 200
    assert ask(pipeline, "DELETE", f"/v1/suppressions/{entry['id']}")[0] == 200, "the key with all scopes"


def test_finding_11_a_revoked_key_is_refused_within_a_second(pipeline):
    made = make_key(pipeline, "--name", "leaked")
    pipeline.cli("apikey", "revoke", made["key_id"])
    begun = time.monotonic()
    wait_until(lambda: problem_of(ask(pipeline, "GET", "/v1/tenant", key=made["key"])) == (401, "key-revoked"), 5, "the revocation")
    assert time.monotonic() - begun < 1
    wrong = made["key"][:-1] + ("0" if made["key"][-1] != "0" else "1")
    assert problem_of(ask(pipeline, "GET", "/v1/tenant", key=wrong)) == (401, "unauthorized"), "said to who knows the secret only"
    assert made["key_id"] not in pipeline.cli("apikey", "list")
    listed = {key["key_id"]: key for key in json.loads(pipeline.cli("apikey", "list", "--all", "--json"))}
    assert listed[made["key_id"]]["state"] == "revoked" and listed[made["key_id"]]["name"] == "leaked"
    assert not any("hash" in name or "secret" in name for key in listed.values() for name in key)


def test_finding_11_a_rotated_key_goes_on_for_its_grace(pipeline):
    old = make_key(pipeline, "--scopes", "read", "--expires", "90d")
    new = json.loads(pipeline.cli("apikey", "rotate", old["key_id"], "--grace", "2s", "--json"))
    assert new["scopes"] == "read" and new["rotated_from"] == old["key_id"] and new["expires_at"] > old["expires_at"]
    wait_until(lambda: ask(pipeline, "GET", "/v1/tenant", key=new["key"])[0] == 200, 5, "the new key reaching ingest")
    assert ask(pipeline, "GET", "/v1/tenant", key=old["key"])[0] == 200, "both are valid for the grace"
    assert problem_of(ask(pipeline, "POST", "/v1/notifications", {}, new["key"])) == (403, "missing-scope")
    wait_until(lambda: problem_of(ask(pipeline, "GET", "/v1/tenant", key=old["key"])) == (401, "key-revoked"), 10, "the grace ending")
    assert ask(pipeline, "GET", "/v1/tenant", key=new["key"])[0] == 200


def test_finding_11_a_key_expires(pipeline):
    made = make_key(pipeline, "--expires", "2s")
    wait_until(lambda: problem_of(ask(pipeline, "GET", "/v1/tenant", key=made["key"])) == (401, "key-expired"), 10, "the expiry")


@pytest.mark.parametrize("words,says", [
    (["create", "--scopes", "send,fly"], "'fly' is no scope"),
    (["create", "--scopes", ""], "'' is no scope"),
    (["create", "--expires", "yesterday"], "--expires 'yesterday'"),
    (["create", "--expires", "2001-01-01T00:00:00Z"], "does not lie ahead"),
    (["create", "--tenant", "Not One"], "not a tenant id"),
    (["create", "--name", "two\nlines"], "--name"),
    (["rotate", "0000000000000000"], "no API key"),
    (["rotate", "a.b"], "not a key id"),
    (["rotate", "0000000000000000", "--grace", "long"], "--grace 'long'"),
    (["revoke", "0000000000000000"], "stentor apikey list --all"),
])
def test_finding_11_a_wrong_word_about_keys_is_named(pipeline, words, says):
    done = pipeline.run_cli("apikey", *words)
    assert done.returncode != 0 and says in done.stderr, done


def test_finding_11_a_key_of_another_tenant_is_not_found(pipeline):
    made = make_key(pipeline)
    for word in ("revoke", "rotate"):
        assert pipeline.run_cli("apikey", word, made["key_id"], tenant="beta").returncode == 3
    assert ask(pipeline, "GET", "/v1/tenant", key=made["key"])[0] == 200
