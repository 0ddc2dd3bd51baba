# SPDX-License-Identifier: Apache-2.0
"""A tenant's webhook subscriptions through the API and the command line: made once, changed, rotated; what is refused; their deliveries.
Rows B32 and B35 of the Notification Database: webhook_subscriptions (name, target_url, filters, a secret and the one before), webhook_deliveries."""
import base64
import http.client
import importlib
import json
import re
import subprocess
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, free_port, wait_until
from tests.harness.protobuf import messages
from tests.harness.vendor_doubles.chaos import Dns

SUBSCRIPTIONS = "/v1/subscriptions"
PUBLIC = "https://hooks.vendor.test/stentor"
NAMES = {"hooks.vendor.test": ["93.184.216.34"], "mixed.vendor.test": ["93.184.216.34", "10.0.0.5"],
         "mixed6.vendor.test": ["93.184.216.34", "fe80::1"], "inside.vendor.test": ["192.168.1.4"], "meta.vendor.test": ["169.254.169.254"]}


@pytest.fixture(scope="module")
def dns(tmp_path_factory):
    server = Dns(tmp_path_factory.mktemp("dns"), NAMES)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def pipeline(dns):
    running = Pipeline({"STENTOR_WEBHOOK_DNS": dns.address}).start(["ingest", "gateway"])
    yield running
    running.stop()


class Answer:
    def __init__(self, raw):
        text = raw.read()
        self.status, self.headers, self.body = raw.status, raw.headers, json.loads(text) if text else None

    def refused(self, status, *words):
        said = json.dumps(self.body)
        assert self.status == status and all(word in said for word in words), (self.status, said)
        return self.body


def ask(pipeline, method, path, body=None, port=None, key=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port or pipeline.api_port, timeout=30)
    sent = {"Authorization": f"Bearer {key or pipeline.key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def make(pipeline, key=None, **fields):
    answer = ask(pipeline, "POST", SUBSCRIPTIONS, {"name": f"shop {uuid.uuid4().hex[:8]}", "target_url": PUBLIC, **fields}, key=key)
    assert answer.status == 201, answer.body
    return answer.body


def secret_bytes(text):
    assert text.startswith("whsec_"), text
    return base64.b64decode(text.removeprefix("whsec_"), validate=True)


@pytest.fixture(scope="module")
def globex(pipeline):
    """A key of another tenant."""
    pipeline.cli("tenant", "put", "globex", "--name", "Globex", tenant="globex")
    key = json.loads(pipeline.cli("apikey", "create", "--name", "globex", "--json", tenant="globex"))["key"]
    wait_until(lambda: ask(pipeline, "GET", SUBSCRIPTIONS, key=key).status == 200, 20, "the key reaching gateway")
    return key


# ---- through the API ----

def test_a_subscription_from_its_making_to_its_end(pipeline):
    fields = {"name": "shop", "target_url": PUBLIC, "events": ["notification.delivered", "notification.failed"], "channels": ["email", "sms"],
              "categories": ["transactional"], "rate_per_s": 5, "in_flight": 2, "disable_after": 7, "in_order": True}
    made = ask(pipeline, "POST", SUBSCRIPTIONS, fields)
    assert made.status == 201 and made.headers["Location"] == f"{SUBSCRIPTIONS}/{made.body['id']}"
    assert re.fullmatch(r"whs_[0-9A-HJKMNP-TV-Z]{26}", made.body["id"]) and 24 <= len(secret_bytes(made.body["secret"])) <= 64
    path = made.headers["Location"]

    shown = ask(pipeline, "GET", path)
    assert shown.status == 200 and "secret" not in shown.body and made.body["secret"] not in json.dumps(shown.body)
    assert {name: shown.body[name] for name in fields} == fields and shown.body["state"] == "active"
    assert len(shown.body["secrets"]) == 1 and shown.body["secrets"][0].keys() == {"created_at"}
    assert shown.headers["ETag"] == made.headers["ETag"]

    # The whole is replaced: what is not named is the default; id, secret and state stay.
    changed = ask(pipeline, "PUT", path, {"name": "shop", "target_url": PUBLIC + "/2"}, If_Match=shown.headers["ETag"])
    assert changed.status == 200 and changed.body["target_url"] == PUBLIC + "/2"
    assert {name: changed.body[name] for name in ("events", "channels", "categories", "rate_per_s", "in_flight", "disable_after", "in_order")} == {
        "events": [], "channels": [], "categories": [], "rate_per_s": 25, "in_flight": 8, "disable_after": 20, "in_order": False}
    assert changed.body["secrets"] == shown.body["secrets"] and changed.body["id"] == made.body["id"]
    same = ask(pipeline, "PUT", path, {"name": "shop", "target_url": PUBLIC + "/2"})
    assert same.headers["ETag"] == changed.headers["ETag"], "the same content is no change"
    ask(pipeline, "PUT", path, fields, If_Match=shown.headers["ETag"]).refused(412, "precondition-failed")

    off = ask(pipeline, "POST", path + "/disable", {"reason": "moving house"})
    assert (off.body["state"], off.body["state_reason"]) == ("disabled", "moving house")
    on = ask(pipeline, "POST", path + "/enable")
    assert on.body["state"] == "active" and "state_reason" not in on.body
    assert ask(pipeline, "POST", path + "/enable").headers["ETag"] == on.headers["ETag"]

    listed = ask(pipeline, "GET", SUBSCRIPTIONS)
    assert on.body in listed.body["data"]
    ask(pipeline, "DELETE", path, If_Match=off.headers["ETag"]).refused(412, "precondition-failed")
    assert ask(pipeline, "DELETE", path, If_Match=on.headers["ETag"]).status == 204
    ask(pipeline, "GET", path).refused(404, made.body["id"])
    for method, tail in (("PUT", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable"), ("POST", "/rotate-secret")):
        for name in (made.body["id"], "whs_1", "x.y", "whs_" + "*" * 26):
            ask(pipeline, method, f"{SUBSCRIPTIONS}/{name}{tail}", fields if method == "PUT" else None).refused(404, name)


def test_pages_of_subscriptions_follow_each_other(pipeline):
    made = {make(pipeline)["id"] for _ in range(5)}
    seen, cursor = [], ""
    while cursor is not None:
        page = ask(pipeline, "GET", f"{SUBSCRIPTIONS}?limit=2" + (f"&cursor={cursor}" if cursor else "")).body
        assert len(page["data"]) <= 2
        seen += [item["id"] for item in page["data"]]
        cursor = page["next"]
    assert made <= set(seen) and len(seen) == len(set(seen))


def test_a_repeat_under_a_key_is_the_same_subscription_with_the_same_secret(pipeline):
    key, fields = uuid.uuid4().hex, {"name": "once", "target_url": PUBLIC}
    first = ask(pipeline, "POST", SUBSCRIPTIONS, fields, Idempotency_Key=key)
    again = ask(pipeline, "POST", SUBSCRIPTIONS, fields, Idempotency_Key=key)
    assert (first.status, again.status) == (201, 201) and first.body == again.body
    assert again.headers["Idempotent-Replayed"] == "true" and first.headers["Idempotent-Replayed"] is None
    ask(pipeline, "POST", SUBSCRIPTIONS, {**fields, "name": "other"}, Idempotency_Key=key).refused(409, "idempotency-conflict")
    assert ask(pipeline, "POST", SUBSCRIPTIONS, fields).body["id"] != first.body["id"], "without a key each request makes one"
    ask(pipeline, "POST", SUBSCRIPTIONS, fields, Idempotency_Key="x" * 129).refused(422, "Idempotency-Key")


def test_two_secrets_sign_while_one_takes_the_place_of_the_other(pipeline):
    made = make(pipeline)
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    key = uuid.uuid4().hex
    rotated = ask(pipeline, "POST", path + "/rotate-secret", {"overlap_s": 3600}, Idempotency_Key=key)
    assert rotated.status == 200 and secret_bytes(rotated.body["secret"]) != secret_bytes(made["secret"])
    assert [secret.keys() for secret in rotated.body["secrets"]] == [{"created_at"}, {"created_at", "not_after"}]
    # A repeat after a lost answer: the secret before is still the one that receivers know.
    again = ask(pipeline, "POST", path + "/rotate-secret", {"overlap_s": 3600}, Idempotency_Key=key)
    assert again.body == rotated.body and again.headers["Idempotent-Replayed"] == "true"
    at_once = ask(pipeline, "POST", path + "/rotate-secret", {"overlap_s": 0})
    assert len(at_once.body["secrets"]) == 1 and at_once.body["secret"] not in (made["secret"], rotated.body["secret"])
    day = ask(pipeline, "POST", path + "/rotate-secret").body["secrets"]
    assert day[1]["not_after"][:10] > day[0]["created_at"][:10], "a day by default"
    ask(pipeline, "POST", path + "/rotate-secret", {"overlap_s": 31 * 86400}).refused(422, "overlap_s")
    ask(pipeline, "POST", path + "/rotate-secret", {"overlap": 1}).refused(422, "overlap")
    ask(pipeline, "POST", path + "/rotate-secret", {}, If_Match='"1"').refused(412, "precondition-failed")


@pytest.mark.parametrize("what", ["made", "rotated"])
def test_a_secret_whose_answer_was_lost_is_got_by_a_repeat(pipeline, what):
    """The gateway dies between the stored entry (behind that of the audit log) and its answer."""
    if "bus.stored" not in subprocess.run([BIN / "stentor-gateway", "--crash-points"], stdout=subprocess.PIPE, text=True).stdout:
        pytest.skip("built without -DSTENTOR_CRASH_POINTS=ON")
    path, body = (SUBSCRIPTIONS, {"name": "lost", "target_url": PUBLIC}) if what == "made" else (f"{SUBSCRIPTIONS}/{make(pipeline)['id']}/rotate-secret", {})
    key, port = uuid.uuid4().hex, free_port()
    dying = pipeline.service("gateway", f"dying-{what}", STENTOR_GATEWAY_PORT=port, STENTOR_CRASH_AT="bus.stored:2").start()
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(pipeline, "POST", path, body, port=port, Idempotency_Key=key)
    wait_until(lambda: not dying.alive(), 20, "its death")
    repeated = ask(pipeline, "POST", path, body, Idempotency_Key=key)
    assert repeated.status in (200, 201) and repeated.headers["Idempotent-Replayed"] == "true" and secret_bytes(repeated.body["secret"])
    assert len(repeated.body["secrets"]) == (1 if what == "made" else 2)


def test_the_secret_rests_sealed(pipeline):
    made = make(pipeline)
    plain = secret_bytes(made["secret"])
    stored = stored_entry(pipeline, made["id"])
    assert made["id"].encode() in stored and plain not in stored and made["secret"].encode() not in stored


def stored_entry(pipeline, subscription):
    client = NatsClient(pipeline.nats.port)
    try:
        subject = f"cfg.webhook.acme.{subscription}"
        answer = json.loads(client.request("$JS.API.STREAM.MSG.GET.CONFIG", json.dumps({"last_by_subj": subject}).encode()))
        return base64.b64decode(answer["message"]["data"])
    finally:
        client.close()


def test_another_tenant_sees_and_changes_none_of_it(pipeline, globex):
    mine = make(pipeline)
    path = f"{SUBSCRIPTIONS}/{mine['id']}"
    assert mine["id"] not in json.dumps(ask(pipeline, "GET", SUBSCRIPTIONS, key=globex).body)
    body = {"name": "evil", "target_url": PUBLIC}
    for method, tail in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable"), ("POST", "/rotate-secret")):
        ask(pipeline, method, path + tail, body if method == "PUT" else None, key=globex).refused(404, mine["id"])
    assert ask(pipeline, "GET", path).body["name"] == mine["name"]
    # The same Idempotency-Key is another tenant's own.
    fields = {"name": "same", "target_url": PUBLIC}
    ours, theirs = (ask(pipeline, "POST", SUBSCRIPTIONS, fields, key=key, Idempotency_Key="shared") for key in (None, globex))
    assert ours.body["id"] != theirs.body["id"] and ours.body["secret"] != theirs.body["secret"]


def test_reading_and_writing_need_their_scopes(pipeline):
    keys = {name: json.loads(pipeline.cli("apikey", "create", "--name", name, "--scopes", scopes, "--json"))["key"]
            for name, scopes in (("reader", "read"), ("manager", "manage"), ("sender", "send"))}
    for key in keys.values():
        wait_until(lambda: ask(pipeline, "GET", SUBSCRIPTIONS, key=key).status in (200, 403), 20, "the key reaching gateway")
    made = make(pipeline, key=keys["manager"])
    assert ask(pipeline, "GET", f"{SUBSCRIPTIONS}/{made['id']}", key=keys["reader"]).status == 200
    ask(pipeline, "POST", SUBSCRIPTIONS, {}, key=keys["reader"]).refused(403, "subscriptions:write")
    ask(pipeline, "GET", SUBSCRIPTIONS, key=keys["sender"]).refused(403, "subscriptions:read")


# ---- what is refused ----

@pytest.mark.parametrize("url, reason", [
    ("https://localhost/hook", "this machine"), ("https://shop.localhost/", "this machine"), ("https://127.0.0.1/", "loopback"),
    ("https://169.254.169.254/latest/meta-data/", "a cloud's metadata"), ("https://10.1.2.3/", "private"), ("https://192.168.0.1/", "private"),
    ("https://[::1]/", "loopback"), ("https://[fe80::1]/", "link-local"), ("https://[::ffff:10.0.0.1]/", "IPv4 in IPv6"),
    ("https://2130706433/", "loopback"), ("http://hooks.vendor.test/", "https://"), ("ftp://hooks.vendor.test/", "https://"),
    ("https://user:word@hooks.vendor.test/", "user"), ("https://hooks.vendor.test:25/", "port"), ("https://localhost./", "name"),
    ("https://hooks\u3002vendor.test/", "ASCII"), ("hooks.vendor.test", "URL"), ("", "required"), (None, "required"), (7, "string"),
    ("https://hooks.vendor.test/" + "x" * 2000, "2000"),
    ("https://mixed.vendor.test/", "private"), ("https://mixed6.vendor.test/", "link-local"), ("https://inside.vendor.test/", "private"),
    ("https://meta.vendor.test/", "a cloud's metadata"), ("https://none.vendor.test/", "none.vendor.test"),
])
def test_a_target_inside_or_nowhere_is_refused_by_its_field(pipeline, url, reason):
    answer = ask(pipeline, "POST", SUBSCRIPTIONS, {"name": "evil", "target_url": url})
    problem = answer.refused(422, reason)
    assert problem["field"] == "target_url", problem


def test_a_change_of_the_target_is_checked_too(pipeline):
    made = make(pipeline)
    ask(pipeline, "PUT", f"{SUBSCRIPTIONS}/{made['id']}", {"name": "evil", "target_url": "https://mixed.vendor.test/"}).refused(422, "target_url", "private")
    assert ask(pipeline, "GET", f"{SUBSCRIPTIONS}/{made['id']}").body["target_url"] == PUBLIC


@pytest.mark.parametrize("fields, field, reason", [
    ({"name": "x" * 101}, "name", "100"), ({"name": " "}, "name", "required"), ({"name": "a\nb"}, "name", "one line"), ({"name": None}, "name", "required"),
    ({"events": ["notification.send"]}, "events[0]", "'notification.send'"), ({"events": ["notification.sent", "*"]}, "events[1]", "not an event"),
    ({"events": "notification.sent"}, "events", "array"), ({"events": [7]}, "events[0]", "text"), ({"events": ["notification.sent"] * 33}, "events", "32"),
    ({"channels": ["pigeon"]}, "channels[0]", "'pigeon'"), ({"categories": ["gossip"]}, "categories[0]", "'gossip'"),
    ({"rate_per_s": 0}, "rate_per_s", "1"), ({"rate_per_s": 1001}, "rate_per_s", "1000"), ({"in_flight": 33}, "in_flight", "32"),
    ({"disable_after": -1}, "disable_after", "1"), ({"in_order": "yes"}, "in_order", "true"), ({"secret": "whsec_mine"}, "secret", ""),
    ({"id": "whs_1"}, "id", ""),
])
def test_a_field_that_is_wrong_is_named(pipeline, fields, field, reason):
    body = {"name": "shop", "target_url": PUBLIC, **fields}
    problem = ask(pipeline, "POST", SUBSCRIPTIONS, body).refused(422, reason)
    assert problem["field"] == field, problem


def test_all_wrong_fields_are_named_at_once(pipeline):
    problem = ask(pipeline, "POST", SUBSCRIPTIONS, {"target_url": "https://10.0.0.1/", "events": ["x"]}).refused(422)
    assert {error["field"] for error in problem["errors"]} == {"name", "target_url", "events[0]"}, problem


def test_an_operator_can_allow_this_machine(pipeline):
    port = free_port()
    local = pipeline.service("gateway", "local", STENTOR_GATEWAY_PORT=port, STENTOR_WEBHOOK_ADDRESSES="loopback").start()
    try:
        made = ask(pipeline, "POST", SUBSCRIPTIONS, {"name": "double", "target_url": "http://127.0.0.1:9000/hook"}, port=port)
        assert made.status == 201, made.body
        ask(pipeline, "POST", SUBSCRIPTIONS, {"name": "double", "target_url": "https://10.0.0.1/"}, port=port).refused(422, "private")
    finally:
        assert local.stop() == 0


@pytest.mark.parametrize("option, value, reason", [("STENTOR_WEBHOOK_ADDRESSES", "all", "neither private nor loopback"), ("STENTOR_WEBHOOK_DNS", "no server", "DNS servers")])
def test_a_wrong_option_stops_the_gateway(pipeline, option, value, reason):
    wrong = pipeline.service("gateway", f"wrong-{uuid.uuid4().hex[:6]}", STENTOR_GATEWAY_PORT=free_port(), **{option: value}).start(wait=False)
    wait_until(lambda: not wrong.alive(), 20, "its end")
    assert option in wrong.tail() and reason in wrong.tail()


# ---- on the command line ----

def test_the_command_line_does_the_same(pipeline):
    made = json.loads(pipeline.cli("webhook", "create", "--name", "shop", "--url", PUBLIC, "--event", "notification.delivered", "--event", "notification.failed",
                                   "--channel", "email", "--category", "security", "--rate-per-s", 5, "--in-flight", 2, "--disable-after", 7, "--in-order", "--json"))
    subscription = made["id"]
    assert secret_bytes(made["secret"]) and made["events"] == ["notification.delivered", "notification.failed"] and made["in_order"] is True
    assert (made["channels"], made["categories"], made["rate_per_s"], made["in_flight"], made["disable_after"]) == (["email"], ["security"], 5, 2, 7)
    row = next(line for line in pipeline.cli("webhook", "list").splitlines() if subscription in line)
    assert row.split() == [subscription, "active", "shop", PUBLIC]
    assert "secret " not in pipeline.cli("webhook", "show", subscription)
    changed = json.loads(pipeline.cli("webhook", "put", subscription, "--name", "store", "--url", PUBLIC, "--json"))
    assert (changed["name"], changed["events"], changed["in_order"]) == ("store", [], False)
    rotated = json.loads(pipeline.cli("webhook", "rotate", subscription, "--grace", "1h", "--idempotency-key", "first", "--json"))
    assert len(rotated["secrets"]) == 2 and rotated["secret"] != made["secret"]
    assert json.loads(pipeline.cli("webhook", "rotate", subscription, "--grace", "1h", "--idempotency-key", "first", "--json"))["secret"] == rotated["secret"]
    assert re.search(r"^state +disabled$", pipeline.cli("webhook", "disable", subscription, "--reason", "moving"), re.M)
    assert json.loads(pipeline.cli("webhook", "list", "--json"))
    assert re.search(r"^state +active$", pipeline.cli("webhook", "enable", subscription), re.M)
    assert "deleted" in pipeline.cli("webhook", "delete", subscription)
    assert pipeline.run_cli("webhook", "show", subscription).returncode == 3


@pytest.mark.parametrize("words, said", [
    (["create", "--name", "x", "--url", "https://169.254.169.254/"], "--url"), (["create", "--name", "x" * 101, "--url", PUBLIC], "--name"),
    (["create", "--name", "x", "--url", PUBLIC, "--event", "sent"], "--event"), (["create", "--name", "x", "--url", PUBLIC, "--category", "gossip"], "--category"),
    (["create", "--name", "x", "--url", PUBLIC, "--rate-per-s", "0"], "--rate-per-s"),
    (["create", "--name", "x", "--url", PUBLIC, "--in-flight", "0"], "--in-flight: must be a whole number from 1 to 32"),
    (["create", "--name", "x", "--url", PUBLIC, "--channel", "fax"], "'fax' is not a channel: email, sms, whatsapp, push, inapp, voice or webhook"),
    (["create", "--name", "x"], "--url"),
    (["rotate", "whs_00000000000000000000000001", "--grace", "soon"], "--grace"),
])
def test_a_mistake_on_the_command_line_names_the_option(pipeline, words, said):
    done = pipeline.run_cli("webhook", *words)
    assert done.returncode == 2 and said in done.stderr, (done.returncode, done.stderr)


# ---- deliveries: rows as the delivering process writes them ----

def insert(pipeline, subscription, state="failed", tenant="acme", age_s=0, **fields):
    """A row of webhooks.deliveries; its id."""
    event = uuid.uuid4().hex[:22]
    row = {"id": "whd_" + event, "tenant_id": tenant, "subscription_id": subscription, "event_id": event, "event_type": "notification.delivered",
           "notification_id": "ntf_01M82XS89VEV77VD8AS0MCMH0B", "sequence": 7, "payload": json.dumps({"type": "notification.delivered", "data": {"id": event}}),
           "ordered": False, "state": state, "turn": 1, "attempt": 3, **fields}
    names = ", ".join(row)
    pipeline.postgres.query(f"INSERT INTO webhooks.deliveries ({names}, created_at) VALUES ({', '.join(['%s'] * len(row))}, now() - %s * interval '1 second')",
                            *row.values(), age_s)
    return row["id"]


def all_pages(pipeline, path, limit=2):
    seen, cursor = [], ""
    while cursor is not None:
        page = ask(pipeline, "GET", f"{path}{'&' if '?' in path else '?'}limit={limit}" + (f"&cursor={cursor}" if cursor else "")).body
        seen += [item["id"] for item in page["data"]]
        cursor = page["next"]
    return seen


@pytest.fixture(scope="module")
def hook(pipeline):
    """The newest event on HOOK of acme, as the delivering process reads it."""
    messages(pipeline)
    event = importlib.import_module("stentor.v1.webhook_pb2").WebhookDelivery
    client = NatsClient(pipeline.nats.port)

    def last():
        answer = json.loads(client.request("$JS.API.STREAM.MSG.GET.HOOK", json.dumps({"last_by_subj": "ntf.hook.acme"}).encode()))
        return event.FromString(base64.b64decode(answer["message"]["data"])), answer["message"]["seq"]
    yield last
    client.close()


def test_deliveries_are_listed_and_filtered(pipeline, globex):
    subscription = make(pipeline)["id"]
    path = f"{SUBSCRIPTIONS}/{subscription}/deliveries"
    assert ask(pipeline, "GET", path).body == {"data": [], "next": None}
    ids = [insert(pipeline, subscription, age_s=100 - age, state=state, **fields) for age, (state, fields) in enumerate([
        ("delivered", {"status_code": 200, "finished_at": "2026-11-27T01:00:00Z", "duration_ms": 12, "response": "ok"}),
        ("failed", {"status_code": 500, "finished_at": "2026-11-27T02:00:00Z", "error": "status 500", "duration_ms": 40, "response": "no <b>"}),
        ("waiting", {"finished_at": "2026-11-27T03:00:00Z", "next_attempt_at": "2026-11-27T08:00:00Z", "error": "timeout", "duration_ms": 15000}),
        ("queued", {"event_type": "notification.failed", "attempt": 0}), ("failed", {"notification_id": "ntf_01M82XS89VEV77VD8AS0MCMH0C"})])]
    insert(pipeline, make(pipeline)["id"])
    listed = ask(pipeline, "GET", path).body["data"]
    assert [item["id"] for item in listed] == ids[::-1], "the youngest first"
    assert listed[2] == {"id": ids[2], "subscription_id": subscription, "webhook_id": ids[2].removeprefix("whd_"), "event": "notification.delivered",
                         "notification_id": "ntf_01M82XS89VEV77VD8AS0MCMH0B", "state": "waiting", "created_at": listed[2]["created_at"], "attempts": 3,
                         "last_attempt": {"finished_at": "2026-11-27T03:00:00.000000Z", "error": "timeout", "duration_ms": 15000},
                         "next_attempt_at": "2026-11-27T08:00:00.000000Z"}
    assert "last_attempt" not in listed[1]
    assert all_pages(pipeline, path) == ids[::-1]
    assert all_pages(pipeline, path + "?state=failed", limit=1) == [ids[4], ids[1]]
    assert all_pages(pipeline, path + "?event=notification.failed") == [ids[3]]
    assert all_pages(pipeline, path + "?notification_id=ntf_01M82XS89VEV77VD8AS0MCMH0C&state=failed") == [ids[4]]
    for query, field in (("state=lost", "state"), ("event=sent", "event"), ("event=notification.*", "event"), ("notification_id=7", "notification_id")):
        ask(pipeline, "GET", f"{path}?{query}").refused(422, field)
    ask(pipeline, "GET", f"{path}?cursor=abc").refused(400, "cursor")
    ask(pipeline, "GET", path, key=globex).refused(404, subscription)

    shown = ask(pipeline, "GET", f"/v1/deliveries/{ids[1]}").body
    assert shown["payload"]["data"] == {"id": ids[1].removeprefix("whd_")}
    assert shown["last_attempt"] == {"finished_at": "2026-11-27T02:00:00.000000Z", "status_code": 500, "error": "status 500", "duration_ms": 40, "response": "no <b>"}
    for key, delivery in ((globex, ids[1]), (None, "whd_none"), (None, "x" * 100)):
        ask(pipeline, "GET", f"/v1/deliveries/{delivery}", key=key).refused(404, delivery[:32])
        ask(pipeline, "POST", f"/v1/deliveries/{delivery}/replay", key=key).refused(404, delivery[:32])

    heading, *rows = pipeline.cli("webhook", "deliveries", subscription, "--state", "failed").splitlines()
    assert heading.split() == ["ID", "STATE", "EVENT", "CREATED", "ATTEMPTS", "STATUS", "ERROR"]
    assert len(rows) == 2 and ids[4] in rows[0] and rows[1].split()[:3] == [ids[1], "failed", "notification.delivered"] and rows[1].split()[-3:] == ["500", "status", "500"]
    assert [item["id"] for item in json.loads(pipeline.cli("webhook", "deliveries", subscription, "--limit", 3, "--json"))] == ids[:1:-1]
    assert "status 500" in pipeline.cli("webhook", "delivery", ids[1])


def test_a_page_with_a_filter_looks_at_a_bounded_number_of_rows(pipeline):
    """Of 12,000 deliveries the oldest is what is looked for: the first page says where to go on."""
    subscription = make(pipeline)["id"]
    oldest = insert(pipeline, subscription, age_s=5000, state="delivered", event_type="notification.opened")
    pipeline.postgres.query(
        "INSERT INTO webhooks.deliveries (id, tenant_id, subscription_id, event_id, event_type, notification_id, sequence, payload, ordered, created_at, state, turn, attempt)"
        " SELECT 'whd_' || left(md5(i::text || %s), 22), 'acme', %s, i::text, 'notification.sent', 'ntf_01M82XS89VEV77VD8AS0MCMH0B', i, '{}', false,"
        "  now() - (i / 5) * interval '1 second', 'delivered', 1, 1 FROM generate_series(1, 12000) i", subscription, subscription)
    path = f"{SUBSCRIPTIONS}/{subscription}/deliveries?event=notification.opened"
    first = ask(pipeline, "GET", path).body
    assert first["data"] == [] and first["next"]
    second = ask(pipeline, "GET", f"{path}&cursor={first['next']}").body
    assert [item["id"] for item in second["data"]] == [oldest] and second["next"] is None


def test_a_replay_is_the_next_turn_of_its_delivery(pipeline, hook):
    subscription = make(pipeline)["id"]
    failed = insert(pipeline, subscription, turn=4, previous_event_id="before", ordered=True, sequence=99)
    again = ask(pipeline, "POST", f"/v1/deliveries/{failed}/replay")
    assert (again.status, again.body) == (202, {"id": failed, "state": "queued"})
    event, sequence = hook()
    assert (event.delivery_id, event.subscription_id, event.webhook_id, event.type) == (failed, subscription, failed[4:], "notification.delivered")
    assert (event.turn, event.attempt, event.sequence, event.previous_webhook_id, event.in_order) == (5, 0, 99, "before", True)
    assert json.loads(event.payload) == {"type": "notification.delivered", "data": {"id": failed[4:]}} and event.meta.tenant == "acme"
    assert ask(pipeline, "POST", f"/v1/deliveries/{failed}/replay").status == 202
    assert hook()[1] == sequence, "until it was taken up, a repeat is the same turn"
    # One that waits for its next try goes at once, and has as many tries left as before.
    waiting = insert(pipeline, subscription, state="waiting", turn=2, attempt=5)
    assert json.loads(pipeline.cli("webhook", "replay", waiting, "--json"))["id"] == waiting
    assert (hook()[0].turn, hook()[0].attempt) == (4, 5), "turn 3 waits on DEFERRED"
    for state in ("queued", "claimed"):
        ask(pipeline, "POST", f"/v1/deliveries/{insert(pipeline, subscription, state=state)}/replay").refused(409, "delivery-under-way")
    ask(pipeline, "POST", f"{SUBSCRIPTIONS}/{subscription}/disable")
    ask(pipeline, "POST", f"/v1/deliveries/{failed}/replay").refused(409, "subscription-not-active", "disabled")
    ask(pipeline, "DELETE", f"{SUBSCRIPTIONS}/{subscription}")
    ask(pipeline, "POST", f"/v1/deliveries/{failed}/replay").refused(404, subscription)


def test_all_that_failed_since_a_time_goes_again(pipeline, hook, globex):
    subscription = make(pipeline)["id"]
    path = f"{SUBSCRIPTIONS}/{subscription}/recover"
    for age in (7000, 5000, 3000):
        insert(pipeline, subscription, age_s=age)
    insert(pipeline, subscription, state="delivered", age_s=100)
    before = hook()[1]
    assert json.loads(pipeline.cli("webhook", "recover", subscription, "--since", "100m", "--json")) == {"replayed": 2}
    assert hook()[1] == before + 2
    many = 450
    pipeline.postgres.query(
        "INSERT INTO webhooks.deliveries (id, tenant_id, subscription_id, event_id, event_type, notification_id, sequence, payload, ordered, created_at, state, turn, attempt)"
        " SELECT 'whd_' || left(md5(i::text || %s), 22), 'acme', %s, i::text, 'notification.sent', 'ntf_01M82XS89VEV77VD8AS0MCMH0B', i, '{}', false, now(), 'failed', 1, 8"
        " FROM generate_series(1, %s) i", subscription, subscription, many)
    before = hook()[1]
    answer = ask(pipeline, "POST", path, {"since": "2026-01-01T00:00:00Z"})
    assert (answer.status, answer.body) == (202, {"replayed": many + 3, "next_since": None})
    assert hook()[1] == before + many + 1, "the two from before are the same turn still"
    for body, word in (({}, "since"), ({"since": "2099-01-01T00:00:00Z"}, "since"), ({"since": "yesterday"}, "since"), ({"since": "2026-01-01T00:00:00Z", "to": 1}, "to")):
        ask(pipeline, "POST", path, body).refused(422, word)
    ask(pipeline, "POST", path, {"since": "2026-01-01T00:00:00Z"}, key=globex).refused(404, subscription)
    ask(pipeline, "POST", f"{SUBSCRIPTIONS}/{subscription}/disable")
    ask(pipeline, "POST", path, {"since": "2026-01-01T00:00:00Z"}).refused(409, "subscription-not-active")


def test_a_caller_can_have_a_test_event_posted(pipeline, hook, globex):
    subscription = make(pipeline, events=["notification.failed"])["id"]
    answer = ask(pipeline, "POST", f"{SUBSCRIPTIONS}/{subscription}/test")
    event, sequence = hook()
    assert (answer.status, answer.body) == (202, {"id": event.delivery_id, "state": "queued"})
    payload = json.loads(event.payload)
    assert event.type == payload["type"] == "webhook.test" and payload["data"] == {"id": subscription, "tenant": "acme"} and payload["timestamp"]
    assert (event.subscription_id, event.turn, event.attempt, event.in_order) == (subscription, 1, 0, False)
    assert "queued" in pipeline.cli("webhook", "test", subscription) and hook()[1] == sequence + 1, "each is a delivery of its own"
    ask(pipeline, "POST", f"{SUBSCRIPTIONS}/{subscription}/test", key=globex).refused(404, subscription)
