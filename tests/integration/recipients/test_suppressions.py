# SPDX-License-Identifier: Apache-2.0
"""Suppressions: made by refusals, callbacks, the API and the command line; in force everywhere at once; ended by a release."""
import http.client
import json
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, TENANT, Pipeline
from tests.harness.processes import free_port, wait_until
from tests.harness.protobuf import messages
from tests.harness.sendgrid import body_of, event, new_signer, post


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1,1"}, durable=True).start()
    running.sign = new_signer(running, tmp_path_factory.mktemp("sendgrid"))
    html = running.folder / "promo.html"
    html.write_text("<p>Buy</p>")
    running.cli("template", "put", "promo", "--subject", "Buy", "--html", html, "--category", "marketing")
    wait_until(lambda: running.post({"to": "first@example.com", "template": "promo", "consent": CONSENT})[0] == 202, 20, "the template")
    wait_until(running.mailbox.mails, 20, "that first mail, which must not meet another's refusal")
    yield running
    running.stop()


def call(pipeline, method, path, body=None, key=None):
    """(status, headers, text)"""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Authorization": f"Bearer {key or pipeline.key}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def listed_at(pipeline, query=""):
    status, _, text = call(pipeline, "GET", "/v1/suppressions" + query)
    assert status == 200, text
    return json.loads(text)["data"]


def end_of(pipeline, to, template="welcome"):
    return pipeline.status(pipeline.send(to=to, template=template, consent=CONSENT), wait="sent")


def wait_end(pipeline, to, status, template="welcome"):
    def attempt():
        row = end_of(pipeline, to, template)
        return row if row["status"] == status else None
    return wait_until(attempt, 15, f"a mail to {to} being {status}")


def test_a_hard_bounce_suppresses_and_a_release_makes_it_deliverable_again(listed):
    to = "gone@example.com"
    listed.mailbox.answer("550 5.1.1 no such user")
    failed = listed.send(to=to)
    assert listed.status(failed, wait="failed")["status"] == "failed"
    row = wait_end(listed, to, "suppressed")
    assert row["reason_code"] == "hard_bounce"
    [entry] = listed_at(listed, f"?address={to}")
    assert (entry["reason"], entry["created_by"], entry["source_notification_id"]) == ("hard_bounce", "dispatcher", failed)
    assert entry["address"] == "gon***@example.com" and entry["category"] is None and entry["released_at"] is None
    status, _, text = call(listed, "DELETE", f"/v1/suppressions/{entry['id']}")
    released = json.loads(text)
    assert status == 200 and released["released_at"] and released["released_by"] in listed.key
    wait_end(listed, to, "sent")
    assert listed_at(listed, f"?address={to}") == []
    assert listed_at(listed, f"?address={to}&state=all")[0]["released_by"] == released["released_by"]
    again = json.loads(call(listed, "POST", f"/v1/suppressions/{entry['id']}/release")[2])
    assert again == released  # twice is once
    listed.mailbox.answer("550 5.1.1 still no such user")
    listed.status(listed.send(to=to), wait="failed")
    wait_end(listed, to, "suppressed")  # something newer


@pytest.mark.parametrize("reply", ["550 5.7.1 not wanted", "552 5.2.2 full", "550 no"])
def test_a_refusal_that_is_not_about_the_address_suppresses_nothing(listed, reply):
    to = f"policy{len(reply)}@example.com"
    listed.mailbox.answer(reply)
    assert listed.status(listed.send(to=to), wait="failed")["status"] == "failed"
    assert end_of(listed, to)["status"] == "sent" and listed_at(listed, f"?address={to}") == []


@pytest.mark.parametrize("kind, reason, fields", [
    ("bounce", "hard_bounce", {"type": "bounce", "status": "5.1.1"}), ("spamreport", "complaint", {}), ("unsubscribe", "opt_out", {})])
def test_a_vendors_callback_suppresses_once(listed, kind, reason, fields):
    to = f"{kind}@example.com"
    notification = listed.send(to=to)
    listed.status(notification, wait="sent")
    body = body_of(event(notification, kind, 70, email=to.upper(), **fields))
    assert post(listed, body, listed.sign(body))[0] == 200
    assert wait_end(listed, to, "suppressed", "promo")["reason_code"] == reason
    [entry] = listed_at(listed, f"?address={to}")
    assert (entry["reason"], entry["created_by"], entry["source_notification_id"]) == (reason, "vendor", notification)
    # What must reach the recipient is held back by a fact, not by a choice.
    assert end_of(listed, to)["status"] == ("sent" if reason == "opt_out" else "suppressed")
    # Released, and the same callback once more: that happened before.
    assert call(listed, "DELETE", f"/v1/suppressions/{entry['id']}")[0] == 200
    wait_end(listed, to, "sent", "promo")
    again = body_of(event(notification, kind, 70, email=to, timestamp=int(time.time()) - 60, **fields))
    assert post(listed, again, listed.sign(again))[0] == 200
    time.sleep(1)
    assert end_of(listed, to, "promo")["status"] == "sent"


def test_it_is_in_force_on_every_replica_within_a_second(listed):
    second = listed.service("ingest", "second", STENTOR_INGEST_PORT=free_port()).start()
    try:
        fresh = []
        for i in range(5):
            to = f"swift{i}@example.com"
            before = second.metric("stentor_ingest_suppressions")
            started = time.monotonic()
            assert call(listed, "POST", "/v1/suppressions", {"address": to})[0] == 201
            wait_until(lambda: second.metric("stentor_ingest_suppressions") == before + 1, 10, "the second replica")
            fresh.append(time.monotonic() - started)
            assert end_of(listed, to)["status"] == "suppressed"
        assert sorted(fresh)[-2] < 1, fresh  # all but one: the machine may be busy with something else for a second
    finally:
        assert second.stop() == 0


def test_added_by_hash_for_one_category_until_a_time(listed):
    status, _, text = call(listed, "POST", "/v1/suppressions", {"address": "Probe@EXAMPLE.com", "note": "by phone"})
    probe = json.loads(text)
    assert status == 201 and probe["reason"] == "manual" and probe["note"] == "by phone" and probe["id"].startswith("sup_")
    call(listed, "DELETE", f"/v1/suppressions/{probe['id']}")
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5))
    status, _, text = call(listed, "POST", "/v1/suppressions", {
        "address_hash": probe["address_hash"], "channel": "email", "category": "marketing", "reason": "compliance", "expires_at": until})
    assert status == 201, text
    assert end_of(listed, "probe@example.com", "promo")["status"] == "suppressed"
    assert end_of(listed, "probe@example.com")["status"] == "sent"
    wait_end(listed, "probe@example.com", "sent", "promo")  # it ends by itself


def test_the_platforms_list_holds_for_every_tenant(listed):
    key = json.loads(listed.cli("apikey", "create", "--name", "platform", "--json", tenant="platform"))["key"]
    wait_until(lambda: call(listed, "GET", "/v1/suppressions", key=key)[0] == 200, 10, "the platform's key")
    body = {"address": "everywhere@example.com", "reason": "compliance"}
    assert call(listed, "POST", "/v1/suppressions", body, key=key)[0] == 201
    assert end_of(listed, "everywhere@example.com")["reason_code"] == "compliance"
    assert listed_at(listed, "?address=everywhere@example.com") == []  # it is the platform's


@pytest.mark.parametrize("body, field", [
    ({}, "address"), ({"address": "a@example.com", "address_hash": "00" * 32}, "address"), ({"address": "nonsense"}, "address"),
    ({"address_hash": "00"}, "address_hash"), ({"address": "a@example.com", "channel": "pigeon"}, "channel"),
    ({"address": "a@example.com", "category": "fun"}, "category"), ({"address": "a@example.com", "reason": "why"}, "reason"),
    ({"address": "a@example.com", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ({"address": "a@example.com", "expires_at": "soon"}, "expires_at"), ({"address": "a@example.com", "colour": 1}, "colour"),
    ({"address": "a@example.com", "note": "x" * 501}, "note")])
def test_a_wrong_field_is_named(listed, body, field):
    status, _, text = call(listed, "POST", "/v1/suppressions", body)
    assert status == 422 and json.loads(text)["field"] == field


@pytest.mark.parametrize("query, field", [
    ("?channel=pigeon", "channel"), ("?reason=x", "reason"), ("?limit=0", "limit"), ("?limit=1001", "limit"),
    ("?address=x", "address"), ("?address_hash=zz", "address_hash"), ("?state=x", "state")])
def test_a_wrong_query_is_named(listed, query, field):
    status, _, text = call(listed, "GET", "/v1/suppressions" + query)
    assert status == 422 and json.loads(text)["field"] == field


@pytest.mark.parametrize("query, field", [("?cursor=x", "cursor"), ("?after=1", "after"), ("?state=all&state=all", "state")])
def test_a_query_that_is_none_of_the_list_s_is_malformed(listed, query, field):
    for path in ("/v1/suppressions", "/v1/suppressions/export"):
        status, _, text = call(listed, "GET", path + query)
        assert status == 400 and json.loads(text)["field"] == field


def test_what_is_not_there_is_not_found(listed):
    for path in ("/v1/suppressions/sup_01M2V3W4X5Y6Z7A8B9CADBECFD", "/v1/suppressions/nonsense"):
        assert call(listed, "GET", path)[0] == 404 and call(listed, "DELETE", path)[0] == 404


def test_pages_and_the_export_hold_every_entry_once(listed):
    for i in range(7):
        assert call(listed, "POST", "/v1/suppressions", {"address": f"page{i}@example.com", "reason": "rate_limit"})[0] == 201
    seen, after = [], ""
    while True:
        answer = json.loads(call(listed, "GET", f"/v1/suppressions?reason=rate_limit&limit=3{after}")[2])
        assert len(answer["data"]) <= 3
        seen += [entry["id"] for entry in answer["data"]]
        if answer["next"] is None:
            break
        after = f"&cursor={answer['next']}"
    assert len(seen) == len(set(seen)) == 7
    status, headers, text = call(listed, "GET", "/v1/suppressions/export?reason=rate_limit")
    assert status == 200 and headers["Content-Type"] == "application/x-ndjson" and "Stentor-Next" not in headers
    assert [json.loads(line)["id"] for line in text.splitlines()] == seen
    status, headers, text = call(listed, "GET", "/v1/suppressions/export?reason=rate_limit&limit=5")
    assert len(text.splitlines()) == 5 and headers["Stentor-Next"]
    rest = call(listed, "GET", f"/v1/suppressions/export?reason=rate_limit&cursor={headers['Stentor-Next']}")[2]
    assert [json.loads(line)["id"] for line in (text + rest).splitlines()] == seen
    # The cursor of the export leads to no page of the list.
    assert call(listed, "GET", f"/v1/suppressions?reason=rate_limit&cursor={headers['Stentor-Next']}")[0] == 400


def test_a_suspended_tenants_waiting_mail_is_not_sent(listed):
    due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    waiting = listed.send(to="waiting@example.com", scheduled_for=due)
    client = NatsClient(listed.nats.port)
    tenant = messages(listed).Tenant(tenant=TENANT, name="Acme", sender_address="hello@acme.test", suspended=True)
    try:
        client.publish(f"cfg.tenant.{TENANT}.self", tenant.SerializeToString())
        row = listed.status(waiting, wait="suppressed")
        assert (row["status"], row["reason_code"]) == ("suppressed", "tenant_suspended")
    finally:
        tenant.suspended = False
        client.publish(f"cfg.tenant.{TENANT}.self", tenant.SerializeToString())
        client.close()
    wait_until(lambda: listed.post({"to": "back@example.com", "template": "welcome", "variables": {"name": "A"}})[0] == 202, 10, "the tenant's return")
    assert not listed.mailbox.for_notification(waiting)


# ---- the command line ----


def suppress(pipeline, *words, status=0):
    done = pipeline.run_cli("suppress", *words)
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def test_the_command_line_adds_lists_and_releases(listed):
    entry = json.loads(suppress(listed, "add", "Carol@Example.com", "--category", "marketing", "--note", "by phone", "--json").stdout)
    assert f"stn_{entry['created_by']}." in listed.operator_key and entry["category"] == "marketing" and entry["note"] == "by phone"
    wait_end(listed, "carol@example.com", "suppressed", "promo")
    assert [e["id"] for e in json.loads(suppress(listed, "list", "--address", "carol@example.com", "--json").stdout)] == [entry["id"]]
    shown = suppress(listed, "list", "--reason", "manual").stdout
    assert entry["id"] in shown and "Car***@example.com" in shown and "arol" not in shown
    suppress(listed, "release", entry["id"])
    wait_end(listed, "carol@example.com", "sent", "promo")
    assert entry["id"] not in suppress(listed, "list").stdout and entry["id"] in suppress(listed, "list", "--all", "--limit", "0").stdout
    suppress(listed, "add", "carol@example.com")
    suppress(listed, "release", "--address", "carol@example.com")
    assert json.loads(suppress(listed, "list", "--address", "carol@example.com", "--json").stdout) == []


def test_who_released_what_stays_listed_after_the_next_entry(listed):
    """S14, rows C49 ("UNIQUE ... WHERE released_at IS NULL"), B42 ("overridden_by/at") and 17b: a hard_bounce's releaser was gone after a complaint."""
    first = json.loads(suppress(listed, "add", "past@example.com", "--reason", "hard_bounce", "--json").stdout)
    suppress(listed, "release", first["id"])
    second = json.loads(suppress(listed, "add", "past@example.com", "--reason", "complaint", "--json").stdout)
    suppress(listed, "release", second["id"])
    third = json.loads(suppress(listed, "add", "past@example.com", "--json").stdout)
    every = json.loads(suppress(listed, "list", "--address", "past@example.com", "--all", "--json").stdout)
    assert [(e["id"], e["reason"], bool(e.get("released_at"))) for e in every] == [
        (first["id"], "hard_bounce", True), (second["id"], "complaint", True), (third["id"], "manual", False)]
    releaser = every[0]["released_by"]
    assert f"stn_{releaser}." in listed.operator_key and every[1]["released_by"] == releaser
    status, _, text = call(listed, "GET", f"/v1/suppressions/{first['id']}")
    assert status == 200 and json.loads(text) == every[0]
    status, _, text = call(listed, "DELETE", f"/v1/suppressions/{first['id']}")
    assert (status, json.loads(text)) == (200, every[0]), "twice is once, and ends nothing of what came after"
    assert [e["id"] for e in listed_at(listed, "?address=past@example.com")] == [third["id"]]
    wait_end(listed, "past@example.com", "suppressed")
    noted = json.loads(listed.cli("audit-log", "list", "--kind", "suppression", "--json"))
    noted = [(e["target"], e["actor"], e["action"]) for e in noted if e["target"] in (first["id"], second["id"])]
    assert noted == [(one, releaser, "suppression.released") for one in (first["id"], second["id"])], "once each, and for seven years"


def test_the_command_line_keeps_the_platforms_list_too(listed):
    suppress(listed, "add", "nowhere@example.com", "--reason", "compliance", "--tenant", "platform")
    assert wait_end(listed, "nowhere@example.com", "suppressed")["reason_code"] == "compliance"
    suppress(listed, "release", "--address", "nowhere@example.com", "--tenant", "platform")
    wait_end(listed, "nowhere@example.com", "sent")


@pytest.mark.parametrize("words, status", [
    (["release"], 2), (["release", "nonsense"], 2), (["release", "sup_01M2V3W4X5Y6Z7A8B9CADBECFD"], 3),
    (["release", "--address", "unknown@example.com"], 3), (["add", "nonsense"], 2), (["add", "a@example.com", "--reason", "x"], 2),
    (["add", "a@example.com", "--expires", "2020-01-01T00:00:00Z"], 2), (["list", "--address", "x"], 2), (["import", "/nowhere.csv"], 2),
    (["export", "--format", "xls"], 2), (["add"], 2)])
def test_the_command_line_says_what_is_wrong(listed, words, status):
    assert suppress(listed, *words, status=status).stderr.startswith("stentor: ")


def test_an_import_names_broken_lines_and_goes_on(listed):
    lines = ["address,reason,note,shoe_size"] + [f"import{i}@example.com,complaint,\"a, b\",43" for i in range(3000)]
    lines[700] = "import-broken"
    lines[2001] = "import-broken@example.com,because"
    path = listed.folder / "import.csv"
    path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n")
    checked = suppress(listed, "import", path, "--dry-run", "--json", status=1)
    assert json.loads(checked.stdout) == {"lines": 3001, "good": 2998, "unchanged": 0, "skipped": 0, "broken": 2}
    assert listed_at(listed, "?address=import0@example.com") == []
    started = time.monotonic()
    done = suppress(listed, "import", path, "--json", status=1)
    print(f"{3000 / (time.monotonic() - started):.0f} lines/s")
    assert json.loads(done.stdout) == {"lines": 3001, "stored": 2998, "unchanged": 0, "skipped": 0, "broken": 2}
    assert "line 701: address: " in done.stderr and "line 2002: reason: " in done.stderr
    assert wait_end(listed, "import2999@example.com", "suppressed")["reason_code"] == "complaint"
    assert listed_at(listed, "?address=import0@example.com")[0]["note"] == "a, b"


def last_of_config(pipeline):
    nats = NatsClient(pipeline.nats.port)
    last = nats.stream_info("CONFIG")["state"]["last_seq"]
    nats.close()
    return last


def test_an_import_leaves_what_stands_already(listed):
    """The same large list again and again filled CONFIG, which keeps eight messages of each address."""
    path = listed.folder / "again.csv"

    def put(*rows):
        path.write_text("address,reason,category,expires_at,note\n" + "".join(f"again{row}\n" for row in rows))
        return {name: count for name, count in json.loads(suppress(listed, "import", path, "--json").stdout).items() if name != "lines"}

    rows = [f"{i}@example.com,complaint,,,n" for i in range(1500)] + ["x@example.com,manual,marketing,2031-01-02T03:04:05Z,n"]
    assert put(*rows) == {"stored": 1501, "unchanged": 0, "skipped": 0, "broken": 0}
    wait_until(lambda: len(listed_at(listed, "?address=again1499@example.com")) == 1, 10, "the last of them")
    [entry] = listed_at(listed, "?address=again7@example.com")
    wait_until(lambda: put(*rows)["unchanged"] == 1501, 10, "the list in memory")
    before = last_of_config(listed)
    assert put(*rows, rows[0], "7@example.com,complaint,,,other") == {"stored": 0, "unchanged": 1503, "skipped": 0, "broken": 0}
    assert last_of_config(listed) == before and listed_at(listed, "?address=again7@example.com") == [entry]
    assert put("7@example.com,complaint,,2031-01-01T00:00:00Z,", "8@example.com,compliance,,,", "x@example.com,manual,,,")["stored"] == 3
    assert last_of_config(listed) == before + 3, "another end, another reason, another category"
    [entry] = listed_at(listed, "?address=again8@example.com")
    suppress(listed, "release", entry["id"])
    wait_until(lambda: put("8@example.com,compliance,,,")["stored"] == 1, 10, "a released one is stored again")
    said = "lines 2, stored 0, unchanged 1, skipped 0, broken 0\n"  # with the header
    wait_until(lambda: suppress(listed, "import", path).stdout == said, 10, said)


def test_what_is_posted_again_stands_as_it_is(listed):
    body = {"address": "twice@example.com", "reason": "manual", "note": "by phone", "expires_at": "2031-01-02T03:04:05Z"}
    status, headers, text = call(listed, "POST", "/v1/suppressions", body)
    made, tag = json.loads(text), headers["ETag"]
    assert status == 201
    wait_until(lambda: listed_at(listed, "?address=twice@example.com") == [made], 10, "the entry in memory")
    before = last_of_config(listed)
    status, headers, text = call(listed, "POST", "/v1/suppressions", body)
    assert (status, headers["ETag"], json.loads(text)) == (200, tag, made) and last_of_config(listed) == before
    for other in ({"note": "by mail"}, {"expires_at": None}, {"reason": "compliance"}):
        status, headers, text = call(listed, "POST", "/v1/suppressions", {**body, **other})
        assert status == 201 and headers["ETag"] != tag and json.loads(text)["id"] != made["id"]
        tag = headers["ETag"]
    assert last_of_config(listed) == before + 3


def test_what_cannot_be_read_hides_nothing(listed):
    """A list showed nothing of an address whose newest message is none, though the address is suppressed."""
    made = json.loads(call(listed, "POST", "/v1/suppressions", {"address": "spoiled@example.com", "note": "one"})[2])
    made = json.loads(call(listed, "POST", "/v1/suppressions", {"address": "spoiled@example.com", "note": "two"})[2])
    nats = NatsClient(listed.nats.port)
    subject = f"cfg.suppression.{TENANT}.email.any.{made['address_hash']}"
    for _ in range(2):
        nats.publish(subject, b"\xff\xff")
    wait_until(lambda: listed.services["gateway"].metric("stentor_config_unreadable") == 1, 10, "the gateway having met it")
    assert wait_end(listed, "spoiled@example.com", "suppressed")["reason_code"] == "manual"
    for query in ("?address=spoiled@example.com", "?reason=manual&limit=1000"):
        assert [entry["note"] for entry in listed_at(listed, query) if entry["address_hash"] == made["address_hash"]] == ["two"], query
    assert made["id"] in call(listed, "GET", "/v1/suppressions/export")[2]
    status, headers, text = call(listed, "GET", f"/v1/suppressions/{made['id']}")
    assert status == 200 and json.loads(text) == made
    status, _, text = call(listed, "DELETE", f"/v1/suppressions/{made['id']}")
    assert status == 200 and json.loads(text)["released_at"], "and it is released, in the place of what cannot be read"
    wait_until(lambda: listed.services["gateway"].metric("stentor_config_unreadable") == 0, 10, "the repaired subject")
    assert nats.message("CONFIG", last_by_subj=subject)[1] != b"\xff\xff"
    nats.close()
    assert listed_at(listed, "?address=spoiled@example.com") == []
    wait_end(listed, "spoiled@example.com", "sent")


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_an_export_can_be_imported_again(listed, form):
    to = f"export-{form}@example.com"
    suppress(listed, "add", to, "--category", "marketing", "--note", 'a "b", c')
    path = listed.folder / f"export.{form}"
    path.write_text(suppress(listed, "export", "--format", form, "--address", to).stdout)
    suppress(listed, "release", "--address", to)
    wait_end(listed, to, "sent", "promo")
    assert json.loads(suppress(listed, "import", path, "--json").stdout)["stored"] == 1
    wait_end(listed, to, "suppressed", "promo")
    [entry] = listed_at(listed, f"?address={to}")
    assert entry["note"] == 'a "b", c' and entry["category"] == "marketing"
