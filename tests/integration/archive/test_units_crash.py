# SPDX-License-Identifier: Apache-2.0
"""Kills the archiving process at every point between two durable effects of a unit's life: written, removed, restored, cooled,
expired. The next process goes on, and the end is the same: the same objects, every row once, no object that no row names.

The points are those of common/base/crash.h for `archive`: a new one is in the matrix by itself, and one that is not passed fails."""
import random
import re

import pytest

from tests.harness.processes import BIN, HOME, wait_until
from tests.harness.archive.units import Units

POINTS = re.findall(r'X\("([a-z._]+)", "archive",', (HOME / "common/base/crash.h").read_text())
QUICK = ["archiver.part_put", "archiver.unit_detached", "archiver.object_deleted"]
HOT = "record=90y:91y:92y,standard=90y:91y:92y,brief=90y:91y:92y"
DIED = -9
PROGRAM = BIN / "stentor-archiver"
BUILT_WITH_POINTS = PROGRAM.exists() and b"crash point '" in PROGRAM.read_bytes()


@pytest.fixture(scope="module")
def units():
    units = Units()
    units.months = iter(f"{year}-{month:02}" for year in range(1990, 2020) for month in range(1, 13))
    yield units
    units.close()


class Life:
    """One month through all its states, with a process that dies now and then."""

    def __init__(self, units, kills):
        """kills: {phase or None: point or "point:N"}, for the first process of each phase, or of the first phase that passes it."""
        self.units, self.kills, self.deaths = units, dict(kills), []
        self.month = next(units.months)
        self.unit = f"notifications/record/{self.month}"

    def files(self, part):
        return [key for key in self.units.files(part) if f"month={self.month}" in key]

    def phase(self, spans, kind, argument, reached):
        units, process = self.units, None
        request = units.ask(kind, unit=self.unit, **argument) if kind else None

        def step():
            nonlocal process
            if process is None or not process.alive():
                if process is not None:
                    assert process.child.returncode == DIED, process.tail()
                    self.deaths.append(re.search(r"crash point '([a-z._]+)' reached", process.tail()).group(1))
                    self.kills.clear()
                arm = next(iter(self.kills.values()), None)
                process = units.start(name=f"life{len(units.processes)}", wait=False, STENTOR_RETENTION_SPANS=spans, STENTOR_ARCHIVE_PART_ROWS="20",
                                      **({"STENTOR_CRASH_AT": arm} if arm else {}))
            return (request is None or units.outcome(request)[0] in ("done", "failed")) and reached()
        wait_until(step, 60, f"{self.unit} after {kind}: {units.state(self.unit)} {request and units.outcome(request)}")
        assert request is None or units.outcome(request)[0] == "done", units.outcome(request)
        if process.alive():
            units.end(process)

    def content(self):
        return {table: self.units.postgres.query(
            f"SELECT md5(string_agg(t::text, ',' ORDER BY t::text)), count(*) FROM (SELECT {columns} FROM archiver.{table}"
            " WHERE created_at >= %s::timestamptz AND created_at < %s::timestamptz + interval '1 month') t", f"{self.month}-01", f"{self.month}-01")
            for table, columns in (("notifications", "created_at, id, tenant_id, status, reason, address, queued_at"),
                                   ("delivery_attempts", "created_at, notification_id, attempt_number, tenant_id, outcome, started_at"))}

    def run(self):
        units = self.units
        units.fill(rows=30, month=self.month)
        before = self.content()
        state = lambda wanted: lambda: units.state(self.unit) == wanted  # noqa: E731
        self.phase(HOT, "run", {"older_than_us": 0}, state("removed"))
        keys = self.objects()
        parts = {"delivery_attempts": 6, "notifications": 4}  # of 20 rows at most, for two tenants
        assert {table: sum(f"/{table}/" in key for key in keys) for table in parts} == parts
        assert self.files("archive") == keys
        assert self.content() == {table: [(None, 0)] for table in before}

        until = units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
        self.phase(HOT, "restore", {"until_us": until}, state("restored"))
        assert self.content() == before
        units.postgres.query("UPDATE archive.restores SET until = now()")
        self.phase(HOT, "run", {}, state("removed"))
        assert self.content() == {table: [(None, 0)] for table in before}

        self.phase("record=1d:2d:90y", "run", {}, lambda: len(self.files("cold")) == len(keys))
        assert [key.replace("cold/", "archive/", 1) for key in self.files("cold")] == keys
        units.postgres.query("UPDATE archive.objects SET delete_after = now() WHERE state = 'replaced'")
        self.phase("record=1d:2d:90y", "run", {}, lambda: self.files("archive") == [])
        assert self.files("cold") == self.objects()
        self.phase("record=1d:1d:2d", "expire", {}, lambda: self.files("cold") == [])
        assert units.state(self.unit) == "expired" and self.objects() == []
        assert self.files("archive") == []
        assert units.postgres.query("SELECT archive.journal_fault(), archive.manifest_fault()") == [(None, None)]
        assert units.postgres.query("SELECT generation FROM archive.manifests WHERE unit = %s ORDER BY 1", self.unit) == [(1,), (2,), (3,)]
        return self.deaths

    def objects(self):
        return [row[0] for row in self.units.postgres.query(
            "SELECT key FROM archive.objects WHERE unit = %s AND state = 'verified' ORDER BY key", self.unit)]


@pytest.mark.skipif(not BUILT_WITH_POINTS, reason="built without -DSTENTOR_CRASH_POINTS=ON")
@pytest.mark.parametrize("point", [point if point in QUICK else pytest.param(point, marks=pytest.mark.long) for point in POINTS])
def test_killed_at_every_point_the_end_is_the_same(units, point):
    assert Life(units, {None: point}).run() == [point]


@pytest.mark.skipif(not BUILT_WITH_POINTS, reason="built without -DSTENTOR_CRASH_POINTS=ON")
@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_random_points(units, seed):
    chosen = random.Random(seed)
    for _ in range(3):
        Life(units, {None: f"{chosen.choice(POINTS)}:{chosen.randint(1, 4)}"}).run()
