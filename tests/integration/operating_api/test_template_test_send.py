# SPDX-License-Identifier: Apache-2.0
"""POST /v1/templates/{key}/{version}/test-send: a version, also a draft, goes once to an address of the tester's choice, as any mail does."""
import json
import subprocess
import uuid

import pytest

from tests.harness import openapi
from tests.harness.pipeline import TENANT
from tests.harness.processes import BIN, free_port, wait_until

DIED = -9
WRITER = "templates:write,templates:read,notifications:send,notifications:read,suppressions:write"


def new_key(pipeline, scopes):
    key = json.loads(pipeline.cli("apikey", "create", "--name", "tester", "--scopes", scopes, "--json"))["key"]
    wait_until(lambda: ask(pipeline, key, "GET", "/v1/me").status == 200, 20, "the key reaching the gateway")
    return key


@pytest.fixture(scope="module")
def writer(pipeline):
    return new_key(pipeline, WRITER)


def ask(pipeline, key, method, path, body=None, port=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return openapi.call(port or pipeline.api_port, method, path, None if body is None else json.dumps(body).encode(),
                        {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers})


def publish(pipeline, key, name=None, tenant=TENANT, **fields):
    """A draft, unless it says otherwise. Its key."""
    name = name or f"try-{uuid.uuid4().hex[:8]}"
    document = {"key": name, "version": "1.0.0", "status": "draft", "category": "transactional", "sample": {"name": "Sam"},
                "locales": [{"locale": "en", "subject": "For {{name}}", "html": "<p>Hello {{name}}</p>", "text": "Hello {{name}}"},
                            {"locale": "de", "subject": "An {{name}}", "text": "Hallo {{name}}"}],
                "variables": [{"name": "name", "required": True, "maxLength": 20}], **fields}
    status, _, answer = pipeline.post(document, path="/v1/templates", headers={"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": tenant})
    assert status == 201, answer
    return name


def test_send(pipeline, key, template, body, version="1.0.0", query="", port=None, **headers):
    return ask(pipeline, key, "POST", f"/v1/templates/{template}/{version}/test-send{query}", body, port, **headers)


test_send.__test__ = False


def shown(pipeline, key, notification, status):
    def seen():
        answer = ask(pipeline, key, "GET", f"/v1/notifications/{notification}")
        return answer.status == 200 and answer.body["status"] == status and answer.body
    return wait_until(seen, 30, f"{notification} being {status}")


def slug(answer):
    return answer.status, answer.body["type"].rpartition(":")[2]


def test_a_draft_is_sent_once_with_its_sample_and_says_that_it_is_a_test(pipeline, writer):
    name = publish(pipeline, writer, category="marketing")
    assert pipeline.post({"to": "a@example.com", "template": name, "template_version": "1.0.0"})[0] == 422  # not as a notification
    answer = test_send(pipeline, writer, name, {"to": {"address": "Tess@Example.com", "name": "Tess"}})
    assert answer.status == 202, answer.raw
    sent = answer.body
    assert sent == {"id": sent["id"], "template": name, "version": "1.0.0", "channel": "email", "correlation_id": f"test-send/{name}/1.0.0"}
    assert answer.headers["Location"] == f"/v1/notifications/{sent['id']}"
    row = shown(pipeline, writer, sent["id"], "sent")
    assert (row["category"], row["template_version"], row["correlation_id"]) == ("transactional", "1.0.0", sent["correlation_id"])
    mails = pipeline.mailbox.for_notification(sent["id"])
    assert [(mail["Subject"], mail["X-Stentor-Test"], mail["To"]) for mail in mails] == [("For Sam", f"{name}/1.0.0", "Tess <Tess@example.com>")]
    ordinary = pipeline.send(to="plain@example.com")
    pipeline.status(ordinary, wait="sent")
    assert pipeline.mailbox.for_notification(ordinary)[0]["X-Stentor-Test"] is None


def test_variables_and_locale_are_the_testers_and_the_active_version_can_be_tested_too(pipeline, writer):
    name = publish(pipeline, writer, status="active")
    sent = test_send(pipeline, writer, name, {"to": "tess@example.com", "locale": "de-AT", "variables": {"name": "Zoë"}})
    assert sent.status == 202, sent.raw
    shown(pipeline, writer, sent.body["id"], "sent")
    assert pipeline.mailbox.for_notification(sent.body["id"])[0]["Subject"] == "An Zoë"


def test_a_suppressed_address_gets_no_test(pipeline, writer):
    assert ask(pipeline, writer, "POST", "/v1/suppressions", {"address": "gone@example.com", "reason": "manual"}).status == 201
    name = publish(pipeline, writer)
    sent = test_send(pipeline, writer, name, {"to": "gone@example.com"})
    assert sent.status == 202
    shown(pipeline, writer, sent.body["id"], "suppressed")
    assert pipeline.mailbox.for_notification(sent.body["id"]) == []


@pytest.mark.parametrize("missing", ["templates:write", "notifications:send"])
def test_it_needs_two_scopes_and_names_the_missing_one(pipeline, writer, missing):
    name = publish(pipeline, writer)
    key = new_key(pipeline, ",".join(scope for scope in WRITER.split(",") if scope != missing))
    refused = test_send(pipeline, key, name, {"to": "tess@example.com"})
    assert slug(refused) == (403, "missing-scope") and f"'{missing}'" in refused.body["detail"]


@pytest.mark.parametrize("body, field", [
    ({}, "to"), ({"to": ""}, "to"), ({"to": 7}, "to"), ({"to": "no-at-sign"}, "to"), ({"to": {"name": "Tess"}}, "to"), ({"to": {"address": "a@b.example", "x": 1}}, "to.x"),
    ({"to": "a@b.example", "locale": "!"}, "locale"), ({"to": "a@b.example", "variables": []}, "variables"),
    ({"to": "a@b.example", "variables": {}}, "variables.name"), ({"to": "a@b.example", "variables": {"name": "x" * 21}}, "variables.name"),
    ({"to": "a@b.example", "category": "marketing"}, "category"), ({"to": "a@b.example", "variables": {"name": "y", "z": "x" * 70_000}}, "variables"),
])
def test_what_does_not_fit_names_the_field(pipeline, writer, body, field):
    answer = test_send(pipeline, writer, "bad-input", body)
    if answer.status == 404:
        publish(pipeline, writer, "bad-input")
        answer = test_send(pipeline, writer, "bad-input", body)
    assert (answer.status, answer.body.get("field")) == (422, field), answer.raw


def test_what_cannot_be_tested_is_refused_with_the_reason(pipeline, writer):
    name = publish(pipeline, writer, status="active")
    assert ask(pipeline, pipeline.operator_key, "POST", f"/v1/templates/{name}/1.0.0/archive", {}, Stentor_Tenant=TENANT).status == 200
    archived = test_send(pipeline, writer, name, {"to": "tess@example.com"})
    assert slug(archived) == (409, "version-status") and "archived" in archived.body["detail"]
    shared = publish(pipeline, writer, tenant="platform")
    foreign = test_send(pipeline, writer, shared, {"to": "tess@example.com"})
    assert slug(foreign) == (409, "version-status") and "platform" in foreign.body["detail"]
    publish(pipeline, writer, shared, tenant="platform", status="active")
    publish(pipeline, writer, shared)
    hidden = test_send(pipeline, writer, shared, {"to": "tess@example.com"})  # the renderer would take the platform's
    assert slug(hidden) == (409, "version-status") and "another one" in hidden.body["detail"]
    for template, version in ((name, "9.9.9"), ("nowhere", "1.0.0"), (name, "*"), ("*", "1.0.0")):
        assert slug(test_send(pipeline, writer, template, {"to": "tess@example.com"}, version)) == (404, "not-found")
    push = publish(pipeline, writer, channel="push", locales=[{"locale": "en", "title": "Hi {{name}}", "text": "x"}])
    no_vendor = test_send(pipeline, writer, push, {"to": "fcm:" + "a" * 140})
    assert (no_vendor.status, no_vendor.body["field"]) == (422, "channel"), no_vendor.raw
    publish(pipeline, writer, push)
    assert slug(test_send(pipeline, writer, push, {"to": "tess@example.com"})) == (400, "invalid-parameter")
    assert test_send(pipeline, writer, push, {"to": "tess@example.com"}, query="?channel=email").status == 202


def test_a_repeat_under_a_key_is_one_mail_also_after_a_death_in_between(pipeline, writer):
    name = publish(pipeline, writer)
    body = {"to": "once@example.com"}
    first = test_send(pipeline, writer, name, body, Idempotency_Key="tested-once")
    again = test_send(pipeline, writer, name, body, Idempotency_Key="tested-once")
    assert first.status == 202 and again.body == first.body and again.headers["Idempotent-Replayed"] == "true"
    assert slug(test_send(pipeline, writer, name, {"to": "other@example.com"}, Idempotency_Key="tested-once")) == (409, "idempotency-conflict")
    shown(pipeline, writer, first.body["id"], "sent")
    if "gateway.answer_made" not in subprocess.run([BIN / "stentor-gateway", "--crash-points"], capture_output=True, text=True, timeout=20).stdout:
        pytest.skip("built without -DSTENTOR_CRASH_POINTS=ON")
    port = free_port()
    dying = pipeline.service("gateway", "dying", STENTOR_GATEWAY_PORT=port, STENTOR_GATEWAY_KEY_LEASE_MS=1000, STENTOR_CRASH_AT="gateway.answer_made:1").start()
    wait_until(lambda: ask(pipeline, writer, "GET", "/v1/templates", port=port).status == 200, 20, "the gateway reading CONFIG")
    with pytest.raises(OSError):
        test_send(pipeline, writer, name, {"to": "cut@example.com"}, port=port, Idempotency_Key="cut-off")
    assert dying.exit_status(30) == DIED
    repeated = test_send(pipeline, writer, name, {"to": "cut@example.com"}, Idempotency_Key="cut-off")
    assert repeated.status == 202
    shown(pipeline, writer, repeated.body["id"], "sent")
    found = pipeline.postgres.query("SELECT id FROM archiver.notifications WHERE correlation_id = %s", f"test-send/{name}/1.0.0")
    assert sorted(row[0] for row in found) == sorted([first.body["id"], repeated.body["id"]])
    assert len(pipeline.mailbox.for_notification(repeated.body["id"])) == 1
