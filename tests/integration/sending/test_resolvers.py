# SPDX-License-Identifier: Apache-2.0
"""A hotel's events reach whom the document means by primary_guest, tenant_admins, iam_subject and vendor_assignee (rows C63, C72, 2c of the audit):
by names that work as they are and that a tenant defines itself, over its recipients' identities and labels."""
import json
import uuid

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import call, handled, last_seq, letters, mails_to, new_type, one_mail, publish, put_trigger


@pytest.fixture(scope="module")
def hotel(pipeline):
    """A tenant of its own, so that its admins are no other test's; gives its API key."""
    name = f"hotel-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", name, "--name", "Hotel", "--sender", f"desk@{name}.test", "--sender-name", "Desk")
    key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=name))["key"]
    wait_until(lambda: call(pipeline, "GET", "/v1/triggers", key=key)[0] == 200, 20, "the key")
    page = pipeline.folder / "desk.html"
    page.write_text("<p>{{note}}</p>")
    pipeline.cli("template", "put", "note", "--subject", "Note for {{note}}", "--html", page, tenant=name)
    return name, key


def put_person(pipeline, hotel, identity, labels=(), **fields):
    """A recipient with a new address, known to the projection; returns its address."""
    name, key = hotel
    address = f"{uuid.uuid4().hex}@example.com"
    kind, own = identity
    status, answer = call(pipeline, "POST", "/v1/recipients", {
        "identity_type": kind, "identity_id": own, "labels": list(labels), "addresses": [{"channel": "email", "address": address}], **fields}, key=key)
    assert status in (200, 201), answer
    known = "SELECT count(*) FROM people.labels WHERE tenant_id = %s AND recipient_id = %s"
    wait_until(lambda: pipeline.postgres.query(known, name, answer["id"])[0][0] == len(labels), 20, "the recipient's labels")
    return address


def on(pipeline, hotel, resolver, **fields):
    """A trigger of the hotel with that resolver; returns its event type."""
    event_type = new_type("hotel")
    put_trigger(pipeline, event_type, key=hotel[1], resolver=resolver, template="note", name_path="", **fields)
    return event_type


def tell(pipeline, nats, hotel, event_type, data):
    handled(pipeline, nats, publish(nats, event_type, data, tenant=hotel[0]))


def test_the_admins_the_subject_the_vendor_and_the_guest_get_their_mails(pipeline, nats, hotel):
    admins = [put_person(pipeline, hotel, ("user", f"adm-{i}"), ["admin", "staff"]) for i in range(2)]
    clerk = put_person(pipeline, hotel, ("user", "clerk"), ["staff"])
    cleaner = put_person(pipeline, hotel, ("vendor", "v-7"))
    guest = put_person(pipeline, hotel, ("guest", "g-1"))
    other = f"{uuid.uuid4().hex}@example.com"
    by_name = {name: on(pipeline, hotel, name) for name in ("tenant_admins", "iam_subject", "vendor_assignee", "primary_guest")}
    tell(pipeline, nats, hotel, by_name["tenant_admins"], {"note": "admins"})
    tell(pipeline, nats, hotel, by_name["iam_subject"], {"note": "subject", "subject": {"id": "clerk", "name": "C"}, "actor": "adm-0"})
    tell(pipeline, nats, hotel, by_name["vendor_assignee"], {"note": "vendor", "vendorId": "v-7"})
    tell(pipeline, nats, hotel, by_name["primary_guest"], {"note": "guest", "primary_guest_id": "g-1", "guest_email": other})
    expected = {admins[0]: "admins", admins[1]: "admins", clerk: "subject", cleaner: "vendor", guest: "guest"}
    for address, note in expected.items():
        assert [str(mail["Subject"]) for mail in one_mail(pipeline, address)] == [f"Note for {note}"]
    assert mails_to(pipeline, other) == []  # the guest is known by the id


def test_a_guest_without_a_record_gets_the_mail_at_the_events_address(pipeline, nats, hotel):
    event_type, address = on(pipeline, hotel, "primary_guest"), f"{uuid.uuid4().hex}@example.com"
    tell(pipeline, nats, hotel, event_type, {"note": "walk-in", "guest": {"id": "unknown", "email": address}})
    assert len(one_mail(pipeline, address)) == 1


def test_a_label_that_is_taken_back_reaches_no_recipient_and_the_letter_names_resolver_and_event(pipeline, nats, hotel):
    name, key = hotel
    event_type = on(pipeline, hotel, "label:night")
    put_person(pipeline, hotel, ("user", "watch"), ["night"])
    put_person(pipeline, hotel, ("user", "watch"), [])  # the whole record again, without it
    since = last_seq(nats, "DEAD")
    publish(nats, event_type, {"note": "night"}, event_id="night-1", tenant=name)

    def letter():
        for seq in range(since + 1, last_seq(nats, "DEAD") + 1):
            subject, payload = nats.message("DEAD", seq=seq)
            if subject == f"ntf.dead.ingest.{name}":
                return payload
        return None
    text = wait_until(letter, 30, "the dead letter")
    assert b"resolver 'label:night' found no recipient for event 'night-1'" in text


def test_a_tenant_defines_its_own_names_and_takes_them_back(pipeline, nats, hotel):
    name, _ = hotel
    late = put_person(pipeline, hotel, ("user", "late-desk"), ["late"])
    manager = put_person(pipeline, hotel, ("user", "boss"))
    run = lambda *words: pipeline.run_cli(*words, tenant=name)  # noqa: E731
    refused = run("trigger", "put", "on-duty", "--event", "stay.late", "--template", "note", "--resolver", "duty_manager")
    assert refused.returncode == 2, refused.stdout
    assert "resolver" in refused.stderr and "iam_subject, primary_guest, tenant_admins, vendor_assignee" in refused.stderr
    assert "is a name" in run("resolver", "put", "duty_manager", "--rule", "tenant_admins").stderr
    assert "'label:LABEL'" in run("resolver", "put", "duty_manager", "--rule", "everyone at all").stderr
    pipeline.cli("resolver", "put", "duty_manager", "--rule", "identity:user:manager.id", "--rule", "label:late", tenant=name)
    event_type = on(pipeline, hotel, "duty_manager")
    listed = json.loads(pipeline.cli("resolver", "list", "--json", tenant=name))
    assert [(row["name"], row["scope"], row["in_force"]) for row in listed][:2] == [("duty_manager", "tenant", True), ("iam_subject", "built-in", True)]
    tell(pipeline, nats, hotel, event_type, {"note": "manager", "manager": {"id": "boss"}})
    tell(pipeline, nats, hotel, event_type, {"note": "desk", "manager": {"id": "unknown"}})
    assert [str(mail["Subject"]) for mail in one_mail(pipeline, manager)] == ["Note for manager"]
    assert [str(mail["Subject"]) for mail in one_mail(pipeline, late)] == ["Note for desk"]
    in_use = run("resolver", "remove", "duty_manager")
    assert in_use.returncode == 1 and "has it as its resolver" in in_use.stderr
    pipeline.cli("resolver", "put", "tenant_admins", "--rule", "label:chief", tenant=name)
    assert "label:chief" in pipeline.cli("resolver", "show", "tenant_admins", tenant=name)
    assert "the built-in one is in force" in pipeline.cli("resolver", "remove", "tenant_admins", tenant=name)
    assert "label:admin" in pipeline.cli("resolver", "show", "tenant_admins", tenant=name)


def test_a_platforms_resolver_is_in_force_for_every_tenant_without_one_of_its_own(pipeline, hotel):
    name, _ = hotel
    pipeline.cli("resolver", "put", "front_desk", "--rule", "label:desk", tenant="platform")
    try:
        wait_until(lambda: pipeline.run_cli("resolver", "show", "front_desk", tenant=name).returncode == 0, 20, "the platform's")
        assert json.loads(pipeline.cli("resolver", "show", "front_desk", "--json", tenant=name))["scope"] == "platform"
        pipeline.cli("resolver", "put", "front_desk", "--rule", "label:lobby", tenant=name)
        assert json.loads(pipeline.cli("resolver", "show", "front_desk", "--json", tenant=name))["rules"] == ["label:lobby"]
    finally:
        pipeline.cli("resolver", "remove", "front_desk", tenant="platform")


def test_a_try_shows_whom_each_rule_would_mean(pipeline, hotel):
    _, key = hotel
    trigger = put_trigger(pipeline, new_type("hotel"), key=key, resolver="primary_guest", template="note", name_path="")
    status, shown = call(pipeline, "POST", f"/v1/triggers/{trigger}/try", {"note": "x", "guest": {"id": "g-1", "email": "g@example.com"}}, key=key)
    assert status == 200 and shown["problems"] == [], shown
    assert [(one["identity"], one["else"]) for one in shown["notifications"]] == [({"type": "guest", "id": "g-1"}, [{"to": "g@example.com"}])]


def test_more_than_a_thousand_by_a_label_are_one_dead_letter_and_no_mail(pipeline, nats, hotel):
    name, key = hotel
    lines = [json.dumps({"identity_type": "user", "identity_id": f"crowd-{i}", "labels": ["crowd"]}) for i in range(1001)]
    for part in (lines[:600], lines[600:]):
        status, answer = call(pipeline, "POST", "/v1/recipients/import", "\n".join(part).encode(), key=key)
        assert status == 200, answer
    count = "SELECT count(*) FROM people.labels WHERE tenant_id = %s AND label = 'crowd'"
    wait_until(lambda: pipeline.postgres.query(count, name)[0][0] == 1001, 30, "the crowd")
    event_type = on(pipeline, hotel, "label:crowd")
    since = last_seq(nats, "DEAD")
    tell(pipeline, nats, hotel, event_type, {"note": "all"})
    found = [payload for seq in range(since + 1, last_seq(nats, "DEAD") + 1)
             for subject, payload in [nats.message("DEAD", seq=seq)] if subject == f"ntf.dead.ingest.{name}"]
    assert len(found) == 1 and b"more than 1000 recipients" in found[0] and b"recipient_query" in found[0]
    assert pipeline.postgres.query("SELECT count(*) FROM archiver.notifications WHERE tenant_id = %s AND source_event_type = %s", name, event_type)[0][0] == 0


def test_labels_are_shown_exported_and_imported_from_csv(pipeline, hotel):
    name, key = hotel
    path = pipeline.folder / "staff.csv"
    path.write_text("identity_type,identity_id,email,labels\nuser,csv-1,csv1@example.com,night; admin2\nuser,csv-2,csv2@example.com,\n")
    pipeline.cli("recipient", "import", path, tenant=name)
    shown = json.loads(pipeline.cli("recipient", "get", "--identity", "user:csv-1", "--json", tenant=name))[0]
    assert shown["labels"] == ["admin2", "night"]
    status, problem = call(pipeline, "POST", "/v1/recipients", {"identity_type": "user", "identity_id": "x", "labels": ["a", "Not One"]}, key=key)
    assert (status, problem["field"]) == (422, "labels[1]"), problem


def test_a_label_reaches_no_other_tenant(pipeline, nats, hotel):
    """The hotel's admins are not the admins of the tenant of all other tests."""
    since, event_type = last_seq(nats, "DEAD"), new_type("acme")
    put_trigger(pipeline, event_type, resolver="tenant_admins")
    publish(nats, event_type, {"name": "A"}, tenant=TENANT)
    wait_until(lambda: [letter for letter in letters(pipeline, nats, since) if "resolver 'tenant_admins' found no recipient" in letter.reason], 30, "the dead letter")
