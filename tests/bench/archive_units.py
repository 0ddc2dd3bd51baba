# SPDX-License-Identifier: Apache-2.0
"""What a month costs from Postgres to verified objects and back, in rows of both tables: CPU of the archiving process and of Postgres,
which a busy machine hardly changes, and wall clock, which it does. For tests/bench/archive, which has set STENTOR_BIN to a release build."""
import os
import time
from pathlib import Path

from tests.harness.archive.units import UNIT, Units

STATES = ("counted", "written", "verified", "committed", "removing", "removed")
# Each step and the states that are behind it. `check`: rows and digests once more, before the tables are detached.
STEPS = {step: STATES[at:] for at, step in enumerate(("count", "write", "verify", "commit", "check"))}
TICK = os.sysconf("SC_CLK_TCK")
NOTIFICATIONS = """
    INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, category, priority, status, status_rank, template,
        template_version, locale, recipient_id, address_hash, address, content_checksum, correlation_id, source_event_id, queued_at,
        rendered_at, sent_at, delivered_at)
    SELECT at, 'ntf_01KAGTQ5M0R' || upper(substr(md5(n::text), 1, 15)), 'acme', 'email', 'billing', 'normal', 'delivered', 6, 'welcome',
        '1.0.0', 'en-US', 'rcp_' || upper(substr(md5((n %% 100000)::text), 1, 26)), sha256((n %% 100000)::text::bytea),
        substr(sha512(n::text::bytea) || sha512((-n)::text::bytea), 1, 85), sha256(n::text::bytea), upper(substr(md5(n || 'c'), 1, 26)),
        substr(md5(n || 's'), 1, 22), at, at + interval '1 second', at + interval '2 seconds', at + interval '5 seconds'
    FROM generate_series(1, %s) n, LATERAL (SELECT '2026-01-01T00:00:00Z'::timestamptz + n * interval '500 microseconds' AS at) t"""
ATTEMPTS = """
    INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, vendor_message_id,
        outcome, code, enhanced_code, reply, started_at, finished_at)
    SELECT created_at, id, 1, 'dat_' || upper(substr(md5(id), 1, 26)), tenant_id, 'email', 'smtp', '4F' || upper(substr(md5(id), 1, 9)),
        'accepted', '250', '2.0.0', '2.0.0 Ok: queued', rendered_at, sent_at FROM archiver.notifications"""


def cpu_s(units, process):
    """Of the archiving process; of Postgres with the backends that have ended."""
    postgres = sum(_times(units.postgres.child.pid))
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = task.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == units.postgres.child.pid:
            postgres += int(fields[11]) + int(fields[12])
    return sum(_times(process.child.pid)[:2]) / TICK, postgres / TICK


def _times(pid):
    """utime, stime, and both of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(field) for field in fields[11:15]]


class Meter:
    """What each step costs: wall clock, CPU of the process and of Postgres."""

    def __init__(self, units, process, rows):
        self.units, self.process, self.rows = units, process, rows
        self.steps = {}
        self.start()

    def start(self):
        self.at = (time.monotonic(), *cpu_s(self.units, self.process))

    def end(self, name):
        now = (time.monotonic(), *cpu_s(self.units, self.process))
        self.steps[name] = tuple(after - before for after, before in zip(now, self.at))
        self.at = now

    def sum(self, names):
        return tuple(map(sum, zip(*(self.steps[name] for name in names))))

    def rates(self, names):
        """Rows a second of CPU, in all processes; of wall clock."""
        wall, own, postgres = self.sum(names)
        return self.rows / (own + postgres), self.rows / wall

    def costs(self, prefix, names):
        _, own, postgres = self.sum(names)
        return [(f"{prefix}_process_cpu_us", own * 1e6 / self.rows, "us/row"),
                (f"{prefix}_postgres_cpu_us", postgres * 1e6 / self.rows, "us/row")]


def figures(rows):
    units = Units()
    try:
        units.fill(rows=0, tenants=())
        units.postgres.query(NOTIFICATIONS, rows)
        units.postgres.query(ATTEMPTS)
        units.postgres.query("VACUUM ANALYZE archiver.notifications")
        units.postgres.query("VACUUM ANALYZE archiver.delivery_attempts")
        return _measure(units, 2 * rows)
    finally:
        units.close()


def _measure(units, rows):
    process = units.start(STENTOR_ARCHIVE_PART_ROWS="5000000")
    meter = Meter(units, process, rows)
    request = units.ask("run", unit=UNIT, older_than_us=0)
    for step, after in STEPS.items():
        while units.state() not in after:
            time.sleep(0.02)
        meter.end(step)
    assert units.wait(request, 600)[0] == "done"
    stored = units.postgres.query("SELECT sum(bytes) FROM archive.objects")[0][0]
    until = units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
    meter.start()
    assert units.wait(units.ask("restore", unit=UNIT, until_us=until), 600)[0] == "done"
    meter.end("restore")
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    archiving = ["count", "write", "verify", "commit"]
    archived, restored = meter.rates(archiving), meter.rates(["restore"])
    # What is wanted is said for one core, and of restoring for two.
    return [("archive_rows_per_s", archived[0], "rows/s"), ("archive_wall_rows_per_s", archived[1], "rows/s"),
            *meter.costs("archive", archiving), *(row for step in STEPS for row in meter.costs(f"archive_{step}", [step])),
            ("archive_restore_rows_per_s", restored[1], "rows/s"), ("archive_restore_cpu_rows_per_s", restored[0], "rows/s"),
            *meter.costs("archive_restore", ["restore"]),
            ("archive_bytes_per_notification", float(stored) * 2 / rows, "B"), ("archive_process_mb", peak_kb / 1000, "MB")]
