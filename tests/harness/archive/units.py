# SPDX-License-Identifier: Apache-2.0
"""Units of the archive without the pipeline: Postgres with months of rows, a folder as the bucket, and the archiving process by itself."""
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path

from tests.harness.processes import BIN, Postgres, Process, wait_until

MONTH = "2026-01"
UNIT = f"notifications/record/{MONTH}"
TABLES = {"notifications": "created_at, id", "delivery_attempts": "created_at, notification_id, attempt_number"}


class ArchiveProcess(Process):
    """`stentor-archiver --archive-child`, as the service starts it."""

    def __init__(self, folder, name, options):
        self.name = name
        self.options = options
        super().__init__(folder)

    def argv(self):
        return [BIN / "stentor-archiver", "--archive-child"]

    def environment(self):
        return {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0", **self.options}


class Units:
    def __init__(self, options=None, read_owner=None):
        """options: of the storage; a folder when there are none. read_owner: its owner.json, None while there is none."""
        self.folder = Path(tempfile.mkdtemp(prefix="stentor-units-"))
        os.chmod(self.folder, 0o755)
        self.bucket = self.folder / "bucket"
        self.spool = self.folder / "spool"
        self.spool.mkdir()
        self.storage = options or {"STENTOR_STORAGE_URL": f"file://{self.bucket}"}
        self.read_owner = read_owner or self.read_owner_file
        self.postgres = Postgres(self.folder / "pg").start_installed()
        self.postgres.query("UPDATE archive.installation SET folded_at = now()")
        self.processes = []

    def close(self):
        for process in self.processes:
            if process.alive():
                process.kill()
        self.postgres.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- rows -----------------------------------------------------------------------------------------------------------

    def fill(self, rows=300, month=MONTH, tenants=("acme", "beta")):
        """Notifications of a month and an attempt for each, of some tenants; every column has values and nulls."""
        self.postgres.query(
            "SELECT stentor.ensure_partitions(t::regclass, %s::timestamptz, %s::timestamptz)"
            " FROM unnest(ARRAY['archiver.notifications', 'archiver.delivery_attempts']) t", f"{month}-02", f"{month}-02")
        for tenant in tenants:
            self.postgres.query(
                "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, category, priority, status, status_rank, reason,"
                " template, recipient_id, address_hash, address, content_checksum, scheduled_for, queued_at, sent_at, batch_id)"
                " SELECT %s::timestamptz + n * interval '173 seconds', 'ntf_01KAGTQ5M0' || 'R' || lpad(n::text, 15, '0'), %s, 'email',"
                "  CASE WHEN n %% 3 = 0 THEN NULL ELSE 'billing' END, 'normal', 'sent', 5, CASE WHEN n %% 7 = 0 THEN 'é 漢 ' || n END,"
                "  'welcome', 'r' || n %% 50, sha256(n::text::bytea), sha512(n::text::bytea), sha256(n::text::bytea), NULL,"
                "  '2026-01-01T00:00:00.123456Z'::timestamptz + n * interval '1 second', NULL, NULL FROM generate_series(1, %s) n",
                f"{month}-01", tenant, rows)
            self.postgres.query(
                "INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor,"
                " outcome, code, started_at, was_unknown)"
                " SELECT n.created_at, n.id, a, 'dat_' || a, n.tenant_id, 'email', 'smtp', 'accepted', '250', n.queued_at, a = 2"
                " FROM archiver.notifications n, generate_series(1, 2) a WHERE n.tenant_id = %s AND n.created_at >= %s::timestamptz"
                "  AND n.created_at < %s::timestamptz + interval '1 month'", tenant, f"{month}-01", f"{month}-01")

    def fill_day(self, day, rows=20, tenant="acme"):
        """Notifications of the brief class, whose periods are days."""
        self.postgres.query("UPDATE stentor.partition_periods SET period = 'day' WHERE class = 'B'")
        self.postgres.query("SELECT stentor.ensure_partitions('archiver.notifications', %s, %s),"
                            " stentor.ensure_partitions('archiver.delivery_attempts', %s, %s)", day, day, day, day)
        self.postgres.query("INSERT INTO archiver.notifications (created_at, retention_class, id, tenant_id, channel, status, status_rank)"
                            " SELECT %s::timestamptz + n * interval '1 minute', 'B', 'ntf_01KAGTQ5M0B' || lpad(n::text, 15, '0'), %s, 'email',"
                            " 'sent', 5 FROM generate_series(1, %s) n", day, tenant, rows)

    def content(self):
        """Every row of history that is attached, in order."""
        return {table: self.postgres.query(f"SELECT row_to_json(t)::text FROM (SELECT * FROM archiver.{table} ORDER BY {order}, tenant_id) t")
                for table, order in TABLES.items()}

    def rows(self, table="notifications"):
        return self.postgres.query(f"SELECT count(*) FROM archiver.{table}")[0][0]

    # ---- the archiving process ------------------------------------------------------------------------------------------

    def environment(self, **options):
        return {"STENTOR_DATABASE_URL": self.postgres.url("stentor_archiver"), **self.storage,
                "STENTOR_ARCHIVE_SPOOL_DIR": str(self.spool), "STENTOR_ARCHIVE_PART_ROWS": "400", "STENTOR_ARCHIVE_GRACE_S": "0",
                "STENTOR_RETENTION_SPANS": "record=90y:91y:92y,standard=90y:91y:92y,brief=90y:91y:92y", **options}

    def start(self, name="archive", wait=True, **options):
        process = ArchiveProcess(self.folder / "processes", name, self.environment(**options))
        epoch = self.epoch()
        self.processes.append(process.start(wait=False))
        if wait:
            wait_until(lambda: self.epoch() > epoch and self.owner_epoch() > epoch, 20, f"the bucket taken\n{process.tail()}")
        return process

    def owner_epoch(self):
        """As owner.json says it, which is written after the row."""
        mark = self.read_owner()
        return json.loads(mark)["epoch"] if mark else 0

    def read_owner_file(self):
        mark = self.bucket / "_stentor" / "owner.json"
        return mark.read_bytes() if mark.exists() else None

    def epoch(self):
        return self.postgres.query("SELECT owner_epoch FROM archive.installation")[0][0]

    def ask(self, kind, **argument):
        return self.postgres.query("SELECT archive.request(%s, %s)", kind, json.dumps(argument))[0][0]

    def outcome(self, request):
        return self.postgres.query("SELECT state, coalesce(message, '') FROM archive.requests WHERE id = %s", request)[0]

    def wait(self, request, seconds=40):
        wait_until(lambda: self.outcome(request)[0] in ("done", "failed"), seconds,
                   f"request {request}: {self.outcome(request)}\n{self.processes[-1].tail()}")
        return self.outcome(request)

    def request(self, kind, **argument):
        return self.wait(self.ask(kind, **argument))

    def run(self, unit=UNIT):
        """As far as it goes: with a grace of 0, until it is removed."""
        state, message = self.request("run", unit=unit, older_than_us=0)
        assert state == "done", message
        return message

    def state(self, unit=UNIT):
        rows = self.postgres.query("SELECT state FROM archive.units WHERE id = %s", unit)
        return rows[0][0] if rows else None

    def unit(self, column, unit=UNIT):
        return self.postgres.query(f"SELECT {column} FROM archive.units WHERE id = %s", unit)[0][0]

    def objects(self, states=("written", "verified")):
        return [row[0] for row in self.postgres.query("SELECT key FROM archive.objects WHERE state = ANY (%s) ORDER BY key", list(states))]

    def files(self, *parts):
        """Keys in the bucket, without the folder's own files."""
        return sorted(str(path.relative_to(self.bucket)) for part in parts or ("archive", "cold", "manifest")
                      for path in (self.bucket / part).rglob("*") if path.is_file() and not path.name.startswith("."))

    def end(self, process):
        process.child.send_signal(signal.SIGTERM)
        process.exit_status(20)
