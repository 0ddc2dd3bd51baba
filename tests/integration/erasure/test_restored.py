# SPDX-License-Identifier: Apache-2.0
"""Postgres restored from before erasures: no service starts until they are done again; and erasures that domain events ask for."""
import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from tests.harness.holder import Holder
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import SERVICES, free_port, wait_until
from tests.integration.erasure.test_certificate import certificate, verify
from tests.integration.erasure.test_erase import PLATFORM, Person
from tests.integration.recipients.test_people import Api

HOLDERS = ["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "order-saga"]


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(ack_wait_ms=3000, durable=True)
    running.storage = running.folder / "objects"
    running.start(SERVICES)
    running.cli("template", "put", "digest", "--from", PLATFORM / "digest.json", tenant="platform")
    running.erasure_key = running.folder / "erasure.key"
    running.erasure_key.write_text(running.cli("erase", "key"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def api(pipeline):
    return Api(pipeline.api_port, pipeline.key)


def cluster(pipeline, what):
    """A copy of the cluster that is stopped, or that copy back in its place."""
    data, copy = pipeline.postgres.data, pipeline.postgres.data.parent / "copy"
    for service in pipeline.services.values():
        service.stop()
    pipeline.postgres.stop()
    source, target = (data, copy) if what == "saved" else (copy, data)
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", source, target], check=True)
    pipeline.postgres.start()


def start_all(pipeline):
    for service in pipeline.services.values():
        service.start(wait=False)
    for service in pipeline.services.values():
        service.wait_ready()


def stored(pipeline, *words):
    return pipeline.run_cli(*words, admin=words[0] == "migrate", STENTOR_STORAGE_URL=f"file://{pipeline.storage}",
                            STENTOR_ERASURE_KEY_FILE=str(pipeline.erasure_key))


def refused(pipeline, name):
    service = pipeline.service(name, instance="-refused", **{f"STENTOR_{one}_PORT": free_port() for one in ("INGEST", "GATEWAY", "WEBHOOK")})
    service.start(wait=False)
    wait_until(lambda: service.child.poll() is not None, 30, f"{name} refusing to start")
    assert service.child.returncode == 2 and "stentor erase replay" in service.log.read_text(), service.tail()


def test_after_a_restore_no_service_starts_before_the_erasures_are_done_again(pipeline, api):
    people = [Person(pipeline, api) for _ in range(3)]
    stays = Person(pipeline, api)
    first = people[0].erase()["id"]
    verify(pipeline, first)
    cluster(pipeline, "saved")
    start_all(pipeline)
    ids = [person.erase()["id"] for person in people[1:]]
    returned = people[2]
    for service in ("ingest", "gateway"):
        pipeline.services[service].stop()
        pipeline.services[service].start()
    pipeline.status(returned.send(to=returned.address), wait="sent")  # under a younger key, which the restored database never had
    verify(pipeline, ids[0])
    last = certificate(pipeline, ids[0])
    cluster(pipeline, "restored")
    holder = Holder(pipeline)
    assert holder.reads(people[1].address)[1], "the restored database holds the key again"
    assert "2 erasures are not in this database" in stored(pipeline, "migrate").stdout
    for name in HOLDERS:
        refused(pipeline, name)
    killed = pipeline.run_cli("erase", "replay", STENTOR_CRASH_AT="erasure.replayed:2")
    assert killed.returncode == -9
    refused(pipeline, "ingest")
    done = json.loads(stored(pipeline, "erase", "replay", "--json").stdout)
    assert (done["known"], done["certificates"]) == ("3", "1") and int(done["replayed"]) <= 1
    assert json.loads(stored(pipeline, "erase", "replay", "--json").stdout)["replayed"] == "0", "safe to repeat"
    assert "erasures are not" not in stored(pipeline, "migrate").stdout
    start_all(pipeline)
    for person in people[1:]:
        assert set(person.keys()) == {(False, True, False)}
        assert person.count("people.recipients", "recipient_id = %s", person.id) == 0
        assert pipeline.status(person.waiting, wait="suppressed")["reason_code"] == "recipient_erased"
    assert holder.reads(people[1].address, people[1].name, people[2].name)[:2] == (set(), set())
    assert certificate(pipeline, ids[0]) == last and verify(pipeline, ids[1])["chain"] == "whole"
    assert api("GET", f"/v1/recipients/{stays.id}?reveal=true")[0] == 200
    pipeline.status(stays.send(recipient_id=stays.id), wait="sent")
    generations = pipeline.postgres.query("SELECT max(generation) FROM keys.data_keys WHERE subject IN (SELECT unnest(subjects) FROM"
                                          " erasure.requests WHERE id = %s)", ids[1])
    pipeline.status(returned.send(to=returned.address), wait="sent")
    assert generations == [(1,)] and returned.keys().count((True, False, False)) == 1, "who is here again has a younger key"


def test_a_changed_object_is_named_and_passed_over(pipeline):
    object = sorted((pipeline.storage / "erasure").iterdir())[0]
    text = object.read_text()
    for wrong, said in ((text.replace("Art. 17", "Art. 18"), "signature"), (text[:100], "it is no certificate"), ("", "it is no certificate")):
        object.write_text(wrong)
        for words in (("erase", "replay"), ("migrate",)):
            done = stored(pipeline, *words)
            assert done.returncode == 0 and said in done.stderr and object.name in done.stderr, done.stderr
        assert pipeline.postgres.query("SELECT count(*) FROM keys.gate") == [(0,)]
    object.write_text(text)
    done = stored(pipeline, "erase", "replay")
    assert done.returncode == 0 and "passed over" not in done.stderr


def test_a_forged_object_destroys_nothing(pipeline, api):
    """It is well formed, and signed by a key of whoever can write the bucket."""
    person = Person(pipeline, api)
    living = "SELECT encode(subject, 'hex'), generation FROM keys.data_keys WHERE wrapped IS NOT NULL ORDER BY 1, 2"
    before = pipeline.postgres.query(living)
    files = {name: pipeline.folder / f"forged.{name}" for name in ("key", "body", "sig")}
    files["key"].write_text(pipeline.cli("erase", "key"))
    public = pipeline.run_cli("erase", "key", "--public", STENTOR_ERASURE_KEY_FILE=str(files["key"])).stdout.strip()
    body = json.loads(sorted((pipeline.storage / "erasure").iterdir())[0].read_text().splitlines()[0])
    body |= {"id": "era_01KAGTQ5M00000000000000000", "recipient": person.id, "public_key": public,
             "keys": [{**body["keys"][0], "subject": subject, "generation": generation} for subject, generation in before]}
    files["body"].write_text(json.dumps(body, sort_keys=True, separators=(",", ":")))
    subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", files["key"], "-rawin", "-in", files["body"], "-out", files["sig"]], check=True)
    forged = pipeline.storage / "erasure" / "00000000-forged.json"
    forged.write_text(f"{files['body'].read_text()}\n{files['sig'].read_bytes().hex()}\n")
    try:
        for words in (("migrate",), ("erase", "replay")):
            done = stored(pipeline, *words)
            assert done.returncode == 0 and forged.name in done.stderr and "another key than that of STENTOR_ERASURE_KEY_FILE" in done.stderr, done
            assert pipeline.postgres.query("SELECT count(*) FROM keys.gate") == [(0,)]
        done = pipeline.run_cli("erase", "replay", STENTOR_STORAGE_URL=f"file://{pipeline.storage}")
        assert done.returncode == 0 and "STENTOR_ERASURE_KEY_FILE is not set" in done.stderr, "without a key nothing is taken"
    finally:
        forged.unlink()
    assert pipeline.postgres.query(living) == before
    assert person.count("people.recipients", "recipient_id = %s", person.id) == 1


def test_a_deleted_user_is_erased_by_the_next_run(pipeline, api):
    pipeline.cli("erase", "run")
    people = [Person(pipeline, api) for _ in range(3)]
    client = NatsClient(pipeline.nats.port)
    bodies = [{"user_id": people[0].identity}, {"userId": people[1].identity, "email": people[1].address}, {"user_id": "never-seen"}, {"user": 7}]
    for number, body in enumerate(bodies):
        client.publish("evt.acme.iam.user.deleted.v1", json.dumps(body).encode(), f"deleted-{number}-{people[0].number}")
    client.publish("evt.globex.iam.user.deleted.v1", json.dumps({"user_id": people[2].identity}).encode(), f"deleted-other-{people[0].number}")
    client.close()
    done = pipeline.run_cli("erase", "run")
    assert done.returncode == 0 and "5 events: 2 of people who are known, 2 of unknown ones, 1 unreadable, 0 failed" in done.stderr, done.stderr
    for person in people[:2]:
        assert set(person.keys()) == {(False, True, False)}
        assert [(action, actor) for action, _, actor in person.entries()] == [("erasure.requested", "event"), ("erasure.done", "event")]
    assert people[2].count("people.recipients", "recipient_id = %s", people[2].id) == 1, "another tenant's event erases no recipient of this one"
    pipeline.postgres.query("DELETE FROM erasure.positions RETURNING 1")
    before = pipeline.postgres.query("SELECT count(*) FROM erasure.requests")
    pipeline.cli("erase", "run")
    assert pipeline.postgres.query("SELECT count(*) FROM erasure.requests") == before, "an event that is read twice is one erasure"


REFUSE = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF new.recipient_id IN ('{}', '{}') THEN RAISE EXCEPTION 'this one is refused'; END IF;
    RETURN new;
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON erasure.requests FOR EACH ROW EXECUTE FUNCTION public.refuse()"""


def test_an_event_of_two_recipients_erases_both_and_one_that_fails_holds_up_nothing(pipeline, api):
    refused, first, second, held, waits = (Person(pipeline, api) for _ in range(5))
    assert second.pipeline.postgres.query("UPDATE people.recipients SET identity_id = %s WHERE recipient_id = %s RETURNING 1",
                                          first.identity, second.id) == [(1,)]
    for person in (held, waits):
        person.erase(code=-9, STENTOR_CRASH_AT="erasure.asked")
    client = NatsClient(pipeline.nats.port)
    for person in (refused, first):
        client.publish("evt.acme.iam.user.deleted.v1", json.dumps({"user_id": person.identity}).encode(), f"twice-{person.number}")
    client.close()
    pipeline.postgres.query(REFUSE.format(refused.id, held.id))
    try:
        for known in (1, 0):  # both are read again by each run
            done = pipeline.run_cli("erase", "run")
            assert done.returncode == 1 and f"2 events: {known} of people who are known" in done.stderr and "1 failed" in done.stderr, done.stderr
            assert f"recipient '{refused.id}'" in done.stderr and "this one is refused" in done.stderr, done.stderr
            assert "is tried again by the next run" in done.stderr and held.keys().count((True, False, False)) == 3
            for person in (first, second, waits):
                person.assert_keys_gone()
            assert first.count("erasure.requests", "recipient_id IN (%s, %s)", first.id, second.id) == 2
        assert refused.count("people.recipients", "recipient_id = %s", refused.id) == 1
    finally:
        pipeline.postgres.query("DROP FUNCTION public.refuse() CASCADE")
    done = pipeline.run_cli("erase", "run")
    assert done.returncode == 0 and "2 events: 1 of people who are known" in done.stderr, done.stderr
    refused.assert_keys_gone()
    held.assert_keys_gone()
    assert "events" not in pipeline.run_cli("erase", "run").stderr, "the position is behind them"


def checked(pipeline):
    """What doctor says of erasures."""
    checks = json.loads(pipeline.run_cli("doctor", "--json").stdout)["checks"]
    return next((check["result"], check["text"]) for check in checks if check["check"] == "erasures")


def test_an_erasure_that_waits_for_longer_than_a_day_is_reported(pipeline, api):
    person, ingest = Person(pipeline, api), pipeline.services["ingest"]
    person.erase(code=-9, STENTOR_CRASH_AT="erasure.asked")
    assert checked(pipeline) == ("ok", "1 wait for the next run")
    pipeline.postgres.query("UPDATE erasure.requests SET requested_at = now() - interval '2 days' WHERE recipient_id = %s", person.id)
    assert checked(pipeline)[0] == "fail" and "1 wait, the oldest for 2 d" in checked(pipeline)[1] and "stentor erase run" in checked(pipeline)[1]
    wait_until(lambda: ingest.metric("stentor_ingest_erasure_waiting_seconds") > 86400, 20, "the metric")
    pipeline.cli("erase", "run")
    assert checked(pipeline) == ("ok", "0 wait for the next run")


def test_an_erasure_that_destroyed_no_key_is_known_after_its_replay(pipeline):
    """Before, it was missing for ever: each migrate closed the gate again."""
    recipient = "rcp_01KAGTQ5M0000000000000KEYS"
    pipeline.postgres.query("INSERT INTO people.recipients (tenant_id, recipient_id, updated_at, sequence) VALUES ('acme', %s, now(), 1) RETURNING 1",
                            recipient)
    done = json.loads(pipeline.cli("erase", "--recipient", recipient, "--ground", "Art. 17 GDPR", "--json"))
    assert (done["state"], done["keys"]) == ("erased", "0")
    pipeline.postgres.query("DELETE FROM erasure.requests WHERE id = %s RETURNING 1", done["id"])  # as a restored database
    pipeline.postgres.query("INSERT INTO people.recipients (tenant_id, recipient_id, updated_at, sequence)"
                            " VALUES ('acme', %s, now() - interval '1 day', 1) RETURNING 1", recipient)
    assert "1 erasures are not in this database" in stored(pipeline, "migrate").stdout
    assert checked(pipeline)[0] == "fail" and "HINT: stentor erase replay" in checked(pipeline)[1]
    assert json.loads(stored(pipeline, "erase", "replay", "--json").stdout)["replayed"] == "1"
    assert pipeline.postgres.query("SELECT state, cardinality(subjects) FROM erasure.requests WHERE id = %s", done["id"]) == [("erased", 0)]
    assert pipeline.postgres.query("SELECT count(*) FROM people.recipients WHERE recipient_id = %s", recipient) == [(0,)]
    assert "erasures are not" not in stored(pipeline, "migrate").stdout
    assert pipeline.postgres.query("SELECT count(*) FROM keys.gate") == [(0,)]


def test_a_key_is_destroyed_when_it_is_destroyed_not_when_its_transaction_began(pipeline, api):
    """An epoch that was opened while it waited for the lock is one that may have wrapped the key."""
    person = Person(pipeline, api)
    with psycopg2.connect(pipeline.postgres.url()) as locker, ThreadPoolExecutor(1) as pool:
        cursor = locker.cursor()
        cursor.execute("LOCK TABLE keys.data_keys IN ROW EXCLUSIVE MODE")
        erasing = pool.submit(person.erase)
        wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM pg_locks WHERE relation = 'keys.data_keys'::regclass AND NOT granted")[0][0],
                   20, "the erasure waiting for the lock")
        cursor.execute("SELECT clock_timestamp()")
        opened_at = cursor.fetchone()[0]
        locker.commit()
        id = erasing.result()["id"]
    locker.close()
    times = pipeline.postgres.query("SELECT min(destroyed_at) FROM erasure.destroyed_keys WHERE request = %s", id)
    assert times[0][0] > opened_at
