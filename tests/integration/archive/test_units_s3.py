# SPDX-License-Identifier: Apache-2.0
"""Units in a bucket whose server loses answers, bytes and objects (harness/objectstore/puppet.py): what is not read back as it was
written is not removed from Postgres, and the end is the same as without faults."""
import pytest

from tests.harness.archive.units import UNIT, Units
from tests.harness.objectstore import ceph
from tests.harness.objectstore.puppet import ANSWERS_LOST, Fault, Puppet


@pytest.fixture()
def puppet():
    with Puppet() as running:
        yield running


OWNER = "stentor/_stentor/owner.json"


@pytest.fixture()
def units(puppet):
    units = Units(options=puppet.environment("stentor"), read_owner=lambda: puppet.store[OWNER][-1].body if OWNER in puppet.store else None)
    yield units
    units.close()


def later(units):
    return units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]


def again(units, kind, times=8, **argument):
    """An operator who repeats what failed."""
    for _ in range(times):
        state, message = units.request(kind, unit=UNIT, **argument)
        if state == "done":
            return
    raise AssertionError(f"{kind}: {message}")


def stored(puppet):
    return puppet.keys("stentor/archive/")


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_with_answers_lost_at_random_the_end_is_the_same(puppet, units, seed):
    units.fill(rows=60)
    before = units.content()
    units.start(STENTOR_ARCHIVE_PART_ROWS="20")
    puppet.chaos(0.1, seed, ANSWERS_LOST)
    again(units, "run", older_than_us=0)
    assert units.state() == "removed" and units.rows() == 0
    assert [key.removeprefix("stentor/") for key in stored(puppet)] == units.objects() and len(units.objects()) == 18
    again(units, "restore", until_us=later(units))
    assert [len(rows) for rows in units.content().values()] == [len(rows) for rows in before.values()]
    units.postgres.query("UPDATE archive.restores SET until = now()")
    again(units, "run")
    puppet.calm()
    units.end(units.processes[-1])
    units.start("expiring", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    again(units, "expire")
    assert stored(puppet) == []
    assert [key for key in puppet.store if key.startswith("stentor/archive/")] == []  # no version of any is left


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.WRONG_BYTES, Fault.SHORT_BODY], ids=lambda fault: fault.name.lower())
def test_an_object_that_is_not_read_back_as_written_is_made_again(puppet, units, fault):
    """Twice wrong counts as damaged: once may be the way's fault."""
    units.fill(rows=30)
    units.start()
    puppet.next(fault, times=1 if fault is Fault.LOST else 2, method="PUT" if fault is Fault.LOST else "GET", key="notifications/tenant=acme")
    state, message = units.request("run", unit=UNIT, older_than_us=0)
    assert state == "failed" and "notifications/tenant=acme" in message, message
    assert units.state() == "written" and units.rows() == 60
    again(units, "run", times=2, older_than_us=0)
    assert units.state() == "removed"
    assert units.request("verify")[0] == "done"
    again(units, "restore", times=1, until_us=later(units))
    assert units.rows() == 60
    units.postgres.query("UPDATE archive.restores SET until = now()")
    again(units, "run", times=2)
    units.end(units.processes[-1])
    units.start("expiring", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    again(units, "expire", times=2)
    assert {key: versions for key, versions in puppet.store.items() if "/archive/" in key and versions} == {}  # nor of what was put twice


@pytest.fixture()
def real():
    bucket = ceph.new_bucket()
    units = Units(options=bucket.environment("stentor"), read_owner=lambda: bucket.get(OWNER) if bucket.exists(OWNER) else None)
    yield units, bucket
    units.close()


@pytest.mark.long
def test_on_a_real_server_a_month_goes_comes_back_cools_and_expires(real):
    units, bucket = real
    units.fill(rows=60)
    before = [len(rows) for rows in units.content().values()]
    objects = lambda part: [key.removeprefix("stentor/") for key in bucket.keys(f"stentor/{part}/")]  # noqa: E731
    process = units.start(STENTOR_ARCHIVE_PART_ROWS="20")
    units.run()
    assert units.state() == "removed" and units.rows() == 0
    assert objects("archive") == units.objects() and len(units.objects()) == 18
    assert units.postgres.query("SELECT conditions FROM archive.installation") == [(True,)]
    assert units.request("verify")[0] == "done"
    again(units, "restore", times=1, until_us=later(units))
    assert [len(rows) for rows in units.content().values()] == before
    units.postgres.query("UPDATE archive.restores SET until = now()")
    again(units, "run", times=1)
    units.end(process)

    process = units.start("cooling", STENTOR_RETENTION_SPANS="record=1d:2d:90y")
    again(units, "run", times=1)
    assert len(objects("cold")) == 18 and units.objects(["verified"]) == objects("cold")
    units.end(process)

    damaged = "stentor/" + units.objects(["verified"])[0]
    whole = bucket.get(damaged)
    bucket.put(damaged, whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    process = units.start("verifying")
    state, message = units.request("verify")
    assert state == "failed" and damaged.removeprefix("stentor/") in message, message
    units.end(process)
    units.start("expiring", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    again(units, "expire", times=1)
    assert units.state() == "expired" and objects("archive") == objects("cold") == []


def test_a_full_bucket_is_named_and_nothing_is_removed(puppet, units):
    units.fill(rows=10)
    units.start()
    puppet.full = True
    state, message = units.request("run", unit=UNIT, older_than_us=0)
    assert state == "failed" and "archive/" in message, message
    assert units.state() in ("sealed", "counted") and units.rows() == 20
    puppet.full = False
    again(units, "run", times=2, older_than_us=0)
    assert units.state() == "removed"


def test_a_server_without_conditions_deletes_nothing_for_a_day(puppet, units):
    puppet.conditions = False
    units.fill(rows=10)
    units.start()
    units.run()
    units.end(units.processes[-1])
    units.start("expiring", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    state, message = units.request("expire", unit=UNIT)
    assert state == "failed" and "24 hours" in message
    assert len(stored(puppet)) == 4
    units.postgres.query("UPDATE archive.installation SET owner_changed_at = now() - interval '25 hours'")
    units.end(units.processes[-1])
    units.start("a day later", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    again(units, "expire", times=1)
    assert stored(puppet) == []
