# SPDX-License-Identifier: Apache-2.0
"""How many requests a tenant and a key may send to a gateway: said in the RateLimit fields, and 429 beyond it."""
import json
import re

import pytest

from tests.harness import openapi
from tests.harness.processes import free_port, wait_until


@pytest.fixture
def tight(pipeline):
    """A gateway of its own with small bounds; ask(key) is its answer."""
    port = free_port()
    gateway = pipeline.service("gateway", "tight", STENTOR_GATEWAY_PORT=port, STENTOR_GATEWAY_KEY_REQUESTS=5, STENTOR_GATEWAY_TENANT_REQUESTS=8).start()

    def ask(key, path="/v1/templates"):
        return openapi.call(port, "GET", path, headers={"Authorization": f"Bearer {key}", "Stentor-Tenant": "acme"})
    wait_until(lambda: ask("stn_1.2").status == 401, 20, "the gateway reading CONFIG")
    yield ask
    assert gateway.stop() == 0


def test_a_key_and_a_tenant_have_bounds_that_each_answer_tells(pipeline, tight):
    other = json.loads(pipeline.cli("apikey", "create", "--name", "second", "--json"))["key"]
    first = tight(pipeline.key)
    assert first.status == 200
    assert first.headers["RateLimit-Policy"] == '"tenant";q=8;w=60, "key";q=5;w=60'
    assert re.fullmatch(r'"tenant";r=7;t=\d+, "key";r=4;t=\d+', first.headers["RateLimit"])
    assert [tight(pipeline.key, "/v1/templates/no-such").status for _ in range(4)] == [404] * 4
    refused = tight(pipeline.key)
    assert refused.status == 429 and refused.body["type"].endswith(":quota-exceeded") and refused.body["violated-policies"] == ["key"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert openapi.faults({"$ref": "#/components/schemas/Problem"}, refused.body) == []
    # What was refused does not count for the tenant, whose bound holds for all its keys together.
    wait_until(lambda: tight(other).status != 401, 20, "the second key reaching the gateway")
    answers = [tight(other) for _ in range(4)]
    assert answers[-1].status == 429 and answers[-1].body["violated-policies"] == ["tenant"]
    operator = tight(pipeline.operator_key)
    assert operator.status == 200 and operator.headers["RateLimit-Policy"] == '"key";q=5;w=60'
    # A caller without a key learns nothing of it.
    assert "RateLimit" not in tight("stn_1.2").headers


def test_sending_has_no_such_bound(pipeline):
    sent = openapi.call(pipeline.api_port, "POST", "/v1/notifications", b"{}", {"Authorization": f"Bearer {pipeline.key}"})
    assert sent.status == 422 and "RateLimit" not in sent.headers
