# SPDX-License-Identifier: Apache-2.0
"""What is kept of a person, given to the person: as JSON and as tables; nothing of others, nothing of who was erased."""
import csv
import io
import json
import stat
import zipfile

import pytest

from tests.harness.pipeline import Pipeline
from tests.integration.archive.test_log_segments import wait_stored
from tests.harness.nats_client import NatsClient
from tests.integration.erasure.test_erase import PLATFORM, Person, hold, release
from tests.integration.inbox.test_inapp import Client
from tests.integration.recipients.test_people import Api
from tests.integration.sending.test_templates import locale, publish


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(ack_wait_ms=3000)
    running.storage = running.folder / "objects"
    running.extra = {"STENTOR_STORAGE_URL": f"file://{running.storage}", "STENTOR_SEGMENT_S": "1", "STENTOR_SEGMENT_SPOOL_DIR": running.folder}
    running.start()
    running.client = NatsClient(running.nats.port)
    running.cli("template", "put", "digest", "--from", PLATFORM / "digest.json", tenant="platform")
    yield running
    running.client.close()
    running.stop()


@pytest.fixture(scope="module")
def api(pipeline):
    return Api(pipeline.api_port, pipeline.key)


@pytest.fixture(scope="module")
def person(pipeline, api):
    person, other = Person(pipeline, api), Person(pipeline, api)
    assert api("PUT", f"/v1/recipients/{person.id}/consents", [{"category": "marketing", "channel": "email", "granted": True, "source": "form"}])[0] in (
        200, 204)
    pipeline.cli("suppress", "add", person.address, "--reason", "manual", "--category", "marketing")
    person.other = other
    return person


def export(pipeline, name, *words, code=0, **settings):
    path = pipeline.folder / name
    done = pipeline.run_cli("export", "--out", path, "--by", "ticket-4", "--json", *words, **settings)
    assert done.returncode == code, done.stdout + done.stderr
    return path if code == 0 else done


def test_the_document_holds_what_is_kept_of_the_person_and_nothing_of_others(pipeline, person):
    path = export(pipeline, "person.json", "--recipient", person.id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    said = json.loads(text)
    assert said["format"] == "stentor.export/1" and said["recipient_id"] == person.id
    (subject,), (address,), (preference,) = said["subject"], said["addresses"], said["preferences"]
    assert (subject["name"], subject["identity_id"]) == (person.name, person.identity)
    assert subject["labels"] == "admin vip"
    assert (address["address"], address["channel"], address["status"]) == (person.address, "email", "active")
    assert (preference["category"], preference["frequency"], preference["on_weekday"]) == ("social", "weekly", 3)
    assert [(one["category"], one["is_granted"], one["source"]) for one in said["consents"]] == [("marketing", True, "form")]
    assert [(one["category"], one["reason"]) for one in said["suppressions"]] == [("marketing", "manual")]
    notifications = {one["id"]: one for one in said["notifications"]}
    assert set(person.sent) | {person.waiting, person.item} <= set(notifications)
    assert {notifications[id]["address"] for id in person.sent} == {person.address}
    assert notifications[person.sent[0]]["status"] == "sent" and notifications[person.sent[0]]["sent_at"].endswith("Z")
    assert {one["notification_id"] for one in said["attempts"]} >= set(person.sent)
    variables = {one["notification_id"]: one["variables"] for one in said["requests"]}
    assert all(variables[id] == {"name": person.name} for id in [*person.sent, person.waiting, person.item])
    contents = {one["notification_id"]: one["content"] for one in said["contents"]}
    assert all(contents[id]["subject"] == f"Welcome, {person.name}!" and person.name in contents[id]["text"] for id in person.sent)
    assert person.other.address not in text and person.other.name not in text and person.other.id not in text
    assert any("segments only" in gap["what"] for gap in said["gaps"])
    entry = json.loads(pipeline.cli("audit-log", "list", "--kind", "read", "--target", person.id, "--json"))[-1]
    assert (entry["action"], entry["actor"]) == ("person.exported", "ticket-4")


def test_the_tables_say_the_same_and_segments_are_read(pipeline, person):
    wait_stored(pipeline, "REQUEST_NORMAL")
    end = pipeline.client.stream_info("REQUEST_NORMAL")["state"]["last_seq"]
    pipeline.client.request("$JS.API.STREAM.PURGE.REQUEST_NORMAL", json.dumps({"seq": end + 1}).encode())
    storage = {"STENTOR_STORAGE_URL": f"file://{pipeline.storage}"}
    said = json.loads(export(pipeline, "whole.json", "--address", person.address, **storage).read_text())
    assert {person.sent[0], person.sent[1]} <= {one["notification_id"] for one in said["requests"]} and said["gaps"] == []
    assert sum(source["found"] for source in said["sources"] if source["kind"] == "segment") >= 2
    archive = zipfile.ZipFile(export(pipeline, "person.zip", "--identity", "user:" + person.identity, **storage))
    assert archive.testzip() is None
    for name in ("subject", "addresses", "preferences", "consents", "suppressions", "notifications", "attempts", "inbox", "requests", "contents"):
        rows = list(csv.DictReader(io.StringIO(archive.read(f"{name}.csv").decode())))
        assert len(rows) == len(said[name]), name
        for row, one in zip(rows, said[name]):
            assert set(row) == set(one)
            for column, value in one.items():
                plain = "" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
                assert row[column] == plain, (name, column)


def in_app(pipeline, name, **whom):
    status, _, body = pipeline.post({"channel": "inapp", "template": "inbox-hello", "variables": {"name": name}, **whom})
    assert status == 202, body
    return body["id"]


def test_the_inbox_is_given_as_its_owner_sees_it(pipeline, api):
    publish(pipeline, "inbox-hello", channel="inapp", category="transactional",
            locales=[locale("en", title="Hello {{name}}", text="You have orders", data='{"url": "https://shop.example/orders"}')])
    before = in_app(pipeline, "Ines", to="in-1")  # to the address alone, before there is a record

    def record(identity, *addresses):
        status, body = api("POST", "/v1/recipients", {"identity_type": "user", "identity_id": identity, "addresses": [
            {"channel": "inapp", "address": address} for address in addresses]})
        assert status == 201, body
        return body["id"]
    owner, other = record("u-ines", "in-1"), record("u-otto", "in-2")
    mine = [before, in_app(pipeline, "Ines", to="in-1"), in_app(pipeline, "Ines", recipient_id=owner)]
    in_app(pipeline, "Otto", recipient_id=other)
    client = Client(pipeline, recipient_id=owner)
    client.wait_items(3)
    client.do(f"/{mine[1]}/read")
    client.do(f"/{mine[2]}/archive")
    shown = {item["id"]: item for item in client.items() + client.items("?tab=archived")}
    said = json.loads(export(pipeline, "inbox.json", "--recipient", owner).read_text())
    given = {item["notification_id"]: item for item in said["inbox"]}
    assert set(given) == set(shown) == set(mine)
    for id, item in given.items():
        assert item["content"] == {name: shown[id][name] for name in ("title", "body", "data")} and item["content"]["title"] == "Hello Ines"
        for name in ("category", "template", "locale", "direction"):
            assert item[name] == shown[id].get(name), name
        for name in ("created_at", "seen_at", "read_at", "archived_at", "clicked_at", "snoozed_until", "expires_at"):
            assert (item[name] is None) == (name not in shown[id]) and (item[name] or "")[:19] == shown[id].get(name, "")[:19], name
    assert given[mine[1]]["read_at"] and given[mine[2]]["archived_at"] and "Otto" not in json.dumps(said)
    rows = list(csv.DictReader(io.StringIO(zipfile.ZipFile(export(pipeline, "inbox.zip", "--recipient", owner)).read("inbox.csv").decode())))
    assert [json.loads(row["content"]) for row in rows] == [item["content"] for item in said["inbox"]]

    # Who has the in-app address next is given what comes then.
    assert api("PUT", f"/v1/recipients/{owner}", {"identity_type": "user", "identity_id": "u-ines", "addresses": []})[0] in (200, 204)
    next_owner = record("u-nora", "in-1")
    later = in_app(pipeline, "Nora", to="in-1")
    Client(pipeline, to="in-1").wait_items(3)
    said = json.loads(export(pipeline, "next.json", "--recipient", next_owner).read_text())
    assert [item["notification_id"] for item in said["inbox"]] == [later] and "Ines" not in json.dumps(said)
    said = json.loads(export(pipeline, "inbox.json", "--recipient", owner).read_text())
    assert {item["notification_id"] for item in said["inbox"]} == set(mine)


def test_who_is_restricted_is_not_shown_and_who_was_erased_is_a_gap(pipeline, person):
    number = hold(pipeline, "--recipient", person.other.id)
    assert person.other.erase()["state"] == "restricted"
    refused = export(pipeline, "other.json", "--recipient", person.other.id, code=1)
    assert "restricted by the erasure" in refused.stderr and not (pipeline.folder / "other.json").exists()
    release(pipeline, number)
    pipeline.cli("erase", "run")
    said = json.loads(export(pipeline, "other.json", "--recipient", person.other.id).read_text())
    assert said["subject"] == said["addresses"] == said["preferences"] == []
    assert said["notifications"] and {one["address"] for one in said["notifications"]} == {None}
    assert said["contents"] == []
    assert any("erased before" in gap["what"] for gap in said["gaps"]) and person.other.address not in json.dumps(said)
    assert export(pipeline, "none.json", "--identity", "user:unknown", code=3).stdout == ""
    export(pipeline, "none.json", "--recipient", "rcp_x", code=2)


def recipient_with(api, identity, name, address):
    status, body = api("POST", "/v1/recipients", {
        "identity_type": "user", "identity_id": identity, "name": name, "addresses": [{"channel": "email", "address": address, "primary": True}]})
    assert status == 201, body
    return body["id"]


def mail_to(pipeline, recipient, name):
    status, _, body = pipeline.post({"template": "welcome", "variables": {"name": name}, "recipient_id": recipient})
    assert status == 202, body
    pipeline.status(body["id"], wait="sent")
    return body["id"]


def mail_to_address(pipeline, address, name):
    sent = pipeline.send(to=address, variables={"name": name})
    pipeline.status(sent, wait="sent")
    return sent


def test_who_has_an_address_now_is_not_given_what_another_got_there_before(pipeline, api):
    address = "desk@recycled.example"
    first = recipient_with(api, "u-first", "Firmina", address)
    before = [mail_to(pipeline, first, "Firmina"), mail_to(pipeline, first, "Firmina"), mail_to_address(pipeline, address, "Firmina")]
    pipeline.cli("suppress", "add", address, "--reason", "manual", "--category", "marketing")
    assert api("PUT", f"/v1/recipients/{first}", {
        "identity_type": "user", "identity_id": "u-first", "name": "Firmina", "addresses": [
            {"channel": "email", "address": "firmina@recycled.example", "primary": True}]})[0] in (200, 204)
    second = recipient_with(api, "u-second", "Secundus", address)
    after = {mail_to(pipeline, second, "Secundus"), mail_to_address(pipeline, address, "Secundus")}
    pipeline.cli("suppress", "add", address, "--reason", "manual", "--category", "social")
    said = json.loads(export(pipeline, "second.json", "--recipient", second).read_text())
    for section in ("notifications", "attempts", "requests", "contents"):
        assert {one.get("id") or one["notification_id"] for one in said[section]} == after, section
    assert [one["category"] for one in said["suppressions"]] == ["social"]
    text = json.dumps(said)
    assert not any(one in text for one in ("Firmina", "firmina", first, *before))
    said = json.loads(export(pipeline, "first.json", "--recipient", first).read_text())
    assert {one["notification_id"] for one in said["contents"]} == set(before)
    assert [one["category"] for one in said["suppressions"]] == ["marketing"]
    assert not any(one in json.dumps(said) for one in (*after, "Secundus"))
    said = json.loads(export(pipeline, "address.json", "--address", address).read_text())
    assert {one["id"] for one in said["notifications"]} == after, "an address means who has it now"
