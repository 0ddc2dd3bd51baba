# SPDX-License-Identifier: Apache-2.0
"""`stentor rebuild people` and `rebuild clock`: what is made of PEOPLE again from segments and stream, compared, and repaired while it runs."""
import http.client
import json
import threading

import pytest

from tests.harness.processes import wait_until
from tests.harness.stored_log import StoredLog

TABLES = {"people": ("people", ["recipients", "addresses", "labels", "preferences", "consents"]),
          "clock": ("digest_flusher", ["preferences", "consents", "unsubscribed_recipients"])}
PEOPLE = 12


@pytest.fixture
def pipeline():
    """Recipients with everything that PEOPLE may say of them; its first half is in segments alone."""
    pipeline = StoredLog().start(["ingest", "gateway", "digest-flusher", "archiver"])
    pipeline.ids = [add(pipeline, i) for i in range(PEOPLE)]
    pipeline.wait_stored("PEOPLE")
    pipeline.purge("PEOPLE", keep=9)
    pipeline.ids += [add(pipeline, PEOPLE)]
    wait_folded(pipeline)
    yield pipeline
    pipeline.stop()


def call(pipeline, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {pipeline.key}"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, (path, text)
        return json.loads(text)
    finally:
        connection.close()


def add(pipeline, i):
    recipient = call(pipeline, "POST", "/v1/recipients", {
        "identity_type": "user", "identity_id": f"u-{i}", "name": f"User {i}", "locale": "de-DE", "labels": ["admin", "vip"][:i % 3],
        "addresses": [{"channel": "email", "address": f"u{i}@example.com", "primary": True}, {"channel": "sms", "address": f"+4915123{i:05}"}]})["id"]
    path = f"/v1/recipients/{recipient}"
    call(pipeline, "PUT", f"{path}/preferences", [{"category": "marketing", "off": i % 2 == 0}])
    call(pipeline, "PUT", f"{path}/consents", [{"category": "marketing", "granted": i % 3 == 0}])
    if i % 4 == 1:
        call(pipeline, "PUT", f"{path}/unsubscription", {"unsubscribed": True})
    if i % 4 == 3:
        call(pipeline, "DELETE", path)
    return recipient


def wait_folded(pipeline):
    end = pipeline.state("PEOPLE")["last_seq"]
    for schema, _ in TABLES.values():
        wait_until(lambda: pipeline.postgres.query(f"SELECT min(sequence) FROM {schema}.positions WHERE stream = 'PEOPLE'")[0][0] == end, 20, f"{schema} folded")


def rows(pipeline, projection):
    schema, tables = TABLES[projection]
    return sorted(f"{table} {row}" for table in tables for row, in pipeline.postgres.query(f"SELECT (to_jsonb(t) - 'updated_at')::text FROM {schema}.{table} t"))


def run(pipeline, projection, *words, storage=True):
    url = {"STENTOR_STORAGE_URL": pipeline.extra["STENTOR_STORAGE_URL"]} if storage else {}
    return pipeline.run_cli("rebuild", projection, "--json", *words, admin=True, **url)


def rebuild(pipeline, projection, *words):
    done = run(pipeline, projection, *words)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def schemas(pipeline):
    return {row[0] for row in pipeline.postgres.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%\\_rebuild'")}


@pytest.mark.parametrize("projection", TABLES)
def test_what_is_made_of_people_equals_the_log_and_is_repaired_where_it_does_not(pipeline, projection):
    before = rows(pipeline, projection)
    schema, tables = TABLES[projection]
    assert {row.split()[0] for row in before} == set(tables)
    total = pipeline.state("PEOPLE")["last_seq"]
    assert "begins at" in run(pipeline, projection, "--dry-run", storage=False).stderr
    compared = rebuild(pipeline, projection, "--dry-run")
    assert (compared["differences"], compared["shown"], compared["events"], compared["unreadable"]) == (0, [], total, 0)
    # Wrong in every way: a row changed, one gone, one too many.
    changed, gone, extra = pipeline.ids[0], pipeline.ids[5], "rcp_extra"
    flag = "is_off" if projection == "people" else "is_immediate"
    pipeline.postgres.query(f"UPDATE {schema}.preferences SET {flag} = NOT {flag} WHERE recipient_id = '{changed}'")
    pipeline.postgres.query(f"DELETE FROM {schema}.consents WHERE recipient_id = '{gone}'")
    pipeline.postgres.query(f"INSERT INTO {schema}.consents SELECT (jsonb_populate_record(c, jsonb_build_object('recipient_id', '{extra}'))).*"
                            f" FROM {schema}.consents c WHERE recipient_id = '{changed}'")
    done = run(pipeline, projection, "--dry-run")
    reported = json.loads(done.stdout)
    assert done.returncode == 1 and reported["differences"] == 3 and set(reported["shown"]) == {
        f"preferences {changed} acme: differs", f"consents {gone} acme: only in the log", f"consents {extra} acme: only in the live table"}
    repaired = rebuild(pipeline, projection)
    assert repaired["differences"] == 3 and rows(pipeline, projection) == before and not schemas(pipeline)
    # All of it, as after a restore; and it goes on.
    for table in tables:
        pipeline.postgres.query(f"DELETE FROM {schema}.{table}")
    rebuild(pipeline, projection)
    assert rows(pipeline, projection) == before
    add(pipeline, 100)
    wait_folded(pipeline)
    assert len(rows(pipeline, projection)) > len(before) and rebuild(pipeline, projection, "--dry-run")["differences"] == 0


def test_it_is_exact_while_recipients_change(pipeline):
    ending = threading.Event()

    def write():
        i = 1000
        while not ending.is_set():
            add(pipeline, i)
            i += 1
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        for projection, (schema, _) in TABLES.items():
            assert rebuild(pipeline, projection, "--dry-run")["differences"] == 0
            pipeline.postgres.query(f"DELETE FROM {schema}.consents WHERE recipient_id = '{pipeline.ids[0]}'")
            assert rebuild(pipeline, projection)["differences"] == 1
    finally:
        ending.set()
        writer.join()
    wait_folded(pipeline)
    for projection in TABLES:
        assert rebuild(pipeline, projection, "--dry-run")["differences"] == 0


def test_a_stream_made_again_is_read_behind_its_former_one(pipeline):
    """The live projections have stopped: their positions are of another stream. Segments of the former one hold what went with it."""
    before = {projection: rows(pipeline, projection) for projection in TABLES}
    pipeline.wait_stored("PEOPLE")
    config = pipeline.client.stream_info("PEOPLE")["config"]
    for name in ("ingest", "digest-flusher"):
        pipeline.services[name].stop()
    assert json.loads(pipeline.client.request("$JS.API.STREAM.DELETE.PEOPLE"))["success"]
    assert "error" not in json.loads(pipeline.client.request("$JS.API.STREAM.CREATE.PEOPLE", json.dumps(config).encode()))
    for name in ("ingest", "digest-flusher"):
        pipeline.services[name].start(wait=False)
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM archive.holes WHERE stream = 'PEOPLE' AND reason = 'recreated'")[0][0] == 1, 30, "the archiver's note")
    done = run(pipeline, "people", "--dry-run")
    assert done.returncode == 1 and "(recreated)" in done.stderr and "--carry-older" in done.stderr
    for projection in TABLES:
        rebuild(pipeline, projection, "--carry-older")
        assert [strip(row) for row in rows(pipeline, projection)] == [strip(row) for row in before[projection]]
    for name in ("ingest", "digest-flusher"):
        pipeline.services[name].stop()
        pipeline.services[name].start()
    more = add(pipeline, 200)  # gateway holds its answers until the new stream's events are folded, low as their sequences are
    wait_folded(pipeline)
    assert pipeline.postgres.query("SELECT count(*) FROM people.recipients WHERE recipient_id = %s", more) == [(1,)]


def strip(row):
    """Without the sequences, which are of the stream that is there."""
    table, text = row.split(" ", 1)
    return table, {key: value for key, value in json.loads(text).items() if "sequence" not in key}
