# SPDX-License-Identifier: Apache-2.0
"""Bad input gets a clear error that names the field, or a dead letter with the reason; the pipeline goes on."""
import http.client
import json

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.erasure.sealed_events import opened

GOOD = {"to": "alice@example.com", "template": "welcome", "variables": {"name": "A"}}


# One row a case: name, body, status, field, words of the detail.
BAD_REQUESTS = [
    ("not json", b'{"to": ', 400, None, "line 1"),
    ("not utf-8", b'{"to": "a\xff@example.com", "template": "welcome"}', 400, None, "utf-8"),
    ("neither object nor array", b'"hello"', 400, None, ""),
    ("empty array", [], 422, None, "1"),
    ("too many", [GOOD] * 1001, 422, None, "1000"),
    ("no address", {"template": "welcome"}, 422, "to", ""),
    ("not an address", {**GOOD, "to": "no-at-sign"}, 422, "to", ""),
    ("line break in the address", {**GOOD, "to": "a@example.com\r\nBcc: b@example.com"}, 422, "to", ""),
    ("line break in the name", {**GOOD, "to": {"address": "a@example.com", "name": "A\r\nBcc: b@example.com"}}, 422, "to.name", ""),
    ("long local part", {**GOOD, "to": "x" * 65 + "@example.com"}, 422, "to", "64"),
    ("no template", {"to": "a@example.com"}, 422, "template", ""),
    ("unknown template", {**GOOD, "template": "nothing-here"}, 422, "template", "nothing-here"),
    ("bad template key", {**GOOD, "template": "Wel come"}, 422, "template", ""),
    ("unknown field", {**GOOD, "tempalte": "x"}, 422, "tempalte", ""),
    ("unknown priority", {**GOOD, "priority": "soon"}, 422, "priority", ""),
    ("variables not an object", {**GOOD, "variables": [1]}, 422, "variables", ""),
    ("over-long correlation id", {**GOOD, "correlation_id": "x" * 129}, 422, "correlation_id", "128"),
    ("time that is none", {**GOOD, "scheduled_for": "tomorrow"}, 422, "scheduled_for", ""),
    ("already expired", {**GOOD, "expires_at": "2001-01-01T00:00:00Z"}, 422, "expires_at", ""),
    ("missing variable", {**GOOD, "variables": {"plan": "gold"}}, 422, "variables.name", "template 'welcome'"),
    ("variable that is null", {**GOOD, "variables": {"name": None}}, 422, "variables.name", "required"),
    ("no variables in an array", [GOOD, {"to": "a@example.com", "template": "welcome"}], 422, "notifications[1].variables.name", "1.0.0"),
    ("channel without a vendor", {**GOOD, "to": "token", "channel": "push"}, 422, "channel", "it delivers email, sms, inapp"),
    ("third of an array", [GOOD, GOOD, {**GOOD, "to": 7}], 422, "notifications[2].to", ""),
]


@pytest.mark.parametrize("body,status,field,words", [case[1:] for case in BAD_REQUESTS], ids=[case[0] for case in BAD_REQUESTS])
def test_a_bad_request_gets_field_and_reason(pipeline, body, status, field, words):
    answer = pipeline.post(body)
    assert answer[0] == status, answer
    assert answer[1]["Content-Type"] == "application/problem+json"
    assert answer[2]["status"] == status and answer[2]["title"]
    assert answer[2].get("field") == field
    assert words.lower() in answer[2]["detail"].lower()


# One row a route: path, body, the fields that are wrong.
MANY_FAULTS = [
    ("/v1/notifications", {"to": 7, "priority": "soon", "tempalte": "x"}, {"to", "priority", "tempalte", "template"}),
    ("/v1/notifications", [GOOD, {**GOOD, "template": "nothing-here"}, {**GOOD, "template": "nor-here"}],
     {"notifications[1].template", "notifications[2].template"}),
    ("/v1/recipients", {"locale": "x_y", "time_zone": "Mars", "colour": 1, "addresses": [{"channel": "pigeon"}, 7, {"channel": "sms"}]},
     {"locale", "time_zone", "colour", "addresses[0].channel", "addresses[0].address", "addresses[1]", "addresses[2].address"}),
    ("/v1/suppressions", {"address": 7, "reason": "why", "category": "fun", "colour": 1}, {"address", "reason", "category", "colour"}),
    ("/v1/batches", {"template": "Wel come", "priority": "soon", "colour": 1, "members": []}, {"name", "template", "priority", "colour"}),
]


@pytest.mark.parametrize("path, body, fields", MANY_FAULTS)
def test_all_faults_of_a_body_are_reported_at_once(pipeline, path, body, fields):
    status, headers, problem = pipeline.post(body, path=path)
    assert status == 422, problem
    assert {error["field"] for error in problem["errors"]} == fields and len(problem["errors"]) == len(fields), problem
    assert all(error["detail"] for error in problem["errors"])
    assert problem["errors"][0] == {"field": problem["field"], "detail": problem["detail"]}
    assert problem["instance"] == "urn:stentor:request:" + headers["Stentor-Request-Id"]


def test_a_body_over_the_limit_is_refused_and_its_client_reads_why(pipeline):
    """It writes the whole body before it reads: what is too much is read and thrown away."""
    for port in (pipeline.api_port, pipeline.ingest_port):
        status, _, problem = pipeline.post(b'{"to": "' + b"x" * (5 * 1024 * 1024) + b'"}', port=port)
        assert status == 413 and problem["type"].endswith("body-too-large") and "4194304" in problem["detail"]


@pytest.mark.parametrize("key", ["", "stn_0000000000000000.0000", "nonsense", None])
def test_a_wrong_api_key_is_refused(pipeline, key):
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {"Authorization": ""}
    assert pipeline.post(GOOD, headers=headers)[0] == 401
    right_id_wrong_secret = pipeline.key.split(".")[0] + "." + "0" * 64
    assert pipeline.post(GOOD, headers={"Authorization": f"Bearer {right_id_wrong_secret}"})[0] == 401


def test_unknown_paths_and_methods_get_404_and_405(pipeline):
    assert pipeline.post(GOOD, path="/v1/nothing")[0] == 404


def test_a_command_without_a_required_variable_fails_with_its_name(pipeline, nats):
    """Its publisher waits for no answer, so the status says it."""
    command = messages(pipeline).NotifyCommand(to="missing@example.com", template="welcome", variables_json='{"plan":"gold"}', correlation_id="missing")
    nats.publish(f"evt.{TENANT}.notify", command.SerializeToString(), "missing-variable")
    found = "SELECT id FROM archiver.notifications WHERE correlation_id = 'missing' AND status = 'failed'"
    (notification,), = wait_until(lambda: pipeline.postgres.query(found), 20, "the command's notification failed")
    row = pipeline.status(notification)
    assert row["reason_code"] == "missing_variable" and "'name'" in row["reason"]
    assert pipeline.mailbox.for_notification(notification) == []


def test_the_command_line_names_a_missing_variable_and_ends_with_2(pipeline):
    done = pipeline.run_cli("send", "--to", "a@example.com", "--template", "welcome")
    assert done.returncode == 2 and done.stdout == "" and "--var name: required by template" in done.stderr, done
    given = json.loads(pipeline.cli("template", "show", "welcome", "--json"))
    assert [one["name"] for one in given["variables"] if one["required"]] == ["name"]


def test_a_batch_names_each_member_without_a_required_variable(pipeline):
    batch = {"name": "bills", "template": "welcome"}
    members = [{"to": "a@example.com", "variables": {"name": "A"}}, {"to": "b@example.com"}]
    status, _, problem = pipeline.post({**batch, "members": members}, path="/v1/batches")
    assert (status, problem["field"]) == (422, "members[1].variables.name"), problem
    status, _, taken = pipeline.post({**batch, "variables": {"name": "all"}, "members": members}, path="/v1/batches")
    assert (status, taken["members"]) == (201, 2), taken
    lines = "\n".join(json.dumps(member) for member in members).encode()
    for own, broken in (({}, [{"line": 2, "field": "variables.name"}]), ({"variables": {"name": "all"}}, [])):
        status, _, draft = pipeline.post({**batch, **own}, path="/v1/batches")
        assert status == 201, draft
        status, _, part = pipeline.post(lines, path=f"/v1/batches/{draft['id']}/members?part=1")
        assert status == 200 and part["added"] == 2 - len(broken), part
        assert [{"line": line["line"], "field": line["field"]} for line in part["lines"]] == broken
    status, _, problem = pipeline.post({**batch, "channel": "push"}, path="/v1/batches")
    assert (status, problem["field"]) == (422, "channel"), problem


def test_a_schedule_in_the_past_is_sent_at_once_and_the_answer_says_so(pipeline):
    past = {**GOOD, "scheduled_for": "2020-01-01T00:00:00Z"}
    status, headers, answer = pipeline.post(past, headers={"Idempotency-Key": "past"})
    assert (status, answer["status"], answer["scheduled_for_past"]) == (202, "queued", True)
    assert headers["Location"] == f"/v1/notifications/{answer['id']}"
    assert pipeline.post(past, headers={"Idempotency-Key": "past"})[2] == answer
    status, _, answer = pipeline.post([GOOD, past])
    assert [one.get("scheduled_for_past") for one in answer["notifications"]] == [None, True]
    assert pipeline.status(answer["notifications"][1]["id"], wait="sent")["status"] == "sent"


def test_only_a_created_recipient_has_a_location_and_it_leads_there(pipeline):
    def call(method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
        connection.request(method, path, body, {"Authorization": f"Bearer {pipeline.key}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.getheader("Location")

    created, place = call("POST", "/v1/recipients", '{"identity_type": "user", "identity_id": "placed"}')
    assert created == 201 and call("GET", place)[0] == 200
    assert call("PUT", place, '{"name": "Ada"}') == (200, None)
    assert call("DELETE", place) == (200, None)


@pytest.mark.parametrize("path, expected", [("/v1/batches", 200), ("/v1/recipients?identity_type=guest&identity_id=none", 200),
                                            ("/v1/nothing", 404), ("/v1/batches/dbt_none", 404)])
def test_head_is_answered_where_get_is(pipeline, path, expected):
    answers = {}
    for method in ("GET", "HEAD"):
        connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
        connection.request(method, path, headers={"Authorization": f"Bearer {pipeline.key}"})
        answer = connection.getresponse()
        answers[method] = answer.status, answer.getheader("Content-Type"), answer.read()
        connection.close()
    assert answers["HEAD"] == (expected, answers["GET"][1], b"") and answers["GET"][0] == expected


def test_a_variable_cannot_inject_a_header(pipeline):
    notification = pipeline.send(variables={"name": "X\r\nBcc: victim@example.com"})
    pipeline.status(notification, wait="sent")
    mail = pipeline.mailbox.for_notification(notification)[0]
    assert mail["Bcc"] is None and "victim@example.com" in mail["Subject"]


# Every subject that a worker or projector reads. `lane` streams share their code; one of each is enough.
POISONED = ["ntf.request.normal", "ntf.rendered.normal", "ntf.deferred.retry", "evt", "ntf.inbound"]


@pytest.mark.parametrize("payload", [b"\xff\xff\xff\xff", b"", b"\x0a\x03abc", b"x" * 100_000], ids=["garbage", "empty", "torn", "long"])
@pytest.mark.parametrize("prefix", POISONED)
def test_poison_becomes_a_dead_letter_and_the_pipeline_goes_on(pipeline, nats, prefix, payload):
    subject = {"evt": f"evt.{TENANT}.notify", "ntf.inbound": "ntf.inbound.sendgrid"}.get(prefix, f"{prefix}.{TENANT}")
    before = nats.stream_info("DEAD")["state"]["messages"]
    ack = nats.publish(subject, payload)
    letter = wait_until(lambda: _letter_about(pipeline, nats, before, ack), 20, "the dead letter")
    assert opened(pipeline, letter.subject, {}, letter.payload)[1] == payload and letter.reason
    notification = pipeline.send()
    assert pipeline.status(notification, wait="sent")["status"] == "sent"


def _letter_about(pipeline, nats, before, ack):
    state = nats.stream_info("DEAD")["state"]
    for seq in range(before + 1, state["last_seq"] + 1):
        found = nats.message("DEAD", seq=seq)
        if found:
            letter = messages(pipeline).DeadLetter.FromString(found[1])
            if letter.stream == ack["stream"] and letter.stream_sequence == ack["seq"]:
                return letter
    return None


def test_poison_on_status_and_config_is_passed_over(pipeline, nats):
    nats.publish(f"ntf.status.{TENANT}.email.sent", b"\xff\xff\xff\xff")
    nats.publish(f"cfg.template.{TENANT}.broken.1_0_0", b"\xff\xff\xff\xff")
    nats.publish(f"cfg.apikey.{TENANT}.broken", b"\x0a")
    notification = pipeline.send()
    assert pipeline.status(notification, wait="sent")["status"] == "sent"
    for service in pipeline.services.values():
        assert service.alive() and service.ready(), service.name
    for subject in (f"cfg.template.{TENANT}.broken.1_0_0", f"cfg.apikey.{TENANT}.broken"):
        pipeline.cli("config", "mend", subject, "--drop", admin=True)  # doctor names them as long as they are there


def test_a_command_with_a_bad_field_is_buried_with_its_name(pipeline, nats):
    command = messages(pipeline).NotifyCommand(to="no-at-sign", template="welcome")
    before = nats.stream_info("DEAD")["state"]["messages"]
    ack = nats.publish(f"evt.{TENANT}.notify", command.SerializeToString(), "bad-command")
    letter = wait_until(lambda: _letter_about(pipeline, nats, before, ack), 20, "the dead letter")
    assert letter.stage == "ingest" and "to" in letter.reason


@pytest.mark.parametrize("words,message", [
    (["send", "--to", "a@example.com"], "--template"),
    (["send", "--to", "a@example.com", "--template", "welcome", "--var", "novalue"], "NAME=TEXT"),
    (["send", "--to", "no-at-sign", "--template", "welcome"], "--to: "),
    (["status", "ntf_short"], "not a notification id"),
    (["frobnicate"], "unknown command"),
    (["tenant", "put", "Not A Tenant"], "not a tenant id"),
    (["template", "put", "x", "--subject", "{{#if}", "--text", "/dev/null"], ""),
    (["tail", "--count", "many"], "whole number"),
])
def test_the_command_line_says_what_is_wrong(pipeline, words, message):
    done = pipeline.run_cli(*words)
    assert done.returncode == 2 and message in done.stderr


def test_a_broken_template_is_refused_with_line_and_column(pipeline, tmp_path):
    source = tmp_path / "broken.html"
    source.write_text("<p>\n  {{#if name}}never closed")
    done = pipeline.run_cli("template", "put", "broken", "--subject", "x", "--html", source)
    assert done.returncode == 2 and "html: line 2, column 3" in done.stderr


def test_a_status_that_is_not_there_has_its_own_exit_status(pipeline):
    assert pipeline.run_cli("status", "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV").returncode == 3
    assert json.loads(pipeline.cli("doctor", "--json", admin=True))["ok"]
