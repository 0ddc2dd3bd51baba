# SPDX-License-Identifier: Apache-2.0
"""What an erasure leaves, looked at by `stentor erase verify` and by a program that holds everything; and the certificates of it."""
import csv
import hashlib
import io
import json
import subprocess
import zipfile

import pytest

from tests.harness.holder import Holder
from tests.harness.orders import PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.integration.archive.test_log_segments import wait_stored
from tests.harness.nats_client import NatsClient
from tests.integration.erasure.test_erase import PLATFORM, Person
from tests.integration.recipients.test_people import Api

DER_HEAD = bytes.fromhex("302a300506032b6570032100")  # of an Ed25519 public key


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(ack_wait_ms=3000)
    running.storage = running.folder / "objects"
    running.extra = {"STENTOR_STORAGE_URL": f"file://{running.storage}", "STENTOR_SEGMENT_S": "1", "STENTOR_SEGMENT_SPOOL_DIR": running.folder,
                     "STENTOR_ARCHIVE_SPOOL_DIR": running.folder, "STENTOR_ARCHIVE_GRACE_S": "0"}
    running.start([*SERVICES, "order-saga"])
    running.client = NatsClient(running.nats.port)
    running.cli("template", "put", "digest", "--from", PLATFORM / "digest.json", tenant="platform")
    running.erasure_key = running.folder / "erasure.key"
    running.erasure_key.write_text(running.cli("erase", "key"))
    running.shop = Shop(running).put_mails()
    yield running
    running.client.close()
    running.shop.close()
    running.stop()


@pytest.fixture(scope="module")
def api(pipeline):
    return Api(pipeline.api_port, pipeline.key)


@pytest.fixture(scope="module")
def person(pipeline, api):
    person = Person(pipeline, api)
    order = pipeline.shop.order(email=person.address).check_out(fullName=person.name).wait_state("Placed")
    wait_until(lambda: PLACED in order.mails(), 30, "the confirmation")
    order.sent()
    wait_stored(pipeline, "REQUEST_NORMAL", "STATUS", "PEOPLE")
    return person


def verify(pipeline, id, *words, code=0, key=True):
    settings = {"STENTOR_STORAGE_URL": f"file://{pipeline.storage}", **({"STENTOR_ERASURE_KEY_FILE": str(pipeline.erasure_key)} if key else {})}
    done = pipeline.run_cli("erase", "verify", id, "--json", *words, **settings)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else done


def certificate(pipeline, id):
    body, signature = pipeline.cli("erase", "certificate", id).splitlines()
    return body, bytes.fromhex(signature), json.loads(body)


def signed(pipeline, body, signature, public_key):
    """By OpenSSL's own command."""
    paths = {name: pipeline.folder / f"check.{name}" for name in ("pem", "body", "sig")}
    for name, content in (("pem", DER_HEAD + bytes.fromhex(public_key)), ("body", body.encode()), ("sig", signature)):
        paths[name].write_bytes(content)
    return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", paths["pem"], "-rawin", "-in", paths["body"],
                           "-sigfile", paths["sig"]], capture_output=True).returncode == 0


def test_a_program_that_holds_everything_reads_nothing_of_an_erased_person(pipeline, person):
    holder = Holder(pipeline, pipeline.storage)
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM ingest.clear_events") == [(0,)], 30, "what came in clear being erased")
    clear, opened, tried = holder.reads(person.address, person.name)
    assert clear == set(), "all is sealed"
    assert {where.split()[0] for where in opened} == {"table", "stream", "segment"} and tried > 20, "and what is sealed is opened by its key"
    assert {"table order_saga.order_state", "table digest_flusher.due_work", "table people.addresses", "stream PEOPLE"} <= opened
    refused = verify(pipeline, "era_01KAGTQ5M00000000000000000", code=1)
    assert "there is no erasure" in refused.stderr
    erased = person.erase()
    person.assert_erased()
    clear, opened, tried = holder.reads(person.address, person.name)
    assert (clear, opened) == (set(), set()) and tried > 20
    assert holder.on_disk(person.address) == []
    report = verify(pipeline, erased["id"], "--text", person.address, "--text", person.name)
    assert (report["readable"], report["in_clear"], report["chain"]) == (0, 0, "whole")
    assert report["in_clear_on_events"] == 0, "what the application sent is sealed there, its original erased"
    found = {(place["kind"], place["name"].split(" ")[0]) for place in report["places"] if place["sealed"] > 0}
    assert {("table", "order_saga.order_state"), ("stream", "PEOPLE"), ("segment", "PEOPLE"), ("stream", "REQUEST_NORMAL")} <= found
    assert report["issued"] == "erasure 1"
    body, signature, said = certificate(pipeline, erased["id"])
    ends = {row["what"]: row.get("by", "") for row in said["ends_later"]}
    [stored_by] = [by for what, by in ends.items() if what.startswith("vendors' callbacks in object storage")]
    assert stored_by > ends["INBOUND: vendors' callbacks, sealed under the tenant's key"] > ""
    assert signed(pipeline, body, signature, said["public_key"]) and not signed(pipeline, body + " ", signature, said["public_key"])
    assert said["public_key"] == pipeline.run_cli(
        "erase", "key", "--public", STENTOR_ERASURE_KEY_FILE=str(pipeline.erasure_key)).stdout.strip()
    assert person.address not in body and person.name not in body and person.number > 0
    assert [key["generation"] for key in said["keys"]] == [1, 1, 1] and all(len(key["wrapped_sha256"]) == 64 for key in said["keys"])
    assert sum(place["readable"] for kind in ("table", "stream", "segment") for place in said["scanned"][kind]) == 0
    assert body == json.dumps(said, sort_keys=True, separators=(",", ":")), "canonical"
    stored = (pipeline.storage / "erasure" / f"00000001-{erased['id']}-erasure.json").read_text()
    assert stored == f"{body}\n{signature.hex()}\n"
    head = said["audit_log"].split(":")[0]
    assert json.loads(pipeline.cli("audit-log", "verify", "--expect", said["audit_log"], "--json"))["chain"] == "whole" and int(head) > 0


def test_what_is_readable_or_in_clear_is_found_and_no_certificate_is_issued(pipeline, api):
    person = Person(pipeline, api)
    rows = pipeline.postgres.query("SELECT subject, generation, wrapped FROM keys.data_keys d WHERE EXISTS (SELECT FROM people.addresses a WHERE"
                                   " a.recipient_id = %s AND position(d.subject IN a.address) > 0)", person.id)
    id = person.erase()["id"]
    restored = "UPDATE keys.data_keys SET wrapped = %s, destroyed_at = NULL WHERE subject = %s AND generation = %s RETURNING 1"
    for subject, generation, wrapped in rows:
        pipeline.postgres.query(restored, wrapped, subject, generation)
    report = verify(pipeline, id, code=1)
    assert report["readable"] > 0 and report["issued"] == ""
    for subject, generation, _ in rows:
        pipeline.postgres.query("UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now() WHERE subject = %s RETURNING 1", subject)
    pipeline.postgres.query("INSERT INTO archiver.positions VALUES ('test', %s, 1, now(), now()) RETURNING 1", f"by {person.address}")
    report = verify(pipeline, id, "--text", person.address, code=1)
    assert (report["readable"], report["in_clear"], report["issued"]) == (0, 1, "")
    pipeline.postgres.query("DELETE FROM archiver.positions WHERE projection = 'test' RETURNING 1")
    assert verify(pipeline, id, "--no-certificate")["issued"] == ""
    assert verify(pipeline, id, key=False)["issued"] == ""
    number = verify(pipeline, id, "--text", person.address)["issued"]
    assert number.startswith("erasure ") and verify(pipeline, id)["issued"] == "", "one of a kind"


def test_certificates_are_a_chain_that_shows_each_change(pipeline, api):
    ids = [Person(pipeline, api).erase()["id"] for _ in range(2)]
    for id in ids:
        verify(pipeline, id)
    before, after = certificate(pipeline, ids[0]), certificate(pipeline, ids[1])
    assert after[2]["previous"] == hashlib.sha256(before[0].encode()).hexdigest() and after[2]["number"] == before[2]["number"] + 1
    change = "UPDATE erasure.certificates SET body = %s, sha256 = sha256(convert_to(%s, 'UTF8')) WHERE request = %s RETURNING 1"
    other = before[0].replace('"ground":"Art. 17', '"ground":"Art. 18')
    pipeline.postgres.query(change, other, other, ids[0])
    assert "signature that is not of its text" in verify(pipeline, ids[1], code=1)["chain"]
    pipeline.postgres.query(change, before[0], before[0], ids[0])
    pipeline.postgres.query("CREATE TABLE kept AS SELECT * FROM erasure.certificates WHERE request = %s", ids[0])
    pipeline.postgres.query("DELETE FROM erasure.certificates WHERE request = %s RETURNING 1", ids[0])
    assert "does not follow" in verify(pipeline, ids[1], code=1)["chain"]
    pipeline.postgres.query("INSERT INTO erasure.certificates SELECT * FROM kept RETURNING 1")
    assert verify(pipeline, ids[1])["chain"] == "whole"
    former = pipeline.erasure_key.read_text()
    pipeline.erasure_key.write_text(pipeline.cli("erase", "key"))
    assert "another key" in verify(pipeline, ids[1], code=1)["chain"]
    pipeline.erasure_key.write_text("-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n")
    assert "no ed25519 private key" in verify(pipeline, ids[1], code=1).stderr
    pipeline.erasure_key.write_text(former)


def owned(api, name, *addresses, id=None):
    """A recipient with these addresses; the same one again with others."""
    body = {"identity_type": "user", "identity_id": f"own-{name[0]}", "name": name, "addresses": [
        {"channel": "email", "address": address, "primary": address == addresses[0]} for address in addresses]}
    status, answer = api("PUT", f"/v1/recipients/{id}", body) if id else api("POST", "/v1/recipients", body)
    assert status in (200, 201, 204), answer
    return id or answer["id"]


def erase(pipeline, recipient):
    return json.loads(pipeline.cli("erase", "--recipient", recipient, "--ground", "Art. 17 GDPR", "--json"))


def test_what_was_sealed_under_a_former_address_is_erased_with_its_last_owner(pipeline, api):
    first, second, third = (f"former{number}@erased.example" for number in range(3))
    recipient = owned(api, "Fausta", first, second)
    for address in (first, second):
        pipeline.status(pipeline.send(to=address, variables={"name": "Fausta"}), wait="sent")
    owned(api, "Fausta", second, third, id=recipient)
    owned(api, "Fausta", third, id=recipient)
    times = pipeline.postgres.query("SELECT since < until, until IS NULL FROM erasure.address_owners WHERE recipient_id = %s ORDER BY since, until",
                                    recipient)
    assert times == [(True, False), (True, False), (None, True)], "an address that stays in a record that changes keeps its row"
    holder = Holder(pipeline)
    assert holder.reads(first, second)[1]
    done = erase(pipeline, recipient)
    assert (done["keys"], json.loads(done["cleared"])["addresses_kept"]) == ("3", 0), "the record's, and both former addresses'"
    assert holder.reads(first, second, third, "Fausta")[:2] == (set(), set())
    assert verify(pipeline, done["id"], "--text", first, "--text", second)["readable"] == 0
    pipeline.status(pipeline.send(to=first), wait="sent")  # who has it today is another
    assert erase(pipeline, recipient)["id"] == done["id"], "a repeat does not reach them"


def test_an_address_that_another_has_now_keeps_its_key_until_its_last_owner_is_erased(pipeline, api):
    address = "handed@erased.example"
    former = owned(api, "Gaius", address)
    pipeline.status(pipeline.send(to=address, variables={"name": "Gaius"}), wait="sent")
    owned(api, "Gaius", "gaius@erased.example", id=former)
    owner = owned(api, "Helvia", address)
    pipeline.status(pipeline.send(to=address, variables={"name": "Helvia"}), wait="sent")
    holder = Holder(pipeline)
    done = erase(pipeline, former)
    assert (done["keys"], json.loads(done["cleared"])["addresses_kept"]) == ("1", 1), "its record's key alone"
    assert holder.reads("Helvia")[1], "what the owner of today was sent is there"
    assert verify(pipeline, done["id"])["readable"] == 0
    said = json.loads(pipeline.cli("erase", "certificate", done["id"]).splitlines()[0])
    assert said["addresses_kept"] == 1 and any("addresses_kept" in text for text in said["remains"])
    assert erase(pipeline, owner)["keys"] == "2"
    assert holder.reads(address, "Helvia", "Gaius")[:2] == (set(), set())


def test_killed_after_a_certificate_is_issued_its_object_follows(pipeline, api):
    id = Person(pipeline, api).erase()["id"]
    killed = pipeline.run_cli("erase", "verify", id, STENTOR_CRASH_AT="erasure.certified", STENTOR_ERASURE_KEY_FILE=str(pipeline.erasure_key),
                              STENTOR_STORAGE_URL=f"file://{pipeline.storage}")
    assert killed.returncode == -9
    assert not list((pipeline.storage / "erasure").glob(f"*{id}*"))
    assert verify(pipeline, id)["issued"] == ""
    assert len(list((pipeline.storage / "erasure").glob(f"*{id}*"))) == 1


def test_the_final_certificate_comes_when_every_epoch_key_is_destroyed(pipeline, api):
    id = Person(pipeline, api).erase()["id"]
    assert verify(pipeline, id)["issued"].startswith("erasure "), "wrapped by the master key: nothing ends in backups yet"
    assert verify(pipeline, id)["issued"] == ""
    pipeline.postgres.query("UPDATE erasure.destroyed_keys SET wrapper = '\\x010201020304' WHERE request = %s RETURNING 1", id)
    pipeline.postgres.query("INSERT INTO keys.epochs VALUES (1, '\\x01020304', now() - interval '9 days', now() - interval '8 days',"
                            " now() - interval '8 days', NULL) RETURNING 1")
    assert verify(pipeline, id)["issued"] == "", "its epoch key is there"
    pipeline.postgres.query("INSERT INTO keys.epochs VALUES (2, '\\x01020305', now() - interval '8 days', now(), now(), NULL) RETURNING 1")
    pipeline.postgres.query("UPDATE keys.epochs SET destroyed_at = now() WHERE number = 1 RETURNING 1")
    assert verify(pipeline, id)["issued"] == "", "the next epoch was open then: a backup may hold a copy that it wrapped"
    pipeline.postgres.query("INSERT INTO keys.epochs VALUES (3, '\\x01020306', now(), NULL, NULL, NULL) RETURNING 1")
    pipeline.postgres.query("UPDATE keys.epochs SET destroyed_at = now() WHERE number = 2 RETURNING 1")
    assert verify(pipeline, id)["issued"].startswith("final "), "an epoch that was opened after the erasure has no copy"
    said = json.loads(pipeline.cli("erase", "certificate", id, "--kind", "final").splitlines()[0])
    assert said["kind"] == "final" and [key["epoch"] for key in said["keys"]] == [1, 1, 1] and all(key["epoch_destroyed_at"] for key in said["keys"])
    assert verify(pipeline, id)["chain"] == "whole"
    assert pipeline.run_cli("erase", "certificate", id, "--kind", "other").returncode == 3
    pipeline.postgres.query("DELETE FROM keys.epochs RETURNING 1")  # no program has their keys


def test_rows_that_left_postgres_are_looked_at_in_their_objects(pipeline, api):
    person = Person(pipeline, api)
    query = pipeline.postgres.query
    sent = person.sent[0]
    wait_until(lambda: person.count("archiver.notifications", "id = %s AND sent_at IS NOT NULL", sent) == 1, 20, "the row in history")
    wait_until(lambda: person.count("archiver.delivery_attempts", "notification_id = %s", sent) == 1, 20, "its attempt")
    code = query("SELECT retention_class FROM archiver.notifications WHERE id = %s", sent)[0][0]
    for table, column in (("notifications", "id"), ("delivery_attempts", "notification_id")):
        query(f"SELECT stentor.ensure_partitions('archiver.{table}', '2026-01-02'::timestamptz, '2026-01-02'::timestamptz)")
        query(f"UPDATE archiver.{table} SET created_at = '2026-01-05' WHERE {column} = %s RETURNING 1", sent)
    unit = f"notifications/{dict(R='record', S='standard', B='brief')[code]}/2026-01"

    def removed():
        """A run waits for the fold: it comes as far as it may."""
        pipeline.cli("archive", "run", unit, "--older-than", "0")
        return query("SELECT state FROM archive.units WHERE id = %s", unit) == [("removed",)]
    wait_until(removed, 60, "the month being archived")
    assert person.count("archiver.notifications", "id = %s", sent) == 0
    holder = Holder(pipeline, pipeline.storage)
    assert any(where.startswith("object ") for where in holder.reads(person.address)[1])
    id = person.erase()["id"]
    assert holder.reads(person.address, person.name)[:2] == (set(), set())
    report = verify(pipeline, id, "--text", person.address)
    assert [place["sealed"] > 0 for place in report["places"] if place["kind"] == "archive" and unit.split("/")[1] in place["name"]].count(True) == 1
    said = json.loads(pipeline.cli("erase", "certificate", id).splitlines()[0])
    assert sum(place["sealed"] for place in said["scanned"]["archive"]) == 1 and report["readable"] == 0
    pipeline.cli("export", "--recipient", person.id, "--out", pipeline.folder / "archived.json")
    gaps = json.loads((pipeline.folder / "archived.json").read_text())["gaps"]
    assert any("archived unit" in gap["what"] for gap in gaps)


def export(pipeline, recipient, name="export.json", storage=True):
    settings = {"STENTOR_STORAGE_URL": f"file://{pipeline.storage}"} if storage else {}
    done = pipeline.run_cli("export", "--recipient", recipient, "--out", pipeline.folder / name, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads((pipeline.folder / name).read_text()) if name.endswith("json") else zipfile.ZipFile(pipeline.folder / name)


def test_an_export_reads_rows_and_orders_that_left_postgres(pipeline, api):
    person, other = Person(pipeline, api), Person(pipeline, api)
    query, sent = pipeline.postgres.query, person.sent + other.sent
    orders = [pipeline.shop.order(email=one.address).check_out(fullName=one.name).wait_state("Placed").complete().wait_state("Completed")
              for one in (person, other)]
    wait_until(lambda: person.count("archiver.delivery_attempts", "notification_id = ANY (%s)", sent) == 4, 30, "the attempts")
    for table, column in (("notifications", "id"), ("delivery_attempts", "notification_id")):
        query(f"SELECT stentor.ensure_partitions('archiver.{table}', '2026-02-02'::timestamptz, '2026-02-02'::timestamptz)")
    class_of = query("SELECT retention_class FROM archiver.notifications WHERE id = %s", sent[0])[0][0]
    for table, column in (("notifications", "id"), ("delivery_attempts", "notification_id")):
        query(f"UPDATE archiver.{table} SET created_at = '2026-02-05' WHERE {column} = ANY (%s)", sent)
    query("UPDATE erasure.address_owners SET since = '2026-01-01' WHERE recipient_id IN (%s, %s)", person.id, other.id)
    query("UPDATE order_saga.order_state SET finished_at = '2026-02-05' WHERE correlation_id = ANY (%s::uuid[])", [order.id for order in orders])
    query("SELECT order_saga.archive_orders('30 days', NULL, 1000)")
    before = export(pipeline, person.id)
    units = (f"notifications/{dict(R='record', S='standard', B='brief')[class_of]}/2026-02", "orders/record/2026-02")

    def removed():
        for unit in units:
            pipeline.cli("archive", "run", unit, "--older-than", "0")
        return query("SELECT count(*) FROM archive.units WHERE id = ANY (%s) AND state = 'removed'", list(units)) == [(2,)]
    wait_until(removed, 60, "both months being archived")
    assert person.count("archiver.notifications", "id = ANY (%s)", sent) == 0 and orders[0].row(table="order_archive") is None
    after = export(pipeline, person.id)

    def own(said, section, column, ids):
        return [row for row in said[section] if row[column] in ids]
    for section, column, ids, count in (("notifications", "id", sent, 2), ("attempts", "notification_id", sent, 2),
                                        ("orders", "correlation_id", [orders[0].id], 1), ("order_transitions", "correlation_id", [orders[0].id], 2)):
        assert len(own(before, section, column, ids)) == count, section
        assert own(after, section, column, ids) == own(before, section, column, ids), section
    assert after["orders"][0]["person"] == {"email": person.address, "name": person.name, "lines": []}
    assert (after["orders"][0]["current_state"], after["orders"][0]["total_micros"]) == ("Completed", 59900000)
    assert {row["address"] for row in own(after, "notifications", "id", sent)} == {person.address}
    text = json.dumps(after)
    assert not any(one in text for one in (other.address, other.name, other.id, orders[1].id, "hidden_"))
    read = [source for source in after["sources"] if source["kind"] == "archive" and "2026-02" in source["name"]]
    assert sorted(source["found"] for source in read) == [1, 2, 2, 2] and not any("archived unit" in gap["what"] for gap in after["gaps"])
    rows = list(csv.DictReader(io.StringIO(export(pipeline, person.id, "export.zip").read("orders.csv").decode())))
    assert [row["order_id"] for row in rows] == [after["orders"][0]["order_id"]]
    assert sum("STENTOR_STORAGE_URL is not set" in gap["what"] and "archived unit" in gap["what"] for gap in
               export(pipeline, person.id, storage=False)["gaps"]) >= 4
    lost = pipeline.storage / next(source["name"] for source in read)
    lost.rename(lost.with_suffix(".away"))
    try:
        gaps = [gap for gap in export(pipeline, person.id)["gaps"] if gap["where"] == str(lost.relative_to(pipeline.storage))]
        assert len(gaps) == 1 and "an archived unit that cannot be read" in gaps[0]["what"]
    finally:
        lost.with_suffix(".away").rename(lost)
