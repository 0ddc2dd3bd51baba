# SPDX-License-Identifier: Apache-2.0
"""What only the operator may is refused to every other key, whatever it says of itself."""
import http.client
import json
import time

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until


def ask(pipeline, key, method, path, body=None, tenant=None):
    """(status, parsed body). tenant: for whom the caller says it speaks."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **({"Stentor-Tenant": tenant} if tenant else {})}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def kind(answer):
    return answer[0], (answer[1] or {}).get("type", "").rpartition(":")[2]


@pytest.fixture(scope="module")
def keys(pipeline):
    """Keys of a tenant and of the platform that are no operator's; each knows its id."""
    made = {}
    for name, tenant, scopes in (("manager", "op-one", ["keys:manage", "send"]), ("admin", "op-one", ["admin"]), ("both", "op-one", ["admin", "keys:manage"]),
                                 ("other", "op-two", ["admin", "keys:manage"]), ("platform", "platform", ["admin", "keys:manage"])):
        status, key = ask(pipeline, pipeline.operator_key, "POST", "/v1/api-keys", {"name": name, "scopes": scopes}, tenant)
        assert status == 201, key
        made[name] = key
    wait_until(lambda: all(ask(pipeline, key["key"], "GET", "/v1/tenant")[0] != 401 for key in made.values()), 20, "the keys being known")
    return made


def test_a_key_speaks_for_its_own_tenant_only_but_the_operators(pipeline, keys):
    for name in keys:
        own = keys[name]["tenant"]
        assert kind(ask(pipeline, keys[name]["key"], "GET", "/v1/tenant", tenant=own))[1] != "foreign-tenant"
        for tenant in {"op-one", "op-two", "platform", TENANT} - {own}:
            for method, path, body in (("GET", "/v1/tenant", None), ("PATCH", "/v1/tenant", {"name": "x"}), ("GET", "/v1/api-keys", None),
                                       ("POST", "/v1/api-keys", {"scopes": ["send"]}), ("PUT", "/v1/triggers/t", {}),
                                       ("POST", "/v1/notifications", {})):
                assert kind(ask(pipeline, keys[name]["key"], method, path, body, tenant)) == (403, "foreign-tenant"), (name, tenant, path)
    assert ask(pipeline, pipeline.operator_key, "GET", "/v1/tenant", tenant=TENANT)[1]["tenant"] == TENANT
    assert kind(ask(pipeline, pipeline.operator_key, "GET", "/v1/tenant", tenant="Not.One")) == (422, "invalid-field")


def test_no_key_makes_a_key_that_may_more_than_it(pipeline, keys):
    def make(name, *scopes, **more):
        return ask(pipeline, keys[name]["key"], "POST", "/v1/api-keys", {"scopes": list(scopes), **more})
    assert kind(make("admin", "send")) == (403, "missing-scope"), "admin manages no keys"
    assert make("manager", "send")[0] == 201
    for scopes in (["admin"], ["read"], ["send", "recipients:reveal"], ["templates:write"]):
        assert kind(make("manager", *scopes)) == (403, "missing-scope"), scopes
    for name in ("manager", "both"):  # no tenant has an operator's key
        for scope in ("operator", "tenants:operate"):
            status, problem = make(name, scope)
            assert status == 422 and problem["field"] == "scopes", problem
    for scope in ("operator", "tenants:operate"):
        assert kind(make("platform", scope)) == (403, "missing-scope")
    assert ask(pipeline, pipeline.operator_key, "POST", "/v1/api-keys", {"scopes": ["operator"]}, "op-one")[1]["field"] == "scopes"
    for body, field in (({}, "scopes"), ({"scopes": []}, "scopes"), ({"scopes": ["fly"]}, "scopes[0]"), ({"scopes": [7]}, "scopes[0]"),
                        ({"scopes": ["send"], "tenant": "platform"}, "tenant"), ({"scopes": ["send"], "name": "two\nlines"}, "name"),
                        ({"scopes": ["send"], "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
                        ({"scopes": ["send"], "secret_hash": "00"}, "secret_hash"), ({"scopes": ["send"], "overlap_seconds": 1}, "overlap_seconds")):
        status, problem = ask(pipeline, keys["both"]["key"], "POST", "/v1/api-keys", body)
        assert status == 422 and problem["field"] == field, problem


def test_no_key_takes_over_or_ends_one_that_may_more_than_it(pipeline, keys):
    """A rotation shows a secret that may all that the old key may."""
    operator = pipeline.operator_key.removeprefix("stn_").split(".")[0]
    for name, victim in (("manager", keys["admin"]["key_id"]), ("platform", operator)):
        for method, path in (("POST", f"/v1/api-keys/{victim}/rotate"), ("DELETE", f"/v1/api-keys/{victim}")):
            assert kind(ask(pipeline, keys[name]["key"], method, path)) == (403, "missing-scope"), (name, path)
    rotated = ask(pipeline, keys["manager"]["key"], "POST", f"/v1/api-keys/{keys['manager']['key_id']}/rotate", {"scopes": ["admin"]})
    assert kind(rotated) == (403, "missing-scope")
    for victim in (keys["both"]["key_id"], operator, "0" * 16, "..", "*", "%2e", "stn_" + keys["both"]["key_id"]):
        for method, tail in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
            assert ask(pipeline, keys["other"]["key"], method, f"/v1/api-keys/{victim}{tail}")[0] == 404, (victim, method)
    listed = ask(pipeline, keys["other"]["key"], "GET", "/v1/api-keys?state=all")[1]["data"]
    assert {key["tenant"] for key in listed} == {"op-two"} and not any("hash" in name or name == "key" for key in listed for name in key)
    assert ask(pipeline, pipeline.operator_key, "GET", "/v1/tenant", tenant=TENANT)[0] == 200, "still in force"


def test_what_only_the_operator_sets_is_refused_to_every_other_key(pipeline, keys):
    ask(pipeline, pipeline.operator_key, "PATCH", "/v1/tenant", {"limits": {"per_day": 5}, "sender_address": "a@one.test"}, "op-one")
    for name in ("both", "admin"):
        key = keys[name]["key"]
        for change in ({"suspended": True}, {"limits": None}, {"limits": {"per_day": 9}}, {"limits": {"per_minute": 1}}, {"sender_domains": None},
                       {"sender_domains": ["acme.test"]}, {"recipient_limits": {"per_day": 1}}, {"over_limit": "suppress"}):
            for method in ("PATCH", "PUT"):
                answer = ask(pipeline, key, method, "/v1/tenant", change)
                if not (method == "PUT" and change == {"limits": None}):  # left out by another word
                    assert answer[0] == 403 and answer[1]["field"] == next(iter(change)), (method, change, answer)
        assert ask(pipeline, key, "PATCH", "/v1/tenant", {"sender_address": "a@acme.test"})[1]["field"] == "sender_address"
        assert ask(pipeline, key, "PATCH", "/v1/tenant", {"tenant": "op-two"})[1]["field"] == "tenant"
        for method, path, body in (("PUT", "/v1/tenant/sender-domains/acme.test", None), ("DELETE", "/v1/tenant/sender-domains/one.test", None),
                                   ("PUT", "/v1/tenant/inbound-keys/sendgrid", {"public_key": "QUJD"})):
            assert kind(ask(pipeline, key, method, path, body)) == (403, "missing-scope"), path
    shown = ask(pipeline, pipeline.operator_key, "GET", "/v1/tenant", tenant="op-one")[1]
    assert shown["limits"] == {"per_minute": 0, "per_day": 5} and shown["sender_domains"] == ["one.test"] and not shown["suspended"]
    assert ask(pipeline, keys["both"]["key"], "PATCH", "/v1/tenant", {"name": "One", "sender_address": "b@one.test"})[1]["limits"]["per_day"] == 5


def test_a_suspended_tenant_is_reached_by_the_operator_alone(pipeline, keys):
    assert ask(pipeline, pipeline.operator_key, "PATCH", "/v1/tenant", {"suspended": True}, "op-two")[0] == 200
    wait_until(lambda: kind(ask(pipeline, keys["other"]["key"], "GET", "/v1/tenant")) == (403, "tenant-suspended"), 10, "the suspension")
    for method, path, body in (("PATCH", "/v1/tenant", {"suspended": False}), ("POST", "/v1/api-keys", {"scopes": ["send"]})):
        assert kind(ask(pipeline, keys["other"]["key"], method, path, body)) == (403, "tenant-suspended")
    send = ("POST", "/v1/notifications", {"to": "a@example.com", "template": "welcome", "variables": {"name": "A"}})
    assert kind(ask(pipeline, pipeline.operator_key, *send, tenant="op-two")) == (403, "tenant-suspended")
    assert ask(pipeline, pipeline.operator_key, "PATCH", "/v1/tenant", {"suspended": False}, "op-two")[1]["suspended"] is False


def test_keys_are_listed_in_pages_and_bound_to_their_tenant(pipeline, keys):
    first = ask(pipeline, keys["both"]["key"], "GET", "/v1/api-keys?limit=2")[1]
    second = ask(pipeline, keys["both"]["key"], "GET", f"/v1/api-keys?limit=2&cursor={first['next']}")[1]
    ids = [key["key_id"] for key in first["data"] + second["data"]]
    assert len(first["data"]) == 2 and ids == sorted(set(ids))
    assert ask(pipeline, keys["platform"]["key"], "GET", f"/v1/api-keys?limit=2&cursor={first['next']}")[0] == 400
    assert ask(pipeline, keys["both"]["key"], "GET", "/v1/api-keys?state=gone")[1]["field"] == "state"


def test_the_command_lines_nats_user_writes_no_configuration(pipeline, tmp_path):
    """The server refuses it what goes over HTTP, and repairs that only an admin may make."""
    exported = pipeline.run_cli("config", "export")
    assert exported.returncode == 0
    file = tmp_path / "config.ndjson"
    file.write_text(exported.stdout)
    assert pipeline.run_cli("config", "import", file, "--dry-run").returncode == 0, "it reads"
    refused = pipeline.run_cli("apikey", "bootstrap")
    assert refused.returncode == 1 and "stn_" not in refused.stdout, refused


def test_a_bootstrapped_key_is_an_operators(pipeline):
    made = json.loads(pipeline.cli("apikey", "bootstrap", "--name", "second", "--expires", "1h", "--json", admin=True))
    wait_until(lambda: ask(pipeline, made["key"], "GET", "/v1/tenant", tenant=TENANT)[0] == 200, 10, "the key being known")
    listed = {key["key_id"]: key for key in json.loads(pipeline.cli("apikey", "list", "--json", tenant="platform"))}
    assert listed[made["key_id"]]["scopes"] == ["operator"] and listed[made["key_id"]]["created_by"] == "bootstrap"
    # It ends in an hour, and so does whatever it makes.
    soon, late = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds)) for seconds in (1800, 7200))
    for path, body in (("", {"scopes": ["send"]}), ("", {"scopes": ["send"], "expires_at": late}), (f"/{made['key_id']}/rotate", {"expires_at": late})):
        status, problem = ask(pipeline, made["key"], "POST", f"/v1/api-keys{path}", body)
        assert status == 422 and problem["field"] == "expires_at" and "the key that you use" in problem["detail"], problem
    status, child = ask(pipeline, made["key"], "POST", "/v1/api-keys", {"scopes": ["send"], "expires_at": soon}, TENANT)
    assert status == 201, child
    pipeline.cli("apikey", "revoke", child["key_id"])
    pipeline.cli("apikey", "revoke", made["key_id"], tenant="platform")
