# SPDX-License-Identifier: Apache-2.0
"""A POST of the gateway under an Idempotency-Key is carried out once: the same answer for the same request, 409 for another one, and no secret in the clear."""
import json
import threading

import pytest

from tests.harness import openapi
from tests.harness.processes import free_port, wait_until

KEYS = {"name": "shop", "scopes": ["send"]}


@pytest.fixture(scope="module")
def manager(pipeline):
    """A key that may make keys."""
    key = json.loads(pipeline.cli("apikey", "create", "--name", "manager", "--scopes", "admin,keys:manage", "--json"))["key"]
    wait_until(lambda: ask(pipeline, key, "GET", "/v1/api-keys").status == 200, 20, "the key reaching the gateway")
    return key


def ask(pipeline, key, method, path, body=None, idempotency=None, port=None):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **({"Idempotency-Key": idempotency} if idempotency else {})}
    return openapi.call(port or pipeline.api_port, method, path, body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None, headers)


def names(pipeline, manager):
    return [key["name"] for key in ask(pipeline, manager, "GET", "/v1/api-keys?limit=1000").body["data"]]


def test_a_repeat_gets_the_answer_of_the_first_with_its_secret_and_nothing_is_made_twice(pipeline, manager):
    body = {**KEYS, "name": "once"}
    first = ask(pipeline, manager, "POST", "/v1/api-keys", body, "key-1")
    assert first.status == 201 and "Idempotent-Replayed" not in first.headers
    # The quoted form is the same key; white space and the order of members are not the request.
    again = ask(pipeline, manager, "POST", "/v1/api-keys", b'{ "scopes": ["send"],  "name": "once" }', '"key-1"')
    assert (again.status, again.raw) == (201, first.raw)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert names(pipeline, manager).count("once") == 1
    stored = pipeline.postgres.query("SELECT response_status, response_body FROM gateway.idempotency_keys WHERE idempotency_key = 'key-1'")
    assert len(stored) == 1 and stored[0][0] == 201
    secret = first.body["key"].split(".")[1].encode()
    assert secret not in bytes(stored[0][1])


def test_a_repeat_has_the_place_and_the_version_of_what_was_made(pipeline, manager):
    body = {"identity_type": "guest", "identity_id": "twice", "name": "Ann"}
    first, again = (ask(pipeline, manager, "POST", "/v1/recipients", body, "key-9") for _ in range(2))
    assert (first.status, again.status) == (201, 201)  # without the key the second would be 200: it is known
    assert [again.headers[name] for name in ("Location", "ETag")] == [first.headers[name] for name in ("Location", "ETag")]


def test_another_request_under_the_key_is_409_and_another_route_another_key(pipeline, manager):
    assert ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "name": "one"}, "key-2").status == 201
    refused = ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "name": "two"}, "key-2")
    assert refused.status == 409 and refused.body["type"].endswith(":idempotency-conflict") and refused.body["field"] == "Idempotency-Key"
    assert openapi.faults({"$ref": "#/components/schemas/Problem"}, refused.body) == []
    assert "two" not in names(pipeline, manager)
    other = ask(pipeline, manager, "POST", "/v1/suppressions", {"address": "kim@example.com"}, "key-2")
    assert other.status == 201
    assert ask(pipeline, manager, "POST", "/v1/suppressions/import?dry_run=true", b'{"address": "kim@example.com"}\n', "key-3").status == 200
    assert ask(pipeline, manager, "POST", "/v1/suppressions/import", b'{"address": "kim@example.com"}\n', "key-3").status == 409


def test_a_refused_request_holds_no_key(pipeline, manager):
    assert ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "scopes": ["everything"]}, "key-4").status == 422
    assert ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "name": "mended"}, "key-4").status == 201
    for wrong in ("x" * 129, '""', "caf\u00e9"):
        answer = ask(pipeline, manager, "POST", "/v1/api-keys", KEYS, wrong.encode().decode("latin-1"))
        assert answer.status == 422 and answer.body["field"] == "Idempotency-Key", wrong
    assert ask(pipeline, manager, "POST", "/v1/triggers/none/try", {}, "key-4").status == 404  # a read asks for no key


def test_of_many_at_once_one_is_carried_out_and_the_others_wait_for_its_answer(pipeline, manager):
    answers = []

    def send():
        answers.append(ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "name": "crowd"}, "key-5"))
    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [201] * 8 and len({answer.raw for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert names(pipeline, manager).count("crowd") == 1


def test_a_claim_whose_process_died_ends_and_the_repeat_is_carried_out(pipeline, manager):
    port = free_port()
    gateway = pipeline.service("gateway", "dying", STENTOR_GATEWAY_PORT=port, STENTOR_GATEWAY_KEY_LEASE_MS=1500,
                               STENTOR_CRASH_AT="gateway.answer_claimed:1").start()
    wait_until(lambda: ask(pipeline, manager, "GET", "/v1/api-keys", port=port).status == 200, 20, "the gateway reading CONFIG")
    with pytest.raises(OSError):
        ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "name": "left"}, "key-6", port=port)
    gateway.exit_status()
    assert "left" not in names(pipeline, manager)
    assert ask(pipeline, manager, "POST", "/v1/api-keys", {**KEYS, "name": "left"}, "key-6").status == 201
    assert names(pipeline, manager).count("left") == 1


def test_a_quoted_key_is_the_same_key_for_a_notification_and_a_batch_too(pipeline):
    body = {"to": "uma@example.com", "template": "welcome", "variables": {"name": "Uma"}}
    first = ask(pipeline, pipeline.key, "POST", "/v1/notifications", body, "key-7")
    again = ask(pipeline, pipeline.key, "POST", "/v1/notifications", body, '"key-7"')
    assert first.status == 202 and again.raw == first.raw and again.headers["Idempotent-Replayed"] == "true"
    draft = {"name": "Quoted", "template": "welcome", "variables": {"name": "you"}}
    batch = ask(pipeline, pipeline.key, "POST", "/v1/batches", draft, '"key-8"')
    repeated = ask(pipeline, pipeline.key, "POST", "/v1/batches", draft, "key-8")
    assert batch.status == 201 and repeated.body["id"] == batch.body["id"]


def test_old_keys_are_dropped(pipeline):
    pipeline.postgres.query("UPDATE gateway.idempotency_keys SET created_at = now() - interval '25 hours' WHERE idempotency_key = 'key-2'")
    sweeper = pipeline.service("gateway", "sweeper", STENTOR_GATEWAY_PORT=free_port()).start()  # at its start, and once a minute
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM gateway.idempotency_keys WHERE idempotency_key = 'key-2'")[0][0] == 0, 20, "the drop")
    assert sweeper.stop() == 0
