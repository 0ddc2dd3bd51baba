# SPDX-License-Identifier: Apache-2.0
"""What an API key says of itself: who it is, from where it may be used, when it was used last."""
import json
import time

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.security.test_operator_key import ask, kind


def make(pipeline, body, tenant="keys-one", key=None):
    status, made = ask(pipeline, key or pipeline.operator_key, "POST", "/v1/api-keys", body, None if key else tenant)
    assert status == 201, made
    wait_until(lambda: ask(pipeline, made["key"], "GET", "/v1/me")[0] != 401, 20, "the key being known")
    return made


def me(pipeline, key, tenant=None):
    return ask(pipeline, key, "GET", "/v1/me", tenant=tenant)


def test_a_key_is_told_which_it_is_and_what_it_may(pipeline):
    until = "2031-01-01T00:00:00Z"
    key = make(pipeline, {"name": "shop", "scopes": ["viewer", "inbox:token"], "expires_at": until})
    status, shown = me(pipeline, key["key"])
    assert status == 200 and shown["key_id"] == key["key_id"] and shown["tenant"] == "keys-one" and not shown["operator"], shown
    assert shown["expires_at"].startswith("2031-01-01T00:00:00")
    assert {"inbox:token", "dead:read", "recipients:read"} <= set(shown["scopes"]) and not {"recipients:reveal", "ops:read"} & set(shown["scopes"])
    status, shown = me(pipeline, pipeline.operator_key, "keys-one")
    assert shown["operator"] and shown["tenant"] == "keys-one" and {"tenants:operate", "content:reveal", "audit:read", "ops:read"} <= set(shown["scopes"])
    assert kind(me(pipeline, "stn_none.secret")) == (401, "unauthorized")
    # A key that names a scope of a newer release may nothing, and still learns that.
    nothing = make(pipeline, {"scopes": ["audit:read"]})
    assert me(pipeline, nothing["key"])[1]["scopes"] == ["audit:read"]


def test_a_key_that_is_bound_to_addresses_is_refused_from_elsewhere_and_makes_no_key_for_elsewhere(pipeline):
    elsewhere = make(pipeline, {"scopes": ["owner"], "allowed_cidrs": ["198.51.100.0/24", "2001:db8::/32"]})
    assert elsewhere["allowed_cidrs"] == ["198.51.100.0/24", "2001:db8::/32"]
    status, problem = me(pipeline, elsewhere["key"])
    assert (status, problem["type"]) == (403, "urn:stentor:problem:address-not-allowed") and "127.0.0.1" in problem["detail"], problem
    assert kind(ask(pipeline, elsewhere["key"], "POST", "/v1/notifications", {})) == (403, "address-not-allowed"), "ingest asks too"
    here = make(pipeline, {"scopes": ["owner"], "allowed_cidrs": ["127.0.0.0/8", "::1"]})
    assert make(pipeline, {"scopes": ["send"]}, key=here["key"])["allowed_cidrs"] == ["127.0.0.0/8", "::1"], "bound as its maker"
    for wider in (["0.0.0.0/0"], ["::1", "10.0.0.1"]):
        status, problem = ask(pipeline, here["key"], "POST", "/v1/api-keys", {"scopes": ["send"], "allowed_cidrs": wider})
        assert status == 422 and problem["field"].startswith("allowed_cidrs["), problem
    status, problem = ask(pipeline, pipeline.operator_key, "POST", "/v1/api-keys", {"scopes": ["send"], "allowed_cidrs": ["10.0.0.0/99"]}, "keys-one")
    assert status == 422 and problem["field"] == "allowed_cidrs[0]", problem
    turned = ask(pipeline, here["key"], "POST", f"/v1/api-keys/{here['key_id']}/rotate", {})
    assert turned[0] == 201 and turned[1]["allowed_cidrs"] == here["allowed_cidrs"], turned


def test_last_use_is_shown_from_memory_and_from_what_the_other_process_has_written(pipeline):
    key = make(pipeline, {"name": "seen", "scopes": ["send"]}, TENANT)
    unused = ask(pipeline, pipeline.operator_key, "POST", "/v1/api-keys", {"name": "unused", "scopes": ["send"]}, TENANT)[1]

    def shown(which):
        return ask(pipeline, pipeline.operator_key, "GET", f"/v1/api-keys/{which['key_id']}", tenant=TENANT)[1]
    by_gateway = shown(key)["last_used_at"]
    assert time.strftime("%Y-%m-%dT", time.gmtime()) in by_gateway and shown(unused)["last_used_at"] is None
    # ingest's uses stand in the table after a minute, or when it stops.
    assert ask(pipeline, unused["key"], "POST", "/v1/notifications", {})[0] == 422
    ingest = pipeline.services["ingest"]
    assert ingest.stop() == 0
    ingest.start()
    wait_until(lambda: shown(unused)["last_used_at"] is not None, 20, "the use that ingest wrote")
    listed = json.loads(pipeline.cli("apikey", "list", "--json"))
    rows = {row["key_id"]: row for row in listed}
    assert rows[unused["key_id"]]["last_used_at"] == shown(unused)["last_used_at"] and rows[key["key_id"]]["last_used_at"]
    line = next(line for line in pipeline.cli("apikey", "list").splitlines() if unused["key_id"] in line)
    assert shown(unused)["last_used_at"][:19] in line


def test_the_latest_use_counts_and_a_tenant_sees_its_own_rows_only(pipeline):
    """What two processes write crosses: the greatest stands, whoever wrote last."""
    query = pipeline.postgres.query
    for role, at in (("stentor_gateway", "2026-05-02"), ("stentor_ingest", "2026-05-01")):
        query("INSERT INTO gateway.key_usage AS k VALUES ('keys-one', 'crossing', %s::timestamptz) ON CONFLICT (tenant_id, key_id)"
              " DO UPDATE SET last_used_at = greatest(k.last_used_at, excluded.last_used_at)", at, role=role, tenant="keys-one")
    read = "SELECT last_used_at::date::text FROM gateway.key_usage WHERE key_id = 'crossing'"
    assert query(read, role="stentor_gateway", tenant="keys-two") == []
    assert query(read, role="stentor_gateway", tenant="keys-one") == [("2026-05-02",)]
