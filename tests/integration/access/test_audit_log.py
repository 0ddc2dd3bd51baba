# SPDX-License-Identifier: Apache-2.0
"""Who wrote what, and who was shown what: an entry of the audit log for each, before it is done, chained with those of the commands."""
import hashlib
import hmac
import json
import time
import urllib.parse

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.access.test_keys import make
from tests.integration.security.test_operator_key import ask, kind

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(scope="module")
def keys(pipeline):
    """Of two tenants, each of whom may read its own log."""
    for tenant in ("noted-one", "noted-two"):
        pipeline.cli("tenant", "put", tenant, "--name", tenant, "--sender", f"hello@{tenant}.test", tenant=tenant)
    return {tenant: make(pipeline, {"scopes": ["owner"]}, tenant) for tenant in ("noted-one", "noted-two")}


def log(pipeline, key, **filters):
    status, body = ask(pipeline, key["key"] if isinstance(key, dict) else key, "GET", "/v1/audit-log?" + urllib.parse.urlencode(filters))
    assert status == 200, body
    return body["data"]


def verify(pipeline):
    done = pipeline.run_cli("audit-log", "verify", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


TRIGGER = {"event_type": "stay.confirmed", "template": "welcome", "resolver": "address:guest.email"}


def test_every_write_is_in_the_log_with_who_what_and_from_where(pipeline, keys):
    key = keys["noted-one"]
    status, headers, _ = pipeline.post(TRIGGER, "/v1/triggers/greet", method="PUT", headers={
        "Authorization": f"Bearer {key['key']}", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
    assert status in (200, 201)
    entries = log(pipeline, key, action="PUT /v1/triggers/{}")
    assert len(entries) == 1, entries
    entry = entries[0]
    assert (entry["kind"], entry["actor"], entry["target"], entry["tenant"]) == ("write", f"key {key['key_id']}", "greet", "noted-one")
    assert entry["request_id"] == headers["Stentor-Request-Id"] and entry["program"] == "stentor-gateway"
    assert entry["details"]["trace"] == TRACE and len(entry["details"]["body_digest"]) == 32 and len(entry["details"]["address_hash"]) == 32
    # The digest is keyed: who has the log cannot guess bodies by their SHA-256 or plain HMAC.
    body = json.dumps(TRIGGER).encode()
    assert entry["details"]["body_digest"] not in (hashlib.sha256(body).hexdigest()[:32], hmac.new(b"", body, "sha256").hexdigest()[:32])
    # The same body has the same digest, another one another; the address stays.
    assert ask(pipeline, key["key"], "PUT", "/v1/triggers/greet", TRIGGER)[0] == 200
    assert ask(pipeline, key["key"], "PUT", "/v1/triggers/greet", {**TRIGGER, "template": "farewell"})[0] in (200, 422)
    first, second, third = log(pipeline, key, action="PUT /v1/triggers/{}")
    assert first["details"]["body_digest"] == second["details"]["body_digest"] != third["details"]["body_digest"]
    assert first["details"]["address_hash"] == third["details"]["address_hash"]
    # A write that is refused by its handler was asked for, so it stands there too; one that a scope refuses was not let in.
    assert ask(pipeline, key["key"], "PUT", "/v1/triggers/odd", {"event_type": 7})[0] == 422
    assert kind(ask(pipeline, key["key"], "PUT", "/v1/routes/any", {})) == (403, "missing-scope")
    assert [e["target"] for e in log(pipeline, key, action="PUT /v1/triggers/{}")] == ["greet", "greet", "greet", "odd"]
    assert log(pipeline, key, action="PUT /v1/routes/{}") == []
    verify(pipeline)


def test_an_operators_write_is_in_the_log_of_the_tenant_that_it_is_about(pipeline, keys):
    operator = pipeline.operator_key.removeprefix("stn_").split(".")[0]
    before = log(pipeline, keys["noted-two"], actor=f"key {operator}", action="PATCH /v1/tenant")  # `tenant put` is one
    assert ask(pipeline, pipeline.operator_key, "PATCH", "/v1/tenant", {"name": "By the operator"}, "noted-two")[0] == 200
    after = log(pipeline, keys["noted-two"], actor=f"key {operator}", action="PATCH /v1/tenant")
    assert len(after) == len(before) + 1 and after[:-1] == before
    assert {e["tenant"] for e in log(pipeline, keys["noted-one"])} == {"noted-one"}


def test_a_reveal_is_in_the_log_before_it_is_shown_and_what_is_masked_is_not(pipeline, keys):
    key = keys["noted-one"]
    status, person = ask(pipeline, key["key"], "POST", "/v1/recipients", {
        "identity_type": "user", "identity_id": "noted", "addresses": [{"channel": "email", "address": "noted.person@example.com"}]})
    assert status in (200, 201)
    path = f"/v1/recipients/{person['id']}"
    assert ask(pipeline, key["key"], "GET", path)[0] == 200
    assert log(pipeline, key, kind="read") == []
    status, shown = ask(pipeline, key["key"], "GET", path + "?reveal=true")
    assert status == 200 and "noted.person@example.com" in json.dumps(shown)
    entries = log(pipeline, key, kind="read")
    assert [(e["action"], e["target"]) for e in entries] == [("GET /v1/recipients/{}", person["id"])]
    assert ask(pipeline, key["key"], "GET", "/v1/suppressions/export?limit=1")[0] == 200
    assert [e["action"] for e in log(pipeline, key, kind="read")][1:] == ["GET /v1/suppressions/export"]
    # What a key says of recipients is data, kept in PEOPLE; what it deletes is noted.
    assert log(pipeline, key, action="POST /v1/recipients") == []
    assert ask(pipeline, key["key"], "DELETE", path)[0] in (200, 204)
    assert [e["target"] for e in log(pipeline, key, action="DELETE /v1/recipients/{}")] == [person["id"]]
    assert "example.com" not in json.dumps(log(pipeline, key))


def test_a_preview_and_what_is_sent_are_not_in_the_log(pipeline, keys):
    key = keys["noted-two"]
    before = len(log(pipeline, key))
    ask(pipeline, key["key"], "POST", "/v1/templates/preview", {"subject": "x", "text": "y"})
    ask(pipeline, key["key"], "POST", "/v1/triggers/none/try", {})
    ask(pipeline, key["key"], "POST", "/v1/notifications", {"to": "a@example.com", "template": "none"})
    assert len(log(pipeline, key)) == before


def test_a_target_that_may_be_an_address_is_a_digest(pipeline, keys):
    key = keys["noted-one"]
    assert ask(pipeline, key["key"], "DELETE", "/v1/suppressions/eve@example.com")[0] in (404, 422)
    targets = [e["target"] for e in log(pipeline, key, action="DELETE /v1/suppressions/{}")]
    assert len(targets) == 1 and targets[0].startswith("digest ") and "example" not in targets[0]


def test_the_log_comes_in_pages_and_its_filters_are_checked(pipeline, keys):
    key = keys["noted-two"]
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    for i in range(5):
        assert ask(pipeline, key["key"], "PUT", f"/v1/triggers/page{i}", {**TRIGGER, "event_type": f"page.{i}"})[0] in (200, 201)
    query = {"action": "PUT /v1/triggers/{}", "limit": 2, "from": began}
    seen, cursor = [], None
    while True:
        path = "/v1/audit-log?" + urllib.parse.urlencode({**query, **({"cursor": cursor} if cursor else {})})
        status, page = ask(pipeline, key["key"], "GET", path)
        assert status == 200 and len(page["data"]) <= 2, page
        seen += [e["target"] for e in page["data"]]
        cursor = page["next"]
        if cursor is None:
            break
        # The cursor is this tenant's and this filter's.
        other = ask(pipeline, keys["noted-one"]["key"], "GET", path.split("&cursor")[0] + "&cursor=" + urllib.parse.quote(cursor))
        assert other[0] == 400, other
    assert seen == [f"page{i}" for i in range(5)]
    assert log(pipeline, key, to=began) == []
    for wrong, field in (({"kind": "gossip"}, "kind"), ({"from": "yesterday"}, "from"), ({"who": "x"}, "who"), ({"limit": 0}, "limit")):
        status, problem = ask(pipeline, key["key"], "GET", "/v1/audit-log?" + urllib.parse.urlencode(wrong))
        assert status in (400, 422) and problem["field"] == field, problem
    without = make(pipeline, {"scopes": ["admin"]}, "noted-two")
    status, problem = ask(pipeline, without["key"], "GET", "/v1/audit-log")
    assert status == 403 and "audit:read" in problem["detail"]


def test_what_commands_note_stands_in_the_same_log(pipeline, keys):
    """A hold bypasses the gateway; its entry is in the same chain, and the tenant reads it."""
    listed = json.loads(pipeline.cli("audit-log", "list", "--json", "--kind", "write", "--tenant", "noted-one"))
    shown = log(pipeline, keys["noted-one"], kind="write")
    assert [e["event_id"] for e in listed] == [e["event_id"] for e in shown] and shown
    actor = f"key {keys['noted-one']['key_id']}"
    assert json.loads(pipeline.cli("audit-log", "list", "--json", "--actor", actor, "--action", "PUT /v1/triggers/{}", "--tenant", "noted-one"))
    assert pipeline.cli("audit-log", "list", "--json", "--actor", "key none").strip() == "[]"
    pipeline.cli("hold", "set", "--tenant", "noted-one", "--recipient", "rcp_01J9ZQ4XK3W6V8Y2T7N5M1R0PD", "--ground", "a claim")
    held = log(pipeline, keys["noted-one"], kind="hold")
    assert len(held) == 1 and held[0]["program"].startswith("stentor") and held[0]["sequence"] > shown[-1]["sequence"]
    verify(pipeline)


def test_without_the_log_nothing_is_written(pipeline, keys, nats):
    """The stream refuses: the write is 503 and was not done, and goes through when the log takes entries again."""
    key = keys["noted-two"]
    config = json.loads(nats.request("$JS.API.STREAM.INFO.AUDIT", b""))["config"]
    full = {**config, "max_bytes": 1}
    assert "error" not in json.loads(nats.request("$JS.API.STREAM.UPDATE.AUDIT", json.dumps(full).encode()))
    try:
        status, problem = ask(pipeline, key["key"], "PUT", "/v1/triggers/unnoted", {**TRIGGER, "event_type": "page.last"})
        assert status in (500, 503), problem
        assert ask(pipeline, key["key"], "GET", "/v1/triggers/unnoted")[0] == 404
    finally:
        assert "error" not in json.loads(nats.request("$JS.API.STREAM.UPDATE.AUDIT", json.dumps(config).encode()))
    wait_until(lambda: ask(pipeline, key["key"], "PUT", "/v1/triggers/unnoted", {**TRIGGER, "event_type": "page.last"})[0] in (200, 201), 20, "the log taking entries again")
    verify(pipeline)
