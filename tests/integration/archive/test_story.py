# SPDX-License-Identifier: Apache-2.0
"""Three months of mails of two tenants: archived, dropped, queried in DuckDB, one month restored, history rebuilt, a person erased; and a
program that holds everything, with every key that is left, finds nothing of that person but what the certificate names."""
import datetime
import json
import re
import subprocess
from collections import Counter

import pytest

from tests.harness.archive.past import Past
from tests.harness.holder import Holder
from tests.harness.processes import SERVICES, wait_until
from tests.harness.stored_log import StoredLog
from tests.integration.archive.test_parquet_readers import readers  # noqa: F401
from tests.integration.archive.test_units_service import publish_delivered
from tests.integration.erasure import wrapped_keys
from tests.integration.erasure.test_certificate import certificate, verify
from tests.integration.erasure.test_epochs import ROWS, end_keep, epochs, opened
from tests.integration.erasure.test_erase import PLATFORM, Person
from tests.integration.recipients.test_people import Api

pytestmark = pytest.mark.long
FIRST = datetime.datetime.now(datetime.timezone.utc).replace(day=1, hour=9, minute=0, second=0, microsecond=0)
CLASSES = {"R": "record", "S": "standard"}
EACH = 20  # mails of a month, class and tenant
LOG = ["REQUEST_NORMAL", "STATUS"]
HISTORY = {"notifications": "id", "delivery_attempts": "notification_id"}


def month(back):
    at = FIRST
    for _ in range(back):
        at = (at - datetime.timedelta(days=1)).replace(day=1)
    return at


MONTHS = [month(back) for back in (4, 3, 2)]
UNITS = [f"notifications/{name}/{at:%Y-%m}" for at in MONTHS for name in CLASSES.values()]


def start():
    pipeline = StoredLog(ack_wait_ms=3000)
    for name in ("epochs", "dumps", "spool"):
        (pipeline.folder / name).mkdir()
    pipeline.extra = {"STENTOR_EPOCH_KEYS_DIR": pipeline.folder / "epochs", "STENTOR_EPOCH_SETTLE_S": "0",
                      "STENTOR_KEYS_DUMP_DIR": pipeline.folder / "dumps", "STENTOR_ARCHIVE_SPOOL_DIR": pipeline.folder / "spool",
                      "STENTOR_ARCHIVE_GRACE_S": "0"}
    pipeline.start(SERVICES)
    pipeline.cli("template", "put", "digest", "--from", PLATFORM / "digest.json", tenant="platform")
    pipeline.cli("tenant", "put", "globex", "--name", "Globex", "--sender", "hello@globex.test", "--sender-name", "Globex")
    pipeline.cli("template", "put", "welcome", "--subject", "Welcome, {{name}}!", "--html", pipeline.folder / "welcome.html", "--text",
                 pipeline.folder / "welcome.txt", "--require", "name:string", tenant="globex")
    pipeline.erasure_key = pipeline.folder / "erasure.key"
    pipeline.erasure_key.write_text(pipeline.cli("erase", "key"))
    wait_until(lambda: 1 in epochs(pipeline), 20, "the first epoch")
    return pipeline


@pytest.fixture(scope="module")
def pipeline():
    pipeline = start()
    yield pipeline
    pipeline.stop()


@pytest.fixture(scope="module")
def person(pipeline):
    return Person(pipeline, Api(pipeline.api_port, pipeline.key))


def send_as(pipeline, key, to):
    done = wait_until(lambda: next(iter([body for status, _, body in [pipeline.post(
        {"to": to, "template": "welcome", "variables": {"name": to.split("@")[0]}}, headers={"Authorization": f"Bearer {key}"})]
        if status == 202]), None), 20, "accepted")
    return done["id"]


@pytest.fixture(scope="module")
def sent(pipeline, person):
    """{id: (tenant, class, month)} of what was sent in the three months."""
    keys = {"acme": pipeline.key, "globex": json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant="globex"))["key"]}
    accepted = {tenant: [send_as(pipeline, key, f"{name}@{tenant}.example") for name in ("carol", "dave", "erin")] for tenant, key in keys.items()}
    accepted["acme"] += person.sent
    total = sum(map(len, accepted.values()))
    wait_until(lambda: pipeline.history_count("status = 'sent'") == total, 30, "the first mails sent")
    # An installation of that time has the ledger's months.
    pipeline.postgres.query("SELECT stentor.ensure_partitions('dispatcher.ledger', %s, now())", MONTHS[0])
    past, sent = Past(pipeline, opened(pipeline, pipeline.postgres.query(ROWS))), {}
    for at in MONTHS:
        for code, name in CLASSES.items():
            for tenant, ids in accepted.items():
                for number in range(EACH):
                    id = past.repeat(ids[number % len(ids)], at + datetime.timedelta(hours=30 * number), code)
                    sent[id] = (tenant, name, f"{at:%Y-%m}")
    past.close()
    wait_until(lambda: pipeline.history_count("status = 'sent'") == total + len(sent), 60, "every mail sent")
    return sent


def history(pipeline, ids=None):
    where = " WHERE {} = ANY (%s)" if ids is not None else ""
    return {table: sorted(row[0] for row in pipeline.postgres.query(
        f"SELECT (to_jsonb(t) - 'updated_at')::text FROM archiver.{table} t" + where.format(column), *([list(ids)] if ids is not None else [])))
        for table, column in HISTORY.items()}


def rebuild(pipeline, *words):
    done = pipeline.run_cli("rebuild", "history", "--json", *words, admin=True, STENTOR_STORAGE_URL=pipeline.extra["STENTOR_STORAGE_URL"])
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def state(pipeline, unit):
    return pipeline.postgres.query("SELECT state FROM archive.units WHERE id = %s", unit)


def duckdb(pipeline, readers, sql):  # noqa: F811
    file = pipeline.folder / "query.sql"
    file.write_text(sql)
    done = subprocess.run(["node", readers.with_name("query.mjs"), pipeline.storage / "archive", "none", file], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_history_is_rebuilt_from_segments_and_the_live_log(pipeline, sent):
    assert len(sent) == len(UNITS) * 2 * EACH
    pipeline.wait_stored(*LOG)
    before = history(pipeline)
    pipeline.purge("STATUS", keep=20)
    pipeline.purge("REQUEST_NORMAL", keep=5)
    assert rebuild(pipeline, "--dry-run")["differences"] == 0
    assert rebuild(pipeline)["swapped"] is True
    assert history(pipeline) == before


@pytest.fixture(scope="module")
def archived(pipeline, sent):
    """What each table had of the three months before they left Postgres."""
    before = history(pipeline, sent)

    def removed(unit):
        pipeline.cli("archive", "run", unit, "--older-than", "0")  # as far as the fold lets it
        return state(pipeline, unit) == [("removed",)]
    for unit in UNITS:
        wait_until(lambda: removed(unit), 60, f"{unit} removed")
    assert history(pipeline, sent) == {"notifications": [], "delivery_attempts": []}
    return before


def test_duckdb_finds_what_was_sent_by_month_tenant_and_class(pipeline, sent, archived, readers):  # noqa: F811
    found = duckdb(pipeline, readers, "".join(
        f"-- name: {table}\nSELECT tenant, class, month, count(*)::int AS rows, count(DISTINCT {column})::int AS ids FROM read_parquet("
        f"getvariable('facts') || '/{table}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false) GROUP BY ALL;\n"
        for table, column in HISTORY.items()))
    expected = Counter(sent.values())
    for table in HISTORY:
        rows = {(row["tenant"], row["class"], row["month"]): (row["rows"], row["ids"]) for row in found[table]}
        assert rows == {group: (count, count) for group, count in expected.items()}, table


def test_a_late_event_is_kept_apart_and_a_restored_month_is_equal_row_by_row(pipeline, sent, archived):
    unit, ids = UNITS[0], [id for id, (_, name, at) in sent.items() if UNITS[0] == f"notifications/{name}/{at}"]
    late = next(id for id in ids if sent[id][0] == "acme")
    publish_delivered(pipeline, late)
    wait_until(lambda: pipeline.postgres.query("SELECT id, status FROM archiver.late_notifications") == [(late, "delivered")], 20, "the late event")
    assert "is in Postgres until" in pipeline.cli("archive", "restore", unit)
    restored = history(pipeline, sent)
    for table, column in HISTORY.items():
        assert restored[table] == [row for row in archived[table] if json.loads(row)[column] in ids], table
    assert len(restored["notifications"]) == 2 * EACH and pipeline.status(late)["status"] == "delivered"
    assert rebuild(pipeline, "--dry-run")["differences"] == 0, "what is restored is copied"
    everything = history(pipeline)
    assert rebuild(pipeline)["swapped"] is True and history(pipeline) == everything


class Everything(Holder):
    """With the data keys that any key file which exists opens, wherever they are found: rows, WAL, backups, dumps."""

    def __init__(self, pipeline, subjects):
        super().__init__(pipeline, pipeline.storage)
        self.subjects = subjects  # [(subject, generation), ...] of the person

    def wrapping(self):
        masters = self.pipeline.master_keys()["master"]
        return [bytes.fromhex(key) for key in masters] + wrapped_keys.epoch_keys(self.pipeline.folder / "epochs", masters)

    def keys(self):
        return [*opened(self.pipeline, self.pipeline.postgres.query(ROWS)).values(), *{key for _, key in self.found()}]

    def found(self):
        """{(kind of file, data key)}: wrapped keys of the person in any bytes that lie on the disk, and that open."""
        heads = b"|".join(re.escape(b"\x02" + bytes(id)) for id, in self.pipeline.postgres.query("SELECT key_id FROM keys.epochs"))
        candidates = re.compile(rb"(?s).(?=(?:" + heads + rb"))")
        found, keys = set(), self.wrapping()
        self.pipeline.postgres.query("CHECKPOINT")
        for path, data in self.files():
            texts = [bytes.fromhex(match.decode()) for match in re.findall(rb"\\x([0-9a-f]{132})\b", data)]
            wrapped = {data[match.start():match.start() + 66] for match in candidates.finditer(data)} | set(texts)
            for one in wrapped:
                for subject, generation in self.subjects:
                    for key in keys if len(one) == 66 else []:
                        data_key = wrapped_keys.unwrap(key, subject, generation, one)
                        if data_key:
                            found.add((self.kind(path), data_key))
        return found

    def kind(self, path):
        parts = path.relative_to(self.pipeline.folder).parts
        return "WAL" if "pg_wal" in parts else parts[0]

    def in_events(self, secret):
        """Files of EVENTS in which it stands."""
        return [path for path in self.pipeline.folder.rglob("*") if path.is_file() and "EVENTS" in path.parts
                and secret.encode() in path.read_bytes().lower()]


def all_cells(pipeline, readers):  # noqa: F811
    """Every value of every Parquet file, decompressed."""
    return json.dumps(duckdb(pipeline, readers, "".join(
        f"-- name: {table}\nSELECT * FROM read_parquet(getvariable('facts') || '/{table}/**/*.parquet');\n" for table in HISTORY))).lower()


def backup(pipeline):
    """As an administrator makes it: the whole database as text; the data keys' own dump."""
    (pipeline.folder / "backup").mkdir()
    subprocess.run([pipeline.postgres.bin / "pg_dump", "-h", "127.0.0.1", "-p", str(pipeline.postgres.port), "-U", "postgres", "-d", "stentor", "-f",
                    pipeline.folder / "backup" / "stentor.sql"], check=True, timeout=60)
    pipeline.cli("keys", "dump", "--to", pipeline.folder / "dumps" / "by-hand.dump")


def test_nothing_of_an_erased_person_is_found_anywhere_but_what_the_certificate_names(pipeline, person, archived, readers):  # noqa: F811
    pipeline.client.publish("evt.acme.iam.user.deleted.v1", json.dumps({"user_id": person.identity, "email": person.address}).encode(), "deleted-1")
    backup(pipeline)
    subjects = [(bytes(subject), generation) for subject, generation, wrapped in pipeline.postgres.query(ROWS)]
    everything = Everything(pipeline, subjects)
    assert {"WAL", "pg", "backup", "dumps"} <= {kind for kind, _ in everything.found()}, "where wrapped keys are, and open"
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM ingest.clear_events") == [(0,)], 30, "what came in clear being erased")
    clear, opens, tried = everything.reads(person.address, person.name)
    assert clear == set() and tried > 500
    assert {where.split()[0] for where in opens} == {"table", "stream", "segment", "object"}

    erased = person.erase()
    person.assert_keys_gone()
    report = verify(pipeline, erased["id"], "--text", person.address, "--text", person.name)
    assert (report["readable"], report["in_clear"], report["chain"]) == (0, 0, "whole") and report["issued"].startswith("erasure ")
    said = certificate(pipeline, erased["id"])[2]
    everything.subjects = [(bytes.fromhex(key["subject"]), key["generation"]) for key in said["keys"]]
    assert len(everything.subjects) == 3
    left = {kind for kind, _ in everything.found()}
    assert {"backup", "dumps"} <= left, "the former backups open it until the epoch ends"
    ends = [row["what"] for row in said["ends_later"]]
    assert "wrapped keys in backups of Postgres" in ends

    for number in (1, 2):
        pipeline.cli("keys", "rotate", "--wait")
        end_keep(pipeline, number)
    assert epochs(pipeline)[3]["state"] == "open"
    assert everything.found() == set(), "no key that exists opens a key of the person, wherever it lies"
    clear, opens, tried = everything.reads(person.address, person.name)
    assert (clear, opens) == (set(), set()) and tried > 500
    assert everything.on_disk(person.address, person.name) == []
    cells = all_cells(pipeline, readers)
    assert "carol" not in cells and person.address not in cells and person.name.lower() not in cells and person.sent[0][:6] in cells
    assert not everything.in_events(person.address), "events are sealed, and their key ended with its epoch"
    assert any(what.startswith("EVENTS: ") for what in ends), "what an installation that keeps them in clear still has is named"

    assert verify(pipeline, erased["id"], "--text", person.address)["issued"].startswith("final ")
    final = json.loads(pipeline.cli("erase", "certificate", erased["id"], "--kind", "final").splitlines()[0])
    assert all(key["epoch_destroyed_at"] for key in final["keys"]) and person.address not in json.dumps(final)
