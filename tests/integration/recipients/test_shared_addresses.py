# SPDX-License-Identifier: Apache-2.0
"""One address at several recipients is said or refused, by the tenant's policy (row C46: notification.recipient_addresses is
UNIQUE (tenant_id, channel, address_hash))."""
import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.integration.recipients.test_people import Api


@pytest.fixture(scope="module", name="people")
def _people():
    running = Pipeline(durable=True).start(services=["ingest", "gateway"])
    yield running
    running.stop()


@pytest.fixture(name="api")
def _api(people):
    return Api(people.api_port, people.key)


@pytest.fixture(name="policy")
def _policy(people, api):
    def put(name):
        people.cli("tenant", "put", "acme", "--shared-addresses", name)
        assert api("GET", "/v1/tenant")[1]["shared_addresses"] == name
        stored = record("probe@example.com")
        api("POST", "/v1/recipients", stored)
        wait_until(lambda: outcome(api("POST", "/v1/recipients", record("probe@example.com"))) == name, 20, "the setting reaching gateway")
    yield put
    people.cli("tenant", "put", "acme", "--shared-addresses", "warn")


def outcome(answer):
    return "refuse" if answer[0] == 409 else "warn" if "warnings" in answer[1] else "allow"


def record(address, channel="email", **fields):
    """A recipient with an identity of its own."""
    return {"identity_type": "user", "identity_id": uuid.uuid4().hex, "addresses": [{"channel": channel, "address": address, **fields}]}


def new_address():
    return f"{uuid.uuid4().hex}@example.com"


def test_a_family_with_one_address_is_stored_and_the_answer_names_who_has_it_too(people, api):
    address = new_address()
    status, mother = api("POST", "/v1/recipients", record(address))
    assert status == 201 and "warnings" not in mother
    status, child = api("POST", "/v1/recipients", record(address.upper()))
    assert status == 201 and child["warnings"] == [f"addresses[0].address: recipient '{mother['id']}' has this address too"]
    assert "warnings" not in api("PUT", f"/v1/recipients/{uuid_recipient()}", record("+4915112345678", "sms"))[1], "another address"
    done = people.run_cli("recipient", "put", "--email", address, "--identity", f"user:{uuid.uuid4().hex}", "--json")
    assert done.returncode == 0 and "has this address too" in done.stderr and set(json.loads(done.stdout)) == {"id"}, done.stderr


def uuid_recipient():
    return "rcp_01KAGTQ5M0" + uuid.uuid4().hex[:16].upper()


def test_a_tenant_that_refuses_it_answers_409_with_the_others_id(api, policy):
    policy("refuse")
    address = new_address()
    first = record(address)
    one = api("POST", "/v1/recipients", first)[1]["id"]
    for method, path in (("POST", "/v1/recipients"), ("PUT", f"/v1/recipients/{uuid_recipient()}")):
        status, problem = api(method, path, record(address))
        assert (status, problem["type"], problem["field"]) == (409, "urn:stentor:problem:address-taken", "addresses[0].address"), problem
        assert f"'{one}'" in problem["detail"] and address not in json.dumps(problem)
    assert api("PUT", f"/v1/recipients/{one}", {**first, "name": "Alice"})[0] == 200, "its own address is no other's"
    assert api("GET", f"/v1/recipients?address={address}")[1]["data"][0]["id"] == one
    assert api("PUT", f"/v1/recipients/{one}", {**first, "addresses": [{**first["addresses"][0], "status": "revoked"}]})[0] == 200
    assert api("POST", "/v1/recipients", record(address))[0] == 201, "a revoked address is given up"


def test_of_several_who_store_one_address_at_once_one_is_stored(api, policy):
    policy("refuse")
    for _ in range(3):
        address = new_address()
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(lambda body: api("POST", "/v1/recipients", body), [record(address) for _ in range(6)]))
        assert sorted(status for status, _ in answers) == [201] + [409] * 5, answers
        stored = next(body["id"] for status, body in answers if status == 201)
        assert all(f"'{stored}'" in body["detail"] for status, body in answers if status == 409)
        assert len(api("GET", f"/v1/recipients?address={address}")[1]["data"]) == 1


def test_an_import_says_it_of_the_line(people, api, policy, tmp_path):
    """Also of two lines of one file."""
    taken, twice, fine = new_address(), new_address(), new_address()
    one = api("POST", "/v1/recipients", record(taken))[1]["id"]
    lines = [record(taken), record(twice), record(fine), record(twice)]
    body = "\n".join(map(json.dumps, lines)).encode()
    status, answer = api("POST", "/v1/recipients/import", body)
    second = answer["results"][1]["id"]
    text = "addresses[0].address: recipient '{}' has this address too"
    assert [line.get("warning") for line in answer["results"]] == [text.format(one), None, None, text.format(second)], answer
    policy("refuse")
    taken, twice, fine = new_address(), new_address(), new_address()
    one = api("POST", "/v1/recipients", record(taken))[1]["id"]
    lines = [record(taken), record(twice), record(fine), record(twice)]
    status, answer = api("POST", "/v1/recipients/import", "\n".join(map(json.dumps, lines)).encode())
    assert (status, answer["stored"], answer["failed"]) == (200, 2, 2), answer
    second = answer["results"][1]["id"]
    for line, other in ((0, one), (3, second)):
        assert answer["results"][line] == {"line": line + 1, "field": "addresses[0].address", "error": f"recipient '{other}' has this address too"}
    file = tmp_path / "people.ndjson"
    file.write_text(json.dumps(record(taken)) + "\n" + json.dumps(record(new_address())) + "\n")
    done = people.run_cli("recipient", "import", file, "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 1 and (summary["stored"], summary["failed"], summary["warned"]) == (1, 1, 0), done.stdout
    assert summary["errors"][0]["field"] == "addresses[0].address"


def test_a_tenant_that_allows_it_hears_nothing(api, policy):
    policy("allow")
    address = new_address()
    assert api("POST", "/v1/recipients", record(address))[0] == 201
    assert outcome(api("POST", "/v1/recipients", record(address))) == "allow"
