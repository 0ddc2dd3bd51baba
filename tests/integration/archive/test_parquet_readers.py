# SPDX-License-Identifier: Apache-2.0
"""Files of common/parquet read by DuckDB and by hyparquet, cell by cell. The two come from npm and are fetched once; where npm cannot
fetch them the test fails."""
import fcntl
import json
import subprocess

import pytest

from tests.harness.processes import BIN, HOME

READERS = HOME / "tests" / "integration" / "archive" / "readers"
COLUMNS = 11


@pytest.fixture(scope="module")
def readers():
    with (READERS / "package.json").open() as lock:  # other files' workers fetch them, too, and a half of a library is a SIGBUS
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (READERS / "node_modules").exists():
            # Not `npm ci`: a mirror without the packages of other systems does not agree with the lock.
            done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=READERS, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
    return READERS / "compare.mjs"


def compared(readers, folder, rows, group_rows, page_rows):
    sample = BIN.parent / "tests" / "parquet_sample"
    file, cells = folder / "sample.parquet", folder / "cells.json"
    subprocess.run([sample, str(rows), str(group_rows), str(page_rows), file, cells], check=True, timeout=60)
    done = subprocess.run(["node", readers, file, cells], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_cells(found, rows):
    for reader in ("duckdb", "hyparquet"):
        assert found[reader] == {"rows": rows, "cells": rows * COLUMNS, "wrong": []}
    assert found["rows"] == rows
    assert found["metadata"] == [{"key": "unit", "value": "notifications/record/2026-10"}]
    assert found["schema"] == {
        "id": "VARCHAR", "yes": "BOOLEAN", "small": "SMALLINT", "number": "INTEGER", "at": "TIMESTAMP WITH TIME ZONE", "wide": "BIGINT",
        "channel": "VARCHAR", "code": "VARCHAR", "variables": "JSON", "hash": "BLOB", "nothing": "VARCHAR"}


def test_every_cell_is_the_same_and_duckdb_uses_statistics_and_bloom_filters(readers, tmp_path):
    found = compared(readers, tmp_path, 15_000, 6_000, 750)
    check_cells(found, 15_000)
    assert int(found["groups"]) == 3
    assert found["statistics"] == {"least": "ntf_000000000000", "greatest": "ntf_000000014999", "nulls": "0"}
    assert [int(found[name]) for name in ("by_statistics", "by_time", "longest")] == [1, 1, 11_250]
    # An id is in one of the three row groups, an early code in two of them, an absent value in none: the other filters exclude it.
    assert found["excluded_present"] == ["2", "1"]
    assert found["excluded_absent"] == ["3", "3"]


def test_a_file_without_a_row_is_read(readers, tmp_path):
    check_cells(compared(readers, tmp_path, 0, 10, 5), 0)


@pytest.mark.long
@pytest.mark.parametrize("rows, group_rows, page_rows", [(140_000, 131_072, 16_384), (7, 3, 2)], ids=["sizes as they are", "tiny"])
def test_every_cell_is_the_same_whatever_the_sizes(readers, tmp_path, rows, group_rows, page_rows):
    check_cells(compared(readers, tmp_path, rows, group_rows, page_rows), rows)
